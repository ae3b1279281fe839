//! What the model answers.

use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use windlass_client::{Content, Status};
use windlass_core::Doc;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) fn object(code: u16, doc: Doc) -> Response<Content> {
    response(code, Content::Doc(doc))
}

pub(super) fn failure(code: u16, reason: &str, message: &str) -> Response<Content> {
    let status = Doc::encode(&Status::failure(code, reason, message)).unwrap_or(Doc::NULL);
    let status = status
        .with("/kind", "Status")
        .and_then(|it| it.with("/apiVersion", "v1"));
    response(code, Content::Doc(status.unwrap_or(Doc::NULL)))
}

pub(super) fn response(code: u16, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}
