//! Whether a CustomResourceDefinition is valid, in upstream's words.

mod approval;
mod expressions;
mod hooks;
mod structural;

pub use approval::noted;
pub use hooks::DefinitionHooks;

use std::collections::HashSet;

use windlass_core::{Doc, Object, doc, names};
use windlass_rules::edit::put;

use crate::custom::schema::{self, Node};
use crate::custom::validate::Validation;
use crate::custom::values::{Pruning, settle};
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::json_path::JsonPath;

/// Most fields that selectors may name.
const SELECTABLE_FIELDS_LIMIT: usize = 8;
/// The longest warning about a version.
const WARNING_BYTES_MAX: usize = 256;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
/// What the root of a schema may say if the status is written apart.
const ROOT_KEYS: [&str; 14] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "required",
    "properties",
    "example",
];

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The plural name of definitions.
pub const RESOURCE: &str = "customresourcedefinitions";
/// What keeps a definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition with a condition. The time of the last transition stays if there is none.
#[must_use]
pub fn with_condition(
    crd: Doc,
    sort: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Doc,
) -> Doc {
    let conditions = crd.at("/status/conditions").items();
    let old = conditions.iter().find(|known| *known.at("/type") == sort);
    let since = match old {
        Some(old) if *old.at("/status") == status => old.at("/lastTransitionTime").clone(),
        _ => now,
    };
    let condition = doc!({
        "type": sort, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
    });
    let mut all: Vec<Doc> = conditions.to_vec();
    match all.iter_mut().find(|known| *known.at("/type") == sort) {
        Some(known) => *known = condition,
        None => all.push(condition),
    }
    put(crd, "/status/conditions", all)
}

/// Finds what is wrong with a definition.
pub(crate) fn validate(crd: &Doc, errors: &mut FieldErrors) {
    let spec = crd.at("/spec");
    let path = FieldPath::new("spec");
    let (plural, group) = (spec.str_at("/names/plural"), spec.str_at("/group"));
    if crd.meta().name() != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.invalid(&FieldPath::new("metadata.name"), crd.meta().name(), why);
    }
    group_and_scope(spec, &path, errors);
    versions(spec, &path, errors);
    names_of(spec.at("/names"), &path.child("names"), errors);
    conversion(spec.at("/conversion"), &path.child("conversion"), errors);
    stored_versions(crd, errors);
    approval::validate(crd, errors);
    if *spec.at("/preserveUnknownFields") == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&path.child("preserveUnknownFields"), true, why);
    }
}

/// Finds what may not change.
pub(crate) fn validate_update(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec");
    let immutable = |field: &str, pointer: &str, errors: &mut FieldErrors| {
        errors.immutable(&path.child(field), new.at(pointer), old.at(pointer));
    };
    if is_true(old, "Established") {
        immutable("scope", "/spec/scope", errors);
        immutable("names.kind", "/spec/names/kind", errors);
    }
    immutable("group", "/spec/group", errors);
    immutable("names.plural", "/spec/names/plural", errors);
}

/// Whether a condition of a definition holds.
#[must_use]
pub fn is_true(crd: &Doc, condition: &str) -> bool {
    let mut conditions = crd.at("/status/conditions").items().iter();
    conditions.any(|known| *known.at("/type") == condition && *known.at("/status") == "True")
}

fn group_and_scope(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let group = spec.str_at("/group");
    let field = path.child("group");
    let messages = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.required(&field, "");
    } else if !messages.is_empty() {
        errors.invalid(&field, group, messages.join(","));
    } else if !group.contains('.') {
        errors.invalid(&field, group, "should be a domain with at least one dot");
    }
    choice(
        spec.str_at("/scope"),
        &["Cluster", "Namespaced"],
        &path.child("scope"),
        errors,
    );
}

fn choice(value: &str, choices: &[&str], field: &FieldPath, errors: &mut FieldErrors) {
    match value {
        "" => errors.required(field, ""),
        value if choices.contains(&value) => {}
        value => errors.not_supported(field, value, choices),
    }
}

/// Whether all versions say the same about something, which upstream then keeps in one place.
fn is_shared(versions: &[Doc], key: &str) -> bool {
    let first = versions.first().and_then(|version| version.get(key));
    first.is_some() && versions.iter().all(|version| version.get(key) == first)
}

