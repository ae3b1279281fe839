//! Whether an object has the fields and types of its kind.
//!
//! Behind this point nobody finds a number where the kind has a text, nor a field that the kind
//! does not have.

use std::cell::RefCell;
use std::thread::LocalKey;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_atlas::{Atlas, Field, Shape, Type, unknown_fields};
use windlass_core::{Doc, Gvk, Kind, Memo, MicroTime, Object, Quantity, Str, Time, quote};

use windlass_schema::custom;

const TIME_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
/// The digits that a time in microseconds has behind its point.
const MICRO_DIGITS: usize = 6;

/// The field that is not looked at twice.
const SPEC: &str = "spec";
/// Specs that a thread remembers.
const SPECS_LIMIT: usize = 8192;
/// Lists that a thread remembers.
const LISTS_LIMIT: usize = 1024;

thread_local! {
    /// Specs that are as their type describes them, and in the form that upstream writes: an object
    /// is written several times with the same spec.
    static SPECS: RefCell<Known> = RefCell::new(Memo::new(SPECS_LIMIT));
    /// Lists in them, of which there are many: pods of one template come one after the other, each
    /// with a spec that differs in a plain field at most.
    static LISTS: RefCell<Known> = RefCell::new(Memo::new(LISTS_LIMIT));
}

type Known = Memo<(usize, Doc), ()>;

/// An object that is as its kind describes it.
#[derive(Debug)]
pub(super) struct Typed {
    /// The object without the fields that its kind does not have, in the form that upstream would
    /// store.
    pub(super) doc: Doc,
    /// One complaint for each field that was left out.
    pub(super) unknown: Vec<String>,
}

/// Fits an object to its kind, or says which value is of the wrong type.
pub(super) fn fit(gvk: &Gvk, doc: &Doc) -> Result<Typed, String> {
    match Atlas::kind(gvk) {
        Some(kind) => fit_to(kind, doc),
        None => fit_unknown(doc),
    }
}

/// Fits a custom resource to its schema, or says which value of the metadata is of the wrong type.
pub(super) fn fit_custom(custom: &custom::Version, doc: &Doc) -> Result<Typed, String> {
    let (metadata, mut unknown) = fit_metadata(doc.at("/metadata"), "metadata")?;
    let (pruned, paths) = custom.prune(doc);
    let mut embedded = Vec::new();
    let pruned = custom.map_metadata(&pruned, &mut |inner, path| {
        let (fitting, found) = fit_metadata(inner, path)?;
        embedded.extend(found);
        Ok(fitting)
    })?;
    unknown.extend(embedded);
    unknown.extend(
        paths
            .iter()
            .map(|path| format!("unknown field {}", quote(path))),
    );
    unknown.sort();
    Ok(Typed {
        doc: super::object::put(pruned, "/metadata", metadata),
        unknown,
    })
}

/// Metadata with the fields it can have, and a complaint about each that it cannot.
fn fit_metadata(doc: &Doc, path: &str) -> Result<(Doc, Vec<String>), String> {
    let Some(of) = Atlas::named("meta/v1", "ObjectMeta") else {
        return Ok((doc.clone(), Vec::new()));
    };
    let mut walk = Walk::default();
    walk.object(of, doc)?;
    let unknown = unknown_fields(of, doc);
    let prefixed = unknown.iter().map(|field| {
        let text = field.to_string();
        text.replacen("unknown field \"", &format!("unknown field \"{path}."), 1)
    });
    Ok((
        super::object::clean(&known_object(of, doc)),
        prefixed.collect(),
    ))
}

/// Of a kind that nobody described only the metadata is known.
fn fit_unknown(doc: &Doc) -> Result<Typed, String> {
    let (metadata, _) = fit_metadata(doc.at("/metadata"), "metadata")?;
    Ok(Typed {
        doc: super::object::put(doc.clone(), "/metadata", metadata),
        unknown: Vec::new(),
    })
}

fn fit_to(kind: &'static Type, doc: &Doc) -> Result<Typed, String> {
    let mut walk = Walk::default();
    walk.object(kind, doc)?;
    let unknown = match walk.found_unknown {
        true => unknown_fields(kind, doc),
        false => Vec::new(),
    };
    let doc = match walk.found_unknown || walk.found_other_form {
        true => known_object(kind, doc),
        false => doc.clone(),
    };
    Ok(Typed {
        doc,
        unknown: unknown.iter().map(ToString::to_string).collect(),
    })
}

