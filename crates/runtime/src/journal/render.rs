//! The journal in words.

use std::fmt::Write as _;

use tokio::time::Instant;
use windlass_core::Doc;

use super::{Cause, Entry, Pending, aging::named};

/// The most changed fields of one event that are named.
const PATHS_LIMIT: usize = 8;

/// The story of a key: what is pending, and the last reconciles from the most recent on.
pub(super) fn story<'a>(
    pending: &Pending,
    entries: impl Iterator<Item = &'a Entry>,
    now: Instant,
) -> String {
    let mut text = String::new();
    if pending.count > 0 {
        let waited = pending
            .since
            .map_or_else(Default::default, |since| now - since);
        let _ = writeln!(text, "queued since {waited:?}");
        causes(&mut text, pending);
    }
    for entry in entries {
        reconcile(&mut text, entry, now);
    }
    text
}

fn reconcile(text: &mut String, entry: &Entry, now: Instant) {
    let ago = now - entry.started;
    let _ = writeln!(
        text,
        "reconciled {ago:?} ago, took {:?}: {}",
        entry.took, entry.outcome
    );
    if let Some(since) = entry.pending.since {
        let _ = writeln!(text, "  waited {:?} in the queue", entry.started - since);
    }
    causes(text, &entry.pending);
    for write in &entry.writes {
        let revision = write
            .revision
            .as_ref()
            .map(|revision| format!(" at {revision}"));
        let revision = revision.unwrap_or_default();
        let _ = writeln!(
            text,
            "  {} {}: {}{revision}",
            write.verb, write.path, write.result
        );
    }
    if entry.write_count > entry.writes.len() {
        let _ = writeln!(
            text,
            "  and {} more writes",
            entry.write_count - entry.writes.len()
        );
    }
    if entry.failures > 0 {
        let _ = writeln!(text, "  failed {} times in a row", entry.failures);
    }
    match entry.next_due {
        Some(due) if due > now => drop(writeln!(text, "  due again in {:?}", due - now)),
        Some(due) => drop(writeln!(text, "  was due again {:?} ago", now - due)),
        None => {}
    }
}

fn causes(text: &mut String, pending: &Pending) {
    for cause in pending.first.iter().chain(&pending.more) {
        let _ = writeln!(text, "  because {}", describe(cause));
    }
    let told = usize::from(pending.first.is_some()) + pending.more.len();
    if pending.count > told {
        let _ = writeln!(text, "  and {} more events", pending.count - told);
    }
}

fn describe(cause: &Cause) -> String {
    let (resource, old, new, is_initial) = match cause {
        Cause::Again => return "the reconcile before asked for it".to_owned(),
        Cause::Fresh => return "the caches have caught up with its own writes".to_owned(),
        Cause::Past {
            resource,
            object,
            what,
        } => return format!("{resource} {object} {what}"),
        Cause::Event {
            resource,
            old,
            new,
            is_initial,
        } => (resource, old, new, is_initial),
    };
    match (old, new) {
        (None, Some(new)) if *is_initial => format!("{resource} {} was there", named(new)),
        (None, Some(new)) => format!("{resource} {} was added", named(new)),
        (Some(old), None) => format!("{resource} {} was deleted", named(old)),
        (Some(old), Some(new)) if old == new => format!("{resource} {} was resynced", named(new)),
        (Some(old), Some(new)) => {
            let before = old.meta().resource_version();
            format!(
                "{resource} {} changed from {before}: {}",
                named(new),
                paths(old, new)
            )
        }
        (None, None) => "of something unknown".to_owned(),
    }
}

fn paths(old: &Doc, new: &Doc) -> String {
    // Every change changes the revision, which is told already.
    let is_news = |path: &String| path != "metadata.resourceVersion";
    let differences = old.diff_up_to(new, PATHS_LIMIT + 1);
    let paths: Vec<String> = differences
        .iter()
        .map(|difference| difference.path.to_string())
        .filter(is_news)
        .take(PATHS_LIMIT)
        .collect();
    paths.join(", ")
}
