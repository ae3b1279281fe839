//! Messages, by the table.

use windlass_core::{Array, DEPTH_LIMIT, Doc, Object, Str};

use super::wire::{Reader, Value};
use super::{ProtobufError, special};
use crate::table::{Atlas, Field, Shape, Type};
use crate::zero::{is_left_out, is_scalar, zero};

/// Decodes one body.
pub(super) struct Decoder {
    depth: usize,
    messages_left: usize,
}

/// What was read for one field so far. Of these one is in use, as the field's shape says.
#[derive(Clone, Default)]
struct Slot<'a> {
    scalar: Option<Doc>,
    /// The parts of a message. One that comes in parts is the message of them joined.
    parts: Vec<&'a [u8]>,
    items: Vec<Doc>,
    entries: Fields,
}

type Fields = Vec<(Str, Doc)>;

impl Decoder {
    /// For a body of at most so many messages.
    pub(super) fn new(messages_left: usize) -> Self {
        Self {
            depth: 0,
            messages_left,
        }
    }

    /// Decodes a message of a type and appends the fields of its JSON object.
    pub(super) fn fields(
        &mut self,
        of: &'static Type,
        bytes: &[u8],
        out: &mut Fields,
    ) -> Result<(), ProtobufError> {
        self.enter()?;
        let own = of.own_fields();
        let mut slots = vec![Slot::default(); own.len()];
        let mut inlined = vec![Vec::new(); of.inlined().len()];
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            if let Some(at) = own.iter().position(|field| field.number() == number) {
                self.read(&own[at], value, &mut slots[at])
                    .map_err(|error| error.inside(own[at].name()))?;
            } else if let Some(at) = of.inlined().iter().position(|it| it.number == number) {
                inlined[at].push(value.bytes()?);
            }
        }
        for (field, slot) in own.iter().zip(slots) {
            let value = self.finish(field, slot);
            if let Some(value) = value.map_err(|error| error.inside(field.name()))? {
                out.push((field.key().clone(), value));
            }
        }
        for (inlined, parts) in of.inlined().iter().zip(inlined) {
            if inlined.number > 0 {
                self.fields(inlined.of.get(), &join(&parts), out)?;
            }
        }
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

    /// Takes one value of a field from the wire.
    fn read<'a>(
        &mut self,
        field: &'static Field,
        value: Value<'a>,
        slot: &mut Slot<'a>,
    ) -> Result<(), ProtobufError> {
        match field.shape() {
            Shape::List(inner) => self.read_item(inner, value, &mut slot.items)?,
            Shape::Map(inner) => slot.entries.push(self.entry(inner, value.bytes()?)?),
            shape if is_scalar(shape) => slot.scalar = Some(scalar(shape, value)?),
            Shape::Message(_) | Shape::WrappedList(_) => slot.parts.push(value.bytes()?),
            // The other types read themselves, and the last one counts.
            _ => slot.parts = vec![value.bytes()?],
        }
        Ok(())
    }

    /// Takes one item of a list, or several packed numbers.
    fn read_item(
        &mut self,
        shape: &'static Shape,
        value: Value<'_>,
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
            _ => items.push(self.composite(shape, value.bytes()?)?),
        }
        Ok(())
    }

    /// One entry of a map, which is a message of a key and a value.
    fn entry(&mut self, shape: &'static Shape, bytes: &[u8]) -> Result<(Str, Doc), ProtobufError> {
        let (mut key, mut found) = (Str::new(""), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match number {
                1 => key = Str::new(&special::text(value.bytes()?)),
                2 if is_scalar(shape) => found = Some(scalar(shape, value)?),
                2 => found = Some(self.composite(shape, value.bytes()?)?),
                _ => {}
            }
        }
        let value = match found {
            Some(found) => found,
            None if is_scalar(shape) => zero(shape),
            None => self.composite(shape, &[])?,
        };
        Ok((key, value))
    }

    /// A value that is a message on the wire.
    fn composite(&mut self, shape: &'static Shape, bytes: &[u8]) -> Result<Doc, ProtobufError> {
        match shape {
            Shape::Message(of) => {
                let mut fields = Vec::new();
                self.fields(of.get(), bytes, &mut fields)?;
                Ok(Object::new(fields).into())
            }
            Shape::WrappedList(inner) => {
                let mut items = Vec::new();
                let mut reader = Reader::new(bytes);
                while let Some((number, value)) = reader.next()? {
                    if number == 1 {
                        self.read_item(inner, value, &mut items)?;
                    }
                }
                Ok(items.into())
            }
            Shape::Time => special::time(bytes),
            Shape::MicroTime => special::micro_time(bytes),
            Shape::Quantity => special::quantity(bytes),
            Shape::IntOrString => special::int_or_string(bytes),
            Shape::Fields | Shape::Raw | Shape::Json => special::json(bytes, self.depth),
            Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => {
                self.schema_or(shape, bytes)
            }
            _ => Err(ProtobufError::corrupt("the field has no form in protobuf")),
        }
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
        let mut fields = Vec::new();
        self.fields(of, bytes, &mut fields)?;
        Ok(Object::new(fields).into())
    }

    /// The value of a field in JSON; `None` if the field is left out.
    fn finish(
        &mut self,
        field: &'static Field,
        slot: Slot<'_>,
    ) -> Result<Option<Doc>, ProtobufError> {
        let shape = field.shape();
        // Upstream has no word for an absent struct, number or text that is not a pointer.
        let has_zero = !field.is_pointer() && field.number() > 0;
        let value = match shape {
            Shape::List(_) if !slot.items.is_empty() => Some(Array::new(&slot.items).into()),
            Shape::Map(_) if !slot.entries.is_empty() => Some(Object::new(slot.entries).into()),
            Shape::List(_) | Shape::Map(_) => None,
            Shape::Bytes => slot.scalar,
            _ if is_scalar(shape) => slot.scalar.or_else(|| has_zero.then(|| zero(shape))),
            _ if !slot.parts.is_empty() => Some(self.composite(shape, &join(&slot.parts))?),
            Shape::WrappedList(_) => None,
            _ if has_zero => Some(self.composite(shape, &[])?),
            _ => None,
        };
        Ok(match value {
            Some(value) if is_left_out(field, &value) => None,
            None if field.omits_empty() || field.number() == 0 => None,
            None => Some(Doc::NULL),
            value => value,
        })
    }
}

fn scalar(shape: &Shape, value: Value<'_>) -> Result<Doc, ProtobufError> {
    Ok(match shape {
        Shape::Bool => Doc::from(value.varint()? != 0),
        Shape::Int32 => special::int32(value.varint()?).into(),
        Shape::Int64 => value.varint()?.cast_signed().into(),
        Shape::Double => special::double(f64::from_bits(value.fixed64()?))?,
        Shape::Bytes => special::base64(value.bytes()?).into(),
        _ => Doc::from(&*special::text(value.bytes()?)),
    })
}

/// The parts of a message joined; nearly always there is one, which is not copied.
fn join<'a>(parts: &[&'a [u8]]) -> std::borrow::Cow<'a, [u8]> {
    match parts {
        [] => (&[]).into(),
        [one] => (*one).into(),
        many => many.concat().into(),
    }
}
