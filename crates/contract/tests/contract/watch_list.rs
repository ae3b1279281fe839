//! Watches that begin with all that is there, and bookmarks.

use windlass_contract::objects::{config_map, labeled};
use windlass_contract::{Scope, cases, number, revision};
use windlass_core::doc;

cases![
    initial_events_end_with_a_bookmark,
    empty_collection_begins_with_the_bookmark,
    bookmark_has_only_a_revision,
    changes_follow_the_bookmark,
    selector_applies_to_initial_events,
    without_bookmarks_nothing_marks_the_end,
    initial_events_false_begins_with_now,
    initial_events_at_a_revision_are_fresh,
    initial_events_need_the_match,
    initial_events_with_another_match_are_refused,
    bookmark_comes_before_the_timeout,
    initial_events_are_sorted_by_name,
];

const STREAM: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

async fn initial_events_end_with_a_bookmark(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let mut watch = t
        .watch("configmaps", &format!("{STREAM}&allowWatchBookmarks=true"))
        .await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    let bookmark = watch.bookmark().await;
    assert_eq!(
        bookmark.at("/metadata/annotations/k8s.io~1initial-events-end"),
        "true"
    );
}

async fn empty_collection_begins_with_the_bookmark(t: &Scope) {
    let mut watch = t
        .watch("configmaps", &format!("{STREAM}&allowWatchBookmarks=true"))
        .await;
    watch.bookmark().await;
}

async fn bookmark_has_only_a_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let mut watch = t
        .watch("configmaps", &format!("{STREAM}&allowWatchBookmarks=true"))
        .await;
    watch.expect("ADDED", "a").await;
    let bookmark = watch.bookmark().await;
    let from = revision(&bookmark).to_owned();
    let expected = doc!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {
            "resourceVersion": (&from),
            "annotations": { "k8s.io/initial-events-end": "true" }
        }
    });
    assert_eq!(bookmark, expected);
    assert!(number(&bookmark) >= number(&made));
}

async fn changes_follow_the_bookmark(t: &Scope) {
    let mut watch = t
        .watch("configmaps", &format!("{STREAM}&allowWatchBookmarks=true"))
        .await;
    watch.bookmark().await;
    let made = t.made("configmaps", &config_map("a")).await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    t.delete("configmaps/a").await.is(200);
    watch.expect("DELETED", "a").await;
}

async fn selector_applies_to_initial_events(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &labeled(&config_map("b"), "app", "web"))
        .await;
    let query = format!("{STREAM}&allowWatchBookmarks=true&labelSelector=app%3Dweb");
    let mut watch = t.watch("configmaps", &query).await;
    watch.expect("ADDED", "b").await;
    watch.bookmark().await;
}

async fn without_bookmarks_nothing_marks_the_end(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let mut watch = t.watch("configmaps", STREAM).await;
    watch.expect("ADDED", "a").await;
    t.made("configmaps", &config_map("b")).await;
    watch.expect("ADDED", "b").await;
}

async fn initial_events_false_begins_with_now(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.get("configmaps").await.is(200);
    let query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = t.watch("configmaps", query).await;
    t.made("configmaps", &config_map("b")).await;
    watch.expect("ADDED", "b").await;
}

async fn initial_events_at_a_revision_are_fresh(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let from = revision(&made);
    let query = format!("{STREAM}&allowWatchBookmarks=true&resourceVersion={from}");
    let mut watch = t.watch("configmaps", &query).await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    watch.bookmark().await;
}

async fn initial_events_need_the_match(t: &Scope) {
    let answer = t.get("configmaps?watch=true&sendInitialEvents=true").await;
    answer
        .fails(422, "Invalid")
        .says(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
             sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
        .because("FieldValueForbidden", "resourceVersionMatch");
}

async fn initial_events_with_another_match_are_refused(t: &Scope) {
    let path = "configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact";
    let answer = t.get(path).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "resourceVersionMatch");
}

async fn bookmark_comes_before_the_timeout(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let from = revision(&made);
    let query = format!(
        "resourceVersion={from}&labelSelector=app%3Dweb&allowWatchBookmarks=true&timeoutSeconds=4"
    );
    let mut watch = t.watch("configmaps", &query).await;
    // It tells how far the server is in what the watch does not show.
    let hidden = t.made("configmaps", &config_map("b")).await;
    let bookmark = watch.bookmark().await;
    assert!(bookmark.at("/metadata/annotations").is_null());
    assert_eq!(bookmark.at("/kind"), "ConfigMap");
    assert!(number(&bookmark) >= number(&hidden));
}

async fn initial_events_are_sorted_by_name(t: &Scope) {
    for name in ["c", "a", "b"] {
        t.made("configmaps", &config_map(name)).await;
    }
    let mut watch = t.watch("configmaps", STREAM).await;
    for name in ["a", "b", "c"] {
        watch.expect("ADDED", name).await;
    }
}
