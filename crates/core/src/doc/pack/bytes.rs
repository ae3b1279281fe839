//! Numbers and strings as bytes.

use super::UnpackError;

/// Bytes of the longest varint.
const VARINT_BYTES: u32 = 10;

/// Appends a number, seven bits a byte, lowest first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number of either sign; small ones are short.
pub(super) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends a string behind its length.
pub(super) fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Takes a run of bytes apart.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, UnpackError> {
        let (first, rest) = self.0.split_first().ok_or(UnpackError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn varint(&mut self) -> Result<u64, UnpackError> {
        let mut value = 0;
        for position in 0..VARINT_BYTES {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * position);
            if shifted >> (7 * position) != bits {
                return Err(UnpackError::Number);
            }
            value |= shifted;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(UnpackError::Number)
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, UnpackError> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A count of items of at least a byte each, so that a wrong count is noticed before anything
    /// is allocated.
    pub(super) fn count(&mut self) -> Result<usize, UnpackError> {
        let count = usize::try_from(self.varint()?).map_err(|_| UnpackError::Short)?;
        (count <= self.0.len())
            .then_some(count)
            .ok_or(UnpackError::Short)
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], UnpackError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(UnpackError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn string(&mut self) -> Result<&'a str, UnpackError> {
        let len = self.count()?;
        str::from_utf8(self.take(len)?).map_err(|_| UnpackError::Text)
    }

    pub(super) fn float(&mut self) -> Result<f64, UnpackError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(UnpackError::Short)?;
        self.0 = rest;
        let value = f64::from_le_bytes(*bytes);
        value
            .is_finite()
            .then_some(value)
            .ok_or(UnpackError::Number)
    }
}
