//! The thread that writes the audit log. Requests never wait for it: what finds the queue full is
//! dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use windlass_core::Env;

use super::{AuditOptions, Counts, backups};

/// Events that wait to be written at most: upstream's buffer.
const QUEUE_EVENTS_LIMIT: usize = 10_000;

/// Bytes of events that wait to be written at most.
const QUEUE_BYTES_LIMIT: usize = 16 << 20;

/// The longest that the end of a server waits for its log.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue to the thread.
#[derive(Debug)]
pub(super) struct Sink {
    queue: SyncSender<Message>,
    /// Bytes that wait.
    waiting: Arc<AtomicUsize>,
    counts: Arc<Counts>,
}

enum Message {
    Line(Vec<u8>),
    /// Answered when all before it is written.
    Flush(SyncSender<()>),
}

/// What is written to.
enum Output {
    Stdout,
    File {
        file: File,
        bytes: u64,
    },
    /// The file could not be opened again after it was put aside.
    Lost,
}

struct Writer {
    options: AuditOptions,
    env: Env,
    output: Output,
    waiting: Arc<AtomicUsize>,
    counts: Arc<Counts>,
    /// Set while writing fails, which is told once.
    is_failing: bool,
}

impl Sink {
    pub(super) fn open(
        options: &AuditOptions,
        env: &Env,
        counts: &Arc<Counts>,
    ) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE_EVENTS_LIMIT);
        let waiting = Arc::new(AtomicUsize::new(0));
        let writer = Writer {
            output: Output::open(&options.path)?,
            options: options.clone(),
            env: env.clone(),
            waiting: Arc::clone(&waiting),
            counts: Arc::clone(counts),
            is_failing: false,
        };
        std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || writer.run(&messages))?;
        Ok(Self {
            queue,
            waiting,
            counts: Arc::clone(counts),
        })
    }

    /// Queues a line, or drops it if too much waits already.
    pub(super) fn send(&self, line: Vec<u8>) {
        let bytes = line.len();
        let is_full = self.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE_BYTES_LIMIT;
        if is_full || self.queue.try_send(Message::Line(line)).is_err() {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn flush(&self) {
        let (done, written) = sync_channel(1);
        match self.queue.try_send(Message::Flush(done)) {
            // Nobody hears whether it was in time: the server ends.
            Ok(()) => drop(written.recv_timeout(FLUSH_TIMEOUT)),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

impl Output {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        // The log names users and what they do.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self::File { file, bytes })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().write_all(line),
            Self::File { file, bytes } => {
                *bytes += line.len() as u64;
                file.write_all(line)
            }
            Self::Lost => Err(io::Error::other("the file is not open")),
        }
    }
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Line(line) => {
                    self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
                    self.write(&line);
                }
                // Whoever waited may be gone.
                Message::Flush(done) => drop(done.send(())),
            }
        }
    }

    fn write(&mut self, line: &[u8]) {
        let written = self
            .rotate(line.len())
            .and_then(|()| self.output.write(line));
        match written {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                self.counts.errors.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.is_failing, true) {
                    let path = self.options.path.display();
                    tracing::error!(%error, %path, "the audit log cannot be written; events are lost");
                }
            }
        }
    }

    /// Puts the file aside if it is full, and opens the next one.
    fn rotate(&mut self, more: usize) -> io::Result<()> {
        let limit = self.options.max_size_mb.saturating_mul(1 << 20);
        let is_full = match &self.output {
            Output::File { bytes, .. } => {
                limit > 0 && *bytes > 0 && bytes.saturating_add(more as u64) > limit
            }
            Output::Lost => true,
            Output::Stdout => false,
        };
        if !is_full {
            return Ok(());
        }
        if let Output::File { .. } = std::mem::replace(&mut self.output, Output::Lost) {
            let now = self.env.now_micro();
            let aside: PathBuf = backups::name(&self.options.path, now);
            std::fs::rename(&self.options.path, aside)?;
            backups::clear_away(&self.options, now);
        }
        self.output = Output::open(&self.options.path)?;
        Ok(())
    }
}
