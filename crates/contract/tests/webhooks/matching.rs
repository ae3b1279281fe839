//! Requests that reach a webhook: rules, selectors, match policies, match conditions, exemptions.

use windlass_contract::objects::{config_map, namespace, pod};
use windlass_contract::{Edit, Reply, Scope, Webhook, cases};
use windlass_core::{Doc, doc};

use super::support::{configurations, configured, hook, in_namespace, rule, start};

cases![
    operations_of_a_rule_count,
    groups_versions_and_resources_of_a_rule_count,
    subresources_are_named,
    scope_of_a_rule_counts,
    other_namespaces_are_not_intercepted,
    labels_of_a_new_namespace_count,
    object_selector_looks_at_the_new_object,
    object_selector_looks_at_the_old_object,
    equivalent_version_is_converted,
    exact_policy_does_not_convert,
    requested_version_wins_over_others,
    condition_that_is_false_excludes,
    condition_sees_the_request,
    condition_sees_the_old_object,
    failing_condition_forbids,
    failing_condition_beside_a_false_one_excludes,
    failing_condition_is_ignored_by_policy,
    webhooks_cannot_intercept_their_configurations,
    deleted_configuration_has_no_effect,
    webhook_sees_objects_as_others_have_changed_them,
];

async fn validating_with(t: &Scope, change: impl Fn(Doc) -> Doc) -> Webhook {
    let webhook = start(|_| Reply::allow()).await;
    let hook = change(hook(t, &webhook, "v"));
    configured(t, "Validating", &webhook, &[hook]).await;
    webhook
}

fn operations(webhook: &Webhook) -> Vec<String> {
    let requests = webhook.requests("/v");
    let operation = |request: &Doc| request.str_at("/operation").to_owned();
    requests.iter().map(operation).collect()
}

async fn operations_of_a_rule_count(t: &Scope) {
    let wanted = doc!(["UPDATE", "DELETE"]);
    let webhook = validating_with(t, |it| it.set("/rules/0/operations", wanted.clone())).await;
    t.made("configmaps", &config_map("a")).await;
    t.merge("configmaps/a", &doc!({ "data": { "b": "c" } }))
        .await
        .is(200);
    t.delete("configmaps/a").await.is(200);
    assert_eq!(operations(&webhook), ["UPDATE", "DELETE"]);
}

async fn groups_versions_and_resources_of_a_rule_count(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let rules = [
        ("a", doc!([""]), doc!(["v1"]), doc!(["configmaps"]), true),
        (
            "b",
            doc!(["apps"]),
            doc!(["v1"]),
            doc!(["configmaps"]),
            false,
        ),
        ("c", doc!(["*"]), doc!(["v2"]), doc!(["configmaps"]), false),
        (
            "d",
            doc!(["*"]),
            doc!(["*"]),
            doc!(["secrets", "configmaps"]),
            true,
        ),
        ("e", doc!(["*"]), doc!(["*"]), doc!(["secrets"]), false),
        ("f", doc!(["*"]), doc!(["*"]), doc!(["*"]), true),
        ("g", doc!(["*"]), doc!(["*"]), doc!(["*/*"]), true),
        ("h", doc!(["*"]), doc!(["*"]), doc!(["configmaps/*"]), true),
        ("i", doc!(["*"]), doc!(["*"]), doc!(["*/status"]), false),
    ];
    let hooks = rules.iter().map(|(name, groups, versions, resources, _)| {
        let rule = doc!({
            "operations": ["*"], "apiGroups": groups, "apiVersions": versions,
            "resources": resources
        });
        hook(t, &webhook, name).set("/rules", doc!([rule]))
    });
    configured(t, "Validating", &webhook, &hooks.collect::<Vec<_>>()).await;
    t.made("configmaps", &config_map("a")).await;
    for (name, _, _, _, is_called) in rules {
        let calls = webhook.requests(&format!("/{name}")).len();
        assert_eq!(calls, usize::from(is_called), "{name}");
    }
}

async fn subresources_are_named(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hooks = [
        ("a", "pods"),
        ("b", "pods/status"),
        ("c", "pods/*"),
        ("d", "*/status"),
        ("e", "pods/exec"),
    ];
    let hooks = hooks.map(|(name, resource)| {
        let hook = hook(t, &webhook, name).set("/rules", doc!([(rule(&[resource]))]));
        hook.set("/objectSelector", doc!({}))
    });
    configured(t, "Validating", &webhook, &hooks).await;
    t.made("pods", &pod("p")).await;
    let status = doc!({ "status": { "phase": "Running" } });
    t.merge("pods/p/status", &status).await.is(200);
    // Nothing runs in the pod, so this fails after the webhooks have been asked.
    t.create("pods/p/exec?command=ls&stdout=true", &doc!({}))
        .await;
    let counts = ["a", "b", "c", "d", "e"].map(|name| webhook.requests(&format!("/{name}")).len());
    assert_eq!(counts, [1, 1, 3, 1, 1]);
    let exec = &webhook.requests("/e")[0];
    assert_eq!(exec.at("/operation"), "CONNECT");
    assert_eq!(exec.at("/kind/kind"), "PodExecOptions");
    assert_eq!(*exec.at("/object/command"), doc!(["ls"]));
    assert_eq!(*exec.at("/options"), Doc::NULL);
    assert_eq!(*exec.at("/oldObject"), Doc::NULL);
}

