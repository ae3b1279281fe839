//! The token of the administrator.

use std::io;
use std::path::Path;

use windlass_core::Env;

use crate::private_file;

/// The token of a data directory, made at its first start, so that clients outlive a restart of
/// the server.
pub(crate) fn admin_token(dir: &Path, env: &Env) -> io::Result<String> {
    let path = dir.join("admin.token");
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let token = fresh_token(env);
    private_file::write(&path, token.as_bytes())?;
    Ok(token)
}

/// A token that cannot be guessed: 256 random bits.
pub(crate) fn fresh_token(env: &Env) -> String {
    (0..4)
        .map(|_| format!("{:016x}", env.random_u64()))
        .collect()
}
