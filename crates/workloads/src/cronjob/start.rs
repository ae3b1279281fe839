//! Starts the Job of a CronJob when it is due.

use windlass_client::WriteOptions;
use windlass_core::{Doc, EditError, MicroTime, Object, OwnerRef, Time, doc};
use windlass_runtime::{Action, Context, Error, EventType, Result};

use super::{
    Engine,
    due::{Due, MISSED_LIMIT, Window, until_next},
    schedule::{Schedule, zone},
    status::CronJobStatus,
};
use crate::is_namespace_terminating;

/// The annotation of a Job with the time at which it was due.
const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

impl Engine {
    /// Starts a Job if one is due, and says when the next is.
    pub(super) async fn start_due(
        &self,
        cx: &Context,
        cron_job: &Doc,
        status: &mut CronJobStatus,
    ) -> Result<Action> {
        let tell = |event_type, reason: &str, text: &str| {
            cx.recorder().event(cron_job, event_type, reason, text);
        };
        if cron_job.meta().is_deleting() {
            return Ok(Action::done());
        }
        let zone_name = cron_job.str_at("/spec/timeZone");
        if zone(zone_name).is_none() {
            let text = format!("invalid timeZone: {zone_name:?}: unknown time zone {zone_name}");
            tell(EventType::Warning, "UnknownTimeZone", &text);
            return Ok(Action::done());
        }
        if *cron_job.at("/spec/suspend") == true {
            return Ok(Action::done());
        }
        let Some(schedule) = self.schedule(cx, cron_job) else {
            return Ok(Action::done());
        };
        let now = cx.env().now_micro();
        let due = match Due::of(cron_job, &schedule, now, Window::Startable) {
            Ok(due) => due,
            Err(error) => {
                let text = cron_job.str_at("/spec/schedule");
                let text = format!("invalid schedule: {text} : {error}");
                tell(EventType::Warning, "InvalidSchedule", &text);
                return Ok(Action::done());
            }
        };
        let Some(time) = due.time else {
            return Ok(next(cron_job, status, &schedule, now));
        };
        if due.missed > MISSED_LIMIT {
            let text = "too many missed start times. Set or decrease \
                        .spec.startingDeadlineSeconds or check clock skew";
            tell(EventType::Warning, "TooManyMissedTimes", text);
        }
        let is_started = self.start(cx, cron_job, status, time).await?;
        Ok(match is_started {
            Started::Not => Action::done(),
            Started::Settled => next(cron_job, status, &schedule, now),
        })
    }

