//! Checking a store, and making a new one of what is sound in it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Loaded;
use super::directory::Directory;
use super::import::{Import, import};
use super::log::FILES;
use super::open;
use super::row::Id;
use super::salvage::{Kept, Salvaged, salvage};
use super::state::STATE_FILE;
use super::storage::{Files, TABLES_FILE};
use crate::expiry::Lease;
use crate::{Commit, OpenError, Place, StoreOptions};

/// Where a new store is made, beside the files that it replaces.
const FRESH_DIRECTORY: &str = "store.repaired";
/// Where damaged files go, with a number behind it.
const DAMAGED_DIRECTORY: &str = "store.damaged";
/// Damaged files that are kept at most.
const DAMAGED_LIMIT: usize = 1_000;

/// The files of a store.
pub(crate) const STORE_FILES: [&str; 4] = [STATE_FILE, TABLES_FILE, FILES[0], FILES[1]];

/// What is in a sound store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// The identity of the store.
    pub uid: String,
    /// The newest revision.
    pub revision: u64,
    /// Objects.
    pub objects: usize,
    /// Resources that have objects.
    pub resources: usize,
    /// Events of the past.
    pub events: usize,
    /// Bytes of the files.
    pub bytes: u64,
}

/// What was saved of a damaged store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Objects in the new store.
    pub objects: usize,
    /// Commits that were found in the log.
    pub commits: u64,
    /// The revision that the new store goes on after.
    pub revision: u64,
    /// Objects that are lost, as `resource name`, with the reason. There may be others, whose
    /// names are lost as well.
    pub lost: Vec<(String, String)>,
    /// Objects of which an older state was saved, because the newest is lost.
    pub older: Vec<String>,
    /// Objects that a damaged index does not list: some of them may have been deleted before.
    pub uncertain: Vec<String>,
    /// Where the damaged files are now.
    pub damaged: PathBuf,
}

/// Verifies every page, row and commit of a store. Nothing is changed.
///
/// # Errors
/// When the store is in use, or not sound.
pub fn check(options: &StoreOptions) -> Result<Check, OpenError> {
    let options = StoreOptions {
        // Every page is verified before anything else is done.
        commit: Commit::Inline,
        ..options.clone()
    };
    let (loaded, bytes, _lock) = open::open_unchanged(&options)?;
    Ok(Check {
        uid: loaded.uid.to_string(),
        revision: loaded.revision,
        objects: loaded.objects.values().map(Vec::len).sum(),
        resources: loaded.objects.len(),
        events: loaded.events.len(),
        bytes: bytes.files,
    })
}

/// Makes a new store of everything that is sound in the files of a directory. The old files are
/// kept in a directory beside it. The past is not kept: clients have to list again.
///
/// # Errors
/// When the directory is in use, or the disk fails. The old files are as they were then.
pub fn repair(options: &StoreOptions) -> Result<Repair, OpenError> {
    let directory = Directory::open(directory_of(options)?)?;
    let dir = directory.path().to_owned();
    let salvaged = salvage(Files::raw(&directory)?)?;
    let mut repair = report(&salvaged);
    let content = Import {
        uid: salvaged.uid,
        revision: salvaged.revision,
        objects: salvaged.objects,
    };
    make_beside(&dir, content, options)?;
    repair.damaged = replace(&directory).map_err(|source| failed(&dir, source))?;
    Ok(repair)
}

/// Writes everything anew: Secrets are encrypted with the first key, and nothing of what was
/// deleted is left in the files. The past is not kept: clients have to list again. Returns the
/// number of objects.
///
/// # Errors
/// When the store is in use or not sound, or the disk fails. The old files are as they were then.
pub fn rewrite(options: &StoreOptions) -> Result<usize, OpenError> {
    let (loaded, _, lock) = open::open_unchanged(options)?;
    let content = Import {
        uid: Some(loaded.uid.to_string()),
        revision: loaded.revision,
        objects: everything(&loaded, options),
    };
    let objects = content.objects.len();
    let Some(directory) = lock else {
        return Err(no_directory());
    };
    let dir = directory.path().to_owned();
    make_beside(&dir, content, options)?;
    let old = replace(&directory).map_err(|source| failed(&dir, source))?;
    fs::remove_dir_all(old).map_err(|source| failed(&dir, source))?;
    Ok(objects)
}

