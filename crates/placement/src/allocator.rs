//! The structured allocator: finds devices for the claims of a pod on one node.
//!
//! A [`Plan`] is what the claims of one pod ask for, with classes looked up and selectors
//! compiled. An [`Inventory`] is what drivers publish. [`Plan::allocate`] brings them together for
//! one node: a depth-first search in a fixed order, whose first solution wins. It is a function of
//! its arguments, the clock included: it reads nothing else, waits for nothing, and gives the same
//! answer every time.
//!
//! The search is exhaustive. What keeps it short changes no answer: a request with fewer
//! candidates than it needs fails at once, a value that too few devices share is not tried, and of
//! devices that no request and no constraint can tell apart only the first is tried.
//!
//! Devices that consume shared counters, may be allocated several times, or wait for conditions
//! are not offered: those features are absent, and treated as Kubernetes treats them when they are
//! switched off.

mod candidates;
mod cel;
mod device;
mod error;
mod inventory;
mod node_selector;
mod plan;
mod pools;
mod refusal;
mod result;
mod search;
mod selectors;

pub use device::{Device, DeviceId, Slice};
pub use error::AllocateError;
pub use inventory::Inventory;
pub use node_selector::{NodeSelectorError, matches as node_matches};
pub use plan::{Classes, Plan};
pub use pools::{Pool, PoolState};
pub use refusal::{Refusal, RequestRefusal};
pub use search::{Deadline, InUse, Outcome};
pub use selectors::{Compiler, DeviceView, Selector, Selectors};

/// Devices in one claim, at most.
pub const DEVICES_LIMIT: usize = 32;
