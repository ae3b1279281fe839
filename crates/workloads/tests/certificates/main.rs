//! The controllers of CertificateSigningRequests on a cluster.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod approving;
mod cleaning;
mod signing;
mod world;
