//! The items of a list, while the list is still arriving.

use bytes::{Buf, Bytes};
use windlass_core::{Doc, Object, ParseOptions, Parser, Prune};

use super::key::key_of;
use super::scan::{ValueScan, is_space};
use super::{DecodeError, ITEM_BYTES_LIMIT, Undecodable};
use crate::Status;

/// Capacity that is kept from one item to the next; a single huge item shall not stay in memory.
const CARRY_BYTES_KEPT: usize = 1 << 20;

/// Everything about a list besides its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListHead {
    /// The `apiVersion` of the list.
    pub api_version: String,
    /// The `kind` of the list, such as `PodList`.
    pub kind: String,
    /// The `metadata` of the list.
    pub metadata: Doc,
}

impl ListHead {
    /// The state that the list shows.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.metadata.str_at("/resourceVersion")
    }

    /// The continue token of the next page; empty on the last one.
    #[must_use]
    pub fn continue_token(&self) -> &str {
        self.metadata.str_at("/continue")
    }

    /// Makes this the head of a list that has been read to its end.
    pub(crate) fn forget_pages(&mut self) {
        if let Some(fields) = self.metadata.as_object() {
            self.metadata = fields
                .without("continue")
                .without("remainingItemCount")
                .into();
        }
    }

    /// The number of items on later pages, if the server says.
    #[must_use]
    pub fn remaining(&self) -> Option<i64> {
        self.metadata.at("/remainingItemCount").as_i64()
    }
}

/// Cuts the items out of the body of a list and decodes each by itself.
///
/// The API server leaves out `apiVersion` and `kind` in the items of built-in kinds, but not in
/// watch events. They are put back here, so that an object is the same document either way.
#[derive(Debug)]
pub struct ListDecoder {
    parser: Parser,
    /// The bytes that were not looked at yet.
    chunk: Bytes,
    /// The start of a value whose end has not come yet. Bounded by `bytes_limit`.
    carry: Vec<u8>,
    scan: ValueScan,
    state: State,
    head: ListHead,
    /// `apiVersion` and `kind` of each item, once the list has told its own.
    item_type: Option<(Doc, Doc)>,
    /// The fields of a body that turns out to be a `Status`.
    other: Object,
    bytes_limit: usize,
    /// Bytes pushed so far; minus the rest of the chunk this is where we are.
    bytes: u64,
}

/// The state of the decoder: the token that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    KeyOrClose,
    Key,
    Colon(Field),
    Value(Field),
    AfterValue,
    ItemOrClose,
    Item,
    AfterItem,
    End,
}

/// The fields of a list that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    ApiVersion,
    Kind,
    Metadata,
    Items,
    /// Only a `Status` has these: `message`, `reason`, `code`, `details`, `status`.
    Status(&'static str),
    Skipped,
}

/// One item, or what was wrong with it.
pub(crate) type Item = Result<Doc, Undecodable>;

impl ListDecoder {
    /// A decoder that skips these paths in each item.
    #[must_use]
    pub fn new(prune: Prune) -> Self {
        Self::with_limit(prune, ITEM_BYTES_LIMIT)
    }

    /// A decoder with its own limit on the length of an item.
    #[must_use]
    pub fn with_limit(prune: Prune, bytes_limit: usize) -> Self {
        Self {
            parser: Parser::new(ParseOptions::pruning(prune)),
            chunk: Bytes::new(),
            carry: Vec::new(),
            scan: ValueScan::default(),
            state: State::Open,
            head: ListHead::default(),
            item_type: None,
            other: Object::empty(),
            bytes_limit,
            bytes: 0,
        }
    }

