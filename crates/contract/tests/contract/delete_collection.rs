//! Deleting many objects at once.

use windlass_contract::objects::{config_map, deployment, held, labeled, pod};
use windlass_contract::{Edit, Scope, cases, names};
use windlass_core::doc;

cases![
    collection_is_emptied,
    deleted_objects_are_returned,
    label_selector_chooses,
    field_selector_chooses,
    finalizers_hold,
    policy_applies_to_each,
    other_namespaces_are_untouched,
    all_namespaces_at_once_is_not_allowed,
    empty_collection_is_fine,
    unknown_policy_is_refused,
    bad_selector_deletes_nothing,
    namespaces_cannot_be_deleted_as_a_collection,
    bound_pods_get_their_grace_period,
];

/// The names of what is left, one after the other.
async fn left(t: &Scope, resource: &str) -> String {
    names(&t.get(resource).await.is(200)).concat()
}

async fn collection_is_emptied(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    t.delete("configmaps").await.is(200);
    assert_eq!(left(t, "configmaps").await, "");
}

async fn deleted_objects_are_returned(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let list = t.delete("configmaps").await.is(200);
    assert_eq!(list.at("/kind"), "ConfigMapList");
    assert_eq!(list.at("/items").items().len(), 1);
    assert_eq!(list.at("/items/0/metadata/uid"), made.at("/metadata/uid"));
}

async fn label_selector_chooses(t: &Scope) {
    t.made("configmaps", &labeled(&config_map("a"), "app", "web"))
        .await;
    t.made("configmaps", &config_map("b")).await;
    let list = t.delete("configmaps?labelSelector=app%3Dweb").await.is(200);
    assert_eq!(list.at("/items").items().len(), 1);
    assert_eq!(left(t, "configmaps").await, "b");
}

async fn field_selector_chooses(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    t.delete("configmaps?fieldSelector=metadata.name%3Da")
        .await
        .is(200);
    assert_eq!(left(t, "configmaps").await, "b");
}

async fn finalizers_hold(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    t.made("configmaps", &config_map("b")).await;
    t.delete("configmaps").await.is(200);
    assert_eq!(left(t, "configmaps").await, "a");
    let held = t.get("configmaps/a").await.is(200);
    assert!(!held.at("/metadata/deletionTimestamp").is_null());
}

async fn policy_applies_to_each(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.made("deployments", &deployment("b")).await;
    t.delete_with("deployments", &doc!({ "propagationPolicy": "Foreground" }))
        .await
        .is(200);
    for path in ["deployments/a", "deployments/b"] {
        let held = t.get(path).await.is(200);
        assert_eq!(
            held.at("/metadata/finalizers"),
            &doc!(["foregroundDeletion"])
        );
    }
}

async fn other_namespaces_are_untouched(t: &Scope) {
    let other = t.neighbour().await;
    other.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("a")).await;
    t.delete("configmaps").await.is(200);
    assert_eq!(left(&other, "configmaps").await, "a");
}

async fn all_namespaces_at_once_is_not_allowed(t: &Scope) {
    t.delete("/api/v1/configmaps")
        .await
        .fails(405, "MethodNotAllowed");
}

async fn empty_collection_is_fine(t: &Scope) {
    let list = t.delete("configmaps").await.is(200);
    assert_eq!(list.at("/items"), &doc!([]));
}

async fn unknown_policy_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .delete_with("configmaps", &doc!({ "propagationPolicy": "Sideways" }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueNotSupported", "propagationPolicy");
    assert_eq!(left(t, "configmaps").await, "a");
}

async fn bad_selector_deletes_nothing(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.delete("configmaps?labelSelector=a%20b")
        .await
        .fails(400, "BadRequest");
    t.delete("configmaps?fieldSelector=data%3Da")
        .await
        .fails(400, "BadRequest");
    assert_eq!(left(t, "configmaps").await, "a");
}

async fn namespaces_cannot_be_deleted_as_a_collection(t: &Scope) {
    t.delete("namespaces").await.fails(405, "MethodNotAllowed");
}

async fn bound_pods_get_their_grace_period(t: &Scope) {
    t.made("pods", &pod("a").set("/spec/nodeName", "n")).await;
    t.made("pods", &pod("b")).await;
    t.delete("pods").await.is(200);
    assert_eq!(left(t, "pods").await, "a");
    let bound = t.get("pods/a").await.is(200);
    assert_eq!(bound.at("/metadata/deletionGracePeriodSeconds"), 30);
}
