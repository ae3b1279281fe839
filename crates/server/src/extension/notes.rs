//! The deadline of a request, and what extensions leave for its answer and the audit log.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The longest time that a write may take, extensions included: upstream's.
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);
/// Warnings and annotations that one request may leave.
const NOTES_LIMIT: usize = 1024;

/// The part of a request that outlives its handler. The write path and extensions add to it, and
/// whoever sends the answer reads it.
#[derive(Debug)]
pub(crate) struct RequestNotes {
    /// The moment until which extensions may be waited for.
    pub(crate) deadline: Instant,
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    warnings: Vec<String>,
    annotations: Vec<(String, String)>,
}

impl RequestNotes {
    pub(crate) fn new(deadline: Instant) -> Self {
        Self {
            deadline: deadline.min(Instant::now() + WRITE_TIMEOUT),
            left: Mutex::default(),
        }
    }

    /// Adds a warning for the client, once.
    pub(crate) fn warn(&self, warning: String) {
        let mut left = self.left.lock();
        if left.warnings.len() < NOTES_LIMIT && !left.warnings.contains(&warning) {
            left.warnings.push(warning);
        }
    }

    /// Adds an annotation to the audit log. The first value of a key stays.
    pub(crate) fn annotate(&self, key: String, value: String) {
        let mut left = self.left.lock();
        let is_known = left.annotations.iter().any(|(known, _)| *known == key);
        if left.annotations.len() < NOTES_LIMIT && !is_known {
            left.annotations.push((key, value));
        }
    }

    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.left.lock().warnings)
    }

    pub(crate) fn take_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.left.lock().annotations)
    }
}
