//! Behaviour of the store, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod budgets;
mod closing;
mod crash;
mod damage;
mod encryption;
mod expiry;
mod full;
mod kill;
mod missing;
mod model;
mod parts;
mod reopened;
mod repair;
mod sim_disk;
mod snapshots;
mod support;
mod threads;
mod watches;
mod writes;
