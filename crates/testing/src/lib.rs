//! The simulation spine: virtual time, a model of the API server in memory, and a layer of faults.
//!
//! [`ModelServer`] is small enough to be read in one sitting: objects of any resource, revisions,
//! watches, preconditions, finalizers, patches. It knows nothing of schemas or of what a kind
//! means. [`Faults`] stands between a client and any transport, and decides for each call what
//! goes wrong with it. [`TokioClock`] makes `Env` follow tokio's clock, which tests pause.

mod clock;
mod fault;
mod model;

pub use clock::TokioClock;
pub use fault::{Call, Fault, FaultService, Faults};
pub use model::{Logged, ModelServer};
