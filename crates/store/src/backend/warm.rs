//! Reading what was left unread, when the store is open already.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use windlass_core::{expect_more_nodes, interner_usage};

use super::Loaded;
use crate::Entry;

/// One part in so many of the entries tells how much room the others will need.
const SAMPLE: usize = 16;

/// A thread that puts documents together before somebody waits for them. It ends when all are
/// read, or with its handle.
#[derive(Debug)]
pub(super) struct Warm {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Warm {
    /// Starts with the last object: whoever lists them starts with the first.
    pub(super) fn start(loaded: &Loaded) -> io::Result<Self> {
        let objects = loaded.objects.values().flatten().rev();
        let previous = loaded.events.iter().rev();
        let previous = previous.filter_map(|(_, event)| event.previous.as_ref());
        let entries: Vec<Arc<Entry>> = objects.chain(previous).cloned().collect();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = is_stopped.clone();
        let thread = thread::Builder::new()
            .name("store-reader".to_owned())
            .spawn(move || read(entries, &stop))?;
        Ok(Self {
            is_stopped,
            thread: Some(thread),
        })
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic is met again by whoever asks for the same document.
            let _ = thread.join();
        }
    }
}

fn read(entries: Vec<Arc<Entry>>, stop: &AtomicBool) {
    let (before, sample) = (interner_usage(), entries.len() / SAMPLE);
    for (position, entry) in entries.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let _ = entry.doc();
        if position == sample {
            // Somebody who lists everything at the same time has brought as much.
            expect_more_nodes(&before, SAMPLE / 2 - 1);
        }
    }
}
