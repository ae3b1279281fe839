//! Discovery of the issuer of service account tokens: who it is, and the keys to check them with.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use windlass_core::doc;

use crate::body::Body;
use crate::ordered_json::{self, KeyOrder};
use crate::respond;
use crate::server::Server;

const KEYS_PATH: &str = "/openid/v1/jwks";

/// The order of upstream's fields.
const KEY_ORDER: KeyOrder = KeyOrder {
    top: &[
        "issuer",
        "jwks_uri",
        "response_types_supported",
        "subject_types_supported",
        "id_token_signing_alg_values_supported",
    ],
    nested: &["use", "kty", "kid", "crv", "alg", "n", "e", "x", "y"],
};

/// The page at a path, if it is one of these.
pub(crate) fn page(server: &Server, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let (document, media_type) = match path.strip_suffix('/').unwrap_or(path) {
        "/.well-known/openid-configuration" => {
            let host = headers
                .get(header::HOST)
                .and_then(|host| host.to_str().ok());
            let host = host.unwrap_or("localhost");
            let signer = server.inner().authenticator.signer();
            let document = doc!({
                "issuer": (signer.issuer()), "jwks_uri": (format!("https://{host}{KEYS_PATH}")),
                "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [(signer.algorithm())]
            });
            (document, "application/json")
        }
        KEYS_PATH => {
            let key = server.inner().authenticator.signer().public_key();
            (doc!({ "keys": [key] }), "application/jwk-set+json")
        }
        _ => return None,
    };
    let bytes = ordered_json::write(&document, KEY_ORDER, false);
    let mut response = respond::whole(StatusCode::OK, media_type, bytes.into());
    let lifetime = HeaderValue::from_static("public, max-age=3600");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, lifetime);
    Some(response)
}
