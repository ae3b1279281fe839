//! Errors of the JSON parser, with their position.

use std::fmt;

use crate::doc::{Path, Segment};

/// A document that could not be parsed: what is wrong, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseError(Box<Place>);

#[derive(Clone, PartialEq, Eq)]
struct Place {
    kind: ParseErrorKind,
    offset: usize,
    line: usize,
    column: usize,
    path: Path,
}

/// The reason why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// Something else stands where this was expected.
    Expected(&'static str),
    /// After the document comes more text.
    TrailingText,
    /// The text is not UTF-8.
    Utf8,
    /// A string holds a control character that must be escaped.
    ControlCharacter,
    /// A backslash is followed by something that is not an escape.
    Escape,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// A number that does not follow the grammar.
    Number,
    /// An integer below `i64::MIN` or above `u64::MAX`, or a float past the finite ones.
    NumberRange,
    /// A key that comes twice.
    DuplicateKey,
    /// Deeper nesting than the limit.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A longer document than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl ParseError {
    #[cold]
    pub(super) fn new(kind: ParseErrorKind, offset: usize, json: &[u8]) -> Self {
        let before = &json[..offset.min(json.len())];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = 1 + before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Self(Box::new(Place {
            kind,
            offset,
            line,
            column,
            path: Path::root(),
        }))
    }

    /// Adds a segment to the path of the error; called from the innermost container outwards.
    #[cold]
    pub(super) fn inside(mut self, segment: Segment) -> Self {
        self.0.path.push(segment);
        self
    }

    /// Turns the collected steps into the right order, once, at the root.
    #[cold]
    pub(super) fn finish(mut self) -> Self {
        self.0.path = std::mem::take(&mut self.0.path).reversed();
        self
    }

    /// The reason.
    #[must_use]
    pub fn kind(&self) -> &ParseErrorKind {
        &self.0.kind
    }

    /// The value in which it is wrong.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The byte at which it is wrong.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The line, counted from one.
    #[must_use]
    pub fn line(&self) -> usize {
        self.0.line
    }

    /// The byte in that line, counted from one.
    #[must_use]
    pub fn column(&self) -> usize {
        self.0.column
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedEnd => f.write_str("unexpected end of text"),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::TrailingText => f.write_str("more text after the document"),
            Self::Utf8 => f.write_str("invalid UTF-8"),
            Self::ControlCharacter => f.write_str("control character in a string"),
            Self::Escape => f.write_str("invalid escape in a string"),
            Self::LoneSurrogate => f.write_str("half a surrogate pair in a string"),
            Self::Number => f.write_str("invalid number"),
            Self::NumberRange => f.write_str("number out of range"),
            Self::DuplicateKey => f.write_str("duplicate key"),
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::TooLong { limit } => write!(f, "longer than {limit} bytes"),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            kind,
            line,
            column,
            path,
            ..
        } = &*self.0;
        write!(f, "invalid JSON at line {line}, column {column}")?;
        if !path.segments().is_empty() {
            write!(f, " (in {path})")?;
        }
        write!(f, ": {kind}")
    }
}

impl fmt::Debug for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseError({self})")
    }
}

impl std::error::Error for ParseError {}
