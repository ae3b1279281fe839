//! The parts of a control plane, which are not stored but looked at when asked for.

use windlass_core::{Doc, doc};

use crate::hooks::{Hooks, MadeFrom};

/// Hooks of component statuses.
#[derive(Debug)]
pub struct Components;

impl Hooks for Components {
    /// The store is a part of this server, and well if the server answers. How the others are is
    /// not known here.
    fn made(&self, _: &MadeFrom<'_>) -> Option<Vec<Doc>> {
        let store = doc!([{ "type": "Healthy", "status": "True", "message": "ok" }]);
        Some(vec![
            doc!({ "metadata": { "name": "controller-manager" } }),
            doc!({ "metadata": { "name": "scheduler" } }),
            doc!({ "metadata": { "name": "etcd-0" }, "conditions": store }),
        ])
    }

    fn deprecation(&self) -> Option<&'static str> {
        Some("v1 ComponentStatus is deprecated in v1.19+")
    }
}
