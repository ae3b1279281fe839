//! A namespace in which a script plays, and the comparison of two of them.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use futures_util::future::join_all;
use windlass_client::{Config, Patch, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_envtest::{ControlPlane, Options};
use windlass_runtime::Manager;
use windlass_testing::{Cluster, normalized};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// For how long nothing changes when everything is done.
const QUIET: Duration = Duration::from_secs(4);

type Played<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A script: its name and what it does in a namespace of its own.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) play: for<'a> fn(&'a Scene) -> Played<'a>,
}

/// Scripts by name, each a block that works on a scene.
macro_rules! scripts {
    ($($name:ident |$scene:ident| $body:block)+) => {
        const SCRIPTS: &[$crate::scene::Script] = &[$($crate::scene::Script {
            name: stringify!($name),
            play: |$scene| Box::pin(async move $body),
        }),+];
    };
}
pub(crate) use scripts;

/// A namespace, whose name begins the names of what is outside of namespaces.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) name: String,
}

/// What is compared.
pub(crate) struct Picture {
    /// Resources in the namespace.
    pub(crate) namespaced: Vec<Gvr>,
    /// Resources outside, of which those are looked at that begin with the name of the scene.
    pub(crate) cluster: Vec<Gvr>,
    /// Fields that say nothing.
    pub(crate) ignored: &'static [&'static str],
}

impl Scene {
    async fn new(cluster: &Cluster, name: &str) -> Self {
        let name = name.replace('_', "-");
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": (&name) }
        });
        cluster.create_doc(&object).await;
        Self {
            cluster: cluster.clone(),
            name,
        }
    }

    /// The name of something outside of namespaces.
    pub(crate) fn own(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Creates an object in the namespace.
    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object.with("/metadata/namespace", self.name.as_str());
        self.cluster.create_doc(&object.unwrap()).await
    }

    /// Creates an object outside of namespaces, under a name of the scene.
    pub(crate) async fn create_outside(&self, object: Doc) -> Doc {
        let name = self.own(object.meta().name());
        let object = object.with("/metadata/name", name).unwrap();
        self.cluster.create_doc(&object).await
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.name);
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn find_outside(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        self.cluster.find(resource, &self.own(name)).await
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let holds = async |_: &Cluster| {
            let is_so = holds().await;
            tracing::trace!(what, is_so);
            is_so
        };
        self.cluster.until(holds).await;
    }

    /// Sets conditions in a status, as a kubelet does.
    pub(crate) async fn post(&self, resource: &Gvr, object: &Doc, status: Doc) {
        let api = self.cluster.api(resource, object.meta().namespace());
        let patch = Patch::Strategic(doc!({ "status": status }));
        api.patch_status(object.meta().name(), &patch, &WriteOptions::default())
            .await
            .unwrap();
    }

    /// Lets everybody finish what they are at.
    async fn settle(&self, picture: &Picture) {
        loop {
            let before = self.objects(picture).await;
            self.cluster.pass(QUIET).await;
            let versions = |docs: &[Doc]| -> Vec<String> {
                let versions = docs
                    .iter()
                    .map(|it| it.meta().resource_version().to_owned());
                versions.collect()
            };
            let after = self.objects(picture).await;
            if versions(&before) == versions(&after) {
                return;
            }
        }
    }

    async fn objects(&self, picture: &Picture) -> Vec<Doc> {
        let mut all = Vec::new();
        for resource in &picture.namespaced {
            all.extend(self.cluster.list_docs(resource, &self.name, "").await);
        }
        for resource in &picture.cluster {
            let found = self.cluster.list_docs(resource, "", "").await;
            let prefix = format!("{}-", self.name);
            let own = |it: &Doc| {
                let holder = it.str_at("/spec/claimRef/namespace");
                it.meta().name().starts_with(&prefix) || holder == self.name
            };
            all.extend(found.into_iter().filter(own));
        }
        all
    }

    /// Everything there is, without what is random or a time.
    async fn picture(&self, picture: &Picture) -> String {
        let ignored: Vec<String> = picture.ignored.iter().map(|it| (*it).to_owned()).collect();
        let objects = self.objects(picture).await;
        let objects: Vec<Doc> = objects.iter().map(with_sorted_taints).collect();
        let objects = normalized(&objects, &ignored);
        let mut lines: Vec<String> = objects.iter().map(Doc::to_json_pretty).collect();
        let mut events = self.cluster.list_docs(&EVENTS, &self.name, "").await;
        // Events of what is outside of namespaces are in this one.
        let outside = self.cluster.list_docs(&EVENTS, "default", "").await;
        let prefix = format!("{}-", self.name);
        events.extend(outside.into_iter().filter(|event| {
            let name = event.str_at("/involvedObject/name");
            name.starts_with(&prefix)
        }));
        let mut events: Vec<String> = events
            .iter()
            .map(|event| {
                let text = [
                    "/type",
                    "/reason",
                    "/message",
                    "/source/component",
                    "/involvedObject/kind",
                ];
                format!("event {}", text.map(|at| event.str_at(at)).join(" "))
            })
            .collect();
        events.sort();
        events.dedup();
        lines.extend(events);
        lines.join("\n")
    }
}

