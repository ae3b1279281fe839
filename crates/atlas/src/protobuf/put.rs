//! The wire format: what one field looks like.

/// The wire type of numbers and truth values.
const VARINT: u64 = 0;
/// The wire type of floats.
pub(super) const FIXED64: u64 = 1;
/// The wire type of texts, bytes and messages.
pub(super) const BYTES: u64 = 2;

/// Puts the number and length in front of a message that begins somewhere and has just ended.
pub(super) fn close(number: u32, start: usize, out: &mut Vec<u8>) {
    let end = out.len();
    tag(number, BYTES, out);
    varint((end - start) as u64, out);
    let head = out.len() - end;
    out[start..].rotate_right(head);
}

pub(super) fn text(number: u32, text: &str, out: &mut Vec<u8>) {
    bytes(number, text.as_bytes(), out);
}

pub(super) fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    tag(number, BYTES, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(super) fn varint_field(number: u32, value: u64, out: &mut Vec<u8>) {
    tag(number, VARINT, out);
    varint(value, out);
}

pub(super) fn tag(number: u32, wire: u64, out: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | wire, out);
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
