//! The file with which clients find and trust the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::doc;

use crate::certs::Certificates;

/// A kubeconfig for the administrator of a server at a URL, as JSON, which is YAML too.
#[must_use]
pub fn kubeconfig(url: &str, certificates: &Certificates, admin_token: &str) -> String {
    let authority = BASE64.encode(&certificates.authority);
    let config = doc!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "windlass",
            "cluster": { "server": url, "certificate-authority-data": authority }
        }],
        "users": [{ "name": "windlass-admin", "user": { "token": admin_token } }],
        "contexts": [{
            "name": "windlass",
            "context": { "cluster": "windlass", "user": "windlass-admin", "namespace": "default" }
        }],
        "current-context": "windlass"
    });
    match config.to_yaml() {
        Ok(yaml) => yaml,
        Err(_) => config.to_json_pretty(),
    }
}
