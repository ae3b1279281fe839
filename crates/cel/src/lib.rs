//! The Common Expression Language as Kubernetes speaks it.
//!
//! An [`Environment`] declares variables; it compiles text to a checked [`Program`]; a program is
//! evaluated with [`Bindings`] and within a [`Budget`]. The rules of custom resources and the
//! selectors of devices are such programs.
//!
//! ```text
//! text ─▶ syntax (tokens, grammar, macros) ─▶ check (names, types, overloads) ─▶ plan ─▶ eval
//!                                                                          └─▶ cost (estimate)
//! ```
//!
//! ```
//! use windlass_cel::{Bindings, Budget, Decl, Environment, Type, Value};
//!
//! let env = Environment::builder().variable("x", Decl::plain(Type::Int, 1)).build();
//! let program = env.compile("x > 1 && x < 10")?;
//! let bindings = Bindings::new().with("x", Value::Int(5));
//! let value = program.evaluate(&bindings, &mut Budget::default())?;
//! assert_eq!(value.as_bool(), Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Values stay inside the document they come from until an expression reaches them. Costs are
//! counted in upstream's units, errors are in upstream's words. The parser and the checker are our
//! own: the available crates have no checker and no costs, and an expression must be refused when
//! it is written, not when it is first evaluated.
//!
//! Deliberately absent: protocol buffer messages, time zones by name (only offsets and UTC), and
//! extensions Kubernetes does not enable.

mod admission;
mod authorization;
mod base64;
mod cache;
mod check;
mod composition;
mod cost;
mod device;
mod environment;
mod error;
mod eval;
mod functions;
mod plan;
mod program;
mod syntax;
mod types;
mod value;

pub use admission::{AdmissionVariables, request_decl};
pub use authorization::{AccessDecision, AccessQuestion, Authorization, Authorizer};
pub use cache::ProgramCache;
pub use composition::{ComposedValues, Composition};
pub use cost::CostEstimate;
pub use device::{DEVICE, DeviceError, device_environment, device_value};
pub use environment::{Environment, EnvironmentBuilder};
pub use error::{CompileError, EvalError};
pub use eval::LazyFields;
pub use program::{Bindings, Budget, CALL_COST_LIMIT, OBJECT_COST_LIMIT, Program};
pub use types::{Decl, ListIdentity, Opaque, Type, escape};
pub use value::{Cidr, List, Map, Message, Semver, SemverError, Text, Timestamp, Url, Value};

/// Whether a text is a duration as Go writes it.
#[must_use]
pub fn is_duration(text: &str) -> bool {
    value::parse_duration(text).is_some()
}

/// Whether a text is an absolute URL or an absolute path.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.parse::<Url>().is_ok()
}
