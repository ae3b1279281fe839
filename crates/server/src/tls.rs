//! TLS: the server's certificate, and client certificates for those who have one.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::certs::Certificates;

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TlsError {
    /// A certificate or key cannot be read.
    #[error("cannot read certificates: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// A certificate or key does not do.
    #[error("cannot use certificates")]
    Rustls(#[from] rustls::Error),
    /// The authority cannot verify clients.
    #[error("cannot verify client certificates")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The TLS side of the server. A client certificate is optional, but one that is shown must be
/// signed by the authority of the data directory, or by one of those that the caller added.
pub(crate) fn config(certificates: &Certificates) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate =
        |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).map_err(TlsError::Pem);
    let mut roots = RootCertStore::empty();
    let trusted = certificates.trusted_by_clients();
    for authority in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
        roots.add(authority.map_err(TlsError::Pem)?)?;
    }
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
    let key = PrivateKeyDer::from_pem_slice(certificates.serving.key.as_bytes())
        .map_err(TlsError::Pem)?;
    let chain = vec![certificate(&certificates.serving.certificate)?];
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
