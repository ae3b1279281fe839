//! Dry runs: everything but the write.

use windlass_contract::objects::{
    config_map, deployment, held, labeled, lease, namespace, pod, service,
};
use windlass_contract::{Edit, Scope, cases, revision};
use windlass_core::{Doc, doc};

cases![
    create_returns_what_would_be_and_keeps_nothing,
    create_generates_a_name,
    create_of_a_taken_name_is_refused,
    create_is_validated,
    create_in_a_missing_namespace_is_refused,
    create_of_a_namespace_keeps_nothing,
    create_of_a_service_allocates_nothing,
    update_returns_what_would_be_and_keeps_nothing,
    update_conflicts_as_usual,
    update_that_would_create_creates_nothing,
    patch_returns_what_would_be_and_keeps_nothing,
    json_patch_keeps_nothing,
    status_update_keeps_nothing,
    scale_update_keeps_nothing,
    delete_keeps_the_object,
    delete_in_the_body_keeps_the_object,
    delete_checks_preconditions,
    delete_of_a_missing_object_is_not_found,
    delete_of_a_held_object_marks_nothing,
    delete_collection_keeps_the_objects,
    eviction_keeps_the_pod,
    eviction_with_a_dry_run_in_its_body_keeps_the_pod,
    eviction_with_a_dry_run_in_its_body_spends_no_budget,
    eviction_refuses_other_dry_runs,
    binding_is_not_kept,
    no_event_is_sent,
    unknown_value_is_refused_by_create,
    unknown_value_is_refused_by_update,
    unknown_value_is_refused_by_patch,
    unknown_value_is_refused_by_delete,
];

async fn create_returns_what_would_be_and_keeps_nothing(t: &Scope) {
    let object = t
        .create("deployments?dryRun=All", &deployment("a"))
        .await
        .is(201);
    assert_eq!(object.at("/spec/replicas"), 1);
    assert_eq!(object.at("/metadata/generation"), 1);
    assert_eq!(object.str_at("/metadata/uid").len(), 36);
    assert!(object.at("/metadata/resourceVersion").is_null());
    t.get("deployments/a").await.fails(404, "NotFound");
}

async fn create_generates_a_name(t: &Scope) {
    let object = doc!({ "metadata": { "generateName": "gen-" } });
    let object = t.create("configmaps?dryRun=All", &object).await.is(201);
    let name = object.str_at("/metadata/name");
    assert_eq!(name.len(), 9);
    t.get(&format!("configmaps/{name}"))
        .await
        .fails(404, "NotFound");
}

async fn create_of_a_taken_name_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.create("configmaps?dryRun=All", &config_map("a"))
        .await
        .fails(409, "AlreadyExists");
}

