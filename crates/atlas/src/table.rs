//! The table of facts: types, their fields, and the kinds among the types.

mod parse;

use std::collections::HashMap;
use std::sync::LazyLock;

use windlass_core::{Doc, GroupVersion, Gvk, Str};

static ATLAS: LazyLock<Atlas> = LazyLock::new(|| parse::parse(include_str!("facts.txt")));

/// The built-in types. Read once, when first asked.
#[derive(Debug)]
pub struct Atlas {
    types: Vec<Type>,
    enums: Vec<Vec<&'static str>>,
    /// By the name of the kind, for all groups and versions.
    kinds: HashMap<&'static str, Vec<TypeRef>>,
    /// By package and name, as in `core/v1` and `PodSpec`.
    names: HashMap<(&'static str, &'static str), TypeRef>,
}

/// In which groups and versions a type is a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registered {
    /// It is only part of others.
    Nowhere,
    /// In its own.
    Own,
    /// In every one, as `DeleteOptions` is.
    Everywhere,
    /// In `v1` of the core group, although declared elsewhere, as `Status` is.
    Unversioned,
}

/// One built-in type: a kind, or a part of one.
#[derive(Debug)]
pub struct Type {
    name: &'static str,
    package: &'static str,
    group: &'static str,
    version: &'static str,
    registered: Registered,
    is_atomic: bool,
    /// Sorted by name.
    fields: Vec<Field>,
    inlined: Vec<Inlined>,
    /// The numbers in protobuf of the fields, then those of the inlined types, side by side: they
    /// are looked through for every value that is read.
    numbers: Vec<u32>,
    /// The indexes in `numbers` of everything that is in protobuf, by ascending number.
    wire_order: Vec<u16>,
}

/// A type whose fields stand in the JSON object of another, though it may be a message of its own
/// in protobuf.
#[derive(Debug)]
pub(crate) struct Inlined {
    /// Zero if it is not in protobuf at all.
    pub(crate) number: u32,
    pub(crate) of: TypeRef,
}

/// One field of a type.
#[derive(Debug)]
pub struct Field {
    key: Str,
    name: &'static str,
    number: u32,
    shape: Shape,
    is_pointer: bool,
    omits_empty: bool,
    omits_zero: bool,
    is_required: bool,
    /// The `structType` of the field itself, which overrides that of the type in it.
    atomic: Option<bool>,
    list_type: Option<ListType>,
    list_keys: Vec<&'static str>,
    strategy: Strategy,
    merge_key: Option<&'static str>,
    default: Option<&'static str>,
}

/// The shape of the values of a field.
#[derive(Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A number of 32 bits.
    Int32,
    /// A number of 64 bits.
    Int64,
    /// A number that may have a fraction.
    Double,
    /// A text.
    String,
    /// One of some texts.
    Enum(EnumRef),
    /// Bytes; base64 in JSON.
    Bytes,
    /// A time in seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// An amount of a resource.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// The fields a manager owns, as a tree.
    Fields,
    /// Any object.
    Raw,
    /// Any JSON value.
    Json,
    /// A JSON schema, or `true` or `false`.
    SchemaOrBool,
    /// A JSON schema or several.
    SchemaOrArray,
    /// A JSON schema or some texts.
    SchemaOrStrings,
    /// Any JSON value; has no form in protobuf.
    Any,
    /// An object of another type.
    Message(TypeRef),
    /// A list.
    List(Box<Self>),
    /// A list that is a message of its own in protobuf.
    WrappedList(Box<Self>),
    /// A map from texts.
    Map(Box<Self>),
}

/// Names a type of the atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeRef(u16);

/// Names an enum of the atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumRef(u16);

/// The `listType` of a field: the meaning of its items to server-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Each item is there or not.
    Set,
    /// Items are told apart by [`Field::list_keys`].
    Map,
}

/// The `patchStrategy` of a field, for strategic merge patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Objects are replaced rather than merged.
    pub replace: bool,
    /// Of an object only the keys that the patch retains stay.
    pub retain_keys: bool,
}

impl Atlas {
    /// The type of a built-in kind. Custom resources are not known.
    #[must_use]
    pub fn kind(gvk: &Gvk) -> Option<&'static Type> {
        ATLAS
            .kinds
            .get(gvk.kind())?
            .iter()
            .map(|found| found.get())
            .find(|found| found.is_kind_in(gvk.group(), gvk.version()))
    }

    /// The type of that name in a package, such as `PodSpec` in `core/v1`.
    #[must_use]
    pub fn named(package: &str, name: &str) -> Option<&'static Type> {
        let names: &HashMap<(&str, &str), TypeRef> = &ATLAS.names;
        names.get(&(package, name)).map(|found| found.get())
    }

    /// Every type, packages in the order of the table and types by name.
    #[must_use]
    pub fn types() -> &'static [Type] {
        &ATLAS.types
    }
}

impl TypeRef {
    /// The type.
    #[must_use]
    pub fn get(self) -> &'static Type {
        &ATLAS.types[usize::from(self.0)]
    }
}

