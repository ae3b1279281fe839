//! The structured allocator, by itself.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod answers;
mod brute_force;
mod cel;
mod choices;
mod counts;
mod limits;
mod objects;
mod selection;
