//! The answer to a request.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use windlass_atlas::{ProtobufDecoder, decode_protobuf};
use windlass_core::{Doc, Duplicates, ParseError, ParseOptions, Prune};

use super::RestClient;
use crate::StatusDetails;
use crate::encoding::Encoding;
use crate::reader::{Collected, ReadError, Reader};
use crate::transport::{Content, MetadataOnly};
use crate::{Cause, Error, RequestOutcome, Status};

/// Longest error answer that is read.
const STATUS_BYTES_LIMIT: usize = 1 << 20;

/// The length of the excerpt of an error body that is no `Status`.
const MESSAGE_CHARS_LIMIT: usize = 256;

/// The answer to a request: head read, content still to come.
#[derive(Debug)]
pub struct RestResponse {
    client: RestClient,
    /// Method and path.
    name: String,
    method: Method,
    timeout: Duration,
    status: StatusCode,
    headers: HeaderMap,
    content: Content,
    /// The fields of the content that are not decoded.
    prune: Prune,
}

impl RestResponse {
    pub(super) fn new(
        client: RestClient,
        name: String,
        method: Method,
        timeout: Duration,
        response: http::Response<Content>,
    ) -> Self {
        let (parts, content) = response.into_parts();
        Self {
            client,
            name,
            method,
            timeout,
            status: parts.status,
            headers: parts.headers,
            content,
            prune: Prune::nothing(),
        }
    }

    /// Reads only the metadata, or everything.
    pub(super) fn metadata_only(mut self, is_metadata_only: bool) -> Self {
        if is_metadata_only {
            self.prune = MetadataOnly.prune();
        }
        self
    }

    /// The status code.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The content, as it comes.
    #[must_use]
    pub fn into_content(self) -> Content {
        self.content
    }