async fn create_is_validated(t: &Scope) {
    let answer = t
        .create("pods?dryRun=All", &doc!({ "metadata": { "name": "a" } }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "spec.containers");
}

async fn create_in_a_missing_namespace_is_refused(t: &Scope) {
    let missing = t.in_namespace("no-such-namespace");
    missing
        .create("configmaps?dryRun=All", &config_map("a"))
        .await
        .fails(404, "NotFound");
}

async fn create_of_a_namespace_keeps_nothing(t: &Scope) {
    let name = t.unique("x");
    let object = t
        .create("namespaces?dryRun=All", &namespace(&name))
        .await
        .is(201);
    assert_eq!(object.at("/status/phase"), "Active");
    t.get(&format!("namespaces/{name}"))
        .await
        .fails(404, "NotFound");
}

async fn create_of_a_service_allocates_nothing(t: &Scope) {
    t.create("services?dryRun=All", &service("a")).await.is(201);
    t.get("services/a").await.fails(404, "NotFound");
}

async fn update_returns_what_would_be_and_keeps_nothing(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let changed = made.set("/spec/replicas", 3);
    let object = t.update("deployments/a?dryRun=All", &changed).await.is(200);
    assert_eq!(object.at("/spec/replicas"), 3);
    assert_eq!(object.at("/metadata/generation"), 2);
    assert_eq!(
        object.at("/metadata/resourceVersion"),
        made.at("/metadata/resourceVersion")
    );
    assert_eq!(t.get("deployments/a").await.is(200), made);
}

async fn update_conflicts_as_usual(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    t.merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    let stale = made.set("/data/key", "3");
    t.update("configmaps/a?dryRun=All", &stale)
        .await
        .fails(409, "Conflict");
}

async fn update_that_would_create_creates_nothing(t: &Scope) {
    t.update("leases/a?dryRun=All", &lease("a")).await.is(201);
    t.get("leases/a").await.fails(404, "NotFound");
}

async fn patch_returns_what_would_be_and_keeps_nothing(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let patch = doc!({ "data": { "key": "2" } });
    let object = t.merge("configmaps/a?dryRun=All", &patch).await.is(200);
    assert_eq!(object.at("/data/key"), "2");
    assert_eq!(
        object.at("/metadata/resourceVersion"),
        made.at("/metadata/resourceVersion")
    );
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn json_patch_keeps_nothing(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let patch = doc!([{ "op": "remove", "path": "/data/key" }]);
    let object = t.edit("configmaps/a?dryRun=All", &patch).await.is(200);
    assert!(object.at("/data/key").is_null());
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn status_update_keeps_nothing(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let running = made.set("/status/phase", "Running");
    let object = t.update("pods/a/status?dryRun=All", &running).await.is(200);
    assert_eq!(object.at("/status/phase"), "Running");
    assert_eq!(t.get("pods/a").await.is(200), made);
}

async fn scale_update_keeps_nothing(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let patch = doc!({ "spec": { "replicas": 5 } });
    let scale = t
        .merge("deployments/a/scale?dryRun=All", &patch)
        .await
        .is(200);
    assert_eq!(scale.at("/spec/replicas"), 5);
    assert_eq!(t.get("deployments/a").await.is(200), made);
}

async fn delete_keeps_the_object(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let status = t.delete("configmaps/a?dryRun=All").await.is(200);
    assert_eq!(status.at("/status"), "Success");
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn delete_in_the_body_keeps_the_object(t: &Scope) {
    let made = t.made("pods", &pod("a").set("/spec/nodeName", "n")).await;
    t.delete_with("pods/a", &doc!({ "dryRun": ["All"] }))
        .await
        .is(200);
    assert_eq!(t.get("pods/a").await.is(200), made);
}

async fn delete_checks_preconditions(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "dryRun": ["All"], "preconditions": { "uid": "other" } });
    t.delete_with("configmaps/a", &options)
        .await
        .fails(409, "Conflict");
}

async fn delete_of_a_missing_object_is_not_found(t: &Scope) {
    t.delete("configmaps/a?dryRun=All")
        .await
        .fails(404, "NotFound");
}

async fn delete_of_a_held_object_marks_nothing(t: &Scope) {
    let made = t
        .made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    t.delete("configmaps/a?dryRun=All").await.is(200);
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn delete_collection_keeps_the_objects(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let list = t.delete("configmaps?dryRun=All").await.is(200);
    assert_eq!(list.at("/items").items().len(), 1);
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn eviction_keeps_the_pod(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let eviction =
        doc!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" } });
    t.create("pods/a/eviction?dryRun=All", &eviction)
        .await
        .is(201);
    assert_eq!(t.get("pods/a").await.is(200), made);
}

/// An eviction of the pod `a` with these options for its deletion.
fn eviction(options: &Doc) -> Doc {
    doc!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" },
        "deleteOptions": options
    })
}

/// `kubectl drain --dry-run=server` sends this.
async fn eviction_with_a_dry_run_in_its_body_keeps_the_pod(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let eviction = eviction(&doc!({ "dryRun": ["All"] }));
    t.create("pods/a/eviction", &eviction).await.is(201);
    assert_eq!(t.get("pods/a").await.is(200), made);
    t.create("pods/a/eviction?dryRun=All", &eviction)
        .await
        .is(201);
    assert_eq!(t.get("pods/a").await.is(200), made);
}

async fn eviction_with_a_dry_run_in_its_body_spends_no_budget(t: &Scope) {
    let budget = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } }
    });
    t.made("poddisruptionbudgets", &budget).await;
    let status = doc!({ "status": {
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2
    } });
    let budget = t.merge("poddisruptionbudgets/b/status", &status).await;
    let budget = budget.is(200);
    t.made("pods", &labeled(&pod("a"), "app", "web")).await;
    let ready = doc!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }]
    } });
    let running = t.merge("pods/a/status", &ready).await.is(200);
    let eviction = eviction(&doc!({ "dryRun": ["All"] }));
    t.create("pods/a/eviction", &eviction).await.is(201);
    assert_eq!(t.get("pods/a").await.is(200), running);
    assert_eq!(t.get("poddisruptionbudgets/b").await.is(200), budget);
}

async fn eviction_refuses_other_dry_runs(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let eviction = eviction(&doc!({ "dryRun": ["Some"] }));
    t.create("pods/a/eviction", &eviction)
        .await
        .fails(422, "Invalid")
        .mentions("Unsupported value: [\"Some\"]: supported values: \"All\"");
    let answer = t.create("pods/a/eviction?dryRun=All", &eviction).await;
    assert_eq!(answer.code(), 500);
    let text = "Non-matching dry-run options in request and content: [All] and [Some]";
    assert!(answer.text().contains(text), "{}", answer.text());
    assert_eq!(t.get("pods/a").await.is(200), made);
}

async fn binding_is_not_kept(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } });
    t.create("pods/a/binding?dryRun=All", &binding)
        .await
        .is(201);
    assert_eq!(t.get("pods/a").await.is(200), made);
}

async fn no_event_is_sent(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let from = revision(&made);
    let mut watch = t
        .watch("configmaps", &format!("resourceVersion={from}"))
        .await;
    t.create("configmaps?dryRun=All", &config_map("b"))
        .await
        .is(201);
    t.merge("configmaps/a?dryRun=All", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    t.delete("configmaps/a?dryRun=All").await.is(200);
    t.made("configmaps", &config_map("c")).await;
    watch.expect("ADDED", "c").await;
}

async fn unknown_value_is_refused_by_create(t: &Scope) {
    let answer = t.create("configmaps?dryRun=Some", &config_map("a")).await;
    answer
        .fails(422, "Invalid")
        .says(
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: \
             supported values: \"All\"",
        )
        .is_about("meta.k8s.io", "CreateOptions", "")
        .because("FieldValueNotSupported", "dryRun");
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn unknown_value_is_refused_by_update(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.update("configmaps/a?dryRun=Some", &config_map("a")).await;
    answer
        .fails(422, "Invalid")
        .is_about("meta.k8s.io", "UpdateOptions", "");
}

async fn unknown_value_is_refused_by_patch(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.merge("configmaps/a?dryRun=Some", &doc!({})).await;
    answer
        .fails(422, "Invalid")
        .is_about("meta.k8s.io", "PatchOptions", "");
}

async fn unknown_value_is_refused_by_delete(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.delete("configmaps/a?dryRun=Some").await;
    answer
        .fails(422, "Invalid")
        .is_about("meta.k8s.io", "DeleteOptions", "");
    t.get("configmaps/a").await.is(200);
}
