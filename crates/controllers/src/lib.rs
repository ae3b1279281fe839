//! The built-in controllers, written with nothing a user of windlass could not use.

mod replicaset;

pub use replicaset::{ReplicaSetController, ReplicaSetError};
