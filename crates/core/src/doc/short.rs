//! Strings that are stored inline, in the bytes of a pointer.

use super::intern::mix;

/// The longest string that is kept inline: what is left of sixteen bytes beside the length and
/// the sort of value.
pub(super) const SHORT_BYTES: usize = 14;

/// A string of at most [`SHORT_BYTES`], padded with zeros.
///
/// Most values of a Kubernetes object are this short: phases, reasons, ports, addresses. Inline
/// they cost no allocation and no look-up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortStr {
    len: u8,
    bytes: [u8; SHORT_BYTES],
}

impl ShortStr {
    #[inline]
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT_BYTES];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self {
            len: text.len() as u8,
            bytes,
        })
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    #[inline]
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("invariant: made from a str")
    }

    #[inline]
    pub(super) fn hash_value(self) -> u64 {
        let mut words = [0; 16];
        words[..SHORT_BYTES].copy_from_slice(&self.bytes);
        words[15] = self.len;
        let word = u128::from_le_bytes(words);
        mix(mix(0x67, word as u64), (word >> 64) as u64)
    }
}
