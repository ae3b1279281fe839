//! The keys and certificates of one control plane.

use std::{fs, io, os::unix::fs::OpenOptionsExt, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why a key or certificate could not be made or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The key or certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The file could not be written.
    #[error("cannot write a certificate")]
    Write(#[from] io::Error),
}

/// The one certificate authority, which signs for servers and clients alike.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

/// A key with the certificate that an [`Authority`] signed for it.
#[derive(Debug)]
pub(crate) struct Identity {
    key: KeyPair,
    certificate: rcgen::Certificate,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, PkiError> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "windlass-envtest");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// An identity for servers on loopback.
    pub(crate) fn server(&self) -> Result<Identity, PkiError> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "localhost");
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// An identity that the server knows as `user`, a member of `group`.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params
                .distinguished_name
                .push(DnType::OrganizationName, group);
        }
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, PkiError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { key, certificate })
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), PkiError> {
        Ok(write_private(path, &self.certificate.pem())?)
    }
}

impl Identity {
    pub(crate) fn certificate_der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(crate) fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    pub(crate) fn write(&self, certificate: &Path, key: &Path) -> Result<(), PkiError> {
        write_private(certificate, &self.certificate.pem())?;
        Ok(write_private(key, &self.key.serialize_pem())?)
    }
}

/// Writes a fresh pair of keys, to sign the tokens of service accounts and to check them.
pub(crate) fn write_signing_keys(private: &Path, public: &Path) -> Result<(), PkiError> {
    let key = KeyPair::generate()?;
    write_private(private, &key.serialize_pem())?;
    Ok(write_private(public, &key.public_key_pem())?)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}
