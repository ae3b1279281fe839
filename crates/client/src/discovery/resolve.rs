//! Names for resources.

use windlass_core::{GroupKind, Gvk, Gvr};

use super::{ApiResource, Discovery};

impl Discovery {
    /// A resource by its exact group, version and plural name.
    #[must_use]
    pub fn resource(&self, gvr: &Gvr) -> Option<&ApiResource> {
        self.resources.iter().find(|resource| resource.gvr == *gvr)
    }

    /// The resource that holds objects of a kind.
    #[must_use]
    pub fn resource_of(&self, kind: &Gvk) -> Option<&ApiResource> {
        self.resources.iter().find(|resource| resource.gvk == *kind)
    }

    /// The resource that holds objects of a kind, in the version that the server prefers.
    #[must_use]
    pub fn preferred(&self, kind: &GroupKind) -> Option<&ApiResource> {
        self.resources
            .iter()
            .find(|resource| resource.gvk.group_kind() == *kind)
    }

    /// The resources of a category, such as `all`, each in its preferred version.
    #[must_use]
    pub fn category(&self, category: &str) -> Vec<&ApiResource> {
        let mut seen = std::collections::BTreeSet::new();
        let members = self
            .resources
            .iter()
            .filter(|it| it.categories.iter().any(|c| c == category));
        members
            .filter(|resource| seen.insert(resource.gvr.group_resource()))
            .collect()
    }

    /// The resource that a user means. A plural name wins over a singular one, that over a kind,
    /// and that over a short name. Among several, the first group of the server wins, and in it
    /// the version that the server prefers.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&ApiResource> {
        let (word, place) = name
            .split_once('.')
            .map_or((name, None), |(word, rest)| (word, Some(rest)));
        let word = word.to_ascii_lowercase();
        let places = || {
            self.resources
                .iter()
                .filter(|resource| resource.is_at(place))
        };
        let plural = places().find(|resource| resource.gvr.resource() == word);
        let singular = || places().find(|resource| resource.singular == word);
        let kind = || places().find(|resource| resource.gvk.kind().eq_ignore_ascii_case(&word));
        let short = || places().find(|resource| resource.short_names.contains(&word));
        plural.or_else(singular).or_else(kind).or_else(short)
    }
}

impl ApiResource {
    /// Returns true if `place` names the group, or version and group, of this resource: the part of
    /// `deployments.apps` or `deployments.v1.apps` behind the first dot.
    fn is_at(&self, place: Option<&str>) -> bool {
        let Some(place) = place else {
            return true;
        };
        let (group, version) = (self.gvr.group(), self.gvr.version());
        let after_version = place.strip_prefix(version);
        place == group
            || after_version == Some("") && group.is_empty()
            || after_version.and_then(|rest| rest.strip_prefix('.')) == Some(group)
    }
}
