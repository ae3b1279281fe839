//! Who applies moves to the tables.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use super::tables::{Move, Tables};
use crate::DiskError;

/// Applies moves to the tables, one at a time. After an error every call returns it.
#[derive(Debug)]
pub(super) struct Mover {
    hands: Hands,
    failed: Option<DiskError>,
}

#[derive(Debug)]
enum Hands {
    /// The caller's, before a call returns: no thread, hence the same order in every run.
    Own(Box<Tables>),
    /// Those of a thread.
    Other(Worker),
    /// There is nothing left to do.
    Idle,
}

#[derive(Debug)]
struct Worker {
    moves: SyncSender<Move>,
    results: Receiver<Result<(), DiskError>>,
    is_busy: bool,
    thread: JoinHandle<()>,
}

impl Mover {
    /// Applies moves at once.
    pub(super) fn inline(tables: Tables) -> Self {
        Self::new(Hands::Own(Box::new(tables)))
    }

    /// Applies moves on a thread.
    pub(super) fn threaded(tables: Tables) -> Result<Self, DiskError> {
        let (moves, incoming) = sync_channel(1);
        let (outgoing, results) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("store-tables".to_owned())
            .spawn(move || work(tables, &incoming, &outgoing))?;
        let worker = Worker {
            moves,
            results,
            is_busy: false,
            thread,
        };
        Ok(Self::new(Hands::Other(worker)))
    }

    fn new(hands: Hands) -> Self {
        Self {
            hands,
            failed: None,
        }
    }

    /// Whether a move is under way.
    pub(super) fn is_busy(&self) -> bool {
        matches!(&self.hands, Hands::Other(worker) if worker.is_busy)
    }

    /// Starts a move. None may be under way.
    pub(super) fn start(&mut self, next: Move) -> Result<(), DiskError> {
        self.check()?;
        let started = match &mut self.hands {
            Hands::Own(tables) => tables.apply(&next),
            Hands::Other(worker) => {
                worker.is_busy = true;
                worker.moves.send(next).map_err(|_| gone())
            }
            Hands::Idle => Err(gone()),
        };
        self.note(started)
    }

    /// Learns whether a move has ended.
    pub(super) fn poll(&mut self) -> Result<(), DiskError> {
        self.check()?;
        let ended = match &mut self.hands {
            Hands::Other(worker) if worker.is_busy => match worker.results.try_recv() {
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => Err(gone()),
                Ok(ended) => {
                    worker.is_busy = false;
                    ended
                }
            },
            _ => Ok(()),
        };
        self.note(ended)
    }

    /// Waits until no move is under way.
    pub(super) fn wait(&mut self) -> Result<(), DiskError> {
        self.check()?;
        let ended = match &mut self.hands {
            Hands::Other(worker) if worker.is_busy => {
                worker.is_busy = false;
                worker.results.recv().unwrap_or_else(|_| Err(gone()))
            }
            _ => Ok(()),
        };
        self.note(ended)
    }

    /// Closes the tables. None may be under way.
    pub(super) fn stop(&mut self) {
        let Hands::Other(worker) = std::mem::replace(&mut self.hands, Hands::Idle) else {
            return;
        };
        drop(worker.moves);
        // Its panic was told through the channel.
        let _ = worker.thread.join();
    }

    fn check(&self) -> Result<(), DiskError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn note(&mut self, result: Result<(), DiskError>) -> Result<(), DiskError> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }
}

impl Drop for Mover {
    /// Whoever comes next may open the files at once.
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(mut tables: Tables, moves: &Receiver<Move>, results: &SyncSender<Result<(), DiskError>>) {
    for next in moves {
        let applied = tables.apply(&next);
        // Frames are freed here, not by the one who commits.
        drop(next);
        if results.send(applied).is_err() {
            return;
        }
    }
}

fn gone() -> DiskError {
    DiskError::from_text("the tables are closed")
}
