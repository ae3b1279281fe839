//! From the bytes of a request to an object.

use std::cell::RefCell;

use windlass_atlas::Atlas;
use windlass_core::{Doc, Gvk, Kind, Memo, Object, Str, YamlDuplicate, quote};

use super::{Call, document_order, typed};
use crate::negotiate::{self, Content};
use crate::query::FieldValidation;
use crate::work;
pub(super) use windlass_rules::edit::{cut, edit_metadata, put};
use windlass_rules::status::Status;
use windlass_schema::custom;

/// The object in a request body, and warnings about it.
pub(super) fn decode(
    call: &Call,
    gvk: &Gvk,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Doc, Status> {
    let content = negotiate::content(&call.headers)?;
    if call.is_bare() {
        return Err(unreadable(gvk, "unexpected end of JSON input (<empty>)"));
    }
    let (doc, duplicates) = match content {
        Content::Json => parse_json(call, gvk)?,
        Content::Yaml => parse_yaml(&call.body, gvk)?,
        Content::Protobuf => (parse_protobuf(&call.body, gvk)?, Vec::new()),
    };
    work::check()?;
    let doc = check_type(&doc, gvk)?;
    let custom = call.resource.custom_schema(gvk);
    let mut strictness = Strictness {
        validation,
        complaints: duplicates,
        // YAML is sorted by its reader, and unknown fields of custom resources by their schema.
        json: (content == Content::Json && custom.is_none()).then_some(&call.body[..]),
    };
    let refuse = |why: String| {
        let (kind, version) = (gvk.kind(), gvk.version());
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    let doc = conform(&doc, gvk, custom, &mut strictness).map_err(refuse)?;
    if *gvk == call.resource.gvk
        && let Some(why) = call.resource.hooks.unreadable(&doc)
    {
        return Err(refuse(why));
    }
    warnings.extend(strictness.complaints);
    work::check()?;
    call.audit
        .decoded(&doc, |doc| match *gvk == call.resource.gvk {
            true => call.resource.hooks.default(doc),
            false => doc,
        });
    Ok(doc)
}

/// What becomes of complaints about fields.
pub(super) struct Strictness<'a> {
    /// The text whose order is that of the complaints, if there is one.
    pub(super) json: Option<&'a [u8]>,
    pub(super) validation: FieldValidation,
    /// What was found so far; afterwards, what the client is to be warned of.
    pub(super) complaints: Vec<String>,
}

impl Strictness<'_> {
    /// All complaints in one text. Those about YAML come first and are one error of the reader.
    fn list(&self) -> String {
        let is_yaml = |complaint: &&String| complaint.starts_with("line ");
        let (yaml, others): (Vec<&String>, Vec<&String>) =
            self.complaints.iter().partition(is_yaml);
        let yaml: String = yaml.iter().map(|line| format!("\n  {line}")).collect();
        let yaml = (!yaml.is_empty()).then(|| format!("yaml: unmarshal errors:{yaml}"));
        let all: Vec<String> = yaml
            .into_iter()
            .chain(others.into_iter().cloned())
            .collect();
        all.join(", ")
    }
}

/// An object that fits its kind: without fields that the kind does not have and without `null`.
pub(super) fn conform(
    doc: &Doc,
    gvk: &Gvk,
    custom: Option<&custom::Version>,
    strictness: &mut Strictness<'_>,
) -> Result<Doc, String> {
    let typed = match custom {
        Some(custom) => typed::fit_custom(custom, doc)?,
        None => typed::fit(gvk, doc)?,
    };
    strictness.complaints.extend(typed.unknown);
    if let Some(json) = strictness.json {
        document_order::sort(&mut strictness.complaints, json);
    }
    match strictness.validation {
        FieldValidation::Strict if !strictness.complaints.is_empty() => {
            let list = strictness.list();
            return Err(format!("strict decoding error: {list}"));
        }
        FieldValidation::Ignore => strictness.complaints.clear(),
        FieldValidation::Strict | FieldValidation::Warn => {}
    }
    // In a custom resource a null may mean something; its schema knows.
    Ok(match custom {
        Some(_) => typed.doc,
        None => clean(&typed.doc),
    })
}

