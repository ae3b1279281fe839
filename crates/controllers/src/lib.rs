//! The built-in controllers, written with nothing a user of windlass could not use.
//!
//! Each module is one controller of a Kubernetes control plane, under upstream's name: `NAME`,
//! `Options` with upstream's defaults, and `add_to`, which adds it to a
//! [`Manager`](windlass_runtime::Manager). [`catalog`] has them all by name:
//!
//! ```
//! use windlass_controllers::catalog;
//!
//! let chosen = catalog::select(&["*", "-namespace-controller"])?;
//! assert!(chosen.iter().any(|entry| entry.name == "replicaset-controller"));
//! assert!(chosen.iter().all(|entry| entry.name != "namespace-controller"));
//! # Ok::<(), catalog::UnknownController>(())
//! ```

pub mod allocator;
pub mod catalog;
pub mod claims;
pub mod deployment;
pub mod driver;
pub mod dynamic_resources;
pub mod garbage_collector;
pub mod namespace;
pub mod node;
mod owned;
pub mod replicaset;
pub mod replicationcontroller;
pub mod resourcequota;
pub mod root_ca;
pub mod scheduler;
pub mod service_account;
