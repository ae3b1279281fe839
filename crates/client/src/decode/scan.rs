//! Finding where a JSON value ends, without reading it.

/// Walks over one JSON value that may come in pieces, and finds its end.
///
/// Only brackets and strings are looked at. What lies between is checked when it is parsed.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueScan {
    depth: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first byte.
    #[default]
    Start,
    /// Between the brackets.
    Inside,
    /// In a string.
    Text,
    /// After a backslash in a string.
    Escape,
    /// In a number, `true`, `false` or `null`.
    Word,
}

/// The meaning of a byte outside of strings. A table, because most bytes mean nothing and this is
/// the inner loop of every list.
const PLAIN: u8 = 0;
const QUOTE: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;

const MEANING: [u8; 256] = {
    let mut table = [PLAIN; 256];
    table[b'"' as usize] = QUOTE;
    table[b'{' as usize] = OPEN;
    table[b'[' as usize] = OPEN;
    table[b'}' as usize] = CLOSE;
    table[b']' as usize] = CLOSE;
    table
};

impl ValueScan {
    /// Walks over the next piece. Returns how many of its bytes belong to the value once the end
    /// is found, and `None` if all of them do.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.place {
                Place::Start => at = self.start(bytes[at], at),
                Place::Inside => {
                    let found = bytes[at..]
                        .iter()
                        .position(|b| MEANING[*b as usize] != PLAIN)?;
                    at += found + 1;
                    if self.bracket(bytes[at - 1]) {
                        return Some(at);
                    }
                }
                Place::Text => {
                    let rest = &bytes[at..];
                    let found = rest.iter().position(|b| matches!(b, b'"' | b'\\'))?;
                    at += found + 1;
                    if rest[found] == b'\\' {
                        self.place = Place::Escape;
                    } else if self.depth == 0 {
                        return Some(at);
                    } else {
                        self.place = Place::Inside;
                    }
                }
                Place::Escape => {
                    at += 1;
                    self.place = Place::Text;
                }
                Place::Word => {
                    let ends = |b: &u8| matches!(b, b',' | b']' | b'}') || is_space(*b);
                    return bytes[at..].iter().position(ends).map(|found| at + found);
                }
            }
        }
        None
    }

    fn start(&mut self, first: u8, at: usize) -> usize {
        self.place = match MEANING[first as usize] {
            QUOTE => Place::Text,
            OPEN => {
                self.depth = 1;
                Place::Inside
            }
            // A stray closing bracket ends the word at once; the parser refuses what is empty.
            _ => {
                self.place = Place::Word;
                return at;
            }
        };
        at + 1
    }

    /// Takes a quote or bracket outside of a string; whether the value ends with it.
    fn bracket(&mut self, byte: u8) -> bool {
        match MEANING[byte as usize] {
            QUOTE => self.place = Place::Text,
            OPEN => self.depth += 1,
            _ => self.depth -= 1,
        }
        self.depth == 0
    }
}

/// Returns true if JSON allows this byte between any two tokens.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// The bytes without the spaces around them.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|b| !is_space(*b))
        .unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|b| !is_space(*b))
        .map_or(start, |at| at + 1);
    &bytes[start..end]
}

/// The fields of a complete JSON object, as raw keys and values. It ends early where the text is
/// not an object, so it never fails: it serves to make the best of what cannot be parsed.
pub(super) fn fields(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = trim(object).strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let (key, after) = value(rest)?;
        let after = trim_start(after).strip_prefix(b":")?;
        let (value, after) = value(after)?;
        rest = trim_start(after);
        rest = rest.strip_prefix(b",").unwrap_or_default();
        Some((key, value))
    })
}

fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let bytes = trim_start(bytes);
    let end = ValueScan::default().advance(bytes)?;
    Some(bytes.split_at(end)).filter(|(value, _)| !value.is_empty())
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|b| !is_space(*b))
        .unwrap_or(bytes.len());
    &bytes[start..]
}
