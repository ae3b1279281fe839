//! Informers against a real kube-apiserver. Without its binaries these tests return early; see
//! `windlass_envtest`.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

mod faults;
mod kinds;
mod setup;
mod storm;
