//! Decides what becomes of an event: created, counted, merged or held back.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;
use windlass_core::Env;

use super::{
    count::Counter,
    event::{Event, event_name},
    spam::{SPAM_BURST, SPAM_REFILL_INTERVAL, SpamFilter, SpamKey, object_key},
};
use crate::lru::Lru;

/// The most events of one reason with different messages that are told apart.
pub const AGGREGATE_LIMIT: usize = 10;

/// Within what time of each other events count as similar.
pub const AGGREGATE_WINDOW: Duration = Duration::from_secs(600);

/// The most events, reasons and objects that are remembered.
pub const CACHE_LIMIT: usize = 4096;

const AGGREGATE_PREFIX: &str = "(combined from similar events): ";

/// The limits of a [`Correlator`]. The defaults are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrelatorOptions {
    /// The most events, reasons and objects that are remembered.
    pub cache_limit: usize,
    /// From how many different messages on they are merged.
    pub aggregate_limit: usize,
    /// Within what time of each other.
    pub aggregate_window: Duration,
    /// The most events of one object that pass at once.
    pub spam_burst: u32,
    /// The time until one more may pass.
    pub spam_refill_interval: Duration,
    /// The key of an allowance.
    pub spam_key: SpamKey,
}

impl Default for CorrelatorOptions {
    fn default() -> Self {
        Self {
            cache_limit: CACHE_LIMIT,
            aggregate_limit: AGGREGATE_LIMIT,
            aggregate_window: AGGREGATE_WINDOW,
            spam_burst: SPAM_BURST,
            spam_refill_interval: SPAM_REFILL_INTERVAL,
            spam_key: SpamKey::default(),
        }
    }
}

/// An event after correlation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correlated {
    /// The event, with the name and the count it has in its series.
    pub event: Event,
    /// True if it was recorded before: its object exists and is to be patched.
    pub is_repeat: bool,
    /// True if it is held back, because its object is too loud. It has been counted all the same.
    pub is_spam: bool,
    /// Under what it is counted.
    key: String,
}

/// The memory behind one sink: aggregation, counting and the spam filter, in this order.
#[derive(Debug)]
pub struct Correlator {
    options: CorrelatorOptions,
    env: Env,
    similar: Lru<String, Similar>,
    counter: Counter,
    spam: SpamFilter,
}

/// The messages of one reason.
#[derive(Debug)]
struct Similar {
    /// The most recent last.
    messages: VecDeque<String>,
    last: Instant,
}

impl Correlator {
    /// A correlator that has seen nothing.
    #[must_use]
    pub fn new(env: Env, options: CorrelatorOptions) -> Self {
        let CorrelatorOptions {
            cache_limit,
            spam_key,
            spam_burst,
            spam_refill_interval,
            ..
        } = options;
        Self {
            options,
            env,
            similar: Lru::new(cache_limit),
            counter: Counter::new(cache_limit),
            spam: SpamFilter::new(cache_limit, spam_key, spam_burst, spam_refill_interval),
        }
    }

    /// Places an event in its series.
    pub fn correlate(&mut self, event: Event, now: Instant) -> Correlated {
        let (mut event, key) = self.aggregate(event, now);
        let is_repeat = self.counter.count(&key, &mut event);
        let is_spam = !self.spam.allows(&event, now);
        Correlated {
            event,
            is_repeat,
            is_spam,
            key,
        }
    }

    /// Remembers under which name and version the server has stored an event.
    pub fn stored(&mut self, correlated: &Correlated, name: &str, resource_version: &str) {
        self.counter.stored(&correlated.key, name, resource_version);
    }

    /// Returns true if an event that was held back may be recorded now, which uses up allowance.
    pub fn may_tell(&mut self, correlated: &Correlated, now: Instant) -> bool {
        self.spam.allows(&correlated.event, now)
    }

    /// Merges the event with similar ones, if there are many. Returns what it is counted under.
    fn aggregate(&mut self, mut event: Event, now: Instant) -> (Event, String) {
        let key = aggregate_key(&event);
        let CorrelatorOptions {
            aggregate_limit,
            aggregate_window,
            ..
        } = self.options;
        let fresh = || Similar {
            messages: VecDeque::new(),
            last: now,
        };
        let similar = self.similar.entry(&key, fresh);
        if now.saturating_duration_since(similar.last) > aggregate_window {
            *similar = fresh();
        }
        similar.last = now;
        if !similar.messages.contains(&event.message) {
            similar.messages.push_back(event.message.clone());
        }
        if similar.messages.len() < aggregate_limit {
            let key = event_key(&event);
            return (event, key);
        }
        similar.messages.pop_front();
        event.name = event_name(&self.env, &event.involved.name);
        event.message = format!("{AGGREGATE_PREFIX}{}", event.message);
        (event, key)
    }
}

impl Correlated {
    /// The key that all events of the series share.
    #[must_use]
    pub fn series(&self) -> &str {
        &self.key
    }

    /// Makes this a creation, because the object of its series is gone.
    #[must_use]
    pub fn into_create(mut self) -> Self {
        self.is_repeat = false;
        self.event.resource_version.clear();
        self
    }
}

/// The key of similar events: all but the message and the part of the object.
pub(super) fn aggregate_key(event: &Event) -> String {
    object_key(event) + &event.event_type.to_string() + "\0" + &event.reason + "\0"
}

/// The key of repetitions of an event.
fn event_key(event: &Event) -> String {
    aggregate_key(event) + &event.involved.field_path + "\0" + &event.message
}
