//! Definitions that are refused, and in which words.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{DEFINITIONS, definition, own_group};

/// A sound definition that a case breaks.
fn sound(t: &Scope) -> Doc {
    definition(
        &own_group(t),
        "gizmos",
        "Gizmo",
        &doc!({ "type": "object" }),
    )
}

async fn refuse(t: &Scope, broken: &Doc, errors: &[&str]) {
    let answer = t.create(&format!("{DEFINITIONS}?dryRun=All"), broken).await;
    let list = match errors {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    };
    let name = broken.str_at("/metadata/name");
    let kind = "CustomResourceDefinition.apiextensions.k8s.io";
    answer
        .fails(422, "Invalid")
        .says(&format!("{kind} \"{name}\" is invalid: {list}"));
}

/// Makes a case of each change that breaks a definition, with the errors.
macro_rules! refused {
    ($($name:ident: |$crd:ident| $change:expr => [$($error:expr),+];)*) => {
        $(
            async fn $name(t: &Scope) {
                let $crd = sound(t);
                refuse(t, &$change, &[$($error),+]).await;
            }
        )*
        cases![
            definition_is_filled_in,
            status_begins_with_the_stored_version,
            group_of_kubernetes_needs_approval,
            approval_is_a_condition,
            unknown_format_warns,
            kind_and_scope_cannot_change_once_established,
            stored_version_must_stay,
            $($name),*
        ];
    };
}

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
     '[a-z]([-a-z0-9]*[a-z0-9])?')";

