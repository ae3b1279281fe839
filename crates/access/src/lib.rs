//! Access: authentication, authorization, impersonation and admission.
//!
//! ```text
//! authenticator ─▶ token        impersonate, escalation, review
//!                                    │
//! admission ─▶ authorizer ◀──────────┘
//!                 ├─▶ node ─▶ policy
//!                 └─▶ rbac ─▶ grants
//! ```
//!
//! What it reads comes through [`Objects`], which the server implements over its store.
//!
//! ```
//! use windlass_access::{Attributes, User, is_allowed};
//! # use windlass_access::{Grant, Objects};
//! # use windlass_core::Doc;
//! # use windlass_rules::reader::Reader;
//! # struct Empty;
//! # impl Reader for Empty {
//! #     fn find(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Doc> { None }
//! # }
//! # impl Objects for Empty {
//! #     fn list(&self, _: &str, _: &str, _: &str) -> Vec<Doc> { Vec::new() }
//! #     fn grants(&self, _: &User, _: &str) -> Vec<Grant> { Vec::new() }
//! #     fn pods_on(&self, _: &str, _: &str) -> Vec<Doc> { Vec::new() }
//! # }
//! let wanted = Attributes { verb: "get".into(), resource: "pods".into(), ..Attributes::default() };
//! assert!(is_allowed(&User::admin(), &wanted, &Empty));
//! assert!(!is_allowed(&User::new("ann", &[]), &wanted, &Empty));
//! ```
//!
//! Deliberately absent: the store, HTTP, files.

pub mod admission;
mod attributes;
mod authenticator;
mod authorizer;
mod coverage;
mod decision;
mod escalation;
mod grants;
mod impersonate;
pub mod matching;
mod node;
mod objects;
mod percent;
mod policy;
mod rbac;
mod review;
pub mod token;
mod token_file;
mod user;

pub use attributes::Attributes;
pub use authenticator::{AuthenticationOptions, Authenticator, certificate_user};
pub use authorizer::{authorize, check, is_allowed};
pub use decision::Decision;
pub use escalation::{GrantWrite, check_escalation};
pub use grants::{GROUP as ROLES_GROUP, Grant, GrantTable};
pub use impersonate::effective_user;
pub use node::{PodTable, node_of};
pub use objects::Objects;
pub use percent::percent_decode;
pub use policy::objects as first_roles;
pub use review::Reviewer;
pub use token_file::{StaticToken, TokenFileError, read_token_file};
pub use user::{MASTERS, User};
