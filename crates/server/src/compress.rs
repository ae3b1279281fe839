//! Compression of large answers for clients that accept it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::body::Body;

/// Smaller answers are sent as they are, as upstream does.
const BYTES_MIN: usize = 128 << 10;
/// Upstream's choice between speed and size.
const LEVEL: u32 = 4;

/// The answer as bytes, compressed if they are many and the client accepts that.
pub(crate) async fn compress(accepts: bool, response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let Some(bytes) = body.bytes() else {
        return Response::from_parts(parts, body);
    };
    if !accepts || bytes.len() <= BYTES_MIN {
        return Response::from_parts(parts, Body::whole(bytes));
    }
    let plain = bytes.clone();
    // Megabytes take a while, in which this thread has better to do.
    let packed = tokio::task::spawn_blocking(move || pack(&bytes)).await;
    let Ok(Ok(packed)) = packed else {
        return Response::from_parts(parts, Body::whole(plain));
    };
    parts
        .headers
        .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts
        .headers
        .append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, Body::whole(packed))
}

/// Whether a client accepts compressed answers.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut words = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    words.any(|word| {
        word.split(';')
            .next()
            .is_some_and(|name| name.trim() == "gzip")
    })
}

fn pack(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::new(LEVEL));
    encoder.write_all(bytes)?;
    encoder.finish()
}
