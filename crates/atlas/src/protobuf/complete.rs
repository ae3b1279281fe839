//! Objects as kube-apiserver writes them in protobuf.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::{Doc, Gvk, Kind, Memo, MicroTime, Object, Time};

use super::PROTOBUF_PREFIX;
use super::put::{FIXED64, bytes, close, tag, text, varint, varint_field};
use crate::table::{Atlas, Field, Shape, Type};
use crate::zero::is_scalar;

/// The smallest memoized part: shorter ones are quicker to write than to look up.
const PART_BYTES_MIN: usize = 64;
/// The number of memoized bytes, after which all are dropped.
const BYTES_LIMIT: usize = 1 << 20;
/// The number of memoized parts, after which all are dropped.
const PARTS_LIMIT: usize = 8192;

/// The number of the object in the envelope, upstream's `runtime.Unknown`.
const RAW: u32 = 2;
/// The number of the items in every list.
const ITEMS: u32 = 2;
/// The end of the envelope: an empty content encoding and an empty content type.
const ENVELOPE_END: [u8; 4] = [0x1a, 0, 0x22, 0];

/// Writes built-in kinds byte by byte as kube-apiserver does: every field that is not a pointer,
/// also when it is zero, in the order of the field numbers. Fields that the kind does not have are
/// left out. It memoizes the bytes of the parts that objects share, such as the containers of the
/// pods of one template.
pub struct ObjectEncoder {
    /// The range of the bytes of a part, by its shape.
    parts: Memo<(usize, Doc), Range<usize>>,
    bytes: Vec<u8>,
}

/// The reason why an object has no form in protobuf.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The document has no built-in kind.
    #[error("no built-in kind {kind:?} in version {api_version:?}")]
    UnknownKind {
        /// The `apiVersion`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A value that its field cannot hold.
    #[error("{path}: the value does not fit the field")]
    WrongValue {
        /// The path of the field; empty for the object itself.
        path: String,
    },
}

impl EncodeError {
    fn wrong() -> Self {
        Self::WrongValue {
            path: String::new(),
        }
    }

    fn inside(mut self, field: &str) -> Self {
        if let Self::WrongValue { path } = &mut self {
            if !path.is_empty() {
                path.insert(0, '.');
            }
            path.insert_str(0, field);
        }
        self
    }
}

type Written = Result<(), EncodeError>;

/// The value, or the error that it does not fit.
fn fits<T>(value: Option<T>) -> Result<T, EncodeError> {
    value.ok_or_else(EncodeError::wrong)
}

