//! Tokens of service accounts: signed statements (JWT, ES256 or RS256) that name an account.

mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as SECRET_DATA;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use windlass_core::{Doc, Env, ParseOptions, doc};

use crate::user::User;
use keys::{PublicKey, SigningKey};
use windlass_rules::reader::Reader;

/// The issuer of the tokens unless another one is given.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The issuer of tokens that are kept in Secrets and have no end.
const SECRET_ISSUER: &str = "kubernetes/serviceaccount";

/// A token is a few hundred bytes; what is longer than this was not issued here.
const TOKEN_BYTES_LIMIT: usize = 16 << 10;

/// Signs and checks tokens.
#[derive(Clone)]
pub struct Signer {
    shared: Arc<Shared>,
    env: Env,
}

/// The keys and names of a signer. Nothing in it changes.
struct Shared {
    key: SigningKey,
    /// The keys whose tokens are accepted; the public part of the signing key is one of them.
    accepted: Vec<PublicKey>,
    /// The issuers whose tokens are accepted. The first one issues.
    issuers: Vec<String>,
    /// The audiences of the server itself, one of which a token must name.
    audiences: Vec<String>,
}

/// Keys, issuers and audiences of service account tokens, as the flags of kube-apiserver name them.
#[derive(Clone, Default)]
pub struct TokenOptions {
    /// The issuers (`--service-account-issuer`). The first one issues; tokens of all are accepted.
    pub issuers: Vec<String>,
    /// The audiences of the server (`--api-audiences`); the issuers if empty.
    pub audiences: Vec<String>,
    /// The signing key as PEM (`--service-account-signing-key-file`).
    pub signing_key: Option<String>,
    /// Public keys, private keys or certificates as PEM (`--service-account-key-file`), whose
    /// tokens are accepted besides those of the signing key.
    pub keys: Vec<String>,
}

impl std::fmt::Debug for TokenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenOptions")
            .field("issuers", &self.issuers)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

/// The claims of a token.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The namespace of the account.
    pub namespace: String,
    /// The name of the account.
    pub name: String,
    /// The uid of the account.
    pub uid: String,
    /// The audiences that may take the token.
    pub audiences: Vec<String>,
    /// The lifetime.
    pub seconds: i64,
    /// The kind in lower case, name and uid of an object whose end is the end of the token.
    pub bound_to: Option<(String, String, String)>,
}

/// The signing key could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignerError {
    /// The key on disk is not one.
    #[error("service account key is damaged")]
    Damaged,
    /// The key file could not be read or written.
    #[error("cannot use the service account key")]
    File(#[from] std::io::Error),
    /// The signer already signs.
    #[error("the service account keys cannot change while they are in use")]
    InUse,
}

impl Signer {
    /// A signer whose tokens are good as long as the process lives.
    pub fn in_memory(env: &Env) -> Result<Self, SignerError> {
        Self::from_pkcs8(&generate()?, env)
    }

    /// The signer with a key in PKCS #8.
    pub fn from_pkcs8(pkcs8: &[u8], env: &Env) -> Result<Self, SignerError> {
        Self::new(SigningKey::from_pkcs8(pkcs8)?, env)
    }

    /// The signer with the first private key of a PEM text.
    pub fn from_pem(text: &str, env: &Env) -> Result<Self, SignerError> {
        Self::new(SigningKey::from_pem(text)?, env)
    }

    fn new(key: SigningKey, env: &Env) -> Result<Self, SignerError> {
        let shared = Shared {
            accepted: vec![key.public()],
            key,
            issuers: vec![ISSUER.to_owned()],
            audiences: vec![ISSUER.to_owned()],
        };
        Ok(Self {
            shared: Arc::new(shared),
            env: env.clone(),
        })
    }

    /// The public key that tokens are checked with, as a JSON Web Key (RFC 7517).
    #[must_use]
    pub fn public_key(&self) -> Doc {
        self.shared.key.public().jwk()
    }

