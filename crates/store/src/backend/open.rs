//! Opening what is on the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use redb::{Database, StorageBackend};

use super::ahead::{Ahead, RESERVE, Settings};
use super::directory::Directory;
use super::load;
use super::log::{Frame, Log, Run};
use super::mover::Mover;
use super::overlay::Overlay;
use super::parts::Parts;
use super::record::Sealer;
use super::state::{STATE_FILE, State, StateFile};
use super::storage::{Files, Length};
use super::tables::{Counts, Limits, Move, Tables, check, engine, replay};
use super::warm::Warm;
use super::{Backend, DiskBytes, Loaded, ReadOnly, record};
use crate::{Commit, DiskError, DiskFile, Durability, OpenError, StoreOptions};

/// Everything is read from memory: the engine needs pages at hand only while it writes.
const CACHE_BYTES: usize = 16 << 20;

/// A file of less than this is never too large.
const SPARSE_BYTES: u64 = 16 << 20;
/// A larger file is compacted when it is opened and its rows fill less than one part in so many.
const SPARSE_FACTOR: u64 = 4;

/// Opens the files and reads everything. If that fails because the disk is full, everything can
/// be read all the same.
pub(super) fn open(options: &StoreOptions) -> Result<(Box<dyn Backend>, Loaded), OpenError> {
    match open_for_writing(options) {
        Err(OpenError::Disk(error)) if error.is_full() => {
            let (mut loaded, bytes, directory) = open_unchanged(options)?;
            loaded.read_only = Some(error.clone());
            let backend = ReadOnly {
                error,
                bytes,
                _directory: directory,
            };
            Ok((Box::new(backend), loaded))
        }
        opened => opened,
    }
}

/// Reads everything and changes nothing on the disk.
pub(super) fn open_unchanged(
    options: &StoreOptions,
) -> Result<(Loaded, DiskBytes, Option<Directory>), OpenError> {
    let files = Files::open(&options.place)?;
    let known = State::read(files.state.as_ref())?;
    let mut log = Log::new(files.log).map_err(DiskError::from)?;
    let tables = Overlay::new(files.tables).map_err(DiskError::from)?;
    let reading = || read(tables, &files.tables_len, &mut log, options);
    let (mut tables, _, mut loaded) = guarded_read(reading)?;
    check_owner(known.as_ref(), &loaded)?;
    prepare(&mut tables, &mut loaded, options)?;
    let bytes = DiskBytes {
        files: (files.tables_len)().map_err(DiskError::from)? + log.bytes(),
        used: tables.used().load(Ordering::Relaxed),
    };
    Ok((loaded, bytes, files.directory))
}

/// The engine may panic on a damaged file, which is no reason to take the process down.
fn guarded_read(reading: impl FnOnce() -> Result<Read, OpenError>) -> Result<Read, OpenError> {
    catch_unwind(AssertUnwindSafe(reading))
        .map_err(|_| OpenError::Damaged("the engine cannot read it".to_owned()))?
}

fn open_for_writing(options: &StoreOptions) -> Result<(Box<dyn Backend>, Loaded), OpenError> {
    let files = Files::open(&options.place)?;
    let known = State::read(files.state.as_ref())?;
    let mut log = Log::new(files.log).map_err(DiskError::from)?;
    let reading = || read(files.tables, &files.tables_len, &mut log, options);
    let (mut tables, parts, mut loaded) = guarded_read(reading)?;
    let mut state = go_on(files.state, known, &loaded, tables.counts())?;
    prepare(&mut tables, &mut loaded, options)?;
    // From here on the tables have everything, and the log may be empty.
    state.set_logs([false; 2])?;
    log.clear().map_err(DiskError::from)?;
    let (reserved, tables_used) = (tables.counts().reserved, tables.used());
    let (mover, warm) = match options.commit {
        Commit::Inline => (Mover::inline(tables), None),
        Commit::Thread => {
            let warm = Warm::start(&loaded).map_err(DiskError::from)?;
            (Mover::threaded(tables)?, Some(warm))
        }
    };
    let settings = Settings {
        durability: options.durability,
        segment_bytes: options.segment_bytes,
        tables_len: files.tables_len,
        tables_used,
        sealer: Sealer::new(options),
        state,
        warm,
        directory: files.directory,
    };
    Ok((
        Box::new(Ahead::new(log, mover, parts, reserved, settings)),
        loaded,
    ))
}

