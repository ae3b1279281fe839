//! Files that only their owner may read.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file that only its owner may read. It appears whole or not at all, and never with
/// wider permissions in between.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, fresh) = write_fresh(path, bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// Writes a file as [`write()`] does, but does not wait for the disk: for what is written at every
/// start, and so need not outlive a power cut.
pub fn write_at_start(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (_, fresh) = write_fresh(path, bytes)?;
    fs::rename(&fresh, path)
}

/// Writes a file beside the one that it shall replace.
fn write_fresh(path: &Path, bytes: &[u8]) -> io::Result<(fs::File, PathBuf)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A leftover of a crash may have been made with other permissions.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => options.mode(0o600),
        };
    }
    let mut file = options.open(&fresh)?;
    file.write_all(bytes)?;
    Ok((file, fresh))
}

/// Makes a directory that only its owner may enter; one that exists is left as it is.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}
