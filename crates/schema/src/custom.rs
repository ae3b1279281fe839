//! Custom resources: schemas compiled once, and what every write does by them.
//!
//! [`Version`] is one served version of a kind: it prunes, fills in defaults, validates, evaluates
//! rules, and says how fields merge.

mod correlate;
pub(crate) mod decl;
pub(crate) mod formats;
mod merge;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod validate;
pub(crate) mod values;
mod version;

pub(crate) use version::CustomHooks;
pub use version::{Scale, Version};
