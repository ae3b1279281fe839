//! `Doc`: an immutable JSON tree whose equal parts are one allocation.
//!
//! Everything windlass stores or caches is a `Doc`. Pods of one template share their spec, a new
//! version of an object shares all that did not change, equality is a pointer comparison, and
//! [`Doc::diff`] costs the difference. A typed struct, or a small *view* that names only the
//! fields it needs, is read with [`Doc::decode`].
//!
//! ```
//! use windlass_core::{doc, Doc};
//!
//! let one = Doc::parse(br#"{"kind": "Pod", "metadata": {"name": "web"}}"#)?;
//! let two = doc!({ "metadata": { "name": "web" }, "kind": "Pod" });
//! assert_eq!(one, two); // one pointer comparison
//!
//! let renamed = one.with("/metadata/name", "db")?;
//! assert_eq!(renamed.at("/metadata/name"), "db");
//! assert_eq!(one.diff(&renamed)[0].path.to_string(), "metadata.name");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod changes;
mod de;
mod diff;
mod edit;
mod encode;
mod footprint;
mod intern;
mod json;
mod node;
mod pack;
mod parse;
mod path;
mod ser;
mod short;
mod size;
mod yaml;

pub use de::DecodeError;
pub use diff::{Change, Difference};
pub use edit::EditError;
pub(crate) use edit::{split, unescape};
pub use encode::Encoder;
pub use footprint::Footprint;
pub use intern::{InternerUsage, Usage};
pub use node::{Array, Object, Str, expect_more_nodes, interner_usage};
pub use pack::{Checker, NewPart, Packer, UnpackError, Unpacker, part_numbers};
pub use parse::{
    BYTES_LIMIT, DEPTH_LIMIT, Duplicates, ParseError, ParseErrorKind, ParseOptions, Parsed, Parser,
    Prune, PruneNode,
};
pub use path::{Path, Segment};
pub use ser::EncodeError;
pub use yaml::{YamlDuplicate, YamlError};

use intern::mix;
use short::ShortStr;

/// An immutable JSON value. Cloning is cheap and equality is constant time.
///
/// Numbers keep their sort: an integer that fits is an `i64`, a larger one up to `u64::MAX` is a
/// `u64`, everything written with a fraction or an exponent is an `f64` and always finite.
#[derive(Clone)]
pub struct Doc(Repr);

/// Sixteen bytes: scalars and short strings inline, everything else one shared pointer.
#[derive(Clone)]
enum Repr {
    Null,
    Bool(bool),
    Int(i64),
    /// Only for values above `i64::MAX`, so that every number has one representation.
    UInt(u64),
    /// Always finite.
    Float(f64),
    /// A string that fits inline. Every such string is kept so, never as a [`Str`].
    Short(ShortStr),
    Str(Str),
    Array(Array),
    Object(Object),
}

