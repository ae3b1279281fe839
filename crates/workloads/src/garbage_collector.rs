//! The garbage collector: objects whose owners are gone go too.
//!
//! The server turns a deletion into finalizers; this controller does the rest. Watches of the
//! metadata of every kind (`monitors`) feed a graph of who depends on whom (`graph`). Whatever
//! in the graph may have to go is looked at by workers, which ask the server before they act: an
//! object is deleted only when none of its owners exists, each looked up by its UID, and the
//! deletion names the UID and the version that was looked at.
//!
//! - **Background**: the owner is gone, and its dependents are deleted (`delete`).
//! - **Foreground**: the owner waits for dependents that block it, which are deleted first.
//! - **Orphan**: the owner waits until its dependents have forgotten it (`orphan`).
//!
//! Before an owner that waits may go, the kinds of its dependents are known to be completely in
//! the graph, as of the moment when its deletion began (`settle`): a watch that lags would else
//! leave dependents to be deleted that should have been kept.

mod collector;
mod delete;
mod graph;
mod identity;
mod metrics;
mod monitors;
mod orphan;
mod patches;
mod references;
mod resources;
mod settle;

use std::{collections::BTreeSet, sync::Arc};

use windlass_core::GroupResource;
use windlass_runtime::Manager;

use collector::Collector;

/// The name of the controller.
pub const NAME: &str = "garbage-collector-controller";

/// Options of the garbage collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many objects are looked at at the same time, and how many owners are orphaned.
    pub workers: usize,
    /// Resources that neither own nor are owned.
    pub ignored: BTreeSet<GroupResource>,
}

impl Default for Options {
    /// Upstream's: 20 workers, and no events.
    fn default() -> Self {
        Self {
            workers: 20,
            ignored: BTreeSet::from([
                GroupResource::new("", "events"),
                GroupResource::new("events.k8s.io", "events"),
            ]),
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let collector = Collector::new(manager, options);
    manager.add_queue(&collector.to_delete);
    manager.add_queue(&collector.to_orphan);
    let (metrics, weak) = (collector.metrics.clone(), Arc::downgrade(&collector));
    manager.add_metrics(move |registry| {
        let sizes = weak.upgrade().map(|it| it.graph.lock().sizes());
        metrics.register(registry, sizes.unwrap_or_default());
    });
    let workers = options.workers.max(1);
    manager.add_task(NAME, move |shutdown| async move {
        collector.run(workers, &shutdown).await;
        Ok(())
    });
}
