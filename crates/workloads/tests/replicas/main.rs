//! Controllers that keep a number of pods, on the embedded server, on a real one and in simulations.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod children;
mod deployment;
#[path = "../support/kubelet.rs"]
mod kubelet;
mod replicaset;
mod simulated;
#[path = "../support/stage.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod stage;
