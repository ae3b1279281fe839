//! The sample controller: a Foo asks for a Deployment of some name with some replicas, and its
//! status tells how many of them are available.
//!
//! `cargo run -p windlass --example sample_controller` shows it on a cluster in this process, and
//! ends. The same without the runtime is `sample_controller_by_hand`.

#![expect(
    clippy::disallowed_names,
    reason = "Foo is the kind that this controller is about"
)]

use serde::{Deserialize, Serialize};
use windlass::client::Propagation;
use windlass::k8s_openapi::api::{apps::v1::Deployment, core::v1::Event};
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
    #[serde(default)]
    deployment_name: String,
    replicas: Option<i32>,
}

/// What a Foo has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FooStatus {
    available_replicas: i32,
}

/// The definition of the kind.
pub(crate) const FOOS: &str = "
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

const FOREIGN: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: theirs, namespace: default }
spec:
  selector: { matchLabels: { app: theirs } }
  template:
    metadata: { labels: { app: theirs } }
    spec: { containers: [{ name: theirs, image: nginx }] }
";

/// The controller, for a manager or a cluster to run.
pub(crate) fn controller() -> Controller {
    Controller::of::<Foo>(reconcile)
        .named("sample-controller")
        .owns::<Deployment>()
}

async fn reconcile(foo: Obj<Foo>, cx: Context) -> Result<Action> {
    let spec = foo.decode()?.spec;
    if spec.deployment_name.is_empty() {
        // Trying again would not help: somebody has to write the name first.
        return Ok(Action::done());
    }
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
    let replicas = spec.replicas.map_or(Doc::NULL, |it| i64::from(it).into());
    doc!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": &*spec.deployment_name, "namespace": foo.namespace() },
        "spec": {
            "replicas": replicas,
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
    // The built-in controllers, the scheduler and nodes that only pretend make the Deployment
    // available.
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.define(FOOS).await;
    cluster.run(controller());
    let example = cluster.create_yaml(EXAMPLE).await.remove(0);
    let is_made = async |c: &Cluster| c.get::<Deployment>("default/example-foo").await.is_some();
    cluster.until(is_made).await;
    println!("Foo example-foo has its Deployment");
    cluster
        .until(async |c| {
            let foo = c.get::<Foo>("default/example-foo").await;
            foo.is_some_and(|foo| foo.doc().at("/status/availableReplicas").as_i64() == Some(2))
        })
        .await;
    println!("Foo example-foo says that 2 replicas are available");

    // Somebody else's Deployment is left alone, and a person is told.
    cluster.create_yaml(FOREIGN).await;
    let is_told = async |c: &Cluster| {
        let events = c.list::<Event>("default").await;
        let reasons = events.iter().map(|event| event.doc().str_at("/reason"));
        reasons
            .into_iter()
            .any(|reason| reason == "ErrResourceExists")
    };
    let theirs = cluster.patch(&example, doc!({ "spec": { "deploymentName": "theirs" } }));
    let example = theirs.await;
    cluster.until(is_told).await;
    println!("Foo example-foo may not have the Deployment of somebody else");

    cluster.delete(&example, Propagation::Background).await;
    cluster.until(async |c| !is_made(c).await).await;
    println!("the Deployment of Foo example-foo went with it");
}
