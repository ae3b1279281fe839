//! Finds a node for every pod that has none.
//!
//! One pod after the other is taken from a queue and compared with all nodes; the best one gets
//! it. Binding happens meanwhile: until the watch tells of it, the pod is assumed to be where it
//! was put.
//!
//! ```text
//!           ┌──────────────── active ◀──── back-off ◀─┐
//! watch ──▶ │                   │                     │ error, or an event that could help
//!           └─ pool ◀── refused ┴ attempt ─▶ assume ─▶ bind
//! ```
//!
//! Pods that nodes cannot tell apart share what was found out about the nodes, and a node is
//! looked at again only after something on it has changed. So placing the thousandth pod of a
//! template costs one node, not all of them, and still no node is left out.
//!
//! What the scheduler itself does not know (claims of devices) attaches as a [`Plugin`].
//!
//! A pod that no node takes may preempt pods of lower priority: it is nominated for
//! their node, and tried again when they are gone.
//!
//! Deliberately absent: the spreading that upstream adds to pods that do not ask for any, and pod
//! groups, which are off by default in Kubernetes 1.36.

mod bind;
mod cycle;
mod evaluate;
mod failure;
mod handlers;
mod hints;
mod metrics;
mod node_terms;
mod nodes;
mod nominations;
mod plugin;
mod pod_terms;
mod preemption;
mod queue;
mod reasons;
mod resources;
mod run;
mod spec;
mod state;
mod surroundings;
mod taints;

use std::sync::Arc;

use windlass_runtime::Manager;

pub use plugin::{
    ClusterEvent, NodeView, Plugin, PluginFuture, PodCycle, Reach, Refusal, Verdict, Waker,
};

pub(crate) use resources::{Resources, requests_of};
use run::Scheduler;

/// The name of the controller.
pub const NAME: &str = "scheduler";

/// The scheduler that pods ask for unless they say otherwise.
pub const SCHEDULER_NAME: &str = "default-scheduler";

/// How the scheduler works.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Pods that ask for this scheduler are placed, others are left alone.
    pub scheduler_name: String,
    /// What the scheduler itself does not know, in the order in which it is asked.
    pub plugins: Vec<Arc<dyn Plugin>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scheduler_name: SCHEDULER_NAME.to_owned(),
            plugins: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plugins: Vec<_> = self.plugins.iter().map(|plugin| plugin.name()).collect();
        f.debug_struct("Options")
            .field("scheduler_name", &self.scheduler_name)
            .field("plugins", &plugins)
            .finish_non_exhaustive()
    }
}

/// Adds the scheduler to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    Scheduler::new(manager, options).add_to(manager);
}