    /// Takes the next bytes of the body. The bytes before must have been used up: that is when
    /// [`Self::next_item`] returns `None`.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the chunk before is used up");
        self.bytes += chunk.len() as u64;
        self.chunk = chunk;
    }

    /// The metadata of the list; complete when the body is.
    #[must_use]
    pub fn head(&self) -> &ListHead {
        &self.head
    }

    /// The next item among the bytes pushed so far; `None` when more bytes are needed.
    pub fn next_item(&mut self) -> Result<Option<Item>, DecodeError> {
        loop {
            if self.is_at_token() {
                self.skip_space();
            }
            if self.chunk.is_empty() {
                return Ok(None);
            }
            if let Some(item) = self.step()? {
                return Ok(Some(item));
            }
        }
    }

    /// Checks that the body was complete.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        if self.state != State::End {
            return Err(DecodeError::Cut { bytes: self.bytes });
        }
        if self.head.kind == "Status" {
            let status = Doc::from(self.other.clone()).decode::<Status>();
            return Err(DecodeError::Status(Box::new(status.unwrap_or_default())));
        }
        Ok(())
    }

    /// Returns true if the next byte begins a token, so that spaces before it mean nothing.
    fn is_at_token(&self) -> bool {
        let in_value = matches!(self.state, State::Key | State::Value(_) | State::Item);
        !in_value || self.carry.is_empty()
    }

    fn skip_space(&mut self) {
        let spaces = self
            .chunk
            .iter()
            .position(|b| !is_space(*b))
            .unwrap_or(self.chunk.len());
        self.chunk.advance(spaces);
    }

    /// Takes one token or value, or as much of it as has come.
    fn step(&mut self) -> Result<Option<Item>, DecodeError> {
        match self.state {
            State::Open => self.token(&[(b'{', State::KeyOrClose)], "a JSON object")?,
            State::KeyOrClose if self.chunk[0] == b'}' => self.take(State::End),
            State::KeyOrClose | State::Key => self.key()?,
            State::Colon(field) => self.token(&[(b':', State::Value(field))], "\":\"")?,
            State::Value(Field::Items) if self.carry.is_empty() && self.chunk[0] == b'[' => {
                self.take(State::ItemOrClose);
            }
            State::Value(field) => self.value(field)?,
            State::AfterValue => {
                self.token(&[(b',', State::Key), (b'}', State::End)], "\",\" or \"}\"")?;
            }
            State::ItemOrClose if self.chunk[0] == b']' => self.take(State::AfterValue),
            State::ItemOrClose | State::Item => return self.item(),
            State::AfterItem => {
                self.token(
                    &[(b',', State::Item), (b']', State::AfterValue)],
                    "\",\" or \"]\"",
                )?;
            }
            State::End => return Err(self.unexpected("nothing after the list")),
        }
        Ok(None)
    }

    fn take(&mut self, next: State) {
        self.chunk.advance(1);
        self.state = next;
    }

    fn token(
        &mut self,
        allowed: &[(u8, State)],
        expected: &'static str,
    ) -> Result<(), DecodeError> {
        match allowed.iter().find(|(byte, _)| *byte == self.chunk[0]) {
            Some((_, next)) => self.take(*next),
            None => return Err(self.unexpected(expected)),
        }
        Ok(())
    }

    fn key(&mut self) -> Result<(), DecodeError> {
        self.state = State::Key;
        if self.carry.is_empty() && self.chunk[0] != b'"' {
            return Err(self.unexpected("a key"));
        }
        let found = self.captured(|_, key| Field::of(key))?;
        if let Some(field) = found {
            self.state = State::Colon(field);
        }
        Ok(())
    }

    fn value(&mut self, field: Field) -> Result<(), DecodeError> {
        let parsed = self.captured(|_, bytes| match field {
            // A `null` where the items should be is what Go writes for an empty list.
            Field::Skipped => Ok(Doc::NULL),
            _ => Doc::parse(bytes),
        })?;
        let Some(parsed) = parsed else {
            return Ok(());
        };
        let value = parsed.map_err(DecodeError::Parse)?;
        match field {
            Field::ApiVersion => value
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut self.head.api_version),
            Field::Kind => value
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut self.head.kind),
            Field::Metadata => self.head.metadata = value,
            Field::Status(name) => self.other = self.other.with(name, value),
            Field::Items if !value.is_null() => return Err(self.unexpected("an array of items")),
            Field::Items | Field::Skipped => {}
        }
        self.item_type = item_type(&self.head);
        self.state = State::AfterValue;
        Ok(())
    }

    fn item(&mut self) -> Result<Option<Item>, DecodeError> {
        self.state = State::Item;
        let parsed = self.captured(|parser, bytes| match parser.parse(bytes) {
            Ok(parsed) => Ok(parsed.doc),
            Err(error) => Err(Undecodable {
                key: key_of(bytes),
                error: error.into(),
            }),
        })?;
        let Some(parsed) = parsed else {
            return Ok(None);
        };
        self.state = State::AfterItem;
        Ok(Some(parsed.map(|doc| self.typed(doc))))
    }

    /// Gives a whole value to `read`, or keeps what has come of it and returns `None`.
    fn captured<T>(
        &mut self,
        read: impl FnOnce(&mut Parser, &[u8]) -> T,
    ) -> Result<Option<T>, DecodeError> {
        let end = self.scan.advance(&self.chunk);
        let piece = end.unwrap_or(self.chunk.len());
        if self.carry.len() + piece > self.bytes_limit {
            return Err(DecodeError::TooLong {
                limit: self.bytes_limit,
            });
        }
        if end.is_none() {
            self.carry.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        }
        let value = if self.carry.is_empty() {
            read(&mut self.parser, &self.chunk[..piece])
        } else {
            self.carry.extend_from_slice(&self.chunk[..piece]);
            read(&mut self.parser, &self.carry)
        };
        self.chunk.advance(piece);
        self.carry.clear();
        self.carry.shrink_to(CARRY_BYTES_KEPT);
        self.scan = ValueScan::default();
        Ok(Some(value))
    }

    /// Puts back what the server leaves out of each item.
    fn typed(&self, item: Doc) -> Doc {
        let (Some((api_version, kind)), Some(object)) = (&self.item_type, item.as_object()) else {
            return item;
        };
        if object.contains_key("kind") {
            return item;
        }
        object
            .with("apiVersion", api_version.clone())
            .with("kind", kind.clone())
            .into()
    }

    fn unexpected(&self, expected: &'static str) -> DecodeError {
        DecodeError::Unexpected {
            expected,
            at: self.bytes - self.chunk.len() as u64,
        }
    }
}

impl Field {
    fn of(key: &[u8]) -> Self {
        match key {
            b"\"apiVersion\"" => Self::ApiVersion,
            b"\"kind\"" => Self::Kind,
            b"\"metadata\"" => Self::Metadata,
            b"\"items\"" => Self::Items,
            b"\"status\"" => Self::Status("status"),
            b"\"message\"" => Self::Status("message"),
            b"\"reason\"" => Self::Status("reason"),
            b"\"details\"" => Self::Status("details"),
            b"\"code\"" => Self::Status("code"),
            _ => Self::Skipped,
        }
    }
}

/// The type of the items of a `PodList`. Items of a generic `List` carry their type themselves.
fn item_type(head: &ListHead) -> Option<(Doc, Doc)> {
    let kind = head
        .kind
        .strip_suffix("List")
        .filter(|kind| !kind.is_empty())?;
    let is_known = !head.api_version.is_empty();
    is_known.then(|| (Doc::from(&*head.api_version), Doc::from(kind)))
}
