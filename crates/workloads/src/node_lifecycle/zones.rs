//! Zones: how many of their nodes are ready, and how fast nodes get their `NoExecute` taint.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;
use windlass_core::Doc;

use super::Options;

/// The state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneState {
    Initial,
    Normal,
    /// A large part of the nodes is not ready.
    Partial,
    /// No node is ready.
    Full,
}

impl ZoneState {
    pub(super) fn of(ready: usize, not_ready: usize, options: &Options) -> Self {
        let share = |part: usize| part as f64 / (ready + not_ready) as f64;
        match (ready, not_ready) {
            (0, 1..) => Self::Full,
            (_, 3..) if share(not_ready) >= options.unhealthy_threshold => Self::Partial,
            _ => Self::Normal,
        }
    }
}

/// The name of a node's zone, with its region.
pub(super) fn zone_of(node: &Doc) -> String {
    let meta = node.meta();
    let label = |old: &str, new: &str| meta.label(old).or_else(|| meta.label(new)).unwrap_or("");
    let zone = label(
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    );
    let region = label(
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    );
    match (region, zone) {
        ("", "") => String::new(),
        // A region may contain a colon, but nothing contains a null character.
        (region, zone) => format!("{region}:\0:{zone}"),
    }
}

/// One zone. Owned by the monitor.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) state: ZoneState,
    /// Nodes that wait for their taint, the first one first.
    waiting: VecDeque<String>,
    /// Those, and the ones that got it and were not ready since. Bounded by the nodes of the zone.
    known: BTreeSet<String>,
    rate: f64,
    /// The time of the next taint.
    next: Instant,
}

impl Zone {
    pub(super) fn new(rate: f64) -> Self {
        Self {
            state: ZoneState::Initial,
            waiting: VecDeque::new(),
            known: BTreeSet::new(),
            rate,
            next: Instant::now(),
        }
    }

    /// Queues a node, unless it is there or was handled already.
    pub(super) fn add(&mut self, node: &str) {
        if self.known.insert(node.to_owned()) {
            self.waiting.push_back(node.to_owned());
        }
    }

    pub(super) fn remove(&mut self, node: &str) {
        if self.known.remove(node) {
            self.waiting.retain(|it| it != node);
        }
    }

    /// Changes the rate. A zone that has to wait now waits for a whole turn of the new rate.
    pub(super) fn set_rate(&mut self, rate: f64) {
        if self.rate == rate {
            return;
        }
        let now = Instant::now();
        let must_wait = self.rate <= 0.0 || self.next > now;
        self.rate = rate;
        self.next = match (must_wait, turn(rate)) {
            (true, Some(turn)) => now + turn,
            _ => now,
        };
    }

    /// The next node whose turn it is.
    pub(super) fn pop(&mut self, now: Instant) -> Option<String> {
        let turn = turn(self.rate)?;
        if self.next > now {
            return None;
        }
        let node = self.waiting.pop_front()?;
        self.next = now + turn;
        Some(node)
    }

    /// Puts a node back that did not get its taint.
    pub(super) fn put_back(&mut self, node: String) {
        if self.known.contains(&node) {
            self.waiting.push_front(node);
        }
    }

    /// The time of the next turn, if somebody waits for it.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        let is_open = self.rate > 0.0 && !self.waiting.is_empty();
        is_open.then_some(self.next)
    }
}

/// The time between two nodes at a rate; `None` for never.
fn turn(rate: f64) -> Option<Duration> {
    (rate > 0.0).then(|| Duration::from_secs_f64(1.0 / rate))
}

/// The nodes of each zone that are ready, and that are not.
pub(super) type Counts = BTreeMap<String, (usize, usize)>;

/// All zones. Owned by the monitor.
#[derive(Debug, Default)]
pub(super) struct Zones(pub(super) BTreeMap<String, Zone>);

/// The work that a change of the zones leaves to the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disruption {
    /// Nothing.
    Same,
    /// No node is ready any more: taints go, because the fault may be on this side.
    Began,
    /// Some are ready again: the clocks of all nodes start anew.
    Ended,
}

impl Zones {
    pub(super) fn of(&mut self, node: &Doc, rate: f64) -> &mut Zone {
        let zone = self.0.entry(zone_of(node));
        zone.or_insert_with(|| Zone::new(rate))
    }

    /// Takes in how many nodes are ready, and sets the rates accordingly.
    pub(super) fn update(&mut self, counts: &Counts, options: &Options) -> Disruption {
        let states: BTreeMap<&String, ZoneState> = counts
            .iter()
            .map(|(zone, (ready, not))| (zone, ZoneState::of(*ready, *not, options)))
            .collect();
        for zone in counts.keys() {
            let new = || Zone::new(options.eviction_rate);
            self.0.entry(zone.clone()).or_insert_with(new);
        }
        self.0.retain(|zone, _| counts.contains_key(zone));
        let are_all_down = states.values().all(|state| *state == ZoneState::Full);
        let were_all_down = self.0.values().all(|zone| zone.state == ZoneState::Full);
        match (are_all_down, were_all_down) {
            (true, true) => Disruption::Same,
            (true, false) => {
                for zone in self.0.values_mut() {
                    zone.set_rate(0.0);
                    zone.state = ZoneState::Full;
                }
                Disruption::Began
            }
            (false, were_all_down) => {
                for (name, zone) in &mut self.0 {
                    let state = states[name];
                    if were_all_down || zone.state != state {
                        let (ready, not) = counts[name];
                        zone.set_rate(rate_in(state, ready + not, options));
                        zone.state = state;
                    }
                }
                match were_all_down {
                    true => Disruption::Ended,
                    false => Disruption::Same,
                }
            }
        }
    }
}

fn rate_in(state: ZoneState, size: usize, options: &Options) -> f64 {
    match state {
        ZoneState::Partial if size > options.large_zone => options.secondary_eviction_rate,
        ZoneState::Partial => 0.0,
        ZoneState::Initial | ZoneState::Normal | ZoneState::Full => options.eviction_rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_partly_down_from_three_nodes_and_55_percent_on() {
        let options = Options::default();
        let cases = [
            ((0, 0), ZoneState::Normal),
            ((0, 1), ZoneState::Full),
            ((1, 2), ZoneState::Normal),
            ((1, 3), ZoneState::Partial),
            ((3, 3), ZoneState::Normal),
            ((9, 11), ZoneState::Partial),
        ];
        for ((ready, not_ready), expected) in cases {
            assert_eq!(ZoneState::of(ready, not_ready, &options), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_take_turns_at_the_rate_of_their_zone() {
        let mut zone = Zone::new(0.1);
        for node in ["a", "b", "a"] {
            zone.add(node);
        }
        assert_eq!(zone.pop(Instant::now()).as_deref(), Some("a"));
        assert_eq!(zone.pop(Instant::now()), None);
        zone.add("a");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(zone.pop(Instant::now()).as_deref(), Some("b"));
        zone.remove("a");
        zone.add("a");
        zone.set_rate(0.0);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(zone.pop(Instant::now()), None);
        zone.set_rate(0.1);
        assert_eq!(zone.pop(Instant::now()), None, "a whole turn first");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(zone.pop(Instant::now()).as_deref(), Some("a"));
    }
}
