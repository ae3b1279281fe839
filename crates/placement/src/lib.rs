//! Where pods go and what they get there: the scheduler, ResourceClaims and the allocation of
//! devices, and nodes and a driver that pretend, for clusters without machines.
//!
//! Written with nothing a user of windlass could not use. Each controller is a module under
//! upstream's name: `NAME`, `Options` with upstream's defaults, and `add_to`, which adds it to a
//! [`Manager`](windlass_runtime::Manager).
//!
//! ```
//! assert_eq!(windlass_placement::claims::NAME, "resourceclaim-controller");
//! ```

pub mod allocator;
pub mod claims;
pub mod driver;
pub mod dynamic_resources;
pub mod node;
mod pod;
pub mod scheduler;
pub mod volume_binding;
