//! What is wrong with which field, in upstream's words.

use std::collections::BTreeSet;
use std::fmt;

use windlass_core::{Doc, Kind};

use crate::status::Cause;

/// At most so many errors are kept: a body can be wrong in more places than anybody will read.
const ERRORS_LIMIT: usize = 100;

/// A path to a field, written as it is read: `spec.containers[0].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldPath(String);

/// The errors found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldErrors(Vec<FieldError>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldError {
    sort: Sort,
    field: String,
    /// The value as the message shows it, for the sorts that show one.
    value: String,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl FieldPath {
    /// The path of a field at the top.
    pub(crate) fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The path of a field inside this one.
    pub(crate) fn child(&self, field: &str) -> Self {
        if self.0.is_empty() {
            return Self::new(field);
        }
        Self(format!("{}.{field}", self.0))
    }

    /// The path of an item of this list.
    pub(crate) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of an entry of this map.
    pub(crate) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FieldErrors {
    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A field must be there.
    pub(crate) fn required(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Required, field, String::new(), detail.into());
    }

    /// A value is wrong.
    pub(crate) fn invalid(
        &mut self,
        field: &FieldPath,
        value: impl Into<Doc>,
        detail: impl Into<String>,
    ) {
        self.push(Sort::Invalid, field, show(&value.into()), detail.into());
    }

    /// A value is wrong, and too large to be shown.
    pub(crate) fn invalid_unshown(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Invalid, field, String::new(), detail.into());
    }

    /// A value is wrong that messages show in a form of its own.
    pub(crate) fn invalid_shown(
        &mut self,
        field: &FieldPath,
        shown: String,
        detail: impl Into<String>,
    ) {
        self.push(Sort::Invalid, field, shown, detail.into());
    }

    /// A value is of the wrong type.
    pub(crate) fn type_invalid(
        &mut self,
        field: &FieldPath,
        value: impl Into<Doc>,
        detail: impl Into<String>,
    ) {
        self.push(Sort::TypeInvalid, field, show(&value.into()), detail.into());
    }

    /// A value comes twice, and is too large to be shown.
    pub(crate) fn duplicate_unshown(&mut self, field: &FieldPath) {
        self.push(Sort::Duplicate, field, String::new(), String::new());
    }

    /// How many errors there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the errors found elsewhere.
    pub(crate) fn append(&mut self, other: Self) {
        for error in other.0 {
            self.keep(error);
        }
    }

    /// Puts the errors in the order of their texts.
    pub(crate) fn sort(&mut self) {
        let text = |error: &FieldError| format!("{}: {}", error.field, error.body());
        self.0.sort_by_cached_key(text);
    }

    /// Whether an error makes it pointless to look further.
    pub(crate) fn is_blocking(&self) -> bool {
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
        self.0.iter().any(|error| blocks(error.sort))
    }

    /// A value comes twice.
    pub(crate) fn duplicate(&mut self, field: &FieldPath, value: impl Into<Doc>) {
        self.push(Sort::Duplicate, field, show(&value.into()), String::new());
    }

    /// A value comes twice that messages show in a form of its own.
    pub(crate) fn duplicate_shown(&mut self, field: &FieldPath, shown: String) {
        self.push(Sort::Duplicate, field, shown, String::new());
    }

    /// A value names something that is not there.
    pub(crate) fn not_found(&mut self, field: &FieldPath, value: impl Into<Doc>) {
        self.push(Sort::NotFound, field, show(&value.into()), String::new());
    }

    /// A value names none of those in a list.
    pub(crate) fn not_found_among(
        &mut self,
        field: &FieldPath,
        value: &str,
        list: &str,
        known: &BTreeSet<&str>,
    ) {
        // The list may be long, and is of no use to somebody who has this many errors to read.
        if self.0.len() >= ERRORS_LIMIT {
            return;
        }
        let names: Vec<&str> = known.iter().copied().collect();
        let detail = match &names[..] {
            [] => format!("must be one of the names in {list} which is empty"),
            names => format!("must be one of the names in {list}: {}", names.join(", ")),
        };
        self.push(Sort::NotFound, field, show(&value.into()), detail);
    }

    /// A value is none of a fixed set.
    pub(crate) fn not_supported(&mut self, field: &FieldPath, value: &str, supported: &[&str]) {
        self.not_supported_shown(field, &value.into(), supported);
    }

    /// A value that is not a text is none of a fixed set.
    pub(crate) fn not_supported_shown(
        &mut self,
        field: &FieldPath,
        value: &Doc,
        supported: &[&str],
    ) {
        self.not_supported_raw(field, show(value), supported);
    }

    /// A value that messages show in a form of its own is none of a fixed set.
    pub(crate) fn not_supported_raw(
        &mut self,
        field: &FieldPath,
        shown: String,
        supported: &[&str],
    ) {
        let list: Vec<_> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        self.push(Sort::NotSupported, field, shown, detail);
    }

    /// A field may not be set, or not be changed.
    pub(crate) fn forbidden(&mut self, field: &FieldPath, detail: impl Into<String>) {
        self.push(Sort::Forbidden, field, String::new(), detail.into());
    }

    /// A text is too long.
    pub(crate) fn too_long(&mut self, field: &FieldPath, limit: usize) {
        let detail = format!("may not be more than {limit} bytes");
        self.push(Sort::TooLong, field, String::new(), detail);
    }

    /// A list is too long.
    pub(crate) fn too_many(&mut self, field: &FieldPath, count: usize, limit: usize) {
        let detail = format!("must have at most {limit} items");
        self.push(Sort::TooMany, field, count.to_string(), detail);
    }

    /// A field differs from what it was and may not.
    pub(crate) fn immutable(&mut self, field: &FieldPath, new: &Doc, old: &Doc) {
        if new != old {
            self.invalid(field, new, "field is immutable");
        }
    }

    /// Adds one error per message about a value.
    pub(crate) fn invalid_each(&mut self, field: &FieldPath, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(field, value, message);
        }
    }

    fn push(&mut self, sort: Sort, field: &FieldPath, value: String, detail: String) {
        let error = FieldError {
            sort,
            field: field.to_string(),
            value,
            detail,
        };
        self.keep(error);
    }

    fn keep(&mut self, error: FieldError) {
        if self.0.len() < ERRORS_LIMIT && !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// The errors as causes of a refusal.
    pub(crate) fn causes(&self) -> Vec<Cause> {
        let cause = |error: &FieldError| Cause {
            reason: error.sort.reason(),
            message: error.body(),
            field: error.field.clone(),
        };
        self.0.iter().map(cause).collect()
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self
            .0
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
