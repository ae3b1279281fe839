//! Mutations of inputs: of bytes, of tokens, and of JSON trees.

use serde_json::{Map, Value};
use windlass_core::Env;

use crate::SEPARATOR;

/// The longest input that the driver makes, in bytes.
pub const LEN_MAX: usize = 16 << 10;

/// Mutations of one input at most.
const STEPS_MAX: u64 = 6;
/// How deep a mutation nests a value at most.
const NESTING_MAX: u64 = 40;
/// How often a piece of an input is repeated at most.
const REPEATS_MAX: u64 = 64;

/// Tokens that mean something to most parsers.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "1e400",
    "1e-400",
    "0.1",
    "1.0",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "\u{1e}",
    "\n",
    "\r\n",
    "\t",
    " ",
    "---\n",
    "- ",
    "a: ",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "|\n",
    ">-\n",
    "? ",
    "#",
    "metadata",
    "spec",
    "name",
    "a",
    "b",
    "\u{0}",
    "\u{7f}",
    "é",
    "\u{feff}",
    "😀",
    "\u{2028}",
    "~0",
    "~1",
    "/",
    "..",
    ".",
    "-",
    "%",
    "%2F",
    "%00",
    "%ff",
    "&",
    "=",
    "!",
    "(",
    ")",
    "*",
    "$",
];

/// Makes inputs from seeds. The same seed gives the same inputs.
#[derive(Debug)]
pub struct Mutator {
    env: Env,
    words: &'static [&'static str],
}

