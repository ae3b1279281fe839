//! Controllers of workloads and of what lives around them: ReplicaSets and Deployments, the garbage
//! collector, namespaces and what each of them holds from the start, quotas.
//!
//! Written with nothing a user of windlass could not use. Each controller is a module under
//! upstream's name: `NAME`, `Options` with upstream's defaults, and `add_to`, which adds it to a
//! [`Manager`](windlass_runtime::Manager).
//!
//! ```
//! assert_eq!(windlass_workloads::replicaset::NAME, "replicaset-controller");
//! ```

pub mod deployment;
pub mod garbage_collector;
pub mod namespace;
mod owned;
pub mod replicaset;
pub mod replicationcontroller;
pub mod resourcequota;
pub mod root_ca;
pub mod service_account;
