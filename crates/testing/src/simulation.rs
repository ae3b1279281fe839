//! The same scenario again and again, with one thing going wrong each time.
//!
//! A scenario sets up a cluster, starts processes on it and says when they are done. It is run once
//! without faults, to count the calls that the processes make, and then once for each call and
//! each fault. Every run has a runtime of its own with a paused clock, and the same seed. Three
//! things are checked: what the scenario leaves behind must be what it left behind without faults,
//! but for names, times and the like; the processes must have created and deleted as many objects;
//! and whatever rules were given must hold at every request and after every change.

mod failure;
mod stage;
mod world;

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use windlass_core::Doc;
use windlass_faults::difference;
pub use windlass_faults::normalized;

use crate::{Call, Fault, Position, Seen};
pub use failure::Failure;
pub use stage::Stage;
pub use world::World;

/// How long a scenario waits for a condition. The longest back-off of a work queue is 1,000 s, and
/// a process that has just failed at it may need two.
const PATIENCE: Duration = Duration::from_secs(2_200);

/// How long a process that crashed is away.
const AWAY: Duration = Duration::from_secs(1);

/// A run with more calls than this is in a hot loop.
const CALLS_MAX: usize = 20_000;

type RequestRule = Arc<dyn Fn(&Seen) -> Result<(), String> + Send + Sync>;
type WorldRule = Arc<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

/// Explores what may go wrong in a scenario.
///
/// ```
/// use windlass_client::RestOptions;
/// use windlass_core::doc;
/// use windlass_testing::{ModelServer, Simulation, Stage};
///
/// const MAPS: &str = "/api/v1/namespaces/default/configmaps";
///
/// // A process that creates one object and then rests.
/// async fn scenario(stage: Stage) -> Vec<windlass_core::Doc> {
///     let server = ModelServer::new(stage.env().clone());
///     stage.start("writer", &server.transport(), |transport| async move {
///         let client = windlass_client::RestClient::new(transport, RestOptions::default());
///         let maps = windlass_client::DynamicClient::new(client)
///             .resource(windlass_core::Gvr::constant("", "v1", "configmaps"))
///             .namespaced("default");
///         let map = doc!({
///             "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "only" },
///         });
///         let _ = maps.create(&map, &Default::default()).await;
///     });
///     stage.until("the map exists", async || server.objects("configmaps").len() == 1).await;
///     server.objects("configmaps")
/// }
///
/// let explored = Simulation::new("one map").crash_at_every_call(scenario).unwrap();
/// assert_eq!((explored.calls, explored.runs), (1, 3));
/// ```
#[derive(Clone)]
pub struct Simulation {
    name: String,
    seed: u64,
    patience: Duration,
    away: Duration,
    ignored: Vec<String>,
    request_rules: Vec<RequestRule>,
    world_rules: Vec<WorldRule>,
    compares_counts: bool,
    runs_limit: Option<NonZeroUsize>,
}

/// What was explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// How many calls the processes made without faults.
    pub calls: usize,
    /// How many runs with a fault there were.
    pub runs: usize,
}

/// What one run has come to.
struct Run {
    calls: usize,
    end: Vec<Doc>,
    counts: BTreeMap<String, usize>,
    log: Vec<Seen>,
    problem: Option<String>,
}

/// What goes wrong in one run.
#[derive(Clone, Debug)]
struct Plan {
    number: usize,
    fault: Fault,
}