/// A walk through an object beside its type.
#[derive(Default)]
struct Walk {
    /// Where it is, without the positions in lists.
    path: String,
    /// The type that has the field.
    owner: &'static str,
    /// Whether it has come to a spec, where lists are often the same as ones before.
    is_in_spec: bool,
    found_unknown: bool,
    /// Whether something is written in another way than upstream writes it.
    found_other_form: bool,
}

impl Walk {
    fn object(&mut self, of: &'static Type, doc: &Doc) -> Result<(), String> {
        let fields = match doc.kind() {
            Kind::Null => return Ok(()),
            Kind::Object(fields) => fields,
            _ => return Err(self.misfit(doc, &type_name(of))),
        };
        let (length, owner) = (self.path.len(), self.owner);
        self.owner = of.name();
        for (key, value) in fields.iter() {
            let Some(field) = of.field(key) else {
                self.found_unknown = true;
                continue;
            };
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
            self.found_other_form |= is_left_out(field, value);
            match (field.name(), field.shape()) {
                (SPEC, shape) => self.repeated(&SPECS, shape, value)?,
                // Pods of one template differ in the node, but not in containers and volumes.
                (_, shape @ Shape::List(_)) if self.is_in_spec => {
                    self.repeated(&LISTS, shape, value)?;
                }
                (_, shape) => self.value(shape, value)?,
            }
            self.path.truncate(length);
        }
        self.owner = owner;
        Ok(())
    }

    /// A value that is often the same as one before.
    fn repeated(
        &mut self,
        memory: &'static LocalKey<RefCell<Known>>,
        shape: &'static Shape,
        doc: &Doc,
    ) -> Result<(), String> {
        let key = (shape.identity(), doc.clone());
        if memory.with_borrow(|known| known.get(&key)).is_some() {
            return Ok(());
        }
        let mut walk = Self {
            path: self.path.clone(),
            owner: self.owner,
            is_in_spec: true,
            ..Self::default()
        };
        walk.value(shape, doc)?;
        if !walk.found_unknown && !walk.found_other_form {
            memory.with_borrow_mut(|known| known.put(key, ()));
        }
        self.found_unknown |= walk.found_unknown;
        self.found_other_form |= walk.found_other_form;
        Ok(())
    }

    fn value(&mut self, shape: &Shape, doc: &Doc) -> Result<(), String> {
        match (shape, doc.kind()) {
            (_, Kind::Null) => Ok(()),
            (Shape::Message(of), _) => self.object(of.get(), doc),
            (Shape::List(inner) | Shape::WrappedList(inner), Kind::Array(items)) => {
                items.iter().try_for_each(|item| self.value(inner, item))
            }
            (Shape::Map(inner), Kind::Object(map)) => {
                let mut values = map.values().iter();
                values.try_for_each(|value| self.value(inner, value))
            }
            (Shape::Bytes, Kind::Str(text)) => check_base64(text),
            (Shape::Time, Kind::Str(text)) => check_time(text),
            (Shape::MicroTime, Kind::Str(text)) => check_micro_time(text),
            (Shape::Quantity, Kind::Str(_) | Kind::Int(_) | Kind::UInt(_) | Kind::Float(_)) => {
                self.found_other_form |= canonical_quantity(doc)? != *doc;
                Ok(())
            }
            (shape, kind) if is_plain(shape, kind) => Ok(()),
            (shape, _) => Err(self.misfit(doc, &shape_name(shape))),
        }
    }

    fn misfit(&self, found: &Doc, wanted: &str) -> String {
        let found = match found.kind() {
            Kind::Bool(_) => "bool".to_owned(),
            Kind::Str(_) => "string".to_owned(),
            Kind::Array(_) => "array".to_owned(),
            Kind::Object(_) | Kind::Null => "object".to_owned(),
            // A number that does not fit into an integer is shown.
            _ if wanted.starts_with("int") => format!("number {found}"),
            _ => "number".to_owned(),
        };
        let (owner, path) = (self.owner, &self.path);
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"
        )
    }
}

/// Whether a value of one of the simple shapes is of its JSON type.
fn is_plain(shape: &Shape, kind: Kind<'_>) -> bool {
    match shape {
        Shape::Bool => matches!(kind, Kind::Bool(_)),
        Shape::String | Shape::Enum(_) => matches!(kind, Kind::Str(_)),
        Shape::Int32 => is_int32(kind),
        Shape::Int64 => matches!(kind, Kind::Int(_)),
        Shape::Double => matches!(kind, Kind::Int(_) | Kind::UInt(_) | Kind::Float(_)),
        Shape::IntOrString => matches!(kind, Kind::Str(_)) || is_int32(kind),
        Shape::Fields
        | Shape::Raw
        | Shape::Json
        | Shape::SchemaOrBool
        | Shape::SchemaOrArray
        | Shape::SchemaOrStrings
        | Shape::Any => true,
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Quantity
        | Shape::Message(_)
        | Shape::List(_)
        | Shape::WrappedList(_)
        | Shape::Map(_) => false,
    }
}

