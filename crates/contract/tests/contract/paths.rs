//! Paths that lead nowhere, and methods that a path does not have.

use http::Method;
use windlass_contract::objects::config_map;
use windlass_contract::{Scope, cases};
use windlass_core::doc;

cases![
    unknown_resource_is_not_found,
    unknown_version_is_not_found,
    unknown_group_is_a_plain_page,
    unknown_page_is_a_plain_page,
    unknown_subresource_is_not_found,
    cluster_scoped_kind_in_a_namespace_is_not_found,
    namespaced_item_without_a_namespace_is_not_found,
    too_long_a_path_is_not_found,
    dots_in_a_path_do_not_climb,
    encoded_slash_is_no_separator,
    encoded_dots_are_refused_as_a_name,
    double_slash_at_the_front_is_not_found,
    upper_case_is_another_path,
    trailing_slash_is_ignored,
    name_with_a_space_is_looked_up,
    head_is_not_allowed,
    unknown_method_is_not_allowed,
    method_not_allowed_has_a_status,
    version_is_read_only,
    health_pages,
    version_page,
    root_lists_paths,
];

const NO_SUCH_RESOURCE: &str = "the server could not find the requested resource";

async fn unknown_resource_is_not_found(t: &Scope) {
    for path in [
        "/api/v1/foos",
        "/apis/apps/v1/foos",
        "/api/v1/namespaces/default/foos",
    ] {
        t.get(path)
            .await
            .fails(404, "NotFound")
            .says(NO_SUCH_RESOURCE);
    }
}

async fn unknown_version_is_not_found(t: &Scope) {
    t.get("/api/v2/pods")
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
    t.get("/apis/apps/v9/deployments")
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
}

async fn unknown_group_is_a_plain_page(t: &Scope) {
    let answer = t.get("/apis/no.such.group").await;
    assert_eq!(
        (answer.code(), answer.text()),
        (404, "404 page not found\n")
    );
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

async fn unknown_page_is_a_plain_page(t: &Scope) {
    for path in ["/foo", "/foo/bar", "/apis/no.such.group/v1/foos"] {
        let answer = t.get(path).await;
        assert_eq!(
            (answer.code(), answer.text()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
}

async fn unknown_subresource_is_not_found(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.get("configmaps/a/foo")
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
    t.get("nodes/a/foo")
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
}

async fn cluster_scoped_kind_in_a_namespace_is_not_found(t: &Scope) {
    let path = format!("/api/v1/namespaces/{}/nodes", t.namespace());
    t.get(&path)
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
}

async fn namespaced_item_without_a_namespace_is_not_found(t: &Scope) {
    t.get("/api/v1/pods/a")
        .await
        .fails(404, "NotFound")
        .says(NO_SUCH_RESOURCE);
}

async fn too_long_a_path_is_not_found(t: &Scope) {
    t.get("pods/a/b/c/d").await.fails(404, "NotFound");
}

async fn dots_in_a_path_do_not_climb(t: &Scope) {
    t.made("configmaps", &config_map("b")).await;
    for path in [
        "configmaps/a/../b",
        "configmaps/../configmaps/b",
        "pods/../configmaps/b",
    ] {
        let answer = t.get(path).await;
        assert_ne!(answer.code(), 200, "{path}");
        assert!(!answer.text().contains("ConfigMap"), "{path}");
    }
}

async fn encoded_slash_is_no_separator(t: &Scope) {
    t.made("configmaps", &config_map("b")).await;
    let answer = t.get("configmaps/..%2Fconfigmaps%2Fb").await;
    assert_ne!(answer.code(), 200);
}

async fn encoded_dots_are_refused_as_a_name(t: &Scope) {
    let answer = t.get("configmaps/%2e%2e").await;
    answer
        .fails(400, "BadRequest")
        .says("Name parameter invalid: \"..\": may not be '..'");
}

async fn double_slash_at_the_front_is_not_found(t: &Scope) {
    let answer = t.get("//api").await;
    assert_eq!(
        (answer.code(), answer.text()),
        (404, "404 page not found\n")
    );
}

async fn upper_case_is_another_path(t: &Scope) {
    assert_eq!(t.get("/API/v1").await.code(), 404);
    assert_eq!(t.get("/api/v1/Pods").await.code(), 404);
}

async fn trailing_slash_is_ignored(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let list = t.get("configmaps/").await.is(200);
    assert_eq!(list.at("/items/0/metadata/name"), "a");
}

async fn name_with_a_space_is_looked_up(t: &Scope) {
    t.get("pods/a%20b")
        .await
        .fails(404, "NotFound")
        .says("pods \"a b\" not found");
}

async fn head_is_not_allowed(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.send(t.request(Method::HEAD, "configmaps/a")).await;
    assert_eq!(answer.code(), 405);
}

async fn unknown_method_is_not_allowed(t: &Scope) {
    for method in [Method::OPTIONS, Method::TRACE] {
        let answer = t.send(t.request(method, "configmaps")).await;
        answer.fails(405, "MethodNotAllowed");
    }
}

async fn method_not_allowed_has_a_status(t: &Scope) {
    let refusal = t
        .update("configmaps", &config_map("a"))
        .await
        .fails(405, "MethodNotAllowed");
    let refusal = refusal.says("the server does not allow this method on the requested resource");
    assert_eq!(refusal.status().at("/details"), &doc!({}));
}

async fn version_is_read_only(t: &Scope) {
    t.create("/apis/apps/v1", &doc!({}))
        .await
        .fails(405, "MethodNotAllowed");
    t.create("/version", &doc!({}))
        .await
        .fails(405, "MethodNotAllowed");
}

async fn health_pages(t: &Scope) {
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/healthz/ping",
        "/readyz/ping",
    ] {
        let answer = t.get(path).await;
        assert_eq!((answer.code(), answer.text()), (200, "ok"), "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    let verbose = t.get("/readyz?verbose").await;
    assert!(
        verbose.text().contains("[+]ping ok\n"),
        "{}",
        verbose.text()
    );
    assert!(
        verbose.text().ends_with("readyz check passed\n"),
        "{}",
        verbose.text()
    );
}

async fn version_page(t: &Scope) {
    let version = t.get("/version").await.is(200);
    assert_eq!(
        (version.str_at("/major"), version.str_at("/minor")),
        ("1", "36")
    );
    assert!(version.str_at("/gitVersion").starts_with("v1.36."));
    for field in [
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ] {
        assert!(version.get(field).is_some(), "{field}");
    }
}

async fn root_lists_paths(t: &Scope) {
    let root = t.get("/").await.is(200);
    let paths: Vec<_> = root
        .at("/paths")
        .items()
        .iter()
        .filter_map(|doc| doc.as_str())
        .collect();
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/version",
    ] {
        assert!(paths.contains(&path), "{path}");
    }
}
