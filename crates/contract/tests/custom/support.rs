//! Definitions that cases share, and waiting for them.

use windlass_contract::{Refusal, Scope};
use windlass_core::{Doc, doc};

/// Where definitions are.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The group of the definition that most cases use.
pub(crate) const GROUP: &str = "contract.example.com";
/// What is said last where rules were not evaluated.
pub(crate) const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not \
     checked because the object was invalid; correct the existing errors to complete validation";

/// How often a server is asked for something that it is about to have.
const ATTEMPTS: usize = 20_000;

/// A definition of one version `v1` with a schema of the spec.
pub(crate) fn definition(group: &str, plural: &str, kind: &str, spec: &Doc) -> Doc {
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": (format!("{plural}.{group}")) },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } }
            }]
        }
    })
}

/// A group that no other case has.
pub(crate) fn own_group(t: &Scope) -> String {
    format!("{}.example.com", t.namespace())
}

/// Makes a definition and waits until its objects are served.
pub(crate) async fn install(t: &Scope, definition: &Doc) -> Doc {
    let answer = t.create(DEFINITIONS, definition).await;
    assert!(matches!(answer.code(), 201 | 409), "{}", answer.text());
    established(t, definition.str_at("/metadata/name")).await
}

/// Waits until the objects of a definition are served.
pub(crate) async fn established(t: &Scope, name: &str) -> Doc {
    for _ in 0..ATTEMPTS {
        let found = t.get(&format!("{DEFINITIONS}/{name}")).await.is(200);
        let spec = found.at("/spec");
        let version = spec
            .at("/versions")
            .items()
            .iter()
            .find(|version| *version.at("/served") == true);
        let version = version.map_or("", |version| version.str_at("/name"));
        let path = format!(
            "/apis/{}/{version}/{}",
            spec.str_at("/group"),
            spec.str_at("/names/plural")
        );
        if condition(&found, "Established") == "True" && t.get(&path).await.code() == 200 {
            return found;
        }
        tokio::task::yield_now().await;
    }
    panic!("{name} is not established");
}

/// Waits until an answer is as wanted.
pub(crate) async fn until(t: &Scope, path: &str, is_wanted: impl Fn(u16, &Doc) -> bool) -> Doc {
    for _ in 0..ATTEMPTS {
        let answer = t.get(path).await;
        let doc = Doc::parse(answer.text().as_bytes()).unwrap_or_default();
        if is_wanted(answer.code(), &doc) {
            return doc;
        }
        tokio::task::yield_now().await;
    }
    panic!("{path} does not become what was wanted");
}

/// The status of a condition, empty if it is absent.
pub(crate) fn condition<'a>(object: &'a Doc, sort: &str) -> &'a str {
    let mut conditions = object.at("/status/conditions").items().iter();
    conditions
        .find(|known| *known.at("/type") == sort)
        .map_or("", |found| found.str_at("/status"))
}