impl EnumRef {
    /// The texts, sorted.
    #[must_use]
    pub fn values(self) -> &'static [&'static str] {
        &ATLAS.enums[usize::from(self.0)]
    }
}

impl Type {
    /// The name, such as `PodSpec`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The package the type is declared in, such as `core/v1`.
    #[must_use]
    pub fn package(&self) -> &'static str {
        self.package
    }

    /// The kind this type is, if it is one in the group and version of its package.
    #[must_use]
    pub fn gvk(&self) -> Option<Gvk> {
        let api = match self.registered {
            Registered::Own => GroupVersion::constant(self.group, self.version),
            Registered::Unversioned => GroupVersion::constant("", "v1"),
            Registered::Nowhere | Registered::Everywhere => return None,
        };
        Some(api.with_kind(self.name))
    }

    fn is_kind_in(&self, group: &str, version: &str) -> bool {
        match self.registered {
            Registered::Nowhere => false,
            Registered::Own => self.group == group && self.version == version,
            Registered::Everywhere => true,
            Registered::Unversioned => group.is_empty() && version == "v1",
        }
    }

    /// Returns true if server-side apply treats an object of this type as one value.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// The field of that name in JSON, also where it belongs to an inlined type.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        match self.fields.binary_search_by(|field| field.name.cmp(name)) {
            Ok(at) => self.fields.get(at),
            Err(_) => self
                .inlined
                .iter()
                .find_map(|inlined| inlined.of.get().field(name)),
        }
    }

    /// All fields of the JSON object, those of inlined types last.
    #[must_use]
    pub fn fields(&self) -> Vec<&Field> {
        let inlined = self.inlined.iter().flat_map(|one| one.of.get().fields());
        self.fields.iter().chain(inlined).collect()
    }

    /// The fields this type declares itself, sorted by name.
    pub(crate) fn own_fields(&self) -> &[Field] {
        &self.fields
    }

    /// The index of the field with a protobuf number, or that of an inlined type, which come after
    /// all fields. The number is not zero.
    pub(crate) fn numbered(&self, number: u32) -> Option<usize> {
        self.numbers.iter().position(|known| *known == number)
    }

    /// The indexes of the fields that protobuf has, in the order in which upstream writes them;
    /// those of inlined types come after all fields.
    pub(crate) fn wire_order(&self) -> &[u16] {
        &self.wire_order
    }

    pub(crate) fn inlined(&self) -> &[Inlined] {
        &self.inlined
    }
}

impl Field {
    /// The name in JSON.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The name, interned.
    pub(crate) fn key(&self) -> &Str {
        &self.key
    }

    /// The number in protobuf; zero if the field is not there.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The shape of the values.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns true if the Go field is a pointer: "absent" differs from "zero".
    #[must_use]
    pub fn is_pointer(&self) -> bool {
        self.is_pointer
    }

    /// Returns true if typed clients leave the field out when it is empty.
    #[must_use]
    pub fn omits_empty(&self) -> bool {
        self.omits_empty
    }

    /// As [`Self::omits_empty`], also for times.
    pub(crate) fn omits_zero(&self) -> bool {
        self.omits_zero
    }

    /// Returns true if the schema requires the field.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// Returns true if server-side apply treats the object or map in this field as one value.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        let of_type = || self.shape.message().is_some_and(Type::is_atomic);
        self.atomic.unwrap_or_else(of_type)
    }

    /// The `mapType` that the field declares.
    #[must_use]
    pub fn map_type(&self) -> Option<&'static str> {
        let map_type = |is_atomic| if is_atomic { "atomic" } else { "granular" };
        self.atomic.map(map_type)
    }

    /// The `listType`, if this is a list.
    #[must_use]
    pub fn list_type(&self) -> Option<ListType> {
        self.list_type
    }

    /// The fields that tell the items of a [`ListType::Map`] apart.
    #[must_use]
    pub fn list_keys(&self) -> &[&'static str] {
        &self.list_keys
    }

    /// The `patchStrategy`.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The field by which strategic merge patch tells the items of a list apart.
    #[must_use]
    pub fn merge_key(&self) -> Option<&'static str> {
        self.merge_key
    }

    /// The default that the schema states.
    #[must_use]
    pub fn default(&self) -> Option<Doc> {
        let text = self.default?;
        Some(Doc::parse(text.as_bytes()).expect("invariant: defaults in the table are JSON"))
    }
}

impl Shape {
    /// The shape of the items or values, if this is a list or map.
    #[must_use]
    pub fn inner(&self) -> Option<&Self> {
        match self {
            Self::List(inner) | Self::WrappedList(inner) | Self::Map(inner) => Some(inner),
            _ => None,
        }
    }

    /// The type of the objects, if they are of one.
    #[must_use]
    pub fn message(&self) -> Option<&'static Type> {
        match self {
            Self::Message(found) => Some(found.get()),
            _ => None,
        }
    }

    /// A number that objects of one type have in common, whichever field they are in.
    #[must_use]
    pub fn identity(&'static self) -> usize {
        match self.message() {
            Some(of) => std::ptr::from_ref(of).addr(),
            None => std::ptr::from_ref(self).addr(),
        }
    }
}

#[cfg(test)]
mod tests;
