//! What Deployments and their sets say in annotations.

use windlass_core::{Doc, Object, Str};

use super::set::Set;

/// The revision of a set, and that of the current one on the Deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The revisions that a set had before, when it was the current one.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many pods the Deployment was to have when the set was scaled last.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// How many pods all sets together were to have at most then.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// The revision to go back to, from clients of long ago.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// What `kubectl apply` remembers.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How long the list of former revisions gets.
const HISTORY_BYTES_LIMIT: usize = 2000;

/// What a Deployment and its sets have each for themselves.
const OWN: [&str; 6] = [
    LAST_APPLIED,
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
];

/// The annotations of an object.
pub(super) fn of(object: &Doc) -> Object {
    let annotations = object.meta().field("annotations").and_then(Doc::as_object);
    annotations.cloned().unwrap_or_else(Object::empty)
}

/// Those that a Deployment shares with its sets.
fn shared(annotations: &Object) -> impl Iterator<Item = (&Str, &Doc)> {
    annotations
        .iter()
        .filter(|(key, _)| !OWN.contains(&key.as_str()))
}

/// `onto` with all annotations that are shared from `from`. None is removed.
fn copied(from: &Object, onto: &Object) -> Object {
    shared(from).fold(onto.clone(), |all, (key, value)| {
        all.with(key, value.clone())
    })
}

/// The annotations of the current set, which is to have at least this revision. A set whose
/// revision is no number is left alone.
pub(super) fn for_existing(deployment: &Doc, set: &Set, revision: i64) -> Object {
    let before = of(set.doc());
    let Some(current) = set.revision() else {
        tracing::warn!(set = set.name(), "the revision is not a number");
        return before;
    };
    let mut after = copied(&of(deployment), &before);
    if current < revision {
        after = after.with(REVISION, revision.to_string().into());
        if let Some(former) = before.get(REVISION).and_then(Doc::as_str) {
            let history = set.doc().meta().annotation(REVISION_HISTORY).unwrap_or("");
            if let Some(history) = history_with(history, former) {
                after = after.with(REVISION_HISTORY, history.into());
            }
        }
    }
    after
}

/// The annotations of a set that is to be created.
pub(super) fn for_new(deployment: &Doc, revision: i64, desired: i64, max: i64) -> Object {
    copied(&of(deployment), &Object::empty())
        .with(REVISION, revision.to_string().into())
        .with(DESIRED_REPLICAS, desired.to_string().into())
        .with(MAX_REPLICAS, max.to_string().into())
}

/// The annotations of a Deployment that goes back to a set: its own ones, and those of the set.
pub(super) fn for_rollback(deployment: &Doc, set: &Set) -> Object {
    let before = of(deployment);
    let own = before.iter().filter(|(key, _)| OWN.contains(&key.as_str()));
    let own = Object::new(
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    );
    copied(&of(set.doc()), &own)
}

/// The list of former revisions with one more; the oldest go when it gets too long. `None` if
/// even that does not help.
fn history_with(history: &str, former: &str) -> Option<String> {
    if history.is_empty() || history.starts_with(',') {
        return Some(former.to_owned());
    }
    let mut kept: Vec<&str> = history.split(',').collect();
    let mut length = history.len() + former.len() + 1;
    while length > HISTORY_BYTES_LIMIT && !kept.is_empty() {
        length -= kept.remove(0).len() + 1;
    }
    if length > HISTORY_BYTES_LIMIT {
        return None;
    }
    kept.push(former);
    Some(kept.join(","))
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn set(annotations: &Doc) -> Set {
        Set::new(doc!({ "metadata": { "name": "web-1", "annotations": annotations } }))
    }

    #[test]
    fn a_set_that_becomes_current_again_remembers_its_former_revisions() {
        let deployment = doc!({ "metadata": { "name": "web", "annotations": { "note": "x" } } });
        let set = set(&doc!({ REVISION: "2", REVISION_HISTORY: "1" }));
        let after = Doc::from(for_existing(&deployment, &set, 5));
        let expected = doc!({ REVISION: "5", REVISION_HISTORY: "1,2", "note": "x" });
        assert_eq!(after, expected);
    }

    #[test]
    fn a_revision_never_falls_and_one_that_is_no_number_is_left_alone() {
        let deployment = doc!({ "metadata": { "name": "web", "annotations": { "note": "x" } } });
        let higher = set(&doc!({ REVISION: "7" }));
        let after = Doc::from(for_existing(&deployment, &higher, 5));
        assert_eq!(after, doc!({ REVISION: "7", "note": "x" }));
        let odd = set(&doc!({ REVISION: "seven" }));
        let after = Doc::from(for_existing(&deployment, &odd, 5));
        assert_eq!(
            after,
            doc!({ REVISION: "seven" }),
            "not even notes are copied"
        );
    }

    #[test]
    fn the_history_loses_its_oldest_entries_when_it_gets_too_long() {
        assert_eq!(history_with("", "1").unwrap(), "1");
        assert_eq!(history_with("1,2", "3").unwrap(), "1,2,3");
        let long = vec!["1000"; 400].join(",");
        assert_eq!(long.len(), 1999);
        let next = history_with(&long, "1001").unwrap();
        assert!(next.len() <= HISTORY_BYTES_LIMIT && next.ends_with(",1000,1001"));
        assert_eq!(history_with("1", &"9".repeat(3000)), None);
    }

    #[test]
    fn what_the_two_have_for_themselves_is_not_shared() {
        let annotations = doc!({
            LAST_APPLIED: "{}", REVISION: "3", "note": "x", "kubernetes.io/change-cause": "y"
        });
        let deployment = doc!({ "metadata": { "name": "web", "annotations": annotations } });
        let after = Doc::from(for_new(&deployment, 4, 10, 13));
        let expected = doc!({
            REVISION: "4", DESIRED_REPLICAS: "10", MAX_REPLICAS: "13", "note": "x",
            "kubernetes.io/change-cause": "y"
        });
        assert_eq!(after, expected);
        let set = set(&doc!({ REVISION: "1", "note": "old", "more": "z" }));
        let back = Doc::from(for_rollback(&deployment, &set));
        let expected = doc!({ LAST_APPLIED: "{}", REVISION: "3", "note": "old", "more": "z" });
        assert_eq!(back, expected);
    }
}
