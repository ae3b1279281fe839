//! Keys that service account tokens are signed and verified with, read from PEM.
//!
//! kube-apiserver accepts private keys, public keys and certificates as keys of service accounts:
//! ECDSA on P-256 (ES256) and RSA (RS256) are supported here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use windlass_core::{Doc, doc};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate};
use x509_parser::public_key::RSAPublicKey;

use super::SignerError;

/// Keys in one file.
const KEYS_LIMIT: usize = 64;

/// The head of a PKCS #8 key on P-256, up to the length of the SEC 1 key inside: version 0 and the
/// algorithm identifier.
const PKCS8_P256: &[u8] = &[
    0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
    0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
];

/// Bytes of a coordinate on the curve P-256.
const COORDINATE_BYTES: usize = 32;

/// The algorithm identifiers of public keys in DER (RFC 5480, RFC 3279).
const P256_ALGORITHM: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
const RSA_ALGORITHM: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// A private key.
pub(super) enum SigningKey {
    /// ECDSA on P-256.
    Es256(EcdsaKeyPair),
    /// RSA.
    Rs256(RsaKeyPair),
}

/// A public key, as ring reads it.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// An uncompressed point on P-256.
    Es256(Vec<u8>),
    /// An RSA public key of PKCS #1.
    Rs256(Vec<u8>),
}

impl SigningKey {
    /// The key in PKCS #8.
    pub(super) fn from_pkcs8(der: &[u8]) -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random) {
            return Ok(Self::Es256(key));
        }
        let key = RsaKeyPair::from_pkcs8(der).map_err(|_| SignerError::Damaged)?;
        Ok(Self::Rs256(key))
    }

    /// The first private key in a PEM text.
    pub(super) fn from_pem(text: &str) -> Result<Self, SignerError> {
        let pems = Pem::iter_from_buffer(text.as_bytes()).take(KEYS_LIMIT);
        let mut keys = pems.flatten().filter_map(|pem| Self::from_block(&pem));
        keys.next().ok_or(SignerError::Damaged)
    }

    fn from_block(pem: &Pem) -> Option<Self> {
        match pem.label.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&pem.contents).ok(),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&pem.contents).ok().map(Self::Rs256),
            "EC PRIVATE KEY" => Self::from_pkcs8(&pkcs8_of_sec1(&pem.contents)?).ok(),
            _ => None,
        }
    }

    /// The algorithm, as the header of a token names it.
    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Rs256(_) => "RS256",
        }
    }

    /// The signature of a text.
    pub(super) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Es256(key) => key
                .sign(&random, text)
                .ok()
                .map(|signature| signature.as_ref().to_vec()),
            Self::Rs256(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature)
                    .ok()?;
                Some(signature)
            }
        }
    }

    /// The public key of this key.
    pub(super) fn public(&self) -> PublicKey {
        match self {
            Self::Es256(key) => PublicKey::Es256(key.public_key().as_ref().to_vec()),
            Self::Rs256(key) => PublicKey::Rs256(key.public_key().as_ref().to_vec()),
        }
    }
}

impl PublicKey {
    /// All keys in a PEM text: public keys, those of certificates and those of private keys.
    pub(super) fn all_from_pem(text: &str) -> Result<Vec<Self>, SignerError> {
        let pems = Pem::iter_from_buffer(text.as_bytes()).take(KEYS_LIMIT);
        let keys: Vec<_> = pems
            .flatten()
            .filter_map(|pem| Self::from_block(&pem))
            .collect();
        match keys.is_empty() {
            true => Err(SignerError::Damaged),
            false => Ok(keys),
        }
    }

    fn from_block(pem: &Pem) -> Option<Self> {
        match pem.label.as_str() {
            "CERTIFICATE" => {
                let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
                Self::from_info(certificate.public_key())
            }
            "PUBLIC KEY" => {
                let (_, info) = SubjectPublicKeyInfo::from_der(&pem.contents).ok()?;
                Self::from_info(&info)
            }
            "RSA PUBLIC KEY" => Some(Self::Rs256(pem.contents.clone())),
            _ => SigningKey::from_block(pem).map(|key| key.public()),
        }
    }

