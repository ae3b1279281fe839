//! A WebApp is a Deployment of an image, and a ConfigMap with its settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "WebApp", namespaced)]
#[kube(status = "WebAppStatus", schema = "disabled")]
#[kube(crates(kube_core = "windlass::kube_core", k8s_openapi = "windlass::k8s_openapi"))]
pub struct WebAppSpec {
    pub image: String,
    pub replicas: i64,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WebAppStatus {
    pub ready: i64,
}

async fn reconcile(app: Obj<WebApp>, cx: Context) -> Result<Action> {
    let spec = app.decode()?.spec;
    let meta = doc!({ "name": app.name(), "namespace": app.namespace() });
    let settings = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": spec.settings });
    cx.apply_doc(&ResourceKind::of::<ConfigMap>(), Doc::encode(&settings)?).owned_by(&app).await?;
    let deployment = doc!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
        "spec": {
            "replicas": spec.replicas,
            "selector": { "matchLabels": { "app": app.name() } },
            "template": {
                "metadata": { "labels": { "app": app.name() } },
                "spec": { "containers": [{ "name": "app", "image": &*spec.image }] },
            },
        },
    });
    let deployment = cx.apply_doc(&ResourceKind::of::<Deployment>(), deployment).owned_by(&app).await?;
    let ready = deployment.at("/status/readyReplicas").as_i64().unwrap_or(0);
    cx.patch_status(&app, json!({ "ready": ready })).await?;
    Ok(Action::done())
}

pub fn controller() -> Controller {
    Controller::of::<WebApp>(reconcile).owns::<Deployment>().owns::<ConfigMap>()
}
