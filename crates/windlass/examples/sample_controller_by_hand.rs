//! The sample controller without `Controller` and `Manager`: factory, handlers, queue, workers and
//! recorder, each by hand.
//!
//! A Foo asks for a Deployment of some name with some replicas; its status tells how many of them
//! are available. `cargo run -p windlass --example sample_controller_by_hand` shows it on a cluster
//! in this process, and ends.

#![expect(
    clippy::disallowed_names,
    reason = "Foo is the kind that this controller is about"
)]

use std::{sync::Arc, time::Duration};

use windlass::cache::{HandlerFns, InformerFactory};
use windlass::client::{DynamicClient, Patch, RestClient, WriteOptions};
use windlass::core::{Env, Gvk, Gvr};
use windlass::prelude::*;
use windlass::queue::WorkQueue;
use windlass::runtime::{EventBroadcaster, EventRecorder, Shutdown};
use windlass::testing::Cluster;

const CONTROLLER: &str = "sample-controller";
const FOOS: Gvr = Gvr::constant("samplecontroller.k8s.io", "v1alpha1", "foos");
const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
const WORKERS: usize = 2;
const RESYNC: Duration = Duration::from_secs(30);

const SYNCED: &str = "Foo synced successfully";

/// What the workers share.
struct SampleController {
    client: DynamicClient,
    foos: Lister,
    deployments: Lister,
    queue: WorkQueue<Key>,
    recorder: EventRecorder,
}

impl SampleController {
    async fn run_worker(&self) {
        while let Some(item) = self.queue.get().await {
            match self.sync(item.key()).await {
                Ok(()) => self.queue.forget(item.key()),
                Err(error) => {
                    eprintln!("Error syncing; requeuing for later retry: {error}");
                    self.queue.add_rate_limited(item.key().clone());
                }
            }
        }
    }

    /// Compares what is with what is wanted, and moves the first towards the second.
    async fn sync(&self, key: &Key) -> Result<()> {
        let Some(foo) = self.foos.get(key) else {
            println!("Foo {key} no longer exists");
            return Ok(());
        };
        let name = foo.doc().str_at("/spec/deploymentName");
        if name.is_empty() {
            // Trying again would not help: somebody has to write the name first.
            eprintln!("Foo {key}: deployment name must be specified");
            return Ok(());
        }
        let api = self
            .client
            .resource(DEPLOYMENTS)
            .namespaced(foo.namespace());
        let options = WriteOptions::manager(CONTROLLER);
        let mut deployment = match self.deployments.get(&Key::new(foo.namespace(), name)) {
            Some(deployment) => deployment.doc().clone(),
            None => api.create(&deployment_of(&foo)?, &options).await?,
        };
        if !deployment.meta().is_controlled_by(&foo.uid()) {
            let message = format!("Resource {name:?} already exists and is not managed by Foo");
            self.recorder
                .event(foo.doc(), EventType::Warning, "ErrResourceExists", &message);
            return Err(Error::msg(message));
        }
        let wanted = foo.doc().at("/spec/replicas");
        if !wanted.is_null() && wanted != deployment.at("/spec/replicas") {
            deployment = api
                .update(&deployment.with("/spec/replicas", wanted)?, &options)
                .await?;
        }
        self.update_status(&foo, &deployment).await?;
        self.recorder
            .event(foo.doc(), EventType::Normal, "Synced", SYNCED);
        Ok(())
    }

    async fn update_status(&self, foo: &Obj, deployment: &Doc) -> Result<()> {
        let available = deployment
            .at("/status/availableReplicas")
            .as_i64()
            .unwrap_or(0);
        if foo.doc().at("/status/availableReplicas").as_i64() == Some(available) {
            return Ok(());
        }
        let patch = Patch::Merge(doc!({ "status": { "availableReplicas": available } }));
        let api = self.client.resource(FOOS).namespaced(foo.namespace());
        api.patch_status(foo.name(), &patch, &WriteOptions::manager(CONTROLLER))
            .await?;
        Ok(())
    }
}

