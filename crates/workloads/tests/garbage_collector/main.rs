//! The garbage collector, seen by its user: on the embedded server on virtual time, and on a real
//! kube-apiserver, which these tests skip without its binaries.
#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

mod calls;
mod cases;
mod embedded;
mod faults;
mod lag;
mod real;
#[path = "../support/real_cases.rs"]
mod real_cases;
mod world;
