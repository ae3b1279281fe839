//! Declarations: what is known about a variable before it has a value.
//!
//! A [`Decl`] says the type of a value, how large it can be, and how the JSON of it is read: a
//! string with the format `date-time` is a timestamp in expressions, a `number` is a double even
//! if it is written without a fraction. Values are converted when an expression reaches them, not
//! before.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::Str;

use super::Type;

/// Words that cannot be identifiers.
pub(crate) const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

/// How the items of a list are told apart when two lists are compared or added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListIdentity {
    /// By their place.
    Place,
    /// By their value.
    Set,
    /// By these fields.
    Keys(Vec<Str>),
}

/// A declared value.
#[derive(Debug)]
pub struct Decl {
    name: String,
    sort: Sort,
    /// The largest number of characters, items or entries.
    size_max: u64,
}

/// A field of a declared object.
#[derive(Debug)]
pub(crate) struct FieldDecl {
    /// The key in the JSON, which may not be an identifier.
    pub(crate) key: Str,
    pub(crate) decl: Arc<Decl>,
}

#[derive(Debug)]
enum Sort {
    Plain(Type),
    /// A date without a time, read as a timestamp.
    Date,
    List {
        item: Arc<Decl>,
        identity: ListIdentity,
        ty: Type,
    },
    Map {
        key: Arc<Decl>,
        value: Arc<Decl>,
        ty: Type,
    },
    Object(BTreeMap<String, FieldDecl>),
}

impl Decl {
    fn new(name: &str, sort: Sort, size_max: u64) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            sort,
            size_max,
        })
    }

    /// A value of a type without parts, with the largest size it can have.
    #[must_use]
    pub fn plain(ty: Type, size_max: u64) -> Arc<Self> {
        Self::new("", Sort::Plain(ty), size_max)
    }

    /// A string that holds a date, which expressions see as a timestamp.
    #[must_use]
    pub fn date(size_max: u64) -> Arc<Self> {
        Self::new("", Sort::Date, size_max)
    }

    /// A list of at most so many items.
    #[must_use]
    pub fn list(item: Arc<Self>, identity: ListIdentity, size_max: u64) -> Arc<Self> {
        let ty = Type::list(Self::ty(&item));
        Self::new("", Sort::List { item, identity, ty }, size_max)
    }

    /// A map of at most so many entries.
    #[must_use]
    pub fn map(key: Arc<Self>, value: Arc<Self>, size_max: u64) -> Arc<Self> {
        let ty = Type::map(Self::ty(&key), Self::ty(&value));
        Self::new("", Sort::Map { key, value, ty }, size_max)
    }

    /// An object whose fields expressions name as they are, whatever words they are.
    #[must_use]
    pub fn native_object(
        name: &str,
        fields: impl IntoIterator<Item = (Str, Arc<Self>)>,
    ) -> Arc<Self> {
        let fields = fields
            .into_iter()
            .map(|(key, decl)| (key.to_string(), FieldDecl { key, decl }))
            .collect();
        Self::new(name, Sort::Object(fields), 0)
    }

    /// An object. Fields are given by the key in the JSON; one that is not an identifier can be
    /// named in expressions in its escaped form, and one that cannot be escaped is left out.
    #[must_use]
    pub fn object(name: &str, fields: impl IntoIterator<Item = (Str, Arc<Self>)>) -> Arc<Self> {
        let fields = fields
            .into_iter()
            .filter_map(|(key, decl)| Some((escape(&key)?, FieldDecl { key, decl })))
            .collect();
        Self::new(name, Sort::Object(fields), 0)
    }

    /// The name of an object type.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type in expressions.
    #[must_use]
    pub fn ty(self: &Arc<Self>) -> Type {
        match &self.sort {
            Sort::Plain(ty) | Sort::List { ty, .. } | Sort::Map { ty, .. } => ty.clone(),
            Sort::Date => Type::Timestamp,
            Sort::Object(_) => Type::Object(Arc::clone(self)),
        }
    }

    /// The largest size a value can have.
    #[must_use]
    pub fn size_max(&self) -> u64 {
        self.size_max
    }

    pub(crate) fn is_date(&self) -> bool {
        matches!(self.sort, Sort::Date)
    }

    pub(crate) fn plain_type(&self) -> Option<&Type> {
        match &self.sort {
            Sort::Plain(ty) => Some(ty),
            Sort::Date | Sort::List { .. } | Sort::Map { .. } | Sort::Object(_) => None,
        }
    }

    /// What the items of a list or the values of a map are.
    pub(crate) fn element(&self) -> Option<&Arc<Self>> {
        match &self.sort {
            Sort::List { item, .. } => Some(item),
            Sort::Map { value, .. } => Some(value),
            Sort::Plain(_) | Sort::Date | Sort::Object(_) => None,
        }
    }

    pub(crate) fn key(&self) -> Option<&Arc<Self>> {
        match &self.sort {
            Sort::Map { key, .. } => Some(key),
            Sort::Plain(_) | Sort::Date | Sort::List { .. } | Sort::Object(_) => None,
        }
    }

    pub(crate) fn identity(&self) -> &ListIdentity {
        match &self.sort {
            Sort::List { identity, .. } => identity,
            Sort::Plain(_) | Sort::Date | Sort::Map { .. } | Sort::Object(_) => {
                &ListIdentity::Place
            }
        }
    }

    /// A field by its name in expressions. A reserved word names its field without being escaped,
    /// as in `self.metadata.namespace`.
    pub(crate) fn field(&self, name: &str) -> Option<&FieldDecl> {
        match &self.sort {
            Sort::Object(fields) => fields.get(name).or_else(|| {
                RESERVED
                    .contains(&name)
                    .then(|| fields.get(&format!("__{name}__")))
                    .flatten()
            }),
            Sort::Plain(_) | Sort::Date | Sort::List { .. } | Sort::Map { .. } => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.sort, Sort::Object(_))
    }

    /// The declaration of the field with a key in the JSON.
    pub(crate) fn field_by_key(&self, key: &str) -> Option<&FieldDecl> {
        self.field(&escape(key)?)
    }
}

/// Literals, which a field name must not be, no more than a reserved word.
const LITERALS: [&str; 3] = ["true", "false", "null"];

/// The name by which an expression reaches a JSON key; `None` if none does.
#[must_use]
pub fn escape(key: &str) -> Option<String> {
    if LITERALS.contains(&key) || RESERVED.contains(&key) {
        return Some(format!("__{key}__"));
    }
    let mut chars = key.chars();
    let first = chars.next()?;
    if !(first.is_ascii_alphabetic() || first == '_') {
        return None;
    }
    if !key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'))
    {
        return None;
    }
    let escaped = key
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped)
}
