//! Lists and maps, either made by an expression or still inside a document.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{Array, Object, Str};

use super::{Value, from_doc};
use crate::types::{Decl, ListIdentity};

/// A list. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct List(ListRepr);

#[derive(Clone, Debug)]
enum ListRepr {
    Own(Arc<Vec<Value>>),
    Doc(Array, Option<Arc<Decl>>),
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        Self(ListRepr::Own(Arc::new(items)))
    }
}

impl List {
    pub(super) fn of(array: Array, decl: Option<&Arc<Decl>>) -> Self {
        Self(ListRepr::Doc(array, decl.cloned()))
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            ListRepr::Own(items) => items.len(),
            ListRepr::Doc(array, _) => array.len(),
        }
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One item.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        match &self.0 {
            ListRepr::Own(items) => items.get(index).cloned(),
            ListRepr::Doc(array, decl) => {
                let item = decl.as_ref().and_then(|decl| decl.element());
                array.get(index).map(|doc| from_doc(doc, item))
            }
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(super) fn identity(&self) -> &ListIdentity {
        match &self.0 {
            ListRepr::Doc(_, Some(decl)) => decl.identity(),
            ListRepr::Own(_) | ListRepr::Doc(..) => &ListIdentity::Place,
        }
    }

    /// Appends in place if nobody else holds the list, so that folds which build one are linear.
    pub(crate) fn concat(self, other: &Self) -> Self {
        match self.identity().clone() {
            ListIdentity::Place => {}
            ListIdentity::Set => return self.union(other),
            ListIdentity::Keys(keys) => return self.overlay(other, &keys),
        }
        match self.0 {
            ListRepr::Own(mut items) => {
                Arc::make_mut(&mut items).extend(other.iter());
                Self(ListRepr::Own(items))
            }
            ListRepr::Doc(..) => Self::from(self.iter().chain(other.iter()).collect::<Vec<_>>()),
        }
    }

    /// All items of both, those of the other list only if they are new.
    fn union(&self, other: &Self) -> Self {
        let mut items: Vec<Value> = self.iter().collect();
        for item in other.iter() {
            if !items.iter().any(|known| super::equals(known, &item)) {
                items.push(item);
            }
        }
        Self::from(items)
    }

    /// The items of this list, replaced by and followed by those of the other one.
    fn overlay(&self, other: &Self, keys: &[Str]) -> Self {
        let mut items: Vec<Value> = self.iter().collect();
        for item in other.iter() {
            match items.iter_mut().find(|known| same_keys(known, &item, keys)) {
                Some(known) => *known = item,
                None => items.push(item),
            }
        }
        Self::from(items)
    }
}

/// Whether two items of a list carry the same keys.
pub(super) fn same_keys(a: &Value, b: &Value, keys: &[Str]) -> bool {
    let (Value::Map(a), Value::Map(b)) = (a, b) else {
        return false;
    };
    keys.iter()
        .all(|key| match (a.json_key(key), b.json_key(key)) {
            (None, None) => true,
            (Some(a), Some(b)) => super::equals(&a, &b),
            _ => false,
        })
}

/// The key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MapKey {
    Bool(bool),
    /// Every integer that fits, signed or not, so that equal numbers are one key.
    Int(i64),
    Uint(u64),
    String(String),
}

impl MapKey {
    /// The key that a value is; `None` if it cannot be one.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => i64::try_from(*value).map_or(Self::Uint(*value), Self::Int),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Self::Int(*value as i64)
            }
            Value::String(text) => Self::String((**text).to_owned()),
            _ => return None,
        })
    }
}

/// A map or an object. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Map(MapRepr);

#[derive(Clone, Debug)]
enum MapRepr {
    Own {
        entries: Arc<BTreeMap<MapKey, (Value, Value)>>,
        /// Whether an unknown key stands for an empty map.
        is_open: bool,
    },
    Doc(Object, Option<Arc<Decl>>),
}

impl Map {
    pub(super) fn of(object: Object, decl: Option<&Arc<Decl>>) -> Self {
        Self(MapRepr::Doc(object, decl.cloned()))
    }

    pub(crate) fn new(entries: BTreeMap<MapKey, (Value, Value)>) -> Self {
        Self(MapRepr::Own {
            entries: Arc::new(entries),
            is_open: false,
        })
    }

    /// A map with string keys.
    #[must_use]
    pub fn from_entries(entries: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self::new(
            entries
                .into_iter()
                .map(|(key, value)| (MapKey::String(key.clone()), (Value::from(key), value)))
                .collect(),
        )
    }

