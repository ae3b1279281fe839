//! Rules for names, labels and annotation keys, and the making of names.
//!
//! Each rule is a function that returns what is wrong with a value, in the words of Kubernetes,
//! because clients compare these messages; no messages means that the value is fine. An API server
//! reports each message as a cause of its own.

use crate::Env;
use crate::env::ALPHABET;

pub use crate::env::SUFFIX_LEN;

/// The most bytes of a DNS label, and of the name part of a label key or value.
pub const LABEL_BYTES_MAX: usize = 63;
/// The most bytes of a DNS subdomain.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;
/// The most bytes of all annotation keys and values of one object together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Messages about names call the unit of length otherwise than those about labels do; bytes are
/// counted in both.
const NAME_UNIT: &str = "characters";
const LABEL_UNIT: &str = "bytes";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character (e.g. \
     'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
     (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters \
     or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
     'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
     regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
     'MyValue',  or 'my_value',  or '12345', regex used for validation is \
     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Validates a DNS-1123 label, such as the name of a namespace. Returns the problems.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut problems = too_long(value, LABEL_BYTES_MAX, NAME_UNIT);
    if !is_label(value) {
        let is_dotted = is_subdomain(value);
        problems.push(
            if is_dotted {
                "must not contain dots"
            } else {
                LABEL_RULE
            }
            .to_owned(),
        );
    }
    problems
}

/// Validates a DNS-1123 subdomain, the rule for names of most kinds. Returns the problems.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    subdomain(value, NAME_UNIT)
}

/// Validates a DNS-1035 label: a DNS-1123 label that starts with a letter. Returns the problems.
#[must_use]
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut problems = too_long(value, LABEL_BYTES_MAX, NAME_UNIT);
    if !value.starts_with(|c: char| c.is_ascii_lowercase()) || !is_label(value) {
        problems.push(DNS1035_RULE.to_owned());
    }
    problems
}

/// Validates a qualified name, the rule for label keys and finalizers: a name with an optional DNS
/// subdomain and a slash before it. Returns the problems.
#[must_use]
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            let end = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {QUALIFIED_RULE} {end}")];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let found = subdomain(prefix, LABEL_UNIT);
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("prefix part {problem}")),
            );
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    let found = too_long(name, LABEL_BYTES_MAX, LABEL_UNIT);
    problems.extend(
        found
            .into_iter()
            .map(|problem| format!("name part {problem}")),
    );
    if !is_qualified_part(name) {
        problems.push(format!("name part {QUALIFIED_RULE}"));
    }
    problems
}

/// Validates an annotation key: a qualified name in which case does not matter. Returns the
/// problems.
#[must_use]
pub fn annotation_key(value: &str) -> Vec<String> {
    qualified_name(&value.to_lowercase())
}

/// Validates the value of a label. Returns the problems.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = too_long(value, LABEL_BYTES_MAX, LABEL_UNIT);
    if !value.is_empty() && !is_qualified_part(value) {
        problems.push(VALUE_RULE.to_owned());
    }
    problems
}

/// Validates a name that only has to fit into a request path, such as that of a role. Returns the
/// problems.
#[must_use]
pub fn path_segment(value: &str) -> Vec<String> {
    match value {
        "." | ".." => vec![format!("may not be '{value}'")],
        _ => path_segment_prefix(value),
    }
}

/// Validates the start of a name that only has to fit into a request path. Returns the problems.
#[must_use]
pub fn path_segment_prefix(value: &str) -> Vec<String> {
    let banned = ['/', '%'].into_iter().filter(|c| value.contains(*c));
    banned.map(|c| format!("may not contain '{c}'")).collect()
}

/// The text to check in place of a `generateName`, which may end with a dash although no name may.
///
/// Upstream drops the dash together with the character before it and ends the text with a letter;
/// the length of the message's subject follows from that.
#[must_use]
pub fn mask_trailing_dash(generate_name: &str) -> String {
    if generate_name.len() < 2 || !generate_name.ends_with('-') {
        return generate_name.to_owned();
    }
    let end = generate_name.ceil_char_boundary(generate_name.len() - 2);
    format!("{}a", &generate_name[..end])
}

/// A name that starts with `base`, cut so that the whole fits a DNS label, and ends in random
/// characters.
#[must_use]
pub fn generate_name(base: &str, env: &Env) -> String {
    let end = base.floor_char_boundary(LABEL_BYTES_MAX - SUFFIX_LEN);
    format!("{}{}", &base[..end], env.name_suffix())
}

/// Spells `text`, such as the digits of a hash, in the characters of generated suffixes, as the
/// label `pod-template-hash` does.
#[must_use]
pub fn safe_encode(text: &str) -> String {
    let spell = |c: char| char::from(ALPHABET[u32::from(c) as usize % ALPHABET.len()]);
    text.chars().map(spell).collect()
}

fn subdomain(value: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(value, SUBDOMAIN_BYTES_MAX, unit);
    if !is_subdomain(value) {
        problems.push(SUBDOMAIN_RULE.to_owned());
    }
    problems
}

fn too_long(value: &str, bytes_max: usize, unit: &str) -> Vec<String> {
    if value.len() <= bytes_max {
        return Vec::new();
    }
    vec![format!("must be no more than {bytes_max} {unit}")]
}

fn is_label(value: &str) -> bool {
    let is_edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    is_made_of(value, is_edge, |b| is_edge(b) || b == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified_part(value: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    is_made_of(value, |b| b.is_ascii_alphanumeric(), is_inner)
}

/// Returns true if the value is not empty, has an edge character at both ends and only inner ones
/// between.
fn is_made_of(value: &str, is_edge: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    match value.as_bytes() {
        [] => false,
        [only] => is_edge(*only),
        [first, inner @ .., last] => {
            is_edge(*first) && is_edge(*last) && inner.iter().all(|b| is_inner(*b))
        }
    }
}
