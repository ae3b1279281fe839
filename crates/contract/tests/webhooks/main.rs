//! The contract of admission webhooks and conversion webhooks, by topic. See the crate for how a
//! case runs on both servers.

mod answers;
mod configurations;
mod failures;
mod matching;
mod metrics;
mod mutating;
mod operations;
mod support;
