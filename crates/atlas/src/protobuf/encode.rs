//! Documents as protobuf.

use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::{Doc, Gvk, Kind, Memo, MicroTime, Object, Time};

use super::PROTOBUF_PREFIX;
use super::put::{FIXED64, bytes, close, tag, text, varint_field};
use crate::table::{Atlas, Field, Shape, Type};

/// The field whose bytes are memoized: the pods of one template have one spec between them.
const SPEC: &str = "spec";
/// The number of memoized bytes, after which all are dropped.
const BYTES_LIMIT: usize = 512 << 10;
/// The number of memoized specs, after which all are dropped.
const SPECS_LIMIT: usize = 4096;

/// Writes built-in kinds as protobuf bodies, and memoizes the bytes of specs.
///
/// An object that protobuf cannot express is not written: one with a field that the table does not
/// know, with a value of another type than its field has, or with an empty list, which is no list
/// in protobuf. Such an object goes as JSON, so that the server sees and judges all of it.
pub struct ProtobufEncoder {
    /// The range of the bytes of a spec, by its type.
    specs: Memo<(usize, Doc), Range<usize>>,
    bytes: Vec<u8>,
}

/// `None` if protobuf cannot say it.
type Written = Option<()>;

impl ProtobufEncoder {
    /// An encoder with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self {
            specs: Memo::new(SPECS_LIMIT),
            bytes: Vec::new(),
        }
    }

    /// Appends an object as a body of type `application/vnd.kubernetes.protobuf`. When it returns
    /// false, the object cannot be said in protobuf and nothing was appended.
    #[must_use]
    pub fn write(&mut self, doc: &Doc, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let is_written = self.body(doc, out).is_some();
        if !is_written {
            out.truncate(start);
        }
        is_written
    }

    fn body(&mut self, doc: &Doc, out: &mut Vec<u8>) -> Written {
        let object = doc.as_object()?;
        let (api_version, kind) = (object.get("apiVersion")?, object.get("kind")?);
        let (api_version, kind) = (api_version.as_str()?, kind.as_str()?);
        let of = Atlas::kind(&Gvk::parse(api_version, kind).ok()?)?;
        out.extend_from_slice(&PROTOBUF_PREFIX);
        nested(1, out, |out| {
            text(1, api_version, out);
            text(2, kind, out);
            Some(())
        })?;
        nested(2, out, |out| {
            let known = self.fields(of, object, out)?;
            // The envelope holds the version and the kind.
            (known + 2 == object.len()).then_some(())
        })
    }

    /// Appends a message. Everything in the object has to be part of it.
    fn message(&mut self, of: &'static Type, doc: &Doc, out: &mut Vec<u8>) -> Written {
        let object = doc.as_object()?;
        let known = self.fields(of, object, out)?;
        (known == object.len()).then_some(())
    }

    /// Appends the fields of a type that an object has, and returns how many those are.
    fn fields(&mut self, of: &'static Type, object: &Object, out: &mut Vec<u8>) -> Option<usize> {
        let mut known = 0;
        for field in of.own_fields() {
            if let Some(value) = object.get(field.name()) {
                self.field(field, value, out)?;
                known += 1;
            }
        }
        for inlined in of.inlined().iter().filter(|it| it.number > 0) {
            let start = out.len();
            known += self.fields(inlined.of.get(), object, out)?;
            if out.len() > start {
                close(inlined.number, start, out);
            }
        }
        Some(known)
    }

    fn field(&mut self, field: &'static Field, value: &Doc, out: &mut Vec<u8>) -> Written {
        let number = field.number();
        if value.is_null() {
            return Some(());
        }
        if number == 0 {
            return None;
        }
        match field.shape() {
            Shape::List(inner) => {
                let items = value.as_array().filter(|items| !items.is_empty())?;
                items
                    .iter()
                    .try_for_each(|item| self.value(number, inner, item, out))
            }
            Shape::Map(inner) => {
                let entries = value.as_object().filter(|entries| !entries.is_empty())?;
                entries.iter().try_for_each(|(key, value)| {
                    nested(number, out, |out| {
                        text(1, key, out);
                        self.value(2, inner, value, out)
                    })
                })
            }
            shape @ Shape::Message(of) if field.name() == SPEC && !has_template(of.get()) => {
                self.remembered(number, shape, value, out)
            }
            shape => self.value(number, shape, value, out),
        }
    }

    /// Copies the memoized bytes of a spec, or writes and memoizes them.
    fn remembered(
        &mut self,
        number: u32,
        shape: &'static Shape,
        spec: &Doc,
        out: &mut Vec<u8>,
    ) -> Written {
        let key = (shape.identity(), spec.clone());
        if let Some(range) = self.specs.get(&key) {
            bytes(number, &self.bytes[range], out);
            return Some(());
        }
        let start = out.len();
        self.message(shape.message()?, spec, out)?;
        let written = &out[start..];
        if self.bytes.len() + written.len() > BYTES_LIMIT {
            self.specs.clear();
            self.bytes.clear();
        }
        if written.len() <= BYTES_LIMIT {
            let range = self.bytes.len()..self.bytes.len() + written.len();
            self.bytes.extend_from_slice(written);
            self.specs.put(key, range);
        }
        close(number, start, out);
        Some(())
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
            Shape::Bool => varint_field(number, u64::from(value.as_bool()?), out),
            Shape::Int32 => int32_field(number, value, out)?,
            Shape::Int64 => varint_field(number, value.as_i64()?.cast_unsigned(), out),
            Shape::Double => {
                tag(number, FIXED64, out);
                out.extend_from_slice(&value.as_f64()?.to_le_bytes());
            }
            Shape::String | Shape::Enum(_) => text(number, value.as_str()?, out),
            Shape::Bytes => bytes(number, &BASE64.decode(value.as_str()?).ok()?, out),
            Shape::Time => nested(number, out, |out| time(value.as_str()?, out))?,
            Shape::MicroTime => nested(number, out, |out| micro_time(value.as_str()?, out))?,
            Shape::Quantity => nested(number, out, |out| quantity(value, out))?,
            Shape::IntOrString => nested(number, out, |out| int_or_string(value, out))?,
            Shape::Fields | Shape::Raw | Shape::Json => nested(number, out, |out| {
                bytes(1, &value.to_json(), out);
                Some(())
            })?,
            Shape::Message(of) => nested(number, out, |out| self.message(of.get(), value, out))?,
            Shape::WrappedList(inner) => nested(number, out, |out| {
                let mut items = value.as_array()?.iter();
                items.try_for_each(|item| self.value(1, inner, item, out))
            })?,
            Shape::SchemaOrBool
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::Any
            | Shape::List(_)
            | Shape::Map(_) => return None,
        }
        Some(())
    }
}