fn versions(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let versions = spec.at("/versions").items();
    for (at, version) in versions.iter().enumerate() {
        let field = path.child("versions").index(at);
        if version.at("/schema/openAPIV3Schema").as_object().is_none() {
            errors.required(&field.child("schema").child("openAPIV3Schema"), "");
        }
    }
    for (at, version) in versions.iter().enumerate() {
        let field = path.child("versions").index(at);
        let name = version.str_at("/name");
        let messages = names::dns1035_label(name);
        if !messages.is_empty() {
            errors.invalid(&field.child("name"), name, messages.join(","));
        }
        deprecation(version, &field, errors);
        let place = |key: &str, own: &str, shared: &str| match is_shared(versions, key) {
            true => path.child(shared),
            false => field.child(own),
        };
        // What all versions share is looked at once.
        let is_due = |key: &str| at == 0 || !is_shared(versions, key);
        if is_due("schema") {
            let has_status = version.at("/subresources/status").as_object().is_some();
            let schema = version.at("/schema/openAPIV3Schema");
            schema_at(
                schema,
                has_status,
                &place("schema", "schema", "validation").child("openAPIV3Schema"),
                errors,
            );
        }
        if is_due("subresources") {
            scale(
                version.at("/subresources/scale"),
                &place("subresources", "subresources", "subresources").child("scale"),
                errors,
            );
        }
        if is_due("additionalPrinterColumns") {
            let field = place(
                "additionalPrinterColumns",
                "additionalPrinterColumns",
                "additionalPrinterColumns",
            );
            columns(version.at("/additionalPrinterColumns"), &field, errors);
        }
        if is_due("selectableFields") {
            selectable(
                version,
                &place("selectableFields", "selectableFields", "selectableFields"),
                errors,
            );
        }
    }
    version_set(versions, path, errors);
}

fn version_set(versions: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let field = path.child("versions");
    let names: HashSet<&str> = versions.iter().map(|it| it.str_at("/name")).collect();
    if names.len() != versions.len() {
        errors.invalid_shown(
            &field,
            internal_versions(versions),
            "must contain unique version names",
        );
    }
    let stored = versions
        .iter()
        .filter(|version| *version.at("/storage") == true)
        .count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.invalid_shown(&field, internal_versions(versions), why);
    }
}

/// The versions as upstream's messages show them: in its internal form.
fn internal_versions(versions: &[Doc]) -> String {
    let flag = |version: &Doc, key: &str| version.get(key).and_then(Doc::as_bool).unwrap_or(false);
    let one = |version: &Doc| {
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\
             \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
            version.at("/name"),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
        )
    };
    let all: Vec<String> = versions.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn deprecation(version: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let Some(warning) = version.get("deprecationWarning").and_then(Doc::as_str) else {
        return;
    };
    let field = path.child("deprecationWarning");
    if *version.at("/deprecated") != true {
        errors.invalid(&field, warning, "can only be set for deprecated versions");
        return;
    }
    if warning.len() > WARNING_BYTES_MAX {
        errors.invalid(&field, warning, "must be <= 256 characters long");
    }
    if warning.is_empty() {
        errors.invalid(&field, warning, "must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        let why = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        );
        errors.invalid(&field, warning, why);
    }
}

fn schema_at(schema: &Doc, has_status: bool, path: &FieldPath, errors: &mut FieldErrors) {
    if schema.as_object().is_none() {
        return;
    }
    let mut found = FieldErrors::default();
    if has_status {
        root_keys(schema, path, &mut found);
    }
    if *schema.at("/nullable") == true {
        found.forbidden(
            &path.child("nullable"),
            "nullable cannot be true at the root",
        );
    }
    let mut structure = FieldErrors::default();
    structural::check(schema, path, &mut structure);
    structure.sort();
    found.append(structure);
    if found.is_empty() {
        let compiled = schema::compiled(schema);
        defaults(&compiled, schema, path, &mut found);
        if found.is_empty() {
            expressions::check(&compiled, schema, path, &mut found);
        }
    }
    errors.append(found);
}

fn root_keys(schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let keys = schema.as_object().map_or(&[][..], Object::keys);
    let is_allowed = |key: &str| {
        ROOT_KEYS.contains(&key) || key.starts_with("x-kubernetes-") || key == "nullable"
    };
    if keys.iter().any(|key| !is_allowed(key)) {
        let why = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                   MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs \
                   Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the \
                   status subresource is enabled";
        errors.invalid(path, schema, why);
    }
}

/// Finds defaults that the schema itself would not accept.
fn defaults(node: &Node, schema: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if !node.has_defaults {
        return;
    }
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        default_at(node, default, &path.child("default"), errors);
    }
    for (key, part) in &node.properties {
        if let Some(inner) = schema.at("/properties").get(key) {
            defaults(part, inner, &path.child("properties").key(key), errors);
        }
    }
    if let Some(part) = node.values.as_deref() {
        defaults(
            part,
            schema.at("/additionalProperties"),
            &path.child("additionalProperties"),
            errors,
        );
    }
    if let Some(part) = node.items.as_deref() {
        defaults(part, schema.at("/items"), &path.child("items"), errors);
    }
}

