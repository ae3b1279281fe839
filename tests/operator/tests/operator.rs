//! The operator, on a cluster in the process of the test; on the cluster of the kubeconfig with
//! `USE_EXISTING_CLUSTER=true`.

use webapp_operator::{WebApp, controller};
use windlass::k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;
use windlass::testing::Cluster;

const CRD: &str = include_str!("../crd.yaml");
const APP: &str = "{apiVersion: example.com/v1, kind: WebApp, metadata: {name: shop},
    spec: {image: nginx, replicas: 3, settings: {color: blue}}}";

async fn cluster() -> Cluster {
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.define(CRD).await;
    cluster.run(controller());
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_web_app_becomes_ready_pods() {
    let cluster = cluster().await;
    cluster.create_yaml(APP).await;
    let ready = |app: Obj<WebApp>| app.doc().at("/status/ready").as_i64() == Some(3);
    cluster.until(async |c| c.get::<WebApp>("default/shop").await.is_some_and(ready)).await;
}

#[tokio::test(start_paused = true)]
async fn settings_that_somebody_else_changes_are_put_right() {
    let cluster = cluster().await;
    // Where both tests share one cluster each has its own WebApp.
    cluster.create_yaml(&APP.replace("shop", "blog")).await;
    let color = async |c: &Cluster| {
        let map = c.get::<ConfigMap>("default/blog").await;
        map.map(|map| map.doc().str_at("/data/color").to_owned())
    };
    cluster.until(async |c| color(c).await.as_deref() == Some("blue")).await;
    let map = cluster.get::<ConfigMap>("default/blog").await.unwrap();
    cluster.patch(map.doc(), doc!({ "data": { "color": "red" } })).await;
    cluster.until(async |c| color(c).await.as_deref() == Some("blue")).await;
}
