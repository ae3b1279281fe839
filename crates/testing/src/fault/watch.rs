//! Watches that end early or come late.

use std::{collections::VecDeque, future::pending, pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use tokio::{
    sync::watch::Receiver,
    time::{Instant, sleep_until},
};
use windlass_client::{Content, Events, WatchError, WatchEvent};

use super::line::{Line, State};

type Event = Result<WatchEvent, WatchError>;
type EventStream = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// How many events a lagging watch holds back; beyond that it waits, as a full socket does.
const HELD_MAX: usize = 65_536;

fn map(content: Content, change: impl FnOnce(EventStream) -> EventStream) -> Content {
    match content {
        Content::Events(events) => Content::Events(Events::new(change(Box::pin(events)))),
        other => other,
    }
}

/// Ends a watch after some events.
pub(super) fn cut_after(content: Content, events: usize) -> Content {
    map(content, |stream| Box::pin(stream.take(events)))
}

/// Brings each event later.
pub(super) fn lag(content: Content, by: Duration) -> Content {
    map(content, |source| {
        let held = Held {
            source,
            lag: Lag::Fixed(by),
            waiting: VecDeque::new(),
            is_over: false,
        };
        Box::pin(stream::unfold(held, async |mut held| {
            let event = held.next().await?;
            Some((event, held))
        }))
    })
}

/// Lets a watch share the fate of its process.
pub(super) fn on_line(content: Content, line: &Arc<Line>) -> Content {
    map(content, |source| {
        let state = line.subscribe();
        let cuts = state.borrow().cuts;
        let held = Held {
            source,
            lag: Lag::Line {
                state: state.clone(),
            },
            waiting: VecDeque::new(),
            is_over: false,
        };
        let tap = Tap { held, state, cuts };
        Box::pin(stream::unfold(tap, async |mut tap| {
            let event = tap.next().await?;
            Some((event, tap))
        }))
    })
}

/// How late a watch is.
enum Lag {
    Fixed(Duration),
    Line { state: Receiver<State> },
}

/// A watch whose events are held back.
struct Held {
    source: EventStream,
    lag: Lag,
    /// Events and when they came.
    waiting: VecDeque<(Instant, Event)>,
    is_over: bool,
}

impl Held {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let due = self.waiting.front().map(|(came, _)| *came + self.lag());
            if due.is_some_and(|due| due <= Instant::now()) {
                return self.waiting.pop_front().map(|(_, event)| event);
            }
            if due.is_none() && self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                event = self.source.next(), if !self.is_over && self.waiting.len() < HELD_MAX => {
                    match event {
                        Some(event) => self.waiting.push_back((Instant::now(), event)),
                        None => self.is_over = true,
                    }
                }
                () = until(due) => {}
                () = changed(&mut self.lag) => {}
            }
        }
    }

    fn lag(&self) -> Duration {
        match &self.lag {
            Lag::Fixed(lag) => *lag,
            Lag::Line { state } => state.borrow().lag,
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

async fn changed(lag: &mut Lag) {
    let is_changed = match lag {
        Lag::Line { state } => state.changed().await.is_ok(),
        Lag::Fixed(_) => false,
    };
    if !is_changed {
        pending().await
    }
}

/// A watch of a process.
struct Tap {
    held: Held,
    state: Receiver<State>,
    /// How often watches had been cut when this one began.
    cuts: usize,
}

impl Tap {
    async fn next(&mut self) -> Option<Event> {
        let cuts = self.cuts;
        let ended = self
            .state
            .wait_for(|state| state.is_dead || state.cuts > cuts);
        let is_dead = tokio::select! {
            biased;
            ended = ended => ended.is_ok_and(|state| state.is_dead),
            event = self.held.next() => return event,
        };
        if is_dead {
            return pending().await;
        }
        self.cuts = usize::MAX;
        Some(Err(WatchError::Connection("watch cut by a fault".into())))
    }
}
