//! The order of a JSON text, which documents do not keep: upstream tells of unknown and duplicate
//! fields in the order in which its reader meets them.

use std::collections::HashMap;

/// Levels of objects that are followed. What is deeper comes last.
const DEPTH_LIMIT: usize = 128;

/// Sorts complaints about fields by the places of the fields in the text. Of a field that comes
/// twice the second place counts; one that is unknown besides is not told twice. A text that is not
/// JSON changes no order.
pub(super) fn sort(complaints: &mut Vec<String>, json: &[u8]) {
    if complaints.len() < 2 {
        return;
    }
    let unknown: Vec<String> = complaints
        .iter()
        .filter_map(|text| field_of(text).filter(|(_, is_twice)| !is_twice))
        .map(|(path, _)| path.to_owned())
        .collect();
    complaints.retain(|text| {
        let twice = field_of(text).filter(|(_, is_twice)| *is_twice);
        twice.is_none_or(|(path, _)| !unknown.iter().any(|known| known == path))
    });
    let wanted = complaints.iter().filter_map(|text| field_of(text));
    let mut scan = Scan {
        bytes: json,
        at: 0,
        path: String::new(),
        places: wanted
            .map(|(path, _)| (path.to_owned(), Vec::new()))
            .collect(),
    };
    scan.value(0);
    let places = scan.places;
    complaints.sort_by_key(|text| {
        let found = field_of(text);
        let places = found.and_then(|(path, is_twice)| Some((places.get(path)?, is_twice)));
        let place = places.and_then(|(places, is_twice)| places.get(usize::from(is_twice)));
        place.copied().unwrap_or(usize::MAX)
    });
}

/// The path of the field that a complaint is about, and true if the field comes twice.
fn field_of(complaint: &str) -> Option<(&str, bool)> {
    let unknown = complaint.strip_prefix("unknown field \"");
    let twice = complaint.strip_prefix("duplicate field \"");
    let path = unknown.or(twice)?.strip_suffix('"')?;
    Some((path, twice.is_some()))
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The path of the value that is read.
    path: String,
    /// The places of the fields that are looked for.
    places: HashMap<String, Vec<usize>>,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Reads a value; `None` at the end of what can be followed.
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth == DEPTH_LIMIT {
            return None;
        }
        match self.peek()? {
            b'{' => self.members(b'}', depth, Self::field),
            b'[' => self.members(b']', depth, Self::item),
            b'"' => self.text().map(|_| ()),
            _ => {
                while !matches!(self.bytes.get(self.at), None | Some(b',' | b'}' | b']')) {
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    fn members(
        &mut self,
        end: u8,
        depth: usize,
        read: fn(&mut Self, usize, usize) -> Option<()>,
    ) -> Option<()> {
        self.at += 1;
        let length = self.path.len();
        let mut index = 0;
        loop {
            match self.peek()? {
                found if found == end => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => {
                    read(self, depth, index)?;
                    self.path.truncate(length);
                    index += 1;
                }
            }
        }
    }

    fn field(&mut self, depth: usize, _: usize) -> Option<()> {
        let place = self.at;
        let name = self.text()?;
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(&name);
        if let Some(places) = self.places.get_mut(&self.path) {
            places.push(place);
        }
        (self.peek()? == b':').then(|| self.at += 1)?;
        self.value(depth + 1)
    }

    fn item(&mut self, depth: usize, index: usize) -> Option<()> {
        self.path.push_str(&format!("[{index}]"));
        self.value(depth + 1)
    }

    /// Reads a text, which begins with a quote.
    fn text(&mut self) -> Option<String> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        let text = self.bytes.get(start..end)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_stand_in_the_order_of_the_text() {
        let json = br#"{"zeta": 1, "metadata": {"zeb": "\"]", "alpha": [2, {"q": 1}]}, "alpha": 2,
            "data": {"a": "1", "a": "2"}, "zeta": 3}"#;
        let mut complaints: Vec<String> = [
            "duplicate field \"data.a\"",
            "duplicate field \"zeta\"",
            "unknown field \"alpha\"",
            "unknown field \"metadata.alpha[1].q\"",
            "unknown field \"metadata.zeb\"",
            "unknown field \"zeta\"",
        ]
        .map(str::to_owned)
        .to_vec();
        sort(&mut complaints, json);
        let fields: Vec<&str> = complaints
            .iter()
            .filter_map(|it| Some(field_of(it)?.0))
            .collect();
        assert_eq!(
            fields,
            [
                "zeta",
                "metadata.zeb",
                "metadata.alpha[1].q",
                "alpha",
                "data.a"
            ]
        );
        for cut in 0..json.len() {
            sort(&mut complaints, &json[..cut]);
        }
    }
}
