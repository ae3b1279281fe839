//! Quoted text as API error messages carry it.
//!
//! Kubernetes clients match on whole error messages, and those quote the offending value by the
//! rules of Go's `%q`, which differ from Rust's `{:?}` in the escapes of control characters.

use std::fmt::Write as _;

/// Puts `text` in double quotes and escapes what does not print.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if prints(c) => out.push(c),
            _ => push_hex(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// Writes a list of strings as a JSON array, the way error messages show a list value.
pub(crate) fn json_list(values: &[String]) -> String {
    if values.is_empty() {
        return "null".to_owned();
    }
    let mut out = String::from("[");
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push('"');
        value.chars().for_each(|c| push_json(&mut out, c));
        out.push('"');
    }
    out.push(']');
    out
}

/// Returns true if a character shows as itself inside quotes.
///
/// The standard library's debug escape knows the same classes. It also escapes a combining mark
/// at the start of a text, which is why the question is asked after a letter.
fn prints(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    let mut probe = [0; 5];
    probe[0] = b'a';
    let len = 1 + c.encode_utf8(&mut probe[1..]).len();
    let probe = std::str::from_utf8(&probe[..len]).expect("invariant: two encoded characters");
    probe.escape_debug().count() == 2
}

fn push_hex(out: &mut String, c: char) {
    let code = u32::from(c);
    let written = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    written.expect("invariant: writing to a string cannot fail");
}

/// JSON as the API server's encoder writes it: characters with a meaning in HTML are escaped too.
fn push_json(out: &mut String, c: char) {
    match c {
        '"' | '\\' => out.extend(['\\', c]),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
            write!(out, "\\u{:04x}", u32::from(c))
                .expect("invariant: writing to a string cannot fail");
        }
        _ => out.push(c),
    }
}
