//! Text with named holes, filled in two steps: once per ReplicaSet, then once per pod.

use super::pod::{Identity, Slot};

/// A text whose remaining holes are those that differ from pod to pod.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Slot(Slot),
}

impl Template {
    /// Cuts `text` at its holes, written `<name>`.
    pub(super) fn compile(text: &str) -> Self {
        let mut parts = Vec::new();
        for (index, piece) in text.split('<').enumerate() {
            let rest = match piece.split_once('>') {
                Some((name, rest)) if index > 0 => {
                    let slot = Slot::named(name).expect("invariant: the templates name only slots");
                    parts.push(Part::Slot(slot));
                    rest
                }
                _ => piece,
            };
            parts.push(Part::Text(rest.to_owned()));
        }
        Self { parts }
    }

    /// Appends the text of one pod.
    pub(super) fn write(&self, pod: &Identity<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Slot(slot) => pod.write(*slot, out),
            }
        }
    }
}

/// Replaces the named holes and leaves the others alone.
pub(super) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("<{name}>"), value)
    })
}

/// Drops the white space outside of strings: the templates are laid out for people, the API
/// server prints none.
pub(super) fn minify(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for character in text.chars() {
        if in_string || !character.is_ascii_whitespace() {
            out.push(character);
        }
        if character == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    out
}
