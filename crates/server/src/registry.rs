//! The one table of kinds.
//!
//! A kind is a [`Resource`]: names, scope, verbs, subresources, columns and rules, plus optional
//! [`Hooks`]. Every handler works on rows; nothing else in the server knows a kind by name. The
//! built-in rows are in `rows`; further rows may be added while the server runs.

mod needs;
mod resource;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::crd;

pub(crate) use needs::{AfterWrite, Allocation, Creation, Needs};
pub(crate) use resource::{
    Conversion, GarbagePolicy, Generation, Hooks, NameRule, Resource, Scope, SelectableField, Sub,
    Subresource,
};

/// All kinds that are served.
#[derive(Debug)]
pub(crate) struct Registry {
    /// Replaced as a whole when rows change, so that a request sees one consistent table.
    table: RwLock<Arc<Table>>,
    /// The built-in rows.
    built_in: Vec<Arc<Resource>>,
}

/// One consistent state of the registry.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Groups in the order of discovery.
    groups: Vec<Group>,
    /// By group, version and plural.
    by_path: HashMap<(String, String, String), Arc<Resource>, RandomState>,
}

/// The versions of one group, the preferred one first.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<Version>,
}

/// The resources of one version of a group, by their plural names.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
}

impl Registry {
    /// The built-in kinds.
    pub(crate) fn built_in() -> Self {
        let built_in: Vec<Arc<Resource>> = rows::all().into_iter().map(Arc::new).collect();
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

impl Table {
    fn new(built_in: &[Arc<Resource>], custom: &[Arc<Resource>]) -> Self {
        let mut table = Self::default();
        for row in built_in.iter().chain(custom) {
            table.add(Arc::clone(row));
        }
        for group in &mut table.groups {
            if group.is_custom() {
                group
                    .versions
                    .sort_by_key(|version| crd::priority(&version.name));
            }
        }
        table
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let (group, version) = (resource.gvk.group(), resource.gvk.version());
        let path = (
            group.to_owned(),
            version.to_owned(),
            resource.plural.to_string(),
        );
        let at = match self.groups.iter().position(|known| known.name == group) {
            Some(at) => at,
            None => {
                self.groups.push(Group {
                    name: group.to_owned(),
                    versions: Vec::new(),
                });
                self.groups.len() - 1
            }
        };
        self.groups[at]
            .version(version)
            .resources
            .insert(path.2.clone(), Arc::clone(&resource));
        self.by_path.insert(path, resource);
    }

    /// The row of a group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Whether a group version is served at all.
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?
            .versions
            .iter()
            .find(|known| known.name == version)
    }

    /// A group.
    pub(crate) fn group(&self, group: &str) -> Option<&Group> {
        self.groups.iter().find(|known| known.name == group)
    }

    /// The groups in the order of discovery.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

impl Group {
    /// Whether all its resources are custom ones.
    pub(crate) fn is_custom(&self) -> bool {
        let mut rows = self
            .versions
            .iter()
            .flat_map(|version| version.resources.values());
        rows.all(|row| row.is_custom)
    }

    fn version(&mut self, name: &str) -> &mut Version {
        let at = match self.versions.iter().position(|known| known.name == name) {
            Some(at) => at,
            None => {
                self.versions.push(Version {
                    name: name.to_owned(),
                    resources: BTreeMap::new(),
                });
                self.versions.len() - 1
            }
        };
        &mut self.versions[at]
    }
}
