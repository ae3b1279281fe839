//! The status of a CronJob.

use windlass_core::{Doc, Object, Time, Uid, doc};

/// The status of a CronJob, to be changed and written back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronJobStatus {
    /// References to the Jobs that run.
    pub(super) active: Vec<Doc>,
    pub(super) last_schedule: Option<Time>,
    pub(super) last_success: Option<Time>,
}

impl CronJobStatus {
    pub(super) fn of(cron_job: &Doc) -> Self {
        let status = cron_job.at("/status");
        Self {
            active: status.at("/active").items().to_vec(),
            last_schedule: status.str_at("/lastScheduleTime").parse().ok(),
            last_success: status.str_at("/lastSuccessfulTime").parse().ok(),
        }
    }

    pub(super) fn to_doc(&self) -> Doc {
        let time = |time: Option<Time>| time.map(|it| Doc::from(it.to_string()));
        let active = (!self.active.is_empty()).then(|| Doc::from(self.active.clone()));
        let fields = [
            ("active", active),
            ("lastScheduleTime", time(self.last_schedule)),
            ("lastSuccessfulTime", time(self.last_success)),
        ];
        let present = fields.into_iter().filter_map(|(key, it)| Some((key, it?)));
        present.collect::<Object>().into()
    }

    pub(super) fn has_active(&self, uid: &Uid) -> bool {
        let mut active = self.active.iter();
        active.any(|it| it.str_at("/uid") == uid.as_str())
    }

    pub(super) fn has_active_named(&self, name: &str) -> bool {
        self.active.iter().any(|it| it.str_at("/name") == name)
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        self.active.retain(|it| it.str_at("/uid") != uid.as_str());
    }

    /// Adds a Job that was started.
    pub(super) fn add(&mut self, job: &Doc) {
        let meta = job.meta();
        self.active.push(doc!({
            "kind": "Job", "apiVersion": "batch/v1", "namespace": (meta.namespace()),
            "name": (meta.name()), "uid": (meta.uid_str()),
            "resourceVersion": (meta.resource_version()),
        }));
    }
}
