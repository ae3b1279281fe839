//! OpenAPI v2 documents in protobuf, as the messages of `openapi.v2` in gnostic.
//!
//! Each function writes the fields of one message. Values of any type are written as YAML, of
//! which JSON is a part.

use windlass_core::Doc;

/// The bytes of a message.
type Bytes = Vec<u8>;

/// What a document has besides its definitions and paths.
#[derive(Clone, Debug)]
pub struct SwaggerHead {
    /// The title.
    pub title: &'static str,
    /// The version of what is documented.
    pub version: &'static str,
    /// The shared parameters, by name.
    pub parameters: Doc,
    /// The ways to say who one is, by name.
    pub security_definitions: Doc,
    /// Which of them are needed.
    pub security: Doc,
}

/// A whole document of definitions and paths that are written already.
pub fn protobuf_document<'a>(
    head: &SwaggerHead,
    definitions: impl Iterator<Item = &'a [u8]>,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Bytes {
    let mut out = Vec::new();
    text(1, "2.0", &mut out);
    let mut info = Vec::new();
    text(1, head.title, &mut info);
    text(2, head.version, &mut info);
    bytes(2, &info, &mut out);
    bytes(8, &joined(2, paths), &mut out);
    bytes(9, &joined(1, definitions), &mut out);
    let parameters = members(&head.parameters).map(|(name, it)| named(name, &parameter(it)));
    bytes(10, &repeated(1, parameters), &mut out);
    for requirement in head.security.items() {
        let all = members(requirement).map(|(name, scopes)| {
            let mut values = Vec::new();
            texts(1, scopes, &mut values);
            named(name, &values)
        });
        bytes(12, &repeated(1, all), &mut out);
    }
    let security = members(&head.security_definitions).map(|(name, key)| {
        let mut fields = Vec::new();
        for (number, field) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
            text_of(number, key, field, &mut fields);
        }
        named(name, &single(2, &fields))
    });
    bytes(13, &repeated(1, security), &mut out);
    out
}

/// A definition with its name.
#[must_use]
pub fn named_schema(name: &str, definition: &Doc) -> Bytes {
    named(name, &schema(definition))
}

/// A path with its operations.
#[must_use]
pub fn named_path(path: &str, item: &Doc) -> Bytes {
    let mut out = Vec::new();
    for (number, method) in [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (6, "options"),
        (7, "head"),
        (8, "patch"),
    ] {
        if let Some(found) = item.get(method) {
            bytes(number, &operation(found), &mut out);
        }
    }
    parameters(9, item, &mut out);
    extensions(10, item, &mut out);
    named(path, &out)
}

fn operation(operation: &Doc) -> Bytes {
    let mut out = Vec::new();
    texts_of(1, operation, "tags", &mut out);
    text_of(3, operation, "description", &mut out);
    text_of(5, operation, "operationId", &mut out);
    texts_of(6, operation, "produces", &mut out);
    texts_of(7, operation, "consumes", &mut out);
    parameters(8, operation, &mut out);
    if let Some(all) = operation.get("responses") {
        let responses = members(all).map(|(code, it)| named(code, &single(1, &response(it))));
        bytes(9, &repeated(1, responses), &mut out);
    }
    texts_of(10, operation, "schemes", &mut out);
    extensions(13, operation, &mut out);
    out
}

fn response(response: &Doc) -> Bytes {
    let mut out = Vec::new();
    text_of(1, response, "description", &mut out);
    if let Some(found) = response.get("schema") {
        bytes(2, &single(1, &schema(found)), &mut out);
    }
    out
}

fn parameters(number: u32, of: &Doc, out: &mut Bytes) {
    for item in of.get("parameters").map_or(&[][..], Doc::items) {
        let written = match item.get("$ref") {
            Some(_) => {
                let mut reference = Vec::new();
                text_of(1, item, "$ref", &mut reference);
                single(2, &reference)
            }
            None => single(1, &parameter(item)),
        };
        bytes(number, &written, out);
    }
}

fn parameter(parameter: &Doc) -> Bytes {
    let mut out = Vec::new();
    let place = parameter.str_at("/in");
    if place == "body" {
        text_of(1, parameter, "description", &mut out);
        text_of(2, parameter, "name", &mut out);
        text_of(3, parameter, "in", &mut out);
        flag_of(4, parameter, "required", &mut out);
        if let Some(found) = parameter.get("schema") {
            bytes(5, &schema(found), &mut out);
        }
        return single(1, &out);
    }
    flag_of(1, parameter, "required", &mut out);
    text_of(2, parameter, "in", &mut out);
    text_of(3, parameter, "description", &mut out);
    text_of(4, parameter, "name", &mut out);
    // The messages of parameters in the query and in the path differ from here on.
    let (sort, unique, message) = match place {
        "path" => (5, 19, 4),
        _ => (6, 20, 3),
    };
    text_of(sort, parameter, "type", &mut out);
    flag_of(unique, parameter, "uniqueItems", &mut out);
    single(2, &single(message, &out))
}

