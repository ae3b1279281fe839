//! Changes that mutating webhooks make.

use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_contract::objects::{config_map, deployment, pod};
use windlass_contract::{Edit, Reply, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{adds, configured, hook, mutating, named, rule, start};

cases![
    patch_changes_the_stored_object,
    patched_object_is_defaulted_again,
    unknown_fields_of_a_patch_are_dropped,
    wrong_type_in_a_patch_fails_the_request,
    patch_that_does_not_apply_fails_the_request,
    patch_that_does_not_apply_is_not_ignored,
    patch_leans_on_empty_fields,
    added_fields_belong_to_no_manager,
    unreadable_managed_fields_are_restored,
    removed_managed_fields_stay_away,
    invalid_object_after_a_patch_is_refused,
    webhooks_run_in_the_order_of_configurations,
    webhooks_of_a_configuration_run_in_their_order,
    validating_webhooks_see_the_mutated_object,
    webhook_is_called_again_after_a_later_change,
    webhook_is_called_once_by_default,
    webhook_after_the_last_change_is_not_called_again,
    webhook_is_not_first_called_in_the_second_round,
    namespace_cannot_be_changed,
    name_of_a_new_object_can_be_generated_after_mutation,
    update_is_mutated,
    patch_is_mutated,
    apply_is_mutated,
    status_is_mutated,
    scale_is_mutated,
    dry_run_is_mutated_and_not_stored,
    equivalent_version_is_patched_and_converted_back,
    conflicting_update_is_refused_after_mutation,
];

async fn patch_changes_the_stored_object(t: &Scope) {
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    let object = t.made("configmaps", &config_map("a")).await;
    assert_eq!(object.at("/data/new"), "added");
    assert_eq!(t.get("configmaps/a").await.is(200).at("/data/new"), "added");
}

/// A mutating webhook for pods of the namespace.
async fn for_pods(t: &Scope, patch: Doc) -> windlass_contract::Webhook {
    let webhook = start(move |_| Reply::patch(&patch)).await;
    let hook = hook(t, &webhook, "m").set("/rules", doc!([(rule(&["pods"]))]));
    configured(t, "Mutating", &webhook, &[hook]).await;
    webhook
}

async fn patched_object_is_defaulted_again(t: &Scope) {
    let container = doc!({ "name": "init", "image": "registry.example/init:1" });
    for_pods(
        t,
        doc!([{ "op": "add", "path": "/spec/initContainers", "value": [container] }]),
    )
    .await;
    let made = t.made("pods", &pod("a")).await;
    let init = made.at("/spec/initContainers/0");
    assert_eq!(init.at("/terminationMessagePolicy"), "File");
    assert_eq!(init.at("/imagePullPolicy"), "IfNotPresent");
}

async fn unknown_fields_of_a_patch_are_dropped(t: &Scope) {
    mutating(t, |_| {
        Reply::patch(&doc!([{ "op": "add", "path": "/nonsense", "value": 1 }]))
    })
    .await;
    let object = t.made("configmaps", &config_map("a")).await;
    assert!(object.get("nonsense").is_none());
}

async fn wrong_type_in_a_patch_fails_the_request(t: &Scope) {
    mutating(t, |_| {
        Reply::patch(&doc!([{ "op": "add", "path": "/data", "value": 1 }]))
    })
    .await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal
        .fails(500, "InternalError")
        .mentions("cannot unmarshal number into Go struct field");
}

async fn patch_that_does_not_apply_fails_the_request(t: &Scope) {
    mutating(t, |_| {
        Reply::patch(&doc!([{ "op": "remove", "path": "/absent" }]))
    })
    .await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal
        .fails(500, "InternalError")
        .mentions("Internal error occurred: ");
    t.get("configmaps/a").await.is(404);
}

async fn patch_that_does_not_apply_is_not_ignored(t: &Scope) {
    let webhook = start(|_| Reply::patch(&doc!([{ "op": "remove", "path": "/absent" }]))).await;
    let hook = hook(t, &webhook, "m").set("/failurePolicy", "Ignore");
    configured(t, "Mutating", &webhook, &[hook]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal.fails(500, "InternalError");
}

async fn patch_leans_on_empty_fields(t: &Scope) {
    let path = "/spec/containers/0/resources/limits";
    for_pods(
        t,
        doc!([{ "op": "add", "path": path, "value": { "cpu": "1" } }]),
    )
    .await;
    let made = t.made("pods", &pod("a")).await;
    assert_eq!(made.at(path).at("/cpu"), "1");
}

async fn added_fields_belong_to_no_manager(t: &Scope) {
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    let object = t.made("configmaps?fieldManager=me", &config_map("a")).await;
    assert_eq!(object.at("/data/new"), "added");
    assert_eq!(managers(&object), ["me"]);
    let fields = object.at("/metadata/managedFields/0/fieldsV1/f:data");
    assert!(
        fields.get("f:key").is_some() && fields.get("f:new").is_none(),
        "{fields}"
    );
}

async fn unreadable_managed_fields_are_restored(t: &Scope) {
    mutating(t, |_| {
        let path = "/metadata/managedFields/0/operation";
        Reply::patch(&doc!([{ "op": "replace", "path": path, "value": "Guess" }]))
    })
    .await;
    let answer = t
        .create("configmaps?fieldManager=me", &config_map("a"))
        .await;
    assert_eq!(managers(&answer.is(201)), ["me"]);
    let warnings = answer.headers("warning");
    assert_eq!(
        warnings,
        [
            "299 - \".metadata.managedFields was in an invalid state after admission; this could be \
          caused by an outdated mutating admission controller; please fix your requests: operation \
          must be `Apply` or `Update`\""
        ]
    );
}

async fn removed_managed_fields_stay_away(t: &Scope) {
    mutating(t, |_| {
        Reply::patch(&doc!([{ "op": "remove", "path": "/metadata/managedFields" }]))
    })
    .await;
    let answer = t
        .create("configmaps?fieldManager=me", &config_map("a"))
        .await;
    assert_eq!(
        answer.is(201).at("/metadata/managedFields").items().len(),
        0
    );
}

async fn invalid_object_after_a_patch_is_refused(t: &Scope) {
    mutating(t, |_| Reply::patch(&adds("not valid!"))).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "data[not valid!]");
}

/// The names of the managers of an object.
fn managers(object: &Doc) -> Vec<&str> {
    let entries = object.at("/metadata/managedFields").items().iter();
    entries.map(|entry| entry.str_at("/manager")).collect()
}

fn paths(webhook: &windlass_contract::Webhook) -> Vec<String> {
    let received = webhook.received();
    let calls = received.iter().filter(|call| call.path != "/marker");
    calls.map(|call| call.path.clone()).collect()
}

async fn webhooks_run_in_the_order_of_configurations(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    for name in ["c", "a", "b"] {
        named(t, "Mutating", name, &webhook, &[hook(t, &webhook, name)]).await;
    }
    let calls = paths(&webhook).len();
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook)[calls..], ["/a", "/b", "/c"]);
}