/// The JSON type of a [`Doc`] with its value, for matching.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits into `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A number with a fraction or an exponent; finite.
    Float(f64),
    /// A string.
    Str(&'a str),
    /// An array.
    Array(&'a Array),
    /// An object.
    Object(&'a Object),
}

impl Kind<'_> {
    /// The word for this sort of value in error messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool(_) => "boolean",
            Kind::Int(_) | Kind::UInt(_) => "integer",
            Kind::Float(_) => "number",
            Kind::Str(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }
}

impl Doc {
    /// `null`.
    pub const NULL: Self = Self(Repr::Null);

    /// The object without fields.
    #[must_use]
    pub fn empty_object() -> Self {
        Object::empty().into()
    }

    /// Parses one JSON document under the default limits; a key that comes twice is an error.
    ///
    /// Code that parses many documents keeps a [`Parser`] instead.
    pub fn parse(json: &[u8]) -> Result<Self, ParseError> {
        Self::parse_with(json, &ParseOptions::default())
    }

    /// Parses one JSON document with chosen limits and pruning.
    pub fn parse_with(json: &[u8], options: &ParseOptions) -> Result<Self, ParseError> {
        Ok(Parser::parse_once(json, options)?.doc)
    }

    /// The JSON type and the value.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind<'_> {
        match &self.0 {
            Repr::Null => Kind::Null,
            Repr::Bool(value) => Kind::Bool(*value),
            Repr::Int(value) => Kind::Int(*value),
            Repr::UInt(value) => Kind::UInt(*value),
            Repr::Float(value) => Kind::Float(*value),
            Repr::Short(text) => Kind::Str(text.as_str()),
            Repr::Str(text) => Kind::Str(text.as_str()),
            Repr::Array(value) => Kind::Array(value),
            Repr::Object(value) => Kind::Object(value),
        }
    }

    /// Returns true if this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.0, Repr::Null)
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Short(text) => Some(text.as_str()),
            Repr::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The interned form of the text, if this is a string.
    #[must_use]
    pub fn shared_str(&self) -> Option<Str> {
        match &self.0 {
            Repr::Short(text) => Some(Str::new(text.as_str())),
            Repr::Str(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// The bytes of the text, if this is a string.
    fn text_bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Short(text) => Some(text.as_bytes()),
            Repr::Str(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.0 {
            Repr::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The integer, if this is one and it fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The integer, if this is one and it is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Int(value) => u64::try_from(value).ok(),
            Repr::UInt(value) => Some(value),
            _ => None,
        }
    }

    /// The number as a float, if this is a number at all. Large integers lose digits.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self.0 {
            Repr::Int(value) => Some(value as f64),
            Repr::UInt(value) => Some(value as f64),
            Repr::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The array, if this is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match &self.0 {
            Repr::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The items; none if this is not an array.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        self.as_array().map_or(&[], |array| array)
    }

    /// The object, if this is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match &self.0 {
            Repr::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A field of this object; `None` if it is absent or this is not an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// An item of this array.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Self> {
        self.as_array()?.get(index)
    }

    /// The hash of the content. Stable while the process runs.
    #[inline]
    fn hash_value(&self) -> u64 {
        match &self.0 {
            Repr::Null => 0x61,
            Repr::Bool(value) => 0x62 + u64::from(*value),
            Repr::Int(value) => mix(0x64, value.cast_unsigned()),
            Repr::UInt(value) => mix(0x65, *value),
            Repr::Float(value) => mix(0x66, value.to_bits()),
            Repr::Short(text) => text.hash_value(),
            Repr::Str(text) => text.hash_value(),
            Repr::Array(array) => array.hash_value(),
            Repr::Object(object) => object.hash_value(),
        }
    }
}

impl PartialEq for Doc {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Null, Repr::Null) => true,
            (Repr::Bool(a), Repr::Bool(b)) => a == b,
            (Repr::Int(a), Repr::Int(b)) => a == b,
            (Repr::UInt(a), Repr::UInt(b)) => a == b,
            // By bits: the hash goes by bits, and `-0.0` prints differently from `0.0`.
            (Repr::Float(a), Repr::Float(b)) => a.to_bits() == b.to_bits(),
            (Repr::Short(a), Repr::Short(b)) => a == b,
            (Repr::Str(a), Repr::Str(b)) => a == b,
            (Repr::Array(a), Repr::Array(b)) => a == b,
            (Repr::Object(a), Repr::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Doc {}

impl std::hash::Hash for Doc {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash_value());
    }
}

impl Default for Doc {
    fn default() -> Self {
        Self::NULL
    }
}

impl std::fmt::Debug for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind() {
            Kind::Null => f.write_str("null"),
            Kind::Bool(value) => value.fmt(f),
            Kind::Int(value) => value.fmt(f),
            Kind::UInt(value) => value.fmt(f),
            Kind::Float(value) => value.fmt(f),
            Kind::Str(value) => value.fmt(f),
            Kind::Array(value) => value.fmt(f),
            Kind::Object(value) => value.fmt(f),
        }
    }
}

// Arrays and objects hold their values side by side; a larger value would be felt everywhere.
const _: () = assert!(size_of::<Doc>() == 16);
