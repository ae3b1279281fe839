//! What is wrong with which field, in upstream's words.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use windlass_core::{Doc, Kind, Object};

/// At most so many errors are kept: a body can be wrong in more places than anybody will read.
const ERRORS_LIMIT: usize = 100;

/// No further error is kept after texts of so many bytes: an error may show a value as large as
/// the body, and the same error may come for every item of a list.
const ERRORS_BYTES_LIMIT: usize = 1 << 20;

/// A path to a field, written as it is read: `spec.containers[0].name`.
///
/// A path shares its start with the paths of its neighbours and becomes text when it is shown: a
/// long key would otherwise be copied for every value below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Option<Arc<Link>>);

/// The last step of a path and what is before it.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    before: FieldPath,
    step: Step,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Key(String),
    Path(FieldPath),
}

/// The errors found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors {
    all: Vec<FieldError>,
    /// The same, to tell an error that comes again.
    known: HashSet<FieldError>,
    /// The bytes of all texts, also of errors that came again.
    bytes: usize,
}

/// One of several causes of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// The path of the field, empty if the cause is not about one.
    pub field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FieldError {
    sort: Sort,
    field: String,
    /// The value as the message shows it, for the sorts that show one.
    value: String,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    /// A value of the wrong type.
    TypeInvalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
}

impl Cause {
    pub(crate) fn to_doc(&self) -> Doc {
        [
            ("reason", self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| (key, Doc::from(text)))
        .collect::<Object>()
        .into()
    }
}

impl FieldPath {
    /// The path of a field at the top; the root if it has no name.
    #[must_use]
    pub fn new(field: &str) -> Self {
        if field.is_empty() {
            return Self(None);
        }
        Self(None).then(Step::Field(field.to_owned()))
    }

    /// The path of a field inside this one.
    #[must_use]
    pub fn child(&self, field: &str) -> Self {
        if field.is_empty() && self.0.is_none() {
            return self.clone();
        }
        self.then(Step::Field(field.to_owned()))
    }

    /// The path of an item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// The path of an entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Step::Key(key.to_owned()))
    }

    /// The path of what another path leads to from here.
    #[must_use]
    pub fn join(&self, path: &Self) -> Self {
        match (&self.0, &path.0) {
            (None, _) => path.clone(),
            (_, None) => self.clone(),
            _ => self.then(Step::Path(path.clone())),
        }
    }

    fn then(&self, step: Step) -> Self {
        let before = self.clone();
        Self(Some(Arc::new(Link { before, step })))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(link) = &self.0 else {
            return Ok(());
        };
        link.before.fmt(f)?;
        let dot = if link.before.0.is_some() { "." } else { "" };
        match &link.step {
            Step::Field(name) => write!(f, "{dot}{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Path(path) => write!(f, "{dot}{path}"),
        }
    }
}

impl FieldErrors {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether no further error is kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.all.len() >= ERRORS_LIMIT || self.bytes > ERRORS_BYTES_LIMIT
    }

