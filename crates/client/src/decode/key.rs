//! The name of an object that cannot be parsed.

use windlass_core::{Doc, Key};

use super::scan::fields;

/// The name of an object, where it can be made out.
pub(super) fn key_of(object: &[u8]) -> Option<Key> {
    let metadata = field(object, b"\"metadata\"").unwrap_or_default();
    let (namespace, name) = (
        text(metadata, b"\"namespace\""),
        text(metadata, b"\"name\""),
    );
    (!name.is_empty()).then(|| Key::new(&namespace, &name))
}

fn field<'a>(object: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    fields(object)
        .find(|(key, _)| *key == wanted)
        .map(|(_, value)| value)
}

fn text(object: &[u8], wanted: &[u8]) -> String {
    let value = field(object, wanted).and_then(|value| Doc::parse(value).ok());
    value
        .as_ref()
        .and_then(Doc::as_str)
        .unwrap_or_default()
        .to_owned()
}
