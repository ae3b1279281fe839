//! Applies a batch to the store, and returns the notifications.
//!
//! The store decides about the type of a change: "added" for an object that exists is an update,
//! and the deletion of an object that does not exist is nothing. So each listener sees an addition,
//! updates and a deletion of an object, in that order, even if the server repeats or skips events.

use windlass_core::Key;

use crate::{
    fifo::{Delta, Listing},
    indexer::{Indexer, Replacement, Transaction},
    listener::Note,
    object::{Deleted, Obj},
};

/// Applies deltas in one step; the store then stands at the revision of the last.
pub(crate) fn apply_deltas(store: &Indexer, deltas: &[Delta]) -> Vec<Note> {
    store.write(|transaction| {
        let mut notes = Vec::with_capacity(deltas.len());
        for delta in deltas {
            apply_delta(transaction, delta, &mut notes);
            transaction.advance(delta.object().revision());
        }
        notes
    })
}

fn apply_delta(transaction: &mut Transaction<'_>, delta: &Delta, notes: &mut Vec<Note>) {
    let object = delta.object();
    match delta {
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) => {
            match transaction.get(new.namespace(), new.name()) {
                // The server repeats itself after a watch was resumed.
                Some(old) if old == new => {}
                Some(_) | None => {
                    let old = transaction.put(new);
                    note_change(old, new.clone(), notes);
                }
            }
        }
        Delta::Sync(object) => {
            notes.push(Note::Update {
                old: object.clone(),
                new: object.clone(),
            });
        }
        Delta::Deleted(deleted) => {
            let Some(old) = transaction.remove(object.namespace(), object.name()) else {
                return;
            };
            let is_final = !deleted.is_tombstone() && old.is_same_life(object);
            notes.push(Note::Delete(if is_final {
                Deleted::Observed(object.clone())
            } else {
                Deleted::Tombstone(old)
            }));
        }
    }
}

/// Replaces the content in one step; the store then stands at the revision of the list.
pub(crate) fn apply_list(store: &Indexer, listing: Listing) -> Replacement {
    let Listing {
        mut objects,
        kept,
        revision,
    } = listing;
    store.write(|transaction| {
        let stored = |key: &Key| {
            transaction
                .get(key.namespace().unwrap_or(""), key.name())
                .cloned()
        };
        objects.extend(kept.iter().filter_map(stored));
        let changes = transaction.replace(objects);
        transaction.reset_revision(revision);
        changes
    })
}

/// The notifications of a list. Deletions come first, so that no two objects ever seem to exist
/// that did not exist together.
pub(crate) fn notes_of(changes: Replacement) -> Vec<Note> {
    let gone = changes
        .removed
        .into_iter()
        .map(|old| Note::Delete(Deleted::Tombstone(old)));
    let mut notes: Vec<Note> = gone.collect();
    for (old, new) in changes.updated {
        note_change(Some(old), new, &mut notes);
    }
    notes.extend(changes.added.into_iter().map(|object| Note::Add {
        object,
        is_initial: false,
    }));
    notes
}

/// A new object, a changed one, or another of the same name: that one's deletion was missed.
fn note_change(old: Option<Obj>, new: Obj, notes: &mut Vec<Note>) {
    match old {
        Some(old) if old.is_same_life(&new) => notes.push(Note::Update { old, new }),
        Some(old) => {
            notes.push(Note::Delete(Deleted::Tombstone(old)));
            notes.push(Note::Add {
                object: new,
                is_initial: false,
            });
        }
        None => notes.push(Note::Add {
            object: new,
            is_initial: false,
        }),
    }
}
