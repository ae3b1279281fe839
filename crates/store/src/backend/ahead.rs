//! Writes are durable in a log first; the tables hear of them later, many at once.
//!
//! A commit costs one write in sequence and one sync. Tables cost a page per row and level, and
//! most of that is saved when thousands of rows move together, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::directory::Directory;
use super::log::{Frame, Log, Reserve};
use super::mover::Mover;
use super::parts::Parts;
use super::record::{self, Sealer};
use super::state::StateFile;
use super::storage::Length;
use super::tables::{Move, engine};
use super::warm::Warm;
use super::{Backend, CommitError, DiskBytes, Write};
use crate::{DiskError, Durability, EventKind};

/// While the tables are behind, a file of the log may grow to so many times its size.
const OVERRUN: u64 = 8;
/// Revisions that a store which does not wait for the disk reserves ahead.
pub(super) const RESERVE: u64 = 20_000;

/// The log, and whoever moves its writes to the tables.
#[derive(Debug)]
pub(super) struct Ahead {
    log: Log,
    mover: Mover,
    parts: Arc<Mutex<Parts>>,
    /// What moves next: the commits in the active file of the log.
    next: Move,
    /// Revisions up to this one may be given out; no limit if writes wait for the disk.
    reserved: u64,
    /// Bytes of commits that are moving to the tables.
    moving: u64,
    settings: Settings,
    /// Reused for every row.
    row: Vec<u8>,
}

/// What does not change while a store is open.
pub(super) struct Settings {
    pub(super) durability: Durability,
    /// Bytes of the log that move together.
    pub(super) segment_bytes: u64,
    pub(super) tables_len: Length,
    /// Bytes of all rows in the tables.
    pub(super) tables_used: Arc<AtomicU64>,
    /// Encrypts what is written.
    pub(super) sealer: Option<Sealer>,
    /// Tells the next start which files must be there.
    pub(super) state: StateFile,
    /// Reads what was left unread.
    pub(super) warm: Option<Warm>,
    /// Held as long as the files are open.
    pub(super) directory: Option<Directory>,
}

impl Ahead {
    /// Goes on with an empty log.
    pub(super) fn new(
        log: Log,
        mover: Mover,
        parts: Arc<Mutex<Parts>>,
        reserved: u64,
        settings: Settings,
    ) -> Self {
        Self {
            log,
            mover,
            parts,
            next: Move::default(),
            reserved,
            moving: 0,
            settings,
            row: Vec::new(),
        }
    }

    /// Moves on when there is enough to move, unless the last move is still under way and there is
    /// room to wait for it.
    fn move_on(&mut self) -> Result<(), DiskError> {
        let (filled, segment) = (self.log.filled(), self.settings.segment_bytes);
        let can_wait = self.mover.is_busy() && filled < segment.saturating_mul(OVERRUN);
        if filled < segment || can_wait {
            return Ok(());
        }
        self.switch()
    }

    /// Moves all of the active file and goes on in the other one.
    fn switch(&mut self) -> Result<(), DiskError> {
        self.mover.wait()?;
        self.moving = self.log.filled();
        self.log.switch();
        self.start_move()
    }

    fn start_move(&mut self) -> Result<(), DiskError> {
        let mut next = std::mem::take(&mut self.next);
        next.reserved = self.reserved;
        self.mover.start(next)
    }

    /// Makes sure that no revision is given out which the tables do not expect.
    fn reserve(&mut self, last: u64) -> Result<(), DiskError> {
        if self.settings.durability == Durability::Full || last <= self.reserved {
            return Ok(());
        }
        self.reserved = last + RESERVE;
        self.switch()?;
        self.mover.wait()
    }

    /// Moves everything that is left, and gives back the revisions that were not used.
    fn finish(&mut self) -> Result<(), DiskError> {
        self.mover.wait()?;
        let is_needed = !self.next.frames.is_empty() || self.next.floor != 0 || self.reserved != 0;
        if is_needed {
            self.reserved = 0;
            self.start_move()?;
            self.mover.wait()?;
        }
        self.mover.stop();
        self.settings.state.set_logs([false; 2])?;
        Ok(self.log.clear()?)
    }
}

impl Ahead {
    /// Puts a commit into a frame that there is room for. Nothing of it is on the disk yet.
    fn frame(&mut self, writes: &[Write]) -> Result<Frame, CommitError> {
        let sealer = self.settings.sealer.as_ref();
        let mut frame = record::encode(writes, &mut self.parts.lock(), &mut self.row, sealer);
        let is_delete = |write: &Write| write.event.kind == EventKind::Delete;
        let reserve = match writes.iter().all(is_delete) {
            true => Reserve::Use,
            false => Reserve::Keep,
        };
        let Err(error) = self.log.make_room(&mut frame, reserve) else {
            return Ok(frame);
        };
        let error = DiskError::from(error);
        if !error.is_full() {
            return Err(error.into());
        }
        // The parts that are new with these objects are not known to anybody.
        let senseless = || DiskError::from_text("a commit cannot be undone");
        let undone = record::decode(frame.content()).ok_or_else(senseless)?;
        self.parts.lock().undo(&undone).map_err(engine)?;
        Err(CommitError::NoSpace(error))
    }
}

impl Backend for Ahead {
    fn commit(&mut self, writes: &[Write]) -> Result<(), CommitError> {
        let Some(last) = writes.last() else {
            return Ok(());
        };
        self.mover.poll()?;
        self.reserve(last.event.revision())?;
        let frame = self.frame(writes)?;
        let sync = self.settings.durability == Durability::Full;
        self.log.append(&frame, sync).map_err(DiskError::from)?;
        if sync {
            self.settings.state.uses_log(self.log.active())?;
        }
        self.next.frames.push(frame);
        Ok(self.move_on()?)
    }

    fn regain_space(&mut self) -> Result<(), DiskError> {
        self.mover.poll()?;
        Ok(self.log.regain_reserve()?)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.mover.poll()?;
        match self.mover.is_busy() || self.next.frames.is_empty() {
            true => Ok(()),
            false => self.switch(),
        }
    }

    /// The rows go with the next move: until then they only take room.
    fn compact(&mut self, floor: u64) -> Result<(), DiskError> {
        self.next.floor = self.next.floor.max(floor);
        Ok(())
    }

    fn bytes(&self) -> DiskBytes {
        let moving = if self.mover.is_busy() { self.moving } else { 0 };
        let tables = self.settings.tables_used.load(Ordering::Relaxed);
        DiskBytes {
            files: (self.settings.tables_len)().unwrap_or(0) + self.log.bytes(),
            used: tables + moving + self.log.filled(),
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // If this fails, the next start finds the writes in the log.
        let _ = self.finish();
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("durability", &self.durability)
            .field("segment_bytes", &self.segment_bytes)
            .field("warm", &self.warm)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
