//! Messages, by the table.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::{Array, DEPTH_LIMIT, Doc, Object, PruneNode, Str};

use super::repeats::Repeats;
use super::wire::{Reader, Value};
use super::{ProtobufError, special};
use crate::table::{Atlas, Field, Shape, Type};
use crate::zero::{is_left_out, is_scalar, zero};

/// The depth to which values are memoized as a whole.
const REPEATS_DEPTH: usize = 2;
/// The number of times that the bytes of a body may be copied because a message comes in parts. No
/// client of Kubernetes writes such messages; nested in each other they would be copied at every
/// level.
const COPIES_LIMIT: usize = 8;

/// Decodes messages, one after another.
pub(super) struct Decoder {
    /// True if a field that the table does not know is an error.
    is_strict: bool,
    depth: usize,
    messages_left: usize,
    /// The number of bytes that may still be copied.
    copies_left: usize,
    /// The byte ranges of the fields of all open messages, the innermost message last.
    runs: Vec<Run>,
    /// Memoized values near the root, if the decoder memoizes.
    repeats: Option<Repeats>,
}

/// The byte range of the values of one field inside its message, with their tags. Nearly always
/// they stand together.
type Run = Range<usize>;

type Fields = Vec<(Str, Doc)>;

impl Decoder {
    /// For one body.
    pub(super) fn new() -> Self {
        Self {
            is_strict: false,
            depth: 0,
            messages_left: 0,
            copies_left: 0,
            runs: Vec::new(),
            repeats: None,
        }
    }

    /// For many bodies of one kind.
    pub(super) fn remembering(mut self) -> Self {
        self.repeats = Some(Repeats::default());
        self
    }

    /// Lets no field be passed over that the table does not know.
    pub(super) fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    pub(super) fn repeats(&self) -> Option<&Repeats> {
        self.repeats.as_ref()
    }

    /// Decodes an object of at most so many messages, without some of its fields.
    pub(super) fn object(
        &mut self,
        of: &'static Type,
        bytes: &[u8],
        messages_limit: usize,
        prune: Option<&PruneNode>,
    ) -> Result<Fields, ProtobufError> {
        self.depth = 0;
        self.messages_left = messages_limit;
        self.copies_left = bytes.len().saturating_mul(COPIES_LIMIT);
        self.runs.clear();
        let mut fields = Vec::new();
        self.fields(of, bytes, prune, &mut fields)?;
        Ok(fields)
    }