impl ObjectEncoder {
    /// An encoder with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parts: Memo::new(PARTS_LIMIT),
            bytes: Vec::new(),
        }
    }

    /// Appends an object as a body of type `application/vnd.kubernetes.protobuf`.
    ///
    /// # Errors
    /// When the object has no form in protobuf. What was appended by then is of no use.
    pub fn write(&mut self, doc: &Doc, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (api_version, kind) = (doc.str_at("/apiVersion"), doc.str_at("/kind"));
        let of = type_of(api_version, kind)?;
        envelope_start(api_version, kind, out);
        let start = out.len();
        self.message(of, doc, out)?;
        close(RAW, start, out);
        out.extend_from_slice(&ENVELOPE_END);
        Ok(())
    }

    /// Appends an object as an item of a list.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_item(
        &mut self,
        of: &'static Type,
        doc: &Doc,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        self.message(of, doc, out)?;
        close(ITEMS, start, out);
        Ok(())
    }

    /// Appends everything of a list that comes before its items, which will be so many bytes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_list_start(
        &mut self,
        (api_version, kind): (&str, &str),
        metadata: &Doc,
        item_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let of = type_of(api_version, kind)?;
        let mut head = Vec::new();
        if let Some(field) = of.field("metadata") {
            self.present(field, metadata, &mut head)?;
        }
        envelope_start(api_version, kind, out);
        tag(RAW, super::put::BYTES, out);
        varint((head.len() + item_bytes) as u64, out);
        out.extend_from_slice(&head);
        Ok(())
    }

    /// Appends everything of a list that comes after its items.
    pub fn write_list_end(out: &mut Vec<u8>) {
        out.extend_from_slice(&ENVELOPE_END);
    }

    /// Appends a message.
    fn message(&mut self, of: &'static Type, doc: &Doc, out: &mut Vec<u8>) -> Written {
        let empty = Object::empty();
        match doc.kind() {
            Kind::Object(object) => self.fields(of, object, out),
            Kind::Null => self.fields(of, &empty, out),
            _ => Err(EncodeError::wrong()),
        }
    }

    fn fields(&mut self, of: &'static Type, object: &Object, out: &mut Vec<u8>) -> Written {
        let own = of.own_fields();
        for &at in of.wire_order() {
            let at = usize::from(at);
            match own.get(at) {
                Some(field) => {
                    let value = object.get(field.name()).filter(|value| !value.is_null());
                    match value {
                        Some(value) => self.present(field, value, out),
                        None => self.absent(field, out),
                    }
                    .map_err(|error| error.inside(field.name()))?;
                }
                None => {
                    let inlined = &of.inlined()[at - own.len()];
                    let start = out.len();
                    self.fields(inlined.of.get(), object, out)?;
                    close(inlined.number, start, out);
                }
            }
        }
        Ok(())
    }

    /// Appends the zero value of a field that the object does not have.
    fn absent(&mut self, field: &'static Field, out: &mut Vec<u8>) -> Written {
        let number = field.number();
        if field.is_pointer() {
            return Ok(());
        }
        match field.shape() {
            Shape::List(_) | Shape::WrappedList(_) | Shape::Map(_) | Shape::Bytes | Shape::Any => {}
            Shape::Double => {
                tag(number, FIXED64, out);
                out.extend_from_slice(&0f64.to_le_bytes());
            }
            Shape::Bool | Shape::Int32 | Shape::Int64 => varint_field(number, 0, out),
            Shape::String | Shape::Enum(_) => text(number, "", out),
            Shape::Quantity => self.value(number, field.shape(), &Doc::from("0"), out)?,
            Shape::IntOrString => self.value(number, field.shape(), &Doc::from(0), out)?,
            Shape::Message(of) => {
                let start = out.len();
                self.message(of.get(), &Doc::NULL, out)?;
                close(number, start, out);
            }
            Shape::Time
            | Shape::MicroTime
            | Shape::Fields
            | Shape::Raw
            | Shape::Json
            | Shape::SchemaOrBool
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings => bytes(number, &[], out),
        }
        Ok(())
    }

    /// Appends a field that the object has.
    fn present(&mut self, field: &'static Field, value: &Doc, out: &mut Vec<u8>) -> Written {
        let shape = field.shape();
        if is_scalar(shape) || !value.is_shared() {
            return self.field(field, value, out);
        }
        let place = std::ptr::from_ref(field).addr();
        let key = (place, value.clone());
        if let Some(range) = self.parts.get(&key) {
            out.extend_from_slice(&self.bytes[range]);
            return Ok(());
        }
        let start = out.len();
        self.field(field, value, out)?;
        self.remember(key, &out[start..]);
        Ok(())
    }

    fn remember(&mut self, key: (usize, Doc), written: &[u8]) {
        if !(PART_BYTES_MIN..=BYTES_LIMIT).contains(&written.len()) {
            return;
        }
        if self.bytes.len() + written.len() > BYTES_LIMIT {
            self.parts.clear();
            self.bytes.clear();
        }
        let range = self.bytes.len()..self.bytes.len() + written.len();
        self.bytes.extend_from_slice(written);
        self.parts.put(key, range);
    }

    fn field(&mut self, field: &'static Field, value: &Doc, out: &mut Vec<u8>) -> Written {
        let number = field.number();
        match field.shape() {
            Shape::List(inner) => {
                let items = fits(value.as_array())?;
                let mut items = items.iter();
                items.try_for_each(|item| self.value(number, inner, item, out))
            }
            Shape::Map(inner) => {
                let entries = fits(value.as_object())?;
                entries.iter().try_for_each(|(key, value)| {
                    let start = out.len();
                    text(1, key, out);
                    self.value(2, inner, value, out)?;
                    close(number, start, out);
                    Ok(())
                })
            }
            shape => self.value(number, shape, value, out),
        }
    }

    /// Appends one value that is neither a list nor a map.
    fn value(
        &mut self,
        number: u32,
        shape: &'static Shape,
        value: &Doc,
        out: &mut Vec<u8>,
    ) -> Written {
        match shape {
            Shape::Bool => {
                varint_field(number, u64::from(fits(value.as_bool())?), out);
                return Ok(());
            }
            Shape::Int32 | Shape::Int64 => {
                varint_field(number, fits(value.as_i64())?.cast_unsigned(), out);
                return Ok(());
            }
            Shape::Double => {
                tag(number, FIXED64, out);
                out.extend_from_slice(&fits(value.as_f64())?.to_le_bytes());
                return Ok(());
            }
            Shape::String | Shape::Enum(_) => {
                text(number, fits(value.as_str())?, out);
                return Ok(());
            }
            Shape::Bytes => {
                let decoded = value.as_str().and_then(|text| BASE64.decode(text).ok());
                // A value of a map may be null.
                if !value.is_null() {
                    bytes(number, &fits(decoded)?, out);
                }
                return Ok(());
            }
            _ => {}
        }
        let start = out.len();
        self.composite(shape, value, out)?;
        close(number, start, out);
        Ok(())
    }

    /// Appends the fields of a value that is a message.
    fn composite(&mut self, shape: &'static Shape, value: &Doc, out: &mut Vec<u8>) -> Written {
        match shape {
            Shape::Message(of) => self.message(of.get(), value, out),
            Shape::Time => time(value, out),
            Shape::MicroTime => micro_time(value, out),
            Shape::Quantity => quantity(value, out),
            Shape::IntOrString => int_or_string(value, out),
            // `null` is the zero value of these: no bytes.
            Shape::Fields | Shape::Raw | Shape::Json if value.is_null() => Ok(()),
            Shape::Fields | Shape::Raw | Shape::Json => {
                bytes(1, &value.to_json(), out);
                Ok(())
            }
            Shape::WrappedList(inner) => {
                let items = fits(value.as_array())?;
                let mut items = items.iter();
                items.try_for_each(|item| self.value(1, inner, item, out))
            }
            Shape::SchemaOrBool => {
                let allows = value.as_bool().unwrap_or(true);
                varint_field(1, u64::from(allows), out);
                match value.as_object() {
                    Some(_) => self.schema(2, value, out),
                    None => Ok(()),
                }
            }
            Shape::SchemaOrArray | Shape::SchemaOrStrings => match value.as_array() {
                None => self.schema(1, value, out),
                Some(items) => items.iter().try_for_each(|item| match item.as_str() {
                    Some(said) => {
                        text(2, said, out);
                        Ok(())
                    }
                    None => self.schema(2, item, out),
                }),
            },
            _ => Err(EncodeError::wrong()),
        }
    }

    fn schema(&mut self, number: u32, value: &Doc, out: &mut Vec<u8>) -> Written {
        let of = Atlas::named("apiextensions/v1", "JSONSchemaProps")
            .expect("invariant: the table has the type of JSON schemas");
        let start = out.len();
        self.message(of, value, out)?;
        close(number, start, out);
        Ok(())
    }
}

