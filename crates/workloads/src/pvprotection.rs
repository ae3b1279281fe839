//! The protection of persistent volumes: one that is bound to a claim is not deleted before the
//! claim lets go of it.

use windlass_client::WriteOptions;
use windlass_core::{Doc, GroupVersion, Key};
use windlass_runtime::{Action, Change, Context, Controller, Manager, ResourceKind, Result};

/// The name of the controller.
pub const NAME: &str = "persistentvolume-protection-controller";

/// The finalizer that keeps a volume.
pub const FINALIZER: &str = "kubernetes.io/pv-protection";

pub(crate) const CORE: GroupVersion = GroupVersion::constant("", "v1");

/// Options of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many volumes are worked on at the same time.
    pub workers: usize,
}

impl Default for Options {
    /// Upstream's: one worker.
    fn default() -> Self {
        Self { workers: 1 }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let reconcile = move |key: Key, cx: Context| async move { protect(&key, &cx).await };
    let controller = Controller::of_kind(volumes(), reconcile)
        .filter(|change| needs_work(change, FINALIZER))
        .named(NAME)
        .queue_named("pvprotection")
        .workers(options.workers);
    manager.add(controller);
}

fn volumes() -> ResourceKind {
    ResourceKind::cluster(CORE, "PersistentVolume", "persistentvolumes")
}

async fn protect(key: &Key, cx: &Context) -> Result<Action> {
    let Some(volume) = cx.lister_of(&volumes())?.get(key) else {
        return Ok(Action::done());
    };
    let volume = volume.doc();
    // The controller that binds volumes to claims keeps the phase.
    let is_used = volume.str_at("/status/phase") == "Bound";
    if let Some(changed) = with_protection(volume, FINALIZER, is_used) {
        let options = WriteOptions::manager(NAME);
        cx.api(&volumes(), "").update(&changed, &options).await?;
    }
    Ok(Action::done())
}

/// Returns true if a change leaves an object whose finalizer must be added, or may have to go.
pub(crate) fn needs_work(change: &Change<'_>, finalizer: &str) -> bool {
    change.new.is_some_and(|object| {
        let meta = object.meta();
        meta.is_deleting() == meta.has_finalizer(finalizer)
    })
}

/// The object as it should be, if it has to change: a live one has the finalizer, and a deleted one
/// loses it when nobody uses it any more.
pub(crate) fn with_protection(object: &Doc, finalizer: &str, is_used: bool) -> Option<Doc> {
    let meta = object.meta();
    match (meta.is_deleting(), meta.has_finalizer(finalizer)) {
        (true, true) if !is_used => Some(object.without_finalizer(finalizer)),
        (false, false) => Some(object.with_finalizer(finalizer)),
        _ => None,
    }
}
