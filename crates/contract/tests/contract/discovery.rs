//! What a server says it serves.

use windlass_contract::{Answer, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    legacy_versions,
    legacy_groups,
    legacy_group,
    legacy_resources,
    legacy_subresources,
    legacy_resources_of_a_group,
    legacy_storage_version_hash,
    aggregated_core,
    aggregated_groups,
    aggregated_resource,
    aggregated_subresource_of_another_group,
    aggregated_answer_has_a_tag,
    unchanged_aggregated_answer_is_not_sent_again,
    old_aggregated_form_falls_back,
    old_aggregated_form_alone_is_refused,
    namespaces_cannot_be_deleted_as_a_collection,
    reviews_can_only_be_created,
    every_listed_resource_can_be_listed,
    openapi_v3_index,
];

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OLD_AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The item of a list whose field has a value.
fn find<'a>(list: &'a Doc, field: &str, value: &str) -> &'a Doc {
    let found = list.items().iter().find(|item| item.str_at(field) == value);
    found.unwrap_or_else(|| panic!("no {field} is {value:?}: {list}"))
}

fn texts(list: &Doc) -> Vec<&str> {
    list.items().iter().filter_map(Doc::as_str).collect()
}

async fn aggregated(t: &Scope, path: &str) -> Answer {
    t.with_header("accept", AGGREGATED).get(path).await
}

async fn legacy_versions(t: &Scope) {
    let versions = t.get("/api").await.is(200);
    assert_eq!(versions.at("/kind"), "APIVersions");
    assert_eq!(texts(versions.at("/versions")), ["v1"]);
    assert_eq!(
        versions.at("/serverAddressByClientCIDRs/0/clientCIDR"),
        "0.0.0.0/0"
    );
}

async fn legacy_groups(t: &Scope) {
    let groups = t.get("/apis").await.is(200);
    assert_eq!(groups.at("/kind"), "APIGroupList");
    for name in [
        "apps",
        "batch",
        "autoscaling",
        "policy",
        "rbac.authorization.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "storage.k8s.io",
        "scheduling.k8s.io",
        "resource.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "admissionregistration.k8s.io",
    ] {
        let group = find(groups.at("/groups"), "/name", name);
        assert_eq!(
            group.at("/preferredVersion"),
            group.at("/versions/0"),
            "{name}"
        );
    }
}

async fn legacy_group(t: &Scope) {
    let group = t.get("/apis/apps").await.is(200);
    let expected = doc!({
        "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
        "versions": [{ "groupVersion": "apps/v1", "version": "v1" }],
        "preferredVersion": { "groupVersion": "apps/v1", "version": "v1" }
    });
    assert_eq!(group, expected);
}

async fn legacy_resources(t: &Scope) {
    let list = t.get("/api/v1").await.is(200);
    assert_eq!(list.at("/kind"), "APIResourceList");
    assert_eq!(list.at("/groupVersion"), "v1");
    let pods = find(list.at("/resources"), "/name", "pods");
    assert_eq!(
        (pods.str_at("/kind"), pods.str_at("/singularName")),
        ("Pod", "pod")
    );
    assert_eq!(pods.at("/namespaced"), true);
    assert_eq!(texts(pods.at("/shortNames")), ["po"]);
    assert_eq!(texts(pods.at("/categories")), ["all"]);
    let verbs = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    assert_eq!(texts(pods.at("/verbs")), verbs);
    assert_eq!(
        find(list.at("/resources"), "/name", "nodes").at("/namespaced"),
        false
    );
}

async fn legacy_subresources(t: &Scope) {
    let list = t.get("/api/v1").await.is(200);
    let resources = list.at("/resources");
    let status = find(resources, "/name", "pods/status");
    assert_eq!(texts(status.at("/verbs")), ["get", "patch", "update"]);
    let eviction = find(resources, "/name", "pods/eviction");
    assert_eq!(
        (eviction.str_at("/group"), eviction.str_at("/version")),
        ("policy", "v1")
    );
    assert_eq!(eviction.at("/kind"), "Eviction");
    let token = find(resources, "/name", "serviceaccounts/token");
    assert_eq!(token.at("/group"), "authentication.k8s.io");
    assert_eq!(
        find(resources, "/name", "pods/binding").at("/kind"),
        "Binding"
    );
}

async fn legacy_resources_of_a_group(t: &Scope) {
    let list = t.get("/apis/apps/v1").await.is(200);
    assert_eq!(list.at("/groupVersion"), "apps/v1");
    let names: Vec<_> = list
        .at("/resources")
        .items()
        .iter()
        .map(|item| item.str_at("/name"))
        .collect();
    let expected = [
        "controllerrevisions",
        "daemonsets",
        "daemonsets/status",
        "deployments",
        "deployments/scale",
        "deployments/status",
        "replicasets",
        "replicasets/scale",
        "replicasets/status",
        "statefulsets",
        "statefulsets/scale",
        "statefulsets/status",
    ];
    assert_eq!(names, expected);
    let scale = find(list.at("/resources"), "/name", "deployments/scale");
    assert_eq!(
        (scale.str_at("/group"), scale.str_at("/version")),
        ("autoscaling", "v1")
    );
}

async fn legacy_storage_version_hash(t: &Scope) {
    let list = t.get("/apis/apps/v1").await.is(200);
    let sets = find(list.at("/resources"), "/name", "daemonsets");
    assert_eq!(sets.at("/storageVersionHash"), "dd7pWHUlMKQ=");
}

