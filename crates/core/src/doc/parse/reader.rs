//! The JSON grammar.

use std::borrow::Cow;

use super::prune::PruneNode;
use super::{DUPLICATES_LIMIT, Duplicates, ParseError, ParseErrorKind, Parsed, Parser};
use crate::doc::short::ShortStr;
use crate::doc::{Array, Doc, Path, Repr, Segment};

type Result<T> = std::result::Result<T, ParseError>;

/// Reads one document from a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The next byte to read.
    at: usize,
    depth: usize,
    parser: &'a mut Parser,
    duplicates: Vec<Path>,
}

/// The depth to which values are memoized as a whole.
const REPEATS_DEPTH: usize = 2;

/// Bytes that end the plain part of a string: quote, backslash, control characters.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        stops[byte] = true;
        byte += 1;
    }
    stops[b'"' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, parser: &'a mut Parser) -> Self {
        let bytes = text.as_bytes();
        Self {
            text,
            bytes,
            at: 0,
            depth: 0,
            parser,
            duplicates: Vec::new(),
        }
    }

    pub(super) fn document(mut self) -> Result<Parsed> {
        // The tree is only borrowed for the walk; cloning its `Arc` ends the loan of the parser.
        let prune = self.parser.options.prune.clone();
        self.value(prune.root()).map_err(ParseError::finish)?;
        self.skip_space();
        if self.at < self.bytes.len() {
            return Err(self.error(ParseErrorKind::TrailingText));
        }
        let doc = self.parser.values.pop().unwrap_or_default();
        let duplicates = self.duplicates.into_iter().map(Path::reversed).collect();
        Ok(Parsed { doc, duplicates })
    }

    /// Reads a value and puts it last among the values. It is made where it stays: to hand it out
    /// and put it there would cost a good part of reading it.
    fn value(&mut self, prune: Option<&PruneNode>) -> Result<()> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                let Parser { memo, values, .. } = &mut *self.parser;
                match ShortStr::new(&text) {
                    Some(short) => values.push(Doc(Repr::Short(short))),
                    None => values.push(Doc(Repr::Str(memo.long_string(&text)))),
                }
                Ok(())
            }
            Some(b'{') => self.nested(|reader| reader.object(prune)),
            Some(b'[') => self.nested(|reader| reader.array(prune.and_then(PruneNode::item))),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Doc::from(true)),
            Some(b'f') => self.word("false", Doc::from(false)),
            Some(b'n') => self.word("null", Doc::NULL),
            Some(_) => Err(self.error(ParseErrorKind::Expected("a value"))),
            None => Err(self.error(ParseErrorKind::UnexpectedEnd)),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let limit = self.parser.options.depth_limit;
        if self.depth >= limit {
            return Err(self.error(ParseErrorKind::TooDeep { limit }));
        }
        self.depth += 1;
        self.at += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self, prune: Option<&PruneNode>) -> Result<()> {
        let start = self.parser.values.len();
        let mut index = 0;
        while self.has_next(b']', index > 0, "\",\" or \"]\"")? {
            if prune.is_some_and(PruneNode::is_pruned) {
                self.skip_value()?;
            } else {
                let reported = self.duplicates.len();
                self.value(prune)
                    .map_err(|error| error.inside(Segment::Index(index)))?;
                self.locate_duplicates(reported, || Segment::Index(index));
            }
            index += 1;
        }
        let values = &mut self.parser.values;
        let array = Array::taking(&mut values[start..]);
        values.truncate(start);
        values.push(array.into());
        Ok(())
    }

    fn object(&mut self, prune: Option<&PruneNode>) -> Result<()> {
        let (first_value, first_key) = (self.parser.values.len(), self.parser.keys.len());
        let mut is_later = false;
        while self.has_next(b'}', is_later, "\",\" or \"}\"")? {
            self.field(prune)?;
            is_later = true;
        }
        let Parser {
            memo, values, keys, ..
        } = &mut *self.parser;
        let (object, repeated) = memo.object(&keys[first_key..], &mut values[first_value..]);
        values.truncate(first_value);
        values.push(object.into());
        keys.truncate(first_key);
        for number in repeated {
            self.report_duplicate(number)?;
        }
        Ok(())
    }

    /// Reads `"key": value` and pushes both, unless the field is pruned.
    #[inline]
    fn field(&mut self, prune: Option<&PruneNode>) -> Result<()> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("\":\""));
        }
        self.at += 1;
        let inner = prune.and_then(|prune| prune.field(&key));
        if inner.is_some_and(PruneNode::is_pruned) {
            return self.skip_field();
        }
        let number = self.parser.memo.key_number(&key);
        self.parser.keys.push(number);
        let reported = self.duplicates.len();
        self.field_value(number, inner)
            .map_err(|error| error.inside(Segment::Key(key.into_owned())))?;
        if self.duplicates.len() > reported {
            let key = self.parser.memo.key(number).as_str().to_owned();
            self.locate_duplicates(reported, || Segment::Key(key.clone()));
        }
        Ok(())
    }

    /// Reads the value of a field and puts it last. Near the root, objects of one kind often repeat
    /// whole parts of one before, such as the spec of pods of one template: these are compared
    /// instead of read.
    #[inline]
    fn field_value(&mut self, key: u32, prune: Option<&PruneNode>) -> Result<()> {
        self.skip_space();
        // Where something is pruned, the text alone does not say what it is read as.
        let is_plain = prune.is_none() && self.depth <= REPEATS_DEPTH;
        if !is_plain || !matches!(self.peek(), Some(b'{' | b'[')) {
            return self.value(prune);
        }
        let (start, depth, reported) = (self.at, self.depth, self.duplicates.len());
        if let Some((doc, length)) = self.parser.memo.repeated(key, depth, &self.bytes[start..]) {
            self.at += length;
            self.parser.values.push(doc);
            return Ok(());
        }
        self.value(None)?;
        let Parser { memo, values, .. } = &mut *self.parser;
        // A repeated key must be reported each time.
        if self.duplicates.len() == reported
            && let Some(doc) = values.last()
        {
            memo.remember_value(key, depth, &self.bytes[start..self.at], doc);
        }
        Ok(())
    }

    /// Passes over the value of a field. As with what is read, near the root it is often written
    /// as one before was, such as the managed fields of pods of one template.
    fn skip_field(&mut self) -> Result<()> {
        self.skip_space();
        let is_nested = matches!(self.peek(), Some(b'{' | b'['));
        if !is_nested || self.depth > REPEATS_DEPTH {
            return self.skip_value();
        }
        let start = self.at;
        let memo = &self.parser.memo;
        if let Some(length) = memo.skipped(self.depth, &self.bytes[start..]) {
            self.at += length;
            return Ok(());
        }
        self.skip_value()?;
        let text = &self.bytes[start..self.at];
        self.parser.memo.remember_skipped(self.depth, text);
        Ok(())
    }

    /// Adds a step to the paths of the repeated keys that were found inside one value.
    #[inline]
    fn locate_duplicates(&mut self, from: usize, segment: impl Fn() -> Segment) {
        for path in &mut self.duplicates[from..] {
            path.push(segment());
        }
    }

    #[cold]
    fn report_duplicate(&mut self, key: u32) -> Result<()> {
        let key = self.parser.memo.key(key).as_str().to_owned();
        match self.parser.options.duplicates {
            Duplicates::Reject => Err(self
                .error(ParseErrorKind::DuplicateKey)
                .inside(Segment::Key(key))),
            Duplicates::KeepLast => {
                if self.duplicates.len() < DUPLICATES_LIMIT {
                    self.duplicates.push(Path::root().key(&key));
                }
                Ok(())
            }
        }
    }

    /// Moves to the next element of a container, past a comma if it is not the first; false, past
    /// the closing bracket, at the end.
    #[inline]
    fn has_next(&mut self, close: u8, is_later: bool, expected: &'static str) -> Result<bool> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if is_later => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            Some(_) if !is_later => Ok(true),
            _ => Err(self.unexpected(expected)),
        }
    }

    /// The string whose opening quote comes next. Borrowed unless it holds an escape.
    #[inline]
    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at + 1;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|byte| STOPS[usize::from(*byte)]);
        self.at = start + length.unwrap_or(rest.len());
        match self.peek() {
            Some(b'"') => {
                let plain = &self.text[start..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(plain))
            }
            Some(b'\\') => self.escaped_string(start).map(Cow::Owned),
            Some(_) => Err(self.error(ParseErrorKind::ControlCharacter)),
            None => Err(self.error(ParseErrorKind::UnexpectedEnd)),
        }
    }

    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<String> {
        let mut text = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(byte) if byte < 0x20 => {
                    return Err(self.error(ParseErrorKind::ControlCharacter));
                }
                Some(_) => {
                    let rest = &self.bytes[self.at..];
                    let length = rest.iter().position(|byte| STOPS[usize::from(*byte)]);
                    let end = self.at + length.unwrap_or(rest.len());
                    text.push_str(&self.text[self.at..end]);
                    self.at = end;
                }
                None => return Err(self.error(ParseErrorKind::UnexpectedEnd)),
            }
        }
    }

    /// The character behind a backslash.
    fn escape(&mut self) -> Result<char> {
        let Some(byte) = self.peek() else {
            return Err(self.error(ParseErrorKind::UnexpectedEnd));
        };
        let plain = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.error(ParseErrorKind::Escape)),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let first = self.hex4()?;
        let code = match first {
            0xd800..=0xdbff => {
                if !self.bytes[self.at..].starts_with(b"\\u") {
                    return Err(self.error(ParseErrorKind::LoneSurrogate));
                }
                self.at += 2;
                let second = self.hex4()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.error(ParseErrorKind::LoneSurrogate));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.error(ParseErrorKind::LoneSurrogate))
    }

    fn hex4(&mut self) -> Result<u32> {
        let Some(digits) = self.bytes.get(self.at..self.at + 4) else {
            self.at = self.bytes.len();
            return Err(self.error(ParseErrorKind::UnexpectedEnd));
        };
        let code = digits.iter().try_fold(0, |code, digit| {
            char::from(*digit)
                .to_digit(16)
                .map(|value| code * 16 + value)
        });
        let code = code.ok_or_else(|| self.error(ParseErrorKind::Escape))?;
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first_digit = self.at;
        self.digits()?;
        if self.bytes[first_digit] == b'0' && self.at > first_digit + 1 {
            self.at = first_digit;
            return Err(self.error(ParseErrorKind::Number));
        }
        let mut is_integer = true;
        if self.peek() == Some(b'.') {
            is_integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        let doc = if is_integer {
            integer(text)
        } else {
            float(text)
        };
        let Some(doc) = doc else {
            self.at = start;
            return Err(self.error(ParseErrorKind::NumberRange));
        };
        self.parser.values.push(doc);
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.peek() {
            _ if self.at > start => Ok(()),
            None => Err(self.error(ParseErrorKind::UnexpectedEnd)),
            Some(_) => Err(self.error(ParseErrorKind::Number)),
        }
    }

    fn word(&mut self, word: &'static str, doc: Doc) -> Result<()> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            self.parser.values.push(doc);
            return Ok(());
        }
        Err(self.error(ParseErrorKind::Expected("a value")))
    }

    /// Passes over a value without looking at more than its brackets and quotes.
    fn skip_value(&mut self) -> Result<()> {
        self.skip_space();
        let base = self.depth;
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.error(ParseErrorKind::UnexpectedEnd));
            };
            match byte {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if self.depth > base => {
                    self.depth -= 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if self.depth == base => {
                    return Err(self.unexpected("a value"));
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                    self.at += 1;
                    continue;
                }
                _ => self.skip_scalar()?,
            }
            if self.depth == base {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        self.at += 1;
        while let Some(length) = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]) {
            self.at += length + 1;
            if self.bytes[self.at - 1] == b'"' {
                return Ok(());
            }
            self.at = (self.at + 1).min(self.bytes.len());
        }
        self.at = self.bytes.len();
        Err(self.error(ParseErrorKind::UnexpectedEnd))
    }

    fn skip_scalar(&mut self) -> Result<()> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.unexpected("a value"))
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn unexpected(&self, expected: &'static str) -> ParseError {
        self.error(match self.peek() {
            None => ParseErrorKind::UnexpectedEnd,
            Some(_) => ParseErrorKind::Expected(expected),
        })
    }

    #[cold]
    fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(kind, self.at, self.bytes)
    }
}

fn integer(text: &str) -> Option<Doc> {
    match text.parse::<i64>() {
        Ok(value) => Some(value.into()),
        Err(_) => text.parse::<u64>().ok().map(Doc::from),
    }
}

fn float(text: &str) -> Option<Doc> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Doc(Repr::Float(value)))
}
