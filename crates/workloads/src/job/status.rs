//! The status of a Job.

use std::collections::HashSet;

use windlass_core::{Doc, Object, Str, Time, Uid, doc};

/// The status of a Job, to be changed and written back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobStatus {
    pub(super) conditions: Vec<Doc>,
    pub(super) start_time: Option<Time>,
    pub(super) completion_time: Option<Time>,
    pub(super) active: usize,
    pub(super) ready: Option<usize>,
    pub(super) terminating: Option<usize>,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) completed_indexes: String,
    pub(super) failed_indexes: Option<String>,
    pub(super) uncounted: Uncounted,
}

/// Pods that have ended and are not counted before their finalizers are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncounted {
    pub(super) succeeded: Vec<Uid>,
    pub(super) failed: Vec<Uid>,
}

impl Uncounted {
    pub(super) fn len(&self) -> usize {
        self.succeeded.len() + self.failed.len()
    }
}

impl JobStatus {
    pub(super) fn of(job: &Doc) -> Self {
        let status = job.at("/status");
        let count = |at: &str| {
            let count = status.at(at).as_u64();
            count.and_then(|it| usize::try_from(it).ok())
        };
        let uids = |at: &str| {
            let uids = status.at(at).items().iter();
            uids.filter_map(|it| it.as_str().map(Uid::from)).collect()
        };
        Self {
            conditions: status.at("/conditions").items().to_vec(),
            start_time: status.str_at("/startTime").parse().ok(),
            completion_time: status.str_at("/completionTime").parse().ok(),
            active: count("/active").unwrap_or(0),
            ready: count("/ready"),
            terminating: count("/terminating"),
            succeeded: count("/succeeded").unwrap_or(0),
            failed: count("/failed").unwrap_or(0),
            completed_indexes: status.str_at("/completedIndexes").to_owned(),
            failed_indexes: status.at("/failedIndexes").as_str().map(str::to_owned),
            uncounted: Uncounted {
                succeeded: uids("/uncountedTerminatedPods/succeeded"),
                failed: uids("/uncountedTerminatedPods/failed"),
            },
        }
    }

    /// The status as it is written: what is zero or empty is left out, as an API server does.
    pub(super) fn to_doc(&self) -> Doc {
        let some = |count: usize| (count > 0).then(|| Doc::from(count));
        let time = |time: Option<Time>| time.map(|it| Doc::from(it.to_string()));
        let completed = Some(&self.completed_indexes).filter(|text| !text.is_empty());
        let list = (!self.conditions.is_empty()).then(|| Doc::from(self.conditions.clone()));
        let fields = [
            ("conditions", list),
            ("startTime", time(self.start_time)),
            ("completionTime", time(self.completion_time)),
            ("active", some(self.active)),
            ("ready", self.ready.map(Doc::from)),
            ("terminating", self.terminating.map(Doc::from)),
            ("succeeded", some(self.succeeded)),
            ("failed", some(self.failed)),
            ("completedIndexes", completed.map(Doc::from)),
            ("failedIndexes", self.failed_indexes.as_ref().map(Doc::from)),
            ("uncountedTerminatedPods", Some(uncounted(&self.uncounted))),
        ];
        let present = fields.into_iter().filter_map(|(key, it)| Some((key, it?)));
        present.collect::<Object>().into()
    }

