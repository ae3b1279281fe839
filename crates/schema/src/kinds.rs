//! One consistent table of kinds: groups, their versions, their resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::resource::Resource;
use crate::version_order::priority;

/// One consistent state of the registry.
#[derive(Debug, Default)]
pub struct Table {
    /// Groups in the order of discovery.
    groups: Vec<Group>,
    /// By group, version and plural.
    by_path: HashMap<(String, String, String), Arc<Resource>, RandomState>,
}

/// The versions of one group, the preferred one first.
#[derive(Debug)]
pub struct Group {
    /// The name of the group, empty for the core group.
    pub name: String,
    /// The versions, the preferred one first.
    pub versions: Vec<Version>,
}

/// The resources of one version of a group, by their plural names.
#[derive(Debug)]
pub struct Version {
    /// The name of the version, such as `v1`.
    pub name: String,
    /// The rows, by their plural names.
    pub resources: BTreeMap<String, Arc<Resource>>,
}

impl Table {
    /// The table of these rows.
    #[must_use]
    pub fn new(built_in: &[Arc<Resource>], custom: &[Arc<Resource>]) -> Self {
        let mut table = Self::default();
        for row in built_in.iter().chain(custom) {
            table.add(Arc::clone(row));
        }
        // Custom groups have one priority, and among equals the name decides.
        let built_in = table.groups.iter().filter(|group| !group.is_custom());
        let built_in = built_in.count();
        table.groups[built_in..].sort_by(|a, b| a.name.cmp(&b.name));
        for group in &mut table.groups {
            if group.is_custom() {
                group
                    .versions
                    .sort_by_key(|version| priority(&version.name));
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
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// Whether a group version is served at all.
    #[must_use]
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?
            .versions
            .iter()
            .find(|known| known.name == version)
    }

    /// A group.
    #[must_use]
    pub fn group(&self, group: &str) -> Option<&Group> {
        self.groups.iter().find(|known| known.name == group)
    }

    /// The groups in the order of discovery.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
}

impl Group {
    /// Whether all its resources are custom ones.
    #[must_use]
    pub fn is_custom(&self) -> bool {
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