async fn scope_of_a_rule_counts(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hooks = [("a", "Namespaced"), ("b", "Cluster"), ("c", "*")]
        .map(|(name, scope)| hook(t, &webhook, name).set("/rules/0/scope", scope));
    configured(t, "Validating", &webhook, &hooks).await;
    t.made("configmaps", &config_map("a")).await;
    let counts = ["a", "b", "c"].map(|name| webhook.requests(&format!("/{name}")).len());
    assert_eq!(counts, [1, 0, 1]);
}

async fn other_namespaces_are_not_intercepted(t: &Scope) {
    let webhook = validating_with(t, |it| it).await;
    let other = t.neighbour().await;
    other.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn labels_of_a_new_namespace_count(t: &Scope) {
    let label = t.unique("label");
    let webhook = validating_with(t, |it| {
        let it = it.set("/rules", doc!([(rule(&["namespaces"]))]));
        it.set(
            "/namespaceSelector",
            doc!({ "matchLabels": { "case": (&label) } }),
        )
    })
    .await;
    let plain = namespace(&t.unique("b"));
    t.made("namespaces", &plain).await;
    let labeled = namespace(&t.unique("c")).set("/metadata/labels", doc!({ "case": (&label) }));
    t.made("namespaces", &labeled).await;
    let requests = webhook.requests("/v");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].str_at("/name"), t.unique("c"));
    assert_eq!(requests[0].str_at("/namespace"), t.unique("c"));
}

fn selecting_red(it: &Doc) -> Doc {
    it.set(
        "/objectSelector",
        doc!({ "matchLabels": { "color": "red" } }),
    )
}

async fn object_selector_looks_at_the_new_object(t: &Scope) {
    let webhook = validating_with(t, |it| selecting_red(&it)).await;
    t.made("configmaps", &config_map("a")).await;
    let red = config_map("b").set("/metadata/labels", doc!({ "color": "red" }));
    t.made("configmaps", &red).await;
    let requests = webhook.requests("/v");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].at("/name"), "b");
}

async fn object_selector_looks_at_the_old_object(t: &Scope) {
    let webhook = validating_with(t, |it| selecting_red(&it)).await;
    let red = config_map("b").set("/metadata/labels", doc!({ "color": "red" }));
    t.made("configmaps", &red).await;
    let blue = doc!({ "metadata": { "labels": { "color": "blue" } } });
    t.merge("configmaps/b", &blue).await.is(200);
    t.merge("configmaps/b", &doc!({ "data": { "x": "y" } }))
        .await
        .is(200);
    assert_eq!(operations(&webhook), ["CREATE", "UPDATE"]);
}

/// A rule for autoscalers of one version.
fn of_version(it: &Doc, version: &str, policy: &str) -> Doc {
    let rule = doc!({
        "operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": [version],
        "resources": ["horizontalpodautoscalers"]
    });
    it.set("/rules", doc!([rule])).set("/matchPolicy", policy)
}

const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers";

pub(crate) fn autoscaler(name: &str) -> Doc {
    let target = doc!({ "type": "Utilization", "averageUtilization": 80 });
    doc!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            "maxReplicas": 3,
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }]
        }
    })
}

async fn made_autoscaler(t: &Scope) {
    let path = AUTOSCALERS.replace("NS", t.namespace());
    t.made(&path, &autoscaler("a")).await;
}

async fn equivalent_version_is_converted(t: &Scope) {
    let webhook = validating_with(t, |it| of_version(&it, "v1", "Equivalent")).await;
    made_autoscaler(t).await;
    let requests = webhook.requests("/v");
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(request.at("/kind/version"), "v1");
    assert_eq!(request.at("/resource/version"), "v1");
    assert_eq!(request.at("/requestKind/version"), "v2");
    assert_eq!(request.at("/requestResource/version"), "v2");
    assert_eq!(request.at("/object/apiVersion"), "autoscaling/v1");
}

