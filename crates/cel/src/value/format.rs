//! Named formats, which `format.named("..")` finds and `validate` checks.

use std::sync::LazyLock;

use regex::Regex;
use windlass_core::names;

use crate::base64;
use crate::value::{Url, parse_timestamp};

/// A format with a name.
#[derive(Debug)]
pub struct Format {
    pub(crate) name: &'static str,
    /// What is wrong with a text; nothing if it is valid.
    pub(crate) validate: fn(&str) -> Vec<String>,
    /// The size of the pattern behind it, which counts for the cost.
    pub(crate) pattern_size: u64,
}

/// The longest pattern of a format, for estimates.
pub(crate) const PATTERN_SIZE_MAX: u64 = 128;

const fn format(
    name: &'static str,
    validate: fn(&str) -> Vec<String>,
    pattern_size: u64,
) -> Format {
    Format {
        name,
        validate,
        pattern_size,
    }
}

/// Every format.
pub(crate) static FORMATS: [Format; 13] = [
    format("dns1123Label", names::dns1123_label, 30),
    format("dns1123Subdomain", names::dns1123_subdomain, 60),
    format("dns1035Label", names::dns1035_label, 30),
    format("qualifiedName", names::qualified_name, 60),
    format(
        "dns1123LabelPrefix",
        |text| names::dns1123_label(&names::mask_trailing_dash(text)),
        30,
    ),
    format(
        "dns1123SubdomainPrefix",
        |text| names::dns1123_subdomain(&names::mask_trailing_dash(text)),
        60,
    ),
    format(
        "dns1035LabelPrefix",
        |text| names::dns1035_label(&names::mask_trailing_dash(text)),
        30,
    ),
    format("labelValue", names::label_value, 40),
    format("uri", uri, 1_000),
    format("uuid", uuid, 50),
    format("byte", byte, 400),
    format("date", date, 44),
    format("datetime", datetime, 132),
];

/// The format with a name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

fn uri(text: &str) -> Vec<String> {
    match text.parse::<Url>() {
        Ok(_) => Vec::new(),
        Err(why) => vec![why.replace("URL parse error during conversion from string: ", "")],
    }
}

fn uuid(text: &str) -> Vec<String> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
            .expect("invariant: the pattern is valid")
    });
    only_if(PATTERN.is_match(text), "does not match the UUID format")
}

fn byte(text: &str) -> Vec<String> {
    only_if(base64::decode(text).is_some(), "invalid base64")
}

fn date(text: &str) -> Vec<String> {
    let is_date = text.len() == 10 && parse_timestamp(&format!("{text}T00:00:00Z")).is_some();
    only_if(is_date, "invalid date")
}

fn datetime(text: &str) -> Vec<String> {
    only_if(
        parse_timestamp(&text.to_ascii_uppercase()).is_some(),
        "invalid datetime",
    )
}

fn only_if(is_valid: bool, message: &str) -> Vec<String> {
    if is_valid {
        Vec::new()
    } else {
        vec![message.to_owned()]
    }
}