async fn webhooks_of_a_configuration_run_in_their_order(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hooks = ["c", "a", "b"].map(|name| hook(t, &webhook, name));
    configured(t, "Mutating", &webhook, &hooks).await;
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook), ["/c", "/a", "/b"]);
}

async fn validating_webhooks_see_the_mutated_object(t: &Scope) {
    let webhook = start(|call| match call.path.as_str() {
        "/m" => Reply::patch(&adds("new")),
        _ => Reply::allow(),
    })
    .await;
    configured(t, "Mutating", &webhook, &[hook(t, &webhook, "m")]).await;
    configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    t.made("configmaps", &config_map("a")).await;
    let seen = &webhook.requests("/v")[0];
    assert_eq!(seen.at("/object/data/new"), "added");
    // The server has set these since.
    assert!(!seen.str_at("/object/metadata/uid").is_empty());
    assert!(
        webhook.requests("/m")[0]
            .str_at("/object/metadata/uid")
            .is_empty()
    );
}

/// Patches that add a key, and add nothing if it is there.
fn adds_once(call: &windlass_contract::Received) -> Reply {
    let key = call.path.trim_start_matches('/');
    let has_key = call.request().at("/object/data").get(key).is_some();
    match has_key {
        true => Reply::allow(),
        false => Reply::patch(&adds(key)),
    }
}

async fn webhook_is_called_again_after_a_later_change(t: &Scope) {
    let webhook = start(adds_once).await;
    let first = hook(t, &webhook, "a").set("/reinvocationPolicy", "IfNeeded");
    configured(t, "Mutating", &webhook, &[first, hook(t, &webhook, "b")]).await;
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook), ["/a", "/b", "/a"]);
    assert_eq!(webhook.requests("/a")[1].at("/object/data/b"), "added");
}

async fn webhook_is_called_once_by_default(t: &Scope) {
    let webhook = start(adds_once).await;
    let hooks = ["a", "b"].map(|name| hook(t, &webhook, name));
    configured(t, "Mutating", &webhook, &hooks).await;
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook), ["/a", "/b"]);
}

async fn webhook_after_the_last_change_is_not_called_again(t: &Scope) {
    let webhook = start(adds_once).await;
    let last = hook(t, &webhook, "b").set("/reinvocationPolicy", "IfNeeded");
    configured(t, "Mutating", &webhook, &[hook(t, &webhook, "a"), last]).await;
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook), ["/a", "/b"]);
}

async fn webhook_is_not_first_called_in_the_second_round(t: &Scope) {
    let webhook = start(|call| match call.path.as_str() {
        "/b" => Reply::patch(&doc!([
            { "op": "add", "path": "/metadata/labels", "value": { "color": "red" } }
        ])),
        _ => Reply::allow(),
    })
    .await;
    let red = doc!({ "matchLabels": { "color": "red" } });
    let first = hook(t, &webhook, "a").set("/objectSelector", red);
    let first = first.set("/reinvocationPolicy", "IfNeeded");
    configured(t, "Mutating", &webhook, &[first, hook(t, &webhook, "b")]).await;
    t.made("configmaps", &config_map("x")).await;
    assert_eq!(paths(&webhook), ["/b"]);
}

