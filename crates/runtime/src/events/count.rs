//! Counts repetitions of an event.

use windlass_core::Time;

use super::event::Event;
use crate::lru::Lru;

#[derive(Debug)]
pub(super) struct Counter {
    known: Lru<String, Known>,
}

/// An event that happened before.
#[derive(Clone, Debug, Default)]
struct Known {
    count: u32,
    first: Option<Time>,
    name: String,
    resource_version: String,
}

impl Counter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            known: Lru::new(limit),
        }
    }

    /// Makes the event the next of its series. Returns whether it was known before.
    pub(super) fn count(&mut self, key: &String, event: &mut Event) -> bool {
        let known = self.known.entry(key, Known::default);
        let is_repeat = known.count > 0;
        if is_repeat {
            event.name.clone_from(&known.name);
            event.resource_version.clone_from(&known.resource_version);
            event.first = known.first.unwrap_or(event.first);
            event.count = known.count.saturating_add(1);
        }
        *known = Known {
            count: event.count,
            first: Some(event.first),
            name: event.name.clone(),
            resource_version: event.resource_version.clone(),
        };
        is_repeat
    }

    /// Takes over what the server stored.
    pub(super) fn stored(&mut self, key: &String, name: &str, resource_version: &str) {
        let known = self.known.entry(key, Known::default);
        name.clone_into(&mut known.name);
        resource_version.clone_into(&mut known.resource_version);
    }
}
