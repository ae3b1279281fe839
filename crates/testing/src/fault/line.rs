//! The connections of one process.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// What the connections of one process have in common.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) process: Arc<str>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Whether the process has ended.
    pub(super) is_dead: bool,
    /// How often all watches were cut.
    pub(super) cuts: usize,
    /// How late watches are.
    pub(super) lag: Duration,
}

impl Line {
    pub(super) fn new(process: Arc<str>) -> Self {
        let state = watch::Sender::default();
        Self { process, state }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state.borrow().is_dead
    }

    pub(super) fn kill(&self) {
        self.state.send_modify(|state| state.is_dead = true);
    }

    pub(super) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    pub(super) fn lag(&self, by: Duration) {
        self.state.send_modify(|state| state.lag = by);
    }

    pub(super) async fn dead(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this line.
        let _ = state.wait_for(|state| state.is_dead).await;
    }
}
