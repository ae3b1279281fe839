//! Schemas of built-in kinds, from the facts of the atlas.

use windlass_atlas::{Atlas, Field, ListType, Shape, Strategy, Type};
use windlass_core::{Doc, Gvk, Object, Str, doc};

use super::{Schemas, reference};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/// Adds the schema of a kind and of all types it is made of, and gives its name.
pub(super) fn add_kind(gvk: &Gvk, schemas: &mut Schemas<'_>) -> Option<String> {
    let kind = Atlas::kind(gvk)?;
    let name = add(kind, schemas);
    if let Some(schema) = schemas
        .by_name
        .get(&name)
        .filter(|schema| kind.gvk().is_none() && schema.get(GVK).is_none())
    {
        let marked = schema.with(&format!("/{GVK}"), doc!([(kind_doc(gvk))]));
        if let Ok(marked) = marked {
            schemas.by_name.insert(name.clone(), marked);
        }
    }
    Some(name)
}

/// The name of a kind in documents.
pub(super) fn name_of_kind(gvk: &Gvk) -> Option<String> {
    Atlas::kind(gvk).map(type_name)
}

/// Adds a type of the machinery, and gives its name.
pub(super) fn add_meta(name: &str, schemas: &mut Schemas<'_>) -> Option<String> {
    Atlas::named("meta/v1", name).map(|of| add(of, schemas))
}

const GVK: &str = "x-kubernetes-group-version-kind";

/// A kind as documents name it.
pub(super) fn kind_doc(gvk: &Gvk) -> Doc {
    doc!({ "group": (gvk.group()), "version": (gvk.version()), "kind": (gvk.kind()) })
}

fn add(of: &'static Type, schemas: &mut Schemas<'_>) -> String {
    let name = type_name(of);
    if schemas.by_name.contains_key(&name) {
        return name;
    }
    // The place is taken before its parts are looked at: types may contain themselves.
    schemas.by_name.insert(name.clone(), Doc::NULL);
    let schema = schema(of, &name, schemas);
    schemas.by_name.insert(name.clone(), schema);
    name
}

/// The name of a type, in reversed domain order.
fn type_name(of: &Type) -> String {
    let (group, version) = of
        .package()
        .rsplit_once('/')
        .unwrap_or((of.package(), "v1"));
    let name = of.name();
    match group {
        "meta" => format!("{META}.{name}").replace("meta.v1", &format!("meta.{version}")),
        "apiextensions" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{name}")
        }
        "apiregistration" => {
            format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{name}")
        }
        group => format!("io.k8s.api.{group}.{version}.{name}"),
    }
}

fn schema(of: &'static Type, name: &str, schemas: &mut Schemas<'_>) -> Doc {
    let mut properties: Vec<(Str, Doc)> = Vec::new();
    let mut required: Vec<&str> = Vec::new();
    for field in of.fields() {
        if field.is_required() {
            required.push(field.name());
        }
        let schema = field_schema(field, schemas);
        let description = schemas.descriptions.of_field(name, field.name());
        let description = description.or_else(|| schemas.descriptions.of_type_field(field.name()));
        properties.push((field.name().into(), described(schema, description)));
    }
    required.sort_unstable();
    let mut parts: Vec<(Str, Doc)> = vec![("type".into(), "object".into())];
    if !properties.is_empty() {
        parts.push(("properties".into(), Object::new(properties).into()));
    }
    if !required.is_empty() {
        parts.push(("required".into(), texts(&required)));
    }
    if of.is_atomic() {
        parts.push(("x-kubernetes-map-type".into(), "atomic".into()));
    }
    if let Some(gvk) = of.gvk() {
        parts.push((GVK.into(), doc!([(kind_doc(&gvk))])));
    }
    described(Object::new(parts).into(), schemas.descriptions.of(name))
}

/// A schema with what it is for, if that is known.
pub(super) fn described(schema: Doc, description: Option<&str>) -> Doc {
    match (schema.as_object(), description) {
        (Some(object), Some(text)) => object.with("description", text.into()).into(),
        _ => schema,
    }
}

fn texts(texts: &[&str]) -> Doc {
    texts
        .iter()
        .map(|text| Doc::from(*text))
        .collect::<Vec<_>>()
        .into()
}

