//! Protobuf request bodies as documents.
//!
//! Typed clients of Kubernetes send built-in kinds as protobuf. A body is decoded to the JSON that
//! the same client would have sent instead: what upstream's structs leave out when empty is left
//! out, what they write as zero or `null` is written so. The table of facts drives a small reader
//! of the wire format; there is no generated code.
//!
//! Bodies come from outside. Depth and the number of messages are limited, and bytes that are not
//! a message are an error that says where.

mod message;
mod special;
mod wire;

use windlass_core::{Doc, Gvk, Str};

use crate::table::Atlas;
use message::Decoder;
use wire::{Reader, Value};

/// The bytes that every protobuf body starts with.
pub const PROTOBUF_PREFIX: [u8; 4] = *b"k8s\0";

/// How many messages one body may hold. A message of two bytes on the wire can be an object of
/// hundreds in JSON, so the length of the body alone does not bound the result.
pub const MESSAGES_LIMIT: usize = 1 << 20;

/// An object decoded from protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The kind that the body says it holds.
    pub gvk: Gvk,
    /// The object, with `apiVersion` and `kind`.
    pub doc: Doc,
}

/// Why a protobuf body was refused.
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
    /// The bytes are not a message of that kind.
    #[error("protobuf: {}{fault}", if .path.is_empty() { String::new() } else { format!("{path}: ") })]
    Corrupt {
        /// The field the fault is in; empty at the top.
        path: String,
        /// What is wrong there.
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

    /// This error, seen from the message that has the field it is in.
    pub(crate) fn inside(self, field: &str) -> Self {
        match self {
            Self::Corrupt { path, fault } => Self::Corrupt {
                path: if path.is_empty() {
                    field.to_owned()
                } else {
                    format!("{field}.{path}")
                },
                fault,
            },
            other => other,
        }
    }
}

/// Decodes a body of type `application/vnd.kubernetes.protobuf`.
pub fn decode_protobuf(body: &[u8]) -> Result<Decoded, ProtobufError> {
    let envelope = Envelope::read(body)?;
    let gvk = Gvk::parse(&envelope.api_version, &envelope.kind)?;
    decode_object(envelope.raw, gvk)
}

/// As [`decode_protobuf`], for a body that may leave out its kind or version because the endpoint
/// implies them.
pub fn decode_protobuf_as(body: &[u8], implied: &Gvk) -> Result<Decoded, ProtobufError> {
    let envelope = Envelope::read(body)?;
    let or_implied = |said: String, implied: &str| {
        if said.is_empty() {
            implied.to_owned()
        } else {
            said
        }
    };
    let kind = or_implied(envelope.kind, implied.kind());
    let api_version = or_implied(envelope.api_version, &implied.api_version());
    decode_object(envelope.raw, Gvk::parse(&api_version, &kind)?)
}

fn decode_object(raw: &[u8], gvk: Gvk) -> Result<Decoded, ProtobufError> {
    if gvk.kind().is_empty() {
        return Err(ProtobufError::MissingKind);
    }
    if gvk.version().is_empty() {
        return Err(ProtobufError::MissingVersion);
    }
    let Some(kind) = Atlas::kind(&gvk) else {
        return Err(ProtobufError::UnknownKind(gvk));
    };
    let mut fields = Vec::new();
    Decoder::new(MESSAGES_LIMIT).fields(kind, raw, &mut fields)?;
    if kind.field("apiVersion").is_some() {
        fields.push((Str::new("apiVersion"), gvk.api_version().into()));
        fields.push((Str::new("kind"), gvk.kind().into()));
    }
    Ok(Decoded {
        doc: windlass_core::Object::new(fields).into(),
        gvk,
    })
}

/// What stands around every object: its kind and its bytes.
struct Envelope<'a> {
    api_version: String,
    kind: String,
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
            api_version: String::new(),
            kind: String::new(),
            raw: &[],
        };
        let mut reader = Reader::new(inner);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (1, value) => envelope.read_kind(value.bytes()?)?,
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

    fn read_kind(&mut self, bytes: &[u8]) -> Result<(), ProtobufError> {
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            match (number, value) {
                (1, Value::Bytes(text)) => self.api_version = special::text(text).into_owned(),
                (2, Value::Bytes(text)) => self.kind = special::text(text).into_owned(),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
