//! The client against servers that are scripted, hostile, or in this process.

#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

#[path = "../common/log.rs"]
mod log;

mod config;
mod hostile;
mod local;
mod protobuf;
mod retry;
mod script;
mod secrets;
