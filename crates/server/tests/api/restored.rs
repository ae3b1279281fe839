//! What no cluster is without for long, whoever deletes it.

use crate::support::Api;

/// Paths of such objects: the collection and the name.
const ESSENTIAL: [(&str, &str); 4] = [
    ("/api/v1/namespaces/default/services", "kubernetes"),
    (
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "catch-all",
    ),
    (
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
        "catch-all",
    ),
    ("/api/v1/namespaces", "kube-node-lease"),
];

#[tokio::test(start_paused = true)]
async fn what_every_cluster_has_comes_back_with_a_new_identity() {
    let api = Api::new().await;
    let server = api.server().clone();
    let maintenance = tokio::spawn(async move { server.maintain().await });
    for (collection, name) in ESSENTIAL {
        let path = format!("{collection}/{name}");
        let before = api
            .get(&path)
            .await
            .expect(200)
            .str_at("/metadata/uid")
            .to_owned();
        let revision = api.get(collection).await.revision();
        let watch = format!(
            "{collection}?watch=1&resourceVersion={revision}&fieldSelector=metadata.name={name}"
        );
        let mut watch = api.watch(&watch).await;
        api.delete(&path).await.expect(200);
        if collection.ends_with("namespaces") {
            // Nobody else empties it here.
            let namespace = api.get(&path).await.expect(200);
            let finalized = namespace.body.without("/spec/finalizers").unwrap();
            api.put(&format!("{path}/finalize"), &finalized)
                .await
                .expect(200);
        }
        let made = loop {
            let (kind, object) = watch.next().await.unwrap();
            if kind == "ADDED" {
                break object;
            }
        };
        assert_eq!(made.str_at("/metadata/name"), name);
        assert_ne!(made.str_at("/metadata/uid"), before, "{path}");
    }
    maintenance.abort();
}

#[tokio::test(start_paused = true)]
async fn what_only_a_start_makes_stays_deleted() {
    let api = Api::new().await;
    let server = api.server().clone();
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view";
    api.delete(role).await.expect(200);
    let services = "/api/v1/namespaces/default/services";
    api.delete(&format!("{services}/kubernetes"))
        .await
        .expect(200);
    let mut watch = api.watch(&format!("{services}?watch=1")).await;
    let maintenance = tokio::spawn(async move { server.maintain().await });
    assert_eq!(watch.next().await.unwrap().0, "ADDED");
    api.get(role).await.expect(404);
    maintenance.abort();
}
