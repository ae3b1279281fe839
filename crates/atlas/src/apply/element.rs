//! One step of a path through an object.

use std::cmp::Ordering;
use std::fmt;

use windlass_core::{Doc, Kind, Str, quote};

/// A plain value in a path. Numbers are equal when their values are.
#[derive(Clone, Debug)]
pub struct Scalar(pub Doc);

/// One step of a path, ordered as upstream lists paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object or a key of a map.
    Field(Str),
    /// The item of a list whose key fields have these values; sorted by name.
    Key(Vec<(Str, Scalar)>),
    /// The item of a set that is this value.
    Value(Scalar),
    /// The item at a position.
    Index(i64),
}

impl Scalar {
    fn rank(&self) -> u8 {
        match self.0.kind() {
            Kind::Float(_) | Kind::Int(_) | Kind::UInt(_) => 0,
            Kind::Str(_) => 1,
            Kind::Bool(_) => 2,
            Kind::Array(_) => 3,
            Kind::Object(_) => 4,
            Kind::Null => 5,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.kind(), other.0.kind()) {
            (Kind::Str(a), Kind::Str(b)) => a.cmp(b),
            (Kind::Bool(a), Kind::Bool(b)) => a.cmp(&b),
            (Kind::Int(a), Kind::Int(b)) => a.cmp(&b),
            _ => match (self.0.as_f64(), other.0.as_f64()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => self
                    .rank()
                    .cmp(&other.rank())
                    .then_with(|| compare_parts(&self.0, &other.0)),
            },
        }
    }
}

/// Orders lists and objects, which no key has that validation accepts. Part by part: to print a
/// large one for each comparison would cost it as often.
fn compare_parts(a: &Doc, b: &Doc) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let scalars = |(a, b): (&Doc, &Doc)| Scalar(a.clone()).cmp(&Scalar(b.clone()));
    match (a.kind(), b.kind()) {
        (Kind::Array(one), Kind::Array(other)) => {
            let mut pairs = one.iter().zip(other.iter()).map(scalars);
            let first = pairs.find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Kind::Object(one), Kind::Object(other)) => {
            let pairs = one.iter().zip(other.iter());
            let mut pairs = pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| scalars((x, y))));
            let first = pairs.find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        _ => Ordering::Equal,
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind() {
            Kind::Str(text) => f.write_str(&quote(text)),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}