refused! {
    name_must_be_plural_and_group: |crd| crd.set("/metadata/name", "x.y.z") =>
        ["metadata.name: Invalid value: \"x.y.z\": must be spec.names.plural+\".\"+spec.group"];
    group_needs_a_dot: |crd| crd.set("/spec/group", "nodot").set("/metadata/name", "gizmos.nodot") =>
        ["spec.group: Invalid value: \"nodot\": should be a domain with at least one dot"];
    scope_is_one_of_two: |crd| crd.set("/spec/scope", "Foo") =>
        ["spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\""];
    scope_is_required: |crd| crd.cut("/spec/scope") => ["spec.scope: Required value"];
    one_version_is_stored: |crd| crd.set("/spec/versions/0/storage", false) => [
        "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
         \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
         \"SelectableFields\":null}]: must have exactly one version marked as storage version",
        "status.storedVersions: Invalid value: null: must have at least one stored version"
    ];
    schema_is_required: |crd| crd.cut("/spec/versions/0/schema") =>
        ["spec.versions[0].schema.openAPIV3Schema: Required value"];
    unknown_fields_are_not_preserved: |crd| crd.set("/spec/preserveUnknownFields", true) => [
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to \
         true in spec.versions[*].schema instead"
    ];
    list_kind_differs_from_the_kind: |crd| crd.set("/spec/names/listKind", "Gizmo") =>
        ["spec.names.listKind: Invalid value: \"Gizmo\": kind and listKind may not be the same"];
    short_names_are_labels: |crd| crd.set("/spec/names/shortNames", doc!(["A_"])) =>
        [&format!("spec.names.shortNames[0]: Invalid value: \"A_\": {LABEL}")];
    categories_are_labels: |crd| crd.set("/spec/names/categories", doc!(["A_"])) =>
        [&format!("spec.names.categories[0]: Invalid value: \"A_\": {LABEL}")];
    strategy_is_one_of_two: |crd| crd.set("/spec/conversion", doc!({ "strategy": "Foo" })) =>
        ["spec.conversion.strategy: Unsupported value: \"Foo\": supported values: \"None\", \"Webhook\""];
    webhook_needs_an_address: |crd| crd.set("/spec/conversion", doc!({ "strategy": "Webhook" })) => [
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        "spec.conversion.conversionReviewVersions: Required value"
    ];
    warning_needs_deprecation: |crd| crd.set("/spec/versions/0/deprecationWarning", "x") =>
        ["spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions"];
    column_has_a_known_type: |crd| column(&crd, doc!({ "name": "a", "type": "foo", "jsonPath": ".spec" })) =>
        ["spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": must be one of boolean,date,integer,number,string"];
    column_path_starts_with_a_dot: |crd| column(&crd, doc!({ "name": "a", "type": "string", "jsonPath": "spec" })) =>
        ["spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting with ."];
    selectable_field_exists: |crd| crd.set("/spec/versions/0/selectableFields", doc!([{ "jsonPath": ".spec.zz" }])) => [
        "spec.selectableFields[0].jsonPath: Invalid value: \".spec.zz\": is an invalid path: does not refer to a valid field"
    ];
    scale_path_is_under_the_spec: |crd| scale(&crd, doc!({ "specReplicasPath": ".foo", "statusReplicasPath": ".status.n" })) =>
        ["spec.subresources.scale.specReplicasPath: Invalid value: \".foo\": should be a json path under .spec"];
    scale_needs_both_paths: |crd| scale(&crd, doc!({ "specReplicasPath": ".spec.replicas" })) =>
        ["spec.subresources.scale.statusReplicasPath: Required value"];
}

fn column(crd: &Doc, column: Doc) -> Doc {
    crd.set("/spec/versions/0/additionalPrinterColumns", vec![column])
}

fn scale(crd: &Doc, scale: Doc) -> Doc {
    crd.set("/spec/versions/0/subresources", doc!({ "scale": scale }))
}

async fn definition_is_filled_in(t: &Scope) {
    let made = t
        .create(&format!("{DEFINITIONS}?dryRun=All"), &sound(t))
        .await
        .is(201);
    let names =
        doc!({ "plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList" });
    assert_eq!(*made.at("/spec/names"), names);
    assert_eq!(*made.at("/spec/conversion"), doc!({ "strategy": "None" }));
    assert_eq!(made.at("/metadata/generation"), 1);
}

async fn status_begins_with_the_stored_version(t: &Scope) {
    let crd = sound(t).set("/status", doc!({ "storedVersions": ["v9"] }));
    let made = t
        .create(&format!("{DEFINITIONS}?dryRun=All"), &crd)
        .await
        .is(201);
    assert_eq!(*made.at("/status/storedVersions"), doc!(["v1"]));
    assert_eq!(
        *made.at("/status/acceptedNames"),
        doc!({ "plural": "", "kind": "" })
    );
}

async fn group_of_kubernetes_needs_approval(t: &Scope) {
    let group = format!("{}.k8s.io", t.namespace());
    let crd = definition(&group, "gizmos", "Gizmo", &doc!({ "type": "object" }));
    let error = "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
                 annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    refuse(t, &crd, &[error]).await;
    let approved = crd.set(
        "/metadata/annotations",
        doc!({ "api-approved.kubernetes.io": "unapproved, a test" }),
    );
    t.create(&format!("{DEFINITIONS}?dryRun=All"), &approved)
        .await
        .is(201);
}

async fn approval_is_a_condition(t: &Scope) {
    let group = format!("{}.kubernetes.io", t.namespace());
    let crd = definition(&group, "gizmos", "Gizmo", &doc!({ "type": "object" }));
    let say = |word: &str| {
        let annotations = doc!({ "api-approved.kubernetes.io": word });
        crd.set("/metadata/annotations", annotations)
    };
    let error = "metadata.annotations[api-approved.kubernetes.io]: Invalid value: \"https://\": protected groups must have \
                 approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \
                 \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
    refuse(t, &say("https://"), &[error]).await;
    t.made(DEFINITIONS, &say("unapproved, a test")).await;
    let path = format!("{DEFINITIONS}/gizmos.{group}");
    let bypassed = (
        "False",
        "UnapprovedAnnotation",
        "not approved: \"unapproved, a test\"",
    );
    until_approval(t, &path, bypassed).await;
    let change = doc!({ "metadata": { "annotations": { "api-approved.kubernetes.io": "https://a.example/1" } } });
    t.merge(&path, &change).await.is(200);
    let approved = (
        "True",
        "ApprovedAnnotation",
        "approved in https://a.example/1",
    );
    until_approval(t, &path, approved).await;
}

/// Waits for a condition that the real server sets in the background.
async fn until_approval(t: &Scope, path: &str, expected: (&str, &str, &str)) {
    for _ in 0..1000 {
        let crd = t.get(path).await.is(200);
        let conditions = crd.at("/status/conditions").items();
        let is_approval =
            |condition: &&Doc| condition.str_at("/type") == "KubernetesAPIApprovalPolicyConformant";
        let shown = conditions.iter().find(is_approval).map(|condition| {
            let (status, reason) = (condition.str_at("/status"), condition.str_at("/reason"));
            (status, reason, condition.str_at("/message"))
        });
        if shown == Some(expected) {
            return;
        }
    }
    panic!("{path} does not get {expected:?}");
}

async fn unknown_format_warns(t: &Scope) {
    let spec =
        doc!({ "type": "object", "properties": { "a": { "type": "string", "format": "foo" } } });
    let crd = definition(&own_group(t), "gizmos", "Gizmo", &spec);
    let answer = t.create(&format!("{DEFINITIONS}?dryRun=All"), &crd).await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unrecognized format \\\"foo\\\"\""]
    );
    answer.is(201);
}

async fn kind_and_scope_cannot_change_once_established(t: &Scope) {
    let crd = super::support::install(t, &sound(t)).await;
    let path = format!("{DEFINITIONS}/{}", crd.str_at("/metadata/name"));
    let changed = doc!({ "spec": { "scope": "Cluster", "names": { "kind": "Other", "listKind": "OtherList" } } });
    let refusal = t.merge(&path, &changed).await.fails(422, "Invalid");
    refusal
        .mentions("spec.scope: Invalid value: \"Cluster\": field is immutable")
        .mentions("spec.names.kind: Invalid value: \"Other\": field is immutable");
}

async fn stored_version_must_stay(t: &Scope) {
    let crd = super::support::install(t, &sound(t)).await;
    let path = format!("{DEFINITIONS}/{}", crd.str_at("/metadata/name"));
    let version = crd.at("/spec/versions/0").set("/name", "v2");
    let refusal = t
        .merge(&path, &doc!({ "spec": { "versions": [version] } }))
        .await
        .fails(422, "Invalid");
    refusal.mentions(
        "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, \
         and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 \
         from status.storedVersions",
    );
}
