//! Events: what a controller tells people about an object.
//!
//! A controller calls [`EventRecorder::event`], which never waits. Behind it every sink has a
//! bounded queue and a [`Correlator`] of its own, which counts repetitions, merges events that
//! only differ in their message, and holds back an object that is too loud.

mod correlate;
mod count;
mod event;
mod recorder;
mod sink;
mod spam;

pub use correlate::{
    AGGREGATE_LIMIT, AGGREGATE_WINDOW, CACHE_LIMIT, Correlated, Correlator, CorrelatorOptions,
};
pub use event::{Event, EventType, Reference, Source};
pub use recorder::{EventBroadcaster, EventRecorder, QUEUE_LIMIT};
pub use sink::{ATTEMPTS_LIMIT, EventSink, RETRY_INTERVAL, SinkError};
pub use spam::{SPAM_BURST, SPAM_REFILL_INTERVAL, SpamKey};

#[cfg(test)]
mod tests;
