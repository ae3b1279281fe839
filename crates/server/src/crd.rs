//! CustomResourceDefinitions: kinds that appear while the server runs.
//!
//! A definition is an object like any other, validated by [`definition`]. After every write to one
//! [`sync`] brings the registry in line before the request is answered: each served version
//! becomes a row, and only then is the definition called established. A row holds its schema
//! compiled once; writes to its objects prune, default and validate by it, and evaluate its rules.
//!
//! ```text
//! definition ─▶ sync ─▶ rows ─▶ registry
//!                         └▶ Version { schema } ◀── hooks of every write: prune, settle, validate, rules
//! ```
//!
//! A definition that is deleted stays until its last object is gone. Deliberately absent:
//! conversion webhooks; with the strategy `Webhook` versions are served as if it were `None`.

mod approval;
mod correlate;
mod decl;
mod definition;
mod expressions;
mod formats;
mod hooks;
mod merge;
mod path;
mod rows;
mod rules;
mod schema;
mod serve;
mod structural;
mod validate;
mod values;
mod version;

pub(crate) use hooks::DefinitionHooks;
pub(crate) use path::JsonPath;
pub(crate) use rows::priority;
pub(crate) use serve::{Definitions, FollowUp, load};
pub(crate) use version::{Scale, Version};

use windlass_core::{Doc, doc};

use crate::rest::put;

/// The group and resource of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const RESOURCE: &str = "customresourcedefinitions";
/// What keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition with a condition. The time of the last transition stays if there is none.
fn with_condition(
    crd: Doc,
    sort: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Doc,
) -> Doc {
    let conditions = crd.at("/status/conditions").items();
    let old = conditions.iter().find(|known| *known.at("/type") == sort);
    let since = match old {
        Some(old) if *old.at("/status") == status => old.at("/lastTransitionTime").clone(),
        _ => now,
    };
    let condition = doc!({
        "type": sort, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
    });
    let mut all: Vec<Doc> = conditions.to_vec();
    match all.iter_mut().find(|known| *known.at("/type") == sort) {
        Some(known) => *known = condition,
        None => all.push(condition),
    }
    put(crd, "/status/conditions", all)
}
