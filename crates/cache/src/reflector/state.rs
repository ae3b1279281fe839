//! The state of a reflector.

use tokio::time::Instant;

use crate::source::SourceError;

/// The state of a reflector, with its last failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReflectorState {
    /// The current phase.
    pub phase: Phase,
    /// True if a complete state has been queued since the start.
    pub has_listed: bool,
    /// The last failure; `None` again once a complete state has arrived or a watch has run.
    pub last_failure: Option<Failure>,
    /// The number of failures in all.
    pub failures: u64,
    /// The number of objects that could not be read since the last list, up to 64. The cache keeps
    /// their last readable state.
    pub unreadable: usize,
    /// The number of times that the server sent a version older than one it had sent before.
    pub regressions: u64,
}

/// A failed list or watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to {verb} {resource}: {error}")]
pub struct Failure {
    /// The verb of the request: `list` or `watch`.
    pub verb: &'static str,
    /// The resource that was asked for.
    pub resource: String,
    /// The error.
    #[source]
    pub error: SourceError,
}

/// The phases of a reflector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It has not started.
    #[default]
    Idle,
    /// It waits until fewer others read a complete state (see
    /// [`STARTS_LIMIT`](crate::STARTS_LIMIT)).
    InLine,
    /// It reads a list.
    Listing,
    /// It reads the objects that a watch begins with.
    Streaming {
        /// The number of events received.
        received: usize,
        /// True if none came for a while.
        is_stalled: bool,
    },
    /// It follows the watch: the cache is up to date.
    Watching,
    /// Something failed; it tries again at this moment.
    Waiting {
        /// When it tries again.
        until: Instant,
    },
    /// It has been stopped.
    Stopped,
}
