//! JSON whose keys stand in an order that people know, and not in that of the alphabet.
//!
//! Documents have sorted keys. Upstream writes the fields of its types in the order of their
//! declaration, and what people read of a server, discovery and the version, is written so here.

use windlass_core::{Doc, Kind};

/// The order of keys: of the document itself, and of the objects in it. Keys that are not listed
/// come last, in the order of the alphabet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyOrder {
    pub(crate) top: &'static [&'static str],
    pub(crate) nested: &'static [&'static str],
}

/// A document as JSON, on lines of their own if it is pretty.
pub(crate) fn write(doc: &Doc, order: KeyOrder, is_pretty: bool) -> Vec<u8> {
    let mut writer = Writer {
        order,
        is_pretty,
        depth: 0,
        out: Vec::with_capacity(4096),
    };
    writer.value(doc);
    writer.out
}

struct Writer {
    order: KeyOrder,
    is_pretty: bool,
    depth: usize,
    out: Vec<u8>,
}

impl Writer {
    fn value(&mut self, doc: &Doc) {
        match doc.kind() {
            Kind::Object(object) if !object.is_empty() => {
                let order = match self.depth {
                    0 => self.order.top,
                    _ => self.order.nested,
                };
                let rank = |key: &str| order.iter().position(|known| *known == key);
                let mut fields: Vec<_> = object.iter().collect();
                fields.sort_by_key(|(key, _)| rank(key.as_str()).unwrap_or(usize::MAX));
                self.members(b"{}", fields, |writer, (key, value)| {
                    Doc::from(key.as_str()).write_json(&mut writer.out);
                    let colon: &[u8] = if writer.is_pretty { b": " } else { b":" };
                    writer.out.extend_from_slice(colon);
                    writer.value(value);
                });
            }
            Kind::Array(_) if !doc.items().is_empty() => {
                self.members(b"[]", doc.items().iter().collect(), Self::value);
            }
            _ => doc.write_json(&mut self.out),
        }
    }

    fn members<T>(
        &mut self,
        brackets: &[u8; 2],
        members: Vec<T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.out.push(brackets[0]);
        self.depth += 1;
        for (index, member) in members.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.new_line();
            write(self, member);
        }
        self.depth -= 1;
        self.new_line();
        self.out.push(brackets[1]);
    }

    fn new_line(&mut self) {
        if self.is_pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', 2 * self.depth));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::doc;

    #[test]
    fn keys_stand_in_the_order_given() {
        let order = KeyOrder {
            top: &["kind", "apiVersion"],
            nested: &["version"],
        };
        let list = doc!({
            "apiVersion": "v1", "kind": "List", "empty": {},
            "items": [{ "freshness": "Current", "version": "v1" }, []]
        });
        assert_eq!(
            String::from_utf8(write(&list, order, false)).unwrap(),
            r#"{"kind":"List","apiVersion":"v1","empty":{},"items":[{"version":"v1","freshness":"Current"},[]]}"#
        );
        assert_eq!(
            String::from_utf8(write(&doc!({ "a": [1] }), order, true)).unwrap(),
            "{\n  \"a\": [\n    1\n  ]\n}"
        );
    }
}