/// Goes on with the state file, which stores of older formats do not have.
fn go_on(
    file: Arc<dyn DiskFile>,
    known: Option<State>,
    loaded: &Loaded,
    counts: &Counts,
) -> Result<StateFile, OpenError> {
    check_owner(known.as_ref(), loaded)?;
    if let Some(state) = known {
        return Ok(StateFile::new(file, state));
    }
    let state = StateFile::new(
        file,
        State {
            uid: loaded.uid.to_string(),
            mark: counts.mark,
            logs: [false; 2],
        },
    );
    state.save()?;
    Ok(state)
}

/// Makes sure that the state file is that of the tables.
fn check_owner(known: Option<&State>, loaded: &Loaded) -> Result<(), OpenError> {
    let uid = loaded.uid.to_string();
    match known {
        Some(state) if state.uid != uid => Err(OpenError::Foreign {
            file: STATE_FILE.to_owned(),
            expected: state.uid.clone(),
            found: uid,
        }),
        _ => Ok(()),
    }
}

type Read = (Tables, Arc<Mutex<Parts>>, Loaded);

/// Reads the tables, after moving to them what the log has and they have not.
fn read(
    file: impl StorageBackend,
    len: &Length,
    log: &mut Log,
    options: &StoreOptions,
) -> Result<Read, OpenError> {
    let mut database = Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(file)
        .map_err(engine)?;
    let counts = load::prepare(&database, options)?;
    // What is read is verified row by row. Pages are verified before one is written, which a
    // thread does later when the first writes move; simulations have no later. A log is left only
    // after a crash, and its frames are found by a number that has no checksum of its own.
    let is_checked = log.bytes() > 0 || options.commit == Commit::Inline;
    if is_checked {
        check(&mut database)?;
    }
    let runs = log.read(counts.mark).map_err(DiskError::from)?;
    let frames = missing(runs, &counts)?;
    if !frames.is_empty() {
        replay(&database, &frames)?;
    }
    let opened = load::load(&database, options)?;
    shrink(&mut database, len, &opened.counts)?;
    let parts = Arc::new(Mutex::new(opened.parts));
    let limits = Limits {
        log_rows: options.history_limit as u64,
        log_bytes: options.log_bytes_limit,
    };
    let tables = Tables::new(database, opened.counts, limits, parts.clone(), is_checked);
    Ok((tables, parts, opened.loaded))
}

/// The commits that the tables have not, in order.
fn missing(runs: Vec<Run>, tables: &Counts) -> Result<Vec<Frame>, OpenError> {
    let damaged = || OpenError::Damaged("commits are missing in the log".to_owned());
    // A store that did not wait for the disk never promised that everything is there.
    let may_miss = tables.reserved != 0;
    let mut next = tables.revision + 1;
    let mut frames = Vec::new();
    let mut cut_off = Vec::new();
    for run in runs {
        cut_off.extend(run.beyond);
        for frame in run.frames {
            let (first, count) = record::revisions(frame.content()).ok_or_else(damaged)?;
            if first + count <= next {
                continue;
            }
            if first == next {
                next += count;
                frames.push(frame);
            } else {
                cut_off.push(frame);
            }
        }
    }
    let is_newer = |frame: &Frame| {
        record::revisions(frame.content()).is_none_or(|(first, count)| first + count > next)
    };
    if !may_miss && cut_off.iter().any(is_newer) {
        return Err(damaged());
    }
    Ok(frames)
}

/// Forgets what history is too much, and reserves revisions if writes will not wait for the disk.
fn prepare(
    tables: &mut Tables,
    loaded: &mut Loaded,
    options: &StoreOptions,
) -> Result<(), DiskError> {
    let reserved = match options.durability {
        Durability::Full => 0,
        Durability::None => tables.counts().revision + RESERVE,
    };
    if reserved != 0 || tables.has_too_much() {
        tables.apply(&Move {
            reserved,
            ..Move::default()
        })?;
    }
    loaded.floor = tables.counts().floor;
    loaded
        .events
        .retain(|(_, event)| event.revision() > loaded.floor);
    Ok(())
}

/// Gives room back to the file system when most of the file is empty.
fn shrink(database: &mut Database, len: &Length, counts: &Counts) -> Result<(), OpenError> {
    let file = len().map_err(DiskError::from)?;
    let live = counts.object_bytes + counts.log_bytes;
    if file > SPARSE_BYTES && file / SPARSE_FACTOR > live {
        database.compact().map_err(engine)?;
    }
    Ok(())
}