fn deployment_of(foo: &Obj) -> Result<Doc> {
    let kind = Gvk::parse("samplecontroller.k8s.io/v1alpha1", "Foo")?;
    let labels = doc!({ "app": "nginx", "controller": foo.name() });
    Ok(doc!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": foo.doc().str_at("/spec/deploymentName"),
            "namespace": foo.namespace(),
            "ownerReferences": vec![Doc::from(&OwnerRef::controller_of(foo.doc(), &kind))]
        },
        "spec": {
            "replicas": foo.doc().at("/spec/replicas"),
            "selector": { "matchLabels": &labels },
            "template": {
                "metadata": { "labels": &labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] }
            }
        }
    }))
}

/// The Foo that a Deployment belongs to.
fn owner(deployment: &Obj) -> Option<Key> {
    let owner = deployment
        .meta()
        .controller()
        .filter(|owner| owner.kind == "Foo")?;
    Some(Key::new(deployment.namespace(), &owner.name))
}

/// Runs the controller until it is told to stop.
pub(crate) async fn run(client: RestClient, stop: &Shutdown, env: Env) -> Result<()> {
    let broadcaster = EventBroadcaster::new(env.clone());
    broadcaster.start_sink(client.clone());
    let factory = InformerFactory::on(client.clone())
        .sources()
        .env(env)
        .resync(RESYNC)
        .build();
    let (foos, deployments) = (factory.dynamic(FOOS), factory.dynamic(DEPLOYMENTS));
    let queue = WorkQueue::new();

    let (added, updated, deleted) = (queue.clone(), queue.clone(), queue.clone());
    foos.add_handler(
        HandlerFns::new()
            .on_add(move |foo: Obj, _| added.add(foo.key()))
            .on_update(move |_, foo| updated.add(foo.key()))
            .on_delete(move |foo| deleted.add(foo.key())),
    )?;
    let (added, updated, deleted) = (queue.clone(), queue.clone(), queue.clone());
    deployments.add_handler(
        HandlerFns::new()
            .on_add(move |it: Obj, _| owner(&it).into_iter().for_each(|key| added.add(key)))
            .on_update(move |old, new| {
                // A resync repeats every Deployment; only real changes matter here.
                if old.revision() != new.revision() {
                    owner(&new).into_iter().for_each(|key| updated.add(key));
                }
            })
            .on_delete(move |it| {
                owner(it.object())
                    .into_iter()
                    .for_each(|key| deleted.add(key));
            }),
    )?;

    factory.start();
    factory.wait_for_sync().await?;
    let controller = Arc::new(SampleController {
        client: DynamicClient::new(client),
        foos: foos.lister(),
        deployments: deployments.lister(),
        queue: queue.clone(),
        recorder: broadcaster.recorder(CONTROLLER),
    });
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| controller.clone())
        .map(|controller| tokio::spawn(async move { controller.run_worker().await }))
        .collect();

    stop.requested().await;
    queue.shut_down();
    for worker in workers {
        worker.await?;
    }
    factory.shutdown().await;
    broadcaster.shut_down().await;
    Ok(())
}

const DEFINITION: &str = "
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
        x-kubernetes-preserve-unknown-fields: true
";

#[tokio::main]
async fn main() -> Result<()> {
    // The built-in controllers make the Deployment available.
    let cluster = Cluster::builder().controllers(["*"]).start().await;
    cluster.define(DEFINITION).await;
    let foo = "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo,
        metadata: {name: example-foo, namespace: default},
        spec: {deploymentName: example-foo, replicas: 2}}";
    cluster.create_yaml(foo).await;

    let stop = Shutdown::new();
    let ends = async {
        let available = async |c: &Cluster| {
            let foo = c.find(&FOOS, "default/example-foo").await;
            foo.is_some_and(|foo| foo.at("/status/availableReplicas").as_i64() == Some(2))
        };
        cluster.until(available).await;
        println!("Foo example-foo says that 2 replicas are available");
        stop.trigger();
    };
    let running = run(cluster.client().clone(), &stop, cluster.env().clone());
    let (ran, ()) = tokio::join!(running, ends);
    ran
}
