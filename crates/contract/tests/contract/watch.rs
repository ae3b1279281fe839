//! Watches.

use windlass_contract::objects::{config_map, labeled, pod};
use windlass_contract::{Scope, cases, revision};
use windlass_core::{Doc, doc};

cases![
    changes_arrive_in_order,
    watch_from_a_revision_replays_what_came_after,
    watch_from_a_list_misses_nothing,
    watch_from_anywhere_begins_with_the_present,
    watch_without_a_revision_begins_with_the_present,
    watch_of_all_namespaces,
    watch_of_one_namespace_is_silent_about_others,
    watch_of_one_name,
    watch_on_an_item_is_a_get,
    watch_by_the_old_path,
    old_path_of_one_name,
    object_that_begins_to_match_is_added,
    object_that_ceases_to_match_is_deleted,
    object_that_goes_on_matching_is_modified,
    object_that_never_matched_is_not_deleted,
    field_selector_crossing,
    status_changes_arrive,
    event_carries_kind_and_version,
    timeout_ends_the_watch,
    malformed_timeout_is_refused,
    malformed_revision_is_refused,
    two_watchers_see_the_same,
    answer_is_chunked_json,
    recreation_is_two_events,
    future_revision_shows_only_what_is_later,
    watch_parameter_may_be_one,
    watch_false_is_a_list,
    unsupported_field_is_refused,
    bad_label_selector_is_refused,
    continue_token_is_refused,
    match_without_initial_events_is_refused,
];

async fn from_now(t: &Scope, resource: &str) -> String {
    let list = t.get(resource).await.is(200);
    format!("resourceVersion={}", revision(&list))
}

async fn changes_arrive_in_order(t: &Scope) {
    let mut watch = t
        .watch("configmaps", &from_now(t, "configmaps").await)
        .await;
    let made = t.made("configmaps", &config_map("a")).await;
    let changed = t
        .merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    t.delete("configmaps/a").await.is(200);
    assert_eq!(watch.expect("ADDED", "a").await, made);
    assert_eq!(watch.expect("MODIFIED", "a").await, changed);
    assert_eq!(
        watch.expect("DELETED", "a").await.at("/data"),
        changed.at("/data")
    );
}

async fn watch_from_a_revision_replays_what_came_after(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    let second = t.made("configmaps", &config_map("b")).await;
    t.delete("configmaps/a").await.is(200);
    let from = format!("resourceVersion={}", revision(&first));
    let mut watch = t.watch("configmaps", &from).await;
    assert_eq!(watch.expect("ADDED", "b").await, second);
    watch.expect("DELETED", "a").await;
}

async fn watch_from_a_list_misses_nothing(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let from = from_now(t, "configmaps").await;
    t.made("configmaps", &config_map("b")).await;
    let mut watch = t.watch("configmaps", &from).await;
    t.made("configmaps", &config_map("c")).await;
    watch.expect("ADDED", "b").await;
    watch.expect("ADDED", "c").await;
}

async fn watch_from_anywhere_begins_with_the_present(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    t.get("configmaps").await.is(200);
    let mut watch = t.watch("configmaps", "resourceVersion=0").await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    t.made("configmaps", &config_map("b")).await;
    watch.expect("ADDED", "b").await;
}

async fn watch_without_a_revision_begins_with_the_present(t: &Scope) {
    t.made("configmaps", &config_map("b")).await;
    t.made("configmaps", &config_map("a")).await;
    let mut watch = t.watch("configmaps", "").await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    t.delete("configmaps/a").await.is(200);
    watch.expect("DELETED", "a").await;
}

async fn watch_of_all_namespaces(t: &Scope) {
    let from = from_now(t, "/api/v1/configmaps").await;
    let query = format!("{from}&labelSelector=of%3D{}", t.namespace());
    let mut watch = t.watch("/api/v1/configmaps", &query).await;
    t.made(
        "configmaps",
        &labeled(&config_map("a"), "of", t.namespace()),
    )
    .await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(added.at("/metadata/namespace"), t.namespace());
}

