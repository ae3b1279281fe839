//! The length of a document as JSON, without writing it.

use super::json::string_bytes;
use super::{Doc, Kind};

/// The longest JSON of a number.
const NUMBER_BYTES_MAX: usize = 32;

impl Doc {
    /// Returns true if the compact JSON of this document has at most `limit` bytes.
    ///
    /// Nothing is written, and of a document that is far below the limit no text is looked at. The
    /// walk ends where the limit is passed, however often parts are shared.
    #[must_use]
    pub fn is_json_within(&self, limit: usize) -> bool {
        // A byte of a text has six at most, as `\u001f`.
        let loose = |text: &[u8]| 2 + 6 * text.len();
        self.measure(limit, &loose).is_some() || self.measure(limit, &string_bytes).is_some()
    }

    /// The part of the byte budget `room` that this document leaves; `None` if the document exceeds
    /// it.
    fn measure(&self, room: usize, text_bytes: &dyn Fn(&[u8]) -> usize) -> Option<usize> {
        let bytes = match self.kind() {
            Kind::Array(items) => {
                let room = room.checked_sub(1 + items.len().max(1))?;
                return items
                    .iter()
                    .try_fold(room, |room, item| item.measure(room, text_bytes));
            }
            Kind::Object(object) => {
                let room = room.checked_sub(1 + object.len().max(1))?;
                return object.iter().try_fold(room, |room, (key, value)| {
                    let room = room.checked_sub(text_bytes(key.as_bytes()) + 1)?;
                    value.measure(room, text_bytes)
                });
            }
            Kind::Str(text) => text_bytes(text.as_bytes()),
            Kind::Null | Kind::Bool(true) => 4,
            Kind::Bool(false) => 5,
            Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => {
                let mut text = Vec::with_capacity(NUMBER_BYTES_MAX);
                self.write_scalar(&mut text);
                text.len()
            }
        };
        room.checked_sub(bytes)
    }
}

#[cfg(test)]
#[expect(
    clippy::vec_init_then_push,
    reason = "the macro is of this crate, and so is what it expands to"
)]
mod tests {
    use crate::{Doc, doc};

    #[test]
    fn length_is_that_of_the_text() {
        let texts = [
            "",
            "plain",
            "\"\\\n\u{1}\u{1f}é😀",
            "long enough not to be kept inline",
        ];
        let texts: Vec<Doc> = texts.iter().map(|text| Doc::from(*text)).collect();
        let values = [
            doc!(null),
            doc!([]),
            doc!({}),
            Doc::parse(b"[1,-5,1.5,1e300,true,false,null,[],{}]").unwrap(),
            Doc::from(u64::MAX),
            texts.clone().into(),
            doc!({ "a\n": (texts.clone()), "b": { "c": [{ "d": 1 }, { "d": 2 }] } }),
        ];
        for value in values.iter().chain(&texts) {
            let length = value.to_json().len();
            assert!(value.is_json_within(length), "{value}");
            assert!(!value.is_json_within(length - 1), "{value}");
        }
    }
}
