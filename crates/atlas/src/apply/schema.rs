//! Schemas: the merge rules of server-side apply.

use std::fmt;

use windlass_core::{Doc, Kind, Str};

use super::element::{PathElement, Scalar};
use crate::table::{Field, ListType, Shape, Type};

/// The structure of a value, as far as merging goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure<'a> {
    /// One value.
    Scalar,
    /// An object or map, merged field by field.
    Map,
    /// An object or map that is one value.
    AtomicMap,
    /// A list.
    List(ListKind<'a>),
}

/// The identity of the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind<'a> {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these of their fields.
    Map(ListKeys<'a>),
}

/// The names of the fields that identify the items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ListKeys<'a> {
    /// Those of a built-in type.
    BuiltIn(&'a [&'a str]),
    /// Those of a schema that was read.
    Read(&'a [String]),
}

impl<'a> ListKeys<'a> {
    fn iter(self) -> impl Iterator<Item = &'a str> {
        let (built_in, read) = match self {
            Self::BuiltIn(keys) => (keys, &[][..]),
            Self::Read(keys) => (&[][..], keys),
        };
        let read = read.iter().map(String::as_str);
        built_in.iter().copied().chain(read)
    }
}

impl fmt::Debug for ListKeys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// A text.
    String,
    /// A number, whole or not.
    Numeric,
    /// True or false.
    Boolean,
}

/// The merge rules of a value and of the values below it.
pub trait Schema: Copy {
    /// A number that only schemas with the same rules share, for as long as the process runs;
    /// `None` if there is none.
    fn identity(&self) -> Option<usize> {
        None
    }
    /// The structure of the value. Where the schema leaves it open, the value decides.
    fn structure(&self, value: Option<&Doc>) -> Structure<'_>;
    /// The schema of a field or key; `None` if it is not allowed.
    fn field(&self, name: &str) -> Option<Self>;
    /// Returns true if the schema declares that field, rather than allowing any.
    fn is_declared(&self, name: &str) -> bool;
    /// The schema of the items of a list.
    fn item(&self) -> Option<Self>;
    /// The default of a field here, for items that leave out a key.
    fn default_of(&self, name: &str) -> Option<Doc>;
    /// The type that a scalar must have; `None` if it may have any.
    fn scalar(&self) -> Option<ScalarKind> {
        None
    }
    /// An object in the form in which two of them are compared: what a write cannot have changed
    /// is in every one. Of an empty object this is what creation starts from.
    fn canonical(&self, object: &Doc) -> Doc {
        object.clone()
    }
}

/// The schema of built-in kinds.
#[derive(Clone, Copy, Debug)]
pub struct AtlasSchema(Place);

#[derive(Clone, Copy, Debug)]
enum Place {
    Type(&'static Type),
    Field(&'static Field),
    Shape(&'static Shape),
    /// Any JSON.
    Open,
}

impl AtlasSchema {
    /// The schema of objects of a kind.
    #[must_use]
    pub fn of(kind: &'static Type) -> Self {
        Self(Place::Type(kind))
    }

    fn shape(self) -> Option<&'static Shape> {
        match self.0 {
            Place::Field(field) => Some(field.shape()),
            Place::Shape(shape) => Some(shape),
            Place::Type(_) | Place::Open => None,
        }
    }

    fn message(self) -> Option<&'static Type> {
        match self.0 {
            Place::Type(of) => Some(of),
            _ => self.shape()?.message(),
        }
    }
}

impl Schema for AtlasSchema {
    fn identity(&self) -> Option<usize> {
        match self.0 {
            Place::Shape(shape) => Some(shape.identity()),
            Place::Type(_) | Place::Field(_) | Place::Open => None,
        }
    }

