//! The contract of admission policies, by topic. See the crate for how a case runs on both servers.

mod bindings;
mod decisions;
mod definitions;
mod expressions;
mod matching;
mod mutations;
mod params;
mod support;
