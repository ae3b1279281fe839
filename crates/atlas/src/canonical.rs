//! Objects as upstream writes them.

use std::cell::RefCell;
use std::thread::LocalKey;

use windlass_core::{Doc, Kind, Memo, Object, Quantity, Str};

use crate::table::{Field, Shape, Type};
use crate::zero::{is_left_out, is_scalar, zero};

/// The number of memoized specs on a thread, after which all are dropped.
const SPECS_LIMIT: usize = 8192;
/// The number of memoized lists.
const LISTS_LIMIT: usize = 1024;
/// The field whose canonical form is memoized as a whole.
const SPEC: &str = "spec";

thread_local! {
    /// The canonical form of specs, by their shape: an object is written several times with the
    /// same spec, and a pod has the one of its template.
    static SPECS: RefCell<Known> = RefCell::new(Memo::new(SPECS_LIMIT));
    /// The same of lists of objects, of which a spec has many: pods of one template come one after
    /// the other, each with a spec that differs in a plain field at most.
    static LISTS: RefCell<Known> = RefCell::new(Memo::new(LISTS_LIMIT));
    /// The stored form of parts, by their shape.
    static STORED: RefCell<Known> = RefCell::new(Memo::new(SPECS_LIMIT));
}

type Known = Memo<(usize, Doc), Doc>;

/// An object as upstream's typed form of it would be written: unknown fields are gone, empty ones
/// are left out or stand there as zero, and quantities have their canonical form.
///
/// A value that does not fit its field stays as it is; finding those is for validation.
#[must_use]
pub fn canonical(kind: &'static Type, object: &Doc) -> Doc {
    message(kind, object)
}

/// A canonical object as it is after upstream has stored it: in protobuf, in which there are no
/// empty lists and maps. Where JSON must show a value, it is `null`.
#[must_use]
pub fn stored(kind: &'static Type, object: &Doc) -> Doc {
    // Definitions of custom resources are stored as JSON.
    match kind.package() {
        "apiextensions/v1" => object.clone(),
        _ => stored_message(kind, object),
    }
}

fn stored_message(kind: &'static Type, object: &Doc) -> Doc {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let mut changed = fields.clone();
    for (key, value) in fields.iter() {
        let Some(field) = kind.field(key) else {
            continue;
        };
        let value_stored = stored_value(field, value);
        if value_stored != *value {
            changed = changed.with(key, value_stored);
        }
    }
    changed.into()
}

fn stored_value(field: &'static Field, value: &Doc) -> Doc {
    let shape = field.shape();
    let is_empty = match shape {
        Shape::List(_) => value.as_array().is_some_and(|items| items.is_empty()),
        Shape::Map(_) => value.as_object().is_some_and(|map| map.is_empty()),
        _ => false,
    };
    if is_empty && !field.omits_empty() && field.number() > 0 {
        return Doc::NULL;
    }
    let is_plain = |inner: &Shape| inner.message().is_none();
    match shape {
        Shape::List(inner) | Shape::Map(inner) if is_plain(inner) => value.clone(),
        Shape::Message(_) | Shape::List(_) | Shape::Map(_) => {
            remembered(&STORED, shape, value, || stored_parts(shape, value))
        }
        _ => value.clone(),
    }
}

