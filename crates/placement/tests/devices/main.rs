//! Devices: which are allocated, who creates and releases claims, and pods that wait for them.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod allocator;
mod claim_faults;
mod claims;
mod dynamic_resources;
