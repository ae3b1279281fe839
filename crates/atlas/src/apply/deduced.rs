//! The schema of kinds that nobody has described.

use windlass_core::{Doc, Kind};

use super::schema::{ListKind, Schema, Structure};

/// Takes every value for what it looks like: objects merge field by field, lists are one value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deduced;

impl Schema for Deduced {
    fn structure(&self, value: Option<&Doc>) -> Structure<'_> {
        match value.map(Doc::kind) {
            Some(Kind::Array(_)) => Structure::List(ListKind::Atomic),
            Some(Kind::Object(_) | Kind::Null) | None => Structure::Map,
            Some(_) => Structure::Scalar,
        }
    }

    fn field(&self, _name: &str) -> Option<Self> {
        Some(Self)
    }

    fn is_declared(&self, _name: &str) -> bool {
        false
    }

    fn item(&self) -> Option<Self> {
        Some(Self)
    }

    fn default_of(&self, _name: &str) -> Option<Doc> {
        None
    }
}