async fn watch_of_one_namespace_is_silent_about_others(t: &Scope) {
    let other = t.neighbour().await;
    let mut watch = t
        .watch("configmaps", &from_now(t, "configmaps").await)
        .await;
    other.made("configmaps", &config_map("elsewhere")).await;
    t.made("configmaps", &config_map("here")).await;
    watch.expect("ADDED", "here").await;
}

async fn watch_of_one_name(t: &Scope) {
    let from = from_now(t, "configmaps").await;
    let mut watch = t
        .watch(
            "configmaps",
            &format!("{from}&fieldSelector=metadata.name%3Db"),
        )
        .await;
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    watch.expect("ADDED", "b").await;
}

async fn watch_on_an_item_is_a_get(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(t.get("configmaps/a?watch=true").await.is(200), made);
}

async fn watch_by_the_old_path(t: &Scope) {
    let from = from_now(t, "configmaps").await;
    t.made("configmaps", &config_map("a")).await;
    let path = format!("/api/v1/watch/namespaces/{}/configmaps", t.namespace());
    let mut watch = t.watch(&path, &from).await;
    watch.expect("ADDED", "a").await;
}

async fn old_path_of_one_name(t: &Scope) {
    let from = from_now(t, "configmaps").await;
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    let path = format!("/api/v1/watch/namespaces/{}/configmaps/b", t.namespace());
    let mut watch = t.watch(&path, &from).await;
    watch.expect("ADDED", "b").await;
}

/// A watch of `app=web` and a config map without that label.
async fn selecting(t: &Scope) -> windlass_contract::Watch {
    let made = t.made("configmaps", &config_map("a")).await;
    let query = format!(
        "resourceVersion={}&labelSelector=app%3Dweb",
        revision(&made)
    );
    t.watch("configmaps", &query).await
}

fn app(value: &Doc) -> Doc {
    doc!({ "metadata": { "labels": { "app": value } } })
}

async fn object_that_begins_to_match_is_added(t: &Scope) {
    let mut watch = selecting(t).await;
    let changed = t.merge("configmaps/a", &app(&doc!("web"))).await.is(200);
    assert_eq!(watch.expect("ADDED", "a").await, changed);
}

async fn object_that_ceases_to_match_is_deleted(t: &Scope) {
    let mut watch = selecting(t).await;
    t.merge("configmaps/a", &app(&doc!("web"))).await.is(200);
    let changed = t.merge("configmaps/a", &app(&Doc::NULL)).await.is(200);
    watch.expect("ADDED", "a").await;
    let deleted = watch.expect("DELETED", "a").await;
    assert_eq!(deleted.at("/metadata/labels/app"), "web");
    assert_eq!(revision(&deleted), revision(&changed));
}

async fn object_that_goes_on_matching_is_modified(t: &Scope) {
    let mut watch = selecting(t).await;
    t.merge("configmaps/a", &app(&doc!("web"))).await.is(200);
    t.merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    watch.expect("ADDED", "a").await;
    assert_eq!(watch.expect("MODIFIED", "a").await.at("/data/key"), "2");
}

async fn object_that_never_matched_is_not_deleted(t: &Scope) {
    let mut watch = selecting(t).await;
    t.delete("configmaps/a").await.is(200);
    t.made("configmaps", &labeled(&config_map("b"), "app", "web"))
        .await;
    watch.expect("ADDED", "b").await;
}

async fn field_selector_crossing(t: &Scope) {
    let from = from_now(t, "pods").await;
    let query = format!("{from}&fieldSelector=spec.nodeName%3Dn");
    let mut watch = t.watch("pods", &query).await;
    t.made("pods", &pod("a")).await;
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } });
    t.create("pods/a/binding", &binding).await.is(201);
    assert_eq!(watch.expect("ADDED", "a").await.at("/spec/nodeName"), "n");
}

