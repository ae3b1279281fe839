//! Discovery, OpenAPI, health and version.

use http::Method;
use windlass_core::Doc;

use crate::support::{Api, CONFIG_MAPS, config_map, request};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

#[tokio::test]
async fn everything_is_discovered_in_one_document() {
    let api = Api::new().await;
    let answer = api.get_as("/apis", AGGREGATED).await.expect(200);
    assert_eq!(
        answer.headers.get("content-type").unwrap(),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(answer.str_at("/kind"), "APIGroupDiscoveryList");
    let groups = answer.body.at("/items").items();
    let apps = groups
        .iter()
        .find(|group| group.str_at("/metadata/name") == "apps")
        .unwrap();
    let resources = apps.at("/versions/0/resources").items();
    let sets = resources
        .iter()
        .find(|row| row.str_at("/resource") == "replicasets")
        .unwrap();
    assert_eq!(sets.str_at("/responseKind/kind"), "ReplicaSet");
    assert_eq!(sets.str_at("/scope"), "Namespaced");
    assert_eq!(*sets.at("/shortNames/0"), "rs");
    assert_eq!(sets.str_at("/subresources/0/subresource"), "scale");
    assert_eq!(
        sets.str_at("/subresources/0/responseKind/group"),
        "autoscaling"
    );
    let verbs: Vec<&str> = sets
        .at("/verbs")
        .items()
        .iter()
        .filter_map(Doc::as_str)
        .collect();
    assert_eq!(
        verbs,
        [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
        ]
    );
    let core = api.get_as("/api", AGGREGATED).await.expect(200);
    assert_eq!(core.body.at("/items").items().len(), 1);
}

#[tokio::test]
async fn a_known_document_is_not_sent_again() {
    let api = Api::new().await;
    let first = api.get_as("/apis", AGGREGATED).await.expect(200);
    let mut again = request(Method::GET, "/apis", "", "");
    again
        .headers_mut()
        .insert("accept", AGGREGATED.parse().unwrap());
    again
        .headers_mut()
        .insert("if-none-match", first.headers.get("etag").unwrap().clone());
    let answer = api.send(again).await.expect(304);
    assert_eq!(answer.text, "");
}

#[tokio::test]
async fn a_client_of_an_older_form_gets_the_plain_one() {
    let api = Api::new().await;
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    assert_eq!(
        api.get_as("/apis", beta).await.expect(200).str_at("/kind"),
        "APIGroupList"
    );
    assert_eq!(
        api.get("/api").await.expect(200).str_at("/kind"),
        "APIVersions"
    );
    assert_eq!(
        api.get("/apis/apps").await.expect(200).str_at("/kind"),
        "APIGroup"
    );
    assert_eq!(
        api.get("/apis/nope").await.expect(404).text,
        "404 page not found\n"
    );
}

#[tokio::test]
async fn resources_are_listed_with_their_parts() {
    let api = Api::new().await;
    let list = api.get("/api/v1").await.expect(200);
    let rows = list.body.at("/resources").items();
    let find = |name: &str| rows.iter().find(|row| row.str_at("/name") == name).unwrap();
    assert_eq!(find("pods").str_at("/kind"), "Pod");
    assert_eq!(find("pods/eviction").str_at("/group"), "policy");
    assert_eq!(*find("namespaces").at("/namespaced"), false);
    let hash = find("pods").str_at("/storageVersionHash");
    assert_eq!(hash, "xPOwRZ+Yhw8=", "upstream has the same hash");
}

#[tokio::test]
async fn kubectl_finds_what_it_needs_to_create() {
    let api = Api::new().await;
    let index = api.get("/openapi/v3").await.expect(200);
    let url = index
        .str_at("/paths/apis~1apps~1v1/serverRelativeURL")
        .to_owned();
    let document = api.get(&url).await.expect(200);
    let item = "/paths/~1apis~1apps~1v1~1namespaces~1{namespace}~1replicasets~1{name}/patch";
    let parameters = document.body.at(&format!("{item}/parameters")).items();
    let mut names = parameters.iter().map(|one| one.str_at("/name"));
    assert!(names.any(|name| name == "fieldValidation"));
    let kind = document.str_at(&format!("{item}/x-kubernetes-group-version-kind/kind"));
    assert_eq!(kind, "ReplicaSet");
}

#[tokio::test]
async fn health_is_reported_in_upstreams_words() {
    let api = Api::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping"] {
        assert_eq!(api.get(path).await.expect(200).text, "ok");
    }
    let verbose = api.get("/readyz?verbose").await.expect(200).text;
    assert!(verbose.starts_with("[+]ping ok\n[+]log ok\n[+]etcd ok\n"));
    assert!(verbose.ends_with("[+]shutdown ok\nreadyz check passed\n"));
    api.get("/readyz/disk-space").await.expect(200);
    api.get("/readyz/unknown").await.expect(404);
    let version = api.get("/version").await.expect(200);
    assert_eq!(version.str_at("/minor"), "36");
    assert_eq!(version.str_at("/gitVersion"), "v1.36.4");
    assert!(version.str_at("/gitCommit").starts_with("windlass-"));
    let metrics = api.get("/metrics").await.expect(200).text;
    assert!(
        metrics.contains("apiserver_storage_objects{resource=\"namespaces\"} 4"),
        "{metrics}"
    );
}

