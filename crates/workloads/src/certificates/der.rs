//! The few parts of DER that a certificate is made of.

use windlass_core::Time;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const BOOLEAN: u8 = 0x01;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// A tagged value with its length.
pub(super) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let digits = bytes.iter().skip_while(|byte| **byte == 0);
            let digits: Vec<u8> = digits.copied().collect();
            // Eight bytes of length at most.
            out.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
            out.extend(digits);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of values.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

/// A positive number.
pub(super) fn positive(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().skip_while(|byte| **byte == 0);
    let mut digits: Vec<u8> = digits.copied().collect();
    // A first bit would be a sign.
    if digits.first().is_none_or(|first| first & 0x80 != 0) {
        digits.insert(0, 0);
    }
    tagged(INTEGER, &digits)
}

/// Whole bytes as a bit string.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    tagged(BIT_STRING, &[&[0], bytes].concat())
}

/// Named bits, the first of which is the highest of the first byte.
pub(super) fn named_bits(set: u16) -> Vec<u8> {
    let bytes = set.to_be_bytes();
    let used = 16 - set.trailing_zeros().min(16);
    let length = usize::try_from(used.div_ceil(8)).unwrap_or(2);
    let unused = u8::try_from((8 - used % 8) % 8).unwrap_or(0);
    tagged(BIT_STRING, &[&[unused], &bytes[..length]].concat())
}

/// A point in time: with two digits for the year before 2050, as RFC 5280 wants it.
pub(super) fn time(at: Time) -> Vec<u8> {
    let text = at.to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let year: u16 = digits.get(..4).and_then(|it| it.parse().ok()).unwrap_or(0);
    let (tag, digits) = match (1950..2050).contains(&year) {
        true => (UTC_TIME, digits.get(2..).unwrap_or_default()),
        false => (GENERALIZED_TIME, digits.as_str()),
    };
    tagged(tag, format!("{digits}Z").as_bytes())
}

/// An extension of a certificate.
pub(super) fn extension(id: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![tagged(OBJECT_ID, id)];
    if is_critical {
        parts.push(tagged(BOOLEAN, &[0xff]));
    }
    parts.push(tagged(OCTET_STRING, value));
    sequence(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_numbers_and_bits_are_encoded_as_briefly_as_possible() {
        assert_eq!(tagged(OCTET_STRING, &[1, 2]), [4, 2, 1, 2]);
        assert_eq!(tagged(OCTET_STRING, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(tagged(OCTET_STRING, &[0; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(positive(&[0, 0, 1]), [2, 1, 1]);
        assert_eq!(positive(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(positive(&[]), [2, 1, 0]);
        assert_eq!(named_bits(0x8000), [3, 2, 7, 0x80]);
        assert_eq!(named_bits(0xa000), [3, 2, 5, 0xa0]);
        assert_eq!(named_bits(0x8080), [3, 3, 7, 0x80, 0x80]);
    }

    #[test]
    fn the_year_has_four_digits_from_2050_on() {
        let at = |text: &str| time(text.parse().expect("it is a time"));
        assert_eq!(at("2026-01-02T03:04:05Z")[2..], *b"260102030405Z");
        assert_eq!(at("2051-01-02T03:04:05Z")[2..], *b"20510102030405Z");
    }
}
