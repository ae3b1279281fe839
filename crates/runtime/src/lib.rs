//! The runtime of controllers.
//!
//! A [`Controller`] watches objects and reconciles their keys; a [`Manager`] runs controllers over
//! one client and one set of caches, with leader election, events, health, metrics and an orderly
//! stop. Around them stand the tools of controller authors: [`Freshness`], [`finalizer()`],
//! [`LeaderElector`] and [`EventRecorder`].
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_cache::Obj;
//! use windlass_runtime::{Action, Context, Controller, EventType, Manager, Result};
//!
//! async fn reconcile(map: Obj<ConfigMap>, cx: Context) -> Result<Action> {
//!     cx.event(&map, EventType::Normal, "Seen", "a map was seen");
//!     Ok(Action::done())
//! }
//!
//! # async fn example() -> Result<()> {
//! let manager = Manager::from_flags("map-watcher").await?;
//! manager.add(Controller::of::<ConfigMap>(reconcile).workers(2));
//! manager.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! There is nothing here that knows a particular kind of object except the Lease and the Event.

mod action;
mod change;
mod context;
mod controller;
mod election;
mod error;
mod events;
mod finalizer;
mod flags;
mod freshness;
mod health;
mod journal;
mod kind;
mod logs;
mod lru;
mod manager;
mod metrics;
mod parallel;
mod recent;
mod shutdown;
mod source;
mod writes;

pub use action::Action;
pub use change::{Change, filters};
pub use context::{Apply, Context};
pub use controller::{CACHE_SYNC_TIMEOUT, Controller, KeyReconciler, Reconciler, StartError};
pub use election::{
    Answer, Election, ElectionOptions, ElectionOptionsError, GuardLayer, GuardService,
    JITTER_FACTOR, LeaderElector, LeaderGuard, LeadershipLost, LeaseError, LeaseLock, LeaseRecord,
    NotLeader, Request, Turn,
};
pub use error::{Error, Result, Retry};
pub use events::{
    AGGREGATE_LIMIT, AGGREGATE_WINDOW, ATTEMPTS_LIMIT, CACHE_LIMIT, Correlated, Correlator,
    CorrelatorOptions, Event, EventBroadcaster, EventRecorder, EventSink, EventType, QUEUE_LIMIT,
    RETRY_INTERVAL, Reference, SPAM_BURST, SPAM_REFILL_INTERVAL, SinkError, Source, SpamKey,
};
pub use finalizer::{Finalize, finalizer};
pub use flags::{
    BindAddress, ConcurrencyFlags, DurationError, ElectionFlags, Flags, parse_duration,
};
pub use freshness::{Freshness, Reached, Stale};
pub use health::{Check, CheckFailed};
pub use journal::{
    JOURNAL_CAUSES_LIMIT, JOURNAL_DOCUMENTS_LIMIT, JOURNAL_ENTRIES_LIMIT, JOURNAL_KEYS_LIMIT,
};
pub use kind::ResourceKind;
pub use logs::LoggingFormat;
pub use manager::{
    ALWAYS_ALLOWED_PATHS, BuildError, GRACE_PERIOD, Manager, ManagerBuilder, ManagerHandle,
    RESYNC_PERIOD, RunError, TaskFailure,
};
pub use metrics::Metrics;
pub use parallel::parallel;
pub use recent::Recent;
pub use shutdown::Shutdown;
pub use source::Trigger;
pub use writes::Write;
