//! Reading single objects and lists, and the revisions they may be asked for at.

use windlass_contract::objects::{config_map, deployment, labeled};
use windlass_contract::{Scope, cases, names, number};
use windlass_core::doc;

cases![
    missing_object_is_not_found,
    missing_object_in_a_group_is_not_found,
    list_has_the_shape_of_its_kind,
    empty_list_has_no_items_but_a_revision,
    list_of_a_missing_namespace_is_empty,
    items_are_sorted_by_name,
    items_have_no_kind_of_their_own,
    all_namespaces_are_listed_in_order,
    list_revision_covers_its_items,
    get_at_any_revision,
    get_at_a_known_revision,
    get_in_the_future_times_out,
    get_with_a_malformed_revision_is_refused,
    list_at_any_revision,
    list_not_older_than_a_revision,
    list_at_an_exact_revision_shows_the_past,
    limited_list_at_a_revision_is_exact,
    list_in_the_future_times_out,
    exact_list_in_the_future_times_out,
    malformed_revision_is_refused,
    match_without_revision_is_refused,
    exact_match_at_zero_is_refused,
    unknown_match_is_refused,
    initial_events_are_for_watches,
    malformed_limit_is_refused,
    negative_limit_is_no_limit,
    malformed_timeout_is_refused,
    unknown_parameters_are_ignored,
];

async fn missing_object_is_not_found(t: &Scope) {
    let answer = t.get("configmaps/a").await;
    assert_eq!(answer.header("content-type"), "application/json");
    answer
        .fails(404, "NotFound")
        .says("configmaps \"a\" not found")
        .is_about("", "configmaps", "a");
}

async fn missing_object_in_a_group_is_not_found(t: &Scope) {
    let answer = t.get("deployments/a").await;
    answer
        .fails(404, "NotFound")
        .says("deployments.apps \"a\" not found")
        .is_about("apps", "deployments", "a");
}

async fn list_has_the_shape_of_its_kind(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let list = t.get("deployments").await.is(200);
    assert_eq!(list.at("/kind"), "DeploymentList");
    assert_eq!(list.at("/apiVersion"), "apps/v1");
    assert_eq!(names(&list), ["a"]);
}

async fn empty_list_has_no_items_but_a_revision(t: &Scope) {
    let list = t.get("configmaps").await.is(200);
    assert_eq!(list.at("/items"), &doc!([]));
    assert!(number(&list) > 0);
}

async fn list_of_a_missing_namespace_is_empty(t: &Scope) {
    let list = t
        .in_namespace("no-such-namespace")
        .get("configmaps")
        .await
        .is(200);
    assert_eq!(list.at("/items"), &doc!([]));
}

async fn items_are_sorted_by_name(t: &Scope) {
    for name in ["b", "a", "b-1", "a.b"] {
        t.made("configmaps", &config_map(name)).await;
    }
    assert_eq!(
        names(&t.get("configmaps").await.is(200)),
        ["a", "a.b", "b", "b-1"]
    );
}

async fn items_have_no_kind_of_their_own(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let list = t.get("configmaps").await.is(200);
    assert!(list.at("/items/0/kind").is_null());
    assert!(list.at("/items/0/apiVersion").is_null());
}

async fn all_namespaces_are_listed_in_order(t: &Scope) {
    let other = t.neighbour().await;
    let marked = |name| labeled(&config_map(name), "of", t.namespace());
    other.made("configmaps", &marked("a")).await;
    t.made("configmaps", &marked("b")).await;
    let path = format!("/api/v1/configmaps?labelSelector=of%3D{}", t.namespace());
    let list = t.get(&path).await.is(200);
    // The order is that of `NAMESPACE/NAME` as bytes, in which a dash comes before the slash.
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list.at("/items/0/metadata/namespace"), other.namespace());
}

async fn list_revision_covers_its_items(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let list = t.get("configmaps").await.is(200);
    assert!(number(&list) >= number(&made));
}

async fn get_at_any_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let at = format!("configmaps/a?resourceVersion={}", number(&made));
    t.get(&at).await.is(200);
    assert_eq!(t.get("configmaps/a?resourceVersion=0").await.is(200), made);
}

async fn get_at_a_known_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let changed = t
        .merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    let at = format!("configmaps/a?resourceVersion={}", number(&changed));
    assert_eq!(t.get(&at).await.is(200), changed);
    assert!(number(&made) < number(&changed));
}

