//! The facts about a kind that the runtime needs.

use windlass_client::Typed;
use windlass_core::{GroupVersion, Gvk, Gvr};

/// A kind, the resource that holds its objects, and whether they live in namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceKind {
    gvk: Gvk,
    gvr: Gvr,
    is_namespaced: bool,
}

impl ResourceKind {
    /// A kind with a type of its own.
    #[must_use]
    pub fn of<K: Typed>() -> Self {
        let gvr = K::gvr();
        let gvk = gvr
            .group_version()
            .clone()
            .with_kind(K::kind(&()).into_owned());
        Self {
            gvk,
            gvr,
            is_namespaced: K::is_namespaced(),
        }
    }

    /// A kind whose objects live in namespaces.
    #[must_use]
    pub fn namespaced(group_version: GroupVersion, kind: &str, resource: &str) -> Self {
        Self {
            gvk: group_version.clone().with_kind(kind.to_owned()),
            gvr: group_version.with_resource(resource.to_owned()),
            is_namespaced: true,
        }
    }

    /// A kind whose objects live outside of namespaces.
    #[must_use]
    pub fn cluster(group_version: GroupVersion, kind: &str, resource: &str) -> Self {
        Self {
            is_namespaced: false,
            ..Self::namespaced(group_version, kind, resource)
        }
    }

    /// Group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Group, version and resource.
    #[must_use]
    pub fn gvr(&self) -> &Gvr {
        &self.gvr
    }

    /// Returns true if its objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.is_namespaced
    }
}
