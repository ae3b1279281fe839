//! An ingress manager: a Service with the annotation `ingress/http` gets an Ingress of its name,
//! and loses it with the annotation.
//!
//! `cargo run -p windlass --example ingress_manager` shows it on a cluster in this process, and
//! ends. With `USE_EXISTING_CLUSTER=true` it works on the cluster of the kubeconfig.

use windlass::client::{DeleteOptions, Propagation};
use windlass::k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};
use windlass::prelude::*;
use windlass::testing::Cluster;

const ANNOTATION: &str = "ingress/http";

/// Makes the Ingress of one Service look as the Service says.
async fn reconcile(service: Obj<Service>, cx: Context) -> Result<Action> {
    let is_wanted = service.meta().annotation(ANNOTATION).is_some();
    let present = cx.lister::<Ingress>()?.get(&service.key());
    let is_ours = |ingress: &Obj<Ingress>| ingress.meta().is_controlled_by(&service.uid());
    match present {
        Some(ingress) if !is_ours(&ingress) => {
            cx.event(
                &service,
                Warning,
                "IngressExists",
                "an Ingress of this name is not ours",
            );
        }
        Some(ingress) if !is_wanted => {
            let ingresses = cx.clientset().api::<Ingress>();
            let ingresses = ingresses.namespaced(service.namespace());
            // This Ingress, and not another that took its name meanwhile.
            let this_one = DeleteOptions::uid(ingress.meta().uid_str());
            ingresses.delete(ingress.name(), &this_one).await?;
            cx.event(&service, Normal, "IngressDeleted", "the annotation is gone");
        }
        None if is_wanted => {
            let kind = ResourceKind::of::<Ingress>();
            cx.apply_doc(&kind, ingress_of(&service))
                .owned_by(&service)
                .await?;
            cx.event(
                &service,
                Normal,
                "IngressCreated",
                "the annotation asks for it",
            );
        }
        Some(_) | None => {}
    }
    Ok(Action::done())
}

fn ingress_of(service: &Obj<Service>) -> Doc {
    doc!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": service.name(), "namespace": service.namespace() },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{
                "host": "example.com",
                "http": { "paths": [{
                    "path": "/",
                    "pathType": "Prefix",
                    "backend": { "service": { "name": service.name(), "port": { "number": 80 } } },
                }] },
            }],
        },
    })
}

fn ingress_manager() -> Controller {
    Controller::of::<Service>(reconcile)
        .named("ingress-manager")
        .owns::<Ingress>()
}

#[tokio::main]
async fn main() {
    let cluster = Cluster::start().await;
    cluster.run(ingress_manager());

    let service = "{apiVersion: v1, kind: Service,
        metadata: {name: web, namespace: default, annotations: {ingress/http: 'true'}},
        spec: {selector: {app: web}, ports: [{port: 80}]}}";
    let service = cluster.create_yaml(service).await.remove(0);
    println!("created Service web with the annotation {ANNOTATION}");
    let has_ingress = async |c: &Cluster| c.get::<Ingress>("default/web").await.is_some();
    cluster.until(has_ingress).await;
    println!("Ingress web is there");

    let without = doc!({ "metadata": { "annotations": { ANNOTATION: Doc::NULL } } });
    let service = cluster.patch(&service, without).await;
    println!("took the annotation away");
    cluster.until(async |c| !has_ingress(c).await).await;
    println!("Ingress web is gone");
    cluster.delete(&service, Propagation::Background).await;
}
