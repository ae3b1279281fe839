//! Labels, annotations, finalizers and owners.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    label_key_must_be_qualified,
    label_value_must_be_short_and_plain,
    annotation_key_must_be_qualified,
    annotation_value_may_be_anything,
    annotations_have_a_limit,
    finalizer_must_be_qualified,
    orphan_and_foreground_exclude_each_other,
    owner_must_be_named_in_full,
    only_one_owner_may_control,
    event_cannot_own,
    equal_owners_are_kept_once_with_a_warning,
    owners_are_kept_as_given,
    generate_name_is_validated,
    empty_labels_are_left_out,
    uid_of_a_patch_that_adopts_is_a_precondition,
];

fn with(pointer: &str, value: Doc) -> Doc {
    config_map("a").set(pointer, value)
}

fn owner(name: &str, uid: &str) -> Doc {
    doc!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid })
}

async fn label_key_must_be_qualified(t: &Scope) {
    for key in ["a b", "-a", "a/b/c", "/a", "UPPER.com/a b"] {
        let labels = Doc::from(windlass_core::Object::new(vec![(key.into(), "v".into())]));
        let answer = t
            .create("configmaps", &with("/metadata/labels", labels))
            .await;
        answer
            .fails(422, "Invalid")
            .because("FieldValueInvalid", "metadata.labels");
    }
}

async fn label_value_must_be_short_and_plain(t: &Scope) {
    let long = "a".repeat(64);
    for value in ["c d", "-c", long.as_str()] {
        let answer = t
            .create("configmaps", &with("/metadata/labels/a", value.into()))
            .await;
        answer
            .fails(422, "Invalid")
            .because("FieldValueInvalid", "metadata.labels");
    }
    t.create(
        "configmaps",
        &with("/metadata/labels/a", "a".repeat(63).into()),
    )
    .await
    .is(201);
}

async fn annotation_key_must_be_qualified(t: &Scope) {
    let answer = t
        .create(
            "configmaps",
            &with("/metadata/annotations", doc!({ "a b": "c" })),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.annotations");
}

async fn annotation_value_may_be_anything(t: &Scope) {
    let text = "spaces, \"quotes\", \u{fc}n\u{ef}c\u{f6}de\nand lines";
    let made = t
        .made("configmaps", &with("/metadata/annotations/a", text.into()))
        .await;
    assert_eq!(made.at("/metadata/annotations/a"), text);
}

async fn annotations_have_a_limit(t: &Scope) {
    let large = "x".repeat(256 << 10);
    let answer = t
        .create("configmaps", &with("/metadata/annotations/a", large.into()))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than \
             262144 bytes",
        )
        .because("FieldValueTooLong", "metadata.annotations");
}

async fn finalizer_must_be_qualified(t: &Scope) {
    let answer = t
        .create("configmaps", &with("/metadata/finalizers", doc!(["mine"])))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "ConfigMap \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"mine\": name is \
             neither a standard finalizer name nor is it fully qualified",
        )
        .because("FieldValueInvalid", "metadata.finalizers[0]");
}

async fn orphan_and_foreground_exclude_each_other(t: &Scope) {
    let both = doc!(["orphan", "foregroundDeletion"]);
    let answer = t
        .create("configmaps", &with("/metadata/finalizers", both))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.finalizers")
        .mentions("finalizer orphan and foregroundDeletion cannot be both set");
}

async fn owner_must_be_named_in_full(t: &Scope) {
    let owners = doc!([{ "kind": "Pod" }]);
    let answer = t
        .create("configmaps", &with("/metadata/ownerReferences", owners))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.ownerReferences.apiVersion")
        .because("FieldValueInvalid", "metadata.ownerReferences.name")
        .because("FieldValueInvalid", "metadata.ownerReferences.uid");
}

async fn only_one_owner_may_control(t: &Scope) {
    let controller = |name, uid| owner(name, uid).set("/controller", true);
    let owners = vec![controller("x", "1"), controller("y", "2")];
    let answer = t
        .create(
            "configmaps",
            &with("/metadata/ownerReferences", owners.into()),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.ownerReferences")
        .mentions(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
         ReplicaSet/x and ReplicaSet/y",
        );
}

async fn event_cannot_own(t: &Scope) {
    let owners = doc!([{ "apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1" }]);
    let answer = t
        .create("configmaps", &with("/metadata/ownerReferences", owners))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.ownerReferences")
        .mentions("/v1, Kind=Event is disallowed from being an owner");
}

async fn equal_owners_are_kept_once_with_a_warning(t: &Scope) {
    let owners = vec![owner("x", "1"), owner("x", "1")];
    let answer = t
        .create(
            "configmaps",
            &with("/metadata/ownerReferences", owners.into()),
        )
        .await;
    let warning = answer.header("warning");
    assert!(
        warning.contains(".metadata.ownerReferences contains duplicate entries"),
        "{warning}"
    );
    assert_eq!(
        answer.is(201).at("/metadata/ownerReferences"),
        &Doc::from(vec![owner("x", "1")])
    );
}

async fn owners_are_kept_as_given(t: &Scope) {
    let first = owner("x", "1").set("/blockOwnerDeletion", true);
    let owners = Doc::from(vec![first, owner("y", "2")]);
    let made = t
        .made(
            "configmaps",
            &with("/metadata/ownerReferences", owners.clone()),
        )
        .await;
    assert_eq!(made.at("/metadata/ownerReferences"), &owners);
}

async fn generate_name_is_validated(t: &Scope) {
    let answer = t
        .create(
            "configmaps",
            &doc!({ "metadata": { "generateName": "Gen-" } }),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "metadata.generateName")
        .because("FieldValueInvalid", "metadata.name");
}

async fn empty_labels_are_left_out(t: &Scope) {
    let object = with("/metadata/labels", doc!({})).set("/metadata/annotations", doc!({}));
    let made = t.made("configmaps", &object).await;
    assert!(made.at("/metadata/labels").is_null());
    assert!(made.at("/metadata/annotations").is_null());
}

async fn uid_of_a_patch_that_adopts_is_a_precondition(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let adopt =
        |uid: &Doc| doc!({ "metadata": { "uid": uid, "ownerReferences": [(owner("x", "1"))] } });
    t.merge("configmaps/a", &adopt(&"other".into()))
        .await
        .fails(422, "Invalid");
    t.merge("configmaps/a", &adopt(made.at("/metadata/uid")))
        .await
        .is(200);
}
