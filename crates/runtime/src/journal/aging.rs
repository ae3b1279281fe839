//! Aging of journal entries: older reconciles keep names in place of documents.
//!
//! An event in the journal holds two states of an object, which nobody else may need any more. So
//! only the newest reconciles of a controller keep them; of older ones it is still told which
//! object changed, and no longer which of its fields.

use std::collections::VecDeque;

use windlass_core::{Doc, Key};

use super::{Cause, Entry, Pending, Trail};

/// Reconciles of one controller whose events keep their documents.
pub const JOURNAL_DOCUMENTS_LIMIT: usize = 256;

/// Older reconciles that are remembered of one key.
const AGED_ENTRIES_LIMIT: usize = 2;

/// Writes that are told of an older reconcile; the others are counted.
const AGED_WRITES_LIMIT: usize = 2;

/// The order in which reconciles of all keys ended, as far as they keep their documents.
#[derive(Debug, Default)]
pub(super) struct Order(VecDeque<(Key, usize)>);

impl Order {
    /// Notes the end of a reconcile, and returns the key and its place whose oldest reconcile is
    /// to give up its documents.
    pub(super) fn push(&mut self, key: &Key, place: usize) -> Option<(Key, usize)> {
        self.0.push_back((key.clone(), place));
        match self.0.len() > JOURNAL_DOCUMENTS_LIMIT {
            true => self.0.pop_front(),
            false => None,
        }
    }
}

impl Trail {
    /// Makes the oldest reconcile that has its documents give them up. Returns what is to be
    /// dropped, which takes long.
    pub(super) fn age(&mut self) -> Vec<Entry> {
        let aged = self.entries.iter().take_while(|entry| entry.is_aged);
        let at = aged.count();
        let mut garbage = Vec::new();
        if let Some(entry) = self.entries.get_mut(at) {
            let older = entry.aged();
            garbage.push(std::mem::replace(entry, older));
            let excess = (at + 1).saturating_sub(AGED_ENTRIES_LIMIT);
            garbage.extend(self.entries.drain(..excess));
        }
        if self.entries.capacity() > 4 * self.entries.len().max(1) {
            self.entries.shrink_to_fit();
        }
        garbage
    }
}

impl Entry {
    fn aged(&self) -> Self {
        Self {
            pending: self.pending.aged(),
            writes: self
                .writes
                .iter()
                .take(AGED_WRITES_LIMIT)
                .cloned()
                .collect(),
            outcome: self.outcome.clone(),
            is_aged: true,
            ..*self
        }
    }
}

impl Pending {
    fn aged(&self) -> Self {
        Self {
            first: self.first.as_ref().map(Cause::aged),
            more: self.more.iter().map(Cause::aged).collect(),
            ..*self
        }
    }
}

impl Cause {
    fn aged(&self) -> Self {
        let Self::Event {
            resource,
            old,
            new,
            is_initial,
        } = self
        else {
            return self.clone();
        };
        let (object, what) = match (old, new) {
            (None, Some(new)) if *is_initial => (new, "was there"),
            (None, Some(new)) => (new, "was added"),
            (Some(old), None) => (old, "was deleted"),
            (Some(old), Some(new)) if old == new => (new, "was resynced"),
            (Some(_), Some(new)) => (new, "changed"),
            (None, None) => return self.clone(),
        };
        Self::Past {
            resource: resource.clone(),
            object: named(object).into(),
            what,
        }
    }
}

/// The key and the revision of an object.
pub(super) fn named(object: &Doc) -> String {
    let meta = object.meta();
    format!("{}@{}", meta.key(), meta.resource_version())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use windlass_core::{GroupResource, doc};

    use super::super::Journal;
    use super::*;

    fn entry(pending: Pending) -> Entry {
        Entry {
            pending,
            started: Instant::now(),
            took: Default::default(),
            writes: Vec::new(),
            write_count: 0,
            outcome: "done".into(),
            failures: 0,
            next_due: None,
            is_aged: false,
        }
    }

    /// The number of keys whose reconciles keep their documents.
    fn with_documents(journal: &Journal, keys: &[Key]) -> usize {
        let has = |key: &&Key| journal.why(key).is_some_and(|it| it.contains("spec.size"));
        keys.iter().filter(has).count()
    }

    fn changed(number: usize) -> Cause {
        let pod = |version: usize| {
            doc!({
                "metadata": {
                    "name": "a", "namespace": "default", "resourceVersion": (version.to_string())
                },
                "spec": { "size": version }
            })
        };
        Cause::Event {
            resource: GroupResource::new("", "pods").into(),
            old: Some(pod(number)),
            new: Some(pod(number + 1)),
            is_initial: false,
        }
    }

    fn reconcile(journal: &Journal, key: &Key, number: usize) {
        journal.caused(key, || changed(number));
        let begun = journal.begin(key);
        journal.end(key, begun, entry);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_are_gone_hold_no_documents() {
        let journal = Journal::new(100_000);
        let keys = (0..JOURNAL_DOCUMENTS_LIMIT * 4).map(|n| Key::new("default", &format!("k{n}")));
        let keys: Vec<Key> = keys.collect();
        for (number, key) in keys.iter().enumerate() {
            reconcile(&journal, key, number);
        }
        assert_eq!(with_documents(&journal, &keys), JOURNAL_DOCUMENTS_LIMIT);
        assert_eq!(journal.len(), keys.len());
        let story = journal.why(&keys[0]).unwrap();
        assert!(
            story.contains("because pods default/a@1 changed\n"),
            "{story}"
        );
        let last = journal.why(&keys[keys.len() - 1]).unwrap();
        assert!(last.contains("changed from 1023: spec.size"), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn few_old_reconciles_of_one_key_are_remembered() {
        let journal = Journal::new(10);
        let (old, busy) = (Key::new("default", "old"), Key::new("default", "busy"));
        for number in 0..5 {
            reconcile(&journal, &old, number);
        }
        for number in 0..JOURNAL_DOCUMENTS_LIMIT {
            reconcile(&journal, &busy, number);
        }
        let story = journal.why(&old).unwrap();
        assert_eq!(story.matches("reconciled").count(), AGED_ENTRIES_LIMIT);
    }
}
