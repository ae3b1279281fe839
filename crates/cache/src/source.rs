//! The source of a reflector's objects: list and watch.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use windlass_client::{VersionMatch, WatchEvent};
use windlass_core::{Doc, Gvk, Key};

/// A future behind a pointer, as the traits here return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Lists and watches the objects of one resource, in some namespace and under some selector.
///
/// Both requests hold only what a reflector decides. Whatever else a request needs, such as the
/// path, selectors and pruning, is the source's own.
pub trait ListWatch: Send + Sync + 'static {
    /// Reads one page of the list.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>>;

    /// Opens a watch.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>>;

    /// Returns true if the server supports streaming lists (WatchList). A reflector lists first if
    /// this is false; if it is true and the server does not, the reflector notices.
    fn supports_watch_list(&self) -> bool {
        true
    }
}

/// An open watch. Dropping it ends it.
pub trait Watch: Send {
    /// The next event; `None` when the server has ended the watch.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<WatchEvent, EventError>>>;
}

/// An open watch of any sort.
pub type BoxWatch = Box<dyn Watch>;

/// One page of a list is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// The state to read: empty for the latest, `0` for any, else one not older than this.
    pub resource_version: String,
    /// At most this many objects; zero for all.
    pub limit: u32,
    /// The continue token of the page before; empty for the first.
    pub continue_token: String,
}

/// A watch is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// The state after which events are sent.
    pub resource_version: String,
    /// The meaning of `resource_version`; only with `send_initial_events`.
    pub version_match: Option<VersionMatch>,
    /// True if the existing objects come first, with a bookmark after them.
    pub send_initial_events: bool,
    /// True if the server shall send bookmarks.
    pub allow_bookmarks: bool,
    /// When the server shall end the watch.
    pub timeout: Duration,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The objects, with their `apiVersion` and `kind`.
    pub items: Vec<Doc>,
    /// Objects that could not be decoded, by key as far as that is readable.
    pub undecodable: Vec<Undecodable>,
    /// The state of the server that this is.
    pub resource_version: String,
    /// The continue token of the next page; empty if this is the last.
    pub continue_token: String,
    /// The kind of the list, if it names one.
    pub kind: Option<Gvk>,
}

/// An object that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Undecodable {
    /// Its key, if that can be made out.
    pub key: Option<Key>,
    /// The problem with the object.
    pub message: String,
}

/// An event did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// One object could not be decoded; the watch goes on.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// The watch is over.
    #[error(transparent)]
    Ended(#[from] SourceError),
}

/// A failed list or watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The reason. It decides what the reflector does next.
    pub reason: Reason,
    /// The failure in words.
    pub message: String,
}

/// The sorts of failure that a reflector tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The version asked for is too old (410).
    Expired,
    /// The version asked for is newer than the server's state.
    VersionTooLarge,
    /// The server asks for fewer requests (429).
    TooManyRequests,
    /// Nothing answers: refused, not resolvable, cut or timed out.
    Unreachable,
    /// The server failed for a reason of its own (500).
    Internal,
    /// The caller may not do this (403).
    Forbidden,
    /// The server does not know the caller (401).
    Unauthorized,
    /// The server does not have this resource (404).
    NotFound,
    /// The answer is of a form that cannot be cached, such as a table.
    Unsupported,
    /// The watch ended within a second and without an event.
    VeryShortWatch,
    /// The initial events of a watch did not come to their end.
    Stalled,
    /// An object came that could not be read.
    Undecodable,
    /// Anything else.
    Other,
}

impl Reason {
    /// The name under which metrics count this.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::VersionTooLarge => "version_too_large",
            Self::TooManyRequests => "too_many_requests",
            Self::Unreachable => "unreachable",
            Self::Internal => "internal",
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Unsupported => "unsupported",
            Self::VeryShortWatch => "very_short_watch",
            Self::Stalled => "stalled",
            Self::Undecodable => "undecodable",
            Self::Other => "other",
        }
    }
}

impl SourceError {
    /// A failure.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// Returns true if the requested version cannot be had, neither now nor by waiting.
    #[must_use]
    pub fn is_version_unavailable(&self) -> bool {
        matches!(self.reason, Reason::Expired | Reason::VersionTooLarge)
    }

    /// Returns true if the same request may well succeed in a moment.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self.reason, Reason::TooManyRequests | Reason::Unreachable)
    }

    /// Returns true if a retry is in vain until somebody grants a permission or installs a
    /// resource.
    #[must_use]
    pub fn needs_action(&self) -> bool {
        matches!(
            self.reason,
            Reason::Forbidden | Reason::Unauthorized | Reason::NotFound
        )
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SourceError {}
