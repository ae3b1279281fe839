//! Connections, counted: open ones, and those that the server ended and why.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Reasons to end one connection for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShedReason {
    /// Its address had too many.
    Address,
    /// There were too many unauthenticated ones.
    Total,
    /// The process had no descriptors left.
    Descriptors,
}

/// Deadlines that end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The TLS handshake took too long.
    Handshake,
    /// No request came.
    Idle,
    /// The client did not read an answer or a watch.
    Unread,
}

/// Labels of [`ShedReason`], in order.
const SHED: [&str; 3] = ["address", "total", "descriptors"];
/// Labels of [`EndReason`], in order.
const ENDED: [&str; 3] = ["handshake", "idle", "unread"];

/// The figures of all connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMetrics {
    unauthenticated: AtomicI64,
    authenticated: AtomicI64,
    shed: [AtomicU64; SHED.len()],
    ended: [AtomicU64; ENDED.len()],
}

impl ConnectionMetrics {
    /// Counts a connection that was accepted.
    pub(crate) fn opened(&self) {
        self.unauthenticated.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that has shown good credentials.
    pub(crate) fn authenticated(&self) {
        self.unauthenticated.fetch_sub(1, Ordering::Relaxed);
        self.authenticated.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that ended.
    pub(crate) fn closed(&self, was_authenticated: bool) {
        let open = match was_authenticated {
            true => &self.authenticated,
            false => &self.unauthenticated,
        };
        open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection that ended for another one.
    pub(crate) fn shed(&self, why: ShedReason) {
        self.shed[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that a deadline ended.
    pub(crate) fn ended(&self, why: EndReason) {
        self.ended[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Open connections: the label and the figure.
    pub(crate) fn open(&self) -> [(&'static str, i64); 2] {
        [
            ("false", self.unauthenticated.load(Ordering::Relaxed)),
            ("true", self.authenticated.load(Ordering::Relaxed)),
        ]
    }

    /// Connections that ended for others, by reason.
    pub(crate) fn shed_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        by_reason(&SHED, &self.shed)
    }

    /// Connections that deadlines ended, by reason.
    pub(crate) fn ended_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        by_reason(&ENDED, &self.ended)
    }
}

fn by_reason(
    names: &'static [&'static str],
    counts: &[AtomicU64],
) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    names.iter().copied().zip(counts)
}