fn default_at(node: &Node, default: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut pruning = Pruning::new();
    if pruning.run(node, default, node.is_embedded).is_some() {
        errors.invalid(path, default, "must not have unknown fields");
        return;
    }
    let settled = settle(node, default).unwrap_or_else(|| default.clone());
    let mut validation = Validation {
        errors,
        base: path.clone(),
    };
    validation.run(node, &settled, None, &FieldPath::new(""));
}

fn scale(scale: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if scale.as_object().is_none() {
        return;
    }
    for (key, under, is_required) in [
        ("specReplicasPath", ".spec", true),
        ("statusReplicasPath", ".status", true),
        ("labelSelectorPath", ".status or .spec", false),
    ] {
        let value = scale.get(key).and_then(Doc::as_str).unwrap_or_default();
        let field = path.child(key);
        let is_under = match key {
            "labelSelectorPath" => value.starts_with(".status.") || value.starts_with(".spec."),
            _ => value.starts_with(&format!("{under}.")),
        };
        if value.is_empty() {
            if is_required {
                errors.required(&field, "");
            }
        } else if !is_simple(value) {
            errors.invalid(&field, value, "must be a simple json path starting with .");
        } else if !is_under {
            errors.invalid(
                &field,
                value,
                format!("should be a json path under {under}"),
            );
        }
    }
}

/// Whether a path starts as paths do and can be read.
fn is_simple(path: &str) -> bool {
    path.starts_with('.') && JsonPath::parse(path).is_some()
}

fn columns(columns: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (at, column) in columns.items().iter().enumerate() {
        let field = path.index(at);
        let text = |key: &str| column.get(key).and_then(Doc::as_str).unwrap_or_default();
        if text("name").is_empty() {
            errors.required(&field.child("name"), "");
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text("type") {
            "" => errors.required(&field.child("type"), types),
            sort if COLUMN_TYPES.contains(&sort) => {}
            sort => errors.invalid(&field.child("type"), sort, types),
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.invalid(&field.child("format"), format, why);
        }
        match text("jsonPath") {
            "" => errors.required(&field.child("JSONPath"), ""),
            path if is_simple(path) => {}
            path => errors.invalid(
                &field.child("JSONPath"),
                path,
                "must be a simple json path starting with .",
            ),
        }
    }
}

fn selectable(version: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let fields = version.at("/selectableFields").items();
    let schema = version.at("/schema/openAPIV3Schema");
    let mut seen: HashSet<&str> = HashSet::new();
    for (at, field) in fields.iter().enumerate() {
        let place = path.index(at).child("jsonPath");
        let text = field.str_at("/jsonPath");
        if text.is_empty() {
            errors.required(&place, "");
            continue;
        }
        match schema_at_path(schema, text) {
            Err(why) => {
                errors.invalid(&place, text, format!("is an invalid path: {why}"));
                continue;
            }
            Ok(found) => {
                if text == ".metadata" || text.starts_with(".metadata.") {
                    errors.invalid(&place, text, "must not point to fields in metadata");
                }
                if !matches!(found.str_at("/type"), "string" | "boolean" | "integer") {
                    let why = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                               with formats are allowed.";
                    errors.invalid(&place, text, why);
                }
            }
        }
        if !seen.insert(text) {
            errors.duplicate(&place, text);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_LIMIT {
        errors.too_many(path, seen.len(), SELECTABLE_FIELDS_LIMIT);
    }
}

/// The schema that a path of names leads to.
fn schema_at_path<'a>(schema: &'a Doc, path: &str) -> Result<&'a Doc, String> {
    let mut rest = path;
    let mut schema = schema;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(after) = rest.strip_prefix('.') else {
            return Err(format!("expected [ or . but got: {rest}"));
        };
        let end = after.find(['.', '[']).unwrap_or(after.len());
        if end == 0 {
            return Err("unexpected end of JSON path".to_owned());
        }
        let name = &after[..end];
        schema = match (
            schema.at("/properties").get(name),
            schema.get("additionalProperties"),
        ) {
            (Some(part), _) => part,
            (None, Some(values)) if schema.get("properties").is_none() => values,
            _ => return Err("does not refer to a valid field".to_owned()),
        };
        rest = &after[end..];
    }
    Ok(schema)
}

