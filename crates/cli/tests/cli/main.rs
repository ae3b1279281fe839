//! The binary, from outside.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod assets;
mod clients;
mod commands;
mod common;
mod data;
mod errors;
mod faults;
#[cfg(unix)]
mod terminal;
mod test;
mod up;
