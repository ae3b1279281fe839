//! The credentials of a data directory: the token of the administrator and the key that signs
//! tokens of service accounts.

use std::io;
use std::path::Path;

use windlass_access::token::{Signer, SignerError, generate};
use windlass_core::Env;

use crate::private_file;

/// The token of a data directory, made at its first start, so that clients outlive a restart of
/// the server.
pub(crate) fn admin_token(dir: &Path, env: &Env) -> io::Result<String> {
    let path = dir.join("admin.token");
    let known = private_file::read_key(&path)?;
    let is_there = known.is_some();
    let known = String::from_utf8(known.unwrap_or_default()).map_err(io::Error::other)?;
    if !known.trim().is_empty() {
        return Ok(known.trim().to_owned());
    }
    if is_there {
        // Emptied on purpose, to have a new one.
        std::fs::remove_file(&path)?;
    }
    let token = fresh_token(env);
    private_file::create_key(&path, token.as_bytes())?;
    Ok(token)
}

/// A token that cannot be guessed: 256 random bits.
pub(crate) fn fresh_token(env: &Env) -> String {
    (0..4)
        .map(|_| format!("{:016x}", env.random_u64()))
        .collect()
}

/// The signer of a data directory, and true if its key was not there and was made.
pub(crate) fn signer(dir: &Path, env: &Env) -> Result<(Signer, bool), SignerError> {
    let path = dir.join("sa.key");
    let known = private_file::read_key(&path)?;
    let is_made = known.is_none();
    let pkcs8 = match known {
        Some(bytes) => bytes,
        None => {
            let bytes = generate()?;
            private_file::create_key(&path, &bytes)?;
            bytes
        }
    };
    Ok((Signer::from_pkcs8(&pkcs8, env)?, is_made))
}

/// Warns that the key of a directory that held a cluster was made anew.
pub(crate) fn warn_of_new_signer(dir: &Path) {
    let effect = "service account tokens that were issued before are not valid any more";
    private_file::warn_of_new_key(&dir.join("sa.key"), effect);
}
