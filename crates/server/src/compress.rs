//! Compression of large answers for clients that accept it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::body::{Body, LEVEL, Packer, Settled};

/// Smaller answers are sent as they are, as upstream does.
const BYTES_MIN: usize = 128 << 10;
/// The answer as bytes, compressed if they are many and the client accepts that.
pub(crate) async fn compress(accepts: bool, response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let body = match body.settle(BYTES_MIN) {
        Settled::Whole(bytes) if !accepts || bytes.len() <= BYTES_MIN => Body::whole(bytes),
        Settled::Long(first, list) if !accepts => Body::long(first, list),
        Settled::Endless(body) => body,
        Settled::Whole(bytes) => {
            let plain = bytes.clone();
            // Megabytes take a while, in which this thread has better to do.
            let packed = tokio::task::spawn_blocking(move || pack(&bytes)).await;
            let Ok(Ok(packed)) = packed else {
                return Response::from_parts(parts, Body::whole(plain));
            };
            mark(&mut parts.headers);
            Body::whole(packed)
        }
        Settled::Long(first, list) => {
            mark(&mut parts.headers);
            Body::packed(Packer::new(first, list))
        }
    };
    Response::from_parts(parts, body)
}

/// Says that an answer is compressed.
fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
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