    /// The same signer with the issuers, audiences and further keys of some options.
    ///
    /// # Errors
    /// When one of the keys cannot be read.
    pub fn with(self, options: &TokenOptions) -> Result<Self, SignerError> {
        let Ok(mut shared) = Arc::try_unwrap(self.shared) else {
            return Err(SignerError::InUse);
        };
        for text in &options.keys {
            shared.accepted.extend(PublicKey::all_from_pem(text)?);
        }
        if !options.issuers.is_empty() {
            shared.issuers.clone_from(&options.issuers);
        }
        let audiences = match options.audiences.is_empty() {
            true => &shared.issuers,
            false => &options.audiences,
        };
        shared.audiences = audiences.clone();
        Ok(Self {
            shared: Arc::new(shared),
            env: self.env,
        })
    }

    /// The algorithm of the signatures.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.shared.key.algorithm()
    }

    /// The issuer of the tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.shared.issuers.first().map_or(ISSUER, String::as_str)
    }

    /// The audiences of the server itself, and of a token that names none.
    #[must_use]
    pub fn audiences(&self) -> &[String] {
        &self.shared.audiences
    }

    /// A signed token and the moment it ends.
    pub fn sign(&self, claims: &Claims) -> Option<(String, windlass_core::Time)> {
        let now = self.env.now().unix();
        let end = now.saturating_add(claims.seconds);
        let account = doc!({ "name": (&claims.name), "uid": (&claims.uid) });
        let mut inside = doc!({ "namespace": (&claims.namespace), "serviceaccount": account });
        if let Some((kind, name, uid)) = &claims.bound_to {
            let bound = doc!({ "name": name, "uid": uid });
            inside = inside.with(&format!("/{kind}"), bound).ok()?;
        }
        let audiences: Vec<Doc> = claims.audiences.iter().map(Doc::from).collect();
        let subject = format!("system:serviceaccount:{}:{}", claims.namespace, claims.name);
        let payload = doc!({
            "iss": (self.issuer()), "sub": subject, "aud": audiences, "iat": now, "nbf": now,
            "exp": end, "jti": (self.env.uid().as_str()), "kubernetes.io": inside
        });
        let token = self.sign_payload(&payload)?;
        Some((token, windlass_core::Time::from_unix(end)))
    }

    /// A signed token with any claims. Those of a token in a Secret are good as long as the Secret
    /// holds it; others are not accepted without an end.
    #[must_use]
    pub fn sign_payload(&self, payload: &Doc) -> Option<String> {
        let key = &self.shared.key;
        let header = doc!({ "alg": (key.algorithm()), "kid": (key.public().id()) });
        let text = format!(
            "{}.{}",
            BASE64.encode(header.to_json()),
            BASE64.encode(payload.to_json())
        );
        let signature = self.shared.key.sign(text.as_bytes())?;
        Some(format!("{text}.{}", BASE64.encode(signature)))
    }

    /// The account a token names, if it was signed here, is in time, and the account and what
    /// the token is bound to still exist.
    pub fn verify(&self, token: &str, objects: &dyn Reader) -> Option<User> {
        let payload = self.payload(token)?;
        if payload.str_at("/iss") == SECRET_ISSUER {
            return kept_in_secret(token, &payload, objects);
        }
        let now = self.env.now().unix();
        let is_in_time = payload.at("/exp").as_i64()? > now && payload.at("/nbf").as_i64()? <= now;
        let audience = payload
            .at("/aud")
            .items()
            .iter()
            .any(|audience| self.is_own_audience(audience.as_str().unwrap_or_default()));
        let issuer = payload.str_at("/iss");
        let is_issuer = self.shared.issuers.iter().any(|known| known == issuer);
        if !is_in_time || !audience || !is_issuer {
            return None;
        }
        let inside = payload.get("kubernetes.io")?;
        let (namespace, account) = (inside.str_at("/namespace"), inside.get("serviceaccount")?);
        let exists = |resource: &str, place: &str, named: &Doc| {
            let found = objects.find("", resource, place, named.str_at("/name"));
            found.is_some_and(|found| found.meta().uid_str() == named.str_at("/uid"))
        };
        if !exists("serviceaccounts", namespace, account) {
            return None;
        }
        let bounds = [
            ("pod", "pods", namespace),
            ("secret", "secrets", namespace),
            ("node", "nodes", ""),
        ];
        for (kind, resource, place) in bounds {
            if inside
                .get(kind)
                .is_some_and(|named| !exists(resource, place, named))
            {
                return None;
            }
        }
        let mut user = User::service_account(namespace, account.str_at("/name"));
        account.str_at("/uid").clone_into(&mut user.uid);
        user.extra = bound_extra(inside, namespace, objects);
        let id = format!("JTI={}", payload.str_at("/jti"));
        user.extra.push((
            "authentication.kubernetes.io/credential-id".to_owned(),
            vec![id],
        ));
        Some(user)
    }

    /// Returns true if a token for an audience is one for this server.
    #[must_use]
    pub fn is_own_audience(&self, audience: &str) -> bool {
        self.shared.audiences.iter().any(|known| known == audience)
    }

    /// The claims of a token, if its signature is good.
    fn payload(&self, token: &str) -> Option<Doc> {
        if token.len() > TOKEN_BYTES_LIMIT {
            return None;
        }
        let (text, signature) = token.rsplit_once('.')?;
        let (header, payload) = text.split_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        let parse = |part: &str| {
            let bytes = BASE64.decode(part).ok()?;
            Doc::parse_with(
                &bytes,
                &ParseOptions {
                    depth_limit: 16,
                    ..ParseOptions::default()
                },
            )
            .ok()
        };
        let header = parse(header)?;
        let algorithm = header.str_at("/alg");
        let mut keys = self.shared.accepted.iter();
        let is_signed = keys.any(|key| key.verifies(algorithm, text.as_bytes(), &signature));
        is_signed.then(|| parse(payload))?
    }
}

