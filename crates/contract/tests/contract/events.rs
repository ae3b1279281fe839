//! Events: one storage under two groups.

use windlass_contract::objects::event;
use windlass_contract::{Edit, Scope, cases, names};
use windlass_core::{Doc, doc};

cases![
    core_event_is_seen_in_the_other_group,
    event_of_the_other_group_is_seen_in_core,
    event_of_the_other_group_needs_its_fields,
    event_of_the_other_group_needs_a_time,
    deletion_through_either_group_deletes,
    watch_of_the_other_group,
    fields_of_the_other_group,
    source_is_the_controller_that_reports,
];

fn other(t: &Scope, rest: &str) -> String {
    format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events{rest}",
        t.namespace()
    )
}

fn new_style(t: &Scope) -> Doc {
    doc!({
        "metadata": { "name": "a" }, "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "example.com/c", "reportingInstance": "c-1", "action": "Start",
        "reason": "Started", "type": "Normal", "note": "it started",
        "regarding": { "kind": "Pod", "name": "p", "namespace": (t.namespace()) }
    })
}

async fn core_event_is_seen_in_the_other_group(t: &Scope) {
    let made = t
        .made(
            "events",
            &event("a", t.namespace()).set("/message", "hello"),
        )
        .await;
    let seen = t.get(&other(t, "/a")).await.is(200);
    assert_eq!(seen.at("/apiVersion"), "events.k8s.io/v1");
    assert_eq!(seen.at("/metadata/uid"), made.at("/metadata/uid"));
    assert_eq!(
        seen.at("/metadata/resourceVersion"),
        made.at("/metadata/resourceVersion")
    );
    assert_eq!(seen.at("/regarding"), made.at("/involvedObject"));
    assert_eq!(seen.at("/note"), "hello");
}

async fn event_of_the_other_group_is_seen_in_core(t: &Scope) {
    t.create(&other(t, ""), &new_style(t)).await.is(201);
    let seen = t.get("events/a").await.is(200);
    assert_eq!(seen.at("/apiVersion"), "v1");
    assert_eq!(seen.at("/message"), "it started");
    assert_eq!(seen.at("/reportingComponent"), "example.com/c");
    assert_eq!(seen.at("/reportingInstance"), "c-1");
    assert_eq!(seen.at("/involvedObject/name"), "p");
    assert_eq!(seen.at("/eventTime"), "2026-01-02T03:04:05.000006Z");
}

async fn event_of_the_other_group_needs_its_fields(t: &Scope) {
    let bare = new_style(t)
        .cut("/reportingController")
        .cut("/reportingInstance")
        .cut("/action")
        .set("/type", "Odd");
    let answer = t.create(&other(t, ""), &bare).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "reportingController")
        .because("FieldValueRequired", "reportingInstance")
        .because("FieldValueRequired", "action")
        .because("FieldValueInvalid", "type");
}

async fn event_of_the_other_group_needs_a_time(t: &Scope) {
    let answer = t
        .create(&other(t, ""), &new_style(t).cut("/eventTime"))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueRequired", "eventTime");
}

async fn deletion_through_either_group_deletes(t: &Scope) {
    t.made("events", &event("a", t.namespace())).await;
    t.delete(&other(t, "/a")).await.is(200);
    t.get("events/a")
        .await
        .fails(404, "NotFound")
        .says("events \"a\" not found");
    let answer = t.get(&other(t, "/a")).await;
    answer
        .fails(404, "NotFound")
        .says("events.events.k8s.io \"a\" not found");
}

async fn watch_of_the_other_group(t: &Scope) {
    t.made("events", &event("a", t.namespace())).await;
    let mut watch = t.watch(&other(t, ""), "").await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(added.at("/apiVersion"), "events.k8s.io/v1");
    assert_eq!(added.at("/regarding/name"), "p");
}

async fn fields_of_the_other_group(t: &Scope) {
    t.made("events", &event("a", t.namespace())).await;
    let found = t
        .get(&other(t, "?fieldSelector=regarding.name%3Dp"))
        .await
        .is(200);
    assert_eq!(names(&found), ["a"]);
    let found = t
        .get(&other(t, "?fieldSelector=regarding.name%3Dq"))
        .await
        .is(200);
    assert!(names(&found).is_empty());
}

async fn source_is_the_controller_that_reports(t: &Scope) {
    t.made(&other(t, ""), &new_style(t)).await;
    let old = event("b", t.namespace()).set("/source", doc!({ "component": "old" }));
    t.made("events", &old).await;
    for (source, expected) in [("example.com/c", ["a"]), ("old", ["b"])] {
        let found = t
            .get(&format!("events?fieldSelector=source={source}"))
            .await;
        assert_eq!(names(&found.is(200)), expected, "{source}");
    }
    let refused = t.get(&other(t, "?fieldSelector=source=old")).await;
    let refused = refused.fails(400, "BadRequest");
    refused.says("field label not supported: source");
}
