//! The seats that a request takes: one, and more for a list of many objects.

use super::level::Level;
use crate::query::Query;
use crate::request::{ResourcePath, Target, Verb};
use crate::storage::Storage;

/// Objects that a list reads for each of its seats, upstream's.
const OBJECTS_PER_SEAT: usize = 100;
/// Seats of one request at most, upstream's.
const SEATS_LIMIT: usize = 10;
/// The part of a level's seats that one request takes at most, in percent, upstream's.
const LEVEL_PERCENT: usize = 15;

/// The seats of a request in a level.
pub(super) fn seats(target: &Target, query: &Query, storage: &Storage, level: &Level) -> usize {
    let Target::Resource(path) = target else {
        return 1;
    };
    if !is_list(path, query) {
        return 1;
    }
    let nominal = level.limits().nominal;
    let most = (nominal * LEVEL_PERCENT)
        .div_ceil(100)
        .clamp(1, SEATS_LIMIT);
    objects(path, query, storage)
        .div_ceil(OBJECTS_PER_SEAT)
        .clamp(1, most)
}

/// Returns true for a list, and for a watch that begins with one.
fn is_list(path: &ResourcePath, query: &Query) -> bool {
    let begins_with_list = || {
        let asked = query.flag("sendInitialEvents");
        asked == Some(true) || (asked.is_none() && matches!(query.get("resourceVersion"), "" | "0"))
    };
    path.name.is_empty()
        && match path.verb {
            Some(Verb::List | Verb::DeleteCollection) => true,
            Some(Verb::Watch) => begins_with_list(),
            _ => false,
        }
}

/// Objects that a list reads: one page, unless a selector passes over some.
fn objects(path: &ResourcePath, query: &Query, storage: &Storage) -> usize {
    let snapshot = storage.snapshot_of(&path.group, &path.resource);
    let stored = match path.namespace.as_str() {
        "" => snapshot.len(),
        namespace => snapshot.namespace(namespace, "").count_left(),
    };
    let has_selector =
        !query.get("labelSelector").is_empty() || !query.get("fieldSelector").is_empty();
    match query.get("limit").parse::<usize>() {
        Ok(limit) if limit > 0 && !has_selector => stored.min(limit),
        _ => stored,
    }
}
