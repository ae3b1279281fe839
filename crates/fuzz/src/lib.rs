//! Fuzz targets: every parser, patch and decoder of windlass that reads bytes from outside.
//!
//! A target is a function of bytes. It panics when an oracle is violated: a round trip that loses
//! something, a result other than that of a naive model, an answer with a code of 500 or above. It
//! also panics when it takes more CPU time than a bound that is linear in the length of the input
//! ([`work`]). What it returns says whether the code under test took the input; the driver keeps
//! such inputs and mutates them further.
//!
//! The targets run in three ways: `cargo test -p windlass-fuzz` for a fixed number of inputs,
//! `cargo run -p windlass-fuzz -- TARGET --seconds N --seed S` for longer, and under libFuzzer
//! with the targets of `fuzz/`.
//!
//! ```
//! use windlass_fuzz::{Outcome, targets};
//!
//! assert_eq!(targets::json(br#"{"a":[1,2]}"#), Outcome::Accepted);
//! assert_eq!(targets::json(b"{"), Outcome::Refused);
//! ```
//!
//! A panic is the report of a fault here, so this crate may panic where others must not.

mod driver;
mod model;
mod mutate;
mod rig;
mod seeds;
pub mod targets;
pub mod work;

pub use driver::{Report, find, run};
pub use mutate::{LEN_MAX, Mutator};
pub use targets::{TARGETS, Target};

/// Separates the parts of an input that has several, such as a document and its patch. JSON and
/// YAML cannot hold this byte unescaped.
pub const SEPARATOR: u8 = 0x1e;

/// The verdict of the code under test on one input.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The input was taken, and every oracle held.
    Accepted,
    /// The input was refused with an error.
    Refused,
}

impl Outcome {
    /// The outcome of a condition.
    fn of(is_accepted: bool) -> Self {
        if is_accepted {
            Self::Accepted
        } else {
            Self::Refused
        }
    }
}

/// The parts of an input. Missing parts are empty.
fn parts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut pieces = data.splitn(N, |byte| *byte == SEPARATOR);
    std::array::from_fn(|_| pieces.next().unwrap_or_default())
}
