//! The one table of kinds.
//!
//! A kind is a [`Resource`]: names, scope, verbs, subresources, columns and rules, plus optional
//! hooks. Every handler works on rows; nothing else in the server knows a kind by name. The
//! built-in rows are in `rows`; further rows may be added while the server runs.

use std::sync::Arc;

use parking_lot::RwLock;

use windlass_schema::built_in;
pub(crate) use windlass_schema::kinds::{Group, Table, Version};
pub(crate) use windlass_schema::needs::{AfterWrite, Allocation, Creation};
pub(crate) use windlass_schema::resource::{
    GarbagePolicy, Generation, NameRule, Resource, SelectableField, Sub, Subresource,
};

/// All kinds that are served.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Replaced as a whole when rows change, so that a request sees one consistent table.
    table: RwLock<Arc<Table>>,
    /// The built-in rows.
    built_in: Vec<Arc<Resource>>,
}

impl Registry {
    /// The built-in kinds, with the resource metrics of pretend nodes or without.
    pub(crate) fn built_in(resource_metrics: bool) -> Self {
        let mut rows = built_in::all();
        if resource_metrics {
            rows.extend(built_in::resource_metrics());
        }
        let built_in: Vec<Arc<Resource>> = rows.into_iter().map(Arc::new).collect();
        Self {
            table: RwLock::new(Arc::new(Table::new(&built_in, &[]))),
            built_in,
        }
    }

    /// Serves these rows beside the built-in ones, and no others.
    pub(crate) fn set_custom(&self, rows: &[Arc<Resource>]) {
        let table = Table::new(&self.built_in, rows);
        *self.table.write() = Arc::new(table);
    }

    /// The present table.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }
}
