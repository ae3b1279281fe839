//! Starts Jobs at the times that a CronJob names.
//!
//! A sync deletes finished Jobs that are not kept, strikes those that have finished or are gone off
//! the list of active ones, starts the Job of the last time that has come, and returns when the next
//! one does. The name of a Job holds its time, so that none is started twice.

mod due;
mod history;
mod schedule;
mod start;
mod status;

use std::{fmt, sync::Arc};

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};
use windlass_cache::{Obj, SharedInformer};
use windlass_client::WriteOptions;
use windlass_core::{Doc, Env, Key, MicroTime, Time};
use windlass_runtime::{
    Action, Change, Context, Controller, EventRecorder, EventType, Manager, ResourceKind, Result,
    Trigger,
};

use crate::{
    job::spec::terminal_condition,
    owned::{self, batch_kind},
};
use schedule::Schedule;
use status::CronJobStatus;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "cronjob-controller";

/// CronJobs that are synced at the same time, as in kube-controller-manager.
pub const WORKERS: usize = 5;

/// Upper bounds of the delays: a second, doubled nine times.
const SKEW_BUCKETS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// CronJobs that are synced at the same time.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: WORKERS }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let (kind, jobs_kind) = (batch_kind("CronJob", "cronjobs"), batch_kind("Job", "jobs"));
    let informer = |kind: &ResourceKind| manager.factory().dynamic(kind.gvr().clone());
    let metrics = Metrics::default();
    let registered = metrics.clone();
    manager.add_metrics(move |registry| registered.register(registry));
    let engine = Arc::new(Engine {
        cron_jobs: informer(&kind),
        jobs: informer(&jobs_kind),
        kind,
        jobs_kind,
        env: manager.env().clone(),
        recorder: manager.recorder(NAME),
        metrics,
    });
    owned::index_children(&engine.jobs);
    manager.add(engine.controller(options.workers));
}

/// The controller.
struct Engine {
    kind: ResourceKind,
    jobs_kind: ResourceKind,
    cron_jobs: SharedInformer,
    jobs: SharedInformer,
    env: Env,
    recorder: EventRecorder,
    metrics: Metrics,
}

impl Engine {
    fn controller(self: Arc<Self>, workers: usize) -> Controller {
        let (kind, jobs) = (self.kind.clone(), self.jobs_kind.clone());
        let (rescheduled, of_jobs) = (self.clone(), self.clone());
        let sync = move |key: Key, cx: Context| {
            let engine = self.clone();
            async move { engine.sync(&key, &cx).await }
        };
        Controller::of_kind(kind.clone(), sync)
            .filter(|change| !is_rescheduled(change))
            .named(NAME)
            .queue_named("cronjob")
            .workers(workers)
            .reacts_to_kind(kind, move |change| rescheduled.on_schedule(change))
            .reacts_to_kind(jobs, move |change| of_jobs.on_job(change))
    }

    /// A CronJob with another schedule waits for its next time: what it has missed is not made up.
    fn on_schedule(&self, change: &Change<'_>) -> Vec<Trigger> {
        let Some(cron_job) = change.new.filter(|_| is_rescheduled(change)) else {
            return Vec::new();
        };
        let doc = cron_job.doc();
        let text = doc.str_at("/spec/schedule");
        let zone = doc.str_at("/spec/timeZone");
        let Ok(schedule) = Schedule::parse(text, zone) else {
            let text = format!("unparseable schedule for cronjob: {text}");
            let (kind, reason) = (EventType::Warning, "UnParseableCronJobSchedule");
            self.recorder.event(doc, kind, reason, &text);
            return Vec::new();
        };
        let after = due::until_next(doc, &schedule, self.env.now_micro());
        let later = after.map(|after| Trigger::after(cron_job.key(), after));
        later.into_iter().collect()
    }

    fn on_job(&self, change: &Change<'_>) -> Vec<Trigger> {
        let version = |job: &Obj| job.meta().resource_version().to_owned();
        if change.old.map(version) == change.new.map(version) {
            return Vec::new();
        }
        let owners = [change.old, change.new].into_iter().flatten();
        let mut keys: Vec<Key> = owners.filter_map(|job| self.owner(job)).collect();
        keys.dedup();
        keys.into_iter().map(Trigger::now).collect()
    }

