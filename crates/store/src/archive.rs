//! Backups: the files of a data directory in one file that carries its checksum.
//!
//! `WINDLASS-BACKUP 1`, a line feed, then for each file the length of its name (two bytes), the
//! name, the length of its content (eight bytes) and the content; a length of zero ends the list,
//! and the SHA-256 of everything before ends the backup. Numbers are little endian.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::OpenError;
use crate::backend::{Directory, STORE_FILES};

/// At the head of a backup, with the version of its format.
const HEAD: &[u8] = b"WINDLASS-BACKUP 1\n";
/// Bytes of the head without the version.
const KIND_BYTES: usize = 16;
/// Bytes of the checksum.
const CHECKSUM_BYTES: u64 = 32;
/// Files in a backup at most.
const FILES_LIMIT: usize = 64;
/// Bytes that are copied together.
const COPY_BYTES: usize = 64 << 10;

/// A backup could not be made or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file could not be read or written.
    #[error("cannot use {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is no backup.
    #[error("{} is not a backup of windlass", .0.display())]
    NoBackup(PathBuf),
    /// The backup was made by a newer program.
    #[error("{} was made by a newer windlass; restore it with that one", .0.display())]
    Newer(PathBuf),
    /// The backup is not as it was written.
    #[error("{} is damaged: its checksum is wrong; use another backup", .0.display())]
    Damaged(PathBuf),
    /// There is something in the directory.
    #[error("{} is not empty; restore into a new directory", .0.display())]
    NotEmpty(PathBuf),
}

/// Writes the files of a data directory that nobody uses into one file, which must not exist.
/// `others` are files beside the store. Returns its length.
///
/// # Errors
/// When the directory is in use, or a file cannot be read or written.
pub fn backup(dir: &Path, others: &[&str], out: &Path) -> Result<u64, ArchiveError> {
    let _lock = Directory::open(dir)?;
    let fail = |path: &Path, source| ArchiveError::File {
        path: path.to_owned(),
        source,
    };
    let file = create(out).map_err(|source| fail(out, source))?;
    let mut writer = Summing::new(BufWriter::new(file));
    writer.put(HEAD).map_err(|source| fail(out, source))?;
    for name in STORE_FILES.iter().chain(others) {
        let path = dir.join(name);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let mut source = opened.map_err(|source| fail(&path, source))?;
                let put = writer.put_file(name, &mut source);
                put.map_err(|source| fail(&path, source))?;
            }
        }
    }
    writer.finish().map_err(|source| fail(out, source))
}

/// Puts the files of a backup into a directory, which must be empty or not exist. Only files of
/// the store and `others` are taken.
///
/// # Errors
/// When the backup is damaged, the directory is not empty, or the disk fails.
pub fn restore(backup: &Path, dir: &Path, others: &[&str]) -> Result<(), ArchiveError> {
    let fail = |path: &Path, source| ArchiveError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(backup).map_err(|source| fail(backup, source))?;
    let len = verify(&mut file, backup)?;
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ArchiveError::NotEmpty(dir.to_owned()));
    }
    let directory = Directory::open(dir)?;
    file.seek(io::SeekFrom::Start(HEAD.len() as u64))
        .map_err(|source| fail(backup, source))?;
    let content = len - CHECKSUM_BYTES - HEAD.len() as u64;
    let mut reader = BufReader::new(file).take(content);
    let damaged = || ArchiveError::Damaged(backup.to_owned());
    for _ in 0..FILES_LIMIT {
        let Some((name, len)) = entry(&mut reader).map_err(|_| damaged())? else {
            return directory.sync().map_err(|source| fail(dir, source));
        };
        if !STORE_FILES.iter().chain(others).any(|known| *known == name) {
            return Err(damaged());
        }
        let path = dir.join(&name);
        extract(&mut reader, len, &path).map_err(|source| fail(&path, source))?;
    }
    Err(damaged())
}

fn extract(reader: &mut impl Read, len: u64, path: &Path) -> io::Result<()> {
    let mut file = create(path)?;
    let copied = io::copy(&mut reader.take(len), &mut file)?;
    if copied != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.sync_all()
}

/// The name and length of the next file.
fn entry(reader: &mut impl Read) -> io::Result<Option<(String, u64)>> {
    let mut len = [0; 2];
    reader.read_exact(&mut len)?;
    let len = usize::from(u16::from_le_bytes(len));
    if len == 0 {
        return Ok(None);
    }
    let mut name = vec![0; len];
    reader.read_exact(&mut name)?;
    let mut len = [0; 8];
    reader.read_exact(&mut len)?;
    let name = String::from_utf8(name).map_err(io::Error::other)?;
    Ok(Some((name, u64::from_le_bytes(len))))
}

/// Makes sure that a backup is whole, and returns its length.
fn verify(file: &mut File, path: &Path) -> Result<u64, ArchiveError> {
    let fail = |source| ArchiveError::File {
        path: path.to_owned(),
        source,
    };
    let len = file.metadata().map_err(fail)?.len();
    let mut head = [0; HEAD.len()];
    let is_long = len >= HEAD.len() as u64 + CHECKSUM_BYTES + 2;
    if !is_long || file.read_exact(&mut head).is_err() || head[..KIND_BYTES] != HEAD[..KIND_BYTES] {
        return Err(ArchiveError::NoBackup(path.to_owned()));
    }
    if head != *HEAD {
        return Err(ArchiveError::Newer(path.to_owned()));
    }
    let mut sum = Context::new(&SHA256);
    sum.update(&head);
    let mut left = len - HEAD.len() as u64 - CHECKSUM_BYTES;
    let mut bytes = vec![0; COPY_BYTES];
    while left > 0 {
        let count = usize::try_from(left).map_or(COPY_BYTES, |left| left.min(COPY_BYTES));
        file.read_exact(&mut bytes[..count]).map_err(fail)?;
        sum.update(&bytes[..count]);
        left -= count as u64;
    }
    let mut expected = [0; CHECKSUM_BYTES as usize];
    file.read_exact(&mut expected).map_err(fail)?;
    match sum.finish().as_ref() == expected {
        true => Ok(len),
        false => Err(ArchiveError::Damaged(path.to_owned())),
    }
}

/// A writer that adds up what it writes.
struct Summing {
    out: BufWriter<File>,
    sum: Context,
    len: u64,
}

impl Summing {
    fn new(out: BufWriter<File>) -> Self {
        Self {
            out,
            sum: Context::new(&SHA256),
            len: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.len += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn put_file(&mut self, name: &str, file: &mut File) -> io::Result<()> {
        let name_len = u16::try_from(name.len()).map_err(io::Error::other)?;
        let len = file.metadata()?.len();
        self.put(&name_len.to_le_bytes())?;
        self.put(name.as_bytes())?;
        self.put(&len.to_le_bytes())?;
        let mut left = len;
        let mut bytes = vec![0; COPY_BYTES];
        while left > 0 {
            let count = usize::try_from(left).map_or(COPY_BYTES, |left| left.min(COPY_BYTES));
            file.read_exact(&mut bytes[..count])?;
            self.put(&bytes[..count])?;
            left -= count as u64;
        }
        Ok(())
    }

    /// Ends the backup and makes it durable.
    fn finish(mut self) -> io::Result<u64> {
        self.put(&0_u16.to_le_bytes())?;
        let sum = self.sum.clone().finish();
        self.out.write_all(sum.as_ref())?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.len + CHECKSUM_BYTES)
    }
}

/// Makes a file that only its owner may read, because it holds keys and Secrets.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