    /// Decodes a message of a type and appends the fields of its JSON object.
    fn fields(
        &mut self,
        of: &'static Type,
        bytes: &[u8],
        prune: Option<&PruneNode>,
        out: &mut Fields,
    ) -> Result<(), ProtobufError> {
        self.enter()?;
        if self.is_strict && self.depth > 1 && of.inlined().iter().any(|it| it.number == 0) {
            return Err(ProtobufError::KindInside {
                path: String::new(),
            });
        }
        let (own, first) = (of.own_fields(), self.runs.len());
        if !self.find_runs(of, bytes)? {
            self.runs.truncate(first);
            self.depth -= 1;
            self.count_copy(bytes.len())?;
            return self.fields(of, &grouped(bytes)?, prune, out);
        }
        for (at, field) in own.iter().enumerate() {
            let inner = prune.and_then(|prune| prune.field(field.name()));
            if inner.is_some_and(PruneNode::is_pruned) {
                continue;
            }
            let run = &bytes[self.runs[first + at].clone()];
            let value = self.field(field, run, inner);
            if let Some(value) = value.map_err(|error| error.inside(field.name()))? {
                out.push((field.key().clone(), value));
            }
        }
        for (at, inlined) in of.inlined().iter().enumerate() {
            if inlined.number > 0 {
                let run = &bytes[self.runs[first + own.len() + at].clone()];
                let parts = self.joined(run)?;
                self.fields(inlined.of.get(), &parts, prune, out)?;
            }
        }
        self.runs.truncate(first);
        self.depth -= 1;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), ProtobufError> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(ProtobufError::corrupt("messages are nested too deep"));
        }
        self.messages_left = self
            .messages_left
            .checked_sub(1)
            .ok_or_else(|| ProtobufError::corrupt("too many messages"))?;
        Ok(())
    }

    fn count_copy(&mut self, bytes: usize) -> Result<(), ProtobufError> {
        self.copies_left = self
            .copies_left
            .checked_sub(bytes)
            .ok_or_else(|| ProtobufError::corrupt("too many messages in parts"))?;
        Ok(())
    }

    /// The parts of a message joined: one that comes in parts is the message of all of them. Nearly
    /// always there is one, which is not copied.
    fn joined<'a>(&mut self, run: &'a [u8]) -> Result<Cow<'a, [u8]>, ProtobufError> {
        let mut reader = Reader::new(run);
        let Some((_, first)) = reader.next()? else {
            return Ok(Cow::Borrowed(&[]));
        };
        let mut joined = Cow::Borrowed(first.bytes()?);
        while let Some((_, part)) = reader.next()? {
            joined.to_mut().extend_from_slice(part.bytes()?);
        }
        if let Cow::Owned(joined) = &joined {
            self.count_copy(joined.len())?;
        }
        Ok(joined)
    }

    /// Finds where each field of a type lies in a message: those it declares, then those it
    /// inlines. False if the values of one of them do not stand together.
    fn find_runs(&mut self, of: &'static Type, bytes: &[u8]) -> Result<bool, ProtobufError> {
        let first = self.runs.len();
        let places = of.own_fields().len() + of.inlined().len();
        self.runs.resize(first + places, 0..0);
        let mut reader = Reader::new(bytes);
        // Numbers begin with one.
        let (mut start, mut last, mut run) = (0, 0, None);
        while let Some((number, _)) = reader.next()? {
            let end = bytes.len() - reader.rest();
            if number != last {
                run = of.numbered(number).map(|at| first + at);
                last = number;
                if run.is_none() && self.is_strict {
                    return Err(ProtobufError::unknown(number));
                }
                if let Some(run) = run {
                    if !self.runs[run].is_empty() {
                        return Ok(false);
                    }
                    self.runs[run].start = start;
                }
            }
            if let Some(run) = run {
                self.runs[run].end = end;
            }
            start = end;
        }
        Ok(true)
    }

    /// The value of a field in JSON, given its run, which is empty if it is not there; `None` if
    /// the field is left out.
    fn field(
        &mut self,
        field: &'static Field,
        run: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<Doc>, ProtobufError> {
        // Where something is pruned, the bytes alone do not say what they are read as.
        let is_near = self.depth <= REPEATS_DEPTH && prune.is_none();
        if !is_near || !Repeats::is_worthy(field, run) {
            return self.value(field, run, prune);
        }
        let known = self.repeats.as_ref();
        if let Some(known) = known.and_then(|known| known.get(field, run)) {
            return Ok(Some(known));
        }
        let value = self.value(field, run, None)?;
        if let (Some(repeats), Some(value)) = (&mut self.repeats, &value) {
            repeats.put(field, run, value);
        }
        Ok(value)
    }

    /// Takes one item of a list, or several packed numbers.
    fn read_item(
        &mut self,
        shape: &'static Shape,
        value: Value<'_>,
        prune: Option<&PruneNode>,
        items: &mut Vec<Doc>,
    ) -> Result<(), ProtobufError> {
        match (shape, value) {
            (Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double, Value::Bytes(packed)) => {
                let mut reader = Reader::new(packed);
                while !reader.is_at_end() {
                    let value = match shape {
                        Shape::Double => Value::Fixed64(reader.fixed64()?),
                        _ => Value::Varint(reader.varint()?),
                    };
                    items.push(scalar(shape, value)?);
                }
            }
            _ if is_scalar(shape) => items.push(scalar(shape, value)?),
            _ => items.push(self.composite(shape, value.bytes()?, prune)?),
        }
        Ok(())
    }

    /// One entry of a map, which is a message of a key and a value.
    fn entry(
        &mut self,
        shape: &'static Shape,
        bytes: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<(Str, Doc)>, ProtobufError> {
        let (mut key, mut found) = (Cow::Borrowed(""), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match number {
                1 => key = special::text(value.bytes()?),
                2 => found = Some(value),
                _ => {}
            }
        }
        let prune = prune.and_then(|prune| prune.field(&key));
        if prune.is_some_and(PruneNode::is_pruned) {
            return Ok(None);
        }
        let value = match found {
            Some(found) if is_scalar(shape) => scalar(shape, found)?,
            Some(found) => self.composite(shape, found.bytes()?, prune)?,
            None if is_scalar(shape) => zero(shape),
            None => self.composite(shape, &[], prune)?,
        };
        Ok(Some((Str::new(&key), value)))
    }

    /// An object of a type.
    fn message(
        &mut self,
        of: &'static Type,
        bytes: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Doc, ProtobufError> {
        let mut fields = Vec::new();
        self.fields(of, bytes, prune, &mut fields)?;
        Ok(Object::new(fields).into())
    }

    /// A value that is a message on the wire.
    fn composite(
        &mut self,
        shape: &'static Shape,
        bytes: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Doc, ProtobufError> {
        let whole = match shape {
            Shape::Message(of) => return self.message(of.get(), bytes, prune),
            Shape::WrappedList(inner) => {
                let mut items = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((number, value)) = reader.next()? {
                    if number == 1 {
                        self.read_item(inner, value, None, &mut items)?;
                    }
                }
                items.into()
            }
            Shape::Time => special::time(bytes)?,
            Shape::MicroTime => special::micro_time(bytes)?,
            Shape::Quantity => special::quantity(bytes)?,
            Shape::IntOrString => special::int_or_string(bytes)?,
            Shape::Fields | Shape::Raw | Shape::Json => special::json(bytes, self.depth)?,
            Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => {
                self.schema_or(shape, bytes)?
            }
            _ => return Err(ProtobufError::corrupt("the field has no form in protobuf")),
        };
        Ok(match prune {
            Some(prune) => prune.apply(&whole),
            None => whole,
        })
    }

    /// A JSON schema or something simpler; which of the two, the numbers tell.
    fn schema_or(&mut self, shape: &Shape, bytes: &[u8]) -> Result<Doc, ProtobufError> {
        let (mut allows, mut schema, mut list) = (false, None, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match (shape, number) {
                (Shape::SchemaOrBool, 1) => allows = value.varint()? != 0,
                (Shape::SchemaOrBool, 2) | (_, 1) => schema = Some(self.schema(value.bytes()?)?),
                (Shape::SchemaOrArray, 2) => list.push(self.schema(value.bytes()?)?),
                (Shape::SchemaOrStrings, 2) => {
                    list.push(Doc::from(&*special::text(value.bytes()?)));
                }
                _ => {}
            }
        }
        Ok(match schema {
            _ if !list.is_empty() => list.into(),
            Some(schema) => schema,
            None if *shape == Shape::SchemaOrBool => allows.into(),
            None => Doc::NULL,
        })
    }

    fn schema(&mut self, bytes: &[u8]) -> Result<Doc, ProtobufError> {
        let of = Atlas::named("apiextensions/v1", "JSONSchemaProps")
            .expect("invariant: the table has the type of JSON schemas");
        self.message(of, bytes, None)
    }

    /// As [`Self::field`], without memoization.
    fn value(
        &mut self,
        field: &'static Field,
        run: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<Doc>, ProtobufError> {
        match field.shape() {
            Shape::Message(of) if !run.is_empty() => {
                let parts = self.joined(run)?;
                self.message(of.get(), &parts, prune).map(Some)
            }
            _ => self.other_value(field, run, prune),
        }
    }

    /// As [`Self::value`], of what is no message. Apart, because messages nest: what their values
    /// need on the stack they need at every level.
    fn other_value(
        &mut self,
        field: &'static Field,
        run: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<Doc>, ProtobufError> {
        let shape = field.shape();
        // Upstream has no word for an absent struct, number or text that is not a pointer.
        let has_zero = !field.is_pointer() && field.number() > 0;
        let value = match shape {
            Shape::List(inner) => self.list(inner, run, prune)?,
            Shape::Map(inner) => self.map(inner, run, prune)?,
            _ if is_scalar(shape) => match last(run)? {
                Some(value) => Some(scalar(shape, value)?),
                None => (has_zero && *shape != Shape::Bytes).then(|| zero(shape)),
            },
            Shape::WrappedList(_) if run.is_empty() => None,
            Shape::WrappedList(_) => {
                let parts = self.joined(run)?;
                Some(self.composite(shape, &parts, prune)?)
            }
            // The other types read themselves, and the last one counts.
            _ => match last(run)? {
                Some(value) => Some(self.composite(shape, value.bytes()?, prune)?),
                None if has_zero => Some(self.composite(shape, &[], prune)?),
                None => None,
            },
        };
        Ok(match value {
            Some(value) if is_left_out(field, &value) => None,
            None if field.omits_empty() || field.number() == 0 => None,
            None => Some(Doc::NULL),
            value => value,
        })
    }

    fn list(
        &mut self,
        of: &'static Shape,
        run: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<Doc>, ProtobufError> {
        let prune = prune.and_then(PruneNode::item);
        let is_pruned = prune.is_some_and(PruneNode::is_pruned);
        let mut items = Vec::new();
        let mut reader = Reader::new(run);
        // A list is a level of the document, as a map is.
        self.depth += 1;
        while let Some((_, value)) = reader.next()? {
            if !is_pruned {
                self.read_item(of, value, prune, &mut items)?;
            }
        }
        self.depth -= 1;
        Ok((!run.is_empty()).then(|| Array::new(&items).into()))
    }

    fn map(
        &mut self,
        of: &'static Shape,
        run: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Option<Doc>, ProtobufError> {
        let mut entries = Vec::new();
        let mut reader = Reader::new(run);
        self.depth += 1;
        while let Some((_, value)) = reader.next()? {
            entries.extend(self.entry(of, value.bytes()?, prune)?);
        }
        self.depth -= 1;
        Ok((!run.is_empty()).then(|| Object::new(entries).into()))
    }
}

fn scalar(shape: &Shape, value: Value<'_>) -> Result<Doc, ProtobufError> {
    Ok(match shape {
        Shape::Bool => Doc::from(value.varint()? != 0),
        Shape::Int32 => special::int32(value.varint()?).into(),
        Shape::Int64 => value.varint()?.cast_signed().into(),
        Shape::Double => special::double(f64::from_bits(value.fixed64()?))?,
        Shape::Bytes => BASE64.encode(value.bytes()?).into(),
        _ => Doc::from(&*special::text(value.bytes()?)),
    })
}

/// The last value of a run, which is the one that counts.
fn last(run: &[u8]) -> Result<Option<Value<'_>>, ProtobufError> {
    let (mut reader, mut last) = (Reader::new(run), None);
    while let Some((_, value)) = reader.next()? {
        last = Some(value);
    }
    Ok(last)
}

/// A message with the values of each field side by side.
fn grouped(bytes: &[u8]) -> Result<Vec<u8>, ProtobufError> {
    let (mut reader, mut start, mut values) = (Reader::new(bytes), 0, Vec::new());
    while let Some((number, _)) = reader.next()? {
        let end = bytes.len() - reader.rest();
        values.push((number, &bytes[start..end]));
        start = end;
    }
    values.sort_by_key(|(number, _)| *number);
    Ok(values
        .iter()
        .flat_map(|(_, value)| *value)
        .copied()
        .collect())
}
