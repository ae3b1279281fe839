//! Rules of the built-in kinds: defaults, preparation, validation, table cells.
//!
//! All of it is functions from documents to documents, or to errors about their fields. The rules of
//! a kind are its [`hooks::Hooks`]; [`kinds`] has one implementation per kind. A refusal is a
//! [`status::Status`].
//!
//! ```text
//! kinds ─▶ hooks ─▶ status ─▶ field
//!   ▲        └─▶ reader (other objects, by name)
//! table
//! ```
//!
//! ```
//! use windlass_core::doc;
//! use windlass_rules::field::FieldErrors;
//! use windlass_rules::hooks::Hooks;
//! use windlass_rules::kinds::Services;
//!
//! let service = Services.default(doc!({ "spec": { "ports": [{ "port": 80 }] } }));
//! assert_eq!(*service.at("/spec/ports/0/protocol"), "TCP");
//! let mut errors = FieldErrors::default();
//! Services.validate(&doc!({ "spec": { "ports": [{ "port": 0 }] } }), &mut errors);
//! assert!(errors.to_string().contains("must be between 1 and 65535"));
//! ```
//!
//! Deliberately absent: the store, HTTP, waiting. Rules that look at other objects ask a
//! [`reader::Reader`].

pub mod client_config;
pub mod edit;
pub mod field;
pub mod hooks;
pub mod json_path;
pub mod kinds;
pub mod labels;
pub mod match_conditions;
pub mod reader;
pub mod status;
pub mod table;
