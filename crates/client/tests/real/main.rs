//! The clients against a real kube-apiserver. Without its binaries these tests return early; see
//! `windlass_envtest`.

#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

#[path = "../common/log.rs"]
mod log;

mod auth;
mod discovery;
mod dynamic;
mod paging;
mod protobuf;
mod restart;
mod setup;
mod typed;
mod watch;
