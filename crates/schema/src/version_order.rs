//! The order of versions.

use std::cmp::Reverse;

/// Versions in the order of preference: stable ones first, newer ones before older ones.
#[must_use]
pub fn priority(version: &str) -> (u8, Reverse<u64>, Reverse<u64>, String) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let major: u64 = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => (0, ""),
            rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => (1, minor),
                (_, Some(minor)) => (2, minor),
                _ => return None,
            },
        };
        let minor: u64 = if minor.is_empty() {
            0
        } else {
            minor.parse().ok()?
        };
        Some((stage, Reverse(major), Reverse(minor), String::new()))
    };
    parse().unwrap_or_else(|| (3, Reverse(0), Reverse(0), version.to_owned()))
}
