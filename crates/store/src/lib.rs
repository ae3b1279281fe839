//! Revisioned objects: what the API server keeps, and what it promises about it.
//!
//! Every object lives in memory as a shared [`Doc`](windlass_core::Doc), in one ordered map per
//! resource. One counter numbers all writes. A write is decided on the newest state by one
//! sequencer, made durable together with its neighbours by one committer, and only then seen:
//!
//! ```text
//! update ─▶ sequencer ─▶ batch ─▶ log ─▶ maps, history ─▶ readers, watchers
//!           decides,              one     visible
//!           numbers               sync    in order
//!                                  │
//!                                  └─▶ tables, later and many at once
//! ```
//!
//! What holds whatever happens:
//! - what anybody has seen survives a crash, and a revision is never given out twice;
//! - the events of a resource are a run without gaps; a watch delivers a run of them in order, each
//!   once, or ends with an error;
//! - a snapshot never changes, and any revision that the history reaches back to can be had again;
//! - after a failure of the disk nothing is written any more, and reading goes on; a disk that is
//!   full, or a quota that is reached, refuses objects and takes deletions.
//!
//! The store knows nothing of kinds, versions, validation or HTTP. The one field it touches is
//! `metadata.resourceVersion`; beyond the quota it looks at `metadata.deletionTimestamp`.
//!
//! ```
//! use windlass_core::{doc, Env, Key};
//! use windlass_store::{Change, Resource, Store, StoreOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open(StoreOptions::memory(Env::seeded(1)))?;
//! let pods = Resource::new("", "pods");
//! let mut watch = store.watch(&pods, store.revision())?;
//!
//! let key = Key::new("default", "web");
//! let pod = doc!({ "metadata": { "name": "web" } });
//! store.update(&pods, &key, |current| match current {
//!     None => Ok(Change::put(pod)),
//!     Some(_) => Err("already exists"),
//! }).await?;
//!
//! let event = watch.next().await?;
//! assert_eq!(event.revision(), 2);
//! assert_eq!(event.entry.doc().str_at("/metadata/resourceVersion"), "2");
//! # Ok(())
//! # }
//! ```

mod archive;
mod backend;
mod change;
mod committer;
mod deciding;
mod disk;
mod entry;
mod error;
mod event;
mod expiry;
mod history;
mod map;
mod options;
mod seal;
mod sequencer;
mod shared;
mod snapshot;
mod stats;
mod store;
mod visible;
mod watch;

pub use archive::{ArchiveError, backup, restore};
pub use backend::{Check, Repair, check, repair, rewrite};
pub use change::{Change, Outcome};
pub use deciding::debug_assert_not_deciding;
pub use disk::{Disk, DiskFile};
pub use entry::{Entry, stamp};
pub use error::{DiskError, OpenError, RevisionError, WatchError, WriteError};
pub use event::{Event, EventKind};
pub use options::{Commit, Durability, Place, StoreOptions};
pub use seal::{EncryptionKeys, EncryptionKeysError};
pub use snapshot::{Entries, Snapshot};
pub use stats::{ResourceStats, Stats};
pub use store::{Store, Sweep};
pub use watch::Watch;

pub use windlass_core::ResourceName as Resource;
