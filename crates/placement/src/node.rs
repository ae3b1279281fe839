//! Pretend nodes: Node objects and the agents behind them, without a container anywhere.
//!
//! They do to the API what a kubelet does: they register nodes and renew their Leases, take pods
//! that are bound to them from `Pending` to `Running` and `Ready`, let them end, restart them, and
//! finish their deletion. Nothing runs. What a pod does is said by its annotations:
//!
//! | annotation | meaning |
//! |---|---|
//! | [`START_AFTER`] | how long the containers take to be created |
//! | [`READY_AFTER`] | how long they run before they are ready |
//! | [`EXIT_AFTER`] | how long they run before they exit; [`NEVER`] for until they are stopped |
//! | [`EXIT_CODE`] | the code they exit with, 0 unless said otherwise |
//! | [`CRASH`] | `"true"`: they exit at once, with code 1 |
//! | [`STOP_AFTER`] | how long they take to stop when the pod is deleted |
//! | [`NEVER_START`] | a reason, such as `CreateContainerConfigError`, for which they never start |
//! | [`PULL_ERROR`] | the message of a pull that always fails |
//! | [`FAIL_PROBE`] | the probes that fail: `readiness`, `liveness`, `startup` |
//! | [`FAIL_PROBE_AFTER`] | how long they succeed before |
//! | [`RESIZE_AFTER`] | how long an in-place resize takes |
//! | [`LOG`] | what `kubectl logs` prints |
//!
//! They are about the containers of `spec.containers`. With a dot and the name of a container at the
//! end, such as `windlass.dev/exit-code.setup`, most are about that one, whichever it is. One that
//! cannot be read is not used, and an event of reason `InvalidAnnotation` says so.
//!
//! Containers of a pod with `restartPolicy: Never` or `OnFailure` have work to finish: without an
//! annotation they exit by themselves, with code 0, after [`Options::exit_after`]. A Job completes
//! that way. If such a pod is deleted before, its containers exit with code 143 and it has failed.
//! Containers of other pods run until they are stopped, and exit with code 0 then.
//!
//! One queue serves all pods of all pretend nodes: there is no task per pod.

mod agent;
mod behaviour;
mod container;
mod image;
mod register;
mod resize;
mod run;
mod status;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use windlass_core::Doc;
use windlass_runtime::Manager;

pub use behaviour::{
    CRASH, EXIT_AFTER, EXIT_CODE, FAIL_PROBE, FAIL_PROBE_AFTER, LOG, NEVER, NEVER_START,
    PULL_ERROR, READY_AFTER, RESIZE_AFTER, START_AFTER, STOP_AFTER,
};

use agent::Agent;

/// The name of the controller.
pub const NAME: &str = "pretend-nodes";

/// The label of every pretend node.
pub const PRETEND: &str = "windlass.dev/pretend";

/// The annotation of a node that stops it while it is `"true"`: it renews no Lease, and says
/// nothing of itself or its pods.
pub const STOPPED: &str = "windlass.dev/stopped";

/// How long containers run that have work to finish, by default.
pub const EXIT_AFTER_DEFAULT: Duration = Duration::from_secs(2);

/// What a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Processors, as a quantity.
    pub cpu: String,
    /// Memory, as a quantity.
    pub memory: String,
    /// Local storage, as a quantity.
    pub ephemeral_storage: String,
    /// Pods.
    pub pods: u32,
    /// Other resources, as quantities by name.
    pub others: Vec<(String, String)>,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            cpu: "32".to_owned(),
            memory: "128Gi".to_owned(),
            ephemeral_storage: "1Ti".to_owned(),
            pods: 1000,
            others: Vec::new(),
        }
    }
}

/// What pods need on a node besides containers, such as devices.
pub trait PodResources: Send + Sync + 'static {
    /// Called before the containers of a pod start, until it succeeds.
    ///
    /// # Errors
    /// With the reason why the pod must not start yet, for people.
    fn prepare(&self, node: &str, pod: &Doc) -> Result<(), String>;

    /// Called once the containers of a pod have stopped. May be called for pods that were never
    /// prepared.
    fn unprepare(&self, node: &str, pod: &Doc);
}

/// How the pretend nodes are.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// How many there are.
    pub nodes: usize,
    /// Their names begin with this and end with their number.
    pub name_prefix: String,
    /// What each of them has.
    pub capacity: Capacity,
    /// Further labels of each of them.
    pub labels: Vec<(String, String)>,
    /// How long containers take to be created, unless the pod says otherwise. Those that take no
    /// time are not shown as being created, which saves a write for each pod.
    pub start_after: Duration,
    /// How long containers run that have work to finish, unless the pod says otherwise: those of
    /// pods with `restartPolicy: Never` or `OnFailure`.
    pub exit_after: Duration,
    /// How long containers take to stop, unless the pod says otherwise. Never longer than the
    /// grace period of the deletion.
    pub stop_after: Duration,
    /// How often a Lease is renewed.
    pub lease_interval: Duration,
    /// How often the status of a node is written although nothing has changed.
    pub status_interval: Duration,
    /// What pods need besides containers.
    pub resources: Option<Arc<dyn PodResources>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 3,
            name_prefix: "pretend-".to_owned(),
            capacity: Capacity::default(),
            labels: Vec::new(),
            start_after: Duration::ZERO,
            exit_after: EXIT_AFTER_DEFAULT,
            stop_after: Duration::from_secs(1),
            lease_interval: Duration::from_secs(10),
            status_interval: Duration::from_secs(5 * 60),
            resources: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("nodes", &self.nodes)
            .field("name_prefix", &self.name_prefix)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// Adds pretend nodes to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    Agent::new(manager, options).add_to(manager);
}
