//! Controllers of workloads and of what lives around them: ReplicaSets and Deployments, the garbage
//! collector, namespaces and what each of them holds from the start, quotas, the protection of
//! volumes and claims that are in use.
//!
//! Written with nothing a user of windlass could not use. Each controller is a module under
//! upstream's name: `NAME`, `Options` with upstream's defaults, and `add_to`, which adds it to a
//! [`Manager`](windlass_runtime::Manager).
//!
//! ```
//! assert_eq!(windlass_workloads::replicaset::NAME, "replicaset-controller");
//! ```

pub mod certificates;
pub mod clusterrole_aggregation;
pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod device_taint_eviction;
pub mod disruption;
pub mod endpoints;
pub mod endpointslice;
pub mod endpointslice_mirroring;
mod expectations;
pub mod garbage_collector;
mod history;
pub mod job;
pub mod namespace;
pub mod node_lifecycle;
mod owned;
mod pod_control;
pub mod pod_gc;
mod pods;
pub mod pretend_provisioner;
pub mod pv_binder;
pub mod pvcprotection;
pub mod pvprotection;
mod ref_manager;
pub mod replicaset;
pub mod replicationcontroller;
pub mod resourcequota;
pub mod root_ca;
pub mod service_account;
pub mod service_account_tokens;
mod slow_start;
pub mod statefulset;
pub mod taint_eviction;
mod tolerations;
pub mod ttl_after_finished;

pub use expectations::{EXPECTATIONS_TIMEOUT, Expectations, UidExpectations};
pub use pod_control::{PodControl, PodControlError, PodPrototype, is_namespace_terminating};
pub use pods::{
    ActiveRank, DeletionRank, POD_DELETION_COST, POD_SPEC_FIELDS, is_pod_active, is_pod_available,
    is_pod_claimed, is_pod_ready, is_pod_terminal, is_pod_terminating, pod_available_in,
};
pub use ref_manager::{ClaimError, Claimed, RefManager};
pub use slow_start::{SlowStart, slow_start};
