//! How a store is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::Env;

use crate::{Disk, EncryptionKeys, Resource};

/// Events kept per resource for watches and past snapshots.
const HISTORY_LIMIT: usize = 16_384;
/// Bytes of memory for the events and past snapshots of one resource.
const HISTORY_BYTES_LIMIT: u64 = 32 << 20;
/// Bytes of memory for the events of all resources together.
const HISTORY_TOTAL_BYTES_LIMIT: u64 = 64 << 20;
/// Kube-apiserver compacts every five minutes to where it was five minutes before.
const HISTORY_AGE: Duration = Duration::from_secs(300);
/// Snapshots kept per resource for lists that are read in pages.
const SNAPSHOT_LIMIT: usize = 16;
/// Bytes of objects and history on disk. Etcd's default is a quarter, and it advises against more.
const QUOTA_BYTES: u64 = 8 << 30;
/// Writes that wait for the disk at a time; further writers wait for room.
const PENDING_LIMIT: usize = 4_096;
/// Bytes of writes that move from the log to the tables together.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Bytes of replaced objects that the disk keeps to refill the history after a restart.
const LOG_BYTES_LIMIT: u64 = 64 << 20;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where objects survive a restart.
    pub place: Place,
    /// What a write waits for.
    pub durability: Durability,
    /// Who commits.
    pub commit: Commit,
    /// The clock, and the id of a new store.
    pub env: Env,
    /// Events kept per resource, and rows kept on disk to refill them after a restart.
    pub history_limit: usize,
    /// Bytes of memory that may be held for the events of one resource alone, and since a past
    /// snapshot of it was taken. What is too much goes early: older watches have to list again.
    pub history_bytes_limit: u64,
    /// Bytes of memory that may be held for the events of all resources.
    pub history_total_bytes_limit: u64,
    /// Events older than this may go at the next sweep, events younger stay within the limit.
    pub history_age: Duration,
    /// Past snapshots kept per resource.
    pub snapshot_limit: usize,
    /// Bytes of objects and history that the disk may hold, before objects are only deleted. Free
    /// space in the files does not count. Objects on their way out may still be changed within an
    /// eighth more. Writes that are under way when the quota is reached are made.
    pub quota_bytes: u64,
    /// Writes that may wait for the disk at a time; further ones wait for room.
    pub pending_limit: usize,
    /// Bytes on disk for refilling the history.
    pub log_bytes_limit: u64,
    /// Keys that objects of [some resources](Self::encrypted_resources) are encrypted with on the
    /// disk. What is there in plain text is read all the same, and encrypted when it is written
    /// next, or all at once by [`rewrite`](crate::rewrite).
    pub encryption: Option<EncryptionKeys>,
    /// The resources whose objects are encrypted: Secrets, unless told otherwise.
    pub encrypted_resources: Vec<Resource>,
    /// Names of files that others keep beside the store, made after [`StoreOptions::prepare`]: a
    /// directory that has one of them but no tables has lost its tables, and is refused.
    pub companions: &'static [&'static str],
    /// Bytes of writes that move from the log to the tables together. After a crash a start has
    /// this much to move first, sometimes twice.
    pub segment_bytes: u64,
}

/// Where objects survive a restart.
#[derive(Clone, Debug)]
pub enum Place {
    /// Nowhere.
    Memory,
    /// In this directory, which one store at a time may use.
    Directory(PathBuf),
    /// On this disk, of which the caller makes sure that one store uses it at a time.
    Disk(Arc<dyn Disk>),
}

/// What a write waits for before anybody sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The disk has it for good.
    Full,
    /// Nothing: the last writes are lost when the process or machine dies. Revisions still never
    /// come twice.
    None,
}

/// Who commits writes to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// A thread of the store, which commits together what came while it was busy.
    Thread,
    /// Each writer its own write, before the call returns: no thread, hence the same order in
    /// every run. For simulations.
    Inline,
}

impl StoreOptions {
    /// Objects live as long as the process.
    #[must_use]
    pub fn memory(env: Env) -> Self {
        Self {
            place: Place::Memory,
            durability: Durability::Full,
            commit: Commit::Thread,
            env,
            history_limit: HISTORY_LIMIT,
            history_bytes_limit: HISTORY_BYTES_LIMIT,
            history_total_bytes_limit: HISTORY_TOTAL_BYTES_LIMIT,
            history_age: HISTORY_AGE,
            snapshot_limit: SNAPSHOT_LIMIT,
            quota_bytes: QUOTA_BYTES,
            pending_limit: PENDING_LIMIT,
            log_bytes_limit: LOG_BYTES_LIMIT,
            encryption: None,
            encrypted_resources: vec![Resource::new("", "secrets")],
            companions: &[],
            segment_bytes: SEGMENT_BYTES,
        }
    }

    /// Objects live in a directory; it is made if it does not exist.
    #[must_use]
    pub fn directory(env: Env, dir: impl Into<PathBuf>) -> Self {
        Self {
            place: Place::Directory(dir.into()),
            ..Self::memory(env)
        }
    }
}
