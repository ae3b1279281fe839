//! Parsing JSON text into a [`Doc`], with pruning and limits.
//!
//! The grammar is read by hand rather than by serde, because three things must happen before
//! anything is allocated: pruned paths are skipped, keys are matched to known shapes, and text is
//! looked up among what is already interned.

mod error;
mod memo;
mod prune;
mod reader;

use std::cell::Cell;

use super::{Doc, Path};
use memo::Memo;
use reader::Reader;

pub use error::{ParseError, ParseErrorKind};
pub use prune::{Prune, PruneNode};

/// The depth to which arrays and objects may nest.
pub const DEPTH_LIMIT: usize = 256;

/// The length of the longest document.
pub const BYTES_LIMIT: usize = 64 << 20;

/// The number of repeated keys that are named. The rest is counted as one more error.
const DUPLICATES_LIMIT: usize = 64;

/// Buffers that grew for a document with more open values than this are not kept.
const SPARE_VALUES_LIMIT: usize = 4096;

thread_local! {
    /// The buffers of the document that this thread parsed last.
    static SPARE: Cell<Option<Parser>> = const { Cell::new(None) };
}

/// The treatment of a key that comes twice in one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// The document is refused.
    #[default]
    Reject,
    /// The last value wins, as in Go, and the path is listed in [`Parsed::duplicates`].
    KeepLast,
}

/// Limits and choices for parsing.
#[derive(Clone, Debug)]
pub struct ParseOptions {
    /// Paths that are skipped without being allocated.
    pub prune: Prune,
    /// The depth to which arrays and objects may nest.
    pub depth_limit: usize,
    /// The length of the longest document.
    pub bytes_limit: usize,
    /// The treatment of a key that comes twice.
    pub duplicates: Duplicates,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            prune: Prune::nothing(),
            depth_limit: DEPTH_LIMIT,
            bytes_limit: BYTES_LIMIT,
            duplicates: Duplicates::Reject,
        }
    }
}

impl ParseOptions {
    /// The default options with these paths skipped.
    #[must_use]
    pub fn pruning(prune: Prune) -> Self {
        Self {
            prune,
            ..Self::default()
        }
    }
}

/// A parsed document and what was noticed on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The document.
    pub doc: Doc,
    /// Keys that came twice, where the options let them pass; bounded.
    pub duplicates: Vec<Path>,
}

/// Parses many documents of similar shape.
///
/// It memoizes the last keys, shapes and strings, so that the next document of the same kind is
/// mostly look-ups in small local tables. The tables are bounded, and their entries stay interned
/// until the parser is dropped.
#[derive(Debug)]
pub struct Parser {
    options: ParseOptions,
    memo: Memo,
    /// Values of the containers that are open, innermost last. Empty between documents.
    values: Vec<Doc>,
    /// Keys of the objects that are open, as numbers in the memo. Empty between documents.
    keys: Vec<u32>,
}

impl Parser {
    /// A parser for a sequence of documents.
    #[must_use]
    pub fn new(options: ParseOptions) -> Self {
        Self {
            options,
            memo: Memo::remembering(),
            values: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Parses one document with the buffers that this thread used last. Only their capacity is kept
    /// from one document to the next: nothing stays interned.
    pub(super) fn parse_once(json: &[u8], options: &ParseOptions) -> Result<Parsed, ParseError> {
        let mut parser = SPARE.take().unwrap_or_else(|| Self {
            options: ParseOptions::default(),
            memo: Memo::forgetting(),
            values: Vec::new(),
            keys: Vec::new(),
        });
        parser.options = options.clone();
        let outcome = parser.parse(json);
        parser.memo.clear();
        if parser.values.capacity() <= SPARE_VALUES_LIMIT {
            SPARE.set(Some(parser));
        }
        outcome
    }

    /// Parses one document.
    pub fn parse(&mut self, json: &[u8]) -> Result<Parsed, ParseError> {
        if json.len() > self.options.bytes_limit {
            let kind = ParseErrorKind::TooLong {
                limit: self.options.bytes_limit,
            };
            return Err(ParseError::new(kind, self.options.bytes_limit, json));
        }
        let text = std::str::from_utf8(json)
            .map_err(|error| ParseError::new(ParseErrorKind::Utf8, error.valid_up_to(), json))?;
        self.memo.tidy();
        let outcome = Reader::new(text, self).document();
        self.values.clear();
        self.keys.clear();
        outcome
    }
}
