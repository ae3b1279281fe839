//! The pods that wait for a node: those to be tried now, those that back off, and those for which
//! nothing but an event can help.

mod log;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use hashbrown::{HashMap, HashSet};
use tokio::time::Instant;
use windlass_core::{Doc, Key, Str};

use super::{
    hints::{Gate, Hints, Interest, Waiter},
    plugin::ClusterEvent,
    reasons::{Filter, Rejectors},
    spec::SpecView,
};
use log::EventLog;

/// The first back-off; each further one is twice as long.
pub(super) const BACKOFF_INITIAL: Duration = Duration::from_secs(1);
/// The longest back-off.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long a pod waits for an event before it is tried anyway.
const POOL_AGE_LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often that is looked at.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Something went wrong; trying again may help.
    Error,
    /// Only an event can help, one that one of these listens to.
    Rejected(Rejectors),
}

/// A pod to try.
#[derive(Clone, Debug)]
pub(super) struct Popped {
    pub(super) uid: Str,
    pub(super) pod: Doc,
    pub(super) view: Arc<SpecView>,
    pub(super) attempts: u32,
    /// When the pod came into the queue for the first time.
    pub(super) first: Instant,
}

/// How many pods wait in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depths {
    pub(super) active: usize,
    pub(super) backoff: usize,
    pub(super) unschedulable: usize,
    pub(super) gated: usize,
}

/// Written by the handlers of the informers and by the scheduling loop, under one lock.
#[derive(Debug)]
pub(super) struct Queue {
    /// All pods that wait or are being tried; bounded by the unassigned pods of the cluster.
    pods: HashMap<Str, Waiting, foldhash::fast::RandomState>,
    /// By priority, then by age.
    active: BTreeMap<(Reverse<i32>, u64), Str>,
    backoff: BTreeMap<(Instant, u64), Str>,
    /// Those that were tried and refused, by age.
    pool: BTreeMap<u64, Str>,
    /// Those that there is no sense in trying, by age.
    gated: BTreeMap<u64, Str>,
    /// How many pods of these two wait because of whom.
    blamed: [usize; Rejectors::BITS],
    /// The pods of these two that depend on an object, by age.
    dependents: HashMap<Key, BTreeSet<u64>, foldhash::fast::RandomState>,
    /// The pods for which others are being evicted. They are not tried meanwhile.
    preempting: HashSet<Str, foldhash::fast::RandomState>,
    log: EventLog,
    next_order: u64,
    next_flush: Instant,
    hints: Hints,
}

#[derive(Debug)]
struct Waiting {
    pod: Doc,
    view: Arc<SpecView>,
    place: Place,
    order: u64,
    first: Instant,
    /// When the last attempt ended, or the pod came.
    since: Instant,
    attempts: u32,
    rejections: u32,
    errors_in_a_row: u32,
    rejectors: Rejectors,
    gate: Option<Gate>,
    /// The objects under which it stands among the dependents.
    dependencies: Vec<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Backoff(Instant),
    Pool,
    /// Being tried since this position of the log.
    InFlight(u64),
    /// Nowhere yet.
    New,
}

impl Waiting {
    fn backoff(&self) -> Duration {
        let count = match self.errors_in_a_row {
            0 => self.rejections,
            errors => errors,
        };
        match count.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                BACKOFF_INITIAL
                    .saturating_mul(factor.max(1))
                    .min(BACKOFF_MAX)
            }
        }
    }

    fn waiter(&self) -> Waiter<'_> {
        Waiter {
            pod: &self.pod,
            view: &self.view,
            rejectors: self.rejectors,
            gate: self.gate,
        }
    }
}

impl Queue {
    pub(super) fn new(hints: Hints, now: Instant) -> Self {
        Self {
            pods: HashMap::default(),
            active: BTreeMap::new(),
            backoff: BTreeMap::new(),
            pool: BTreeMap::new(),
            gated: BTreeMap::new(),
            blamed: [0; Rejectors::BITS],
            dependents: HashMap::default(),
            preempting: HashSet::default(),
            log: EventLog::default(),
            next_order: 0,
            next_flush: now + FLUSH_INTERVAL,
            hints,
        }
    }

    fn order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    /// Adds a pod, or takes note of its change.
    pub(super) fn set(&mut self, uid: &Str, pod: &Doc, view: &Arc<SpecView>, now: Instant) {
        if let Some(known) = self.pods.get(uid) {
            let old = known.pod.clone();
            return self.change(uid, old, pod, view, now);
        }
        let order = self.order();
        let waiting = Waiting {
            pod: pod.clone(),
            view: view.clone(),
            place: Place::New,
            order,
            first: now,
            since: now,
            attempts: 0,
            rejections: 0,
            errors_in_a_row: 0,
            rejectors: Rejectors::default(),
            gate: None,
            dependencies: Vec::new(),
        };
        self.pods.insert(uid.clone(), waiting);
        self.requeue(uid, now);
    }

