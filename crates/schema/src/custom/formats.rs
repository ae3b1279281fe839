//! The formats of texts that are checked.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use regex::Regex;
use windlass_core::names;

/// A named format.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) is_valid: fn(&str) -> bool,
}

const fn format(name: &'static str, is_valid: fn(&str) -> bool) -> Format {
    Format { name, is_valid }
}

static FORMATS: [Format; 29] = [
    format("bsonobjectid", |text| {
        text.len() == 24 && text.bytes().all(|c| c.is_ascii_hexdigit())
    }),
    format("uri", is_uri),
    format("email", is_email),
    format("hostname", is_hostname),
    format("ipv4", |text| text.parse::<std::net::Ipv4Addr>().is_ok()),
    format("ipv6", |text| text.parse::<std::net::Ipv6Addr>().is_ok()),
    format("cidr", is_network),
    format("mac", is_mac),
    format("uuid", |text| is_uuid(text, None)),
    format("uuid3", |text| is_uuid(text, Some('3'))),
    format("uuid4", |text| is_uuid(text, Some('4'))),
    format("uuid5", |text| is_uuid(text, Some('5'))),
    format("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    format("isbn10", is_isbn10),
    format("isbn13", is_isbn13),
    format("creditcard", is_credit_card),
    format("ssn", |text| {
        matches_pattern(text, r"^\d{3}[- ]?\d{2}[- ]?\d{4}$")
    }),
    format("hexcolor", |text| {
        matches_pattern(text, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")
    }),
    format("rgbcolor", |text| {
        matches_pattern(
            text,
            r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
        )
    }),
    format("byte", |text| BASE64.decode(text).is_ok()),
    format("password", |_| true),
    format("date", is_date),
    format("duration", windlass_cel::is_duration),
    format("date-time", is_date_time),
    format("datetime", is_date_time),
    format("k8s-short-name", |text| {
        names::dns1123_label(text).is_empty()
    }),
    format("k8s-long-name", |text| {
        names::dns1123_subdomain(text).is_empty()
    }),
    format("int32", |_| true),
    format("int64", |_| true),
];

/// Formats that say something to people only.
const SILENT: &[&str] = &["", "int32", "int64", "float", "double"];

impl Format {
    /// The format with a name; `None` if nothing is to be checked.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let name = match name {
            "bsonobjectid" | "bson-objectid" | "bsonObjectId" => "bsonobjectid",
            other => other,
        };
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether a name is that of a format at all.
    pub(crate) fn is_known(name: &str) -> bool {
        SILENT.contains(&name) || Self::named(name).is_some()
    }
}

fn matches_pattern(text: &str, pattern: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

fn is_uri(text: &str) -> bool {
    windlass_cel::is_url(text)
}

fn is_email(text: &str) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^([^<>@]*<)?[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+>?$"#)
            .expect("invariant: the pattern is valid")
    });
    PATTERN.is_match(text)
}

fn is_hostname(text: &str) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^([a-zA-Z0-9\p{L}]([a-zA-Z0-9\p{L}-]{0,61}[a-zA-Z0-9\p{L}])?)(\.[a-zA-Z0-9\p{L}]([a-zA-Z0-9\p{L}-]{0,61}[a-zA-Z0-9\p{L}])?)*\.?$")
            .expect("invariant: the pattern is valid")
    });
    text.len() <= 255 && PATTERN.is_match(text)
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let Ok(address) = address.parse::<std::net::IpAddr>() else {
        return false;
    };
    let limit = if address.is_ipv4() { 32 } else { 128 };
    bits.parse::<u8>().is_ok_and(|bits| bits <= limit)
}

fn is_mac(text: &str) -> bool {
    matches_pattern(
        text,
        "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{4}\\.){2}[0-9A-Fa-f]{4}$",
    )
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
            .expect("invariant: the pattern is valid")
    });
    let digits: Vec<char> = text.chars().filter(|c| *c != '-').collect();
    PATTERN.is_match(text) && version.is_none_or(|version| digits.get(12) == Some(&version))
}

fn digits(text: &str) -> Vec<u32> {
    text.chars()
        .filter(|c| *c != '-' && *c != ' ')
        .filter_map(|c| c.to_digit(10))
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let chars: Vec<char> = text.chars().filter(|c| *c != '-' && *c != ' ').collect();
    if chars.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (at, c) in (1_u32..).zip(&chars) {
        let value = match (at, c) {
            (10, 'X' | 'x') => 10,
            (_, c) => match c.to_digit(10) {
                Some(value) => value,
                None => return false,
            },
        };
        sum += at * value;
    }
    sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 = digits
        .iter()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { 3 * digit })
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits = digits(text);
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && is_date_time(&format!("{text}T00:00:00Z"))
}

fn is_date_time(text: &str) -> bool {
    text.to_ascii_uppercase()
        .parse::<windlass_core::Time>()
        .is_ok()
}