impl Mutator {
    /// A mutator with the words of a target besides the common tokens.
    #[must_use]
    pub fn new(seed: u64, words: &'static [&'static str]) -> Self {
        let env = Env::seeded(seed);
        Self { env, words }
    }

    /// A number below a bound, which is at least 1.
    #[must_use]
    pub fn below(&self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.env.random_below(bound)).unwrap_or(0)
    }

    /// The next input: one of the pool after some mutations.
    #[must_use]
    pub fn next(&self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.pick(pool).cloned().unwrap_or_default();
        for _ in 0..=self.env.random_below(STEPS_MAX) {
            self.step(&mut input, pool);
            input.truncate(LEN_MAX);
        }
        input
    }

    fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    fn token(&self) -> &'static str {
        let own = self.words.len();
        // Half of the tokens are the target's own.
        let words = if own > 0 && self.below(2) == 0 {
            self.words
        } else {
            TOKENS
        };
        self.pick(words).copied().unwrap_or_default()
    }

    fn step(&self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        match self.below(12) {
            0 => self.flip(input),
            1 => self.overwrite(input),
            2 => drop(input.drain(self.range(input))),
            3 => self.repeat(input),
            4 => self.insert(input, self.token().as_bytes()),
            5 => self.replace(input),
            6 => self.splice(input, pool),
            7 => self.number(input),
            _ => self.tree(input, pool),
        }
    }

    /// A range inside of a text, mostly a short one.
    fn range(&self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len() + 1);
        let longest = if self.below(4) == 0 { input.len() } else { 8 };
        let end = start + self.below(longest + 1);
        start..end.min(input.len())
    }

    fn flip(&self, input: &mut [u8]) {
        let at = self.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << self.below(8);
        }
    }

    fn overwrite(&self, input: &mut [u8]) {
        let at = self.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte = self.env.random_below(256).to_le_bytes()[0];
        }
    }

    fn insert(&self, input: &mut Vec<u8>, bytes: &[u8]) {
        let at = self.below(input.len() + 1);
        input.splice(at..at, bytes.iter().copied());
    }

    fn replace(&self, input: &mut Vec<u8>) {
        let range = self.range(input);
        input.splice(range, self.token().bytes());
    }

    /// Repeats a piece of the input where it stands.
    fn repeat(&self, input: &mut Vec<u8>) {
        let range = self.range(input);
        let times = 1 + self.below(usize::try_from(REPEATS_MAX).unwrap_or(1));
        let room = LEN_MAX.saturating_sub(input.len()) / range.len().max(1);
        let piece = input[range.clone()].repeat(times.min(room));
        input.splice(range.end..range.end, piece);
    }

    /// Puts a piece of another input into this one.
    fn splice(&self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let Some(other) = self.pick(pool) else {
            return;
        };
        let piece = other[self.range(other)].to_vec();
        if self.below(2) == 0 {
            input.splice(self.range(input), piece);
        } else {
            self.insert(input, &piece);
        }
    }

    /// Replaces a run of digits.
    fn number(&self, input: &mut Vec<u8>) {
        let from = self.below(input.len());
        let Some(start) = input[from..].iter().position(u8::is_ascii_digit) else {
            return;
        };
        let start = from + start;
        let digits = input[start..].iter().take_while(|b| b.is_ascii_digit());
        let end = start + digits.count();
        let numbers = [
            "0",
            "1",
            "00",
            "-1",
            "2147483648",
            "4294967296",
            "1000000000000000000000",
        ];
        let number = self.pick(&numbers).copied().unwrap_or("0");
        input.splice(start..end, number.bytes());
    }

    /// Mutates one part of the input as a JSON tree, if it is one.
    fn tree(&self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let mut pieces: Vec<Vec<u8>> = split(input);
        let at = self.below(pieces.len());
        let Ok(mut tree) = serde_json::from_slice::<Value>(&pieces[at]) else {
            return;
        };
        let other = self.pick(pool).and_then(|other| {
            let pieces = split(other);
            serde_json::from_slice(self.pick(&pieces)?).ok()
        });
        let nodes = count(&tree);
        let mut left = self.below(nodes);
        if let Some(node) = nth(&mut tree, &mut left) {
            self.change(node, &other.unwrap_or(Value::Null));
        }
        let Ok(text) = serde_json::to_vec(&tree) else {
            return;
        };
        if text.len() <= LEN_MAX {
            pieces[at] = text;
            *input = pieces.join(&SEPARATOR);
        }
    }

    fn change(&self, node: &mut Value, other: &Value) {
        match self.below(8) {
            0 => *node = self.leaf(),
            1 => *node = other.clone(),
            2 => {
                let mut inner = other.clone();
                let mut left = self.below(count(other));
                if let Some(part) = nth(&mut inner, &mut left) {
                    *node = part.take();
                }
            }
            3 => self.nest(node),
            4 => self.drop_child(node),
            5 => self.add_child(node, other.clone()),
            6 => self.add_child(node, self.leaf()),
            _ => self.rename_child(node),
        }
    }

    fn leaf(&self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(-1),
            3 => Value::from(i64::try_from(self.below(5)).unwrap_or(0)),
            4 => Value::from(0.5),
            5 => Value::Object(Map::new()),
            6 => Value::Array(Vec::new()),
            _ => Value::from(self.token()),
        }
    }

    fn nest(&self, node: &mut Value) {
        for _ in 0..=self.env.random_below(NESTING_MAX) {
            let inner = node.take();
            *node = if self.below(2) == 0 {
                Value::Array(vec![inner])
            } else {
                Value::Object(Map::from_iter([(self.token().to_owned(), inner)]))
            };
        }
    }

    fn drop_child(&self, node: &mut Value) {
        match node {
            Value::Array(items) if !items.is_empty() => drop(items.remove(self.below(items.len()))),
            Value::Object(fields) => {
                let key = fields.keys().nth(self.below(fields.len())).cloned();
                key.and_then(|key| fields.remove(&key));
            }
            _ => *node = Value::Null,
        }
    }

    fn add_child(&self, node: &mut Value, child: Value) {
        match node {
            Value::Array(items) => items.insert(self.below(items.len() + 1), child),
            Value::Object(fields) => drop(fields.insert(self.token().to_owned(), child)),
            _ => *node = child,
        }
    }

    fn rename_child(&self, node: &mut Value) {
        match node {
            Value::Object(fields) => {
                let key = fields.keys().nth(self.below(fields.len())).cloned();
                if let Some(value) = key.and_then(|key| fields.remove(&key)) {
                    fields.insert(self.token().to_owned(), value);
                }
            }
            Value::Array(items) if items.len() > 1 => {
                let (one, two) = (self.below(items.len()), self.below(items.len()));
                items.swap(one, two);
            }
            Value::String(text) => text.push_str(self.token()),
            _ => *node = self.leaf(),
        }
    }
}

fn split(input: &[u8]) -> Vec<Vec<u8>> {
    let pieces = input.split(|byte| *byte == SEPARATOR);
    pieces.map(<[u8]>::to_vec).collect()
}

fn count(tree: &Value) -> usize {
    match tree {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// The node with this number in order of the text.
fn nth<'a>(tree: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(tree);
    }
    *left -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, left)),
        _ => None,
    }
}
