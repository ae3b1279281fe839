//! The disruption controller on a cluster: black box, by what is there in the end.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod counts;
mod evictions;
mod faults;
mod scale;
mod stale;
mod world;
