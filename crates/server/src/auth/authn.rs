//! Finding out who asks.

use http::HeaderMap;
use ring::digest;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::token::Signer;
use super::{User, bearer};
use crate::status::Status;
use crate::storage::Storage;

/// Tells who sent a request.
pub(crate) struct Authenticator {
    /// Tokens with a fixed owner, each as its SHA-256: a lookup then takes the same time however
    /// much of a guess is right.
    tokens: Vec<([u8; 32], User)>,
    /// Checks the tokens of service accounts.
    signer: Signer,
}

impl Authenticator {
    /// An authenticator that knows the token of the administrator.
    pub(crate) fn new(admin_token: &str, signer: Signer) -> Self {
        Self {
            tokens: vec![(hash(admin_token), User::admin())],
            signer,
        }
    }

    /// Signs and checks the tokens of service accounts.
    pub(crate) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// Who sent these headers. A token that is not good is refused, no token is anonymous.
    pub(crate) fn user(&self, headers: &HeaderMap, storage: &Storage) -> Result<User, Status> {
        match bearer(headers) {
            Some(token) => self
                .token_user(token, storage)
                .ok_or_else(Status::unauthorized),
            None => Ok(User::anonymous()),
        }
    }

    /// Whose token this is.
    pub(crate) fn token_user(&self, token: &str, storage: &Storage) -> Option<User> {
        let wanted = hash(token);
        let known = self.tokens.iter().find(|(hash, _)| is_same(hash, &wanted));
        match known {
            Some((_, user)) => Some(user.clone()),
            None => self.signer.verify(token, storage),
        }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticator(..)")
    }
}

/// The user a verified client certificate names: the common name, in the organizations' groups.
pub(crate) fn certificate_user(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> = subject
        .iter_organization()
        .filter_map(|organization| organization.as_str().ok())
        .collect();
    Some(User::new(name, &groups))
}

fn hash(token: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    digest
        .as_ref()
        .try_into()
        .expect("invariant: SHA-256 has 32 bytes")
}

/// Compares without stopping at the first difference.
fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}
