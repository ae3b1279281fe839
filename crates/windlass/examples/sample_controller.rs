//! The sample controller: a Foo asks for a Deployment of some name with some replicas, and its
//! status tells how many of them are available.
//!
//! `cargo run -p windlass --example sample_controller` shows it on a cluster in this process, and
//! ends. The same without the runtime is `sample_controller_by_hand` of `windlass-runtime`.

#![expect(
    clippy::disallowed_names,
    reason = "Foo is the kind that this controller is about"
)]

use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::apps::v1::Deployment;
use windlass::prelude::*;
use windlass::testing::Cluster;

/// What a Foo asks for.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo")]
#[kube(namespaced, status = "FooStatus", schema = "disabled")]
#[kube(crates(
    kube_core = "windlass::kube_core",
    k8s_openapi = "windlass::k8s_openapi"
))]
#[serde(rename_all = "camelCase")]
struct FooSpec {
    deployment_name: String,
    replicas: i32,
}

/// What a Foo has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FooStatus {
    available_replicas: i32,
}

const FOOS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.samplecontroller.k8s.io
  annotations:
    api-approved.kubernetes.io: 'unapproved, experimental-only; a sample'
spec:
  group: samplecontroller.k8s.io
  scope: Namespaced
  names: { kind: Foo, plural: foos }
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: { status: {} }
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              deploymentName: { type: string }
              replicas: { type: integer, minimum: 1, maximum: 10 }
          status:
            type: object
            properties:
              availableReplicas: { type: integer }
";

const EXAMPLE: &str = "
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: { name: example-foo, namespace: default }
spec: { deploymentName: example-foo, replicas: 2 }
";

async fn reconcile(foo: Obj<Foo>, cx: Context) -> Result<Action> {
    let spec = foo.decode()?.spec;
    let key = Key::new(foo.namespace(), &spec.deployment_name);
    let is_foreign = |found: &Obj<Deployment>| !found.meta().is_controlled_by(&foo.uid());
    if cx
        .lister::<Deployment>()?
        .get(&key)
        .as_ref()
        .is_some_and(is_foreign)
    {
        let message = format!(
            "Resource {:?} already exists and is not managed by Foo",
            spec.deployment_name
        );
        cx.event(&foo, Warning, "ErrResourceExists", &message);
        return Err(Error::msg(message));
    }
    let kind = ResourceKind::of::<Deployment>();
    let deployment = cx
        .apply_doc(&kind, deployment_for(&foo, &spec))
        .owned_by(&foo)
        .await?;
    let available = deployment
        .at("/status/availableReplicas")
        .as_i64()
        .unwrap_or(0);
    cx.patch_status(&foo, json!({ "availableReplicas": available }))
        .await?;
    cx.event(&foo, Normal, "Synced", "Foo synced successfully");
    Ok(Action::done())
}

fn deployment_for(foo: &Obj<Foo>, spec: &FooSpec) -> Doc {
    let labels = doc!({ "app": "nginx", "controller": foo.name() });
    doc!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": &*spec.deployment_name, "namespace": foo.namespace() },
        "spec": {
            "replicas": i64::from(spec.replicas),
            "selector": { "matchLabels": labels.clone() },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    })
}

#[tokio::main]
async fn main() {
    let cluster = Cluster::start().await;
    cluster.define(FOOS).await;
    cluster.run(
        Controller::of::<Foo>(reconcile)
            .named("sample-controller")
            .owns::<Deployment>(),
    );
    cluster.create_yaml(EXAMPLE).await;
    let made = async |c: &Cluster| c.get::<Deployment>("default/example-foo").await;
    cluster.until(async |c| made(c).await.is_some()).await;
    println!("Foo example-foo has its Deployment");

    // There are no nodes in this cluster: somebody has to say that the pods are available.
    let deployment = made(&cluster)
        .await
        .map(|deployment| deployment.doc().clone());
    let ready = doc!({ "replicas": 2, "readyReplicas": 2, "availableReplicas": 2 });
    cluster
        .patch_status(&deployment.unwrap_or(Doc::NULL), ready)
        .await;
    cluster
        .until(async |c| {
            let foo = c.get::<Foo>("default/example-foo").await;
            foo.is_some_and(|foo| foo.doc().at("/status/availableReplicas").as_i64() == Some(2))
        })
        .await;
    println!("Foo example-foo says that 2 replicas are available");
}