    /// The same map, but looking up an unknown key gives an empty map instead of an error.
    #[must_use]
    pub fn with_empty_default(self) -> Self {
        match self.0 {
            MapRepr::Own { entries, .. } => Self(MapRepr::Own {
                entries,
                is_open: true,
            }),
            MapRepr::Doc(..) => self,
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            MapRepr::Own { entries, .. } => entries.len(),
            MapRepr::Doc(object, _) => object.len(),
        }
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The declaration, if this is an object with known fields.
    pub(crate) fn object_decl(&self) -> Option<&Arc<Decl>> {
        match &self.0 {
            MapRepr::Doc(_, Some(decl)) if decl.is_object() => Some(decl),
            MapRepr::Own { .. } | MapRepr::Doc(..) => None,
        }
    }

    /// A value by its key, or what stands for an absent one.
    pub(crate) fn get(&self, key: &Value) -> Option<Value> {
        self.find(key).or_else(|| self.default_value())
    }

    /// What stands for an absent value.
    pub(crate) fn default_value(&self) -> Option<Value> {
        match &self.0 {
            MapRepr::Own { is_open: true, .. } => Some(Value::Map(Self::new(BTreeMap::new()))),
            MapRepr::Own { .. } | MapRepr::Doc(..) => None,
        }
    }

    /// A value by its key, only if it is there.
    pub(crate) fn find(&self, key: &Value) -> Option<Value> {
        match (&self.0, key) {
            (MapRepr::Own { entries, .. }, _) => entries
                .get(&MapKey::of(key)?)
                .map(|(_, value)| value.clone()),
            (MapRepr::Doc(..), Value::String(name)) => self.field(name),
            (MapRepr::Doc(..), _) => None,
        }
    }

    /// A field by its name in expressions.
    pub(crate) fn field(&self, name: &str) -> Option<Value> {
        match &self.0 {
            MapRepr::Own { entries, .. } => entries
                .get(&MapKey::String(name.to_owned()))
                .map(|(_, value)| value.clone()),
            MapRepr::Doc(object, Some(decl)) if decl.is_object() => {
                let field = decl.field(name)?;
                object
                    .get(&field.key)
                    .map(|doc| from_doc(doc, Some(&field.decl)))
            }
            MapRepr::Doc(object, decl) => {
                let value = decl.as_ref().and_then(|decl| decl.element());
                object.get(name).map(|doc| from_doc(doc, value))
            }
        }
    }

    /// A field by its key in the JSON.
    fn json_key(&self, key: &str) -> Option<Value> {
        match &self.0 {
            MapRepr::Doc(object, Some(decl)) if decl.is_object() => {
                let decl = decl.field_by_key(key).map(|field| &field.decl);
                object.get(key).map(|doc| from_doc(doc, decl))
            }
            MapRepr::Own { .. } | MapRepr::Doc(..) => self.field(key),
        }
    }

    /// The entries in the order of their keys.
    pub(crate) fn entries(&self) -> Vec<(Value, Value)> {
        match &self.0 {
            MapRepr::Own { entries, .. } => entries.values().cloned().collect(),
            MapRepr::Doc(object, decl) => object
                .iter()
                .map(|(key, doc)| {
                    let of = decl.as_ref().and_then(|decl| match decl.field_by_key(key) {
                        Some(field) => Some(&field.decl),
                        None => decl.element(),
                    });
                    (Value::from(key.as_str()), from_doc(doc, of))
                })
                .collect(),
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value> {
        match &self.0 {
            MapRepr::Own { entries, .. } => entries.values().map(|(key, _)| key.clone()).collect(),
            MapRepr::Doc(object, _) => object
                .keys()
                .iter()
                .map(|key| Value::from(key.as_str()))
                .collect(),
        }
    }

    /// Adds an entry; `None` if the key is there already or cannot be one.
    pub(crate) fn insert(self, key: &Value, value: Value) -> Option<Self> {
        let mut entries = match self.0 {
            MapRepr::Own { entries, .. } => entries,
            MapRepr::Doc(..) => Arc::new(
                self.entries()
                    .into_iter()
                    .filter_map(|(key, value)| Some((MapKey::of(&key)?, (key, value))))
                    .collect(),
            ),
        };
        let place = MapKey::of(key)?;
        if entries.contains_key(&place) {
            return None;
        }
        Arc::make_mut(&mut entries).insert(place, (key.clone(), value));
        Some(Self(MapRepr::Own {
            entries,
            is_open: false,
        }))
    }
}
