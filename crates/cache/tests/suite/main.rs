//! Behaviour of informers and their parts, on virtual time.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

mod derived;
mod edges;
mod factory;
mod fifo;
mod indexer;
mod informer;
mod logged;
mod properties;
mod recorder;
mod reflector;
mod script;
mod threads;
mod world;
