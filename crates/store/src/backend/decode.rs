//! Turning rows into objects, on all processors: that is most of the time that a start takes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use windlass_core::Unpacker;

use super::row::{Id, ObjectRow};
use crate::{Entry, OpenError, Resource};

/// Rows that go to a worker at a time.
const BATCH_ROWS: usize = 256;
/// Batches that wait for a worker; with the rows in them this bounds the memory of a start.
const WAITING_LIMIT: usize = 2;

/// A row of the table of objects.
pub(super) struct RawRow {
    pub(super) id: Id,
    pub(super) row: Vec<u8>,
}

/// What a row holds.
pub(super) struct Object {
    pub(super) resource: Resource,
    pub(super) entry: Arc<Entry>,
    /// The end of its life, in microseconds since 1970.
    pub(super) expiry: Option<i64>,
}

fn decode(raw: &RawRow, unpacker: &Unpacker) -> Result<Object, OpenError> {
    let damaged = || OpenError::Damaged(format!("object {:?}", raw.id.as_str()));
    let row = ObjectRow::decode(&raw.id, &raw.row).ok_or_else(damaged)?;
    let (resource, key) = raw.id.split().ok_or_else(damaged)?;
    let doc = unpacker.doc(row.packed).map_err(|_| damaged())?;
    let entry = Arc::new(Entry {
        key,
        doc,
        revision: row.revision,
    });
    Ok(Object {
        resource,
        entry,
        expiry: row.expiry,
    })
}

/// Decodes batches as they come.
fn decode_batches(
    batches: Receiver<Vec<RawRow>>,
    unpacker: &Unpacker,
) -> Result<Vec<Vec<Object>>, OpenError> {
    let decode = |rows: Vec<RawRow>| rows.iter().map(|raw| decode(raw, unpacker)).collect();
    batches.into_iter().map(decode).collect()
}

/// Decodes rows with so many threads and returns the objects in the order of the rows.
pub(super) fn decode_all(
    mut rows: impl Iterator<Item = Result<RawRow, OpenError>>,
    unpacker: &Unpacker,
    workers: usize,
) -> Result<Vec<Object>, OpenError> {
    if workers == 0 {
        return rows.map(|raw| decode(&raw?, unpacker)).collect();
    }
    thread::scope(|scope| {
        let start = |_| {
            let (sender, receiver) = sync_channel(WAITING_LIMIT);
            (
                sender,
                scope.spawn(move || decode_batches(receiver, unpacker)),
            )
        };
        let (senders, handles): (Vec<_>, Vec<_>) = (0..workers).map(start).unzip();
        hand_out(&mut rows, &senders)?;
        drop(senders);
        let join = |handle: thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(decoded) => decoded,
            Err(_) => Err(OpenError::Damaged("an object cannot be read".to_owned())),
        };
        let decoded: Vec<_> = handles.into_iter().map(join).collect::<Result<_, _>>()?;
        Ok(in_turn(decoded))
    })
}

/// Gives the workers their batches, in turn.
fn hand_out(
    rows: &mut impl Iterator<Item = Result<RawRow, OpenError>>,
    senders: &[SyncSender<Vec<RawRow>>],
) -> Result<(), OpenError> {
    for sender in senders.iter().cycle() {
        let batch: Vec<RawRow> = rows.take(BATCH_ROWS).collect::<Result<_, _>>()?;
        // A worker that takes no more has failed, which its end tells.
        if batch.is_empty() || sender.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

/// The batches in the order in which they were handed out.
fn in_turn(decoded: Vec<Vec<Vec<Object>>>) -> Vec<Object> {
    let mut workers: Vec<_> = decoded.into_iter().map(Vec::into_iter).collect();
    let mut objects = Vec::new();
    'turns: loop {
        for worker in &mut workers {
            match worker.next() {
                Some(batch) => objects.extend(batch),
                None => break 'turns objects,
            }
        }
    }
}
