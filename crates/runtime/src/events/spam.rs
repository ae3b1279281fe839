//! Holds back an object that is too loud.

use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use crate::lru::Lru;

/// The most events of one object that pass at once.
pub const SPAM_BURST: u32 = 25;

/// The time until one more may pass.
pub const SPAM_REFILL_INTERVAL: Duration = Duration::from_secs(300);

/// The key of an allowance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpamKey {
    /// All events of one type about one object from one source.
    #[default]
    Object,
    /// The same, each reason by itself.
    ObjectAndReason,
}

#[derive(Debug)]
pub(super) struct SpamFilter {
    buckets: Lru<String, Bucket>,
    key: SpamKey,
    burst: f64,
    refill_interval: Duration,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

impl SpamFilter {
    pub(super) fn new(limit: usize, key: SpamKey, burst: u32, refill_interval: Duration) -> Self {
        Self {
            buckets: Lru::new(limit),
            key,
            burst: f64::from(burst),
            refill_interval,
        }
    }

    /// Returns true if the event may pass, which uses up part of the allowance.
    pub(super) fn allows(&mut self, event: &Event, now: Instant) -> bool {
        let key = self.key_of(event);
        let burst = self.burst;
        let bucket = self.buckets.entry(&key, || Bucket {
            tokens: burst,
            filled_at: now,
        });
        let passed = now.saturating_duration_since(bucket.filled_at);
        let refilled = passed.as_secs_f64() / self.refill_interval.as_secs_f64().max(f64::EPSILON);
        bucket.tokens = (bucket.tokens + refilled).min(burst);
        bucket.filled_at = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn key_of(&self, event: &Event) -> String {
        let mut key = object_key(event);
        key.push_str(&event.event_type.to_string());
        if self.key == SpamKey::ObjectAndReason {
            key.push('\0');
            key.push_str(&event.reason);
        }
        key
    }
}

/// The reporter and the object. The parts are kept apart by a character that none has.
pub(super) fn object_key(event: &Event) -> String {
    let (source, involved) = (&event.source, &event.involved);
    let parts = [
        &source.component,
        &source.host,
        &involved.kind,
        &involved.namespace,
        &involved.name,
        &involved.uid,
        &involved.api_version,
    ];
    parts
        .into_iter()
        .fold(String::new(), |key, part| key + part + "\0")
}
