//! Files that only their owner may read.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file of the store that is there once objects were kept.
const STORE_FILE: &str = "store.state";

/// Writes a file that only its owner may read. It appears whole or not at all, and never with
/// wider permissions in between.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, fresh) = write_fresh(path, bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync_directory(path)
}

/// Writes a file as [`write()`] does, but does not wait for the disk: for what is written at every
/// start, and so need not outlive a power cut.
pub fn write_at_start(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (_, fresh) = write_fresh(path, bytes)?;
    fs::rename(&fresh, path)
}

/// Makes a key file, which must not exist. It appears whole or not at all, readable by its owner
/// alone, and is there for good when this returns.
pub(crate) fn create_key(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (file, fresh) = write_fresh(path, bytes)?;
    file.sync_all()?;
    // A link is refused where a file is; a name that was taken meanwhile is not replaced.
    let linked = match fs::hard_link(&fresh, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems have no links.
        Err(_) => return fs::rename(&fresh, path).and_then(|()| sync_directory(path)),
        Ok(()) => Ok(()),
    };
    fs::remove_file(&fresh)?;
    linked.and_then(|()| sync_directory(path))
}

/// Reads a key file; `None` if it does not exist. A key that every user could read or that others
/// could have written is refused; one that its group may read is warned of.
pub fn read_key(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => {
            let bytes = read?;
            check_permissions(path)?;
            Ok(Some(bytes))
        }
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    let (name, remedy) = (path.display(), "chmod 600");
    if mode & 0o026 != 0 {
        let text = format!(
            "others may read or write the key file {name} (mode {mode:o}); take that right away \
             with `{remedy} {name}`, and make a new key if somebody may have read it"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if mode & 0o040 != 0 {
        tracing::warn!(
            "the group may read the key file {name} (mode {mode:o}); `{remedy} {name}` prevents it"
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_permissions(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns true if a data directory holds a store.
pub(crate) fn has_store(dir: &Path) -> bool {
    dir.join(STORE_FILE).exists()
}

/// Logs that a key was made anew beside objects that know an older one.
pub(crate) fn warn_of_new_key(path: &Path, effect: &str) {
    tracing::warn!("{} was missing and is made anew: {effect}", path.display());
}

/// Writes a file beside the one that it shall replace.
fn write_fresh(path: &Path, bytes: &[u8]) -> io::Result<(fs::File, PathBuf)> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // A leftover of a crash may have been made with other permissions.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    // Whatever has the name by now, a link for example, was not put there by this process.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&fresh)?;
    file.write_all(bytes)?;
    Ok((file, fresh))
}

/// A new name is there for good only when its directory is synced.
fn sync_directory(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is there");
    }

    #[test]
    fn a_key_file_is_never_replaced_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sa.key");
        create_key(&path, b"first").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = create_key(&path, b"second").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read_key(&path).unwrap().unwrap(), b"first");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_link_in_the_place_of_a_fresh_file_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("sa.key"), dir.path().join("target"));
        fs::write(&target, b"theirs").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("sa.key.new")).unwrap();
        create_key(&path, b"ours").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(fs::read(&path).unwrap(), b"ours");
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        assert_eq!(read_key(&path).unwrap(), None);
        create_key(&path, b"key").unwrap();
        for mode in [0o644, 0o604, 0o620, 0o602] {
            set_mode(&path, mode);
            let refused = read_key(&path).unwrap_err().to_string();
            assert!(refused.contains("chmod 600"), "{refused}");
        }
        for mode in [0o600, 0o400, 0o640] {
            set_mode(&path, mode);
            assert!(read_key(&path).is_ok(), "{mode:o}");
        }
    }
}