/// A node whose taints are in one order: two controllers add them at the same time.
fn with_sorted_taints(object: &Doc) -> Doc {
    let mut taints = object.at("/spec/taints").items().to_vec();
    if taints.is_empty() {
        return object.clone();
    }
    taints.sort_by_key(|it| {
        (
            it.str_at("/key").to_owned(),
            it.str_at("/effect").to_owned(),
        )
    });
    object.with("/spec/taints", taints).unwrap()
}

/// What every script ends in.
async fn play(
    cluster: &Cluster,
    scripts: &'static [Script],
    picture: &Picture,
) -> BTreeMap<&'static str, String> {
    let plays = scripts.iter().map(async |script| {
        let scene = Scene::new(cluster, script.name).await;
        (script.play)(&scene).await;
        scene.settle(picture).await;
        (script.name, scene.picture(picture).await)
    });
    join_all(plays).await.into_iter().collect()
}

async fn cluster_of(server: &ControlPlane) -> Cluster {
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).patience(PATIENCE);
    cluster.start().await
}

/// Plays scripts with our controllers and with theirs, and compares the ends.
pub(crate) async fn end_alike(
    scripts: &'static [Script],
    picture: Picture,
    theirs: &[&str],
    ours: impl FnOnce(&Manager),
) {
    end_alike_with(scripts, picture, theirs, &[], ours).await;
}

/// The same with flags of kube-controller-manager.
pub(crate) async fn end_alike_with(
    scripts: &'static [Script],
    picture: Picture,
    theirs: &[&str],
    flags: &[String],
    ours: impl FnOnce(&Manager),
) {
    if windlass_envtest::real_server().is_none() {
        return;
    }
    let bare = ControlPlane::start(&Options::default()).unwrap();
    let cluster = cluster_of(&bare).await;
    let running = cluster.run_with("lifecycle", ours);
    let ours = play(&cluster, scripts, &picture).await;
    running.stop().await;
    drop(bare);
    let options = Options::default()
        .controllers(theirs.iter().copied())
        .controller_manager_flag("--kube-api-qps=1000")
        .controller_manager_flag("--kube-api-burst=1000");
    let options = flags.iter().fold(options, |options, flag| {
        options.controller_manager_flag(flag)
    });
    let server = ControlPlane::start(&options).unwrap();
    let theirs = play(&cluster_of(&server).await, scripts, &picture).await;
    assert_eq!((ours.len(), theirs.len()), (scripts.len(), scripts.len()));
    let mut different = Vec::new();
    for (name, theirs) in &theirs {
        if ours[name] != *theirs {
            different.push(format!("{name}\ntheirs:\n{theirs}\nours:\n{}", ours[name]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
