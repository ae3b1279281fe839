//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The longest version that is read.
const BYTES_LIMIT: usize = 256;

/// A semantic version, ordered by precedence; build metadata does not count.
#[derive(Clone, Debug)]
pub struct Semver {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
    pre: Vec<Identifier>,
    build: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

/// A text that is not a semantic version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SemverError(String);

fn error(message: impl Into<String>) -> SemverError {
    SemverError(message.into())
}

impl FromStr for Semver {
    type Err = SemverError;

    fn from_str(text: &str) -> Result<Self, SemverError> {
        if text.is_empty() {
            return Err(error("Version string empty"));
        }
        if text.len() > BYTES_LIMIT {
            return Err(error("Version string too long"));
        }
        let (rest, build) = match text.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (text, None),
        };
        let (core, pre) = match rest.split_once('-') {
            Some((core, pre)) => (core, Some(pre)),
            None => (rest, None),
        };
        let parts: Vec<&str> = core.splitn(3, '.').collect();
        let [major, minor, patch] = parts.as_slice() else {
            return Err(error("No Major.Minor.Patch elements found"));
        };
        Ok(Self {
            major: number(major, "Major")?,
            minor: number(minor, "Minor")?,
            patch: number(patch, "Patch")?,
            pre: pre.map_or(Ok(Vec::new()), |pre| {
                pre.split('.').map(identifier).collect()
            })?,
            build: build.map_or(Ok(Vec::new()), |build| {
                build.split('.').map(build_part).collect()
            })?,
        })
    }
}

fn number(text: &str, what: &str) -> Result<u64, SemverError> {
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_digit()) {
        return Err(error(format!(
            "Invalid character(s) found in {} number {text:?}",
            what.to_lowercase()
        )));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(error(format!(
            "{what} number must not contain leading zeroes {text:?}"
        )));
    }
    text.parse()
        .map_err(|_| error(format!("{what} number too large {text:?}")))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
}

fn identifier(text: &str) -> Result<Identifier, SemverError> {
    if text.is_empty() {
        return Err(error("Prerelease is empty"));
    }
    if text.bytes().all(|c| c.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(error(format!(
                "Numeric PreRelease version must not contain leading zeroes {text:?}"
            )));
        }
        return text
            .parse()
            .map(Identifier::Number)
            .map_err(|_| error("Numeric PreRelease version too large"));
    }
    if !is_identifier(text) {
        return Err(error(format!(
            "Invalid character(s) found in prerelease {text:?}"
        )));
    }
    Ok(Identifier::Text(text.to_owned()))
}

fn build_part(text: &str) -> Result<String, SemverError> {
    if text.is_empty() {
        return Err(error("Build meta data is empty"));
    }
    if !is_identifier(text) {
        return Err(error(format!(
            "Invalid character(s) found in build meta data {text:?}"
        )));
    }
    Ok(text.to_owned())
}

/// A version written loosely, such as `v1.2`, in the strict form.
#[must_use]
pub(crate) fn normalized(text: &str) -> String {
    let text = text.trim_start_matches(['v', 'V']);
    let split = text.find(['-', '+']).unwrap_or(text.len());
    let (core, rest) = text.split_at(split);
    let mut parts: Vec<String> = core
        .split('.')
        .map(|part| {
            let stripped = part.trim_start_matches('0');
            if stripped.is_empty() && !part.is_empty() {
                "0".to_owned()
            } else {
                stripped.to_owned()
            }
        })
        .collect();
    while parts.len() < 3 {
        parts.push("0".to_owned());
    }
    format!("{}{rest}", parts.join("."))
}

impl Semver {
    /// The order of two versions.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| pre_order(&self.pre, &other.pre))
    }
}

fn pre_order(a: &[Identifier], b: &[Identifier]) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let differs = a
        .iter()
        .zip(b)
        .map(|(a, b)| identifier_order(a, b))
        .find(|order| order.is_ne());
    differs.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn identifier_order(a: &Identifier, b: &Identifier) -> Ordering {
    match (a, b) {
        (Identifier::Number(a), Identifier::Number(b)) => a.cmp(b),
        (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
        (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
        (Identifier::Text(a), Identifier::Text(b)) => a.cmp(b),
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (at, identifier) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (at, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if at == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}