/// The definition that most cases use, with a field for every sort of check.
pub(crate) fn widgets() -> Doc {
    let a_or_b = doc!({ "a": { "type": "string" }, "b": { "type": "string" } });
    let either = doc!([{ "required": ["a"] }, { "required": ["b"] }]);
    let spec = doc!({
        "type": "object",
        "required": ["color"],
        "x-kubernetes-validations": [
            { "rule": "self.replicas <= self.max", "message": "too many" },
            { "rule": "self.color != 'black'" },
            {
                "rule": "!has(self.num) || self.num > 0.5",
                "messageExpression": "'num is low for ' + self.color",
                "fieldPath": ".num", "reason": "FieldValueForbidden"
            },
            { "rule": "!has(self.mode) || self.mode in ['a', 'b']", "reason": "FieldValueRequired", "fieldPath": ".mode" }
        ],
        "properties": {
            "color": { "type": "string", "enum": ["red", "blue", "black"] },
            "replicas": { "type": "integer", "minimum": 0, "maximum": 10, "default": 1 },
            "max": { "type": "integer", "default": 100 },
            "mode": { "type": "string", "maxLength": 10 },
            "num": { "type": "number", "multipleOf": 0.5 },
            "name": { "type": "string", "maxLength": 5, "minLength": 2, "pattern": "^[a-z]+$" },
            "when": { "type": "string", "format": "date-time" },
            "day": { "type": "string", "format": "date" },
            "wait": { "type": "string", "format": "duration" },
            "ip": { "type": "string", "format": "ipv4" },
            "ip6": { "type": "string", "format": "ipv6" },
            "net": { "type": "string", "format": "cidr" },
            "mail": { "type": "string", "format": "email" },
            "host": { "type": "string", "format": "hostname" },
            "uri": { "type": "string", "format": "uri" },
            "id": { "type": "string", "format": "uuid" },
            "blob": { "type": "string", "format": "byte" },
            "tags": {
                "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set",
                "maxItems": 3, "minItems": 1
            },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object", "required": ["name"],
                    "properties": { "name": { "type": "string" }, "port": { "type": "integer", "default": 80 } }
                }
            },
            "counts": {
                "type": "object", "additionalProperties": { "type": "integer" },
                "maxProperties": 2, "minProperties": 1
            },
            "amount": { "x-kubernetes-int-or-string": true },
            "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "half": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "known": { "type": "object", "properties": { "x": { "type": "string" } } } }
            },
            "maybe": { "type": "string", "nullable": true },
            "nested": {
                "type": "object", "default": { "a": "x" },
                "properties": { "a": { "type": "string" }, "b": { "type": "string", "default": "y" } }
            },
            "one": { "type": "object", "properties": (a_or_b.clone()), "oneOf": (either.clone()) },
            "some": { "type": "object", "properties": (a_or_b.clone()), "anyOf": either },
            "none": { "type": "object", "properties": a_or_b, "not": { "required": ["a"] } },
            "every": {
                "type": "object", "properties": { "a": { "type": "integer" } },
                "allOf": [{ "properties": { "a": { "minimum": 5 } } }]
            },
            "inner": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true
            },
            "fixed": {
                "type": "string",
                "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "fixed is immutable" }]
            },
            "flag": { "type": "boolean" },
            "between": {
                "type": "integer", "maximum": 5, "exclusiveMaximum": true, "minimum": 1, "exclusiveMinimum": true
            }
        }
    });
    let status = doc!({
        "type": "object",
        "properties": {
            "replicas": { "type": "integer" }, "selector": { "type": "string" },
            "phase": { "type": "string", "enum": ["A", "B"] },
            "note": { "type": "string", "pattern": "^[a-z]+$" }
        }
    });
    let columns = doc!([
        { "name": "Color", "type": "string", "jsonPath": ".spec.color" },
        { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1, "description": "how many" },
        { "name": "Ready", "type": "string", "jsonPath": ".spec.ports[?(@.name==\"web\")].port" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }
    ]);
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": (format!("widgets.{GROUP}")) },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector"
                    }
                },
                "selectableFields": [{ "jsonPath": ".spec.color" }],
                "additionalPrinterColumns": columns,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object", "required": ["spec"],
                        "properties": { "spec": spec, "status": status }
                    }
                }
            }]
        }
    })
}

/// Where the widgets of a case are, once they are served.
pub(crate) async fn widget_path(t: &Scope) -> String {
    install(t, &widgets()).await;
    format!("/apis/{GROUP}/v1/namespaces/{}/widgets", t.namespace())
}

/// A widget.
pub(crate) fn widget(name: &str, spec: &Doc) -> Doc {
    doc!({
        "apiVersion": (format!("{GROUP}/v1")), "kind": "Widget", "metadata": { "name": name }, "spec": spec
    })
}

/// Demands that a widget is refused with these errors.
#[track_caller]
pub(crate) fn demand(refusal: Refusal, errors: &[&str]) {
    let list = match errors {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    };
    refusal.says(&format!("Widget.{GROUP} \"a\" is invalid: {list}"));
}