fn field_schema(field: &Field, schemas: &mut Schemas<'_>) -> Doc {
    let is_always_there = !field.is_pointer() && !field.omits_empty();
    let mut parts = shape_parts(field.shape(), schemas, !field.is_pointer());
    let default = field
        .default()
        .or_else(|| zero(field.shape()).filter(|_| is_always_there));
    if let Some(default) = default {
        parts.push(("default".into(), default));
    }
    match field.list_type() {
        Some(ListType::Atomic) => parts.push(("x-kubernetes-list-type".into(), "atomic".into())),
        Some(ListType::Set) => parts.push(("x-kubernetes-list-type".into(), "set".into())),
        Some(ListType::Map) => {
            parts.push(("x-kubernetes-list-type".into(), "map".into()));
            parts.push((
                "x-kubernetes-list-map-keys".into(),
                texts(field.list_keys()),
            ));
        }
        None => {}
    }
    if let (Shape::Map(_), Some(map_type)) = (field.shape(), field.map_type()) {
        parts.push(("x-kubernetes-map-type".into(), map_type.into()));
    }
    if let Some(key) = field.merge_key() {
        parts.push(("x-kubernetes-patch-merge-key".into(), key.into()));
    }
    if let Some(strategy) = strategy(field.strategy()) {
        parts.push(("x-kubernetes-patch-strategy".into(), strategy.into()));
    }
    Object::new(parts).into()
}

fn strategy(strategy: Strategy) -> Option<&'static str> {
    match (strategy.merge, strategy.retain_keys) {
        (true, true) => Some("merge,retainKeys"),
        (true, false) => Some("merge"),
        (false, true) => Some("retainKeys"),
        (false, false) => strategy.replace.then_some("replace"),
    }
}

/// The default of a plain value that is always there.
fn zero(shape: &Shape) -> Option<Doc> {
    match shape {
        Shape::String | Shape::Enum(_) => Some("".into()),
        Shape::Int32 | Shape::Int64 => Some(0.into()),
        Shape::Bool => Some(false.into()),
        _ => None,
    }
}

fn shape_parts(shape: &Shape, schemas: &mut Schemas<'_>, is_value: bool) -> Vec<(Str, Doc)> {
    let plain = |sort: &str, format: &str| {
        let mut parts: Vec<(Str, Doc)> = vec![("type".into(), sort.into())];
        if !format.is_empty() {
            parts.push(("format".into(), format.into()));
        }
        parts
    };
    let mut special = |name: &str, schema: Doc| -> Vec<(Str, Doc)> {
        let description = schemas.descriptions.of(name);
        let entry = schemas.by_name.entry(name.to_owned());
        entry.or_insert_with(|| described(schema, description));
        vec![("allOf".into(), doc!([(reference(name))]))]
    };
    match shape {
        Shape::Bool => plain("boolean", ""),
        Shape::Int32 => plain("integer", "int32"),
        Shape::Int64 => plain("integer", "int64"),
        Shape::Double => plain("number", "double"),
        Shape::String => plain("string", ""),
        Shape::Bytes => plain("string", "byte"),
        Shape::Enum(values) => {
            let mut parts = plain("string", "");
            parts.push(("enum".into(), texts(values.values())));
            parts
        }
        Shape::Time => special(
            &format!("{META}.Time"),
            doc!({ "type": "string", "format": "date-time" }),
        ),
        Shape::MicroTime => special(
            &format!("{META}.MicroTime"),
            doc!({ "type": "string", "format": "date-time" }),
        ),
        Shape::Quantity => special(
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            doc!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        ),
        Shape::IntOrString => special(
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            doc!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
        ),
        Shape::Fields => special(&format!("{META}.FieldsV1"), doc!({ "type": "object" })),
        Shape::Raw => special(
            "io.k8s.apimachinery.pkg.runtime.RawExtension",
            doc!({ "type": "object" }),
        ),
        Shape::Json => special(&format!("{EXTENSIONS}.JSON"), Doc::empty_object()),
        Shape::SchemaOrBool => special(
            &format!("{EXTENSIONS}.JSONSchemaPropsOrBool"),
            Doc::empty_object(),
        ),
        Shape::SchemaOrArray => special(
            &format!("{EXTENSIONS}.JSONSchemaPropsOrArray"),
            Doc::empty_object(),
        ),
        Shape::SchemaOrStrings => special(
            &format!("{EXTENSIONS}.JSONSchemaPropsOrStringArray"),
            Doc::empty_object(),
        ),
        Shape::Any => vec![("x-kubernetes-preserve-unknown-fields".into(), true.into())],
        Shape::Message(of) => {
            let name = add(of.get(), schemas);
            let mut parts: Vec<(Str, Doc)> = vec![("allOf".into(), doc!([(reference(&name))]))];
            if is_value {
                parts.push(("default".into(), Doc::empty_object()));
            }
            parts
        }
        Shape::List(inner) | Shape::WrappedList(inner) => {
            let mut parts = plain("array", "");
            parts.push(("items".into(), element(inner, schemas)));
            parts
        }
        Shape::Map(inner) => {
            let mut parts = plain("object", "");
            parts.push(("additionalProperties".into(), element(inner, schemas)));
            parts
        }
    }
}

/// The schema of an item or a value.
fn element(shape: &Shape, schemas: &mut Schemas<'_>) -> Doc {
    let mut parts = shape_parts(shape, schemas, true);
    if let Some(zero) = zero(shape) {
        parts.push(("default".into(), zero));
    }
    Object::new(parts).into()
}