    /// The schedule, or word of why there is none.
    fn schedule(&self, cx: &Context, cron_job: &Doc) -> Option<Schedule> {
        let text = cron_job.str_at("/spec/schedule");
        let tell = |reason: &str, text: &str| {
            let recorder = cx.recorder();
            recorder.event(cron_job, EventType::Warning, reason, text);
        };
        if text.contains("TZ") {
            let text = format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                 details"
            );
            tell("UnsupportedSchedule", &text);
        }
        match Schedule::parse(text, cron_job.str_at("/spec/timeZone")) {
            Ok(schedule) => Some(schedule),
            Err(error) => {
                let text = format!("unparseable schedule: {text:?} : {error}");
                tell("UnparseableSchedule", &text);
                None
            }
        }
    }

    async fn start(
        &self,
        cx: &Context,
        cron_job: &Doc,
        status: &mut CronJobStatus,
        time: Time,
    ) -> Result<Started> {
        let name = job_name(cron_job, time);
        if status.has_active_named(&name) || status.last_schedule == Some(time) {
            return Ok(Started::Settled);
        }
        match cron_job.str_at("/spec/concurrencyPolicy") {
            "Forbid" if !status.active.is_empty() => {
                let text = "Not starting job because prior execution is running and concurrency \
                            policy is Forbid";
                let recorder = cx.recorder();
                recorder.event(cron_job, EventType::Normal, "JobAlreadyActive", text);
                return Ok(Started::Settled);
            }
            "Replace" => self.replace_active(cx, cron_job, status).await?,
            _ => {}
        }
        let Some(job) = self.create(cx, cron_job, status, time).await? else {
            return Ok(Started::Not);
        };
        status.add(&job);
        status.last_schedule = Some(time);
        Ok(Started::Settled)
    }

    /// Deletes the Jobs that still run.
    async fn replace_active(
        &self,
        cx: &Context,
        cron_job: &Doc,
        status: &mut CronJobStatus,
    ) -> Result<()> {
        for reference in status.active.clone() {
            let (namespace, name) = (reference.str_at("/namespace"), reference.str_at("/name"));
            let api = cx.api(&self.jobs_kind, namespace);
            let job = match api.get(name).await {
                Ok(job) => job,
                Err(error) => {
                    let text = format!("Get job: {}", error.cause());
                    let recorder = cx.recorder();
                    recorder.event(cron_job, EventType::Warning, "FailedGet", &text);
                    return Err(error.into());
                }
            };
            if !self.delete_job(cx, cron_job, &job, status).await {
                let text = format!("could not replace job {namespace}/{name}");
                return Err(Error::msg(text));
            }
        }
        Ok(())
    }

    /// Creates the Job of a time. If it is there already, it is ours from before, or nobody's
    /// concern.
    async fn create(
        &self,
        cx: &Context,
        cron_job: &Doc,
        status: &CronJobStatus,
        time: Time,
    ) -> Result<Option<Doc>> {
        let job = self.job_of(cron_job, time)?;
        let api = cx.api(&self.jobs_kind, cron_job.meta().namespace());
        let tell = |event_type, reason: &str, text: &str| {
            cx.recorder().event(cron_job, event_type, reason, text);
        };
        match api.create(&job, &WriteOptions::default()).await {
            Ok(job) => {
                self.metrics.created(&job, time);
                let text = format!("Created job {}", job.meta().name());
                tell(EventType::Normal, "SuccessfulCreate", &text);
                Ok(Some(job))
            }
            Err(error) if error.is_already_exists() => {
                let known = api.get(job.meta().name()).await?;
                let is_ours = known.meta().is_controlled_by(&cron_job.meta().uid());
                let is_new = is_ours && !status.has_active(&known.meta().uid());
                Ok(is_new.then_some(known))
            }
            Err(error) => {
                if !is_namespace_terminating(&error) {
                    let text = format!("Error creating job: {}", error.cause());
                    tell(EventType::Warning, "FailedCreate", &text);
                }
                Err(error.into())
            }
        }
    }

    fn job_of(&self, cron_job: &Doc, time: Time) -> Result<Doc, EditError> {
        let (meta, template) = (cron_job.meta(), cron_job.at("/spec/jobTemplate"));
        let known = |at: &str| template.at(at).as_object().cloned();
        let zone = zone(cron_job.str_at("/spec/timeZone")).unwrap_or(jiff::tz::TimeZone::UTC);
        let annotations = known("/metadata/annotations").unwrap_or_else(Object::empty);
        let stamp = Schedule::in_zone(&zone, time);
        let annotations = annotations.with(SCHEDULED_AT, stamp.into());
        let reference = OwnerRef::controller_of(cron_job, self.kind.gvk());
        let job = doc!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": (job_name(cron_job, time)), "namespace": (meta.namespace()),
                "annotations": annotations, "ownerReferences": [(Doc::from(&reference))],
            },
            "spec": (template.at("/spec").clone()),
        });
        match known("/metadata/labels") {
            Some(labels) => job.with("/metadata/labels", labels),
            None => Ok(job),
        }
    }
}

/// The result of starting a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Started {
    /// It runs, or was seen to, or may not: the next time counts.
    Settled,
    /// Somebody else has its name.
    Not,
}

/// The name of the Job of a time: that of the CronJob and the minutes since 1970, so that nobody
/// starts it twice.
fn job_name(cron_job: &Doc, time: Time) -> String {
    format!("{}-{}", cron_job.meta().name(), time.unix().div_euclid(60))
}

fn next(cron_job: &Doc, status: &CronJobStatus, schedule: &Schedule, now: MicroTime) -> Action {
    // What was just started counts already.
    let current = cron_job.with("/status", status.to_doc());
    let current = current.as_ref().unwrap_or(cron_job);
    until_next(current, schedule, now).map_or_else(Action::done, Action::requeue_after)
}
