//! Pruning: parts of a document that are skipped while it is parsed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::doc::{Array, Doc, Kind, Object};

/// A set of field paths that a parser skips, as if they were not in the text.
///
/// Skipped text is checked for balanced brackets and closed strings, nothing more.
#[derive(Clone, Debug)]
pub struct Prune(Arc<PruneNode>);

/// One level of a [`Prune`], for code that walks over a document in another form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneNode {
    fields: BTreeMap<String, Self>,
    /// The rules for every item, if the value is an array.
    items: Option<Box<Self>>,
    /// True if the value itself is skipped.
    is_pruned: bool,
}

impl Prune {
    /// Skips nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Arc::default())
    }

    /// Skips `metadata.managedFields`, which no controller reads and which is often the largest
    /// part of an object.
    #[must_use]
    pub fn managed_fields() -> Self {
        Self::nothing().and("metadata.managedFields")
    }

    /// Skips one more path: field names separated by dots, `[]` after a name for every item of
    /// an array, as in `spec.containers[].env`.
    #[must_use]
    pub fn and(self, path: &str) -> Self {
        let mut root = Arc::unwrap_or_clone(self.0);
        let mut node = &mut root;
        for field in path.split('.').filter(|field| !field.is_empty()) {
            let name = field.trim_end_matches("[]");
            node = node.fields.entry(name.to_owned()).or_default();
            for _ in 0..(field.len() - name.len()) / 2 {
                node = node.items.get_or_insert_default();
            }
        }
        node.is_pruned = true;
        Self(Arc::new(root))
    }

    /// Takes the same paths out of a document that is already parsed. What has none of them is
    /// returned as it is.
    #[must_use]
    pub fn apply(&self, doc: &Doc) -> Doc {
        self.root()
            .map_or_else(|| doc.clone(), |root| root.apply(doc))
    }

    /// The level of the document itself; `None` if nothing is skipped.
    #[must_use]
    pub fn root(&self) -> Option<&PruneNode> {
        Some(&*self.0).filter(|root| **root != PruneNode::default())
    }
}

impl PruneNode {
    /// Removes the skipped parts from a value.
    #[must_use]
    pub fn apply(&self, doc: &Doc) -> Doc {
        match doc.kind() {
            Kind::Object(object) => self.apply_to_fields(object).into(),
            Kind::Array(array) => match self.item() {
                Some(item) if item.is_pruned => Doc::from(Vec::new()),
                Some(item) => array
                    .iter()
                    .map(|doc| item.apply(doc))
                    .collect::<Array>()
                    .into(),
                None => doc.clone(),
            },
            _ => doc.clone(),
        }
    }

    fn apply_to_fields(&self, object: &Object) -> Object {
        self.fields
            .iter()
            .fold(object.clone(), |object, (key, inner)| {
                match object.get(key) {
                    None => object,
                    Some(_) if inner.is_pruned => object.without(key),
                    Some(value) => {
                        let pruned = inner.apply(value);
                        if pruned == *value {
                            object
                        } else {
                            object.with(key, pruned)
                        }
                    }
                }
            })
    }

    /// The rules for a field; `None` if nothing in it is skipped.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Self> {
        self.fields.get(key)
    }

    /// The rules for every item of an array; `None` if nothing in them is skipped.
    #[must_use]
    pub fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// Returns true if the value itself is skipped.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.is_pruned
    }
}
