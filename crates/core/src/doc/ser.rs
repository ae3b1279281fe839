//! Writing typed structs into a [`Doc`], and a [`Doc`] into any other format.

use std::fmt;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::{Doc, Kind, Object, Str};

/// A value that a [`Doc`] cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl ser::Error for EncodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl Doc {
    /// Turns a typed value into a document.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        value.serialize(Encoder)
    }
}

impl Serialize for Doc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.kind() {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool(value) => serializer.serialize_bool(value),
            Kind::Int(value) => serializer.serialize_i64(value),
            Kind::UInt(value) => serializer.serialize_u64(value),
            Kind::Float(value) => serializer.serialize_f64(value),
            Kind::Str(text) => serializer.serialize_str(text),
            Kind::Array(array) => serializer.collect_seq(array.iter()),
            Kind::Object(object) => {
                serializer.collect_map(object.iter().map(|(key, value)| (key.as_str(), value)))
            }
        }
    }
}

struct Encoder;

type Outcome = Result<Doc, EncodeError>;

fn tagged(variant: &'static str, content: Doc) -> Doc {
    Object::new(vec![(Str::new(variant), content)]).into()
}

impl Serializer for Encoder {
    type Ok = Doc;
    type Error = EncodeError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn serialize_bool(self, value: bool) -> Outcome {
        Ok(value.into())
    }

    fn serialize_i8(self, value: i8) -> Outcome {
        Ok(i64::from(value).into())
    }

    fn serialize_i16(self, value: i16) -> Outcome {
        Ok(i64::from(value).into())
    }

    fn serialize_i32(self, value: i32) -> Outcome {
        Ok(value.into())
    }

    fn serialize_i64(self, value: i64) -> Outcome {
        Ok(value.into())
    }

    fn serialize_u8(self, value: u8) -> Outcome {
        Ok(u64::from(value).into())
    }

    fn serialize_u16(self, value: u16) -> Outcome {
        Ok(u64::from(value).into())
    }

    fn serialize_u32(self, value: u32) -> Outcome {
        Ok(value.into())
    }

    fn serialize_u64(self, value: u64) -> Outcome {
        Ok(value.into())
    }

    fn serialize_f32(self, value: f32) -> Outcome {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Outcome {
        if value.is_finite() {
            return Ok(value.into());
        }
        Err(EncodeError(format!("number {value} is not finite")))
    }

    fn serialize_char(self, value: char) -> Outcome {
        Ok(Doc::from(&*value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, text: &str) -> Outcome {
        Ok(text.into())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Outcome {
        Ok(bytes
            .iter()
            .map(|byte| Doc::from(u32::from(*byte)))
            .collect::<Vec<_>>()
            .into())
    }

    fn serialize_none(self) -> Outcome {
        Ok(Doc::NULL)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome {
        Ok(Doc::NULL)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Outcome {
        Ok(Doc::NULL)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Outcome {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Outcome {
        Ok(tagged(variant, value.serialize(self)?))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, EncodeError> {
        Ok(Items {
            variant: None,
            items: Vec::with_capacity(len.unwrap_or(0).min(1024)),
        })
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, EncodeError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Items, EncodeError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, EncodeError> {
        Ok(Items {
            variant: Some(variant),
            ..self.serialize_seq(Some(len))?
        })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Fields, EncodeError> {
        let fields = Vec::with_capacity(len.unwrap_or(0).min(1024));
        Ok(Fields {
            variant: None,
            fields,
            key: None,
        })
    }

    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Fields, EncodeError> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Fields, EncodeError> {
        Ok(Fields {
            variant: Some(variant),
            ..self.serialize_map(Some(len))?
        })
    }
}

struct Items {
    variant: Option<&'static str>,
    items: Vec<Doc>,
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.items.push(value.serialize(Encoder)?);
        Ok(())
    }

    fn finish(self) -> Doc {
        let array = Doc::from(self.items);
        match self.variant {
            Some(variant) => tagged(variant, array),
            None => array,
        }
    }
}

/// serde has four words for a sequence; all of them push and finish alike.
macro_rules! serialize_items {
    ($($trait:ident::$method:ident)*) => {
        $(impl ser::$trait for Items {
            type Ok = Doc;
            type Error = EncodeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.push(value)
            }

            fn end(self) -> Outcome {
                Ok(self.finish())
            }
        })*
    };
}

serialize_items! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

struct Fields {
    variant: Option<&'static str>,
    fields: Vec<(Str, Doc)>,
    key: Option<Str>,
}

impl Fields {
    fn push<T: Serialize + ?Sized>(&mut self, key: Str, value: &T) -> Result<(), EncodeError> {
        self.fields.push((key, value.serialize(Encoder)?));
        Ok(())
    }

    fn finish(self) -> Doc {
        let object = Object::new(self.fields).into();
        match self.variant {
            Some(variant) => tagged(variant, object),
            None => object,
        }
    }
}

impl ser::SerializeMap for Fields {
    type Ok = Doc;
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        self.key = Some(key.serialize(KeyEncoder)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let key = self
            .key
            .take()
            .ok_or_else(|| EncodeError("value without a key".to_owned()))?;
        self.push(key, value)
    }

    fn end(self) -> Outcome {
        Ok(self.finish())
    }
}

macro_rules! serialize_fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Fields {
            type Ok = Doc;
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), EncodeError> {
                self.push(Str::new(key), value)
            }

            fn end(self) -> Outcome {
                Ok(self.finish())
            }
        })*
    };
}

serialize_fields! { SerializeStruct SerializeStructVariant }

/// Keys of maps: strings as they are, numbers and truth values as JSON writes them.
struct KeyEncoder;

fn not_a_key<T>() -> Result<T, EncodeError> {
    Err(EncodeError("a key must be a string".to_owned()))
}

macro_rules! keys_by_display {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, value: $type) -> Result<Str, EncodeError> {
            Ok(Str::from(value.to_string()))
        })*
    };
}

impl Serializer for KeyEncoder {
    type Ok = Str;
    type Error = EncodeError;
    type SerializeSeq = Impossible<Str, EncodeError>;
    type SerializeTuple = Impossible<Str, EncodeError>;
    type SerializeTupleStruct = Impossible<Str, EncodeError>;
    type SerializeTupleVariant = Impossible<Str, EncodeError>;
    type SerializeMap = Impossible<Str, EncodeError>;
    type SerializeStruct = Impossible<Str, EncodeError>;
    type SerializeStructVariant = Impossible<Str, EncodeError>;

    keys_by_display! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32)
        serialize_i64(i64) serialize_u8(u8) serialize_u16(u16) serialize_u32(u32)
        serialize_u64(u64) serialize_char(char) serialize_str(&str)
    }

    fn serialize_f32(self, _value: f32) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_f64(self, _value: f64) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_bytes(self, _bytes: &[u8]) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_none(self) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Str, EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Str, EncodeError> {
        Ok(Str::new(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Str, EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<Str, EncodeError> {
        not_a_key()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self::SerializeSeq, EncodeError> {
        not_a_key()
    }

    fn serialize_tuple(self, _len: usize) -> Result<Self::SerializeTuple, EncodeError> {
        not_a_key()
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleStruct, EncodeError> {
        not_a_key()
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleVariant, EncodeError> {
        not_a_key()
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Self::SerializeMap, EncodeError> {
        not_a_key()
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStruct, EncodeError> {
        not_a_key()
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStructVariant, EncodeError> {
        not_a_key()
    }
}
