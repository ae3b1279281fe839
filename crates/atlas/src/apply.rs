//! Server-side apply: managed fields, and merging of configurations.
//!
//! Every write of an object is attributed to a manager. [`apply`] merges a configuration into the
//! live object, removes what the manager applied before and no longer does, and refuses to change
//! what other managers have set, unless forced. [`track`] attributes the changes of any other
//! write. Both keep `metadata.managedFields`.
//!
//! A [`Schema`] says how lists and maps merge: [`AtlasSchema`] for built-in kinds; custom resources
//! bring their own; [`Deduced`] follows the values, for kinds without a schema. A [`Merging`] is
//! any of them behind a pointer. All versions of a kind are taken to have the same fields.

mod cap;
mod collect;
mod compare;
mod created;
mod deduced;
mod element;
mod encode;
mod entries;
mod error;
mod go;
mod last_applied;
mod manage;
mod memo;
mod merge;
mod merging;
mod overlay;
mod remove;
mod scale;
mod schema;
mod set;
mod tree;
mod validate;

pub use cap::MANAGERS_LIMIT;
pub use deduced::Deduced;
pub use element::{PathElement, Scalar};
pub use encode::FieldsError;
pub use entries::ManagedFieldsError;
pub use error::{ApplyError, Conflict};
pub use go::plain as go_text;
pub use manage::{Write, apply, create, track};
pub use memo::{CREATIONS_LIMIT, Creations};
pub use merging::Merging;
pub use overlay::overlay;
pub use scale::{ScalePaths, parent_entries, scale_entries};
pub use schema::{AtlasSchema, ListKeys, ListKind, ScalarKind, Schema, Structure};
pub use set::FieldSet;

#[cfg(test)]
mod tests;
