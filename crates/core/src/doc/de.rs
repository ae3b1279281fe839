//! Reading typed structs and views from a [`Doc`].

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
    IntoDeserializer, MapAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Doc, Kind, Object, Path, Segment, Str};

/// A document that does not fit the type it was read as: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    path: Path,
    message: String,
}

impl DecodeError {
    /// The path of the value that does not fit.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn inside(mut self, segment: Segment) -> Self {
        self.path.push(segment);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.segments().is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            path: Path::root(),
            message: message.to_string(),
        }
    }
}

impl Doc {
    /// Reads a typed struct or a view.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        self.decode_borrowed()
    }

    /// Reads a view that may borrow its strings from the document.
    pub fn decode_borrowed<'de, T: de::Deserialize<'de>>(&'de self) -> Result<T, DecodeError> {
        T::deserialize(self).map_err(|error| DecodeError {
            path: error.path.reversed(),
            ..error
        })
    }
}

impl<'de> Deserializer<'de> for &'de Doc {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(value),
            Kind::Int(value) => visitor.visit_i64(value),
            Kind::UInt(value) => visitor.visit_u64(value),
            Kind::Float(value) => visitor.visit_f64(value),
            Kind::Str(text) => visitor.visit_borrowed_str(text),
            Kind::Array(array) => {
                let mut items = Items {
                    items: array.iter(),
                    index: 0,
                };
                visitor.visit_seq(&mut items)
            }
            Kind::Object(object) => visitor.visit_map(Fields::of(object)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match self.kind() {
            Kind::Str(text) => visitor.visit_enum(text.into_deserializer()),
            Kind::Object(object) if object.len() == 1 => visitor.visit_enum(Variant {
                tag: &object.keys()[0],
                content: &object.values()[0],
            }),
            other => Err(DecodeError::custom(format_args!(
                "invalid type: {}, expected a string or an object with one field",
                other.name()
            ))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

impl<'de> IntoDeserializer<'de, DecodeError> for &'de Doc {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

/// The items of an array; an error says which one.
struct Items<'de> {
    items: std::slice::Iter<'de, Doc>,
    index: usize,
}

impl<'de> de::SeqAccess<'de> for &mut Items<'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        self.index += 1;
        seed.deserialize(item)
            .map(Some)
            .map_err(|error| error.inside(Segment::Index(self.index - 1)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The fields of an object; an error says which one.
struct Fields<'de> {
    keys: std::slice::Iter<'de, Str>,
    values: std::slice::Iter<'de, Doc>,
    current: Option<&'de Str>,
}

impl<'de> Fields<'de> {
    fn of(object: &'de Object) -> Self {
        Self {
            keys: object.keys().iter(),
            values: object.values().iter(),
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        self.current = self.keys.next();
        let Some(key) = self.current else {
            return Ok(None);
        };
        seed.deserialize(de::value::BorrowedStrDeserializer::new(key.as_str()))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        let value = self
            .values
            .next()
            .expect("invariant: a value stands behind every key");
        seed.deserialize(value).map_err(|error| match self.current {
            Some(key) => error.inside(Segment::Key(key.as_str().to_owned())),
            None => error,
        })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.keys.len())
    }
}

/// An enum written as an object with one field: the variant and its content.
struct Variant<'de> {
    tag: &'de Str,
    content: &'de Doc,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DecodeError;
    type Variant = &'de Doc;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, &'de Doc), DecodeError> {
        let tag = seed.deserialize(de::value::BorrowedStrDeserializer::new(self.tag.as_str()))?;
        Ok((tag, self.content))
    }
}

impl<'de> VariantAccess<'de> for &'de Doc {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        de::Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(SeqDeserializer::new(self.items().iter()))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let fields = self.as_object().into_iter().flat_map(Object::iter);
        visitor.visit_map(MapDeserializer::new(
            fields.map(|(key, value)| (key.as_str(), value)),
        ))
    }
}

impl<'de> de::Deserialize<'de> for Doc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocVisitor)
    }
}

/// Builds a document from any other format.
struct DocVisitor;

impl<'de> Visitor<'de> for DocVisitor {
    type Value = Doc;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value that JSON can hold")
    }

    fn visit_unit<E>(self) -> Result<Doc, E> {
        Ok(Doc::NULL)
    }

    fn visit_none<E>(self) -> Result<Doc, E> {
        Ok(Doc::NULL)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Doc, D::Error> {
        de::Deserialize::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Doc, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Doc, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Doc, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Doc, E> {
        if value.is_finite() {
            Ok(value.into())
        } else {
            Err(E::custom("number is not finite"))
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Doc, E> {
        Ok(text.into())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Doc, A::Error> {
        let mut collected = Vec::new();
        while let Some(item) = items.next_element()? {
            collected.push(item);
        }
        Ok(Doc::from(collected))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Doc, A::Error> {
        let mut collected: Vec<(Str, Doc)> = Vec::new();
        while let Some((key, value)) = fields.next_entry::<String, Doc>()? {
            collected.push((Str::new(&key), value));
        }
        Ok(Object::new(collected).into())
    }
}
