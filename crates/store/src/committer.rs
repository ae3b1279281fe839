//! The thread that commits what writers queued.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crate::DiskError;
use crate::backend::Backend;
use crate::sequencer::{Status, Task};
use crate::shared::Shared;

/// Tasks in one transaction at most.
const BATCH_LIMIT: usize = 512;

/// Starts the thread. It ends when the store is closed and the queue is empty, and drops the
/// backend as the last thing it does.
pub(crate) fn start(
    shared: Arc<Shared>,
    backend: Box<dyn Backend>,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || run(&shared, backend))
}

/// Commits batches: while one is on its way to the disk, the next gathers by itself.
fn run(shared: &Shared, mut backend: Box<dyn Backend>) {
    while let Some(tasks) = next_batch(shared) {
        // A panic below must not leave writers waiting for ever. The tasks die with it, and so
        // their writers learn that the outcome is unknown.
        let commit = || shared.commit_batch(backend.as_mut(), tasks);
        if catch_unwind(AssertUnwindSafe(commit)).is_err() {
            shared.fail(Vec::new(), &DiskError::from_text("the committer panicked"));
        }
    }
}

/// Waits for tasks; `None` when the store is closed and nothing is left to do.
fn next_batch(shared: &Shared) -> Option<Vec<Task>> {
    let mut sequencer = shared.sequencer.lock();
    while sequencer.queue.is_empty() {
        if matches!(sequencer.status, Status::Closed) {
            return None;
        }
        shared.work.wait(&mut sequencer);
    }
    let count = sequencer.queue.len().min(BATCH_LIMIT);
    Some(sequencer.queue.drain(..count).collect())
}
