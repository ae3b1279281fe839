//! The controller of the README, and its test.

use windlass::k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};
use windlass::prelude::*;

async fn reconcile(service: Obj<Service>, cx: Context) -> Result<Action> {
    if service.meta().annotation("ingress/http").is_some() {
        let kind = ResourceKind::of::<Ingress>();
        cx.apply_doc(&kind, ingress_of(&service))
            .owned_by(&service)
            .await?;
        cx.event(&service, Normal, "Synced", "the Ingress is there");
    }
    Ok(Action::done())
}

fn ingress_of(service: &Obj<Service>) -> Doc {
    doc!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": service.name(), "namespace": service.namespace() },
        "spec": { "defaultBackend": { "service": { "name": service.name(), "port": { "number": 80 } } } },
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    // Kubeconfig, signals, health, metrics and leader election, as the flags say.
    let manager = Manager::from_flags("ingress-manager").await?;
    manager.add(Controller::of::<Service>(reconcile).owns::<Ingress>());
    Ok(manager.run().await?)
}

use windlass::testing::Cluster;

const SERVICE: &str = "{apiVersion: v1, kind: Service,
    metadata: {name: web, annotations: {ingress/http: 'true'}}, spec: {ports: [{port: 80}]}}";

#[tokio::test(start_paused = true)]
async fn an_annotated_service_gets_an_ingress() {
    let cluster = Cluster::start().await;
    cluster.run(Controller::of::<Service>(reconcile).owns::<Ingress>());
    cluster.create_yaml(SERVICE).await;
    cluster
        .until(async |c| c.get::<Ingress>("default/web").await.is_some())
        .await;
}