    fn change(&mut self, uid: &Str, old: Doc, pod: &Doc, view: &Arc<SpecView>, now: Instant) {
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        let place = waiting.place;
        let (order, is_same_rank) = (waiting.order, waiting.view.priority == view.priority);
        let was = Reverse(waiting.view.priority);
        waiting.pod = pod.clone();
        waiting.view = view.clone();
        let event = ClusterEvent::PodChanged {
            old,
            new: pod.clone(),
        };
        match place {
            Place::InFlight(_) => self.log.push(&event),
            Place::Pool if self.is_helped(uid, &event) => self.requeue(uid, now),
            Place::Pool => self.follow(uid),
            Place::Active if !is_same_rank => {
                self.active.remove(&(was, order));
                self.active
                    .insert((Reverse(view.priority), order), uid.clone());
            }
            Place::Active | Place::Backoff(_) | Place::New => {}
        }
    }

    fn is_helped(&self, uid: &Str, event: &ClusterEvent) -> bool {
        let waiting = self.pods.get(uid);
        waiting.is_some_and(|waiting| self.hints.helps(&waiting.waiter(), event))
    }

    /// Forgets a pod.
    pub(super) fn remove(&mut self, uid: &Str) {
        self.leave(uid);
        self.preempting.remove(uid);
        self.pods.remove(uid);
    }

    /// Whether a pod waits or is being tried.
    pub(super) fn contains(&self, uid: &Str) -> bool {
        self.pods.contains_key(uid)
    }

    /// The pod of this UID that waits or is being tried.
    pub(super) fn get(&self, uid: &Str) -> Option<&Doc> {
        self.pods.get(uid).map(|waiting| &waiting.pod)
    }

    /// Keeps a pod from being tried while others are evicted for it.
    pub(super) fn begin_preemption(&mut self, uid: &Str) {
        self.preempting.insert(uid.clone());
    }

    /// The others are evicted, or could not be: then the pod is tried again without an event.
    pub(super) fn end_preemption(&mut self, uid: &Str, is_done: bool, now: Instant) {
        self.preempting.remove(uid);
        let Some(waiting) = self.pods.get(uid) else {
            return;
        };
        let was_held = waiting.gate == Some(Gate::Preemption);
        if waiting.place == Place::Pool && (was_held || !is_done) {
            self.requeue(uid, now);
        }
    }

