//! Answers.

use std::cell::RefCell;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use windlass_atlas::{EncodeError, ObjectEncoder};
use windlass_core::Doc;

use crate::body::Body;
use crate::negotiate::{Encoding, PROTOBUF};
use crate::query::Query;
use windlass_rules::status::Status;

/// Warnings of one answer are cut off after so many bytes, as upstream does.
const WARNING_BYTES_LIMIT: usize = 4096;

/// Room for one object in protobuf: most need no more.
const PROTOBUF_CAPACITY: usize = 4 << 10;

/// Marks an answer that is a refusal, until it gets the encoding that the client accepts.
#[derive(Clone, Copy, Debug)]
struct Refused;

/// An object in an encoding.
pub(crate) fn object(
    code: StatusCode,
    doc: &Doc,
    encoding: Encoding,
    pretty: bool,
) -> Response<Body> {
    match encoding {
        Encoding::Json => json(code, doc, pretty),
        Encoding::Yaml => match doc.to_yaml() {
            Ok(text) => whole(code, "application/yaml", text.into()),
            Err(error) => status(&Status::internal(error)),
        },
        Encoding::Protobuf => match protobuf(doc) {
            Ok(bytes) => with_type(code, PROTOBUF, Body::encoded(doc.clone(), bytes)),
            Err(error) => status(&Status::internal(error)),
        },
    }
}

/// An object as a body of protobuf.
pub(crate) fn protobuf(doc: &Doc) -> Result<Bytes, EncodeError> {
    thread_local! {
        /// Objects that are answered one after the other often have much in common.
        static ENCODER: RefCell<ObjectEncoder> = RefCell::new(ObjectEncoder::new());
    }
    let mut bytes = Vec::with_capacity(PROTOBUF_CAPACITY);
    ENCODER.with_borrow_mut(|encoder| encoder.write(doc, &mut bytes))?;
    Ok(bytes.into())
}

/// An object as JSON.
pub(crate) fn json(code: StatusCode, doc: &Doc, pretty: bool) -> Response<Body> {
    if !pretty {
        return with_type(code, "application/json", Body::doc(doc.clone()));
    }
    let mut bytes = doc.to_json_pretty().into_bytes();
    bytes.push(b'\n');
    whole(code, "application/json", bytes.into())
}

/// A refusal.
pub(crate) fn status(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code())
        .expect("invariant: a `Status` has one of the codes that its constructors name");
    let mut response = json(code, &status.to_doc(), false);
    response.extensions_mut().insert(Refused);
    if let Some(after) = status.retry_after() {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, after.as_secs().into());
    }
    if code == StatusCode::FORBIDDEN {
        let nosniff = HeaderValue::from_static("nosniff");
        response
            .headers_mut()
            .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}

/// A refusal in the encoding that its client accepts; other answers as they are. Where the client
/// accepts none, it is JSON for people.
pub(crate) fn refusal_in(
    mut response: Response<Body>,
    accepted: Option<Encoding>,
) -> Response<Body> {
    let refused = response.extensions_mut().remove::<Refused>();
    let doc = refused.and_then(|_| response.body().as_doc().cloned());
    let (Some(doc), false) = (doc, accepted == Some(Encoding::Json)) else {
        return response;
    };
    let encoding = accepted.unwrap_or(Encoding::Json);
    let encoded = object(response.status(), &doc, encoding, accepted.is_none());
    let (head, body) = encoded.into_parts();
    if let Some(media_type) = head.headers.get(header::CONTENT_TYPE) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, media_type.clone());
    }
    response.map(|_| body)
}

/// Plain text.
pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    whole(code, "text/plain; charset=utf-8", text.into())
}

/// The answer for a path that nothing stands behind.
pub(crate) fn no_such_page() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Bytes of a media type.
pub(crate) fn whole(code: StatusCode, media_type: &'static str, bytes: Bytes) -> Response<Body> {
    with_type(code, media_type, Body::whole(bytes))
}

/// A body of a media type.
pub(crate) fn with_type(code: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Adds warnings for the client's user.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let mut room = WARNING_BYTES_LIMIT;
    for warning in warnings {
        let text: String = warning.chars().filter(|c| !c.is_control()).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if text.len() > room {
            break;
        }
        room -= text.len();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Whether somebody will look at the answer with their own eyes.
pub(crate) fn is_pretty(query: &Query, headers: &HeaderMap) -> bool {
    match query.flag("pretty") {
        Some(pretty) => pretty,
        None => {
            let agent = headers
                .get(header::USER_AGENT)
                .and_then(|value| value.to_str().ok());
            let agent = agent.unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|browser| agent.starts_with(browser))
        }
    }
}