impl Simulation {
    /// A simulation with a name, for its failures.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            seed: 1,
            patience: PATIENCE,
            away: AWAY,
            ignored: Vec::new(),
            request_rules: Vec::new(),
            world_rules: Vec::new(),
            compares_counts: true,
            runs_limit: None,
        }
    }

    /// Another course of all that is random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How long [`Stage::until`] waits, in virtual time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a process that crashed is away before it is started again.
    #[must_use]
    pub fn away(mut self, away: Duration) -> Self {
        self.away = away;
        self
    }

    /// Does not compare fields of this name in the end state.
    #[must_use]
    pub fn ignore_field(mut self, name: &str) -> Self {
        self.ignored.push(name.to_owned());
        self
    }

    /// Does not compare how many objects were created and deleted. A process whose requests are
    /// answered wrongly may have good reasons to repeat them.
    #[must_use]
    pub fn ignore_counts(mut self) -> Self {
        self.compares_counts = false;
        self
    }

    /// Makes no more than about so many runs with a fault per exploration: if there are more calls
    /// and faults than that, every second of them is taken, or every third, and so on. Each call
    /// is still met by one fault or another as long as there are enough runs for that.
    #[must_use]
    pub fn runs_limit(mut self, limit: NonZeroUsize) -> Self {
        self.runs_limit = Some(limit);
        self
    }

    /// A rule for every request of a process, checked when it was answered.
    #[must_use]
    pub fn on_request(
        mut self,
        rule: impl Fn(&Seen) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.request_rules.push(Arc::new(rule));
        self
    }

    /// A rule for the objects that [`Stage::observe`] looks at, checked after every change.
    #[must_use]
    pub fn on_change(
        mut self,
        rule: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.world_rules.push(Arc::new(rule));
        self
    }

    /// Runs a scenario once without faults, and then once for each call and each position in it,
    /// at which the process that makes the call crashes and is started again.
    ///
    /// # Errors
    /// The first run that went wrong, with everything needed to repeat it.
    pub fn crash_at_every_call<S>(&self, scenario: S) -> Result<Explored, Failure>
    where
        S: AsyncFn(Stage) -> Vec<Doc>,
    {
        let faults = Position::ALL.map(Fault::Crash);
        self.fault_at_every_call(|_| true, &faults, scenario)
    }

    /// Runs a scenario once without faults, and then once for each fault at each call that is
    /// chosen. The processes live on, unless the fault is a crash.
    ///
    /// # Errors
    /// The first run that went wrong, with everything needed to repeat it.
    pub fn fault_at_every_call<S>(
        &self,
        choose: impl Fn(&Call) -> bool,
        faults: &[Fault],
        scenario: S,
    ) -> Result<Explored, Failure>
    where
        S: AsyncFn(Stage) -> Vec<Doc>,
    {
        let clean = self.run(None, &scenario);
        if let Some(problem) = &clean.problem {
            return Err(Failure::new(self, None, problem.clone(), &clean.log));
        }
        let again = self.run(None, &scenario);
        if let Some(problem) = self.difference(&clean, &again) {
            let problem = format!("two runs without faults differ: {problem}");
            return Err(Failure::new(self, None, problem, &again.log));
        }
        let plans = self.plans(&clean, choose, faults);
        for plan in &plans {
            let run = self.run(Some(plan.clone()), &scenario);
            let problem = run
                .problem
                .clone()
                .or_else(|| self.difference(&clean, &run));
            if let Some(problem) = problem {
                return Err(Failure::new(self, Some(plan), problem, &run.log));
            }
        }
        Ok(Explored {
            calls: clean.calls,
            runs: plans.len(),
        })
    }

    /// What is to go wrong, one after the other.
    fn plans(&self, clean: &Run, choose: impl Fn(&Call) -> bool, faults: &[Fault]) -> Vec<Plan> {
        let calls = clean.log.iter().filter(|seen| choose(&seen.call));
        let numbers: Vec<usize> = calls.map(|seen| seen.call.number).collect();
        let all = numbers.len() * faults.len();
        let step = self.runs_limit.map_or(1, |limit| all.div_ceil(limit.get()));
        let mut plans = Vec::new();
        for (at, number) in numbers.into_iter().enumerate() {
            // With every call the choice moves on by one, so that no fault is left out for ever.
            let chosen = faults
                .iter()
                .enumerate()
                .filter(|(of, _)| (at + of) % step.max(1) == 0);
            plans.extend(chosen.map(|(_, fault)| Plan {
                number,
                fault: fault.clone(),
            }));
        }
        plans
    }

    fn run<S>(&self, plan: Option<Plan>, scenario: &S) -> Run
    where
        S: AsyncFn(Stage) -> Vec<Doc>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be built");
        runtime.block_on(async {
            let stage = Stage::new(self, plan);
            let end = scenario(stage.clone()).await;
            Run {
                calls: stage.faults().calls(),
                end: normalized(&end, &self.ignored),
                counts: stage.counts(),
                log: stage.faults().seen(),
                problem: stage.problem(),
            }
        })
    }

    /// How a run differs from the one without faults.
    fn difference(&self, clean: &Run, run: &Run) -> Option<String> {
        if clean.end != run.end {
            return Some(difference(&clean.end, &run.end));
        }
        if self.compares_counts && clean.counts != run.counts {
            return Some(format!(
                "objects created and deleted: {:?} without faults, now {:?}",
                clean.counts, run.counts
            ));
        }
        None
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("name", &self.name)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
