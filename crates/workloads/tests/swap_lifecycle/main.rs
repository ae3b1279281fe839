//! Scripts that end in the same objects and events with kube-controller-manager's controllers and
//! with ours: disruption, aggregated ClusterRoles, certificates, node lifecycle, taint eviction,
//! volumes.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod certificates;
mod cluster_roles;
mod disruption;
mod nodes;
mod scene;
mod volumes;
