//! Encryption at rest: documents of chosen resources are sealed before they reach the disk.
//!
//! A sealed document is an object with one field, which names the key and holds nonce, ciphertext
//! and tag of AES-256-GCM. The name of the object and its revision are authenticated with it, so
//! that one sealed document cannot take the place of another. Nonces are random: one key is good
//! for 2^32 writes.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use windlass_core::{Doc, Env, doc};

/// The one field of a sealed document.
const FIELD: &str = "windlass.dev/sealed";
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Keys that are read at most: rotation needs two.
const KEYS_LIMIT: usize = 16;
/// Bytes of the hash of a key that it is known by.
const ID_BYTES: usize = 6;

/// Keys for encryption at rest. The first encrypts, all decrypt.
#[derive(Clone)]
pub struct EncryptionKeys(Arc<Vec<SealingKey>>);

struct SealingKey {
    id: String,
    key: LessSafeKey,
}

/// A text holds no keys for encryption.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionKeysError {
    /// A line is not a key.
    #[error(
        "line {line} is no key: a key is 32 random bytes in base64, one on each line, for example \
         from `openssl rand -base64 32`"
    )]
    Line {
        /// The number of the line, from one.
        line: usize,
    },
    /// There is no key.
    #[error("there is no key; make one with `openssl rand -base64 32`")]
    Empty,
    /// There are more keys than any rotation needs.
    #[error("there are more than {KEYS_LIMIT} keys; remove those that nothing is encrypted with")]
    TooMany,
}

/// A sealed document could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnsealError {
    /// The key of this id is not known.
    UnknownKey(String),
    /// The document is not what was sealed.
    Damaged,
}

impl EncryptionKeys {
    /// Reads keys, one on each line in base64. Empty lines and those that begin with `#` are
    /// passed over.
    ///
    /// # Errors
    /// When a line is not a key, or there is none.
    pub fn parse(text: &str) -> Result<Self, EncryptionKeysError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if keys.len() == KEYS_LIMIT {
                return Err(EncryptionKeysError::TooMany);
            }
            let key = SealingKey::parse(line);
            keys.push(key.ok_or(EncryptionKeysError::Line { line: index + 1 })?);
        }
        match keys.is_empty() {
            true => Err(EncryptionKeysError::Empty),
            false => Ok(Self(Arc::new(keys))),
        }
    }

    /// Seals a document. `context` is what it may be opened with again.
    pub(crate) fn seal(&self, env: &Env, context: &str, document: &Doc) -> Doc {
        let first = &self.0[0];
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&env.random_u64().to_le_bytes());
        nonce[8..].copy_from_slice(&env.random_u64().to_le_bytes()[..NONCE_LEN - 8]);
        let mut text = document.to_json();
        let (aad, used) = (
            Aad::from(context.as_bytes()),
            Nonce::assume_unique_for_key(nonce),
        );
        first
            .key
            .seal_in_place_append_tag(used, aad, &mut text)
            .expect("invariant: objects are shorter than AES-GCM allows");
        let mut data = nonce.to_vec();
        data.append(&mut text);
        doc!({ FIELD: { "key": (first.id.as_str()), "data": (BASE64.encode(data)) } })
    }

    /// Opens a sealed document.
    pub(crate) fn unseal(&self, context: &str, sealed: &Doc) -> Result<Doc, UnsealError> {
        let content = sealed.get(FIELD).ok_or(UnsealError::Damaged)?;
        let id = content.str_at("/key");
        let known = self.0.iter().find(|key| key.id == id);
        let key = known.ok_or_else(|| UnsealError::UnknownKey(id.to_owned()))?;
        let data = BASE64.decode(content.str_at("/data"));
        let mut data = data.map_err(|_| UnsealError::Damaged)?;
        if data.len() < NONCE_LEN {
            return Err(UnsealError::Damaged);
        }
        let (nonce, text) = data.split_at_mut(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError::Damaged)?;
        let opened = key
            .key
            .open_in_place(nonce, Aad::from(context.as_bytes()), text);
        let text = opened.map_err(|_| UnsealError::Damaged)?;
        Doc::parse(text).map_err(|_| UnsealError::Damaged)
    }

    /// Returns true if a document is sealed with the first key.
    pub(crate) fn is_current(&self, document: &Doc) -> bool {
        sealed_with(document).is_some_and(|id| id == self.0[0].id)
    }
}

/// The id of the key that a document is sealed with; `None` if it is not sealed.
pub(crate) fn sealed_with(document: &Doc) -> Option<&str> {
    let object = document.as_object().filter(|object| object.len() == 1)?;
    Some(object.get(FIELD)?.str_at("/key"))
}

/// What a sealed document is bound to: the name of the object, and its revision.
pub(crate) fn context(id: &str, revision: u64) -> String {
    format!("{id}\0{revision}")
}

impl SealingKey {
    fn parse(line: &str) -> Option<Self> {
        let bytes = BASE64.decode(line).ok()?;
        if bytes.len() != KEY_BYTES {
            return None;
        }
        let hash = digest(&SHA256, &bytes);
        let id = hash.as_ref()[..ID_BYTES].iter();
        Some(Self {
            id: id.map(|byte| format!("{byte:02x}")).collect(),
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?),
        })
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.0.iter().map(|key| &key.id);
        f.debug_list().entries(ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> String {
        BASE64.encode([byte; KEY_BYTES])
    }

    #[test]
    fn a_sealed_document_opens_with_its_key_and_context_alone() {
        let env = Env::seeded(1);
        let keys = EncryptionKeys::parse(&format!("# the key\n\n{}\n", key(1))).unwrap();
        let secret = doc!({ "data": { "password": "aHVudGVyMg==" } });
        let sealed = keys.seal(&env, "secrets\0a", &secret);
        assert!(sealed_with(&sealed).is_some() && keys.is_current(&sealed));
        assert_eq!(keys.unseal("secrets\0a", &sealed), Ok(secret.clone()));
        assert_eq!(
            keys.unseal("secrets\0b", &sealed),
            Err(UnsealError::Damaged)
        );
        assert_ne!(
            keys.seal(&env, "secrets\0a", &secret),
            sealed,
            "nonces differ"
        );
        let rotated = EncryptionKeys::parse(&format!("{}\n{}", key(2), key(1))).unwrap();
        assert_eq!(rotated.unseal("secrets\0a", &sealed), Ok(secret));
        assert!(!rotated.is_current(&sealed));
        let other = EncryptionKeys::parse(&key(2)).unwrap();
        let id = sealed_with(&sealed).unwrap().to_owned();
        assert_eq!(
            other.unseal("secrets\0a", &sealed),
            Err(UnsealError::UnknownKey(id))
        );
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_line_and_never_printed() {
        let keys = |text: &str| EncryptionKeys::parse(text).map(|_| ());
        assert_eq!(keys("# nothing\n"), Err(EncryptionKeysError::Empty));
        let wrong = format!("{}\nhunter2", key(1));
        assert_eq!(keys(&wrong), Err(EncryptionKeysError::Line { line: 2 }));
        let short = BASE64.encode([1; 16]);
        assert_eq!(keys(&short), Err(EncryptionKeysError::Line { line: 1 }));
        let many = vec![key(1); KEYS_LIMIT + 1].join("\n");
        assert_eq!(keys(&many), Err(EncryptionKeysError::TooMany));
        let shown = format!("{:?}", EncryptionKeys::parse(&key(1)).unwrap());
        assert!(!shown.contains(&key(1)) && shown.len() < 20, "{shown}");
    }
}
