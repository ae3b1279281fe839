//! Where one run of a scenario takes place.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::Method;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use windlass_client::Transport;
use windlass_core::{Env, Gvr};

use super::{CALLS_MAX, Plan, Simulation, WorldRule, world};
use crate::{Fault, Faults, Seen, TokioClock};

/// The HTTP code of an answer to a write that created its object.
const CREATED: u16 = 201;

/// The time between two looks at a condition.
const POLL_PERIOD: Duration = Duration::from_millis(10);

/// One run of a scenario: its time, its processes, and what goes wrong.
#[derive(Clone)]
pub struct Stage(Arc<Inner>);

struct Inner {
    env: Env,
    faults: Faults,
    patience: Duration,
    away: Duration,
    world_rules: Vec<WorldRule>,
    problem: Arc<Mutex<Option<String>>>,
    /// How many changes were observed: counted by the observers.
    changes: Arc<AtomicU64>,
}

impl Stage {
    pub(super) fn new(simulation: &Simulation, plan: Option<Plan>) -> Self {
        let problem = Arc::new(Mutex::new(None));
        let faults = Faults::new(chooser(plan, Arc::clone(&problem)));
        let (rules, found) = (simulation.request_rules.clone(), Arc::clone(&problem));
        faults.look(move |seen| {
            let broken = rules.iter().find_map(|rule| rule(seen).err());
            if let Some(text) = broken {
                found
                    .lock()
                    .get_or_insert(format!("call {}: {text}", seen.call.number));
            }
        });
        Self(Arc::new(Inner {
            env: TokioClock::new().env(simulation.seed),
            faults,
            patience: simulation.patience,
            away: simulation.away,
            world_rules: simulation.world_rules.clone(),
            problem,
            changes: Arc::default(),
        }))
    }

    /// Time, randomness and ids of this run.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// The calls of all processes.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Starts a process: whatever `main` does until its future ends. All its requests must go
    /// through the transport that it is given. When it crashes its future is dropped, whatever it
    /// has spawned can reach nobody any more, and after a while `main` is called again.
    pub fn start<F, M>(&self, name: &str, transport: &Transport, main: M)
    where
        M: Fn(Transport) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (stage, transport, name) = (self.clone(), transport.clone(), name.to_owned());
        tokio::spawn(async move {
            loop {
                let faults = stage.0.faults.process(&name);
                let life = main(transport.clone().layer(&faults));
                tokio::select! {
                    biased;
                    () = faults.crashed() => {}
                    () = life => return,
                }
                sleep(stage.0.away).await;
            }
        });
    }

    /// Looks at all objects of some resources, so that the rules of the simulation for changes are
    /// checked after each of them.
    pub fn observe(&self, transport: &Transport, resources: &[Gvr]) {
        let noted = world::Noted {
            rules: self.0.world_rules.clone(),
            problem: Arc::clone(&self.0.problem),
            changes: Arc::clone(&self.0.changes),
        };
        world::observe(transport, resources, noted);
    }

    /// How many changes of what is observed there were so far. A condition that is about nothing
    /// else need not be looked at again while this stays the same.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Relaxed)
    }

    /// Waits until a condition holds. If it never does, the run has gone wrong, which ends this
    /// wait and all others.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + self.0.patience;
        while self.problem().is_none() && !condition().await {
            if Instant::now() >= deadline {
                return self.fail(format!("not within {:?}: {what}", self.0.patience));
            }
            sleep(POLL_PERIOD).await;
        }
    }

    /// Lets time pass. Whatever is due meanwhile happens.
    pub async fn pass(&self, time: Duration) {
        if self.problem().is_none() {
            sleep(time).await;
        }
    }

    /// Lets time pass in which no process may write. Leases and events do not count.
    pub async fn rest(&self, time: Duration) {
        let before = self.writes();
        self.pass(time).await;
        if self.writes() != before {
            self.fail(format!(
                "a process wrote although there was nothing to do for {time:?}"
            ));
        }
    }

    /// Says that the run has gone wrong.
    pub fn fail(&self, problem: String) {
        self.0.problem.lock().get_or_insert(problem);
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.0.problem.lock().clone()
    }

    fn writes(&self) -> usize {
        let seen = self.0.faults.seen();
        let writes = seen.iter().filter(|seen| seen.call.is_write());
        writes
            .filter(|seen| !is_background(&seen.call.path))
            .count()
    }

    /// How many objects of each collection were created and deleted.
    pub(super) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for seen in self.0.faults.seen() {
            if let Some(name) = counted(&seen) {
                *counts.entry(name).or_default() += 1;
            }
        }
        counts
    }
}

/// What is written at any time, and so says nothing about the work that is done.
fn is_background(path: &str) -> bool {
    path.contains("/leases") || path.contains("/events")
}

/// The name under which a request is counted, if it created or deleted something.
fn counted(seen: &Seen) -> Option<String> {
    let path = &seen.call.path;
    let code = seen.answer.as_ref()?.code;
    if code >= 300 || is_background(path) {
        return None;
    }
    let collection = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    match seen.call.method {
        Method::POST => Some(format!("create {path}")),
        // An apply or an update of an object that was not there.
        Method::PATCH | Method::PUT if code == CREATED => Some(format!("create {collection}")),
        Method::DELETE => Some(format!("delete {collection}")),
        _ => None,
    }
}

/// Carries out a plan, and notices hot loops.
fn chooser(
    plan: Option<Plan>,
    problem: Arc<Mutex<Option<String>>>,
) -> impl FnMut(&crate::Call) -> Fault + Send + 'static {
    move |call| {
        if call.number >= CALLS_MAX {
            let text = format!("more than {CALLS_MAX} calls: a process is in a hot loop");
            problem.lock().get_or_insert(text);
            return Fault::Stall;
        }
        match &plan {
            Some(plan) if plan.number == call.number => plan.fault.clone(),
            _ => Fault::None,
        }
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("faults", &self.0.faults)
            .finish_non_exhaustive()
    }
}
