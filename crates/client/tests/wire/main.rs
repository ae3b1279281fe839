//! The client against servers that are scripted, hostile, or in this process.

mod config;
mod hostile;
mod local;
mod retry;
mod script;
mod secrets;
