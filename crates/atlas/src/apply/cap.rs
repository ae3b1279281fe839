//! The limit on the number of managers.

use std::collections::BTreeMap;

use windlass_core::Time;

use super::entries::{Manager, Managers, Operation};

/// How many managers that update, rather than apply, are kept apart.
pub const MANAGERS_LIMIT: usize = 10;

/// Who holds the fields of managers beyond the limit.
const ANCIENT: &str = "ancient-changes";

/// Joins the oldest of too many managers, per version.
pub(super) fn cap(managers: &mut Managers) {
    let mut updaters: Vec<(i64, Manager)> = managers
        .iter()
        .filter(|(manager, _)| manager.operation == Operation::Update)
        .map(|(manager, owned)| (owned.time.map_or(0, Time::unix), manager.clone()))
        .collect();
    updaters.sort();
    let mut count = updaters.len();
    let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
    for (_, manager) in updaters {
        if count <= MANAGERS_LIMIT {
            return;
        }
        match first_of.get(&manager.api_version) {
            Some(first) => {
                join(managers, first, &manager);
                count -= 1;
            }
            None => drop(first_of.insert(manager.api_version.clone(), manager)),
        }
    }
}

/// Gives the fields of the first two managers of a version to one that stands for the ancient.
fn join(managers: &mut Managers, first: &Manager, next: &Manager) {
    let bucket = Manager {
        name: ANCIENT.to_owned(),
        operation: Operation::Update,
        api_version: next.api_version.clone(),
        subresource: String::new(),
    };
    let older = managers.remove(&bucket).or_else(|| managers.remove(first));
    let newer = managers.remove(next).or_else(|| older.clone());
    if let (Some(older), Some(newer)) = (older, newer) {
        let mut joined = newer;
        joined.gain(&older.set());
        managers.insert(bucket, joined);
    }
}
