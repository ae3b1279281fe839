//! The DaemonSet and StatefulSet controllers on a cluster: black box, by what is there in the end.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod daemonset;
mod faults;
mod statefulset;
mod world;