    /// The pod to try next.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Popped> {
        self.flush(now);
        let (_, uid) = self.active.pop_first()?;
        let position = self.log.begin();
        let waiting = self.pods.get_mut(&uid)?;
        waiting.place = Place::InFlight(position);
        waiting.attempts += 1;
        Some(Popped {
            pod: waiting.pod.clone(),
            view: waiting.view.clone(),
            attempts: waiting.attempts,
            first: waiting.first,
            uid,
        })
    }

    /// When there may be something to try, if nothing happens until then.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let expiry = self.backoff.keys().next().map(|(expiry, _)| *expiry);
        let flush = (!self.pool.is_empty()).then_some(self.next_flush);
        [expiry, flush].into_iter().flatten().min()
    }

    /// An attempt has failed. Returns whether the pod still waits.
    pub(super) fn failed(&mut self, uid: &Str, failure: Failure, now: Instant) -> bool {
        let order = self.order();
        let Some(waiting) = self.pods.get_mut(uid) else {
            return false;
        };
        let Place::InFlight(position) = waiting.place else {
            return true;
        };
        (waiting.since, waiting.order) = (now, order);
        let rejectors = match failure {
            Failure::Rejected(rejectors) => rejectors,
            Failure::Error => Rejectors::default(),
        };
        waiting.rejectors = rejectors;
        if rejectors.is_empty() {
            waiting.errors_in_a_row += 1;
        } else {
            waiting.rejections += 1;
            waiting.errors_in_a_row = 0;
        }
        let waiting = &self.pods[uid];
        let mut missed = self.log.since(position);
        let is_helped = rejectors.is_empty()
            || missed.as_mut().is_none_or(|events| {
                events.any(|event| self.hints.helps(&waiting.waiter(), event))
            });
        drop(missed);
        if is_helped {
            self.requeue(uid, now);
        } else {
            self.leave(uid);
            self.park(uid, None);
        }
        true
    }

    /// An attempt was given up, and the pod is no longer of interest.
    pub(super) fn done(&mut self, uid: &Str) {
        self.remove(uid);
    }

    /// Something has happened. Returns whether a pod was queued.
    pub(super) fn wake(&mut self, event: &ClusterEvent, now: Instant) -> bool {
        self.log.push(event);
        let interest = self.hints.interested(event);
        let is_blamed = interest.who.bits().any(|bit| self.blamed[bit] > 0);
        if !is_blamed {
            return false;
        }
        let helped = |uid: &&Str| {
            let waiting = &self.pods[*uid];
            let is_concerned = blame(waiting).overlaps(interest.who);
            is_concerned && self.hints.helps(&waiting.waiter(), event)
        };
        let woken: Vec<Str> = self.reached(&interest).filter(helped).cloned().collect();
        for uid in &woken {
            self.requeue(uid, now);
        }
        !woken.is_empty()
    }

    /// The pods that an event could help, the dependents of its objects first.
    fn reached<'a>(&'a self, interest: &'a Interest) -> impl Iterator<Item = &'a Str> {
        let objects = interest.objects.iter();
        let orders = objects.filter_map(|object| self.dependents.get(object));
        let dependents = orders.flatten().filter_map(|order| {
            let gated = self.gated.get(order).filter(|_| !interest.gated);
            let tried = self.pool.get(order).filter(|_| !interest.tried);
            gated.or(tried)
        });
        let tried = interest.tried.then(|| self.pool.values());
        let gated = interest.gated.then(|| self.gated.values());
        let others = tried.into_iter().flatten();
        dependents.chain(others).chain(gated.into_iter().flatten())
    }

    pub(super) fn depths(&self) -> Depths {
        Depths {
            active: self.active.len(),
            backoff: self.backoff.len(),
            unschedulable: self.pool.len(),
            gated: self.gated.len(),
        }
    }

    /// How many pods wait because of a filter.
    pub(super) fn blamed(&self, filter: Filter) -> usize {
        self.blamed[filter as usize]
    }

    /// Events that are kept for the pods that are being tried.
    pub(super) fn events(&self) -> usize {
        self.log.len()
    }

    /// Moves pods whose time has come.
    fn flush(&mut self, now: Instant) {
        while let Some(entry) = self.backoff.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let uid = entry.get().clone();
            self.requeue(&uid, now);
        }
        if now < self.next_flush {
            return;
        }
        self.next_flush = now + FLUSH_INTERVAL;
        let is_old = |uid: &&Str| {
            let waiting = &self.pods[*uid];
            waiting.since + POOL_AGE_LIMIT <= now
        };
        let old: Vec<Str> = self.pool.values().filter(is_old).cloned().collect();
        for uid in &old {
            self.requeue(uid, now);
        }
    }

    /// Puts a pod where it belongs now: behind its gate, into back-off, or among the active.
    fn requeue(&mut self, uid: &Str, now: Instant) {
        self.leave(uid);
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        let gate = match self.preempting.contains(uid) {
            true => Some(Gate::Preemption),
            false => self.hints.gate(&waiting.pod),
        };
        if gate.is_some() {
            return self.park(uid, gate);
        }
        waiting.gate = None;
        let expiry = waiting.since + waiting.backoff();
        if expiry > now {
            waiting.place = Place::Backoff(expiry);
            self.backoff.insert((expiry, waiting.order), uid.clone());
        } else {
            waiting.place = Place::Active;
            let rank = (Reverse(waiting.view.priority), waiting.order);
            self.active.insert(rank, uid.clone());
        }
    }

    /// Lets a pod wait: in the pool, or behind its gate.
    fn park(&mut self, uid: &Str, gate: Option<Gate>) {
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        waiting.gate = gate;
        waiting.place = Place::Pool;
        match gate {
            Some(_) => self.gated.insert(waiting.order, uid.clone()),
            None => self.pool.insert(waiting.order, uid.clone()),
        };
        for bit in blame(waiting).bits() {
            self.blamed[bit] += 1;
        }
        self.follow(uid);
    }

    /// Notes what a waiting pod depends on now.
    fn follow(&mut self, uid: &Str) {
        self.unfollow(uid);
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        waiting.dependencies = self.hints.dependencies(&waiting.pod, blame(waiting));
        for object in &waiting.dependencies {
            let dependents = self.dependents.entry(object.clone()).or_default();
            dependents.insert(waiting.order);
        }
    }

    fn unfollow(&mut self, uid: &Str) {
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        for object in waiting.dependencies.drain(..) {
            if let Some(dependents) = self.dependents.get_mut(&object) {
                dependents.remove(&waiting.order);
                if dependents.is_empty() {
                    self.dependents.remove(&object);
                }
            }
        }
    }

    /// Takes a pod from wherever it is.
    fn leave(&mut self, uid: &Str) {
        self.unfollow(uid);
        let Some(waiting) = self.pods.get_mut(uid) else {
            return;
        };
        let order = waiting.order;
        match waiting.place {
            Place::New => {}
            Place::Active => {
                self.active.remove(&(Reverse(waiting.view.priority), order));
            }
            Place::Backoff(expiry) => {
                self.backoff.remove(&(expiry, order));
            }
            Place::InFlight(position) => self.log.end(position),
            Place::Pool => {
                self.pool.remove(&order);
                self.gated.remove(&order);
                for bit in blame(waiting).bits() {
                    self.blamed[bit] -= 1;
                }
            }
        }
        waiting.place = Place::New;
    }
}

/// Because of whom a pod of the pool waits.
fn blame(waiting: &Waiting) -> Rejectors {
    match waiting.gate {
        None => waiting.rejectors,
        Some(Gate::Own | Gate::Preemption) => Rejectors::default(),
        Some(Gate::Plugin(at)) => {
            let mut blamed = Rejectors::default();
            blamed.add_plugin(at);
            blamed
        }
    }
}

#[cfg(test)]
mod tests;
