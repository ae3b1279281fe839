//! Matching: rules, exclusions, selectors, versions, conditions, exempt kinds.

use windlass_contract::objects::{config_map, deployment, labeled, pod, secret};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{
    BINDINGS, POLICIES, binding, constraints, denying, rule, settle, validating, validation,
};

cases![
    excluded_rules_win,
    operations_are_told_apart,
    resource_names_are_compared,
    other_resources_are_not_seen,
    object_selector_sees_both_states,
    binding_narrows_the_policy,
    other_namespaces_are_not_seen,
    equivalent_versions_are_converted,
    exact_versions_are_not,
    subresources_need_their_own_rule,
    scale_is_seen_as_a_scale,
    false_condition_skips_the_policy,
    condition_that_fails_denies,
    condition_that_is_false_wins_over_one_that_fails,
    policies_do_not_see_policies,
    policies_see_webhook_configurations,
    policies_do_not_see_reviews,
    cluster_scoped_objects_have_no_namespace,
];

async fn excluded_rules_win(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let excluded = rule("", "v1", "configmaps", &["UPDATE"]);
    let named = rule("", "v1", "configmaps", &["*"]).set("/resourceNames", doc!(["free"]));
    let rules = Doc::from(vec![excluded, named]);
    let policy = policy.set("/spec/matchConstraints/excludeResourceRules", rules);
    t.made("configmaps", &config_map("old")).await;
    denying(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.create("configmaps", &config_map("free")).await.is(201);
    t.merge("configmaps/old", &doc!({ "data": { "a": "b" } }))
        .await
        .is(200);
    t.delete("configmaps/old").await.fails(422, "Invalid");
}

async fn operations_are_told_apart(t: &Scope) {
    let rules = vec![rule("", "v1", "configmaps", &["UPDATE"])];
    let policy = validating(t, "a", vec![validation("false")]);
    let policy = policy.set("/spec/matchConstraints", constraints(t, rules));
    denying(t, &policy).await;
    t.made("configmaps", &config_map("x")).await;
    t.merge("configmaps/x", &doc!({ "data": { "a": "b" } }))
        .await
        .fails(422, "Invalid");
    t.delete("configmaps/x").await.is(200);
}

async fn resource_names_are_compared(t: &Scope) {
    let rules =
        vec![rule("", "v1", "configmaps", &["CREATE"]).set("/resourceNames", doc!(["x", "y"]))];
    let policy = validating(t, "a", vec![validation("false")]);
    let policy = policy.set("/spec/matchConstraints", constraints(t, rules));
    denying(t, &policy).await;
    t.create("configmaps", &config_map("y"))
        .await
        .fails(422, "Invalid");
    t.made("configmaps", &config_map("z")).await;
}

async fn other_resources_are_not_seen(t: &Scope) {
    denying(t, &validating(t, "a", vec![validation("false")])).await;
    t.made("secrets", &secret("x")).await;
}

async fn object_selector_sees_both_states(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let selector = doc!({ "matchLabels": { "guarded": "yes" } });
    let policy = policy.set("/spec/matchConstraints/objectSelector", selector);
    let policy = policy.set(
        "/spec/matchConstraints/resourceRules/0/operations",
        doc!(["UPDATE"]),
    );
    t.made("configmaps", &labeled(&config_map("x"), "guarded", "yes"))
        .await;
    t.made("configmaps", &config_map("y")).await;
    denying(t, &policy).await;
    let none = doc!({ "metadata": { "labels": (Doc::NULL) } });
    t.merge("configmaps/x", &none).await.fails(422, "Invalid");
    let guarded = doc!({ "metadata": { "labels": { "guarded": "yes" } } });
    t.merge("configmaps/y", &guarded)
        .await
        .fails(422, "Invalid");
    t.merge("configmaps/y", &doc!({ "data": { "a": "b" } }))
        .await
        .is(200);
}

async fn binding_narrows_the_policy(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    t.made(POLICIES, &policy).await;
    let resources = doc!({
        "objectSelector": { "matchLabels": { "guarded": "yes" } },
        "excludeResourceRules": [(rule("", "v1", "configmaps", &["DELETE"]))]
    });
    let narrow = binding(&policy, &["Deny"]).set("/spec/matchResources", resources);
    let made = t.made(BINDINGS, &narrow).await;
    assert_eq!(made.at("/spec/matchResources/matchPolicy"), "Equivalent");
    settle(t).await;
    t.made("configmaps", &config_map("x")).await;
    let guarded = labeled(&config_map("y"), "guarded", "yes");
    t.create("configmaps", &guarded).await.fails(422, "Invalid");
}

async fn other_namespaces_are_not_seen(t: &Scope) {
    denying(t, &validating(t, "a", vec![validation("false")])).await;
    let other = t.neighbour().await;
    other.made("configmaps", &config_map("x")).await;
}

fn autoscaler(name: &str) -> Doc {
    doc!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name },
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }
        }
    })
}

fn about_autoscalers(t: &Scope, match_policy: &str, expression: &str) -> Doc {
    let rules = vec![rule(
        "autoscaling",
        "v1",
        "horizontalpodautoscalers",
        &["CREATE"],
    )];
    let constraints = constraints(t, rules).set("/matchPolicy", match_policy);
    let policy = validating(t, "a", vec![validation(expression)]);
    policy.set("/spec/matchConstraints", constraints)
}

async fn equivalent_versions_are_converted(t: &Scope) {
    let expression = "object.apiVersion == 'autoscaling/v1' && request.kind.version == 'v1' && \
                      request.requestKind.version == 'v2' && request.resource.version == 'v1' && \
                      request.requestResource.version == 'v2' && object.spec.maxReplicas == 4";
    let policy = about_autoscalers(t, "Equivalent", expression);
    denying(t, &policy).await;
    t.create("horizontalpodautoscalers", &autoscaler("x"))
        .await
        .fails(422, "Invalid");
    let four = autoscaler("y").set("/spec/maxReplicas", 4);
    t.create("horizontalpodautoscalers", &four).await.is(201);
}

