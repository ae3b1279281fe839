//! The store after a crash and damage to its files.
//!
//! An input is a script of writes and a script of damage.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_core::{Doc, Env, Key, doc};
use windlass_store::{Change, Commit, Disk, DiskFile, Place, Resource, Store, StoreOptions};

use crate::{Outcome, parts, rig, work};

/// Writes of one script at most.
const WRITES_MAX: usize = 32;
/// Changes of bytes in one script at most.
const DAMAGES_MAX: usize = 16;
/// Small, so that the writes of a script reach the tables.
const SEGMENT_BYTES: u64 = 2 << 10;

type Files = BTreeMap<&'static str, Vec<u8>>;

/// Files in memory.
#[derive(Clone, Debug, Default)]
struct MemoryDisk(Arc<Mutex<Files>>);

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    name: &'static str,
}

impl Disk for MemoryDisk {
    fn file(&self, name: &'static str) -> io::Result<Arc<dyn DiskFile>> {
        let disk = self.clone();
        Ok(Arc::new(MemoryFile { disk, name }))
    }
}

impl MemoryFile {
    fn with<T>(&self, task: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        task(self.disk.0.lock().entry(self.name).or_default())
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl DiskFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.with(|bytes| bytes.len() as u64))
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = place(offset)?;
        self.with(|bytes| {
            let end = start.checked_add(into.len());
            let found = end.and_then(|end| bytes.get(start..end));
            into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        let start = place(offset)?;
        self.with(|bytes| {
            let end = start + from.len();
            let len = bytes.len().max(end);
            bytes.resize(len, 0);
            bytes[start..end].copy_from_slice(from);
        });
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = place(len)?;
        self.with(|bytes| bytes.resize(len, 0));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn options(disk: &MemoryDisk) -> StoreOptions {
    StoreOptions {
        place: Place::Disk(Arc::new(disk.clone())),
        commit: Commit::Inline,
        segment_bytes: SEGMENT_BYTES,
        ..StoreOptions::memory(Env::seeded(1))
    }
}

/// Everything that was ever written, and the state at the end.
#[derive(Debug, Default)]
struct History {
    versions: HashSet<(String, Doc)>,
    last: BTreeMap<String, Doc>,
    revision: u64,
}

/// Writes by script. Each byte is one write: its low bits name the object, its high bits the
/// content; some delete.
fn write(store: &Store, script: &[u8]) -> History {
    let (runtime, pods) = (rig::runtime(), Resource::new("", "pods"));
    let mut history = History::default();
    for (number, byte) in script.iter().take(WRITES_MAX).enumerate() {
        let name = format!("pod-{}", byte & 7);
        let key = Key::new("default", &name);
        let text = "x".repeat(usize::from(byte >> 3) * 8);
        let doc = doc!({ "metadata": { "name": (name.as_str()), "labels": { "app": "web" } },
            "spec": { "text": text, "number": (i64::try_from(number).unwrap_or(0)) } });
        let is_delete = byte % 5 == 4;
        let written = runtime.block_on(store.update(&pods, &key, |current| match current {
            Some(_) if is_delete => Ok(Change::Delete),
            None if is_delete => Err("nothing to delete"),
            _ => Ok(Change::put(doc)),
        }));
        if written.is_err() {
            continue;
        }
        match store.get(&pods, &key) {
            Some(entry) => {
                history.versions.insert((name.clone(), entry.doc().clone()));
                history.last.insert(name, entry.doc().clone());
            }
            None => drop(history.last.remove(&name)),
        }
    }
    history.revision = store.revision();
    history
}

fn content(store: &Store) -> BTreeMap<String, Doc> {
    let snapshot = store.snapshot(&Resource::new("", "pods"));
    let entry = |doc: &Doc| (doc.str_at("/metadata/name").to_owned(), doc.clone());
    snapshot.iter().map(|found| entry(found.doc())).collect()
}

/// Damages files by script: four bytes name a file and what to do, where, and with what.
fn damage(files: &mut Files, script: &[u8]) {
    let count = files.len();
    for step in script.chunks_exact(4).take(DAMAGES_MAX) {
        let Some(bytes) = files
            .values_mut()
            .nth(usize::from(step[0] & 15) % count.max(1))
        else {
            return;
        };
        let at = usize::from(u16::from_be_bytes([step[1], step[2]]));
        // Most of a file of tables is empty: places are taken among the bytes in use.
        let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let Some(&at) = used.get(at % used.len().max(1)) else {
            continue;
        };
        match step[0] >> 6 {
            0 | 1 => bytes[at] ^= step[3].max(1),
            2 => bytes.truncate(at),
            _ => {
                let end = (at + usize::from(step[3])).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
    }
}

/// A store that crashed and whose files were damaged: it opens with an error, or with objects that
/// were written, each whole. Without damage it opens with everything.
pub fn store_recovery(data: &[u8]) -> Outcome {
    let [writes, damages] = parts::<2>(data);
    work::bounded(work::SERVED, data.len(), || {
        let disk = MemoryDisk::default();
        let store = Store::open(options(&disk)).expect("an empty disk");
        let history = write(&store, writes);
        // What a crash leaves: the files as they are before the store closes.
        let mut files = disk.0.lock().clone();
        drop(store);
        let is_sound = damages.len() < 4;
        damage(&mut files, damages);
        let damaged = MemoryDisk(Arc::new(Mutex::new(files)));
        let Ok(store) = Store::open(options(&damaged)) else {
            assert!(!is_sound, "a sound disk does not open");
            return Outcome::Refused;
        };
        let found = content(&store);
        if is_sound {
            assert_eq!(found, history.last, "after a crash");
            assert_eq!(store.revision(), history.revision, "after a crash");
        }
        for row in found {
            assert!(history.versions.contains(&row), "never written: {row:?}");
        }
        assert!(
            store.revision() <= history.revision,
            "a revision from nowhere"
        );
        Outcome::Accepted
    })
}