    fn from_info(info: &SubjectPublicKeyInfo<'_>) -> Option<Self> {
        let key = info.subject_public_key.data.to_vec();
        match info.algorithm.algorithm.to_id_string().as_str() {
            "1.2.840.10045.2.1" => Some(Self::Es256(key)),
            "1.2.840.113549.1.1.1" => Some(Self::Rs256(key)),
            _ => None,
        }
    }

    /// The name of the key: the hash of its DER form, as upstream has it.
    pub(super) fn id(&self) -> String {
        let (algorithm, key) = match self {
            Self::Es256(key) => (P256_ALGORITHM, key),
            Self::Rs256(key) => (RSA_ALGORITHM, key),
        };
        let mut inside = algorithm.to_vec();
        // A bit string begins with the number of bits that its last byte lacks.
        let bits = [&[0], key.as_slice()].concat();
        let mut der = Vec::new();
        // Keys are far shorter than what a length of two bytes can say.
        let _ = push_der(&mut inside, 0x03, &bits).and_then(|()| push_der(&mut der, 0x30, &inside));
        BASE64.encode(digest::digest(&digest::SHA256, &der))
    }

    /// The key as a JSON Web Key (RFC 7517).
    pub(super) fn jwk(&self) -> Doc {
        match self {
            Self::Es256(point) => {
                // An uncompressed point: a byte that says so, and two coordinates of 32 bytes.
                let coordinate = |from: usize| {
                    let bytes = point.get(from..from + COORDINATE_BYTES).unwrap_or_default();
                    BASE64.encode(bytes)
                };
                doc!({
                    "use": "sig", "kty": "EC", "kid": (self.id()), "crv": "P-256", "alg": "ES256",
                    "x": (coordinate(1)), "y": (coordinate(1 + COORDINATE_BYTES))
                })
            }
            Self::Rs256(der) => {
                let key = RSAPublicKey::from_der(der).map(|(_, key)| key).ok();
                let number = |bytes: Option<&[u8]>| {
                    let bytes = bytes.unwrap_or_default();
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    BASE64.encode(bytes.get(zeros..).unwrap_or_default())
                };
                doc!({
                    "use": "sig", "kty": "RSA", "kid": (self.id()), "alg": "RS256",
                    "n": (number(key.as_ref().map(|key| key.modulus))),
                    "e": (number(key.as_ref().map(|key| key.exponent)))
                })
            }
        }
    }

    /// Returns true if the signature of a text is one of this key, by the algorithm that the
    /// header of the token names.
    pub(super) fn verifies(&self, algorithm: &str, text: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Es256(key), "ES256") => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
                .verify(text, signature)
                .is_ok(),
            (Self::Rs256(key), "RS256") => UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key)
                .verify(text, signature)
                .is_ok(),
            _ => false,
        }
    }
}

/// A key of SEC 1 on P-256 in PKCS #8, which is the only form that ring reads.
fn pkcs8_of_sec1(sec1: &[u8]) -> Option<Vec<u8>> {
    let mut inside = PKCS8_P256.to_vec();
    push_der(&mut inside, 0x04, sec1)?;
    let mut outside = Vec::new();
    push_der(&mut outside, 0x30, &inside)?;
    Some(outside)
}

/// Appends a DER value of up to 65,535 bytes.
fn push_der(to: &mut Vec<u8>, tag: u8, value: &[u8]) -> Option<()> {
    let [high, low] = u16::try_from(value.len()).ok()?.to_be_bytes();
    to.push(tag);
    match (high, low) {
        (0, 0..0x80) => to.push(low),
        (0, _) => to.extend([0x81, low]),
        _ => to.extend([0x82, high, low]),
    }
    to.extend_from_slice(value);
    Some(())
}
