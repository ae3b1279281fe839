//! The binder of volumes and the pretend provisioner on a cluster.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod binding;
mod faults;
mod losing;
mod provisioning;
mod world;
