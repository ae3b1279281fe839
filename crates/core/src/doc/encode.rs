//! Printing many documents that have parts in common.

use std::fmt;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::json::write_string;
use super::{Array, Doc, Object, Repr};

/// The smallest memoized part: shorter ones are quicker to print than to look up.
const PART_BYTES_MIN: usize = 64;
/// The bytes of memoized text, after which all is dropped.
const TEXT_BYTES_LIMIT: usize = 1 << 20;
/// The number of memoized parts, after which all are dropped.
const PARTS_LIMIT: usize = 8192;

/// Prints documents as JSON and memoizes the text of the parts that they share.
///
/// The pods of one ReplicaSet have one spec between them; an encoder prints it once and copies it
/// from then on. What it prints is what [`Doc::write_json`] prints. It holds a bounded number of
/// documents alive, so one that is done should be dropped.
pub struct Encoder {
    /// The range of the text in which a part was written. The key keeps the part alive, and so its
    /// identity.
    parts: HashMap<Doc, Range<usize>, RandomState>,
    /// The text of all remembered parts.
    text: Vec<u8>,
}

impl Encoder {
    /// An encoder that remembers nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parts: HashMap::with_hasher(RandomState::default()),
            text: Vec::new(),
        }
    }

    /// Appends a document as compact JSON, keys in canonical order.
    pub fn write(&mut self, doc: &Doc, out: &mut Vec<u8>) {
        match &doc.0 {
            Repr::Array(array) => self.write_array(array, out),
            Repr::Object(object) => self.write_members(object, |_| true, out),
            _ => doc.write_scalar(out),
        }
    }

    /// Appends an object with those of its members whose keys are wanted.
    pub fn write_members(
        &mut self,
        object: &Object,
        is_wanted: impl Fn(&str) -> bool,
        out: &mut Vec<u8>,
    ) {
        let mut separator = b'{';
        for (key, value) in object.iter().filter(|(key, _)| is_wanted(key)) {
            out.push(separator);
            separator = b',';
            write_string(out, key.as_bytes());
            out.push(b':');
            self.write_part(value, out);
        }
        if separator == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
    }

    fn write_array(&mut self, array: &Array, out: &mut Vec<u8>) {
        out.push(b'[');
        for (position, item) in array.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            self.write_part(item, out);
        }
        out.push(b']');
    }

    /// Copies the memoized text of a part, or prints and memoizes it.
    fn write_part(&mut self, part: &Doc, out: &mut Vec<u8>) {
        if !part.is_shared() {
            return self.write(part, out);
        }
        if let Some(range) = self.parts.get(part) {
            return out.extend_from_slice(&self.text[range.clone()]);
        }
        let start = out.len();
        self.write(part, out);
        let text = &out[start..];
        if text.len() >= PART_BYTES_MIN && text.len() <= TEXT_BYTES_LIMIT {
            self.remember(part, text);
        }
    }

    fn remember(&mut self, part: &Doc, text: &[u8]) {
        if self.text.len() + text.len() > TEXT_BYTES_LIMIT || self.parts.len() == PARTS_LIMIT {
            self.parts.clear();
            self.text.clear();
        }
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.parts.insert(part.clone(), start..self.text.len());
    }
}

impl Doc {
    /// Returns true for a list or object that somebody else holds too, perhaps as a part of another
    /// document. It is worth memoizing what such a part is encoded to.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        match &self.0 {
            Repr::Array(array) => array.is_shared(),
            Repr::Object(object) => object.is_shared(),
            _ => false,
        }
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("parts", &self.parts.len())
            .field("text_bytes", &self.text.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::vec_init_then_push,
        reason = "the macro of this crate pushes field by field"
    )]

    use super::*;
    use crate::doc;

    fn pod(number: usize) -> Doc {
        let word = "x".repeat(PART_BYTES_MIN);
        doc!({
            "metadata": { "name": (format!("pod-{number}")), "labels": { "app": "web", "tier": (word.as_str()) } },
            "spec": { "containers": [{ "name": "a\n\"b\\", "image": (word.as_str()) }], "node": (number as i64) },
            "empty": {}, "none": [], "float": 1.5, "null": null
        })
    }

    #[test]
    fn text_is_the_same_with_and_without_memory() {
        let pods: Vec<Doc> = (0..50).map(pod).collect();
        let mut encoder = Encoder::new();
        for pod in &pods {
            let mut out = b"before".to_vec();
            encoder.write(pod, &mut out);
            assert_eq!(out, [b"before".as_slice(), &pod.to_json()].concat());
        }
        assert!(!encoder.parts.is_empty(), "shared parts are remembered");
    }

    #[test]
    fn only_wanted_members_are_printed() {
        let doc = doc!({ "kind": "Pod", "spec": { "a": 1 }, "status": {} });
        let object = doc.as_object().unwrap();
        let mut out = Vec::new();
        Encoder::new().write_members(object, |key| key != "kind", &mut out);
        assert_eq!(out, br#"{"spec":{"a":1},"status":{}}"#);
        out.clear();
        Encoder::new().write_members(object, |_| false, &mut out);
        assert_eq!(out, b"{}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut encoder = Encoder::new();
        let large = "y".repeat(TEXT_BYTES_LIMIT / 8);
        let parts: Vec<Doc> = (0..40)
            .map(|number| doc!({ "text": (large.as_str()), "number": number }))
            .collect();
        for part in &parts {
            let whole = doc!([part, part]);
            let mut out = Vec::new();
            encoder.write(&whole, &mut out);
            assert_eq!(out, whole.to_json());
            assert!(encoder.text.len() <= TEXT_BYTES_LIMIT);
        }
    }
}
