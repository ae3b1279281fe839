//! Changes of a namespace itself.

use std::collections::BTreeSet;

use windlass_client::WriteOptions;
use windlass_core::Doc;
use windlass_runtime::{Error, Result};

use super::{
    NAME, Remover,
    remove::{Part, found},
};

/// The finalizer of this controller, in the spec of a namespace.
const FINALIZER: &str = "kubernetes";

/// How often a change is tried again after somebody else was faster.
const CONFLICTS_LIMIT: usize = 20;

const FINALIZERS: &str = "/spec/finalizers";

/// Whether nothing in its spec keeps a namespace.
pub(super) fn is_finalized(namespace: &Doc) -> bool {
    namespace.at(FINALIZERS).items().is_empty()
}

/// The namespace in the phase that says that it is going.
pub(super) fn terminating(namespace: &Doc) -> Doc {
    if !namespace.meta().is_deleting() {
        return namespace.clone();
    }
    let changed = namespace.with("/status/phase", "Terminating");
    changed.unwrap_or_else(|_| namespace.clone())
}

/// The namespace without the finalizer of this controller. Those of others stay, each once.
fn finalized(namespace: &Doc) -> Doc {
    let finalizers = namespace.at(FINALIZERS).items().iter();
    let others: BTreeSet<&str> = finalizers
        .filter_map(Doc::as_str)
        .filter(|finalizer| *finalizer != FINALIZER)
        .collect();
    let others: Vec<Doc> = others.into_iter().map(Doc::from).collect();
    let changed = namespace.with(FINALIZERS, others);
    changed.unwrap_or_else(|_| namespace.clone())
}

impl Remover {
    /// Removes the finalizer of this controller.
    pub(super) async fn finalize(&self, namespace: Doc) -> Result<()> {
        self.update(namespace, finalized, Part::Finalize)
            .await
            .map(drop)
    }

    /// Changes a part of a namespace, on its latest version. Returns the namespace as it is then;
    /// `None` if it is gone.
    pub(super) async fn update(
        &self,
        mut namespace: Doc,
        change: impl Fn(&Doc) -> Doc,
        part: Part,
    ) -> Result<Option<Doc>> {
        let api = self.namespaces();
        let (name, options) = (
            namespace.meta().name().to_owned(),
            WriteOptions::manager(NAME),
        );
        for _ in 0..CONFLICTS_LIMIT {
            let changed = change(&namespace);
            if changed == namespace {
                return Ok(Some(namespace));
            }
            let written = api.update_part(&name, part.name(), &changed, &options);
            match written.await {
                Err(error) if error.is_conflict() => {}
                answer => return Ok(found(answer)?),
            }
            let Some(latest) = found(api.get(&name).await)? else {
                return Ok(None);
            };
            if latest.meta().uid_str() != namespace.meta().uid_str() {
                return Err(Error::msg("namespace uid has changed across retries"));
            }
            namespace = latest;
        }
        Err(Error::msg(format!(
            "namespace {name} has changed {CONFLICTS_LIMIT} times while it was to be updated"
        )))
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn a_namespace_is_finalized_when_its_spec_has_no_finalizers() {
        assert!(is_finalized(&doc!({ "spec": {} })));
        assert!(is_finalized(&doc!({ "spec": { "finalizers": [] } })));
        assert!(!is_finalized(
            &doc!({ "spec": { "finalizers": ["kubernetes"] } })
        ));
    }

    #[test]
    fn the_finalizers_of_others_stay_sorted_and_each_once() {
        let namespace =
            doc!({ "spec": { "finalizers": ["z.io/x", "kubernetes", "a.io/x", "z.io/x"] } });
        let expected = doc!({ "spec": { "finalizers": ["a.io/x", "z.io/x"] } });
        assert_eq!(finalized(&namespace), expected);
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let active = doc!({ "metadata": {}, "status": { "phase": "Active" } });
        assert_eq!(terminating(&active), active);
        let deleted = doc!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "status": { "phase": "Active" },
        });
        assert_eq!(terminating(&deleted).str_at("/status/phase"), "Terminating");
    }
}
