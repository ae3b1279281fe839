//! Which kinds there are, and how their objects are reached.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_client::{ApiResource, Discovery};
use windlass_core::{GroupResource, GroupVersion, Gvr, Str};

/// What a resource must be able to do for the garbage collector to work with it.
const VERBS: [&str; 3] = ["delete", "list", "watch"];

/// Where objects of a kind are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) gvr: Gvr,
    pub(super) is_namespaced: bool,
}

/// A resource that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    pub(super) kind: Str,
    pub(super) api_version: Str,
    pub(super) is_namespaced: bool,
}

/// What the server serves: all kinds in all versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    by_kind: HashMap<(Str, Str), Mapping>,
}

impl Served {
    pub(super) fn new(discovery: &Discovery) -> Self {
        let mut by_kind = HashMap::new();
        for resource in &discovery.resources {
            by_kind.entry(kind_of(resource)).or_insert_with(|| Mapping {
                gvr: resource.gvr.clone(),
                is_namespaced: resource.is_namespaced,
            });
        }
        Self { by_kind }
    }

    /// Takes over what was known before about group versions that the server could not tell about.
    pub(super) fn keep(&mut self, failed: &BTreeSet<GroupVersion>, before: &Self) {
        for (kind, mapping) in &before.by_kind {
            if failed.contains(mapping.gvr.group_version()) {
                self.by_kind
                    .entry(kind.clone())
                    .or_insert_with(|| mapping.clone());
            }
        }
    }

    /// Where objects of a kind are, if it is served.
    pub(super) fn mapping(&self, kind: &Str, api_version: &Str) -> Option<&Mapping> {
        self.by_kind.get(&(kind.clone(), api_version.clone()))
    }
}

fn kind_of(resource: &ApiResource) -> (Str, Str) {
    (
        resource.gvk.kind().into(),
        resource.gvk.api_version().into(),
    )
}

/// The group versions that the server could not tell about.
pub(super) fn failed(discovery: &Discovery) -> BTreeSet<GroupVersion> {
    let failed = discovery.failed.iter();
    failed.filter_map(|(name, _)| name.parse().ok()).collect()
}

/// The resources to watch: each in the version that the server prefers, if it can be listed,
/// watched and deleted.
pub(super) fn deletable(
    discovery: &Discovery,
    ignored: &BTreeSet<GroupResource>,
) -> BTreeMap<Gvr, Watched> {
    let failed = failed(discovery);
    let mut seen = BTreeSet::new();
    let preferred = discovery.resources.iter().filter(|resource| {
        // A version that cannot be parsed comes as an empty one.
        !resource.gvr.version().is_empty()
            && !failed.contains(resource.gvr.group_version())
            && seen.insert(resource.gvr.group_resource())
    });
    let able = preferred.filter(|resource| {
        let can = |verb: &&str| resource.verbs.iter().any(|it| it == verb);
        VERBS.iter().all(can) && !ignored.contains(&resource.gvr.group_resource())
    });
    able.map(|resource| {
        let (kind, api_version) = kind_of(resource);
        let watched = Watched {
            kind,
            api_version,
            is_namespaced: resource.is_namespaced,
        };
        (resource.gvr.clone(), watched)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use windlass_core::Gvk;

    use super::*;

    fn resource(group: &str, version: &str, name: &str, verbs: &[&str]) -> ApiResource {
        let place: GroupVersion = format!("{group}/{version}")
            .trim_start_matches('/')
            .parse()
            .unwrap_or(GroupVersion::constant("", ""));
        ApiResource {
            gvr: place.clone().with_resource(name.to_owned()),
            gvk: Gvk::parse(&place.to_string(), name).unwrap_or(Gvk::constant("", "", "")),
            singular: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            is_namespaced: true,
            subresources: Vec::new(),
        }
    }

    fn found(resources: Vec<ApiResource>, failed: &[&str]) -> Vec<String> {
        let discovery = Discovery {
            resources,
            failed: failed
                .iter()
                .map(|&it| (it.to_owned(), "down".to_owned()))
                .collect(),
            ..Discovery::default()
        };
        let ignored = super::super::Options::default().ignored;
        let found = deletable(&discovery, &ignored);
        found.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn only_resources_that_can_be_deleted_listed_and_watched_are_watched() {
        let resources = vec![
            resource("", "v1", "pods", &["delete", "list", "watch", "get"]),
            resource("", "v1", "bindings", &["create"]),
            resource("apps", "v1", "scales", &["delete", "list"]),
        ];
        assert_eq!(found(resources, &[]).len(), 1);
    }

    #[test]
    fn each_resource_is_watched_in_its_preferred_version() {
        let resources = vec![
            resource("apps", "v1", "deployments", &VERBS),
            resource("apps", "v1beta1", "deployments", &VERBS),
            resource("apps", "v1beta1", "scales", &VERBS),
        ];
        let found = found(resources, &[]);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("v1") && !found[0].contains("v1beta1"));
    }

    #[test]
    fn events_are_not_watched() {
        let resources = vec![
            resource("", "v1", "events", &VERBS),
            resource("events.k8s.io", "v1", "events", &VERBS),
        ];
        assert!(found(resources, &[]).is_empty());
    }

    #[test]
    fn a_version_that_cannot_be_read_and_a_group_that_failed_are_left_out() {
        let resources = vec![
            resource("", "v1", "pods", &VERBS),
            resource("a/b/c", "v1", "odd", &VERBS),
            resource("stale.io", "v1", "things", &VERBS),
        ];
        assert_eq!(found(resources, &["stale.io/v1"]).len(), 1);
        assert!(found(Vec::new(), &[]).is_empty());
    }
}