    /// The condition of a type that holds.
    pub(super) fn holding(&self, kind: &str) -> Option<&Doc> {
        let found = self.condition(kind)?;
        (found.str_at("/status") == "True").then_some(found)
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&Doc> {
        let mut all = self.conditions.iter();
        all.find(|it| it.str_at("/type") == kind)
    }

    /// Sets a condition, and returns true if that changes it. One that is not there does not
    /// become false.
    pub(super) fn ensure(&mut self, condition: JobCondition<'_>, now: Time) -> bool {
        let mut known = self.conditions.iter_mut();
        let known = known.find(|it| it.str_at("/type") == condition.kind);
        match known {
            Some(known) if condition.equals(known) => false,
            Some(known) => {
                *known = condition.to_doc(now);
                true
            }
            None if condition.is_true => {
                self.conditions.push(condition.to_doc(now));
                true
            }
            None => false,
        }
    }

    /// Counts the pods that have lost their finalizers. Returns true if there were any.
    pub(super) fn count_released(&mut self, tracked: &HashSet<Uid>) -> bool {
        let settle = |uids: &mut Vec<Uid>, count: &mut usize| {
            let before = uids.len();
            uids.retain(|uid| tracked.contains(uid));
            *count += before - uids.len();
            before != uids.len()
        };
        let succeeded = settle(&mut self.uncounted.succeeded, &mut self.succeeded);
        settle(&mut self.uncounted.failed, &mut self.failed) || succeeded
    }
}

fn uncounted(uncounted: &Uncounted) -> Doc {
    let lists = [
        ("succeeded", &uncounted.succeeded),
        ("failed", &uncounted.failed),
    ];
    let texts = |uids: &[Uid]| {
        uids.iter()
            .map(|uid| Doc::from(uid.as_str()))
            .collect::<Vec<_>>()
    };
    let lists = lists.into_iter().filter(|(_, uids)| !uids.is_empty());
    let lists = lists.map(|(key, uids)| (key, Doc::from(texts(uids))));
    lists.collect::<Object>().into()
}

/// A condition of a Job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobCondition<'a> {
    pub(super) kind: &'a str,
    pub(super) is_true: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl JobCondition<'_> {
    fn status(&self) -> &'static str {
        if self.is_true { "True" } else { "False" }
    }

    fn equals(&self, known: &Doc) -> bool {
        let known = ["/status", "/reason", "/message"].map(|at| known.str_at(at));
        known == [self.status(), self.reason, self.message]
    }

    pub(super) fn to_doc(self, now: Time) -> Doc {
        let (now, status) = (Str::new(&now.to_string()), self.status());
        doc!({
            "type": (self.kind), "status": status, "reason": (self.reason),
            "message": (self.message), "lastProbeTime": (now.clone()), "lastTransitionTime": now,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_it_was_read() {
        let status = doc!({
            "active": 2, "ready": 0, "terminating": 1, "succeeded": 3, "failed": 1,
            "startTime": "2026-01-01T00:00:00Z", "completedIndexes": "0-2",
            "conditions": [{ "type": "Suspended", "status": "False" }],
            "uncountedTerminatedPods": { "failed": ["a", "b"] }
        });
        let job = doc!({ "status": (status.clone()) });
        assert_eq!(JobStatus::of(&job).to_doc(), status);
        let empty = JobStatus::of(&doc!({})).to_doc();
        assert_eq!(empty, doc!({ "uncountedTerminatedPods": {} }));
    }

    #[test]
    fn pods_without_finalizers_are_counted_once() {
        let uids = doc!({ "succeeded": ["a"], "failed": ["b", "c"] });
        let job = doc!({ "status": { "failed": 1, "uncountedTerminatedPods": uids } });
        let mut status = JobStatus::of(&job);
        let tracked = HashSet::from([Uid::from("c")]);
        assert!(status.count_released(&tracked));
        assert_eq!((status.succeeded, status.failed), (1, 2));
        assert_eq!(status.uncounted.failed, [Uid::from("c")]);
        assert!(!status.count_released(&tracked));
    }

    #[test]
    fn conditions_change_only_with_what_they_say() {
        let mut status = JobStatus::of(&doc!({}));
        let (early, late) = (Time::from_unix(1), Time::from_unix(2));
        let resumed = JobCondition {
            kind: "Suspended",
            is_true: false,
            reason: "JobResumed",
            message: "Job resumed",
        };
        assert!(!status.ensure(resumed, early), "never suspended");
        let suspended = JobCondition {
            is_true: true,
            reason: "JobSuspended",
            ..resumed
        };
        assert!(status.ensure(suspended, early));
        assert!(!status.ensure(suspended, late));
        assert!(status.ensure(resumed, late));
        assert_eq!(status.conditions.len(), 1);
    }
}
