//! A real Kubernetes control plane on loopback, for tests and measurements.
//!
//! [`ControlPlane::start`] runs etcd, kube-apiserver and, when asked, kube-controller-manager in a
//! temporary directory of their own, and returns when the server is ready. There is no kubelet and
//! no scheduler: objects are stored and served, and no container ever runs.
//!
//! The binaries come from `KUBEBUILDER_ASSETS` or from the cache that `cargo xtask envtest build`
//! fills ([`Assets`]). This crate never builds or downloads anything.
//!
//! Nothing outlives the process that started it, even if that process is killed: each server runs
//! under a small shell that holds one end of a pipe and kills its server when the pipe closes, and
//! another shell removes the directory in the same way. So a control plane in a `static`, which
//! Rust never drops, is cleaned up too, and no `unsafe` is needed for it.
//!
//! The calls block. An async test calls them as they are: starting takes seconds, happens once,
//! and nothing else can usefully run before it.
//!
//! ```no_run
//! use windlass_envtest::{ControlPlane, Options};
//!
//! let server = ControlPlane::start(&Options::default())?;
//! assert_eq!(server.get("/readyz")?.status, 200);
//! server.kubectl().args(["get", "namespaces"]).status().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Unix only.

mod assets;
mod control_plane;
mod directory;
mod flags;
mod kubeconfig;
mod options;
mod pki;
mod port;
mod probe;
mod report;
mod shared;
mod skip;
mod supervisor;
mod wait;

pub use assets::{
    Assets, AssetsError, BINARIES, KUBERNETES_VERSION, OLDER_KUBECTLS, cache_directory,
};
pub use control_plane::{ControlPlane, Pids, StartError};
pub use options::Options;
pub use pki::PkiError;
pub use probe::{ProbeError, Response};
pub use shared::real_server;
pub use skip::{real_assets, skip};
