//! The clients against a real kube-apiserver. Without its binaries these tests return early; see
//! `windlass_envtest`.

mod auth;
mod discovery;
mod dynamic;
mod examples;
mod paging;
mod restart;
mod setup;
mod typed;
mod watch;
