//! Documents from protobuf and as protobuf.
//!
//! Typed clients of Kubernetes speak of built-in kinds in protobuf. A body is decoded to the JSON
//! that the same client would have sent instead: what upstream's structs leave out when empty is left
//! out, what they write as zero or `null` is written so. The table of facts drives a small reader
//! of the wire format; there is no generated code.
//!
//! Bodies come from outside. Depth and the number of messages are limited, and bytes that are not
//! a message are an error that says where.

mod complete;
mod encode;
mod message;
mod put;
mod repeats;
mod special;
mod wire;

use std::borrow::Cow;
use std::fmt;

use windlass_core::{Doc, Gvk, Prune, PruneNode, Str};

use crate::table::{Atlas, Type};
pub use complete::{EncodeError, ObjectEncoder, write_protobuf_event};
pub use encode::ProtobufEncoder;
use message::Decoder;
use wire::{Reader, Value};

/// The bytes that every protobuf body starts with.
pub const PROTOBUF_PREFIX: [u8; 4] = *b"k8s\0";

/// The number of messages that one body may hold. A message of two bytes on the wire can be an
/// object of hundreds in JSON, so the length of the body alone does not bound the result.
pub const MESSAGES_LIMIT: usize = 1 << 20;

/// An object decoded from protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The kind that the body says it holds.
    pub gvk: Gvk,
    /// The object, with `apiVersion` and `kind`.
    pub doc: Doc,
}

/// The reason why a protobuf body was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The body does not start with [`PROTOBUF_PREFIX`].
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix {PROTOBUF_PREFIX:?}"
    )]
    NotProtobuf,
    /// The body is empty after the prefix.
    #[error("empty body")]
    Empty,
    /// The body says no kind.
    #[error("Object 'Kind' is missing")]
    MissingKind,
    /// The body says no version.
    #[error("Object 'apiVersion' is missing")]
    MissingVersion,
    /// The `apiVersion` has more than one slash.
    #[error(transparent)]
    BadVersion(#[from] windlass_core::GroupVersionError),
    /// The kind is not a built-in one.
    #[error("no kind {:?} is registered for version {:?}", .0.kind(), .0.api_version())]
    UnknownKind(Gvk),
    /// A field that the table does not know, in a body in which nothing may be passed over.
    #[error("protobuf: {path}: field {number} is not known")]
    UnknownField {
        /// The message that the field is in; empty at the top.
        path: String,
        /// The number of the field.
        number: u32,
    },
    /// An object inside of another, in a body in which nothing may be passed over: in protobuf it
    /// does not say its kind, as the claims of a StatefulSet do in JSON.
    #[error("protobuf: {path}: an object inside does not say its kind")]
    KindInside {
        /// The path of the field.
        path: String,
    },
    /// The bytes are not a message of that kind.
    #[error("protobuf: {}{fault}", if .path.is_empty() { String::new() } else { format!("{path}: ") })]
    Corrupt {
        /// The field the fault is in; empty at the top.
        path: String,
        /// The problem.
        fault: String,
    },
}

impl ProtobufError {
    pub(crate) fn corrupt(fault: impl Into<String>) -> Self {
        Self::Corrupt {
            path: String::new(),
            fault: fault.into(),
        }
    }

    pub(crate) fn unknown(number: u32) -> Self {
        Self::UnknownField {
            path: String::new(),
            number,
        }
    }

    /// This error, seen from the message that has the field it is in.
    pub(crate) fn inside(mut self, field: &str) -> Self {
        if let Self::Corrupt { path, .. }
        | Self::UnknownField { path, .. }
        | Self::KindInside { path } = &mut self
        {
            if !path.is_empty() {
                path.insert(0, '.');
            }
            path.insert_str(0, field);
        }
        self
    }
}

/// Decodes a body of type `application/vnd.kubernetes.protobuf`.
pub fn decode_protobuf(body: &[u8]) -> Result<Decoded, ProtobufError> {
    let envelope = Envelope::read(body)?;
    let (api_version, kind) = envelope.kind()?;
    decode_object(envelope.raw, Gvk::parse(&api_version, &kind)?)
}

/// As [`decode_protobuf`], for a body that may leave out its kind or version because the endpoint
/// implies them.
pub fn decode_protobuf_as(body: &[u8], implied: &Gvk) -> Result<Decoded, ProtobufError> {
    let envelope = Envelope::read(body)?;
    let or_implied = |said: Cow<'_, str>, implied: &str| {
        if said.is_empty() {
            implied.to_owned()
        } else {
            said.into_owned()
        }
    };
    let (api_version, kind) = envelope.kind()?;
    let kind = or_implied(kind, implied.kind());
    let api_version = or_implied(api_version, &implied.api_version());
    decode_object(envelope.raw, Gvk::parse(&api_version, &kind)?)
}

/// Decodes many objects of one kind, such as those of a watch.
///
/// It memoizes the values of fields near the root of the objects, such as the spec of the pods of
/// one template, up to a limit.
pub struct ProtobufDecoder {
    decoder: Decoder,
    prune: Prune,
    /// The type metadata of the last body, and its kind.
    last: Option<(Vec<u8>, Known)>,
    /// The kind of the last item of a list.
    item: Option<Known>,
}

impl ProtobufDecoder {
    /// A decoder that passes over these paths, and over what the table does not know.
    #[must_use]
    pub fn new(prune: Prune) -> Self {
        Self {
            decoder: Decoder::new().remembering(),
            prune,
            last: None,
            item: None,
        }
    }

