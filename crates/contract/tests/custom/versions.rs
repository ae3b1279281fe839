//! Several versions of one custom resource.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{DEFINITIONS, definition, install, own_group, until};

cases![
    object_is_served_in_every_version,
    stored_version_is_all_that_is_kept,
    defaults_of_other_versions_are_not_filled_in,
    version_that_is_not_served_is_not_found,
    deprecated_version_warns,
    deprecated_version_warns_in_its_own_words,
    changing_the_storage_version_is_remembered,
    another_version_in_the_body_is_refused,
];

fn version(name: &str, fields: Doc) -> Doc {
    doc!({
        "name": name, "served": true, "storage": false,
        "schema": { "openAPIV3Schema": {
            "type": "object", "properties": { "spec": { "type": "object", "properties": fields } }
        } }
    })
}

/// A definition with `v1`, which is stored, and `v2`.
fn both(t: &Scope) -> Doc {
    let one = version("v1", doc!({ "a": { "type": "string" } })).set("/storage", true);
    let two = version(
        "v2",
        doc!({ "a": { "type": "string" }, "b": { "type": "string", "default": "x" } }),
    );
    let crd = definition(&own_group(t), "gadgets", "Gadget", &Doc::NULL);
    crd.set("/spec/versions", doc!([two, one]))
}

fn path(t: &Scope, version: &str) -> String {
    format!(
        "/apis/{}/{version}/namespaces/{}/gadgets",
        own_group(t),
        t.namespace()
    )
}

fn gadget(t: &Scope, version: &str, name: &str) -> Doc {
    doc!({
        "apiVersion": (format!("{}/{version}", own_group(t))), "kind": "Gadget", "metadata": { "name": name },
        "spec": { "a": "1" }
    })
}

async fn served(t: &Scope, crd: &Doc) {
    install(t, crd).await;
    for version in crd
        .at("/spec/versions")
        .items()
        .iter()
        .filter(|version| *version.at("/served") == true)
    {
        until(t, &path(t, version.str_at("/name")), |code, _| code == 200).await;
    }
}

async fn object_is_served_in_every_version(t: &Scope) {
    served(t, &both(t)).await;
    let made = t.made(&path(t, "v2"), &gadget(t, "v2", "a")).await;
    assert_eq!(*made.at("/apiVersion"), *format!("{}/v2", own_group(t)));
    let found = t.get(&format!("{}/a", path(t, "v1"))).await.is(200);
    assert_eq!(*found.at("/apiVersion"), *format!("{}/v1", own_group(t)));
    assert_eq!(found.at("/metadata/uid"), made.at("/metadata/uid"));
    let list = t.get(&path(t, "v1")).await.is(200);
    assert_eq!(
        *list.at("/items/0/apiVersion"),
        *format!("{}/v1", own_group(t))
    );
}

async fn stored_version_is_all_that_is_kept(t: &Scope) {
    served(t, &both(t)).await;
    let made = t.made(&path(t, "v2"), &gadget(t, "v2", "a")).await;
    assert_eq!(*made.at("/spec"), doc!({ "a": "1" }));
    for version in ["v1", "v2"] {
        let found = t.get(&format!("{}/a", path(t, version))).await.is(200);
        assert_eq!(*found.at("/spec"), doc!({ "a": "1" }));
    }
}

async fn defaults_of_other_versions_are_not_filled_in(t: &Scope) {
    served(t, &both(t)).await;
    t.made(&path(t, "v1"), &gadget(t, "v1", "a")).await;
    let two = t.get(&format!("{}/a", path(t, "v2"))).await.is(200);
    assert_eq!(*two.at("/spec"), doc!({ "a": "1" }));
}

async fn version_that_is_not_served_is_not_found(t: &Scope) {
    let crd = both(t).set("/spec/versions/0/served", false);
    served(t, &crd).await;
    let answer = t.get(&path(t, "v2")).await;
    assert_eq!(
        (answer.code(), answer.text()),
        (404, "404 page not found\n")
    );
    t.get(&path(t, "v1")).await.is(200);
}

async fn deprecated_version_warns(t: &Scope) {
    let crd = both(t).set("/spec/versions/1/deprecated", true);
    served(t, &crd).await;
    let answer = t.get(&path(t, "v1")).await;
    let warning = format!(
        "299 - \"{0}/v1 Gadget is deprecated; use {0}/v2 Gadget\"",
        own_group(t)
    );
    assert_eq!(answer.headers("warning"), [warning]);
    assert!(t.get(&path(t, "v2")).await.headers("warning").is_empty());
}

async fn deprecated_version_warns_in_its_own_words(t: &Scope) {
    let crd = both(t).set("/spec/versions/1/deprecated", true);
    let crd = crd.set("/spec/versions/1/deprecationWarning", "use v2");
    served(t, &crd).await;
    assert_eq!(
        t.get(&path(t, "v1")).await.headers("warning"),
        ["299 - \"use v2\""]
    );
}

async fn changing_the_storage_version_is_remembered(t: &Scope) {
    served(t, &both(t)).await;
    t.made(&path(t, "v1"), &gadget(t, "v1", "a")).await;
    let patch = doc!([
        { "op": "replace", "path": "/spec/versions/0/storage", "value": true },
        { "op": "replace", "path": "/spec/versions/1/storage", "value": false }
    ]);
    let path_of_crd = format!("{DEFINITIONS}/gadgets.{}", own_group(t));
    let changed = t.edit(&path_of_crd, &patch).await.is(200);
    assert_eq!(*changed.at("/status/storedVersions"), doc!(["v1", "v2"]));
    let found = t.get(&format!("{}/a", path(t, "v1"))).await.is(200);
    assert_eq!(found.at("/spec/a"), "1");
}

async fn another_version_in_the_body_is_refused(t: &Scope) {
    served(t, &both(t)).await;
    let answer = t.create(&path(t, "v1"), &gadget(t, "v2", "a")).await;
    answer.fails(400, "BadRequest").says(&format!(
        "the API version in the data ({0}/v2) does not match the expected API version ({0}/v1)",
        own_group(t)
    ));
}
