//! What types and fields are for, in upstream's words.
//!
//! With the feature `descriptions` the build packs what k8s-openapi says about the built-in types;
//! without it there are none. The texts are unpacked while documents are made of them, and let go
//! afterwards.

use std::collections::BTreeMap;
use std::ops::Range;

/// Between two entries, and between a name and its description.
const ENTRY: char = '\u{1e}';
const TEXT: char = '\u{1f}';

/// The descriptions of all built-in types.
#[derive(Debug, Default)]
pub struct Descriptions {
    /// Entries of one type after the other.
    text: String,
    /// Where in the text a type's are, by its name in documents.
    types: BTreeMap<String, Range<usize>>,
}

impl Descriptions {
    /// Unpacks what was built in.
    #[cfg(feature = "descriptions")]
    #[must_use]
    pub fn unpacked() -> Self {
        use std::io::Read;
        const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions"));
        let mut text = String::new();
        let read = flate2::read::DeflateDecoder::new(PACKED).read_to_string(&mut text);
        read.expect("invariant: the build has packed a text");
        Self::new(text)
    }

    /// Nothing was built in.
    #[cfg(not(feature = "descriptions"))]
    #[must_use]
    pub fn unpacked() -> Self {
        Self::new(String::new())
    }

    fn new(text: String) -> Self {
        let mut types = BTreeMap::new();
        let mut at = 0;
        for part in text.split_inclusive(ENTRY) {
            at += part.len();
            let Some(name) = part.strip_prefix('=') else {
                continue;
            };
            let name = name.trim_end_matches(ENTRY).to_owned();
            let end = text[at..]
                .find("\u{1e}=")
                .map_or(text.len(), |end| at + end);
            types.insert(name, at..end);
        }
        Self { text, types }
    }

    /// What a type is for.
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.of_field(name, "")
    }

    /// What a field is for that says the type of an object: it is the same in all of them.
    pub(super) fn of_type_field(&self, field: &str) -> Option<&str> {
        match field {
            "apiVersion" | "kind" => self.of_field("io.k8s.api.core.v1.ConfigMap", field),
            _ => None,
        }
    }

    /// What a field of a type is for.
    pub(super) fn of_field(&self, name: &str, field: &str) -> Option<&str> {
        let range = self.types.get(name)?;
        let mut entries = self.text.get(range.clone())?.split(ENTRY);
        entries.find_map(|entry| entry.strip_prefix(field)?.strip_prefix(TEXT))
    }
}

#[cfg(test)]
mod tests {
    use super::Descriptions;

    #[test]
    fn type_and_its_fields_are_found_by_name() {
        let text = "\u{1e}=a\u{1e}\u{1f}an a\u{1e}x\u{1f}an x\u{1e}=b\u{1e}xx\u{1f}two\u{1e}=c";
        let descriptions = Descriptions::new(text.to_owned());
        assert_eq!(descriptions.of("a"), Some("an a"));
        assert_eq!(descriptions.of_field("a", "x"), Some("an x"));
        assert_eq!(descriptions.of("b"), None);
        assert_eq!(descriptions.of_field("b", "x"), None);
        assert_eq!(descriptions.of_field("b", "xx"), Some("two"));
        assert_eq!(descriptions.of("c"), None);
        assert_eq!(descriptions.of("d"), None);
    }

    #[test]
    #[cfg(feature = "descriptions")]
    fn built_in_types_are_described() {
        let descriptions = Descriptions::unpacked();
        let container = "io.k8s.api.core.v1.Container";
        let described = |field| descriptions.of_field(container, field).unwrap_or_default();
        assert!(described("").starts_with("A single application container"));
        assert!(described("image").starts_with("Container image name."));
        assert!(described("livenessProbe").starts_with("Periodic probe of container liveness."));
    }
}
