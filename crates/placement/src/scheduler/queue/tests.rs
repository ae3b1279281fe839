//! The log of events, beyond what a test of the whole reaches.

use windlass_core::doc;

use super::log::{EVENTS_LIMIT, EventLog};
use crate::scheduler::plugin::ClusterEvent;

fn event() -> ClusterEvent {
    ClusterEvent::NodeAdded(doc!({ "metadata": { "name": "a" } }))
}

fn count(log: &EventLog, position: u64) -> Option<usize> {
    log.since(position).map(Iterator::count)
}

#[test]
fn events_are_kept_only_while_a_pod_is_being_tried() {
    let mut log = EventLog::default();
    log.push(&event());
    assert_eq!(log.len(), 0);
    let first = log.begin();
    log.push(&event());
    let second = log.begin();
    log.push(&event());
    assert_eq!(
        (count(&log, first), count(&log, second)),
        (Some(2), Some(1))
    );
    log.end(first);
    assert_eq!((log.len(), count(&log, second)), (1, Some(1)));
    log.end(second);
    assert_eq!(log.len(), 0);
}

#[test]
fn pod_that_is_tried_for_too_long_is_told_that_it_missed_events() {
    let mut log = EventLog::default();
    let position = log.begin();
    for _ in 0..EVENTS_LIMIT {
        log.push(&event());
    }
    assert_eq!(count(&log, position), Some(EVENTS_LIMIT));
    log.push(&event());
    assert_eq!(count(&log, position), None);
    assert_eq!(log.len(), EVENTS_LIMIT);
}
