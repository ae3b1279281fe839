//! Definitions as large as those of the well-known operators.

use std::fmt::Write as _;

use windlass_core::{Doc, doc};

use crate::custom::{DEFINITIONS, definition};
use crate::support::Api;

/// A schema with so many fields at each of so many levels.
fn schema(levels: usize, width: usize) -> Doc {
    let mut properties = Vec::new();
    for field in 0..width {
        let mut text = String::new();
        let _ = write!(
            text,
            "field number {field} of a level that is {levels} above the ground, in many words. "
        );
        let part = match field % 5 {
            0 if levels > 0 => schema(levels - 1, width),
            1 if levels > 0 => doc!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["field2"],
                "items": (schema(levels - 1, width))
            }),
            2 => {
                doc!({ "type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]*$", "default": "a" })
            }
            3 => doc!({ "type": "integer", "minimum": 0, "format": "int32" }),
            _ => doc!({ "type": "object", "additionalProperties": { "type": "string" } }),
        };
        let part = part.with("/description", text.repeat(4)).unwrap();
        properties.push((format!("field{field}").as_str().into(), part));
    }
    doc!({ "type": "object", "properties": (windlass_core::Object::new(properties)) })
}

/// Installs a definition with a schema and uses it.
async fn install_and_use(levels: usize, width: usize) {
    let rule =
        doc!([{ "rule": "!has(self.field3) || self.field3 < 1000", "message": "too large" }]);
    let schema = schema(levels, width)
        .with("/x-kubernetes-validations", rule)
        .unwrap();
    let crd = definition(schema);
    let api = Api::new().await;
    let bytes = crd.to_json().len();
    assert!(bytes > 200_000, "{bytes}");
    let begun = tokio::time::Instant::now();
    api.post(DEFINITIONS, &crd).await.expect(201);
    let installed = begun.elapsed();
    let path = "/apis/example.com/v1/namespaces/default/gadgets";
    let object = doc!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "a" },
        "spec": { "field0": { "field0": { "field3": 5, "unknown": 1 } }, "field3": 7 }
    });
    let made = api.post(path, &object).await.expect(201);
    let used = begun.elapsed();
    assert_eq!(made.body.at("/spec/field0/field0/field2"), "a");
    assert!(made.body.at("/spec/field0/field0/unknown").is_null());
    let wrong = object.with("/spec/field0/field0/field3", -1).unwrap();
    let refused = api
        .post(path, &wrong.with("/metadata/name", "b").unwrap())
        .await
        .expect(422);
    assert!(
        refused
            .text
            .contains("spec.field0.field0.field3 in body should be"),
        "{}",
        refused.text
    );
    let broken = object.with("/spec/field3", 1000).unwrap();
    let broken = broken.with("/metadata/name", "c").unwrap();
    let refused = api.post(path, &broken).await.expect(422);
    assert!(refused.text.contains("too large"), "{}", refused.text);
    let document = api.get("/openapi/v3/apis/example.com/v1").await.expect(200);
    let schema = document
        .body
        .at("/components/schemas/com.example.v1.Gadget/properties/spec/properties");
    let fields = schema.as_object().map_or(0, windlass_core::Object::len);
    assert_eq!(fields, width);
    println!(
        "{bytes} bytes: installed in {installed:?}, first object after {used:?}, with OpenAPI {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn wide_definition_is_installed_and_used() {
    install_and_use(2, 20).await;
}

#[tokio::test]
async fn deep_definition_is_installed_and_used() {
    install_and_use(3, 10).await;
}