/// A JSON body, and a complaint for each field that comes twice.
fn parse_json(call: &Call, gvk: &Gvk) -> Result<(Doc, Vec<String>), Status> {
    let parsed = call
        .parse_json()
        .map_err(|error| unreadable(gvk, &error.to_string()))?;
    let duplicates = parsed.duplicates.iter();
    let complaints = duplicates.map(|path| format!("duplicate field \"{path}\""));
    Ok((parsed.doc, complaints.collect()))
}

/// The object in a protobuf body.
pub(super) fn parse_protobuf(body: &[u8], gvk: &Gvk) -> Result<Doc, Status> {
    if Atlas::kind(gvk).is_none() {
        let (kind, version) = (gvk.kind(), gvk.version());
        return Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: object \
             *unstructured.Unstructured does not implement the protobuf marshalling interface and \
             cannot be encoded to a protobuf message"
        )));
    }
    let decoded = windlass_atlas::decode_protobuf_as(body, gvk);
    let decoded = decoded.map_err(|error| {
        let kind = gvk.kind();
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error}"
        ))
    })?;
    Ok(decoded.doc)
}

/// The one document of a YAML body, and a complaint for each key that comes twice.
pub(super) fn parse_yaml(body: &[u8], gvk: &Gvk) -> Result<(Doc, Vec<String>), Status> {
    let text = std::str::from_utf8(body).map_err(|error| unreadable(gvk, &error.to_string()))?;
    let parsed = Doc::parse_yaml_with_duplicates(text);
    let (mut docs, duplicates) = parsed.map_err(|error| unreadable(gvk, &error.to_string()))?;
    match docs.len() {
        1 => Ok((docs.remove(0), yaml_complaints(&duplicates))),
        count => Err(unreadable(
            gvk,
            &format!("expected one document, found {count}"),
        )),
    }
}

/// What is said about keys that come twice.
pub(super) fn yaml_complaints(duplicates: &[YamlDuplicate]) -> Vec<String> {
    let complaint = |duplicate: &YamlDuplicate| {
        let (line, key) = (duplicate.line, quote(&duplicate.key));
        format!("line {line}: key {key} already set in map")
    };
    duplicates.iter().map(complaint).collect()
}

fn unreadable(gvk: &Gvk, why: &str) -> Status {
    let kind = gvk.kind();
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
         json parse error: {why}"
    ))
}

/// An object without its `null` fields, which mean the same as no field.
pub(super) fn clean(doc: &Doc) -> Doc {
    without_nulls(doc).unwrap_or_else(|| doc.clone())
}

/// A document without `null` fields; `None` if it has none.
fn without_nulls(doc: &Doc) -> Option<Doc> {
    match doc.kind() {
        Kind::Object(object) if object.len() < KNOWN_FIELDS_MIN => fields_without_nulls(object),
        Kind::Object(object) => {
            if KNOWN.with_borrow(|known| known.get(doc)).is_some() {
                return None;
            }
            let cleaned = fields_without_nulls(object);
            if cleaned.is_none() {
                KNOWN.with_borrow_mut(|known| known.put(doc.clone(), ()));
            }
            cleaned
        }
        Kind::Array(array) => {
            let mut items: Option<Vec<Doc>> = None;
            for (position, item) in array.iter().enumerate() {
                if let Some(cleaned) = without_nulls(item) {
                    items.get_or_insert_with(|| array.to_vec())[position] = cleaned;
                }
            }
            items.map(Doc::from)
        }
        _ => None,
    }
}

/// Built once, however many fields go: whoever sends a hundred thousand of them pays for each once.
fn fields_without_nulls(object: &Object) -> Option<Doc> {
    let mut kept: Option<Vec<(Str, Doc)>> = None;
    for (position, (key, value)) in object.iter().enumerate() {
        let cleaned = without_nulls(value);
        if value.is_null() || cleaned.is_some() {
            let before = object.iter().take(position);
            let before = before.map(|(key, value)| (key.clone(), value.clone()));
            kept.get_or_insert_with(|| before.collect());
        }
        if let Some(kept) = kept.as_mut().filter(|_| !value.is_null()) {
            kept.push((key.clone(), cleaned.unwrap_or_else(|| value.clone())));
        }
    }
    kept.map(|fields| Object::new(fields).into())
}

