//! Label and field selectors.

use windlass_contract::objects::{self, config_map, labeled, node, pod, secret, service};
use windlass_contract::{Edit, Scope, cases, names};
use windlass_core::doc;

cases![
    label_equality,
    label_inequality_includes_absence,
    label_sets,
    label_presence,
    label_order,
    label_requirements_must_all_hold,
    empty_label_value_is_a_value,
    label_selector_that_is_no_selector_is_refused,
    label_value_that_cannot_be_is_refused,
    field_metadata_name,
    field_inequality,
    field_requirements_must_all_hold,
    field_metadata_namespace_narrows_a_list_of_all,
    unknown_field_of_a_config_map_is_refused,
    unknown_field_of_a_pod_is_refused,
    field_selector_that_is_no_selector_is_refused,
    pod_fields,
    node_fields,
    secret_fields,
    service_fields,
    event_fields,
    namespace_fields,
    label_and_field_selectors_must_both_hold,
];

/// What characters of a selector become in a query.
fn escaped(selector: &str) -> String {
    let escape = |c: char| match c {
        '=' => "%3D".to_owned(),
        '!' => "%21".to_owned(),
        ',' => "%2C".to_owned(),
        ' ' => "%20".to_owned(),
        '>' => "%3E".to_owned(),
        '<' => "%3C".to_owned(),
        '\\' => "%5C".to_owned(),
        other => other.to_string(),
    };
    selector.chars().map(escape).collect()
}

async fn by_label(t: &Scope, selector: &str) -> String {
    let path = format!("configmaps?labelSelector={}", escaped(selector));
    names(&t.get(&path).await.is(200)).concat()
}

async fn by_field(t: &Scope, resource: &str, selector: &str) -> String {
    let path = format!("{resource}?fieldSelector={}", escaped(selector));
    names(&t.get(&path).await.is(200)).concat()
}

/// `a` is `app=web,size=1`, `b` is `app=db,size=2`, `c` has no labels.
async fn make_three(t: &Scope) {
    let labeled_twice =
        |name, app, size| labeled(&labeled(&config_map(name), "app", app), "size", size);
    t.made("configmaps", &labeled_twice("a", "web", "1")).await;
    t.made("configmaps", &labeled_twice("b", "db", "2")).await;
    t.made("configmaps", &config_map("c")).await;
}

async fn label_equality(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "app=web").await, "a");
    assert_eq!(by_label(t, "app==web").await, "a");
    assert_eq!(by_label(t, "app=other").await, "");
}

async fn label_inequality_includes_absence(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "app!=web").await, "bc");
}

async fn label_sets(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "app in (web, other)").await, "a");
    assert_eq!(by_label(t, "app in (web,db)").await, "ab");
    assert_eq!(by_label(t, "app notin (web)").await, "bc");
}

async fn label_presence(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "app").await, "ab");
    assert_eq!(by_label(t, "!app").await, "c");
}

async fn label_order(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "size>1").await, "b");
    assert_eq!(by_label(t, "size<2").await, "a");
}

async fn label_requirements_must_all_hold(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_label(t, "app,size!=1").await, "b");
    assert_eq!(by_label(t, "app=web,size=2").await, "");
}

async fn empty_label_value_is_a_value(t: &Scope) {
    make_three(t).await;
    t.made("configmaps", &labeled(&config_map("d"), "app", ""))
        .await;
    assert_eq!(by_label(t, "app=").await, "d");
    assert_eq!(by_label(t, "app").await, "abd");
}

async fn label_selector_that_is_no_selector_is_refused(t: &Scope) {
    for selector in ["a b", "a=b=c", "a in", "a in (b", "=a", "a,,b", "!"] {
        let path = format!("configmaps?labelSelector={}", escaped(selector));
        t.get(&path).await.fails(400, "BadRequest");
    }
    let answer = t.get("configmaps?labelSelector=a%20b").await;
    answer
        .fails(400, "BadRequest")
        .says("unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
}

async fn label_value_that_cannot_be_is_refused(t: &Scope) {
    let answer = t.get("configmaps?labelSelector=a%3D-b-").await;
    answer
        .fails(400, "BadRequest")
        .mentions("unable to parse requirement: values[0][a]: Invalid value: \"-b-\"");
    t.get("configmaps?labelSelector=-a-%3Db")
        .await
        .fails(400, "BadRequest");
}

async fn field_metadata_name(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_field(t, "configmaps", "metadata.name=b").await, "b");
    assert_eq!(by_field(t, "configmaps", "metadata.name==b").await, "b");
    assert_eq!(by_field(t, "configmaps", "metadata.name=z").await, "");
}

