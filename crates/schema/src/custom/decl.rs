//! How rules see the values of a schema, and how large those can be.

use std::collections::HashSet;
use std::sync::Arc;

use windlass_cel::{Decl, ListIdentity, Type};
use windlass_core::Str;

use super::schema::{Checks, List, Node, Sort};

/// The largest request, from which the sizes follow that a schema does not limit.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// The longest text of a time or a duration, quotes included.
const TIME_SIZE_MAX: u64 = 32;
/// The text of a date, quotes included.
const DATE_SIZE: u64 = 12;

/// What rules see of a place, and the smallest JSON it can be.
type Seen = Option<(Arc<Decl>, u64)>;

/// Declares every place that has rules at or above it.
pub(crate) fn declare(node: &mut Node, is_root: bool) {
    if node.has_rules {
        seen(node, is_root, "object");
    }
}

/// How often a value of a place fits into one request.
pub(crate) fn cardinality(node: &Node) -> u64 {
    REQUEST_BYTES_MAX / (node.smallest + 1)
}

fn seen(node: &mut Node, is_resource: bool, name: &str) -> Seen {
    let seen = compute(node, is_resource, name);
    node.decl = seen.as_ref().map(|(decl, _)| Arc::clone(decl));
    node.smallest = seen.as_ref().map_or(0, |(_, smallest)| *smallest);
    seen
}

fn compute(node: &mut Node, is_resource: bool, name: &str) -> Seen {
    match node.sort {
        Sort::Any => None,
        Sort::IntOrText => {
            let size = longest(node.checks.as_deref()).unwrap_or(REQUEST_BYTES_MAX - 2);
            Some((Decl::plain(Type::Dyn, size), 1))
        }
        Sort::Bool => Some((Decl::plain(Type::Bool, 0), 4)),
        Sort::Integer => Some((Decl::plain(Type::Int, 0), 1)),
        Sort::Number => Some((Decl::plain(Type::Double, 0), 1)),
        Sort::Text => Some(text(node.checks.as_deref())),
        Sort::Array => array(node, name),
        Sort::Object => object(node, is_resource, name),
    }
}

/// Four bytes per character, since that is what is counted.
fn longest(checks: Option<&Checks>) -> Option<u64> {
    let length = u64::try_from(checks?.length.1?).unwrap_or(u64::MAX);
    Some(length.saturating_mul(4))
}

fn text(checks: Option<&Checks>) -> (Arc<Decl>, u64) {
    let any = REQUEST_BYTES_MAX - 2;
    let format = checks
        .and_then(|checks| checks.format)
        .map_or("", |format| format.name);
    match format {
        "byte" => (
            Decl::plain(Type::Bytes, longest(checks).map_or(any, |size| size / 4)),
            2,
        ),
        "duration" => (Decl::plain(Type::Duration, TIME_SIZE_MAX), 3),
        "date" => (Decl::date(DATE_SIZE), DATE_SIZE),
        "date-time" | "datetime" => (Decl::plain(Type::Timestamp, TIME_SIZE_MAX), 21),
        _ => {
            let choices = checks.map_or(&[][..], |checks| &checks.choices);
            let choice = choices
                .iter()
                .filter_map(|choice| choice.as_str())
                .map(str::len)
                .max();
            let choice = choice.and_then(|length| u64::try_from(length).ok());
            (
                Decl::plain(Type::String, longest(checks).or(choice).unwrap_or(any)),
                2,
            )
        }
    }
}

fn array(node: &mut Node, name: &str) -> Seen {
    let items = node.items.as_deref_mut()?;
    let is_embedded = items.is_embedded;
    let (item, smallest) = seen(items, is_embedded, &format!("{name}.@idx"))?;
    let limit = node.checks.as_deref().and_then(|checks| checks.items.1);
    let size = limit
        .and_then(|limit| u64::try_from(limit).ok())
        .unwrap_or((REQUEST_BYTES_MAX - 2) / (smallest + 1));
    let identity = match &node.list {
        List::Atomic => ListIdentity::Place,
        List::Set => ListIdentity::Set,
        List::Map(keys) => ListIdentity::Keys(keys.iter().map(|key| Str::new(key)).collect()),
    };
    Some((Decl::list(item, identity, size), 2))
}

fn object(node: &mut Node, is_resource: bool, name: &str) -> Seen {
    if let Some(values) = node.values.as_deref_mut() {
        let is_embedded = values.is_embedded;
        let (value, smallest) = seen(values, is_embedded, &format!("{name}.@elem"))?;
        let limit = node.checks.as_deref().and_then(|checks| checks.entries.1);
        let size = limit
            .and_then(|limit| u64::try_from(limit).ok())
            .unwrap_or((REQUEST_BYTES_MAX - 2) / (smallest + 6));
        return Some((Decl::map(Decl::plain(Type::String, 0), value, size), 2));
    }
    let required = node.checks.as_deref().map(|checks| checks.required.iter());
    let required: HashSet<Str> = required.into_iter().flatten().cloned().collect();
    let mut smallest = 2;
    let mut fields: Vec<(Str, Arc<Decl>)> = Vec::with_capacity(node.properties.len());
    for (key, part) in &mut node.properties {
        let is_embedded = part.is_embedded;
        let Some((decl, size)) = seen(part, is_embedded, &format!("{name}.{key}")) else {
            continue;
        };
        if required.contains(key) && part.default.is_none() {
            smallest += u64::try_from(key.len()).unwrap_or(0) + size + 4;
        }
        fields.push((key.clone(), decl));
    }
    if is_resource {
        with_type_and_metadata(&mut fields);
    }
    Some((Decl::object(name, fields), smallest))
}

/// What rules may always name at the root of an object.
fn with_type_and_metadata(fields: &mut Vec<(Str, Arc<Decl>)>) {
    let any_text = || Decl::plain(Type::String, REQUEST_BYTES_MAX - 2);
    fields.retain(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
    let metadata = Decl::object(
        "object.metadata",
        [
            ("name".into(), any_text()),
            ("generateName".into(), any_text()),
        ],
    );
    fields.extend([
        ("apiVersion".into(), any_text()),
        ("kind".into(), any_text()),
        ("metadata".into(), metadata),
    ]);
}
