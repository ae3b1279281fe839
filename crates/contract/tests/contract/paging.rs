//! Lists that are read in pages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use windlass_contract::objects::{config_map, labeled};
use windlass_contract::{Scope, cases, names};
use windlass_core::Doc;

cases![
    pages_follow_each_other,
    page_tells_how_many_remain,
    page_with_a_selector_does_not_tell_how_many_remain,
    selector_is_applied_before_the_limit,
    last_page_has_no_token,
    pages_show_one_moment,
    limit_may_change_between_pages,
    limit_above_the_count_gives_all,
    malformed_token_is_refused,
    token_of_another_version_is_refused,
    token_with_a_path_trick_is_refused,
    token_and_revision_exclude_each_other,
    token_and_match_exclude_each_other,
    pages_go_across_namespaces,
];

/// A token as the server writes them.
fn token(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

async fn make_five(t: &Scope) {
    for name in ["a", "b", "c", "d", "e"] {
        t.made("configmaps", &config_map(name)).await;
    }
}

async fn next(t: &Scope, page: &Doc, limit: u32) -> Doc {
    let token = page.str_at("/metadata/continue");
    t.get(&format!("configmaps?limit={limit}&continue={token}"))
        .await
        .is(200)
}

async fn pages_follow_each_other(t: &Scope) {
    make_five(t).await;
    let first = t.get("configmaps?limit=2").await.is(200);
    let second = next(t, &first, 2).await;
    let third = next(t, &second, 2).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(names(&third), ["e"]);
}

async fn page_tells_how_many_remain(t: &Scope) {
    make_five(t).await;
    let first = t.get("configmaps?limit=2").await.is(200);
    assert_eq!(first.at("/metadata/remainingItemCount"), 3);
    assert_eq!(
        next(t, &first, 2).await.at("/metadata/remainingItemCount"),
        1
    );
}

async fn page_with_a_selector_does_not_tell_how_many_remain(t: &Scope) {
    make_five(t).await;
    let page = t.get("configmaps?limit=2&labelSelector=%21x").await.is(200);
    assert_eq!(names(&page), ["a", "b"]);
    assert!(!page.at("/metadata/continue").is_null());
    assert!(page.at("/metadata/remainingItemCount").is_null());
}

async fn selector_is_applied_before_the_limit(t: &Scope) {
    make_five(t).await;
    t.made("configmaps", &labeled(&config_map("f"), "app", "web"))
        .await;
    t.made("configmaps", &labeled(&config_map("g"), "app", "web"))
        .await;
    let page = t
        .get("configmaps?limit=1&labelSelector=app%3Dweb")
        .await
        .is(200);
    assert_eq!(names(&page), ["f"]);
    let token = page.str_at("/metadata/continue");
    let path = format!("configmaps?limit=1&labelSelector=app%3Dweb&continue={token}");
    assert_eq!(names(&t.get(&path).await.is(200)), ["g"]);
}

async fn last_page_has_no_token(t: &Scope) {
    make_five(t).await;
    let first = t.get("configmaps?limit=4").await.is(200);
    let last = next(t, &first, 4).await;
    assert!(last.at("/metadata/continue").is_null());
    assert!(last.at("/metadata/remainingItemCount").is_null());
}

async fn pages_show_one_moment(t: &Scope) {
    make_five(t).await;
    let first = t.get("configmaps?limit=2").await.is(200);
    t.delete("configmaps/d").await.is(200);
    t.made("configmaps", &config_map("c-1")).await;
    let second = next(t, &first, 10).await;
    assert_eq!(names(&second), ["c", "d", "e"]);
    assert_eq!(
        second.at("/metadata/resourceVersion"),
        first.at("/metadata/resourceVersion")
    );
}

async fn limit_may_change_between_pages(t: &Scope) {
    make_five(t).await;
    let first = t.get("configmaps?limit=1").await.is(200);
    assert_eq!(names(&next(t, &first, 3).await), ["b", "c", "d"]);
    let token = first.str_at("/metadata/continue");
    let rest = t.get(&format!("configmaps?continue={token}")).await.is(200);
    assert_eq!(names(&rest), ["b", "c", "d", "e"]);
}

async fn limit_above_the_count_gives_all(t: &Scope) {
    make_five(t).await;
    let list = t.get("configmaps?limit=5").await.is(200);
    assert_eq!(names(&list).len(), 5);
    assert!(list.at("/metadata/continue").is_null());
}

async fn malformed_token_is_refused(t: &Scope) {
    for token in ["x", "%21%21", "AAAA", "e30"] {
        let answer = t.get(&format!("configmaps?limit=1&continue={token}")).await;
        answer
            .fails(400, "BadRequest")
            .mentions("continue key is not valid");
    }
}

async fn token_of_another_version_is_refused(t: &Scope) {
    let token = token(r#"{"v":"meta.k8s.io/v9","rv":1,"start":"a"}"#);
    let answer = t.get(&format!("configmaps?continue={token}")).await;
    answer
        .fails(400, "BadRequest")
        .mentions("continue key is not valid");
}

async fn token_with_a_path_trick_is_refused(t: &Scope) {
    for start in ["../../secrets/a", "a/../../b", "./a"] {
        let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{start}"}}"#);
        let answer = t
            .get(&format!("configmaps?continue={}", token(&json)))
            .await;
        answer
            .fails(400, "BadRequest")
            .mentions("continue key is not valid");
    }
}

async fn token_and_revision_exclude_each_other(t: &Scope) {
    make_five(t).await;
    let page = t.get("configmaps?limit=1").await.is(200);
    let token = page.str_at("/metadata/continue");
    let answer = t
        .get(&format!("configmaps?continue={token}&resourceVersion=5"))
        .await;
    answer
        .fails(400, "BadRequest")
        .says("specifying resource version is not allowed when using continue");
    t.get(&format!("configmaps?continue={token}&resourceVersion=0"))
        .await
        .is(200);
}

async fn token_and_match_exclude_each_other(t: &Scope) {
    let path = "configmaps?continue=x&resourceVersion=5&resourceVersionMatch=Exact";
    t.get(path)
        .await
        .fails(422, "Invalid")
        .mentions("resourceVersionMatch is forbidden when continue is provided")
        .because("FieldValueForbidden", "resourceVersionMatch");
}

async fn pages_go_across_namespaces(t: &Scope) {
    let other = t.neighbour().await;
    let marked = |name| labeled(&config_map(name), "of", t.namespace());
    t.made("configmaps", &marked("b")).await;
    other.made("configmaps", &marked("a")).await;
    let path = format!(
        "/api/v1/configmaps?limit=1&labelSelector=of%3D{}",
        t.namespace()
    );
    let first = t.get(&path).await.is(200);
    let token = first.str_at("/metadata/continue");
    let second = t.get(&format!("{path}&continue={token}")).await.is(200);
    // The order is that of `NAMESPACE/NAME` as bytes, in which a dash comes before the slash.
    assert_eq!((names(&first), names(&second)), (vec!["a"], vec!["b"]));
}
