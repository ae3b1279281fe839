//! The binary under stress: killed while it works, followed by the clients that people use.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod clients;
mod devices;
mod kill;
mod kubectl;
mod process;
mod quotas;
mod upstream;