async fn namespace_cannot_be_changed(t: &Scope) {
    mutating(t, |_| {
        Reply::patch(&doc!([{ "op": "add", "path": "/metadata/namespace", "value": "default" }]))
    })
    .await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal.fails(400, "BadRequest").says(
        "the namespace of the provided object does not match the namespace sent on the request",
    );
}

async fn name_of_a_new_object_can_be_generated_after_mutation(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    configured(t, "Mutating", &webhook, &[hook(t, &webhook, "m")]).await;
    configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    let object = config_map("a").set("/metadata", doc!({ "generateName": "gen-" }));
    let made = t.made("configmaps", &object).await;
    let (mutating, validating) = (webhook.requests("/m"), webhook.requests("/v"));
    assert_eq!(mutating[0].get("name"), None);
    assert_eq!(mutating[0].at("/object/metadata/generateName"), "gen-");
    assert_eq!(
        validating[0].at("/object/metadata/name"),
        made.at("/metadata/name")
    );
}

async fn update_is_mutated(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    let changed = t.update("configmaps/a", &config_map("a")).await.is(200);
    assert_eq!(changed.at("/data/new"), "added");
}

async fn patch_is_mutated(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    let patch = doc!({ "data": { "b": "c" } });
    let changed = t.merge("configmaps/a", &patch).await.is(200);
    assert_eq!(
        *changed.at("/data"),
        doc!({ "b": "c", "key": "value", "new": "added" })
    );
}

async fn apply_is_mutated(t: &Scope) {
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    for _ in 0..2 {
        let applied = t.applied("me", "configmaps/a", &config_map("a")).await;
        assert_eq!(applied.at("/data/new"), "added");
    }
}

async fn status_is_mutated(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let webhook = start(|_| {
        Reply::patch(&doc!([{ "op": "add", "path": "/status/reason", "value": "Webhook" }]))
    })
    .await;
    let hook = hook(t, &webhook, "m").set("/rules", doc!([(rule(&["pods/status"]))]));
    configured(t, "Mutating", &webhook, &[hook]).await;
    let patch = doc!({ "status": { "message": "m" } });
    let changed = t.merge("pods/a/status", &patch).await.is(200);
    assert_eq!(changed.at("/status/reason"), "Webhook");
    assert_eq!(webhook.requests("/m")[0].at("/subResource"), "status");
}

async fn scale_is_mutated(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let webhook =
        start(|_| Reply::patch(&doc!([{ "op": "replace", "path": "/spec/replicas", "value": 7 }])))
            .await;
    let hook = hook(t, &webhook, "m").set("/rules", doc!([(rule(&["deployments/scale"]))]));
    let hook = hook.set("/objectSelector", doc!({}));
    configured(t, "Mutating", &webhook, &[hook]).await;
    let patch = doc!({ "spec": { "replicas": 3 } });
    let scale = t.merge("deployments/a/scale", &patch).await.is(200);
    assert_eq!(scale.at("/spec/replicas"), 7);
    assert_eq!(t.get("deployments/a").await.is(200).at("/spec/replicas"), 7);
    let request = &webhook.requests("/m")[0];
    assert_eq!(request.at("/kind/kind"), "Scale");
    assert_eq!(request.at("/object/spec/replicas"), 3);
    assert_eq!(request.at("/oldObject/spec/replicas"), 1);
    assert_eq!(request.at("/resource/resource"), "deployments");
}

async fn dry_run_is_mutated_and_not_stored(t: &Scope) {
    mutating(t, |_| Reply::patch(&adds("new"))).await;
    let made = t
        .create("configmaps?dryRun=All", &config_map("a"))
        .await
        .is(201);
    assert_eq!(made.at("/data/new"), "added");
    t.get("configmaps/a").await.is(404);
}

async fn equivalent_version_is_patched_and_converted_back(t: &Scope) {
    let webhook = start(|_| {
        let path = "/spec/targetCPUUtilizationPercentage";
        Reply::patch(&doc!([{ "op": "replace", "path": path, "value": 42 }]))
    })
    .await;
    let rule = doc!({
        "operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"]
    });
    let hook = hook(t, &webhook, "m").set("/rules", doc!([rule]));
    configured(t, "Mutating", &webhook, &[hook]).await;
    let path = "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers";
    let path = path.replace("NS", t.namespace());
    let made = t.made(&path, &super::matching::autoscaler("a")).await;
    let metric = made.at("/spec/metrics/0");
    assert_eq!(metric.at("/resource/target/averageUtilization"), 42);
}

async fn conflicting_update_is_refused_after_mutation(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let webhook = start(|_| Reply::patch(&adds("new"))).await;
    configured(t, "Mutating", &webhook, &[hook(t, &webhook, "m")]).await;
    t.merge("configmaps/a", &doc!({ "data": { "b": "c" } }))
        .await
        .is(200);
    let calls = AtomicUsize::new(webhook.requests("/m").len());
    let refusal = t.update("configmaps/a", &made).await;
    refusal.fails(409, "Conflict");
    assert!(webhook.requests("/m").len() > calls.load(Ordering::Relaxed));
}