    /// The content as bytes.
    ///
    /// # Errors
    /// When it does not come completely, or is longer than the limit.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.require_plain()?;
        match self.content {
            Content::Body(_) => self.collect().await,
            Content::Doc(doc) => Ok(doc.to_json().into()),
            Content::List(list) => Ok(list.into_doc().to_json().into()),
            Content::Events(_) => Err(super::not_json(self.name)),
        }
    }

    /// The content as a document.
    ///
    /// # Errors
    /// When it does not come completely, or cannot be read.
    pub async fn doc(self) -> Result<Doc, Error> {
        let encoding = self.encoding()?;
        match self.content {
            Content::Doc(doc) => Ok(doc),
            Content::Body(_) => {
                let (name, limit) = (self.name.clone(), self.client.options().body_bytes_limit);
                let prune = self.prune.clone();
                let bytes = self.collect().await?;
                let doc = match encoding {
                    Encoding::Json => parse(&bytes, limit, prune).map_err(Cause::Parse),
                    Encoding::Protobuf => ProtobufDecoder::new(prune)
                        .decode(&bytes)
                        .map_err(|error| Cause::Decode(error.into())),
                };
                doc.map_err(|cause| Error::new(RequestOutcome::Unknown, name, cause))
            }
            Content::List(list) => Ok(list.into_doc()),
            Content::Events(_) => Err(super::not_json(self.name)),
        }
    }

    /// The content as a value of a type.
    ///
    /// # Errors
    /// When it does not come completely, or is not of this type.
    pub async fn decode<T: DeserializeOwned>(self) -> Result<T, Error> {
        let name = self.name.clone();
        let doc = self.doc().await?;
        doc.decode().map_err(|error| {
            Error::new(
                RequestOutcome::Unknown,
                name,
                Cause::Decode(Box::new(error)),
            )
        })
    }

    /// Reads the content to its end and keeps nothing of it.
    ///
    /// # Errors
    /// When it does not come completely.
    pub(crate) async fn discard(self) -> Result<(), Error> {
        let Content::Body(body) = self.content else {
            return Ok(());
        };
        let reader = Reader::within(body, self.timeout);
        let mut reader = reader.measured(self.client.shared.options.clone(), self.method);
        while let Some(chunk) = reader.chunk(None).await {
            let cause = match chunk {
                Ok(_) => continue,
                Err(ReadError::Timeout(all)) => Cause::Timeout(all),
                Err(ReadError::Connection(source)) => Cause::Connection(source),
            };
            return Err(Error::new(RequestOutcome::Unknown, self.name, cause));
        }
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The encoding of the content. Refuses encodings that an API server does not send.
    pub(super) fn encoding(&self) -> Result<Encoding, Error> {
        self.require_plain()?;
        if !matches!(self.content, Content::Body(_)) {
            return Ok(Encoding::Json);
        }
        Encoding::of(&self.headers).ok_or_else(|| self.unexpected_type())
    }

    fn unexpected_type(&self) -> Error {
        let found = header(&self.headers, CONTENT_TYPE).to_owned();
        let cause = Cause::ContentType { found };
        Error::new(RequestOutcome::Unknown, &*self.name, cause)
    }

    /// Refuses compressed content: we never ask for it, and a few bytes of it can become many.
    fn require_plain(&self) -> Result<(), Error> {
        match header(&self.headers, CONTENT_ENCODING) {
            "" | "identity" => Ok(()),
            found => {
                let cause = Cause::Encoding {
                    found: found.to_owned(),
                };
                Err(Error::new(RequestOutcome::Unknown, &*self.name, cause))
            }
        }
    }

    async fn collect(self) -> Result<Bytes, Error> {
        let limit = self.client.options().body_bytes_limit;
        let Content::Body(body) = self.content else {
            return Ok(Bytes::new());
        };
        let reader = Reader::within(body, self.timeout);
        let collected = reader
            .measured(self.client.shared.options.clone(), self.method)
            .collect(limit)
            .await;
        let cause = match collected {
            Ok(Collected::Whole(bytes)) => return Ok(bytes),
            Ok(Collected::TooLong) => Cause::TooLong { limit },
            Err(ReadError::Timeout(all)) => Cause::Timeout(all),
            Err(ReadError::Connection(source)) => Cause::Connection(source),
        };
        Err(Error::new(RequestOutcome::Unknown, self.name, cause))
    }

    /// The status of a failed request.
    pub(super) async fn into_status(self) -> Status {
        let (code, headers) = (self.status, self.headers);
        let mut status = match self.content {
            Content::Doc(doc) => doc.decode().unwrap_or_default(),
            Content::Body(body) if header(&headers, CONTENT_ENCODING).is_empty() => {
                let collected = Reader::within(body, self.timeout)
                    .collect(STATUS_BYTES_LIMIT)
                    .await;
                match collected {
                    Ok(Collected::Whole(bytes)) => read_status(&headers, &bytes),
                    _ => Status::default(),
                }
            }
            _ => Status::default(),
        };
        status.code = code.as_u16();
        if status.reason.is_empty() {
            reason(code).clone_into(&mut status.reason);
        }
        if status.retry_after().is_none()
            && let Some(wait) = retry_after(&headers)
        {
            let details = status.details.get_or_insert_with(StatusDetails::default);
            details.retry_after_seconds = wait.as_secs().try_into().unwrap_or(i64::MAX);
        }
        status
    }
}

/// The `Retry-After` of the server. Only the form in seconds: no API server sends a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    header(headers, RETRY_AFTER)
        .trim()
        .parse()
        .ok()
        .map(Duration::from_secs)
}

fn header(headers: &HeaderMap, name: http::HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn parse(bytes: &[u8], bytes_limit: usize, prune: Prune) -> Result<Doc, ParseError> {
    let duplicates = Duplicates::KeepLast;
    let options = ParseOptions {
        bytes_limit,
        duplicates,
        prune,
        ..ParseOptions::default()
    };
    Doc::parse_with(bytes, &options)
}

fn read_status(headers: &HeaderMap, bytes: &[u8]) -> Status {
    let doc = match Encoding::of(headers) {
        Some(Encoding::Json) => parse(bytes, STATUS_BYTES_LIMIT, Prune::nothing()).ok(),
        Some(Encoding::Protobuf) => decode_protobuf(bytes).ok().map(|it| it.doc),
        None => {
            return Status {
                message: first_line(headers, bytes),
                ..Status::default()
            };
        }
    };
    doc.and_then(|doc| doc.decode().ok()).unwrap_or_default()
}

/// The start of a plain text; a page of HTML is no message.
fn first_line(headers: &HeaderMap, bytes: &[u8]) -> String {
    if !header(headers, CONTENT_TYPE).starts_with("text/plain") {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MESSAGE_CHARS_LIMIT)]);
    let line = text.lines().next().unwrap_or_default();
    line.chars()
        .filter(|c| !c.is_control())
        .take(MESSAGE_CHARS_LIMIT)
        .collect()
}

/// The reason behind a code that came without one, as from a proxy.
fn reason(code: StatusCode) -> &'static str {
    match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}
