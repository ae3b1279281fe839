//! Verification of the certificates that webhooks show.
//!
//! As in upstream, a certificate that stands in the bundle itself is trusted, whether it is an
//! authority or not: envtest gives the webhook's own certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The largest number of certificates in a bundle that are read.
const BUNDLE_LIMIT: usize = 1024;

struct BundleVerifier {
    bundle: Vec<CertificateDer<'static>>,
    /// Absent if no certificate of the bundle is an authority.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

/// The certificates of a bundle in PEM.
fn read_bundle(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem)
        .take(BUNDLE_LIMIT)
        .filter_map(Result::ok)
        .collect()
}

/// Says in upstream's words what is wrong with a bundle.
fn check_bundle(pem: &[u8]) -> Result<(), String> {
    match pem.is_empty() || !read_bundle(pem).is_empty() {
        true => Ok(()),
        false => {
            Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned())
        }
    }
}

/// The TLS side of a client that trusts a bundle, or the authorities of the machine if it is empty.
pub(super) fn client_config(pem: &[u8], allows_http2: bool) -> Result<Arc<ClientConfig>, String> {
    check_bundle(pem)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let bundle = match pem.is_empty() {
        true => rustls_native_certs::load_native_certs().certs,
        false => read_bundle(pem),
    };
    let mut roots = RootCertStore::empty();
    for certificate in &bundle {
        // One that is no authority is compared as it is.
        let _ = roots.add(certificate.clone());
    }
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = BundleVerifier {
        bundle,
        authorities: builder.build().ok(),
        provider: Arc::clone(&provider),
    };
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = match allows_http2 {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.bundle.iter().any(|known| known == end_entity) {
            check_validity(end_entity, now)?;
            let parsed = ParsedCertificate::try_from(end_entity)?;
            rustls::client::verify_server_name(&parsed, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(authorities) => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = x509_parser::parse_x509_certificate(certificate);
    let (_, parsed) = parsed.map_err(|_| CertificateError::BadEncoding)?;
    let validity = parsed.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// A failed handshake in the words of upstream's client.
pub(super) fn describe(error: &std::io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    let x509 = |why: &str| format!("tls: failed to verify certificate: x509: {why}");
    match inner {
        Some(Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                x509("certificate signed by unknown authority")
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                x509("certificate has expired or is not yet valid")
            }
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => x509(&wrong_name(&expected.to_str(), presented)),
            other => x509(&format!("{other:?}")),
        },
        Some(other) => format!("remote error: tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// The name that a certificate should have had, and those it has.
fn wrong_name(expected: &str, presented: &[String]) -> String {
    let inner = |name: &String| {
        let name = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest);
        name.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let presented: Vec<String> = presented.iter().map(inner).collect();
    format!(
        "certificate is valid for {}, not {expected}",
        presented.join(", ")
    )
}

impl fmt::Debug for BundleVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BundleVerifier({} certificates)", self.bundle.len())
    }
}