async fn get_in_the_future_times_out(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.get("configmaps/a?resourceVersion=99999999999").await;
    assert_eq!(answer.header("retry-after"), "1");
    answer
        .fails(504, "Timeout")
        .mentions("Timeout: Too large resource version: 99999999999, current: ")
        .because("ResourceVersionTooLarge", "");
}

async fn get_with_a_malformed_revision_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.get("configmaps/a?resourceVersion=x").await;
    answer
        .fails(500, "")
        .mentions("resourceVersion: Invalid value: \"x\"");
}

async fn list_at_any_revision(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let fresh = t.get("configmaps").await.is(200);
    assert_eq!(names(&fresh), ["a"]);
    let any = t.get("configmaps?resourceVersion=0&limit=1").await.is(200);
    assert!(number(&any) > 0);
    assert!(any.at("/metadata/continue").is_null());
}

async fn list_not_older_than_a_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let at = number(&made);
    for query in ["", "&resourceVersionMatch=NotOlderThan"] {
        let list = t
            .get(&format!("configmaps?resourceVersion={at}{query}"))
            .await
            .is(200);
        assert_eq!(names(&list), ["a"]);
        assert!(number(&list) >= at);
    }
}

async fn list_at_an_exact_revision_shows_the_past(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    t.merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    let at = number(&first);
    let path = format!("configmaps?resourceVersion={at}&resourceVersionMatch=Exact");
    let list = t.get(&path).await.is(200);
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list.at("/items/0/data/key"), "value");
    assert_eq!(number(&list), at);
}

async fn limited_list_at_a_revision_is_exact(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    let at = number(&first);
    let list = t
        .get(&format!("configmaps?resourceVersion={at}&limit=5"))
        .await
        .is(200);
    assert_eq!(names(&list), ["a"]);
    assert_eq!(number(&list), at);
}

async fn list_in_the_future_times_out(t: &Scope) {
    let answer = t.get("configmaps?resourceVersion=99999999999").await;
    assert_eq!(answer.header("retry-after"), "1");
    let refusal = answer.fails(504, "Timeout");
    assert_eq!(refusal.status().at("/details/retryAfterSeconds"), 1);
    refusal.because("ResourceVersionTooLarge", "");
}

async fn exact_list_in_the_future_times_out(t: &Scope) {
    let path = "configmaps?resourceVersion=99999999999&resourceVersionMatch=Exact";
    t.get(path)
        .await
        .fails(504, "Timeout")
        .because("ResourceVersionTooLarge", "");
}

async fn malformed_revision_is_refused(t: &Scope) {
    let answer = t.get("configmaps?resourceVersion=x").await;
    answer
        .fails(400, "BadRequest")
        .mentions("invalid resource version");
}

async fn match_without_revision_is_refused(t: &Scope) {
    let answer = t.get("configmaps?resourceVersionMatch=Exact").await;
    answer
        .fails(422, "Invalid")
        .says(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: \
             resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
        .is_about("meta.k8s.io", "ListOptions", "")
        .because("FieldValueForbidden", "resourceVersionMatch");
}

async fn exact_match_at_zero_is_refused(t: &Scope) {
    let answer = t
        .get("configmaps?resourceVersionMatch=Exact&resourceVersion=0")
        .await;
    answer
        .fails(422, "Invalid")
        .mentions("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
}

async fn unknown_match_is_refused(t: &Scope) {
    let answer = t
        .get("configmaps?resourceVersionMatch=Near&resourceVersion=1")
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueNotSupported", "resourceVersionMatch")
        .says(
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \
         \"Near\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        );
}

async fn initial_events_are_for_watches(t: &Scope) {
    let answer = t.get("configmaps?sendInitialEvents=true").await;
    answer
        .fails(422, "Invalid")
        .mentions("sendInitialEvents is forbidden for list")
        .because("FieldValueForbidden", "sendInitialEvents");
}

async fn malformed_limit_is_refused(t: &Scope) {
    t.get("configmaps?limit=x").await.fails(400, "BadRequest");
}

async fn negative_limit_is_no_limit(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.made("configmaps", &config_map("b")).await;
    assert_eq!(
        names(&t.get("configmaps?limit=-1").await.is(200)),
        ["a", "b"]
    );
}

async fn malformed_timeout_is_refused(t: &Scope) {
    t.get("configmaps?timeoutSeconds=x")
        .await
        .fails(400, "BadRequest");
    t.get("configmaps?timeout=x").await.fails(400, "BadRequest");
}

async fn unknown_parameters_are_ignored(t: &Scope) {
    t.get("configmaps?colour=green&includeUninitialized=true")
        .await
        .is(200);
}