    fn owner(&self, job: &Obj) -> Option<Key> {
        let cron_jobs = self.cron_jobs.lister().snapshot();
        let reference = job.meta().controller()?;
        let owner = owned::resolve(&cron_jobs, job.namespace(), &reference, &self.kind)?;
        Some(owner.key())
    }

    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(cron_job) = self.cron_jobs.lister().get(key) else {
            return Ok(Action::done());
        };
        let cron_job = cron_job.doc();
        let jobs = self.jobs.lister().snapshot();
        let jobs = owned::children_of(&jobs, cron_job);
        let before = CronJobStatus::of(cron_job);
        let mut status = before.clone();
        self.clean_up(cx, cron_job, &jobs, &mut status).await;
        let result = self.follow(cx, cron_job, &jobs, &mut status).await;
        if status != before {
            let written = cron_job.with("/status", status.to_doc())?;
            let api = cx.api(&self.kind, cron_job.meta().namespace());
            let options = WriteOptions::default().metadata_only();
            api.update_status(&written, &options).await?;
        }
        result
    }

    async fn follow(
        &self,
        cx: &Context,
        cron_job: &Doc,
        jobs: &[Obj],
        status: &mut CronJobStatus,
    ) -> Result<Action> {
        for job in jobs {
            self.look_at(cx, cron_job, job.doc(), status).await?;
        }
        self.strike_missing(cx, cron_job, jobs, status).await?;
        self.start_due(cx, cron_job, status).await
    }

    /// Notes what has become of a Job.
    async fn look_at(
        &self,
        cx: &Context,
        cron_job: &Doc,
        job: &Doc,
        status: &mut CronJobStatus,
    ) -> Result<()> {
        let (uid, name) = (job.meta().uid(), job.meta().name());
        let recorder = cx.recorder();
        let Some(end) = terminal_condition(job) else {
            if !status.has_active(&uid) && !self.is_listed_live(cx, cron_job, job).await? {
                let text =
                    format!("Saw a job that the controller did not create or forgot: {name}");
                recorder.event(cron_job, EventType::Warning, "UnexpectedJob", &text);
            }
            return Ok(());
        };
        let kind = end.str_at("/type");
        if status.has_active(&uid) {
            status.remove(&uid);
            let text = format!("Saw completed job: {name}, condition: {kind}");
            recorder.event(cron_job, EventType::Normal, "SawCompletedJob", &text);
        }
        if kind == "Complete" {
            let completed: Option<Time> = job.str_at("/status/completionTime").parse().ok();
            status.last_success = status.last_success.max(completed);
        }
        Ok(())
    }

    /// Returns true if the server lists a Job as active that the cache does not.
    async fn is_listed_live(&self, cx: &Context, cron_job: &Doc, job: &Doc) -> Result<bool> {
        let api = cx.api(&self.kind, cron_job.meta().namespace());
        let live = api.get(cron_job.meta().name()).await?;
        Ok(CronJobStatus::of(&live).has_active(&job.meta().uid()))
    }

    /// Strikes Jobs off the list that do not exist any more.
    async fn strike_missing(
        &self,
        cx: &Context,
        cron_job: &Doc,
        jobs: &[Obj],
        status: &mut CronJobStatus,
    ) -> Result<()> {
        let known: std::collections::HashSet<_> = jobs.iter().map(Obj::uid).collect();
        for reference in status.active.clone() {
            let (uid, name) = (reference.str_at("/uid").into(), reference.str_at("/name"));
            if known.contains(&uid) {
                continue;
            }
            let api = cx.api(&self.jobs_kind, reference.str_at("/namespace"));
            match api.get(name).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {
                    status.remove(&uid);
                    let text = format!("Active job went missing: {name}");
                    let recorder = cx.recorder();
                    recorder.event(cron_job, EventType::Normal, "MissingJob", &text);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns true if a change gives a CronJob another schedule.
fn is_rescheduled(change: &Change<'_>) -> bool {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return false;
    };
    ["/spec/schedule", "/spec/timeZone"]
        .iter()
        .any(|at| old.doc().at(at) != new.doc().at(at))
}

/// The metrics of the controller. Clones count together.
#[derive(Clone)]
struct Metrics(Histogram);

impl Default for Metrics {
    fn default() -> Self {
        Self(Histogram::new(SKEW_BUCKETS))
    }
}

impl Metrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
            self.0.clone(),
        );
    }

    fn created(&self, job: &Doc, due: Time) {
        if let Some(created) = job.meta().creation_timestamp() {
            let skew = MicroTime::from(created).since(MicroTime::from(due));
            self.0.observe(skew.as_secs_f64());
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}
