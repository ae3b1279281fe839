//! The Job controller on a cluster: black box, by what is there in the end.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod back_off;
mod completions;
mod ends;
mod faults;
mod indexed;
mod ownership;
mod policies;
mod scaling;
mod tracking;
mod world;