fn names_of(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if given
            .get(key)
            .and_then(Doc::as_str)
            .is_none_or(str::is_empty)
        {
            errors.required(&path.child(key), "");
        }
    }
    let label = |key: &str, errors: &mut FieldErrors| {
        let value = given.get(key).and_then(Doc::as_str).unwrap_or_default();
        let messages = names::dns1035_label(value);
        if !value.is_empty() && !messages.is_empty() {
            errors.invalid(&path.child(key), value, messages.join(","));
        }
    };
    label("plural", errors);
    label("singular", errors);
    for key in ["kind", "listKind"] {
        let value = given.get(key).and_then(Doc::as_str).unwrap_or_default();
        let messages = names::dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !messages.is_empty() {
            let why = format!(
                "may have mixed case, but should otherwise match: {}",
                messages.join(",")
            );
            errors.invalid(&path.child(key), value, why);
        }
    }
    each_label(given.at("/shortNames"), &path.child("shortNames"), errors);
    let (kind, list_kind) = (given.str_at("/kind"), given.str_at("/listKind"));
    if !kind.is_empty() && kind == list_kind {
        errors.invalid(
            &path.child("listKind"),
            list_kind,
            "kind and listKind may not be the same",
        );
    }
    each_label(given.at("/categories"), &path.child("categories"), errors);
}

fn each_label(list: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (at, name) in list.items().iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let messages = names::dns1035_label(name);
        if !messages.is_empty() {
            errors.invalid(&path.index(at), name, messages.join(","));
        }
    }
}

fn conversion(conversion: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if conversion.as_object().is_none() {
        return;
    }
    let strategy = conversion.str_at("/strategy");
    choice(
        strategy,
        &["None", "Webhook"],
        &path.child("strategy"),
        errors,
    );
    let config = conversion.at("/webhook/clientConfig");
    let reviews = conversion.at("/webhook/conversionReviewVersions").items();
    let (config_path, reviews_path) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.as_object().is_some() {
            errors.forbidden(&config_path, why);
        }
        if !reviews.is_empty() {
            errors.forbidden(&reviews_path, why);
        }
        return;
    }
    if config.as_object().is_none() {
        errors.required(&config_path, "required when strategy is set to Webhook");
    } else if config.get("url").is_some() == config.get("service").is_some() {
        errors.required(&config_path, "exactly one of url or service is required");
    }
    if reviews.is_empty() {
        errors.required(&reviews_path, "");
    } else if !reviews
        .iter()
        .any(|version| *version == "v1" || *version == "v1beta1")
    {
        let all = conversion.at("/webhook/conversionReviewVersions");
        errors.invalid(
            &reviews_path,
            all,
            "must include at least one of v1, v1beta1",
        );
    }
}

fn stored_versions(crd: &Doc, errors: &mut FieldErrors) {
    let stored = crd.at("/status/storedVersions");
    let path = FieldPath::new("status.storedVersions");
    if stored.items().is_empty() {
        errors.invalid(&path, Doc::NULL, "must have at least one stored version");
        return;
    }
    let versions = crd.at("/spec/versions").items();
    let names: HashSet<&Doc> = stored.items().iter().collect();
    let is_stored = |name: &Doc| names.contains(name);
    for version in versions
        .iter()
        .filter(|version| *version.at("/storage") == true)
    {
        let name = version.str_at("/name");
        if !is_stored(version.at("/name")) {
            errors.invalid(
                &path,
                stored,
                format!("must have the storage version {name}"),
            );
        }
    }
    let known: HashSet<&Doc> = versions.iter().map(|it| it.at("/name")).collect();
    for (at, name) in stored.items().iter().enumerate() {
        if !known.contains(name) {
            let name = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.invalid(&path.index(at), name, why);
        }
    }
}

/// Why a pattern cannot be read, in the words of upstream's library where they are known.
pub(crate) fn regex_message(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    if text.contains("unclosed character class") {
        return format!("missing closing ]: `{pattern}`");
    }
    if text.contains("unclosed group") {
        return format!("missing closing ): `{pattern}`");
    }
    if text.contains("unopened group") {
        return format!("unexpected ): `{pattern}`");
    }
    if text.contains("repetition operator missing expression") {
        return format!("missing argument to repetition operator: `{pattern}`");
    }
    format!("invalid pattern: `{pattern}`")
}