impl Default for ObjectEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ObjectEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectEncoder")
            .field("parts", &self.parts)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Appends an event of a watch, whose object was written as a body: the length of the event and
/// the event itself, which has no envelope.
pub fn write_protobuf_event(sort: &str, object: &[u8], out: &mut Vec<u8>) {
    let mut event = Vec::with_capacity(object.len() + 32);
    text(1, sort, &mut event);
    let start = event.len();
    bytes(1, object, &mut event);
    close(2, start, &mut event);
    let length = u32::try_from(event.len()).expect("invariant: objects are far below 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&event);
}

/// The built-in type of a kind.
fn type_of(api_version: &str, kind: &str) -> Result<&'static Type, EncodeError> {
    // `APIVersions` says no version.
    let version = if api_version.is_empty() {
        "v1"
    } else {
        api_version
    };
    let gvk = Gvk::parse(version, kind).ok();
    gvk.and_then(|gvk| Atlas::kind(&gvk))
        .ok_or_else(|| EncodeError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
}

/// Appends the prefix of every body and the kind of its object.
fn envelope_start(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&PROTOBUF_PREFIX);
    let start = out.len();
    text(1, api_version, out);
    text(2, kind, out);
    close(1, start, out);
}

fn time(value: &Doc, out: &mut Vec<u8>) -> Written {
    let time: Time = fits(value.as_str().and_then(|text| text.parse().ok()))?;
    varint_field(1, time.unix().cast_unsigned(), out);
    varint_field(2, 0, out);
    Ok(())
}

fn micro_time(value: &Doc, out: &mut Vec<u8>) -> Written {
    let time: MicroTime = fits(value.as_str().and_then(|text| text.parse().ok()))?;
    let micros = time.unix_micros();
    varint_field(1, micros.div_euclid(1_000_000).cast_unsigned(), out);
    let nanos = micros.rem_euclid(1_000_000) * 1_000;
    varint_field(2, nanos.cast_unsigned(), out);
    Ok(())
}

fn quantity(value: &Doc, out: &mut Vec<u8>) -> Written {
    match value.kind() {
        Kind::Str(said) => text(1, said, out),
        Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => text(1, &value.to_string(), out),
        Kind::Null => text(1, "0", out),
        _ => return Err(EncodeError::wrong()),
    }
    Ok(())
}

/// Appends which of the two it is, the number and the text: one of them is zero.
fn int_or_string(value: &Doc, out: &mut Vec<u8>) -> Written {
    let (sort, number, said) = match value.kind() {
        Kind::Str(said) => (1, 0, said),
        _ => (0, fits(value.as_i64())?, ""),
    };
    varint_field(1, sort, out);
    varint_field(2, number.cast_unsigned(), out);
    text(3, said, out);
    Ok(())
}
