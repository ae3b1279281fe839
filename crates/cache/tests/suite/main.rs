//! Behaviour of informers and their parts, on virtual time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod fifo;
mod indexer;
mod informer;
mod properties;
mod recorder;
mod reflector;
mod script;
mod world;
