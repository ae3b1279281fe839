//! The context of a reconcile.

mod apply;

use std::{fmt, sync::Arc};

use serde::Serialize;
use windlass_cache::{
    AddError, InformerFactory, InformerSpec, Lister, Obj, Registration, SharedInformer,
};
use windlass_client::{
    Clientset, DynamicApi, DynamicClient, Patch, RestClient, Typed, WriteOptions,
};
use windlass_core::{Doc, Env, Gvk, Key, doc, merge_patch};

use crate::{
    Change, Error, EventRecorder, EventType, ResourceKind, Result, Trigger, shutdown::Shutdown,
    source::KeyQueue, writes::WriteScope,
};
pub use apply::Apply;

/// The context of a reconcile: the client, the caches, the recorder, and the key.
///
/// Clones are cheap and share everything.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    key: Key,
    /// The client whose requests carry the scope.
    client: RestClient,
    /// The handle by which the writes of this reconcile are known.
    scope: Arc<WriteScope>,
}

/// The state that all reconciles of one controller share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) client: RestClient,
    pub(crate) factory: InformerFactory,
    pub(crate) recorder: EventRecorder,
    pub(crate) env: Env,
    /// The kinds that the controller reads, each with its informer.
    pub(crate) kinds: Vec<(ResourceKind, SharedInformer)>,
    /// The queue for keys that changes name.
    pub(crate) target: KeyQueue,
    pub(crate) shutdown: Shutdown,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, key: Key, scope: Arc<WriteScope>) -> Self {
        Self(Arc::new(Inner {
            client: shared.client.with_extension(scope.clone()),
            shared,
            key,
            scope,
        }))
    }

    /// The key that is reconciled.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// The name of the controller.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.0.shared.name
    }

    /// The client of this reconcile. Its writes are noted, whichever task makes them and whenever
    /// they are answered, and refused when leadership is lost.
    ///
    /// It belongs to this reconcile: writes of a later one through it count for this key.
    #[must_use]
    pub fn client(&self) -> &RestClient {
        &self.0.client
    }

    /// Another client of the manager's, such as one with a rate limit of its own, as the client of
    /// this reconcile: its writes are noted, too.
    #[must_use]
    pub fn scoped(&self, client: &RestClient) -> RestClient {
        client.with_extension(self.0.scope.clone())
    }

    /// Typed verbs.
    #[must_use]
    pub fn clientset(&self) -> Clientset {
        Clientset::new(self.client().clone())
    }

    /// The verbs of any kind, in the namespace of an object, or outside of any.
    #[must_use]
    pub fn api(&self, kind: &ResourceKind, namespace: &str) -> DynamicApi {
        let api = DynamicClient::new(self.client().clone()).resource(kind.gvr().clone());
        if namespace.is_empty() {
            api
        } else {
            api.namespaced(namespace)
        }
    }

    /// Time, randomness and ids.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.0.shared.env
    }

    /// Told when the controller is to stop. Long reconciles look at it.
    #[must_use]
    pub fn shutdown(&self) -> &Shutdown {
        &self.0.shared.shutdown
    }

    /// The cache of a kind that the controller reads.
    ///
    /// # Errors
    /// When the controller has not said that it reads this kind: there would be no cache.
    pub fn lister<K: Typed>(&self) -> Result<Lister<K>> {
        let kind = ResourceKind::of::<K>();
        Ok(self.informer(kind.gvk())?.cast().lister())
    }

    /// The cache of a kind that the controller reads, as documents.
    ///
    /// # Errors
    /// When the controller has not said that it reads this kind: there would be no cache.
    pub fn lister_of(&self, kind: &ResourceKind) -> Result<Lister> {
        Ok(self.informer(kind.gvk())?.lister())
    }

    fn informer(&self, gvk: &Gvk) -> Result<&SharedInformer> {
        let mut kinds = self.0.shared.kinds.iter();
        let found = kinds.find(|(kind, _)| kind.gvk().group_kind() == gvk.group_kind());
        let found = found.map(|(_, informer)| informer);
        found.ok_or_else(|| self.undeclared(gvk))
    }

    fn undeclared(&self, gvk: &Gvk) -> Error {
        let (name, kind) = (self.controller(), gvk.kind());
        Error::msg(format!(
            "controller {name} does not read {kind}: name it with `watches` or `reads`"
        ))
        .terminal()
    }

    /// The kind of an object, as the controller declared it.
    ///
    /// # Errors
    /// When the controller has not declared it.
    pub fn kind_of(&self, object: &Doc) -> Result<&ResourceKind> {
        let gvk = object
            .gvk()
            .ok_or_else(|| Error::msg("object has no apiVersion and kind"))?;
        let mut kinds = self.0.shared.kinds.iter().map(|(kind, _)| kind);
        let found = kinds.find(|kind| kind.gvk().group_kind() == gvk.group_kind());
        found.ok_or_else(|| self.undeclared(&gvk))
    }

    /// Every informer that was asked for in this process, for those who read more than they watch.
    #[must_use]
    pub fn factory(&self) -> &InformerFactory {
        &self.0.shared.factory
    }

    /// The informer of a part of a resource. It must have been asked for before the start.
    #[must_use]
    pub fn informer_of(&self, spec: InformerSpec) -> SharedInformer {
        self.0.shared.factory.informer_of(spec)
    }

    /// Reacts to the changes of one more kind from now on, as
    /// [`Controller::reacts_to`](crate::Controller::reacts_to) does from the start: for kinds that
    /// a controller learns of while it runs. An informer that the factory has made for this must
    /// still be started, by [`InformerFactory::start`].
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn react_to(
        &self,
        informer: &SharedInformer,
        react: impl Fn(&Change<'_>) -> Vec<Trigger> + Send + Sync + 'static,
    ) -> Result<Registration, AddError> {
        let resource = informer.resource().group_resource();
        let target = &self.0.shared.target;
        informer.add_handler(target.reacting(resource, Arc::new(react)))
    }

    /// The recorder of the controller.
    #[must_use]
    pub fn recorder(&self) -> &EventRecorder {
        &self.0.shared.recorder
    }

    /// Tells people about an object. Never waits.
    pub fn event<K>(&self, object: &Obj<K>, event_type: EventType, reason: &str, message: &str) {
        self.recorder()
            .event(object.doc(), event_type, reason, message);
    }

    /// Applies an object, server-side, in the name of the controller.
    pub fn apply<K: Typed>(&self, object: &K) -> Apply {
        Apply::new(
            self.clone(),
            ResourceKind::of::<K>(),
            Doc::encode(object).map_err(Error::from),
        )
    }

    /// Applies an object of any kind.
    pub fn apply_doc(&self, kind: &ResourceKind, object: Doc) -> Apply {
        Apply::new(self.clone(), kind.clone(), Ok(object))
    }

    /// Changes fields of the status of an object. If they already have these values nothing is
    /// sent, unless this reconcile has written objects of the kind: the object that it was given is
    /// older than that. Returns the object as it is then.
    ///
    /// # Errors
    /// When the kind of the object is not one that the controller reads, or the request fails.
    pub async fn patch_status<K>(&self, object: &Obj<K>, status: impl Serialize) -> Result<Doc> {
        let doc = object.doc();
        let status = Doc::encode(&status)?;
        let (kind, now) = (self.kind_of(doc)?, doc.at("/status"));
        let is_newest = !self.0.scope.has_written(&kind.gvr().group_resource());
        if is_newest && merge_patch(now, &status) == *now {
            return Ok(doc.clone());
        }
        let api = self.api(kind, object.namespace());
        // The UID makes the request fail if the name belongs to another object by now.
        let patch =
            Patch::Merge(doc!({ "metadata": { "uid": object.uid().as_str() }, "status": status }));
        Ok(api
            .patch_status(object.name(), &patch, &self.write_options())
            .await?)
    }

    /// Writes in the name of the controller.
    #[must_use]
    pub fn write_options(&self) -> WriteOptions {
        WriteOptions::manager(self.controller())
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.controller())
            .field("key", self.key())
            .finish_non_exhaustive()
    }
}
