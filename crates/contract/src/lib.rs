//! The contract of the API: behaviour that the embedded server and the real one must share.
//!
//! The cases are in `tests/contract`. Each is one async function over a [`Scope`], written once;
//! [`cases!`] makes two tests of it, `embedded::NAME` and `real::NAME`. A case that fails on the
//! real server is a wrong case; one that fails on the embedded server alone is a bug there.
//!
//! ```text
//! cargo test -p windlass-contract real::       # what upstream does
//! cargo test -p windlass-contract embedded::   # what this project does
//! ```
//!
//! Requests go over TLS to both, one server of each sort for all cases of a process, so each case
//! has a namespace of its own and derives names outside of it from that ([`Scope::unique`]).
//! Nothing empties or removes namespaces. A watch is read up to a deadline, and that something
//! does *not* happen is shown by a later event that arrives first; no case sleeps.
//!
//! The real server needs its binaries (see [`windlass_envtest`]); its half is skipped without
//! them.

mod answer;
mod cases;
mod edit;
mod fields;
mod history;
mod http;
pub mod objects;
mod paths;
mod reading;
mod scope;
mod server;
mod watch;
mod webhook;

pub use answer::{Answer, Refusal};
pub use edit::Edit;
pub use fields::{applier, managers, updater};
pub use http::Request;
pub use reading::{names, number, revision};
pub use scope::{Forgotten, Scope, run_on_embedded, run_on_real};
pub use server::{Server, embedded_kubeconfig, real_kubeconfig};
pub use watch::{Event, Watch};
pub use webhook::{Received, Reply, Webhook};
