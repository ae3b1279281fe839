//! How the fields of custom resources merge when several authors apply them.

use windlass_atlas::Atlas;
use windlass_atlas::apply::{AtlasSchema, ListKeys, ListKind, ScalarKind, Schema, Structure};
use windlass_core::{Doc, Kind};

use super::schema::{List, Node, Sort};

/// The schema at a place, for merging.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    node: Option<&'a Node>,
    /// Metadata merges as that of built-in kinds does.
    built_in: Option<AtlasSchema>,
    /// Whether this is a whole object.
    is_resource: bool,
}

impl<'a> Place<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node: Some(node),
            built_in: None,
            is_resource: true,
        }
    }

    fn of(node: Option<&'a Node>) -> Self {
        Self {
            node,
            built_in: None,
            is_resource: node.is_some_and(|node| node.is_embedded),
        }
    }
}

fn metadata() -> Option<AtlasSchema> {
    Atlas::named("meta/v1", "ObjectMeta").map(AtlasSchema::of)
}

impl Schema for Place<'_> {
    fn structure(&self, value: Option<&Doc>) -> Structure<'_> {
        if let Some(built_in) = &self.built_in {
            return built_in.structure(value);
        }
        let Some(node) = self.node else {
            return deduced(value);
        };
        match node.sort {
            Sort::Object if node.is_atomic => Structure::AtomicMap,
            Sort::Object => Structure::Map,
            Sort::Array => Structure::List(match &node.list {
                List::Atomic => ListKind::Atomic,
                List::Set => ListKind::Set,
                List::Map(keys) => ListKind::Map(ListKeys::Read(keys)),
            }),
            Sort::Any => deduced(value),
            Sort::Text | Sort::Integer | Sort::Number | Sort::Bool | Sort::IntOrText => {
                Structure::Scalar
            }
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        if let Some(built_in) = &self.built_in {
            return built_in.field(name).map(|place| Self {
                built_in: Some(place),
                ..*self
            });
        }
        let Some(node) = self.node else {
            return Some(Self::of(None));
        };
        if self.is_resource && name == "metadata" {
            return Some(Self {
                node: None,
                built_in: metadata(),
                is_resource: false,
            });
        }
        if self.is_resource && matches!(name, "apiVersion" | "kind") {
            return Some(Self::of(None));
        }
        match node.field(name) {
            Some(part) => Some(Self::of(Some(part))),
            None if node.keeps_unknown || node.allows_any || node.sort == Sort::Any => {
                Some(Self::of(None))
            }
            None => None,
        }
    }

    fn is_declared(&self, name: &str) -> bool {
        match &self.built_in {
            Some(built_in) => built_in.is_declared(name),
            None => {
                let is_general = self.is_resource && super::values::is_type_or_metadata(name);
                is_general || self.node.is_some_and(|node| node.property(name).is_some())
            }
        }
    }

    fn item(&self) -> Option<Self> {
        if let Some(built_in) = &self.built_in {
            return built_in.item().map(|place| Self {
                built_in: Some(place),
                ..*self
            });
        }
        Some(Self::of(self.node.and_then(|node| node.items.as_deref())))
    }

    fn scalar(&self) -> Option<ScalarKind> {
        if let Some(built_in) = &self.built_in {
            return built_in.scalar();
        }
        match self.node?.sort {
            Sort::Text => Some(ScalarKind::String),
            Sort::Integer | Sort::Number => Some(ScalarKind::Numeric),
            Sort::Bool => Some(ScalarKind::Boolean),
            Sort::Any | Sort::Object | Sort::Array | Sort::IntOrText => None,
        }
    }

    fn default_of(&self, name: &str) -> Option<Doc> {
        match &self.built_in {
            Some(built_in) => built_in.default_of(name),
            None => self.node?.property(name)?.default.clone(),
        }
    }
}

/// What nobody described: maps merge, everything else is one value.
fn deduced<'a>(value: Option<&Doc>) -> Structure<'a> {
    match value.map(Doc::kind) {
        Some(Kind::Array(_)) => Structure::List(ListKind::Atomic),
        Some(Kind::Object(_) | Kind::Null) | None => Structure::Map,
        Some(_) => Structure::Scalar,
    }
}
