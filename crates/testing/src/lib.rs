//! What tests of controllers need: a cluster in the process, virtual time, a model of the API
//! server, and a layer of faults.
//!
//! [`Cluster`] is the API server itself, in memory, with clients and managers on it.
//! [`ModelServer`] is small enough to be read in one sitting: objects of any resource, revisions,
//! watches, preconditions, finalizers, patches. It knows nothing of schemas or of what a kind
//! means. [`Faults`] stands between a client and any transport, and decides for each call what
//! goes wrong with it. [`Simulation`] runs a scenario again and again, and lets a process crash at
//! each of its calls, or each call go wrong. [`TokioClock`] makes `Env` follow tokio's clock, which tests pause.
//!
//! ```
//! use windlass_core::{Env, doc};
//! use windlass_testing::ModelServer;
//!
//! let server = ModelServer::new(Env::seeded(1));
//! let map = doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
//! server.create("/api/v1/namespaces/default/configmaps", &map);
//! assert_eq!(server.objects("configmaps").len(), 1);
//! ```

mod clock;
#[cfg(feature = "cluster")]
mod cluster;
mod fault;
mod model;
mod simulation;

pub use clock::TokioClock;
#[cfg(feature = "cluster")]
pub use cluster::{Cluster, ClusterBuilder, Running};
pub use fault::{Answered, Call, Fault, FaultService, Faults, Position, Seen};
pub use model::{Logged, ModelServer};
pub use simulation::{Explored, Failure, Simulation, Stage, World, normalized};
