//! Finding out who asks.

use ring::digest;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::token::Signer;
use crate::token_file::StaticToken;
use crate::user::User;
use windlass_rules::reader::Reader;
use windlass_rules::status::Status;

/// The extra of a user that tells its credentials apart.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Tells who sent a request.
pub struct Authenticator {
    /// Tokens with a fixed owner, each as its SHA-256: a lookup then takes the same time however
    /// much of a guess is right.
    tokens: Vec<([u8; 32], User)>,
    /// Checks the tokens of service accounts.
    signer: Signer,
    /// True if requests without credentials are refused.
    refuses_anonymous: bool,
}

/// Ways to authenticate besides the administrator's token and service account tokens.
#[derive(Clone, Debug, Default)]
pub struct AuthenticationOptions {
    /// True if requests without credentials are refused, as with `--anonymous-auth=false`.
    pub refuses_anonymous: bool,
    /// Users with a token of their own, as in the file of `--token-auth-file`.
    pub tokens: Vec<StaticToken>,
}

impl Authenticator {
    /// An authenticator that knows the token of the administrator.
    #[must_use]
    pub fn new(admin_token: &str, signer: Signer) -> Self {
        Self {
            tokens: vec![(hash(admin_token), User::admin())],
            signer,
            refuses_anonymous: false,
        }
    }

    /// The same authenticator with further ways to authenticate.
    #[must_use]
    pub fn with(mut self, options: AuthenticationOptions) -> Self {
        let tokens = options.tokens.into_iter();
        self.tokens
            .extend(tokens.map(|known| (hash(&known.token), known.user)));
        self.refuses_anonymous = options.refuses_anonymous;
        self
    }

    /// Signs and checks the tokens of service accounts.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The user that a bearer token names. One that is not good is refused, none is anonymous.
    pub fn user(&self, bearer: Option<&str>, objects: &dyn Reader) -> Result<User, Status> {
        match bearer {
            Some(token) => self
                .token_user(token, objects)
                .ok_or_else(Status::unauthorized),
            None if self.refuses_anonymous => Err(Status::unauthorized()),
            None => Ok(User::anonymous()),
        }
    }

    /// Whose token this is.
    pub fn token_user(&self, token: &str, objects: &dyn Reader) -> Option<User> {
        let wanted = hash(token);
        let known = self.tokens.iter().find(|(hash, _)| is_same(hash, &wanted));
        match known {
            Some((_, user)) => Some(user.clone()),
            None => self.signer.verify(token, objects),
        }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticator(..)")
    }
}

/// The user a verified client certificate names: the common name, in the organizations' groups.
#[must_use]
pub fn certificate_user(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> = subject
        .iter_organization()
        .filter_map(|organization| organization.as_str().ok())
        .collect();
    let digest = digest::digest(&digest::SHA256, der);
    let hex: String = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(User {
        // Of two certificates of a user the audit log tells which one was shown.
        extra: vec![(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")])],
        ..User::new(name, &groups)
    })
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
