//! Schemas behind a pointer.

use std::fmt;

use windlass_core::Doc;

use super::error::ApplyError;
use super::manage::{self, Write};
use super::memo::Creations;
use super::overlay;
use super::schema::Schema;

/// Apply and tracking for one kind. Every [`Schema`] is one; a server that learns of kinds while
/// it runs keeps them as `dyn Merging`.
pub trait Merging: Send + Sync + fmt::Debug {
    /// See [`apply`](super::apply).
    fn apply(
        &self,
        live: Option<&Doc>,
        config: &Doc,
        write: &Write<'_>,
        force: bool,
    ) -> Result<Doc, ApplyError>;
    /// See [`track`](super::track).
    fn track(&self, live: Option<&Doc>, new: &Doc, write: &Write<'_>) -> Doc;
    /// See [`create`](super::create).
    fn create(&self, new: &Doc, write: &Write<'_>, memory: &Creations) -> Doc;
    /// See [`overlay`](super::overlay).
    fn overlay(&self, whole: &Doc, partial: &Doc) -> Result<Doc, String>;
}

impl<S: Schema + Send + Sync + fmt::Debug> Merging for S {
    fn apply(
        &self,
        live: Option<&Doc>,
        config: &Doc,
        write: &Write<'_>,
        force: bool,
    ) -> Result<Doc, ApplyError> {
        manage::apply(*self, live, config, write, force)
    }

    fn track(&self, live: Option<&Doc>, new: &Doc, write: &Write<'_>) -> Doc {
        manage::track(*self, live, new, write)
    }

    fn create(&self, new: &Doc, write: &Write<'_>, memory: &Creations) -> Doc {
        manage::create(*self, new, write, memory)
    }

    fn overlay(&self, whole: &Doc, partial: &Doc) -> Result<Doc, String> {
        overlay::overlay(*self, whole, partial)
    }
}
