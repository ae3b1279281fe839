//! `windlass up --demo`: something to look at. A Deployment, and another one whose pods ask for a
//! device each, are applied and shown until they are as they shall be, and from then on.

mod screen;
mod view;

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_cache::{InformerFactory, InformerSpec, SharedInformer, on_any};
use windlass_client::{
    DiscoveryClient, DynamicClient, Patch, RestClient, RestOptions, Transport, WriteOptions,
};
use windlass_core::{Doc, Gvr};
use windlass_server::User;

use crate::serve::Serving;
use screen::Screen;
use view::View;

/// What is applied.
const OBJECTS: &str = include_str!("demo/objects.yaml");

/// Who owns the fields of those objects.
const MANAGER: &str = "windlass-demo";

/// The label of everything that belongs to the demonstration.
const LABEL: &str = "windlass.dev/demo";

const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const DEPLOYMENTS: Gvr = Gvr::constant("apps", "v1", "deployments");
const PODS: Gvr = Gvr::constant("", "v1", "pods");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");

/// Starts the demonstration on so many nodes. It goes on until it is aborted.
pub(crate) fn start(serving: &Serving, nodes: usize) -> JoinHandle<()> {
    let options = RestOptions {
        user_agent: MANAGER.to_owned(),
        rate_limit: None,
        ..RestOptions::default()
    };
    let transport = Transport::new(serving.server.doc_service(User::admin()));
    let client = RestClient::new(transport, options);
    let hints = hints(serving);
    tokio::spawn(async move {
        if let Err(error) = run(client, nodes, &hints).await {
            // The cluster is of use without it.
            tracing::error!(error = format!("{error:#}"), "the demonstration ended");
        }
    })
}

/// Applies the objects and shows what becomes of them.
async fn run(client: RestClient, nodes: usize, hints: &str) -> anyhow::Result<()> {
    let scene = Scene::open(client.clone());
    scene.factory.wait_for_sync().await?;
    // The first node to come would get all the pods.
    while scene.nodes.lister().len() < nodes {
        scene.changed.notified().await;
    }
    let started = Instant::now();
    apply(&client).await?;
    let mut screen = Screen::of_stdout();
    let mut took = None;
    loop {
        let view = scene.look();
        if took.is_none() && view.is_settled() {
            took = Some(started.elapsed());
        }
        let after = took.map(|took| format!("as it shall be after {took:.1?}\n{hints}"));
        screen.show(&view.lines(), after.as_deref());
        scene.changed.notified().await;
    }
}

async fn apply(client: &RestClient) -> anyhow::Result<()> {
    let discovery = DiscoveryClient::new(client.clone());
    for object in Doc::parse_yaml(OBJECTS)? {
        let kind = object.gvk().context("an object names its kind")?;
        let resource = discovery.resource_of(&kind).await?;
        let api = DynamicClient::new(client.clone()).resource(resource.gvr);
        let api = api.namespaced(object.meta().namespace());
        let options = WriteOptions {
            // Whoever scaled it before: the demonstration starts as it always does.
            is_forced: true,
            ..WriteOptions::manager(MANAGER)
        };
        let name = object.meta().name().to_owned();
        api.patch(&name, &Patch::Apply(object), &options).await?;
    }
    Ok(())
}

/// Caches of all that is shown.
struct Scene {
    factory: InformerFactory,
    nodes: SharedInformer,
    deployments: SharedInformer,
    pods: SharedInformer,
    claims: SharedInformer,
    /// Told after every change in a cache. Changes that come while one is drawn are one.
    changed: Arc<Notify>,
}

impl Scene {
    fn open(client: RestClient) -> Self {
        let factory = InformerFactory::new(client);
        let changed = Arc::new(Notify::new());
        let informer = |spec: InformerSpec| {
            let informer: SharedInformer = factory.informer_of(spec);
            let changed = changed.clone();
            informer
                .add_handler(on_any(move |_| changed.notify_one()))
                .expect("invariant: the informer has not ended");
            informer
        };
        let labelled = |resource| InformerSpec::new(resource).labels(LABEL);
        let nodes = informer(InformerSpec::new(NODES));
        let deployments = informer(labelled(DEPLOYMENTS));
        let pods = informer(labelled(PODS));
        // Claims that are made from a template do not have the labels of their pods.
        let claims = informer(InformerSpec::new(CLAIMS).namespaced("default"));
        factory.start();
        Self {
            factory,
            nodes,
            deployments,
            pods,
            claims,
            changed,
        }
    }

    fn look(&self) -> View {
        View::of(
            &self.deployments.lister(),
            &self.pods.lister(),
            &self.claims.lister(),
        )
    }
}

fn hints(serving: &Serving) -> String {
    let flag = serving.flag();
    format!(
        "try in another terminal:\n\
         \x20 windlass scale deployment/demo-web --replicas=5{flag}\n\
         \x20 windlass delete pods -l app=demo-train{flag}\n\
         \x20 windlass why deployment/demo-web{flag}\n\
         Ctrl-C ends the cluster\n\n"
    )
}
