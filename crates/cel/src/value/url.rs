//! URLs, as far as expressions take them apart.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// An absolute URL or an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    scheme: String,
    /// Host and port.
    host: String,
    path: String,
    query: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quoted = windlass_core::quote(text);
        let fail = |why: &str| {
            format!("URL parse error during conversion from string: parse {quoted}: {why}")
        };
        if text.is_empty() {
            return Err(fail("empty url"));
        }
        if text.bytes().any(|c| c < 0x20 || c == 0x7f) {
            return Err(fail("net/url: invalid control character in URL"));
        }
        let (scheme, rest) = scheme(text).map_err(fail)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if scheme.is_empty() && !rest.starts_with('/') {
            return Err(fail("invalid URI for request"));
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) if !scheme.is_empty() || !rest.starts_with("//") => {
                let at = rest.find('/').unwrap_or(rest.len());
                rest.split_at(at)
            }
            _ => ("", rest),
        };
        if !percent_encoding_is_sound(path) {
            return Err(fail("invalid URL escape"));
        }
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        check_host(host).map_err(|why| fail(&why))?;
        Ok(Self {
            text: text.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    if host.contains([' ', '<', '>', '"']) {
        let bad = host.chars().find(|c| " <>\"".contains(*c)).unwrap_or(' ');
        return Err(format!(
            "invalid character {:?} in host name",
            bad.to_string()
        ));
    }
    let after = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("missing ']' in host")?.1,
        None => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let port = after.strip_prefix(':').unwrap_or("");
    if !port.bytes().all(|c| c.is_ascii_digit()) {
        return Err(format!("invalid port {after:?} after host"));
    }
    Ok(())
}

fn percent_encoding_is_sound(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, c)| {
        *c != b'%'
            || (bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
                && bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit))
    })
}

impl Url {
    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The host without port and brackets.
    pub(crate) fn hostname(&self) -> &str {
        if let Some(rest) = self.host.strip_prefix('[') {
            return rest.split(']').next().unwrap_or("");
        }
        self.host
            .rsplit_once(':')
            .map_or(&self.host, |(name, _)| name)
    }

    pub(crate) fn port(&self) -> &str {
        let after = match self.host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map_or("", |(_, after)| after),
            None => self.host.rfind(':').map_or("", |at| &self.host[at..]),
        };
        after.strip_prefix(':').unwrap_or("")
    }

    /// The path with everything escaped that must be.
    pub(crate) fn escaped_path(&self) -> String {
        let mut out = String::with_capacity(self.path.len());
        for byte in self.path.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    /// The parameters of the query, each with its values in order.
    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self
            .query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescape(key), unescape(value)) {
                parameters.entry(key).or_default().push(value);
            }
        }
        parameters
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let hex = text.get(at + 1..at + 3)?;
                out.push(u8::from_str_radix(hex, 16).ok()?);
                at += 2;
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
