//! Custom resources and the documents about all kinds.
//!
//! A definition is an object like any other, validated by [`definition`]. Each of its served
//! versions becomes a row ([`rows`]), which holds its schema compiled once ([`custom`]); writes to
//! its objects prune, default and validate by it, and evaluate its rules. [`openapi`] describes rows
//! for clients.
//!
//! ```text
//! rows ─▶ resource ─▶ custom (schema, rules, merging)
//!            ▲            ▲
//!    openapi, kinds    definition
//! ```
//!
//! ```
//! use windlass_core::doc;
//! use windlass_schema::rows;
//!
//! let schema = doc!({
//!     "type": "object", "properties": { "size": { "type": "integer", "default": 1 } }
//! });
//! let names = doc!({ "plural": "cats", "kind": "Cat" });
//! let definition = doc!({ "spec": {
//!     "group": "example.com", "names": names,
//!     "versions": [{ "name": "v1", "served": true, "storage": true,
//!         "schema": { "openAPIV3Schema": schema } }]
//! } });
//! let rows = rows::rows(&definition, definition.at("/spec/names"), |_, _| 0, || false);
//! let cat = rows[0].hooks.default(doc!({ "metadata": {} }));
//! assert_eq!(*cat.at("/size"), 1);
//! ```
//!
//! Deliberately absent: the store and HTTP; conversion webhooks.

pub mod actors;
pub mod built_in;
pub mod custom;
pub mod definition;
pub mod kinds;
pub mod needs;
pub mod openapi;
pub mod resource;
pub mod rows;
pub mod version_order;
