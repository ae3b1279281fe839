//! Printing a [`Doc`] as JSON.

use std::fmt;

use super::{Array, Doc, Kind, Object, Repr};

impl Doc {
    /// The document as compact JSON, keys in canonical order.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.write_json(&mut out);
        out
    }

    /// Appends the document as compact JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Array(array) => write_array(out, array),
            Repr::Object(object) => write_object(out, object),
            _ => self.write_scalar(out),
        }
    }

    /// Appends what has no parts. Strings are written from their bytes, which need no second look.
    #[inline]
    pub(super) fn write_scalar(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Bool(true) => out.extend_from_slice(b"true"),
            Repr::Bool(false) => out.extend_from_slice(b"false"),
            Repr::Int(value) => write_integer(out, *value),
            Repr::UInt(value) => write_integer(out, *value),
            Repr::Float(value) => write_float(out, *value),
            Repr::Short(text) => write_string(out, text.as_bytes()),
            Repr::Str(text) => write_string(out, text.as_bytes()),
            Repr::Null | Repr::Array(_) | Repr::Object(_) => out.extend_from_slice(b"null"),
        }
    }

    /// The document as JSON with two spaces of indentation, as kubectl prints it.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        let mut out = Vec::with_capacity(256);
        write_pretty(&mut out, self, 0);
        String::from_utf8(out).expect("invariant: JSON is written from strs")
    }
}

impl fmt::Display for Doc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_json()).map_err(|_| fmt::Error)?)
    }
}

fn write_array(out: &mut Vec<u8>, array: &Array) {
    out.push(b'[');
    for (position, item) in array.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        item.write_json(out);
    }
    out.push(b']');
}

fn write_object(out: &mut Vec<u8>, object: &Object) {
    out.push(b'{');
    for (position, (key, value)) in object.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write_string(out, key.as_bytes());
        out.push(b':');
        value.write_json(out);
    }
    out.push(b'}');
}

fn write_pretty(out: &mut Vec<u8>, doc: &Doc, level: usize) {
    match doc.kind() {
        Kind::Array(array) if !array.is_empty() => {
            out.push(b'[');
            for (position, item) in array.iter().enumerate() {
                start_line(out, position > 0, level + 1);
                write_pretty(out, item, level + 1);
            }
            start_line(out, false, level);
            out.push(b']');
        }
        Kind::Object(object) if !object.is_empty() => {
            out.push(b'{');
            for (position, (key, value)) in object.iter().enumerate() {
                start_line(out, position > 0, level + 1);
                write_string(out, key.as_bytes());
                out.extend_from_slice(b": ");
                write_pretty(out, value, level + 1);
            }
            start_line(out, false, level);
            out.push(b'}');
        }
        _ => doc.write_json(out),
    }
}

fn start_line(out: &mut Vec<u8>, with_comma: bool, level: usize) {
    if with_comma {
        out.push(b',');
    }
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * level));
}

fn write_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that reads back as the same float, with a fraction or an exponent so that it
/// reads back as a float at all.
fn write_float(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(format!("{value:?}").as_bytes());
}

/// The form of a byte inside a string: as it is, as a two-character escape, or as `\u00XX`.
const PLAIN: u8 = 0;
const UNICODE: u8 = b'u';
const ESCAPES: [u8; 256] = {
    let mut escapes = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escapes[byte] = UNICODE;
        byte += 1;
    }
    escapes[0x08] = b'b';
    escapes[0x09] = b't';
    escapes[0x0a] = b'n';
    escapes[0x0c] = b'f';
    escapes[0x0d] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

/// Appends a string. Most need no escape, which a look at many bytes at a time tells.
#[inline]
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    let needs_escape =
        |found, byte: &u8| found | (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    out.reserve(text.len() + 2);
    out.push(b'"');
    if text.iter().fold(false, needs_escape) {
        write_escaped(out, text);
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'"');
}

/// The bytes of a string as it is written.
pub(super) fn string_bytes(text: &[u8]) -> usize {
    let more = text.iter().map(|byte| match ESCAPES[usize::from(*byte)] {
        PLAIN => 0,
        UNICODE => 5,
        _ => 1,
    });
    text.len() + more.sum::<usize>() + 2
}

fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut written = 0;
    for (at, byte) in text.iter().enumerate() {
        let escape = ESCAPES[usize::from(*byte)];
        if escape == PLAIN {
            continue;
        }
        out.extend_from_slice(&text[written..at]);
        written = at + 1;
        if escape == UNICODE {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&text[written..]);
}