async fn exact_versions_are_not(t: &Scope) {
    denying(t, &about_autoscalers(t, "Exact", "false")).await;
    t.create("horizontalpodautoscalers", &autoscaler("x"))
        .await
        .is(201);
}

async fn subresources_need_their_own_rule(t: &Scope) {
    let rules = vec![rule("", "v1", "pods/status", &["UPDATE"])];
    let validations = vec![doc!({
        "expression": "request.subResource == 'status' && object.status.phase != 'Failed'",
        "message": "no"
    })];
    let policy = validating(t, "a", validations);
    let policy = policy.set("/spec/matchConstraints", constraints(t, rules));
    t.made("pods", &pod("x")).await;
    denying(t, &policy).await;
    t.merge("pods/x", &doc!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .is(200);
    t.merge("pods/x/status", &doc!({ "status": { "phase": "Failed" } }))
        .await
        .fails(422, "Invalid")
        .mentions("pods \"x\" is forbidden");
    t.merge("pods/x/status", &doc!({ "status": { "phase": "Running" } }))
        .await
        .is(200);
}

async fn scale_is_seen_as_a_scale(t: &Scope) {
    let rules = vec![rule("apps", "v1", "deployments/scale", &["UPDATE"])];
    let expression = "object.kind == 'Scale' && request.kind.kind == 'Scale' && \
                      oldObject.spec.replicas == 1 && object.spec.replicas < 5";
    let policy = validating(t, "a", vec![validation(expression)]);
    let policy = policy.set("/spec/matchConstraints", constraints(t, rules));
    t.made("deployments", &deployment("x").set("/spec/replicas", 1))
        .await;
    denying(t, &policy).await;
    let many = doc!({ "spec": { "replicas": 9 } });
    t.merge("deployments/x/scale", &many)
        .await
        .fails(422, "Invalid");
    t.merge("deployments/x/scale", &doc!({ "spec": { "replicas": 2 } }))
        .await
        .is(200);
}

fn conditions(policy: &Doc, expressions: &[&str]) -> Doc {
    let conditions = expressions
        .iter()
        .enumerate()
        .map(|(at, expression)| doc!({ "name": (format!("c{at}")), "expression": (*expression) }));
    policy.set(
        "/spec/matchConditions",
        Doc::from(conditions.collect::<Vec<_>>()),
    )
}

async fn false_condition_skips_the_policy(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let policy = conditions(&policy, &["true", "object.metadata.name == 'x'"]);
    denying(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.made("configmaps", &config_map("y")).await;
}

async fn condition_that_fails_denies(t: &Scope) {
    let policy = validating(t, "a", vec![validation("true")]);
    let policy = conditions(&policy, &["object.nothing == 1", "object.none == 2"]);
    denying(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid")
        .mentions(
            "denied request: [expression 'object.nothing == 1' resulted in error: no such key: \
         nothing, expression 'object.none == 2' resulted in error: no such key: none]",
        );
}

async fn condition_that_is_false_wins_over_one_that_fails(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let policy = conditions(&policy, &["object.nothing == 1", "1 == 2"]);
    denying(t, &policy).await;
    t.made("configmaps", &config_map("x")).await;
}

/// Constraints for objects outside of namespaces that carry the label of a case.
fn labeled_cluster_wide(t: &Scope, resource: &str) -> Doc {
    doc!({
        "resourceRules": [(rule("*", "*", resource, &["CREATE"]))],
        "objectSelector": { "matchLabels": { "case": (t.namespace()) } }
    })
}

async fn policies_do_not_see_policies(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let all = labeled_cluster_wide(t, "*");
    denying(t, &policy.set("/spec/matchConstraints", all)).await;
    let other = validating(t, "b", vec![validation("true")]);
    let other = labeled(&other, "case", t.namespace());
    t.made(POLICIES, &other).await;
    t.made(
        BINDINGS,
        &labeled(&binding(&other, &["Deny"]), "case", t.namespace()),
    )
    .await;
}

async fn policies_see_webhook_configurations(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let all = labeled_cluster_wide(t, "validatingwebhookconfigurations");
    denying(t, &policy.set("/spec/matchConstraints", all)).await;
    let configuration = doc!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": (t.unique("hook")), "labels": { "case": (t.namespace()) } },
        "webhooks": []
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    t.create(path, &configuration).await.fails(422, "Invalid");
}

async fn policies_do_not_see_reviews(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let all = labeled_cluster_wide(t, "*");
    denying(t, &policy.set("/spec/matchConstraints", all)).await;
    let review = doc!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
        "metadata": { "labels": { "case": (t.namespace()) } }
    });
    t.create("selfsubjectreviews", &review).await.is(201);
}

async fn cluster_scoped_objects_have_no_namespace(t: &Scope) {
    let expression = "namespaceObject == null && !has(request.namespace) && \
                      object.value == 7";
    let policy = validating(t, "a", vec![validation(expression)]);
    let all = labeled_cluster_wide(t, "priorityclasses");
    denying(t, &policy.set("/spec/matchConstraints", all)).await;
    let class = |name: &str, value: i64| {
        doc!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
            "metadata": { "name": (t.unique(name)), "labels": { "case": (t.namespace()) } }
        })
    };
    t.create("priorityclasses", &class("x", 8))
        .await
        .fails(422, "Invalid");
    t.create("priorityclasses", &class("y", 7)).await.is(201);
}
