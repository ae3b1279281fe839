//! Values that come again as they were written.

use std::fmt;

use windlass_core::{Doc, Memo};

use crate::table::{Field, Shape};

/// The pod template, which makes up most of a workload.
const TEMPLATE: &str = "template";
/// The smallest memoized value: shorter ones are as quickly decoded as looked up.
const BYTES_MIN: usize = 32;
/// The number of fields whose values are memoized. The types near the root have fewer.
const PLACES_LIMIT: usize = 64;
/// The number of memoized values of one field, after which all of them are dropped.
const VALUES_LIMIT: usize = 4096;
/// The memoized bytes of one field, after which all of them are dropped. The objects of one owner
/// come close together.
const BYTES_LIMIT: usize = 64 << 10;
/// The same of templates, which stay what they are while the status of their owners changes.
const TEMPLATES_BYTES_LIMIT: usize = 4 << 20;

/// Memoized values, by field.
#[derive(Default)]
pub(super) struct Repeats(Vec<Place>);

/// The values of one field.
struct Place {
    field: &'static Field,
    values: Memo<Box<[u8]>, Doc>,
    bytes: usize,
}

impl Repeats {
    /// Returns true if the value of a field is worth memoizing.
    pub(super) fn is_worthy(field: &'static Field, bytes: &[u8]) -> bool {
        bytes.len() >= BYTES_MIN && has_parts(field.shape())
    }

    /// The value that these bytes of a field were decoded to.
    pub(super) fn get(&self, field: &'static Field, bytes: &[u8]) -> Option<Doc> {
        let place = self.0.iter().find(|it| std::ptr::eq(it.field, field))?;
        place.values.get(bytes)
    }

    /// Remembers what they were read as.
    pub(super) fn put(&mut self, field: &'static Field, bytes: &[u8], doc: &Doc) {
        let limit = match field.name() {
            TEMPLATE => TEMPLATES_BYTES_LIMIT,
            _ => BYTES_LIMIT,
        };
        let known = self.0.iter().position(|it| std::ptr::eq(it.field, field));
        let at = match known {
            Some(at) => at,
            None if self.0.len() < PLACES_LIMIT => {
                self.0.push(Place::new(field));
                self.0.len() - 1
            }
            None => return,
        };
        self.0[at].put(bytes, doc, limit);
    }
}

impl Place {
    fn new(field: &'static Field) -> Self {
        Self {
            field,
            values: Memo::new(VALUES_LIMIT),
            bytes: 0,
        }
    }

    fn put(&mut self, bytes: &[u8], doc: &Doc, limit: usize) {
        if bytes.len() > limit {
            return;
        }
        if self.bytes + bytes.len() > limit {
            self.values.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.values.put(bytes.into(), doc.clone());
    }
}

/// Returns true if values have parts and are not better memoized part by part. The spec of a
/// workload holds the pod template, which changes less than the spec.
fn has_parts(shape: &'static Shape) -> bool {
    match shape {
        Shape::Message(of) => of.get().field(TEMPLATE).is_none(),
        Shape::List(_) | Shape::Map(_) => true,
        _ => false,
    }
}

impl fmt::Debug for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.0.iter().map(|it| (it.field.name(), it.bytes));
        f.debug_map().entries(places).finish()
    }
}
