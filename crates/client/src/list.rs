//! A list: the objects that exist, as they arrive.

use std::time::Duration;

use bytes::Bytes;
use windlass_core::{Doc, Prune};

use crate::decode::{DecodeError, ListDecoder, ListHead, ProtobufListDecoder, Undecodable};
use crate::reader::{ReadError, Reader};
use crate::transport::{BoxError, DocList};
use crate::watch::Unreadable;
use crate::{Cause, Error, RequestOutcome, Status};

/// The items of a list, in the order in which the server sends them.
#[derive(Debug)]
pub struct ListStream {
    source: Source,
    is_over: bool,
}

#[derive(Debug)]
enum Source {
    Wire {
        decoder: Box<ListDecoder>,
        reader: Reader,
    },
    Protobuf {
        decoder: Box<ProtobufListDecoder>,
        reader: Reader,
        /// Notes that an item could not be read, so that the next list of the resource is in JSON.
        unreadable: Unreadable,
    },
    Local {
        head: ListHead,
        list: DocList,
        prune: Prune,
    },
}

/// The reason why an item is missing, or why a list ended too early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// One object could not be decoded. The list goes on.
    #[error("{0}")]
    Undecodable(Undecodable),
    /// The body is not a list, ended too early, or an item is too long. The list ends.
    #[error("{0}")]
    Decode(DecodeError),
    /// The connection broke. The list ends.
    #[error("{0}")]
    Connection(BoxError),
    /// The list did not come in time. The list ends.
    #[error("no complete list within {0:?}")]
    Timeout(Duration),
}

/// A whole list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Everything besides the items.
    pub head: ListHead,
    /// The objects.
    pub items: Vec<Doc>,
    /// The objects that could not be decoded.
    pub undecodable: Vec<Undecodable>,
}

impl ListStream {
    pub(crate) fn wire(decoder: ListDecoder, reader: Reader) -> Self {
        Self {
            source: Source::Wire {
                decoder: Box::new(decoder),
                reader,
            },
            is_over: false,
        }
    }

    pub(crate) fn protobuf(
        decoder: ProtobufListDecoder,
        reader: Reader,
        unreadable: Unreadable,
    ) -> Self {
        Self {
            source: Source::Protobuf {
                decoder: Box::new(decoder),
                reader,
                unreadable,
            },
            is_over: false,
        }
    }

    pub(crate) fn local(list: DocList, prune: Prune) -> Self {
        let head = ListHead {
            api_version: list.api_version.clone(),
            kind: list.kind.clone(),
            metadata: list.metadata.clone(),
        };
        Self {
            source: Source::Local { head, list, prune },
            is_over: false,
        }
    }

    /// The next object; `None` after the last one, and after any error other than
    /// [`ListError::Undecodable`]. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Result<Doc, ListError>> {
        if self.is_over {
            return None;
        }
        let item = match &mut self.source {
            Source::Wire { decoder, reader } => next_item(decoder, reader).await,
            Source::Protobuf {
                decoder,
                reader,
                unreadable,
            } => {
                let item = next_protobuf(decoder, reader).await;
                if let Some(Err(ListError::Decode(DecodeError::Protobuf(error)))) = &item {
                    unreadable.note(error);
                }
                item
            }
            Source::Local { list, prune, .. } => {
                list.items.next().map(|item| Ok(prune.apply(&item)))
            }
        };
        self.is_over = match &item {
            None => true,
            Some(Err(error)) => error.is_final(),
            Some(Ok(_)) => false,
        };
        item
    }

    /// Everything besides the items. Complete once [`Self::next`] has returned `None`.
    #[must_use]
    pub fn head(&self) -> &ListHead {
        match &self.source {
            Source::Wire { decoder, .. } => decoder.head(),
            Source::Protobuf { decoder, .. } => decoder.head(),
            Source::Local { head, .. } => head,
        }
    }

    /// Reads the list to its end.
    ///
    /// # Errors
    /// When it does not come to its end; an object that cannot be decoded is set aside.
    pub async fn collect(mut self) -> Result<List, ListError> {
        let mut list = List::default();
        while let Some(item) = self.next().await {
            match item {
                Ok(doc) => list.items.push(doc),
                Err(ListError::Undecodable(item)) => list.undecodable.push(item),
                Err(error) => return Err(error),
            }
        }
        list.head = self.head().clone();
        Ok(list)
    }
}

async fn next_item(
    decoder: &mut ListDecoder,
    reader: &mut Reader,
) -> Option<Result<Doc, ListError>> {
    loop {
        match decoder.next_item() {
            Ok(Some(item)) => return Some(item.map_err(ListError::Undecodable)),
            Ok(None) => {}
            Err(error) => return Some(Err(ListError::Decode(error))),
        }
        match next_chunk(reader).await {
            None => {
                return decoder
                    .finish()
                    .err()
                    .map(|error| Err(ListError::Decode(error)));
            }
            Some(Ok(chunk)) => decoder.push(chunk),
            Some(Err(error)) => return Some(Err(error)),
        }
    }
}

async fn next_protobuf(
    decoder: &mut ProtobufListDecoder,
    reader: &mut Reader,
) -> Option<Result<Doc, ListError>> {
    loop {
        match decoder.next_item() {
            Ok(Some(item)) => return Some(Ok(item)),
            Ok(None) => {}
            Err(error) => return Some(Err(ListError::Decode(error))),
        }
        match next_chunk(reader).await {
            None => {
                let finished = decoder.finish().err();
                return finished.map(|error| Err(ListError::Decode(error)));
            }
            Some(Ok(chunk)) => decoder.push(&chunk),
            Some(Err(error)) => return Some(Err(error)),
        }
    }
}

async fn next_chunk(reader: &mut Reader) -> Option<Result<Bytes, ListError>> {
    let chunk = reader.chunk(None).await?;
    Some(chunk.map_err(|error| match error {
        ReadError::Timeout(all) => ListError::Timeout(all),
        ReadError::Connection(error) => ListError::Connection(error),
    }))
}

impl ListError {
    /// Returns true if the list ends with this error.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Undecodable(_))
    }

    /// The status with which the server answered in place of a list, if it did.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Decode(DecodeError::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// The same as the failure of a whole request.
    pub(crate) fn into_error(self, request: &str) -> Error {
        let cause = match self {
            Self::Decode(DecodeError::Status(status)) => Cause::Status(*status),
            Self::Decode(DecodeError::TooLong { limit }) => Cause::TooLong { limit },
            Self::Timeout(all) => Cause::Timeout(all),
            Self::Connection(source) => return Error::transport(request, source),
            other => Cause::Decode(other.into()),
        };
        Error::new(RequestOutcome::Unknown, request, cause)
    }
}

/// A list that came as one document.
pub(crate) fn from_doc(list: &Doc) -> DocList {
    let items = list.at("/items").items().to_vec();
    DocList {
        api_version: list.str_at("/apiVersion").to_owned(),
        kind: list.str_at("/kind").to_owned(),
        metadata: list.at("/metadata").clone(),
        items: Box::new(items.into_iter()),
    }
}