fn stored_parts(shape: &'static Shape, value: &Doc) -> Doc {
    match (shape, value.kind()) {
        (Shape::Message(of), _) => stored_message(of.get(), value),
        (Shape::List(inner), Kind::Array(items)) => match inner.message() {
            Some(of) => {
                let items: Vec<Doc> = items.iter().map(|item| stored_message(of, item)).collect();
                items.into()
            }
            None => value.clone(),
        },
        (Shape::Map(inner), Kind::Object(map)) => match inner.message() {
            Some(of) => {
                let entries = map
                    .iter()
                    .map(|(key, item)| (key.clone(), stored_message(of, item)));
                entries.collect::<Object>().into()
            }
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn message(of: &'static Type, doc: &Doc) -> Doc {
    let empty = Object::empty();
    let object = match doc.kind() {
        Kind::Object(object) => object,
        Kind::Null => &empty,
        _ => return doc.clone(),
    };
    let mut fields = Vec::with_capacity(object.len());
    collect(of, object, &mut fields);
    // Stored objects are canonical already, and to look is cheaper than to build.
    let is_as_it_was = fields.len() == object.len()
        && fields
            .iter()
            .all(|(key, value)| object.get(key) == Some(value));
    match is_as_it_was && doc.as_object().is_some() {
        true => doc.clone(),
        false => Object::new(fields).into(),
    }
}

fn collect(of: &'static Type, object: &Object, out: &mut Vec<(Str, Doc)>) {
    for field in of.own_fields() {
        let given = object.get(field.name()).filter(|value| !value.is_null());
        let value = match given {
            Some(value) if field.name() == SPEC => {
                let shape = field.shape();
                Some(remembered(&SPECS, shape, value, || convert(shape, value)))
            }
            Some(value) => Some(convert(field.shape(), value)),
            None => absent(field),
        };
        match value {
            Some(value) if is_left_out(field, &value) => {}
            Some(value) => out.push((field.key().clone(), value)),
            None if field.omits_empty() => {}
            None => out.push((field.key().clone(), Doc::NULL)),
        }
    }
    for inlined in of.inlined() {
        collect(inlined.of.get(), object, out);
    }
}

/// The value of a field that is not given; `None` where upstream can tell that it is not.
fn absent(field: &'static Field) -> Option<Doc> {
    if field.is_pointer() {
        return None;
    }
    match field.shape() {
        Shape::Bytes | Shape::List(_) | Shape::WrappedList(_) | Shape::Map(_) | Shape::Any => None,
        shape if is_scalar(shape) => Some(zero(shape)),
        Shape::Message(of) => Some(message(of.get(), &Doc::NULL)),
        Shape::Quantity => Some(Doc::from("0")),
        Shape::IntOrString => Some(Doc::from(0)),
        _ => Some(Doc::NULL),
    }
}

fn convert(shape: &'static Shape, value: &Doc) -> Doc {
    let converted = match shape {
        Shape::Message(of) => return message(of.get(), value),
        Shape::List(inner) => value.as_array().map(|items| {
            let convert_all = || convert_items(inner, value, items);
            match **inner {
                Shape::Message(_) => remembered(&LISTS, shape, value, convert_all),
                _ => convert_all(),
            }
        }),
        Shape::Map(inner) if !is_plain(inner) => value.as_object().map(|object| {
            let entries = object.iter();
            let entries = entries.map(|(key, value)| (key.clone(), convert(inner, value)));
            entries.collect::<Object>().into()
        }),
        Shape::Quantity => match value.kind() {
            Kind::Str(text) => quantity(text),
            Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => quantity(&value.to_string()),
            _ => None,
        },
        _ => None,
    };
    converted.unwrap_or_else(|| value.clone())
}

fn convert_items(of: &'static Shape, list: &Doc, items: &[Doc]) -> Doc {
    let converted: Vec<Doc> = items.iter().map(|item| convert(of, item)).collect();
    match converted[..] == items[..] {
        true => list.clone(),
        false => converted.into(),
    }
}

/// The canonical form of a value, worked out only if it is new.
fn remembered(
    memory: &'static LocalKey<RefCell<Known>>,
    shape: &'static Shape,
    value: &Doc,
    convert: impl FnOnce() -> Doc,
) -> Doc {
    let key = (shape.identity(), value.clone());
    if let Some(known) = memory.with_borrow(|known| known.get(&key)) {
        return known;
    }
    let converted = convert();
    memory.with_borrow_mut(|known| known.put(key, converted.clone()));
    converted
}

/// Returns true if every value of a shape is canonical as it is.
fn is_plain(shape: &Shape) -> bool {
    is_scalar(shape) || matches!(shape, Shape::Json | Shape::Raw | Shape::Any)
}

fn quantity(text: &str) -> Option<Doc> {
    let quantity: Quantity = text.trim().parse().ok()?;
    Some(quantity.to_string().into())
}
