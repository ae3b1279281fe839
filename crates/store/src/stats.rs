//! Figures for metrics.

use crate::Resource;

/// The size of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The newest visible revision.
    pub revision: u64,
    /// The revision up to which history was forgotten for all resources.
    pub compacted: u64,
    /// Writes and barriers that wait for the committer.
    pub queued: usize,
    /// Bytes of memory that are held for watches alone, at most.
    pub history_bytes: u64,
    /// Objects with a time to live.
    pub leases: usize,
    /// Bytes on disk after the last commit; zero in memory.
    pub disk_bytes: u64,
    /// Bytes of objects and history on disk, without free space in the files; zero in memory.
    pub used_bytes: u64,
    /// Bytes of objects and history that the disk may hold.
    pub quota_bytes: u64,
    /// Each resource, in order.
    pub resources: Vec<ResourceStats>,
}

/// The size of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceStats {
    /// The resource.
    pub resource: Resource,
    /// Objects.
    pub objects: usize,
    /// Events in the history.
    pub events: usize,
    /// Bytes of memory that are held for these events alone, at most.
    pub history_bytes: u64,
    /// The oldest revision that can be watched from.
    pub oldest: u64,
    /// Past snapshots kept for paged lists.
    pub snapshots: usize,
}