async fn status_changes_arrive(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let mut watch = t
        .watch("pods", &format!("resourceVersion={}", revision(&made)))
        .await;
    t.merge("pods/a/status", &doc!({ "status": { "phase": "Running" } }))
        .await
        .is(200);
    assert_eq!(
        watch.expect("MODIFIED", "a").await.at("/status/phase"),
        "Running"
    );
}

async fn event_carries_kind_and_version(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let mut watch = t.watch("configmaps", "").await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(
        (added.str_at("/kind"), added.str_at("/apiVersion")),
        ("ConfigMap", "v1")
    );
}

async fn timeout_ends_the_watch(t: &Scope) {
    let from = from_now(t, "configmaps").await;
    let mut watch = t
        .watch("configmaps", &format!("{from}&timeoutSeconds=1"))
        .await;
    watch.end().await;
}

async fn malformed_timeout_is_refused(t: &Scope) {
    t.get("configmaps?watch=true&timeoutSeconds=x")
        .await
        .fails(400, "BadRequest");
}

async fn malformed_revision_is_refused(t: &Scope) {
    let answer = t.get("configmaps?watch=true&resourceVersion=x").await;
    answer
        .fails(500, "")
        .mentions("resourceVersion: Invalid value: \"x\"");
}

async fn two_watchers_see_the_same(t: &Scope) {
    let from = from_now(t, "configmaps").await;
    let mut first = t.watch("configmaps", &from).await;
    let mut second = t.watch("configmaps", &from).await;
    for name in ["a", "b", "c"] {
        t.made("configmaps", &config_map(name)).await;
    }
    for _ in 0..3 {
        assert_eq!(first.next().await, second.next().await);
    }
}

async fn answer_is_chunked_json(t: &Scope) {
    let answer = t.get("configmaps?watch=true&timeoutSeconds=1").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("content-length"), "");
}

async fn recreation_is_two_events(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    let from = format!("resourceVersion={}", revision(&first));
    t.delete("configmaps/a").await.is(200);
    let second = t.made("configmaps", &config_map("a")).await;
    let mut watch = t.watch("configmaps", &from).await;
    let deleted = watch.expect("DELETED", "a").await;
    assert_eq!(deleted.at("/metadata/uid"), first.at("/metadata/uid"));
    assert_eq!(watch.expect("ADDED", "a").await, second);
}

async fn future_revision_shows_only_what_is_later(t: &Scope) {
    let query = "resourceVersion=99999999999&timeoutSeconds=1";
    let mut watch = t.watch("configmaps", query).await;
    t.made("configmaps", &config_map("a")).await;
    watch.end().await;
}

async fn watch_parameter_may_be_one(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.get("configmaps?watch=1&timeoutSeconds=1").await;
    assert!(
        answer.text().starts_with("{\"type\":\"ADDED\""),
        "{}",
        answer.text()
    );
}

async fn watch_false_is_a_list(t: &Scope) {
    for value in ["false", "0"] {
        let list = t.get(&format!("configmaps?watch={value}")).await.is(200);
        assert_eq!(list.at("/kind"), "ConfigMapList");
    }
}

async fn unsupported_field_is_refused(t: &Scope) {
    let answer = t.get("pods?watch=true&fieldSelector=spec.color%3D1").await;
    answer
        .fails(400, "BadRequest")
        .says("field label not supported: spec.color");
}

async fn bad_label_selector_is_refused(t: &Scope) {
    t.get("pods?watch=true&labelSelector=a%20b")
        .await
        .fails(400, "BadRequest");
}

async fn continue_token_is_refused(t: &Scope) {
    let answer = t.get("configmaps?watch=true&continue=x").await;
    answer
        .fails(422, "Invalid")
        .is_about("meta.k8s.io", "ListOptions", "");
}

async fn match_without_initial_events_is_refused(t: &Scope) {
    let path = "configmaps?watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan";
    t.get(path)
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "resourceVersionMatch")
        .says(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
             resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        );
}
