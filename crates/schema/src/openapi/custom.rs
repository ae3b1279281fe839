//! Schemas of custom resources, as their definitions give them.

use windlass_core::{Doc, Kind, Object, Str, doc};

use super::built_in::{self, described, kind_doc};
use super::descriptions::Descriptions;
use super::{Schemas, reference};
use crate::custom::Version;
use crate::resource::Resource;

/// Adds the schemas of a custom resource and of its lists, and gives the name of the former.
pub(super) fn add(row: &Resource, custom: &Version, schemas: &mut Schemas<'_>) -> Option<String> {
    let (group, version, kind) = (row.gvk.group(), row.gvk.version(), row.gvk.kind());
    let domain: Vec<&str> = group.split('.').rev().collect();
    let prefix = format!("{}.{version}", domain.join("."));
    let name = format!("{prefix}.{kind}");
    let metadata = built_in::add_meta("ObjectMeta", schemas)?;
    let list_metadata = built_in::add_meta("ListMeta", schemas)?;
    let gvk = doc!([(kind_doc(&row.gvk))]);
    let implied = Implied::new(&metadata, schemas.descriptions);
    let schema = published(&custom.source, true, &implied);
    let schema = with(schema, "x-kubernetes-group-version-kind", gvk);
    let fields: Vec<Doc> = row
        .fields
        .iter()
        .map(|field| doc!({ "fieldPath": (&*field.label) }))
        .collect();
    let schema = if fields.is_empty() {
        schema
    } else {
        with(schema, "x-kubernetes-selectable-fields", fields.into())
    };
    schemas.by_name.insert(name.clone(), schema);
    let list_kind = row.list_kind();
    let list = doc!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": (implied.api_version), "kind": (implied.kind),
            "metadata": { "allOf": [(reference(&list_metadata))] },
            "items": { "type": "array", "items": (reference(&name)) }
        },
        "x-kubernetes-group-version-kind": [{ "group": group, "version": version, "kind": (list_kind.as_str()) }]
    });
    schemas
        .by_name
        .insert(format!("{prefix}.{list_kind}"), list);
    Some(name)
}

/// The fields of every object, which definitions leave out.
struct Implied {
    api_version: Doc,
    kind: Doc,
    metadata: Doc,
}

impl Implied {
    /// They are described as those of a built-in kind are.
    fn new(metadata: &str, descriptions: &Descriptions) -> Self {
        let of = |field| descriptions.of_field("io.k8s.api.core.v1.ConfigMap", field);
        let text = doc!({ "type": "string" });
        let metadata_schema = doc!({ "allOf": [(reference(metadata))] });
        Self {
            api_version: described(text.clone(), of("apiVersion")),
            kind: described(text, of("kind")),
            metadata: described(metadata_schema, of("metadata")),
        }
    }
}

fn with(schema: Doc, key: &str, value: Doc) -> Doc {
    match schema.as_object() {
        Some(object) => object.with(key, value).into(),
        None => schema,
    }
}

/// A schema with what is implied by its being that of a whole object, and with its int-or-string
/// fields spelled out.
fn published(schema: &Doc, is_resource: bool, implied: &Implied) -> Doc {
    let Kind::Object(object) = schema.kind() else {
        return schema.clone();
    };
    let inner = |part: &Doc| {
        let is_embedded = *part.at("/x-kubernetes-embedded-resource") == true;
        published(part, is_embedded, implied)
    };
    let fields: Vec<(Str, Doc)> = object
        .iter()
        .map(|(key, value)| {
            let value = match key.as_str() {
                "properties" => map_values(value, inner),
                "items" | "additionalProperties" => inner(value),
                _ => value.clone(),
            };
            (key.clone(), value)
        })
        .collect();
    let mut schema: Doc = Object::new(fields).into();
    if is_resource {
        let properties = schema
            .get("properties")
            .and_then(Doc::as_object)
            .cloned()
            .unwrap_or_else(Object::empty);
        let properties = properties
            .with("apiVersion", implied.api_version.clone())
            .with("kind", implied.kind.clone())
            .with("metadata", implied.metadata.clone());
        schema = with(schema, "properties", properties.into());
    }
    if *schema.at("/x-kubernetes-int-or-string") == true && schema.get("anyOf").is_none() {
        schema = with(
            schema,
            "anyOf",
            doc!([{ "type": "integer" }, { "type": "string" }]),
        );
    }
    schema
}

fn map_values(map: &Doc, change: impl Fn(&Doc) -> Doc) -> Doc {
    let Some(object) = map.as_object() else {
        return map.clone();
    };
    let fields = object
        .iter()
        .map(|(key, value)| (key.clone(), change(value)));
    Object::new(fields.collect()).into()
}
