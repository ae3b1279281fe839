//! Types of expressions.

mod decl;

use std::fmt;
use std::sync::Arc;

pub(crate) use decl::RESERVED;
pub use decl::{Decl, ListIdentity, escape};

/// The type of an expression.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Type {
    /// Known only when evaluated.
    Dyn,
    /// `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// A list.
    List(Arc<Self>),
    /// A map from keys to values.
    Map(Arc<Self>, Arc<Self>),
    /// A value that may be absent.
    Optional(Arc<Self>),
    /// An object with known fields.
    Object(Arc<Decl>),
    /// A type of a library.
    Opaque(Opaque),
    /// A message type that an expression constructs by name: `Object`, `Object.spec`, `JSONPatch`.
    Message(Arc<str>),
    /// The type of types.
    Type(Arc<Self>),
    /// A type parameter of a function; only in signatures and while checking.
    #[doc(hidden)]
    Variable(usize),
}

/// The types that the Kubernetes libraries add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opaque {
    /// `kubernetes.Quantity`.
    Quantity,
    /// `kubernetes.Semver`.
    Semver,
    /// `kubernetes.URL`.
    Url,
    /// `net.IP`.
    Ip,
    /// `net.CIDR`.
    Cidr,
    /// `kubernetes.NamedFormat`.
    Format,
    /// `kubernetes.authorization.Authorizer`.
    Authorizer,
    /// `kubernetes.authorization.PathCheck`.
    PathCheck,
    /// `kubernetes.authorization.GroupCheck`.
    GroupCheck,
    /// `kubernetes.authorization.ResourceCheck`.
    ResourceCheck,
    /// `kubernetes.authorization.Decision`.
    Decision,
}

impl Opaque {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quantity => "kubernetes.Quantity",
            Self::Semver => "kubernetes.Semver",
            Self::Url => "kubernetes.URL",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Format => "kubernetes.NamedFormat",
            Self::Authorizer => "kubernetes.authorization.Authorizer",
            Self::PathCheck => "kubernetes.authorization.PathCheck",
            Self::GroupCheck => "kubernetes.authorization.GroupCheck",
            Self::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Self::Decision => "kubernetes.authorization.Decision",
        }
    }
}

impl Type {
    /// A list of items of a type.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List(Arc::new(item))
    }

    /// A map.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// A value of a type that may be absent.
    #[must_use]
    pub fn optional(inner: Self) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// Whether an expression of this type may give a `bool`.
    #[must_use]
    pub fn may_be_bool(&self) -> bool {
        matches!(self, Self::Bool | Self::Dyn)
    }

    /// Whether this is exactly `bool`.
    #[must_use]
    pub fn is_bool(&self) -> bool {
        matches!(self, Self::Bool)
    }

    /// Whether this is exactly `string`.
    #[must_use]
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String)
    }

    /// The complaint about a type that is none of those that are wanted, which are given by their
    /// declared names.
    #[must_use]
    pub fn mismatch(&self, wanted: &[&str]) -> Option<String> {
        let found = self.declared_name();
        match wanted {
            _ if wanted.contains(&found.as_str()) => None,
            [one] => Some(format!("must evaluate to {one} but got {found}")),
            some => {
                let some = some.join(" ");
                Some(format!("must evaluate to one of [{some}] but got {found}"))
            }
        }
    }

    /// The name of the type with its parameters, as its declaration spells it: `null_type`, where
    /// the checker says `null`.
    fn declared_name(&self) -> String {
        match self {
            Self::List(item) => format!("list({})", item.declared_name()),
            Self::Map(key, value) => {
                format!("map({}, {})", key.declared_name(), value.declared_name())
            }
            Self::Optional(inner) => format!("optional_type({})", inner.declared_name()),
            Self::Type(inner) => format!("type({})", inner.declared_name()),
            other => other.base_name(),
        }
    }

    /// Whether values have one size, whatever they are.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool
            | Self::Double
            | Self::Duration
            | Self::Int
            | Self::Timestamp
            | Self::Uint => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// The name of the type without parameters, which is what two type values are compared by.
    pub(crate) fn base_name(&self) -> String {
        match self {
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            Self::Type(_) => "type".to_owned(),
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dyn | Self::Variable(_) => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List(item) => return write!(f, "list({item})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Optional(inner) => return write!(f, "optional_type({inner})"),
            Self::Type(inner) => return write!(f, "type({inner})"),
            Self::Object(decl) => decl.name(),
            Self::Opaque(opaque) => opaque.name(),
            Self::Message(name) => name,
        })
    }
}
