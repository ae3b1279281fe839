//! The sync state: true when the first list has been consumed.

/// Counts the entries of the first list down.
///
/// A queue whose first content is not a list has nothing to wait for.
#[derive(Debug, Default)]
pub(super) struct Population {
    is_populated: bool,
    /// Entries of the first list that have not been applied.
    remaining: usize,
}

impl Population {
    /// Something other than a list was queued.
    pub(super) fn touched(&mut self) {
        self.is_populated = true;
    }

    /// A list was queued, after which the queue holds this many entries.
    pub(super) fn listed(&mut self, entries: usize) {
        if !self.is_populated {
            self.is_populated = true;
            self.remaining = entries;
        }
    }

    /// An entry was applied.
    pub(super) fn applied(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
    }

    pub(super) fn has_synced(&self) -> bool {
        self.is_populated && self.remaining == 0
    }
}