    /// The same for objects that may be written back: a field that the table does not know is an
    /// error, because it would be lost.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.decoder = self.decoder.strict();
        self
    }

    /// Decodes an item of a list of a kind: it has no envelope.
    pub fn decode_item(&mut self, gvk: &Gvk, raw: &[u8]) -> Result<Doc, ProtobufError> {
        let known = match &mut self.item {
            Some(known) if known.gvk == *gvk => known,
            item => item.insert(Known::find(gvk.clone())?),
        };
        known.decode(&mut self.decoder, raw, self.prune.root())
    }

    /// Decodes one body.
    pub fn decode(&mut self, body: &[u8]) -> Result<Doc, ProtobufError> {
        let envelope = Envelope::read(body)?;
        let known = match &mut self.last {
            Some((said, known)) if *said == envelope.said => known,
            last => {
                let (api_version, kind) = envelope.kind()?;
                let known = Known::find(Gvk::parse(&api_version, &kind)?)?;
                &mut last.insert((envelope.said.to_vec(), known)).1
            }
        };
        known.decode(&mut self.decoder, envelope.raw, self.prune.root())
    }
}

impl fmt::Debug for ProtobufDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtobufDecoder")
            .field("prune", &self.prune)
            .field("repeats", &self.decoder.repeats())
            .finish()
    }
}

/// The type and the body of the object in an event of a watch. These have no envelope.
pub fn protobuf_event(frame: &[u8]) -> Result<(&[u8], &[u8]), ProtobufError> {
    let (mut sort, mut object): (&[u8], &[u8]) = (&[], &[]);
    let mut reader = Reader::new(frame);
    while let Some((number, value)) = reader.next()? {
        match number {
            1 => sort = value.bytes()?,
            2 => object = special::raw(value.bytes()?)?,
            _ => {}
        }
    }
    Ok((sort, object))
}

/// The `apiVersion` and the kind in the message of an envelope that names them.
pub fn protobuf_kind(said: &[u8]) -> Result<(String, String), ProtobufError> {
    let envelope = Envelope { said, raw: &[] };
    let (api_version, kind) = envelope.kind()?;
    Ok((api_version.into_owned(), kind.into_owned()))
}

/// The metadata of a list, from its message.
pub fn protobuf_list_metadata(raw: &[u8]) -> Result<Doc, ProtobufError> {
    let of = Atlas::named("meta/v1", "ListMeta")
        .expect("invariant: the table has the metadata of lists");
    let fields = Decoder::new().object(of, raw, MESSAGES_LIMIT, None)?;
    Ok(windlass_core::Object::new(fields).into())
}

fn decode_object(raw: &[u8], gvk: Gvk) -> Result<Decoded, ProtobufError> {
    let known = Known::find(gvk)?;
    let doc = known.decode(&mut Decoder::new(), raw, None)?;
    Ok(Decoded {
        gvk: known.gvk,
        doc,
    })
}

/// A built-in kind.
struct Known {
    gvk: Gvk,
    of: &'static Type,
    /// The first fields of its objects, `apiVersion` and `kind`; empty for types that have none.
    head: Vec<(Str, Doc)>,
}

impl Known {
    fn find(gvk: Gvk) -> Result<Self, ProtobufError> {
        if gvk.kind().is_empty() {
            return Err(ProtobufError::MissingKind);
        }
        if gvk.version().is_empty() {
            return Err(ProtobufError::MissingVersion);
        }
        let Some(of) = Atlas::kind(&gvk) else {
            return Err(ProtobufError::UnknownKind(gvk));
        };
        let head = match of.field("apiVersion") {
            Some(_) => vec![
                (Str::new("apiVersion"), gvk.api_version().into()),
                (Str::new("kind"), gvk.kind().into()),
            ],
            None => Vec::new(),
        };
        Ok(Self { gvk, of, head })
    }

    fn decode(
        &self,
        decoder: &mut Decoder,
        raw: &[u8],
        prune: Option<&PruneNode>,
    ) -> Result<Doc, ProtobufError> {
        let mut fields = decoder.object(self.of, raw, MESSAGES_LIMIT, prune)?;
        fields.extend_from_slice(&self.head);
        Ok(windlass_core::Object::new(fields).into())
    }
}

/// The envelope of every object, upstream's `runtime.Unknown`: its kind and its bytes.
struct Envelope<'a> {
    /// The kind, as a message.
    said: &'a [u8],
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, ProtobufError> {
        let inner = body
            .strip_prefix(&PROTOBUF_PREFIX)
            .ok_or(ProtobufError::NotProtobuf)?;
        if inner.is_empty() {
            return Err(ProtobufError::Empty);
        }
        let mut envelope = Self {
            said: &[],
            raw: &[],
        };
        let mut reader = Reader::new(inner);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (1, value) => envelope.said = value.bytes()?,
                (2, value) => envelope.raw = value.bytes()?,
                // The encoding: of those there are, only "none" is for objects.
                (3, value) if !value.bytes()?.is_empty() => {
                    return Err(ProtobufError::corrupt("encoded content is not supported"));
                }
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// The version and the kind, empty where they are not said.
    fn kind(&self) -> Result<(Cow<'a, str>, Cow<'a, str>), ProtobufError> {
        let (mut api_version, mut kind) = (Cow::Borrowed(""), Cow::Borrowed(""));
        let mut reader = Reader::new(self.said);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (1, Value::Bytes(text)) => api_version = special::text(text),
                (2, Value::Bytes(text)) => kind = special::text(text),
                _ => {}
            }
        }
        Ok((api_version, kind))
    }
}

#[cfg(test)]
mod tests;
