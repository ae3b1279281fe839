//! Node lifecycle and taint eviction on a cluster: black box, by what is there in the end.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod eviction;
mod faults;
mod health;
mod taints;
mod world;
mod zones;
