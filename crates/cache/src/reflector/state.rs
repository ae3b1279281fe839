//! What a reflector says about itself.

use tokio::time::Instant;

use crate::source::SourceError;

/// What a reflector is doing, and what went wrong last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReflectorState {
    /// What it does at this moment.
    pub phase: Phase,
    /// Whether a complete state has been queued since the start.
    pub has_listed: bool,
    /// What went wrong last; `None` again once a complete state has arrived or a watch has run.
    pub last_failure: Option<Failure>,
    /// How many failures there have been in all.
    pub failures: u64,
    /// How many objects could not be read since the last list; the cache shows them as they were
    /// known before. Counted up to 64.
    pub unreadable: usize,
    /// How often the server sent a version older than one it had sent before.
    pub regressions: u64,
}

/// What a reflector could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to {verb} {resource}: {error}")]
pub struct Failure {
    /// The verb of the request: `list` or `watch`.
    pub verb: &'static str,
    /// The resource that was asked for.
    pub resource: String,
    /// Why it failed.
    #[source]
    pub error: SourceError,
}

/// What a reflector does at some moment.
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
        /// How many events have come.
        received: usize,
        /// Whether none came for a while.
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