    /// A field must be there.
    pub fn required(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Required, field, String::new, detail);
    }

    /// A value is wrong.
    pub fn invalid(&mut self, field: &FieldPath, value: impl Into<Doc>, detail: impl Into<String>) {
        self.push(Sort::Invalid, field, || show(&value.into()), detail);
    }

    /// A value is wrong, and too large to be shown.
    pub fn invalid_unshown(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Invalid, field, String::new, detail);
    }

    /// A value is wrong that messages show in a form of its own.
    pub fn invalid_shown(&mut self, field: &FieldPath, shown: String, detail: impl Into<String>) {
        self.push(Sort::Invalid, field, || shown, detail);
    }

    /// A value is of the wrong type.
    pub fn type_invalid(
        &mut self,
        field: &FieldPath,
        value: impl Into<Doc>,
        detail: impl Into<String>,
    ) {
        self.push(Sort::TypeInvalid, field, || show(&value.into()), detail);
    }

    /// A value comes twice, and is too large to be shown.
    pub fn duplicate_unshown(&mut self, field: &FieldPath) {
        self.push(Sort::Duplicate, field, String::new, String::new());
    }

    /// How many errors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds the errors found elsewhere.
    pub fn append(&mut self, other: Self) {
        for error in other.all {
            self.keep(error);
        }
    }

    /// Puts the errors in the order of their texts.
    pub fn sort(&mut self) {
        let text = |error: &FieldError| format!("{}: {}", error.field, error.body());
        self.all.sort_by_cached_key(text);
    }

    /// Whether an error makes it pointless to look further.
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        let blocks = |sort: Sort| {
            matches!(
                sort,
                Sort::NotSupported
                    | Sort::Required
                    | Sort::TooLong
                    | Sort::TooMany
                    | Sort::TypeInvalid
            )
        };
        self.all.iter().any(|error| blocks(error.sort))
    }

    /// A value comes twice.
    pub fn duplicate(&mut self, field: &FieldPath, value: impl Into<Doc>) {
        self.push(
            Sort::Duplicate,
            field,
            || show(&value.into()),
            String::new(),
        );
    }

    /// A value comes twice that messages show in a form of its own.
    pub fn duplicate_shown(&mut self, field: &FieldPath, shown: String) {
        self.push(Sort::Duplicate, field, || shown, String::new());
    }

    /// A value names something that is not there.
    pub fn not_found(&mut self, field: &FieldPath, value: impl Into<Doc>) {
        self.push(Sort::NotFound, field, || show(&value.into()), String::new());
    }

    /// A value names none of those in a list.
    pub fn not_found_among(
        &mut self,
        field: &FieldPath,
        value: &str,
        list: &str,
        known: &BTreeSet<&str>,
    ) {
        // The list may be long, and is of no use to somebody who has this many errors to read.
        if self.is_full() {
            return;
        }
        let names: Vec<&str> = known.iter().copied().collect();
        let detail = match &names[..] {
            [] => format!("must be one of the names in {list} which is empty"),
            names => format!("must be one of the names in {list}: {}", names.join(", ")),
        };
        self.push(Sort::NotFound, field, || show(&value.into()), detail);
    }

    /// A value is none of a fixed set.
    pub fn not_supported(&mut self, field: &FieldPath, value: &str, supported: &[&str]) {
        self.not_supported_shown(field, &value.into(), supported);
    }

    /// A value that is not a text is none of a fixed set.
    pub fn not_supported_shown(&mut self, field: &FieldPath, value: &Doc, supported: &[&str]) {
        if !self.is_full() {
            self.not_supported_raw(field, show(value), supported);
        }
    }

    /// A value that messages show in a form of its own is none of a fixed set.
    pub fn not_supported_raw(&mut self, field: &FieldPath, shown: String, supported: &[&str]) {
        let list: Vec<_> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        self.push(Sort::NotSupported, field, || shown, detail);
    }

    /// A field may not be set, or not be changed.
    pub fn forbidden(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Forbidden, field, String::new, detail);
    }

    /// A text is too long.
    pub fn too_long(&mut self, field: &FieldPath, limit: usize) {
        let detail = format!("may not be more than {limit} bytes");
        self.push(Sort::TooLong, field, String::new, detail);
    }

    /// A list is too long.
    pub fn too_many(&mut self, field: &FieldPath, count: usize, limit: usize) {
        let detail = format!("must have at most {limit} items");
        self.push(Sort::TooMany, field, || count.to_string(), detail);
    }

    /// A field differs from what it was and may not.
    pub fn immutable(&mut self, field: &FieldPath, new: &Doc, old: &Doc) {
        if new != old {
            self.invalid(field, new, "field is immutable");
        }
    }

    /// Adds one error per message about a value.
    pub fn invalid_each(&mut self, field: &FieldPath, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(field, value, message);
        }
    }

    /// Adds an error, unless it would not be kept: what is shown is not even printed then.
    fn push(
        &mut self,
        sort: Sort,
        field: &FieldPath,
        value: impl FnOnce() -> String,
        detail: impl Into<String>,
    ) {
        if self.is_full() {
            return;
        }
        let error = FieldError {
            sort,
            field: field.to_string(),
            value: value(),
            detail: detail.into(),
        };
        self.keep(error);
    }

    fn keep(&mut self, error: FieldError) {
        if self.is_full() {
            return;
        }
        // What comes again counts too: it was printed, and the work is to be bounded.
        self.bytes += error.field.len() + error.value.len() + error.detail.len();
        if self.known.contains(&error) {
            return;
        }
        self.known.insert(error.clone());
        self.all.push(error);
    }

    /// The errors as causes of a refusal.
    #[must_use]
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |error: &FieldError| Cause {
            reason: error.sort.reason(),
            message: error.body(),
            field: error.field.clone(),
        };
        self.all.iter().map(cause).collect()
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self
            .all
            .iter()
            .map(|error| format!("{}: {}", error.field, error.body()))
            .collect();
        match &texts[..] {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl FieldError {
    fn body(&self) -> String {
        let mut body = self.sort.words().to_owned();
        let has_value = !matches!(self.sort, Sort::Required | Sort::Forbidden | Sort::TooLong);
        if has_value && !self.value.is_empty() {
            body = format!("{body}: {}", self.value);
        }
        if !self.detail.is_empty() {
            body = format!("{body}: {}", self.detail);
        }
        body
    }
}

impl Sort {
    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

/// A value as a message shows it: texts quoted, the rest as JSON.
fn show(value: &Doc) -> String {
    match value.kind() {
        Kind::Str(text) => windlass_core::quote(text),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_it_was_walked() {
        let path = FieldPath::new("spec").child("containers").index(3);
        assert_eq!(path.key("a.b/c").to_string(), "spec.containers[3][a.b/c]");
        let root = FieldPath::new("");
        assert_eq!(root.child("a").child("b").to_string(), "a.b");
        assert_eq!(root.index(0).to_string(), "[0]");
        let inner = FieldPath::new("list").index(1);
        assert_eq!(root.join(&inner).to_string(), "list[1]");
        assert_eq!(path.join(&inner).to_string(), "spec.containers[3].list[1]");
        assert_eq!(path.join(&root), path);
    }

    #[test]
    fn errors_that_show_a_large_value_again_and_again_are_bounded_in_bytes() {
        let (mut errors, large) = (FieldErrors::default(), "x".repeat(ERRORS_BYTES_LIMIT / 4));
        for number in 0..50 {
            errors.invalid(&FieldPath::new("a"), large.as_str(), number.to_string());
        }
        assert_eq!(errors.len(), 4);
        let mut errors = FieldErrors::default();
        for _ in 0..50 {
            errors.invalid(&FieldPath::new("a"), large.as_str(), "the same");
        }
        assert!(errors.is_full());
        assert_eq!(errors.len(), 1);
    }
}