fn is_int32(kind: Kind<'_>) -> bool {
    matches!(kind, Kind::Int(number) if i32::try_from(number).is_ok())
}

fn check_base64(text: &str) -> Result<(), String> {
    let at = match BASE64.decode(text) {
        Ok(_) => return Ok(()),
        Err(
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _),
        ) => at,
        Err(_) => text.len(),
    };
    Err(format!("illegal base64 data at input byte {at}"))
}

/// A quantity as the text that upstream writes: `500m` for `0.5`.
fn canonical_quantity(doc: &Doc) -> Result<Doc, String> {
    let parsed = match doc.as_str() {
        Some(text) => text.parse::<Quantity>(),
        None => doc.to_string().parse(),
    };
    let quantity = parsed.map_err(|_| {
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    })?;
    Ok(quantity.to_string().into())
}

fn check_time(text: &str) -> Result<(), String> {
    text.parse::<Time>()
        .map(drop)
        .map_err(|_| bad_time(text, TIME_LAYOUT))
}

/// The digits must be all there, and no more.
fn check_micro_time(text: &str) -> Result<(), String> {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits == MICRO_DIGITS && text.parse::<MicroTime>().is_ok() {
        return Ok(());
    }
    Err(bad_time(text, MICRO_TIME_LAYOUT))
}

fn bad_time(text: &str, layout: &str) -> String {
    let text = quote(text);
    format!("parsing time {text} as {layout:?}: cannot parse {text} as {layout:?}")
}

fn type_name(of: &Type) -> String {
    let version = of.package().rsplit('/').next().unwrap_or_default();
    format!("{version}.{}", of.name())
}

/// A shape in the words of upstream's decoder.
fn shape_name(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".to_owned(),
        Shape::Int32 => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Double => "float64".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time => "v1.Time".to_owned(),
        Shape::MicroTime => "v1.MicroTime".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::Message(of) => type_name(of.get()),
        Shape::List(inner) | Shape::WrappedList(inner) => format!("[]{}", shape_name(inner)),
        Shape::Map(inner) => format!("map[string]{}", shape_name(inner)),
        _ => "string".to_owned(),
    }
}

/// Whether upstream leaves a value out of what it stores and sends, because it says nothing.
fn is_left_out(field: &Field, value: &Doc) -> bool {
    // An empty list of these is an order to forget them.
    if field.is_pointer() || !field.omits_empty() || field.name() == "managedFields" {
        return false;
    }
    match (field.shape(), value.kind()) {
        (Shape::List(_) | Shape::WrappedList(_), Kind::Array(items)) => items.is_empty(),
        (Shape::Map(_), Kind::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// An object without the fields that its type does not have and without empty lists and maps that
/// mean the same as none, its quantities as upstream writes them.
fn known_object(of: &Type, doc: &Doc) -> Doc {
    let Kind::Object(object) = doc.kind() else {
        return doc.clone();
    };
    let known = object.iter().filter_map(|(key, value)| {
        let field = of.field(key).filter(|field| !is_left_out(field, value))?;
        Some((key.clone(), known(field.shape(), value)))
    });
    Object::new(known.collect::<Vec<(Str, Doc)>>()).into()
}

fn known(shape: &Shape, doc: &Doc) -> Doc {
    match (shape, doc.kind()) {
        (Shape::Message(of), _) => known_object(of.get(), doc),
        (Shape::List(inner) | Shape::WrappedList(inner), Kind::Array(items)) => {
            let items = items.iter().map(|item| known(inner, item));
            items.collect::<Vec<_>>().into()
        }
        (Shape::Map(inner), Kind::Object(map)) => {
            let entries = map
                .iter()
                .map(|(key, value)| (key.clone(), known(inner, value)));
            Object::new(entries.collect::<Vec<(Str, Doc)>>()).into()
        }
        // The walk read every quantity before.
        (Shape::Quantity, _) => canonical_quantity(doc).unwrap_or_else(|_| doc.clone()),
        _ => doc.clone(),
    }
}
