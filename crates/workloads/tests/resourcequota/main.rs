//! The resource quota controller, on the embedded server under a paused clock and on the real one.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod cases;
mod embedded;
mod real;
#[path = "../support/real_cases.rs"]
mod real_cases;
mod world;
