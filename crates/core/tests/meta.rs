//! Metadata, owners, finalizers and conditions, read and edited where they stand.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use windlass_core::{
    Condition, Doc, Gvk, OwnerRef, Selector, Time, Uid, condition, doc, with_condition,
};

const REPLICA_SET: Gvk = Gvk::constant("apps", "v1", "ReplicaSet");

fn pod() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "42",
            "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": { "app": "web", "tier": "front" },
            "finalizers": ["a/b", "c/d"],
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-0" },
                { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2",
                  "controller": true, "blockOwnerDeletion": true },
                { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "u-3",
                  "controller": true }
            ]
        }
    })
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

#[test]
fn metadata_is_read_where_it_stands() {
    let pod = pod();
    let meta = pod.meta();
    assert_eq!(meta.key().to_string(), "shop/web-1");
    assert_eq!((meta.uid(), meta.generation()), (Uid::from("u-1"), 3));
    assert_eq!(
        meta.revision()
            .map(|revision| revision.to_string())
            .as_deref(),
        Some("42")
    );
    assert_eq!(
        meta.creation_timestamp(),
        Some(time("2026-01-02T03:04:05Z"))
    );
    assert_eq!(
        (meta.is_deleting(), meta.deletion_timestamp()),
        (false, None)
    );
    assert_eq!(pod.gvk().unwrap().to_string(), "/v1, Kind=Pod");
    assert!(
        "app=web,tier in (front)"
            .parse::<Selector>()
            .unwrap()
            .matches(&meta.labels())
    );
    assert!(
        !"app=db"
            .parse::<Selector>()
            .unwrap()
            .matches(&meta.labels())
    );
}

#[test]
fn what_is_no_object_has_empty_metadata() {
    for doc in [Doc::NULL, doc!([1]), doc!({ "metadata": 7 }), doc!({})] {
        let meta = doc.meta();
        assert_eq!(
            (meta.name(), meta.namespace(), meta.uid_str()),
            ("", "", "")
        );
        assert_eq!((meta.generation(), meta.owner_refs().count()), (0, 0));
        assert!(meta.labels().is_empty() && meta.controller().is_none());
        assert_eq!(doc.without_finalizer("x"), doc);
    }
}

#[test]
fn a_deletion_time_of_null_is_none() {
    let pod = pod()
        .with("/metadata/deletionTimestamp", Doc::NULL)
        .unwrap();
    assert!(!pod.meta().is_deleting());
    let pod = pod
        .with("/metadata/deletionTimestamp", "2026-01-02T03:04:06Z")
        .unwrap();
    assert!(pod.meta().is_deleting());
}

#[test]
fn the_controller_is_the_first_owner_that_says_so() {
    let pod = pod();
    let controller = pod.meta().controller().unwrap();
    assert_eq!(
        (controller.name.as_str(), controller.group()),
        ("web", "apps")
    );
    assert!(pod.meta().is_controlled_by(&Uid::from("u-2")));
    assert!(
        !pod.meta().is_controlled_by(&Uid::from("u-3")),
        "only the first one counts"
    );
    assert!(
        !pod.meta().is_controlled_by(&Uid::from("u-0")),
        "an owner that manages nothing"
    );
}

#[test]
fn an_owner_reference_survives_the_way_through_a_document() {
    let owner = doc!({ "metadata": { "name": "web", "uid": "u-2" } });
    let reference = OwnerRef::controller_of(&owner, &REPLICA_SET);
    let written = Doc::from(&reference);
    assert_eq!(
        written,
        doc!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2",
               "controller": true, "blockOwnerDeletion": true })
    );
    let child = doc!({ "metadata": { "ownerReferences": [written] } });
    assert_eq!(child.meta().controller(), Some(reference));
}

#[test]
fn finalizers_are_added_once_and_the_last_one_takes_the_list_along() {
    let pod = pod();
    let added = pod.with_finalizer("x/y");
    assert_eq!(
        added.meta().finalizers().collect::<Vec<_>>(),
        ["a/b", "c/d", "x/y"]
    );
    assert_eq!(added.with_finalizer("x/y"), added);
    assert_eq!(added.without_finalizer("x/y"), pod);
    let none = pod.without_finalizer("a/b").without_finalizer("c/d");
    assert_eq!(none.pointer("/metadata/finalizers"), None);
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let (first, later) = (time("2026-01-01T00:00:00Z"), time("2026-01-01T00:01:00Z"));
    let ready = |status, reason| Condition::new("Ready", status, reason, "text");
    let one = with_condition(&pod(), &ready(false, "Starting"), first);
    let two = with_condition(&one, &ready(false, "StillStarting"), later);
    let three = with_condition(&two, &ready(true, "Started"), later);
    let found = |object: &Doc| condition(object, "Ready").unwrap();
    assert_eq!(found(&one).last_transition_time, Some(first));
    assert_eq!(
        (
            found(&two).reason.as_str(),
            found(&two).last_transition_time
        ),
        ("StillStarting", Some(first))
    );
    assert_eq!(
        (found(&three).is_true(), found(&three).last_transition_time),
        (true, Some(later))
    );
    assert_eq!(three.at("/status/conditions").items().len(), 1);
}

#[test]
fn a_condition_leaves_the_others_and_unknown_fields_alone() {
    let before = doc!({ "status": { "conditions": [
        { "type": "Other", "status": "True" },
        { "type": "Ready", "status": "True", "observedGeneration": 7, "lastTransitionTime": "2026-01-01T00:00:00Z" }
    ] } });
    let now = time("2026-02-01T00:00:00Z");
    let after = with_condition(&before, &Condition::new("Ready", false, "R", "m"), now);
    assert_eq!(
        after.at("/status/conditions/0"),
        before.at("/status/conditions/0")
    );
    assert_eq!(after.at("/status/conditions/1/observedGeneration"), 7);
    assert_eq!(
        after.at("/status/conditions/1/lastTransitionTime"),
        "2026-02-01T00:00:00Z"
    );
    assert_eq!(condition(&after, "Missing"), None);
}
