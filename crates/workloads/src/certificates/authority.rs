//! The certificate authority of the cluster.

use std::{fmt, sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{KeyPair, SigningKey as _};
use windlass_core::{Env, Time};
use x509_parser::{certificate::X509Certificate, extensions::ParsedExtension, prelude::FromDer};

use super::{
    der::{self, extension, sequence, tagged},
    request::{CertificateRequest, SubjectName, pem_block},
    usages::Usages,
};

/// The time by which certificates begin earlier, for clocks that are a little behind.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Certificates that are good for less than this do not lose the time by which they begin earlier.
const SHORT: Duration = Duration::from_secs(8 * 60 * 60);

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 35];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 17];

/// An authority that cannot be used, or a certificate that it does not sign.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The certificate is not one.
    #[error("the certificate of the authority is not an X.509 certificate in PEM")]
    Certificate,
    /// The key cannot be used.
    #[error("the key of the authority cannot be used: it must be PKCS #8 in PEM")]
    Key(#[source] rcgen::Error),
    /// The algorithm of the key is not known.
    #[error("the algorithm of the authority's key is not supported")]
    Algorithm,
    /// The certificate of the authority has expired.
    #[error("the signer has expired: NotAfter={0}")]
    Expired(Time),
    /// A usage that does not exist.
    #[error("unrecognized usage values: {0:?}")]
    Usage(String),
    /// The signature failed.
    #[error("the signature failed")]
    Sign(#[source] rcgen::Error),
}

/// A certificate authority with its key. Clones share it; the key is never printed.
#[derive(Clone)]
pub struct SigningAuthority(Arc<Authority>);

struct Authority {
    key: KeyPair,
    /// The algorithm of signatures, in DER.
    algorithm: Vec<u8>,
    /// The subject of the authority's certificate, in DER.
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
    not_after: Time,
}

impl SigningAuthority {
    /// Reads a certificate and its key, both in PEM.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let der = pem_block(certificate, "CERTIFICATE").ok_or(AuthorityError::Certificate)?;
        let parsed = X509Certificate::from_der(&der);
        let (_, parsed) = parsed.map_err(|_| AuthorityError::Certificate)?;
        let key = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
        let key_id = parsed
            .extensions()
            .iter()
            .find_map(|it| match it.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            });
        Ok(Self(Arc::new(Authority {
            algorithm: algorithm_of(&key)?,
            name: parsed.subject().as_raw().to_vec(),
            key_id,
            not_after: Time::from_unix(parsed.validity().not_after.timestamp()),
            key,
        })))
    }

    /// Signs a certificate, which is returned in PEM.
    pub(super) fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[&str],
        lifetime: Duration,
        env: &Env,
    ) -> Result<String, AuthorityError> {
        let usages = Usages::of(usages).map_err(|it| AuthorityError::Usage(it.to_owned()))?;
        let authority = &*self.0;
        let (not_before, not_after) = authority.validity(lifetime, env.now())?;
        let serial = [
            env.random_u64().to_be_bytes(),
            env.random_u64().to_be_bytes(),
        ]
        .concat();
        let body = sequence(&[
            tagged(0xa0, &der::positive(&[2])),
            der::positive(&serial),
            authority.algorithm.clone(),
            authority.name.clone(),
            sequence(&[der::time(not_before), der::time(not_after)]),
            request.subject.clone(),
            request.public_key.clone(),
            tagged(0xa3, &sequence(&authority.extensions(request, &usages))),
        ]);
        let signature = authority.key.sign(&body).map_err(AuthorityError::Sign)?;
        let certificate = sequence(&[body, authority.algorithm.clone(), der::bits(&signature)]);
        Ok(pem(&certificate))
    }
}

impl Authority {
    /// The times between which a new certificate is good: never longer than the authority's own.
    fn validity(&self, lifetime: Duration, now: Time) -> Result<(Time, Time), AuthorityError> {
        if now >= self.not_after {
            return Err(AuthorityError::Expired(self.not_after));
        }
        let lifetime = match lifetime < SHORT {
            true => lifetime,
            false => lifetime.saturating_sub(BACKDATE),
        };
        let back = i64::try_from(BACKDATE.as_secs()).unwrap_or(0);
        let not_before = Time::from_unix(now.unix() - back);
        Ok((not_before, (now + lifetime).min(self.not_after)))
    }

    fn extensions(&self, request: &CertificateRequest, usages: &Usages) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        if usages.bits != 0 {
            all.push(extension(KEY_USAGE, true, &der::named_bits(usages.bits)));
        }
        if !usages.extended.is_empty() {
            let ids = usages.extended.iter();
            let ids: Vec<Vec<u8>> = ids.map(|id| tagged(der::OBJECT_ID, id)).collect();
            all.push(extension(EXTENDED_KEY_USAGE, false, &sequence(&ids)));
        }
        // An empty sequence: not an authority.
        all.push(extension(BASIC_CONSTRAINTS, true, &sequence(&[])));
        if let Some(id) = &self.key_id {
            let value = sequence(&[tagged(0x80, id)]);
            all.push(extension(AUTHORITY_KEY_ID, false, &value));
        }
        if !request.names.is_empty() {
            // Without a subject the names are all that there is.
            let is_critical = request.subject == sequence(&[]);
            let names = sequence(&alternative_names(&request.names));
            all.push(extension(SUBJECT_ALT_NAME, is_critical, &names));
        }
        all
    }
}

/// The names by kind: DNS, email, IP, URI.
fn alternative_names(names: &[SubjectName]) -> Vec<Vec<u8>> {
    let place = |name: &SubjectName| match name {
        SubjectName::Dns(_) => 0,
        SubjectName::Email(_) => 1,
        SubjectName::Ip(_) => 2,
        SubjectName::Uri(_) => 3,
    };
    let mut names: Vec<&SubjectName> = names.iter().collect();
    names.sort_by_key(|name| place(name));
    let encode = |name: &SubjectName| match name {
        SubjectName::Email(text) => tagged(0x81, text),
        SubjectName::Dns(text) => tagged(0x82, text),
        SubjectName::Uri(text) => tagged(0x86, text),
        SubjectName::Ip(address) => tagged(0x87, address),
    };
    names.into_iter().map(encode).collect()
}

/// The algorithm of a key's signatures as certificates name it.
fn algorithm_of(key: &KeyPair) -> Result<Vec<u8>, AuthorityError> {
    let id = |bytes: &[u8]| tagged(der::OBJECT_ID, bytes);
    let algorithm = key.algorithm();
    if algorithm == &rcgen::PKCS_ECDSA_P256_SHA256 {
        return Ok(sequence(&[id(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2])]));
    }
    if algorithm == &rcgen::PKCS_ECDSA_P384_SHA384 {
        return Ok(sequence(&[id(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3])]));
    }
    if algorithm == &rcgen::PKCS_ED25519 {
        return Ok(sequence(&[id(&[0x2b, 0x65, 0x70])]));
    }
    if algorithm == &rcgen::PKCS_RSA_SHA256 {
        let rsa = id(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]);
        return Ok(sequence(&[rsa, vec![5, 0]]));
    }
    Err(AuthorityError::Algorithm)
}

fn pem(certificate: &[u8]) -> String {
    let body = BASE64.encode(certificate);
    let lines = body.as_bytes().chunks(64);
    let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
    let body = lines.collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

impl fmt::Debug for SigningAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningAuthority(..)")
    }
}