async fn field_inequality(t: &Scope) {
    make_three(t).await;
    assert_eq!(by_field(t, "configmaps", "metadata.name!=b").await, "ac");
}

async fn field_requirements_must_all_hold(t: &Scope) {
    make_three(t).await;
    let both = "metadata.name!=a,metadata.name!=b";
    assert_eq!(by_field(t, "configmaps", both).await, "c");
}

async fn field_metadata_namespace_narrows_a_list_of_all(t: &Scope) {
    make_three(t).await;
    let selector = format!("metadata.namespace={}", t.namespace());
    assert_eq!(by_field(t, "/api/v1/configmaps", &selector).await, "abc");
}

async fn unknown_field_of_a_config_map_is_refused(t: &Scope) {
    let answer = t.get("configmaps?fieldSelector=data.key%3D1").await;
    answer.fails(400, "BadRequest").says(
        "\"data.key\" is not a known field selector: only \"metadata.name\", \
         \"metadata.namespace\"",
    );
}

async fn unknown_field_of_a_pod_is_refused(t: &Scope) {
    let answer = t.get("pods?fieldSelector=spec.color%3D1").await;
    answer
        .fails(400, "BadRequest")
        .says("field label not supported: spec.color");
}

async fn field_selector_that_is_no_selector_is_refused(t: &Scope) {
    let answer = t.get("configmaps?fieldSelector=name").await;
    answer
        .fails(400, "BadRequest")
        .says("invalid selector: 'name'; can't understand 'name'");
}

async fn pod_fields(t: &Scope) {
    t.made("pods", &pod("a").set("/spec/nodeName", "n")).await;
    t.made("pods", &pod("b").set("/spec/restartPolicy", "Never"))
        .await;
    t.merge("pods/a/status", &doc!({ "status": { "phase": "Running" } }))
        .await
        .is(200);
    for (selector, expected) in [
        ("spec.nodeName=n", "a"),
        ("spec.nodeName=", "b"),
        ("spec.nodeName!=n", "b"),
        ("status.phase=Running", "a"),
        ("status.phase!=Succeeded,status.phase!=Failed", "ab"),
        ("spec.restartPolicy=Never", "b"),
        ("spec.schedulerName=default-scheduler", "ab"),
    ] {
        assert_eq!(by_field(t, "pods", selector).await, expected, "{selector}");
    }
}

async fn node_fields(t: &Scope) {
    let name = t.unique("n");
    t.made("nodes", &node(&name).set("/spec/unschedulable", true))
        .await;
    let selector = format!("spec.unschedulable=true,metadata.name={name}");
    assert_eq!(by_field(t, "nodes", &selector).await, name);
    let selector = format!("spec.unschedulable=false,metadata.name={name}");
    assert_eq!(by_field(t, "nodes", &selector).await, "");
}

async fn secret_fields(t: &Scope) {
    t.made("secrets", &secret("a")).await;
    t.made("secrets", &secret("b").set("/type", "example.com/mine"))
        .await;
    assert_eq!(by_field(t, "secrets", "type=Opaque").await, "a");
    assert_eq!(by_field(t, "secrets", "type=example.com/mine").await, "b");
}

async fn service_fields(t: &Scope) {
    t.made("services", &service("a")).await;
    t.made("services", &service("b").set("/spec/clusterIP", "None"))
        .await;
    assert_eq!(by_field(t, "services", "spec.clusterIP=None").await, "b");
    assert_eq!(by_field(t, "services", "spec.type=ClusterIP").await, "ab");
}

async fn event_fields(t: &Scope) {
    let event = |name: &str, about: &str, reason: &str| {
        let object = objects::event(name, t.namespace());
        let object = object.set("/involvedObject/name", about);
        object.set("/reason", reason)
    };
    t.made("events", &event("a", "p", "Started")).await;
    t.made("events", &event("b", "q", "Started")).await;
    t.made("events", &event("c", "p", "Killed")).await;
    for (selector, expected) in [
        ("involvedObject.name=p", "ac"),
        ("involvedObject.name=p,reason=Started", "a"),
        ("involvedObject.kind=Pod,type=Normal", "abc"),
        ("reason!=Started", "c"),
    ] {
        assert_eq!(
            by_field(t, "events", selector).await,
            expected,
            "{selector}"
        );
    }
}

async fn namespace_fields(t: &Scope) {
    let selector = format!("status.phase=Active,metadata.name={}", t.namespace());
    assert_eq!(by_field(t, "namespaces", &selector).await, t.namespace());
}

async fn label_and_field_selectors_must_both_hold(t: &Scope) {
    make_three(t).await;
    let path = "configmaps?labelSelector=app&fieldSelector=metadata.name%21%3Da";
    assert_eq!(names(&t.get(path).await.is(200)), ["b"]);
}
