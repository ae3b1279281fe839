//! Deletes Jobs of a CronJob that have finished, beyond those that are kept.

use windlass_cache::Obj;
use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Time};
use windlass_runtime::{Context, EventType};

use super::{Engine, status::CronJobStatus};
use crate::job::spec::terminal_condition;

impl Engine {
    pub(super) async fn clean_up(
        &self,
        cx: &Context,
        cron_job: &Doc,
        jobs: &[Obj],
        status: &mut CronJobStatus,
    ) {
        for (kind, limit) in [
            ("Complete", "/spec/successfulJobsHistoryLimit"),
            ("Failed", "/spec/failedJobsHistoryLimit"),
        ] {
            let Some(limit) = cron_job.at(limit).as_u64() else {
                continue;
            };
            let ended = |job: &&Obj| {
                let end = terminal_condition(job.doc());
                end.is_some_and(|end| end.str_at("/type") == kind)
            };
            let mut ended: Vec<&Obj> = jobs.iter().filter(ended).collect();
            ended.sort_by_key(|job| started(job.doc()));
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let surplus = ended.len().saturating_sub(limit);
            for job in &ended[..surplus] {
                self.delete_job(cx, cron_job, job.doc(), status).await;
            }
        }
    }

    /// Deletes a Job and its pods, and tells of it. Returns true if that went well.
    pub(super) async fn delete_job(
        &self,
        cx: &Context,
        cron_job: &Doc,
        job: &Doc,
        status: &mut CronJobStatus,
    ) -> bool {
        let meta = job.meta();
        let api = cx.api(&self.jobs_kind, meta.namespace());
        let options = DeleteOptions::uid(meta.uid_str()).propagate(Propagation::Background);
        let deleted = api.delete(meta.name(), &options).await;
        match &deleted {
            Ok(_) => {
                status.remove(&meta.uid());
                let text = format!("Deleted job {}", meta.name());
                let recorder = cx.recorder();
                recorder.event(cron_job, EventType::Normal, "SuccessfulDelete", &text);
            }
            Err(error) => {
                let text = format!("Deleted job: {}", error.cause());
                let recorder = cx.recorder();
                recorder.event(cron_job, EventType::Warning, "FailedDelete", &text);
            }
        }
        deleted.is_ok()
    }
}

/// The order in which Jobs started; those that have not come last.
fn started(job: &Doc) -> (bool, Option<Time>, String) {
    let started: Option<Time> = job.str_at("/status/startTime").parse().ok();
    (started.is_none(), started, job.meta().name().to_owned())
}
