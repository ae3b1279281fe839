//! The headers that name a user to impersonate.

use std::collections::BTreeMap;

use windlass_core::quote;

use crate::percent::percent_decode;
use windlass_rules::status::Status;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// The user that the headers of a request name, as they stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Impersonated {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
    pub(super) extra: BTreeMap<String, Vec<String>>,
}

impl Impersonated {
    /// Reads the headers. `None` if they name nobody.
    ///
    /// A value that is not text is refused: passed over, the request would run as its sender.
    pub(super) fn read(headers: &[(&str, &[u8])]) -> Result<Option<Self>, Status> {
        let mut wanted = Self {
            name: first(headers, USER)?,
            uid: first(headers, UID)?,
            ..Self::default()
        };
        for &(name, value) in headers {
            if name == GROUP {
                wanted.groups.push(text(name, value)?);
            } else if let Some(key) = name.strip_prefix(EXTRA) {
                let values = wanted.extra.entry(extra_key(name, key)?).or_default();
                values.push(text(name, value)?);
            }
        }
        if !wanted.name.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        Err(Status::bad_request(format!(
            "requested {wanted} without impersonating a user name"
        )))
    }
}

/// The first value of a header, which is the one that counts. The others are read all the same.
fn first(headers: &[(&str, &[u8])], name: &'static str) -> Result<String, Status> {
    let named = headers.iter().filter(|(known, _)| *known == name);
    let mut values = named.map(|(_, value)| *value);
    let found = values.next().map(|value| text(name, value)).transpose()?;
    for value in values {
        text(name, value)?;
    }
    Ok(found.unwrap_or_default())
}

fn text(name: &str, value: &[u8]) -> Result<String, Status> {
    match std::str::from_utf8(value) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(unreadable(name, "value")),
    }
}

/// The key of an extra. Percent signs stand for what the name of a header cannot have; a key in
/// which they do not is taken as it is.
fn extra_key(name: &str, key: &str) -> Result<String, Status> {
    let is_escaped = |at: usize| {
        let digits = key.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut signs = key.match_indices('%');
    if !signs.all(|(at, _)| is_escaped(at)) {
        return Ok(key.to_owned());
    }
    percent_decode(key, false).ok_or_else(|| unreadable(name, "name"))
}

fn unreadable(name: &str, part: &str) -> Status {
    Status::bad_request(format!(
        "the {part} of the header {name} is not UTF-8; the request is refused, since without that \
         header it would run as its sender"
    ))
}

/// The user as Go writes it, which clients find in the refusal.
impl std::fmt::Display for Impersonated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            format!("[]string{{{}}}", texts.join(", "))
        };
        let groups = match self.groups.as_slice() {
            [] => "[]string(nil)".to_owned(),
            groups => list(groups),
        };
        let extra = self.extra.iter();
        let extra: Vec<String> = extra
            .map(|(key, values)| format!("{}:{}", quote(key), list(values)))
            .collect();
        let extra = match extra.as_slice() {
            [] => "(nil)".to_owned(),
            extra => format!("{{{}}}", extra.join(", ")),
        };
        write!(
            f,
            "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:map[string][]string{extra}}}",
            quote(&self.name),
            quote(&self.uid)
        )
    }
}
