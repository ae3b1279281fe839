//! Pods that wait for devices: the plug-in in the scheduler, with the claim controller, a pretend
//! driver and pretend nodes, on the embedded server under a paused clock.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod binding;
mod failures;
mod held;
mod stage;
mod stories;
mod waiting;
