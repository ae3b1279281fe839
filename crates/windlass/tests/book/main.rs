//! The Rust code of README and book. A test of the binary checks that every block there is a part
//! of this code, of a lab, or of the operator in `tests/operator`.

#![allow(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests as well"
)]

mod how_to;
#[allow(
    dead_code,
    reason = "a test does not call the main function of a program"
)]
mod readme;
