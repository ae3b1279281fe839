//! Type facts of one value in the object, for strategic merge patch.

use super::StrategicError;
use crate::table::{Field, Shape, Type};

/// The type of a value.
#[derive(Clone, Copy)]
pub(super) enum Schema {
    /// An object of a built-in type.
    Type(&'static Type),
    /// Something without fields of its own.
    Shape(&'static Shape),
}

impl Schema {
    pub(super) fn of(shape: &'static Shape) -> Self {
        shape.message().map_or(Self::Shape(shape), Self::Type)
    }

    /// The field of that name.
    pub(super) fn field(self, key: &str) -> Result<&'static Field, StrategicError> {
        let name = match self {
            Self::Type(of) => match of.field(key) {
                Some(field) => return Ok(field),
                None => of.name(),
            },
            Self::Shape(shape) => match go_struct(shape) {
                Some(name) => name,
                None => {
                    return Err(StrategicError::Other(format!(
                        "merging an object in json but data type is not struct, instead is: {}",
                        self.go_kind()
                    )));
                }
            },
        };
        let key = windlass_core::quote(key);
        Err(StrategicError::Other(format!(
            "unable to find api field in struct {name} for the json field {key}"
        )))
    }

    /// Upstream's word for what stands here.
    pub(super) fn go_kind(self) -> &'static str {
        match self {
            Self::Type(_) => "struct",
            Self::Shape(shape) => match shape {
                Shape::Bool => "bool",
                Shape::Int32 => "int32",
                Shape::Int64 => "int64",
                Shape::Double => "float64",
                Shape::String | Shape::Enum(_) => "string",
                Shape::Bytes | Shape::List(_) | Shape::WrappedList(_) => "slice",
                Shape::Map(_) => "map",
                Shape::Any => "interface",
                _ => "struct",
            },
        }
    }
}

/// The name of the struct that upstream has for a shape, although its fields are not in JSON.
fn go_struct(shape: &Shape) -> Option<&'static str> {
    Some(match shape {
        Shape::Time => "Time",
        Shape::MicroTime => "MicroTime",
        Shape::Quantity => "Quantity",
        Shape::IntOrString => "IntOrString",
        Shape::Fields => "FieldsV1",
        Shape::Raw => "RawExtension",
        Shape::Json => "JSON",
        Shape::SchemaOrBool => "JSONSchemaPropsOrBool",
        Shape::SchemaOrArray => "JSONSchemaPropsOrArray",
        Shape::SchemaOrStrings => "JSONSchemaPropsOrStringArray",
        _ => return None,
    })
}
