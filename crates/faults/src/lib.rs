//! Faults between API clients and a server.
//!
//! A [`FaultRule`] names requests and says what goes wrong with them. A [`FaultPlan`] holds the
//! rules, decides about each request and remembers it. [`Position`]s are the places of a run at
//! which a fault can be injected in the next one, and [`normalized`] makes what two runs left
//! behind comparable.
//!
//! ```
//! use windlass_faults::{FaultAction, FaultPlan, RequestFacts};
//!
//! let plan = FaultPlan::new(vec!["lose,verb=create,resource=pods,at=2".parse().unwrap()]);
//! let request = RequestFacts { verb: "create", resource: "pods", ..RequestFacts::default() };
//! assert_eq!(plan.decide(&request).action, None);
//! assert_eq!(plan.decide(&request).action, Some(FaultAction::LoseAnswer));
//! ```
//!
//! Nothing here sends, waits or sleeps: whoever serves the requests carries the faults out.

mod normal;
mod plan;
mod position;
mod request;
mod rule;

pub use normal::{difference, normalized};
pub use plan::{Decision, FaultPlan, SeenRequest};
pub use position::Position;
pub use request::RequestFacts;
pub use rule::{FaultAction, FaultRule, RuleError};
