//! The root CA publisher: every namespace has a ConfigMap with the certificate authority of the
//! API server, for the pods in it.

use std::sync::Arc;

use windlass_client::WriteOptions;
use windlass_core::{Doc, GroupVersion, Key, doc};
use windlass_runtime::{Action, Change, Context, Controller, Manager, ResourceKind, Result};

use crate::service_account::is_namespace_ending;

/// The name of the controller.
pub const NAME: &str = "root-ca-certificate-publisher-controller";

/// The name of the ConfigMaps.
pub const CONFIG_MAP: &str = "kube-root-ca.crt";

const CORE: GroupVersion = GroupVersion::constant("", "v1");

const DESCRIPTION_KEY: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Options of the publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The certificates to publish, as PEM. Without any nothing is published.
    pub root_ca: String,
    /// How many namespaces are worked on at the same time.
    pub workers: usize,
}

impl Options {
    /// Publishes certificates with upstream's one worker.
    #[must_use]
    pub fn new(root_ca: impl Into<String>) -> Self {
        Self {
            root_ca: root_ca.into(),
            workers: 1,
        }
    }
}

/// Adds the controller to a manager, if there is something to publish.
pub fn add_to(manager: &Manager, options: &Options) {
    if options.root_ca.is_empty() {
        tracing::warn!(
            controller = NAME,
            "not started: there is no root CA to publish"
        );
        return;
    }
    let publisher = Arc::new(Publisher {
        data: doc!({ "ca.crt": &*options.root_ca }),
    });
    let reconcile = move |key: Key, cx: Context| {
        let publisher = publisher.clone();
        async move { publisher.publish(&key, &cx).await }
    };
    let controller = Controller::of_kind(namespaces(), reconcile)
        .filter(is_wanted)
        .watches_kind(config_maps(), |map| vec![Key::cluster(map.namespace())])
        .only(|spec| spec.fields(format!("metadata.name={CONFIG_MAP}")))
        .filter(|change| change.old.is_some())
        .named(NAME)
        .queue_named("root_ca_cert_publisher")
        .workers(options.workers);
    manager.add(controller);
}

fn namespaces() -> ResourceKind {
    ResourceKind::cluster(CORE, "Namespace", "namespaces")
}

fn config_maps() -> ResourceKind {
    ResourceKind::namespaced(CORE, "ConfigMap", "configmaps")
}

/// Whether a change of a namespace asks for a ConfigMap in it.
fn is_wanted(change: &Change<'_>) -> bool {
    let is_active = |it: &Doc| it.str_at("/status/phase") == "Active";
    change
        .new
        .is_some_and(|new| change.old.is_none() || is_active(new.doc()))
}

struct Publisher {
    /// What a ConfigMap holds.
    data: Doc,
}

impl Publisher {
    async fn publish(&self, key: &Key, cx: &Context) -> Result<Action> {
        let namespace = key.name();
        let known = cx
            .lister_of(&config_maps())?
            .get(&Key::new(namespace, CONFIG_MAP));
        let api = cx.api(&config_maps(), namespace);
        let options = WriteOptions::manager(NAME);
        let Some(known) = known else {
            let created = api.create(&self.config_map(namespace), &options).await;
            return match created {
                // One that somebody else has made is looked at when the watch shows it.
                Err(error) if !is_namespace_ending(&error) => Err(error.into()),
                _ => Ok(Action::done()),
            };
        };
        let is_described = known
            .meta()
            .annotation(DESCRIPTION_KEY)
            .is_some_and(|text| !text.is_empty());
        if *known.doc().at("/data") == self.data && is_described {
            return Ok(Action::done());
        }
        let annotation = format!(
            "/metadata/annotations/{}",
            DESCRIPTION_KEY.replace('/', "~1")
        );
        let changed = known
            .doc()
            .with("/data", self.data.clone())?
            .with(&annotation, DESCRIPTION)?;
        api.update(&changed, &options).await?;
        Ok(Action::done())
    }

    fn config_map(&self, namespace: &str) -> Doc {
        doc!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": CONFIG_MAP,
                "namespace": namespace,
                "annotations": { DESCRIPTION_KEY: DESCRIPTION },
            },
            "data": self.data.clone(),
        })
    }
}
