//! The limit on the number of managers.

use std::collections::BTreeMap;

use windlass_core::Time;

use super::entries::{Manager, Managers, Operation, Owned};
use super::set::FieldSet;

/// The number of managers that update, rather than apply, and are kept apart.
pub const MANAGERS_LIMIT: usize = 10;

/// The manager that takes over the fields of managers beyond the limit.
const ANCIENT: &str = "ancient-changes";

/// The fields that managers of one version had, joined step by step into one set.
struct Ancient {
    /// The oldest manager of the version, until a second one is joined with it.
    first: Option<Manager>,
    joined: FieldSet,
    /// The one joined last, which gives its time.
    last: Option<Owned>,
}

/// Joins the oldest of too many managers, per version.
pub(super) fn cap(managers: &mut Managers) {
    let mut updaters: Vec<(i64, Manager)> = managers
        .iter()
        .filter(|(manager, _)| manager.operation == Operation::Update)
        .map(|(manager, owned)| (owned.time.map_or(0, Time::unix), manager.clone()))
        .collect();
    if updaters.len() <= MANAGERS_LIMIT {
        return;
    }
    updaters.sort();
    let mut count = updaters.len();
    let mut versions: BTreeMap<String, Ancient> = BTreeMap::new();
    for (_, manager) in updaters {
        if count <= MANAGERS_LIMIT {
            break;
        }
        match versions.get_mut(&manager.api_version) {
            Some(ancient) => {
                ancient.join(managers, &manager);
                count -= 1;
            }
            None => {
                let ancient = Ancient::of(&manager);
                versions.insert(manager.api_version, ancient);
            }
        }
    }
    for (version, ancient) in versions {
        ancient.keep(&version, managers);
    }
}

impl Ancient {
    fn of(first: &Manager) -> Self {
        Self {
            first: Some(first.clone()),
            joined: FieldSet::new(),
            last: None,
        }
    }

    /// Takes the fields of one more manager. The set grows by those; to build it anew each time
    /// would cost the square of their number.
    fn join(&mut self, managers: &mut Managers, next: &Manager) {
        let start = self.first.take().and_then(|first| {
            let ancient = managers.remove(&bucket(&next.api_version));
            ancient.or_else(|| managers.remove(&first))
        });
        for owned in start.into_iter().chain(managers.remove(next)) {
            self.joined = std::mem::take(&mut self.joined).union(&owned.set());
            self.last = Some(owned);
        }
    }

    /// Puts one manager in the place of those that were joined.
    fn keep(self, version: &str, managers: &mut Managers) {
        if let Some(last) = self.last {
            let owned = Owned::new(self.joined, &last.api_version, last.time);
            managers.insert(bucket(version), owned);
        }
    }
}

/// The manager that stands for the ancient ones of a version.
fn bucket(version: &str) -> Manager {
    Manager {
        name: ANCIENT.to_owned(),
        operation: Operation::Update,
        api_version: version.to_owned(),
        subresource: String::new(),
    }
}