impl Default for ProtobufEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ProtobufEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtobufEncoder")
            .field("specs", &self.specs)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Returns true if a spec holds a pod template, whose own spec is memoized instead.
fn has_template(of: &'static Type) -> bool {
    of.field("template").is_some()
}

/// A time in whole seconds, written as the server would.
fn time(text: &str, out: &mut Vec<u8>) -> Written {
    let time: Time = text.parse().ok()?;
    let is_exact = time.to_string() == text && time.unix() != 0;
    varint_field(1, time.unix().cast_unsigned(), out);
    is_exact.then_some(())
}

fn micro_time(text: &str, out: &mut Vec<u8>) -> Written {
    let time: MicroTime = text.parse().ok()?;
    let micros = time.unix_micros();
    let is_exact = time.to_string() == text && micros != 0;
    varint_field(1, micros.div_euclid(1_000_000).cast_unsigned(), out);
    let nanos = micros.rem_euclid(1_000_000) * 1_000;
    varint_field(2, nanos.cast_unsigned(), out);
    is_exact.then_some(())
}

fn quantity(value: &Doc, out: &mut Vec<u8>) -> Written {
    match value.kind() {
        Kind::Str("") => return None,
        Kind::Str(said) => text(1, said, out),
        Kind::Int(number) => text(1, &number.to_string(), out),
        _ => return None,
    }
    Some(())
}

fn int_or_string(value: &Doc, out: &mut Vec<u8>) -> Written {
    match value.kind() {
        Kind::Int(_) => {
            varint_field(1, 0, out);
            int32_field(2, value, out)
        }
        Kind::Str(said) => {
            varint_field(1, 1, out);
            text(3, said, out);
            Some(())
        }
        _ => None,
    }
}

fn int32_field(number: u32, value: &Doc, out: &mut Vec<u8>) -> Written {
    let value = i32::try_from(value.as_i64()?).ok()?;
    varint_field(number, i64::from(value).cast_unsigned(), out);
    Some(())
}

/// Appends a message of that number.
fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
    let start = out.len();
    write(out)?;
    close(number, start, out);
    Some(())
}
