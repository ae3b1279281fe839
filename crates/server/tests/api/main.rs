//! Behaviour of the server as a client sees it, over the service in process and over TLS.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod accounts;
mod audit;
mod bad_input;
mod create;
mod custom;
mod custom_large;
mod delete;
mod discovery;
mod kinds;
mod limits;
mod list;
mod namesakes;
mod options;
mod overload;
mod patch;
mod pods;
mod quotas;
mod restored;
mod rights;
mod security;
mod size;
mod storage;
mod subresources;
mod support;
mod tls;
mod typed;
mod update;
mod watch;
mod work;