    fn structure(&self, value: Option<&Doc>) -> Structure<'_> {
        let field = match self.0 {
            Place::Field(field) => Some(field),
            Place::Type(_) | Place::Shape(_) | Place::Open => None,
        };
        if let Some(of) = self.message() {
            return map(field.map_or_else(|| of.is_atomic(), Field::is_atomic));
        }
        match (self.shape(), value.map(Doc::kind)) {
            (Some(Shape::Map(_)), _) => map(field.is_some_and(Field::is_atomic)),
            (Some(Shape::List(_) | Shape::WrappedList(_)), _) => {
                Structure::List(field.map_or(ListKind::Atomic, list_kind))
            }
            (Some(Shape::Fields), _) => Structure::Map,
            // Any object at all is one value, and so are schemas that may be something else.
            (Some(shape), kind) if is_open(shape) => match kind {
                Some(Kind::Array(_)) => Structure::List(ListKind::Atomic),
                Some(Kind::Object(_) | Kind::Null) | None => Structure::AtomicMap,
                Some(_) => Structure::Scalar,
            },
            (Some(_), _) => Structure::Scalar,
            (None, Some(Kind::Array(_))) => Structure::List(ListKind::Atomic),
            (None, Some(Kind::Object(_) | Kind::Null) | None) => Structure::Map,
            (None, Some(_)) => Structure::Scalar,
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        if let Some(of) = self.message() {
            return of.field(name).map(|field| Self(Place::Field(field)));
        }
        Some(Self(match self.shape() {
            Some(Shape::Map(inner)) => Place::Shape(inner),
            _ => Place::Open,
        }))
    }

    fn is_declared(&self, name: &str) -> bool {
        self.message().is_some_and(|of| of.field(name).is_some())
    }

    fn item(&self) -> Option<Self> {
        Some(Self(match self.shape() {
            Some(Shape::List(inner) | Shape::WrappedList(inner)) => Place::Shape(inner),
            _ => Place::Open,
        }))
    }

    fn default_of(&self, name: &str) -> Option<Doc> {
        let field = self.message()?.field(name)?;
        // The schema that upstream publishes has a default for every field that is always there.
        let zero = || {
            let is_always_there = !field.is_pointer() && !field.omits_empty();
            match field.shape() {
                Shape::String | Shape::Enum(_) if is_always_there => Some(Doc::from("")),
                Shape::Int32 | Shape::Int64 if is_always_there => Some(Doc::from(0)),
                Shape::Bool if is_always_there => Some(Doc::from(false)),
                _ => None,
            }
        };
        field.default().or_else(zero)
    }

    fn scalar(&self) -> Option<ScalarKind> {
        match self.shape()? {
            Shape::String | Shape::Enum(_) | Shape::Bytes => Some(ScalarKind::String),
            Shape::Int32 | Shape::Int64 | Shape::Double => Some(ScalarKind::Numeric),
            Shape::Bool => Some(ScalarKind::Boolean),
            _ => None,
        }
    }

    fn canonical(&self, object: &Doc) -> Doc {
        self.message()
            .map_or_else(|| object.clone(), |of| crate::canonical(of, object))
    }
}

fn map<'a>(is_atomic: bool) -> Structure<'a> {
    if is_atomic {
        Structure::AtomicMap
    } else {
        Structure::Map
    }
}

fn list_kind<'a>(field: &'static Field) -> ListKind<'a> {
    match field.list_type() {
        Some(ListType::Map) => ListKind::Map(ListKeys::BuiltIn(field.list_keys())),
        Some(ListType::Set) => ListKind::Set,
        Some(ListType::Atomic) | None => ListKind::Atomic,
    }
}

fn is_open(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Raw
            | Shape::Json
            | Shape::Any
            | Shape::SchemaOrBool
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
    )
}

/// The step that leads to an item of a list, or why there is none.
pub(super) fn step_of<S: Schema>(
    list: S,
    kind: ListKind<'_>,
    item: &Doc,
) -> Result<PathElement, String> {
    match (kind, item.kind()) {
        (ListKind::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
        (ListKind::Set, Kind::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (ListKind::Set, Kind::Array(_)) => {
            Err("not supported: associative list with lists as elements".to_owned())
        }
        (ListKind::Set, Kind::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (ListKind::Set, _) => Ok(PathElement::Value(Scalar(item.clone()))),
        (ListKind::Map(_), Kind::Null) => {
            Err("associative list with keys may not have a null element".to_owned())
        }
        (ListKind::Map(keys), Kind::Object(object)) => {
            let items = list.item();
            let default = |key: &str| items.and_then(|items| items.default_of(key));
            let mut fields: Vec<(Str, Scalar)> = keys
                .iter()
                .filter_map(|key| {
                    let value = object.get(key).cloned().or_else(|| default(key))?;
                    Some((Str::new(key), Scalar(value)))
                })
                .collect();
            fields.sort();
            if fields.is_empty() {
                return Err(format!(
                    "associative list with keys has an element that omits all key fields {keys:?} \
                     (and doesn't have default values for any key fields)"
                )
                .replace("\", \"", "\" \""));
            }
            Ok(PathElement::Key(fields))
        }
        (ListKind::Map(_), _) => {
            Err("associative list with keys may not have non-map elements".to_owned())
        }
    }
}