#[tokio::test]
async fn the_first_objects_are_there() {
    let api = Api::new().await;
    let namespaces = api.get("/api/v1/namespaces").await;
    assert_eq!(
        namespaces.names(),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    api.get("/api/v1/namespaces/default/services/kubernetes")
        .await
        .expect(200);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    for name in ["cluster-admin", "admin", "edit", "view", "system:discovery"] {
        api.get(&format!("{rbac}/clusterroles/{name}"))
            .await
            .expect(200);
    }
    let class = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
    assert_eq!(
        *api.get(class).await.expect(200).body.at("/value"),
        2_000_001_000_i64
    );
}

#[tokio::test]
async fn every_answer_is_marked() {
    let api = Api::new().await;
    let answer = api.get("/version").await;
    assert_eq!(answer.headers.get("audit-id").unwrap().len(), 36);
    assert_eq!(
        answer.headers.get("cache-control").unwrap(),
        "no-cache, private"
    );
    let mut marked = request(Method::GET, "/version", "", "");
    marked
        .headers_mut()
        .insert("audit-id", "mine".parse().unwrap());
    assert_eq!(
        api.send(marked).await.headers.get("audit-id").unwrap(),
        "mine"
    );
}

#[tokio::test]
async fn figures_have_upstreams_names() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.get(&format!("{CONFIG_MAPS}/none")).await.expect(404);
    api.get("/apis/nowhere/v1/things").await.expect(404);
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=0"))
        .await;
    watch.next().await.unwrap();
    let text = api.get("/metrics").await.expect(200).text;
    let place = "group=\"\",resource=\"configmaps\"";
    for line in [
        format!(
            "apiserver_request_total{{code=\"201\",dry_run=\"\",component=\"apiserver\",{place},\
             scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"}} 1"
        ),
        format!(
            "apiserver_request_total{{code=\"404\",dry_run=\"\",component=\"apiserver\",{place},\
             scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v1\"}} 1"
        ),
        format!(
            "apiserver_longrunning_requests{{component=\"apiserver\",{place},\
             scope=\"namespace\",subresource=\"\",verb=\"WATCH\",version=\"v1\"}} 1"
        ),
        format!("apiserver_watch_events_total{{{place},version=\"v1\"}} 1"),
        format!("apiserver_resource_objects{{{place}}} 1"),
        "apiserver_storage_objects{resource=\"configmaps\"} 1".to_owned(),
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for name in [
        "apiserver_request_duration_seconds_bucket",
        "apiserver_request_duration_seconds_sum",
        "apiserver_request_duration_seconds_count",
        "apiserver_storage_size_bytes",
        "kubernetes_build_info",
        "process_start_time_seconds",
    ] {
        assert!(text.contains(&format!("\n{name}")), "{name}");
    }
    assert!(!text.contains("nowhere"), "what is not there has no name");
    drop(watch);
    let text = api.get("/metrics").await.expect(200).text;
    let closed = "verb=\"WATCH\",version=\"v1\"} 0";
    assert!(text.contains(closed), "{text}");
}