fn everything(loaded: &Loaded, options: &StoreOptions) -> Vec<Kept> {
    let leases = loaded.leases.iter();
    let leases: HashMap<u64, &Lease> = leases.map(|lease| (lease.revision, lease)).collect();
    let mut all = Vec::new();
    for (resource, entries) in &loaded.objects {
        for entry in entries {
            let lease = leases.get(&entry.revision);
            all.push(Kept {
                id: Id::new(resource, &entry.key).as_str().to_owned(),
                revision: entry.revision,
                expiry: lease.map(|lease| lease.wall_micros(&options.env)),
                document: entry.doc().clone(),
            });
        }
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

/// Makes a store in a directory beside the old files, and checks it.
fn make_beside(dir: &Path, content: Import, options: &StoreOptions) -> Result<(), OpenError> {
    let fresh = dir.join(FRESH_DIRECTORY);
    match fs::remove_dir_all(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(dir, error)),
        _ => {}
    }
    let has_uid = content.uid.is_some();
    import(&fresh, content, options)?;
    let options = StoreOptions {
        place: Place::Directory(fresh),
        ..options.clone()
    };
    match check(&options) {
        // Without the keys nobody can say more than that it was encrypted.
        Err(OpenError::NoEncryptionKey { .. }) if has_uid => Ok(()),
        checked => checked.map(drop),
    }
}

/// Puts the new files in the place of the old ones, and returns where those are.
fn replace(directory: &Directory) -> io::Result<PathBuf> {
    let dir = directory.path();
    let free = (1..=DAMAGED_LIMIT).map(|number| dir.join(format!("{DAMAGED_DIRECTORY}-{number}")));
    let mut free = free.filter(|path| !path.exists());
    let full = || io::Error::other(format!("there are {DAMAGED_LIMIT} damaged stores already"));
    let damaged = free.next().ok_or_else(full)?;
    fs::create_dir(&damaged)?;
    move_files(dir, &damaged)?;
    // Until this is done, a start says which file is missing.
    move_files(&dir.join(FRESH_DIRECTORY), dir)?;
    directory.sync()?;
    fs::remove_dir_all(dir.join(FRESH_DIRECTORY))?;
    Ok(damaged)
}

fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    for name in STORE_FILES {
        match fs::rename(from.join(name), to.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn report(salvaged: &Salvaged) -> Repair {
    let names = |ids: &std::collections::BTreeSet<String>| ids.iter().map(|id| name(id)).collect();
    let lost = salvaged.lost.iter();
    Repair {
        objects: salvaged.objects.len(),
        commits: salvaged.commits,
        revision: salvaged.revision,
        lost: lost.map(|(id, why)| (name(id), why.clone())).collect(),
        older: names(&salvaged.older),
        uncertain: names(&salvaged.uncertain),
        damaged: PathBuf::new(),
    }
}

/// An id as people read it.
fn name(id: &str) -> String {
    id.replace('\0', " ")
}

fn directory_of(options: &StoreOptions) -> Result<&Path, OpenError> {
    match &options.place {
        Place::Directory(dir) => Ok(dir),
        Place::Memory | Place::Disk(_) => Err(no_directory()),
    }
}

fn no_directory() -> OpenError {
    OpenError::Damaged("only a store in a directory can be repaired".to_owned())
}

fn failed(dir: &Path, source: io::Error) -> OpenError {
    OpenError::Directory {
        dir: dir.to_owned(),
        source,
    }
}