async fn exact_policy_does_not_convert(t: &Scope) {
    let webhook = validating_with(t, |it| of_version(&it, "v1", "Exact")).await;
    made_autoscaler(t).await;
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn requested_version_wins_over_others(t: &Scope) {
    let webhook = validating_with(t, |it| {
        let it = of_version(&it, "v1", "Equivalent");
        it.set("/rules/0/apiVersions", doc!(["v1", "v2"]))
    })
    .await;
    made_autoscaler(t).await;
    assert_eq!(webhook.requests("/v")[0].at("/kind/version"), "v2");
}

fn conditions(it: &Doc, expressions: &[&str]) -> Doc {
    let conditions = expressions.iter().enumerate();
    let conditions = conditions.map(
        |(index, expression)| doc!({ "name": (format!("c-{index}")), "expression": (*expression) }),
    );
    let conditions: Vec<Doc> = conditions.collect();
    it.set("/matchConditions", conditions)
}

async fn condition_that_is_false_excludes(t: &Scope) {
    let expressions = ["object.metadata.name != 'a'"];
    let webhook = validating_with(t, |it| conditions(&it, &expressions)).await;
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn condition_sees_the_request(t: &Scope) {
    let expressions = [
        "request.operation == 'CREATE'",
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "!request.dryRun",
        "'system:masters' in request.userInfo.groups",
        "oldObject == null",
        "request.name == 'a'",
        "has(request.namespace)",
        "request.options.kind == 'CreateOptions'",
    ];
    let webhook = validating_with(t, |it| conditions(&it, &expressions)).await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn condition_sees_the_old_object(t: &Scope) {
    let expressions = [
        "request.operation == 'UPDATE'",
        "object.data.key != oldObject.data.key",
    ];
    let webhook = validating_with(t, |it| conditions(&it, &expressions)).await;
    t.made("configmaps", &config_map("a")).await;
    t.merge("configmaps/a", &doc!({ "data": { "b": "c" } }))
        .await
        .is(200);
    t.merge("configmaps/a", &doc!({ "data": { "key": "c" } }))
        .await
        .is(200);
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn failing_condition_forbids(t: &Scope) {
    let expressions = ["object.nothing == 'a'"];
    let webhook = validating_with(t, |it| conditions(&it, &expressions)).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(403, "Forbidden");
    refusal.says(
        "configmaps \"a\" is forbidden: expression 'object.nothing == 'a'' resulted in error: no \
         such key: nothing",
    );
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn failing_condition_beside_a_false_one_excludes(t: &Scope) {
    let expressions = ["object.nothing == 'a'", "false"];
    let webhook = validating_with(t, |it| conditions(&it, &expressions)).await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn failing_condition_is_ignored_by_policy(t: &Scope) {
    let expressions = ["object.nothing == 'a'"];
    let webhook = validating_with(t, |it| {
        conditions(&it, &expressions).set("/failurePolicy", "Ignore")
    })
    .await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn webhooks_cannot_intercept_their_configurations(t: &Scope) {
    let webhook = start(|_| Reply::deny("never")).await;
    let label = t.unique("label");
    let selector = doc!({ "matchLabels": { "case": (&label) } });
    let greedy = hook(t, &webhook, "v")
        .set("/rules", doc!([(rule(&["*/*"]))]))
        .set("/objectSelector", &selector);
    for sort in ["Mutating", "Validating"] {
        configured(t, sort, &webhook, std::slice::from_ref(&greedy)).await;
    }
    let labels = doc!({ "case": (&label) });
    for sort in ["Mutating", "Validating"] {
        let other = super::support::configuration(sort, &t.unique("other"), &[]);
        let other = other.set("/metadata/labels", &labels);
        t.made(&configurations(sort), &other).await;
        let path = format!("{}/{}", configurations(sort), t.unique("other"));
        t.delete(&path).await.is(200);
    }
    let object = config_map("a").set("/metadata/labels", &labels);
    t.create("configmaps", &object).await.is(400);
}

async fn deleted_configuration_has_no_effect(t: &Scope) {
    let webhook = start(|_| Reply::deny("never")).await;
    let path = configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    t.create("configmaps", &config_map("a")).await.is(400);
    t.delete(&path).await.is(200);
    for _ in 0..2000 {
        if t.create("configmaps?dryRun=All", &config_map("a"))
            .await
            .code()
            == 201
        {
            return;
        }
    }
    panic!("the webhook is still called");
}

async fn webhook_sees_objects_as_others_have_changed_them(t: &Scope) {
    let webhook = start(|call| match call.path.as_str() {
        "/first" => Reply::patch(&doc!([
            { "op": "add", "path": "/metadata/labels", "value": { "color": "red" } }
        ])),
        _ => Reply::allow(),
    })
    .await;
    let first = hook(t, &webhook, "first").set("/namespaceSelector", in_namespace(t));
    let second = selecting_red(&hook(t, &webhook, "second"));
    configured(t, "Mutating", &webhook, &[first, second]).await;
    t.made("configmaps", &config_map("a")).await;
    let seen = webhook.requests("/second");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].at("/object/metadata/labels/color"), "red");
}
