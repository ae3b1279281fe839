//! The token of the administrator.

use std::io;
use std::path::Path;

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