/// Documents without `null` that a thread remembers.
const KNOWN_LIMIT: usize = 8192;
/// Smaller ones are quicker to look through than to look up.
const KNOWN_FIELDS_MIN: usize = 8;

thread_local! {
    /// Documents in which there is no `null`.
    static KNOWN: RefCell<Memo<Doc, ()>> = RefCell::new(Memo::new(KNOWN_LIMIT));
}

/// Whether a kind is not built in.
fn is_custom(gvk: &Gvk) -> bool {
    windlass_atlas::Atlas::kind(gvk).is_none()
}

/// An object that says it is of the kind, or says nothing and is taken to be.
pub(super) fn check_type(doc: &Doc, gvk: &Gvk) -> Result<Doc, Status> {
    let Some(object) = doc.as_object() else {
        return Err(unreadable(
            gvk,
            &format!("{} is not an object", doc.kind().name()),
        ));
    };
    let api_version = gvk.api_version();
    for (key, expected) in [("kind", gvk.kind()), ("apiVersion", &api_version)] {
        let found = object.get(key).filter(|value| !value.is_null());
        match found.map(|value| value.as_str()) {
            None | Some(Some("")) => {}
            Some(Some(found)) if found == expected => {}
            Some(Some(found)) if key == "apiVersion" && is_custom(gvk) => {
                return Err(Status::bad_request(format!(
                    "the API version in the data ({found}) does not match the expected API version \
                     ({expected})"
                )));
            }
            Some(Some(found)) if key == "apiVersion" => {
                let kind = gvk.kind();
                let version = found.rsplit('/').next().unwrap_or_default();
                return Err(Status::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: no kind \
                     {kind:?} is registered for version {found:?}"
                )));
            }
            Some(found) => {
                let found = found.unwrap_or("?");
                let version = doc.str_at("/apiVersion");
                return Err(Status::bad_request(format!(
                    "{found} in version {version:?} cannot be handled as a {expected}: expected \
                     kind {expected}, found {found}"
                )));
            }
        }
    }
    let metadata = object.get("metadata").filter(|value| !value.is_null());
    let metadata = metadata.cloned().unwrap_or_else(Doc::empty_object);
    Ok(object
        .with("kind", gvk.kind().into())
        .with("apiVersion", api_version.into())
        .with("metadata", metadata)
        .into())
}

/// A field of the metadata taken over from another object, absent if it is absent there.
pub(super) fn keep_metadata(metadata: &Object, key: &str, old: &Doc) -> Object {
    match old.at("/metadata").get(key) {
        Some(value) => metadata.with(key, value.clone()),
        None => metadata.without(key),
    }
}

/// An object with a top field taken over from another, absent if it is absent there.
pub(crate) fn keep_field(doc: &Doc, key: &str, old: &Doc) -> Doc {
    let Some(object) = doc.as_object() else {
        return doc.clone();
    };
    match old.get(key) {
        Some(value) => object.with(key, value.clone()).into(),
        None => object.without(key).into(),
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn nulls_go_and_everything_else_stays() {
        let object = doc!({
            "a": null, "b": 1, "c": { "d": null, "e": [{ "f": null, "g": 2 }, 3] }, "h": {}, "i": null
        });
        let cleaned = doc!({ "b": 1, "c": { "e": [{ "g": 2 }, 3] }, "h": {} });
        assert_eq!(clean(&object), cleaned);
        assert_eq!(clean(&cleaned), cleaned);
    }

    #[test]
    fn many_nulls_are_removed_in_one_go() {
        let fields = (0..100_000).map(|number| (Str::new(&format!("key-{number}")), Doc::NULL));
        let object = doc!({ "data": (Doc::from(Object::new(fields.collect()))) });
        assert_eq!(clean(&object), doc!({ "data": {} }));
    }
}