fn schema(schema: &Doc) -> Bytes {
    let mut out = Vec::new();
    text_of(1, schema, "$ref", &mut out);
    text_of(2, schema, "format", &mut out);
    text_of(3, schema, "title", &mut out);
    text_of(4, schema, "description", &mut out);
    double_of(6, schema, "multipleOf", &mut out);
    double_of(7, schema, "maximum", &mut out);
    flag_of(8, schema, "exclusiveMaximum", &mut out);
    double_of(9, schema, "minimum", &mut out);
    flag_of(10, schema, "exclusiveMinimum", &mut out);
    number_of(11, schema, "maxLength", &mut out);
    number_of(12, schema, "minLength", &mut out);
    text_of(13, schema, "pattern", &mut out);
    number_of(14, schema, "maxItems", &mut out);
    number_of(15, schema, "minItems", &mut out);
    flag_of(16, schema, "uniqueItems", &mut out);
    number_of(17, schema, "maxProperties", &mut out);
    number_of(18, schema, "minProperties", &mut out);
    texts_of(19, schema, "required", &mut out);
    for value in schema.get("enum").map_or(&[][..], Doc::items) {
        bytes(20, &any(value), &mut out);
    }
    match schema.get("additionalProperties") {
        Some(values) if values.as_object().is_some() => {
            bytes(21, &single(1, &self::schema(values)), &mut out);
        }
        Some(allowed) => bytes(21, &flag(2, *allowed == true), &mut out),
        None => {}
    }
    if let Some(sort) = schema.get("type") {
        let mut values = Vec::new();
        text(1, sort.as_str().unwrap_or_default(), &mut values);
        bytes(22, &values, &mut out);
    }
    if let Some(items) = schema.get("items") {
        bytes(23, &single(1, &self::schema(items)), &mut out);
    }
    if let Some(properties) = schema.get("properties") {
        let all = members(properties).map(|(name, it)| named(name, &self::schema(it)));
        bytes(25, &repeated(1, all), &mut out);
    }
    extensions(31, schema, &mut out);
    out
}

fn extensions(number: u32, of: &Doc, out: &mut Bytes) {
    for (name, value) in members(of).filter(|(name, _)| name.starts_with("x-")) {
        bytes(number, &named(name, &any(value)), out);
    }
}

/// A value of any type.
fn any(value: &Doc) -> Bytes {
    let mut out = Vec::new();
    text(2, &value.to_string(), &mut out);
    out
}

fn named(name: &str, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(value.len() + name.len() + 8);
    text(1, name, &mut out);
    bytes(2, value, &mut out);
    out
}

fn members(object: &Doc) -> impl Iterator<Item = (&str, &Doc)> {
    let object = object.as_object().into_iter();
    object.flat_map(|object| object.iter().map(|(key, value)| (key.as_str(), value)))
}

fn single(number: u32, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(value.len() + 8);
    bytes(number, value, &mut out);
    out
}

fn repeated(number: u32, values: impl Iterator<Item = Bytes>) -> Bytes {
    let mut out = Vec::new();
    for value in values {
        bytes(number, &value, &mut out);
    }
    out
}

fn joined<'a>(number: u32, values: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut out = Vec::new();
    for value in values {
        bytes(number, value, &mut out);
    }
    out
}

fn text_of(number: u32, of: &Doc, field: &str, out: &mut Bytes) {
    if let Some(found) = of.get(field).and_then(Doc::as_str) {
        text(number, found, out);
    }
}

fn texts_of(number: u32, of: &Doc, field: &str, out: &mut Bytes) {
    if let Some(found) = of.get(field) {
        texts(number, found, out);
    }
}

fn texts(number: u32, list: &Doc, out: &mut Bytes) {
    for item in list.items() {
        text(number, item.as_str().unwrap_or_default(), out);
    }
}

fn flag_of(number: u32, of: &Doc, field: &str, out: &mut Bytes) {
    if of.get(field).is_some_and(|value| *value == true) {
        out.extend(flag(number, true));
    }
}

fn flag(number: u32, value: bool) -> Bytes {
    let mut out = Vec::new();
    varint(u64::from(number) << 3, &mut out);
    out.push(u8::from(value));
    out
}

fn number_of(number: u32, of: &Doc, field: &str, out: &mut Bytes) {
    if let Some(value) = of.get(field).and_then(Doc::as_i64) {
        varint(u64::from(number) << 3, out);
        varint(value.cast_unsigned(), out);
    }
}

fn double_of(number: u32, of: &Doc, field: &str, out: &mut Bytes) {
    if let Some(value) = of.get(field).and_then(Doc::as_f64) {
        varint(u64::from(number) << 3 | 1, out);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn text(number: u32, text: &str, out: &mut Bytes) {
    bytes(number, text.as_bytes(), out);
}

fn bytes(number: u32, bytes: &[u8], out: &mut Bytes) {
    varint(u64::from(number) << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Bytes) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