/// The account of a token that a Secret holds, if both are still there and the Secret holds this
/// token and no other.
fn kept_in_secret(token: &str, payload: &Doc, objects: &dyn Reader) -> Option<User> {
    let claim = |key: &str| {
        let value = payload.get(&format!("kubernetes.io/serviceaccount/{key}"));
        value.and_then(Doc::as_str).filter(|it| !it.is_empty())
    };
    let namespace = claim("namespace")?;
    let (name, uid) = (
        claim("service-account.name")?,
        claim("service-account.uid")?,
    );
    let secret = objects.find("", "secrets", namespace, claim("secret.name")?)?;
    let kept = SECRET_DATA.decode(secret.str_at("/data/token")).ok()?;
    // Both texts are known to whoever sends the token, so the time this takes tells nothing.
    if secret.meta().is_deleting() || kept != token.as_bytes() {
        return None;
    }
    let account = objects.find("", "serviceaccounts", namespace, name)?;
    if account.meta().is_deleting() || account.meta().uid_str() != uid {
        return None;
    }
    let mut user = User::service_account(namespace, name);
    uid.clone_into(&mut user.uid);
    Some(user)
}

/// The use of a token: the pod it is bound to, and the node of that pod.
fn bound_extra(inside: &Doc, namespace: &str, objects: &dyn Reader) -> Vec<(String, Vec<String>)> {
    let mut extra = Vec::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            extra.push((key, vec![value.to_owned()]));
        }
    };
    let node = match inside.get("pod") {
        Some(pod) => {
            add("pod-name", pod.str_at("/name"));
            add("pod-uid", pod.str_at("/uid"));
            let pod = objects.find("", "pods", namespace, pod.str_at("/name"));
            pod.map(|pod| pod.str_at("/spec/nodeName").to_owned())
        }
        None => inside
            .get("node")
            .map(|node| node.str_at("/name").to_owned()),
    };
    if let Some(node) = node.filter(|node| !node.is_empty()) {
        add("node-name", &node);
        let found = objects.find("", "nodes", "", &node);
        add(
            "node-uid",
            found
                .map_or(String::new(), |node| node.meta().uid_str().to_owned())
                .as_str(),
        );
    }
    extra
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(..)")
    }
}

/// A fresh key in PKCS #8.
pub fn generate() -> Result<Vec<u8>, SignerError> {
    let random = SystemRandom::new();
    EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
        .map(|document| document.as_ref().to_vec())
        .map_err(|_| SignerError::Damaged)
}
