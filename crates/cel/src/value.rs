//! Values of expressions.

mod collection;
mod compare;
mod convert;
pub(crate) mod format;
mod message;
mod net;
mod semver;
mod show;
mod text;
mod time;
mod url;
mod zone;

use std::net::IpAddr;
use std::sync::Arc;

use windlass_core::{Doc, Kind, Quantity};

pub use collection::{List, Map};
pub use message::Message;
pub use net::Cidr;
pub use semver::{Semver, SemverError};
pub use text::Text;
pub use time::Timestamp;
pub use url::Url;

pub(crate) use collection::MapKey;
pub(crate) use compare::{compare, equals};
pub(crate) use convert::from_doc;
pub(crate) use net::parse_ip;
pub(crate) use semver::normalized;
pub(crate) use show::{double_text, show};
pub(crate) use time::{duration_text, parse_duration, parse_timestamp};
pub(crate) use zone::zone_offset;

use crate::authorization::Authorization;
use crate::types::{Decl, Opaque, Type};
use format::Format;

/// A value. Cloning is cheap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A string.
    String(Text),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time.
    Timestamp(Timestamp),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A list.
    List(List),
    /// A map or an object.
    Map(Map),
    /// A value that may be absent.
    Optional(Option<Arc<Self>>),
    /// A type.
    Type(Type),
    /// A quantity.
    Quantity(Arc<Quantity>),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A URL.
    Url(Arc<Url>),
    /// An IP address.
    Ip(IpAddr),
    /// A network.
    Cidr(Cidr),
    /// A message that the expression constructed.
    Message(Arc<Message>),
    /// An authorizer, a question to one, or its decision.
    Authorization(Arc<Authorization>),
    /// A named format.
    #[doc(hidden)]
    Format(&'static Format),
}

impl Value {
    /// A document as its declaration says it is to be read. Nothing is copied or converted until
    /// an expression reaches it.
    #[must_use]
    pub fn declared(doc: &Doc, decl: &Arc<Decl>) -> Self {
        from_doc(doc, Some(decl))
    }

    /// The truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The type of this value, as `type(x)` gives it.
    #[must_use]
    pub fn ty(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(map) => map
                .object_decl()
                .map_or_else(|| Type::map(Type::Dyn, Type::Dyn), Decl::ty),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::Type(Arc::new(Type::Dyn)),
            Self::Quantity(_) => Type::Opaque(Opaque::Quantity),
            Self::Semver(_) => Type::Opaque(Opaque::Semver),
            Self::Url(_) => Type::Opaque(Opaque::Url),
            Self::Ip(_) => Type::Opaque(Opaque::Ip),
            Self::Cidr(_) => Type::Opaque(Opaque::Cidr),
            Self::Format(_) => Type::Opaque(Opaque::Format),
            Self::Message(message) => Type::Message(message.name().into()),
            Self::Authorization(value) => Type::Opaque(value.ty()),
        }
    }

    /// Characters, bytes, items or entries; one for everything that has no size.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) if map.object_decl().is_none() => map.len(),
            Self::Optional(Some(inner)) => return inner.size(),
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => cidr.bytes_len(),
            _ => 1,
        };
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List::from(items))
    }

    /// Whether this is what a value of its type is before it is set.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Optional(None) => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Duration(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(_) | Self::Bytes(_) | Self::List(_) => self.size() == 0,
            Self::Map(map) => map.is_empty(),
            Self::Message(message) => message.fields().next().is_none(),
            _ => false,
        }
    }

    /// The value as JSON, if it has such a form.
    #[must_use]
    pub fn to_doc(&self) -> Option<Doc> {
        convert::to_doc(self)
    }
}

impl From<&Doc> for Value {
    fn from(doc: &Doc) -> Self {
        from_doc(doc, None)
    }
}

impl From<Authorization> for Value {
    fn from(value: Authorization) -> Self {
        Self::Authorization(Arc::new(value))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(Text::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(Text::from(text))
    }
}

/// Whether a document is a number without a fraction.
fn integral(doc: &Doc) -> Option<i64> {
    match doc.kind() {
        Kind::Int(value) => Some(value),
        Kind::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
        _ => None,
    }
}