async fn aggregated_core(t: &Scope) {
    let answer = aggregated(t, "/api").await;
    assert_eq!(answer.header("content-type"), AGGREGATED);
    assert_eq!(answer.header("vary"), "Accept");
    let list = answer.is(200);
    assert_eq!(list.at("/kind"), "APIGroupDiscoveryList");
    assert_eq!(list.at("/apiVersion"), "apidiscovery.k8s.io/v2");
    assert_eq!(list.at("/items").items().len(), 1);
    assert_eq!(list.at("/items/0/versions/0/version"), "v1");
    assert_eq!(list.at("/items/0/versions/0/freshness"), "Current");
}

async fn aggregated_groups(t: &Scope) {
    let list = aggregated(t, "/apis").await.is(200);
    let apps = find(list.at("/items"), "/metadata/name", "apps");
    assert_eq!(apps.at("/versions/0/version"), "v1");
    let names: Vec<_> = list
        .at("/items")
        .items()
        .iter()
        .map(|item| item.str_at("/metadata/name"))
        .collect();
    assert!(!names.contains(&"apidiscovery.k8s.io"));
}

async fn aggregated_resource(t: &Scope) {
    let list = aggregated(t, "/api").await.is(200);
    let resources = list.at("/items/0/versions/0/resources");
    let maps = find(resources, "/resource", "configmaps");
    assert_eq!(maps.at("/responseKind/kind"), "ConfigMap");
    assert_eq!(maps.at("/scope"), "Namespaced");
    assert_eq!(maps.at("/singularResource"), "configmap");
    assert_eq!(texts(maps.at("/shortNames")), ["cm"]);
    assert_eq!(
        find(resources, "/resource", "nodes").at("/scope"),
        "Cluster"
    );
}

async fn aggregated_subresource_of_another_group(t: &Scope) {
    let list = aggregated(t, "/apis").await.is(200);
    let apps = find(list.at("/items"), "/metadata/name", "apps");
    let sets = find(apps.at("/versions/0/resources"), "/resource", "replicasets");
    let scale = find(sets.at("/subresources"), "/subresource", "scale");
    let kind = doc!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
    assert_eq!(scale.at("/responseKind"), &kind);
    assert_eq!(texts(scale.at("/verbs")), ["get", "patch", "update"]);
}

async fn aggregated_answer_has_a_tag(t: &Scope) {
    for path in ["/api", "/apis"] {
        let answer = aggregated(t, path).await;
        let tag = answer.header("etag").trim_matches('"');
        assert_eq!(tag.len(), 128, "{path}");
        assert!(
            tag.chars()
                .all(|c| c.is_ascii_digit() || ('A'..='F').contains(&c)),
            "{tag}"
        );
        assert_eq!(answer.header("cache-control"), "public");
    }
}

async fn unchanged_aggregated_answer_is_not_sent_again(t: &Scope) {
    let first = aggregated(t, "/api").await;
    let again = t
        .with_header("accept", AGGREGATED)
        .with_header("if-none-match", first.header("etag"));
    let again = again.get("/api").await;
    assert_eq!((again.code(), again.text()), (304, ""));
}

async fn old_aggregated_form_falls_back(t: &Scope) {
    let accept = format!("{OLD_AGGREGATED}, application/json");
    let answer = t.with_header("accept", &accept).get("/api").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.is(200).at("/kind"), "APIVersions");
}

async fn old_aggregated_form_alone_is_refused(t: &Scope) {
    let answer = t.with_header("accept", OLD_AGGREGATED).get("/api").await;
    answer.fails(406, "NotAcceptable");
}

async fn namespaces_cannot_be_deleted_as_a_collection(t: &Scope) {
    let list = t.get("/api/v1").await.is(200);
    let namespaces = find(list.at("/resources"), "/name", "namespaces");
    let verbs = [
        "create", "delete", "get", "list", "patch", "update", "watch",
    ];
    assert_eq!(texts(namespaces.at("/verbs")), verbs);
    let finalize = find(list.at("/resources"), "/name", "namespaces/finalize");
    assert_eq!(texts(finalize.at("/verbs")), ["update"]);
}

async fn reviews_can_only_be_created(t: &Scope) {
    let list = t.get("/apis/authorization.k8s.io/v1").await.is(200);
    for item in list.at("/resources").items() {
        assert_eq!(texts(item.at("/verbs")), ["create"], "{item}");
    }
}

async fn every_listed_resource_can_be_listed(t: &Scope) {
    let groups = t.get("/apis").await.is(200);
    let mut roots = vec!["/api/v1".to_owned()];
    for group in groups.at("/groups").items() {
        roots.push(format!(
            "/apis/{}",
            group.str_at("/preferredVersion/groupVersion")
        ));
    }
    for root in roots {
        let list = t.get(&root).await.is(200);
        for item in list.at("/resources").items() {
            let name = item.str_at("/name");
            if texts(item.at("/verbs")).contains(&"list") && !name.contains('/') {
                let found = t.get(&format!("{root}/{name}?limit=1")).await.is(200);
                assert!(found.at("/items").as_array().is_some(), "{root}/{name}");
            }
        }
    }
}

async fn openapi_v3_index(t: &Scope) {
    let index = t.get("/openapi/v3").await.is(200);
    for path in ["api/v1", "apis/apps/v1", "apis/batch/v1"] {
        let key = format!("/paths/{}/serverRelativeURL", path.replace('/', "~1"));
        let url = index.str_at(&key);
        assert!(
            url.starts_with(&format!("/openapi/v3/{path}?hash=")),
            "{url}"
        );
    }
}
