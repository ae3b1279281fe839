//! The ReplicaSet controller on a cluster: black box, by what is there in the end.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod claims;
mod deletion;
mod faults;
mod lag;
mod scaling;
#[path = "../support/simulated.rs"]
mod simulated;
#[path = "../support/stage.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod stage;
mod status;
