//! Deletes Jobs some time after they have finished, if they ask for it.

use std::{fmt, time::Duration};

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};
use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Key, MicroTime, Time};
use windlass_runtime::{Action, Context, Controller, Error, Manager, Result};

use crate::{job::spec::terminal_condition, owned::batch_kind};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "ttl-after-finished-controller";

/// Jobs that are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;

/// Upper bounds of the delays: a tenth of a second, doubled thirteen times.
const DELAY_BUCKETS: [f64; 14] = [
    0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2,
];

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many Jobs are looked at at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let metrics = Metrics::default();
    let registered = metrics.clone();
    manager.add_metrics(move |registry| registered.register(registry));
    let sync = move |key: Key, cx: Context| {
        let metrics = metrics.clone();
        async move { clean_up(&key, &cx, &metrics).await }
    };
    let controller = Controller::of_kind(batch_kind("Job", "jobs"), sync)
        .filter(|change| change.new.is_some_and(|job| expiry(job.doc()).is_some()))
        .named(NAME)
        .queue_named("ttl_jobs_to_delete")
        .workers(options.workers);
    manager.add(controller);
}

async fn clean_up(key: &Key, cx: &Context, metrics: &Metrics) -> Result<Action> {
    let kind = batch_kind("Job", "jobs");
    let Some(job) = cx.lister_of(&kind)?.get(key) else {
        return Ok(Action::done());
    };
    if let Some(action) = wait(job.doc(), cx)? {
        return Ok(action);
    }
    // The cache may be behind: the time to live may have been raised, or another Job has the name.
    let api = cx.api(&kind, key.namespace().unwrap_or_default());
    let live = match api.get(key.name()).await {
        Ok(live) => live,
        Err(error) if error.is_not_found() => return Ok(Action::done()),
        Err(error) => return Err(error.into()),
    };
    if let Some(action) = wait(&live, cx)? {
        return Ok(action);
    }
    let options = DeleteOptions::uid(live.meta().uid_str()).propagate(Propagation::Foreground);
    match api.delete(key.name(), &options).await {
        Ok(_) => metrics.deleted(&live, cx.env().now_micro()),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Action::done())
}

/// What to do about a Job that must not be deleted now; `None` if its time is over.
fn wait(job: &Doc, cx: &Context) -> Result<Option<Action>> {
    let Some(expiry) = expiry(job) else {
        return Ok(Some(Action::done()));
    };
    let Some(expiry) = expiry else {
        let key = job.meta().key();
        let text = format!("unable to find the time when the Job {key} finished");
        return Err(Error::msg(text));
    };
    let left = MicroTime::from(expiry).since(cx.env().now_micro());
    Ok((!left.is_zero()).then(|| Action::requeue_after(left)))
}

/// The time at which a Job may go: none for one that stays, and none inside for one that does not
/// say when it finished.
#[expect(
    clippy::option_option,
    reason = "the two absences are different answers"
)]
fn expiry(job: &Doc) -> Option<Option<Time>> {
    let lives = job.at("/spec/ttlSecondsAfterFinished").as_u64()?;
    let finished = terminal_condition(job).filter(|_| !job.meta().is_deleting())?;
    let at: Option<Time> = finished.str_at("/lastTransitionTime").parse().ok();
    Some(at.map(|at| at + Duration::from_secs(lives)))
}

/// The metrics of the controller. Clones count together.
#[derive(Clone)]
struct Metrics(Histogram);

impl Default for Metrics {
    fn default() -> Self {
        Self(Histogram::new(DELAY_BUCKETS))
    }
}

impl Metrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "The time it took to delete the job since it became eligible for deletion",
            self.0.clone(),
        );
    }

    fn deleted(&self, job: &Doc, now: MicroTime) {
        if let Some(Some(expiry)) = expiry(job) {
            let late = now.since(MicroTime::from(expiry));
            self.0.observe(late.as_secs_f64());
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}
