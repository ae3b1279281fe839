//! Leader election: of several copies of a program one works, and another takes over.
//!
//! The copies share a Lease. Its holder renews it; the others watch it change. No clock is ever
//! compared with another machine's: a candidate only measures, on its own clock, how long the
//! Lease has not changed. See [`Election`] for the rules, [`LeaderElector`] for the loop around
//! them, and [`LeaderGuard`] for what keeps a leader that was paused from writing.

mod elector;
mod guard;
mod lease;
mod machine;
mod options;
mod record;

pub use elector::{LeaderElector, LeadershipLost};
pub(crate) use guard::is_write;
pub use guard::{GuardLayer, GuardService, LeaderGuard, NotLeader};
pub use lease::{LeaseError, LeaseLock};
pub use machine::{Answer, Election, Request, Turn};
pub use options::{ElectionOptions, ElectionOptionsError, JITTER_FACTOR};
pub use record::LeaseRecord;

#[cfg(test)]
mod tests;
