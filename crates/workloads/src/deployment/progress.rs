//! Whether a rollout gets on.

use std::time::Duration;

use windlass_core::{Doc, MicroTime, Time};

use super::{
    conditions::{News, PROGRESSING},
    limits,
    set::Set,
    status::Status,
};

/// The reason of a rollout that took too long.
pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// The reason of a rollout that is over.
pub(super) const COMPLETE: &str = "NewReplicaSetAvailable";
const UPDATED: &str = "ReplicaSetUpdated";

/// The deadline that stands for none.
const UNLIMITED: u64 = i32::MAX as u64;
/// How long after the deadline a rollout is looked at.
const SLACK: Duration = Duration::from_secs(1);
/// How soon a rollout whose deadline is passing is looked at again.
const SOON: Duration = Duration::from_millis(10);

/// How long a rollout may make no progress; `None` for as long as it likes.
pub(super) fn deadline(deployment: &Doc) -> Option<Duration> {
    let seconds = deployment.at("/spec/progressDeadlineSeconds").as_u64()?;
    (seconds != UNLIMITED).then(|| Duration::from_secs(seconds))
}

/// Whether all pods are of the current template, and available, and there are no others.
pub(super) fn is_complete(deployment: &Doc, status: &Status) -> bool {
    let replicas = limits::replicas(deployment);
    status.updated == replicas
        && status.replicas == replicas
        && status.available == replicas
        && status.observed_generation >= deployment.meta().generation()
}

/// Whether something got better since the Deployment was written about last.
fn is_progressing(before: &Status, after: &Status) -> bool {
    let old = |status: &Status| status.replicas - status.updated;
    after.updated > before.updated
        || old(after) < old(before)
        || after.ready > before.ready
        || after.available > before.available
}

/// When the deadline passes, if that matters: there is one, and the rollout is neither complete
/// nor late already.
fn due(deployment: &Doc, status: &Status) -> Option<MicroTime> {
    let condition = status.conditions.get(PROGRESSING)?;
    let updated: Time = condition.str_at("/lastUpdateTime").parse().ok()?;
    Some(MicroTime::from(updated) + deadline(deployment)?)
}

fn is_timed_out(deployment: &Doc, status: &Status, now: MicroTime) -> bool {
    match status.progress_reason() {
        // A finished rollout is not judged again.
        COMPLETE => false,
        TIMED_OUT => true,
        _ => due(deployment, status).is_some_and(|due| due < now),
    }
}

/// Notes in the status whether the rollout is complete, gets on, or takes too long.
pub(super) fn note(deployment: &Doc, new: Option<&Set>, status: &mut Status, now: MicroTime) {
    if deadline(deployment).is_none() {
        return status.conditions.remove(PROGRESSING);
    }
    let before = Status::of(deployment);
    if status.replicas == status.updated && before.progress_reason() == COMPLETE {
        return;
    }
    let name = match new {
        Some(set) => format!("ReplicaSet {:?}", set.name()),
        None => format!("Deployment {:?}", deployment.meta().name()),
    };
    let news = |status, reason, message| News {
        kind: PROGRESSING,
        status,
        reason,
        message,
    };
    let second = now.to_time();
    if is_complete(deployment, status) {
        let message = format!("{name} has successfully progressed.");
        status
            .conditions
            .set(news("True", COMPLETE, &message), second);
    } else if is_progressing(&before, status) {
        let message = format!("{name} is progressing.");
        status
            .conditions
            .renew(news("True", UPDATED, &message), second);
    } else if is_timed_out(deployment, status, now) {
        let message = format!("{name} has timed out progressing.");
        status
            .conditions
            .set(news("False", TIMED_OUT, &message), second);
    }
}

/// In how much time the deadline will have passed, for a rollout that makes no progress.
pub(super) fn next_check(deployment: &Doc, status: &Status, now: MicroTime) -> Option<Duration> {
    let is_settled = is_complete(deployment, status) || status.progress_reason() == TIMED_OUT;
    let due = due(deployment, status).filter(|_| !is_settled)?;
    let left = due.since(now);
    Some(if left < SLACK {
        left + SOON
    } else {
        left + SLACK
    })
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn deployment(deadline: Option<i64>, replicas: i64, status: Doc) -> Doc {
        let deployment = doc!({
            "metadata": { "name": "web" }, "spec": { "replicas": replicas }, "status": status
        });
        match deadline {
            None => deployment,
            Some(seconds) => deployment
                .with("/spec/progressDeadlineSeconds", seconds)
                .unwrap(),
        }
    }

    fn progressing(reason: &str, updated: &str) -> Doc {
        doc!({
            "conditions": [{
                "type": "Progressing", "status": "True", "reason": reason,
                "lastUpdateTime": updated, "lastTransitionTime": updated
            }]
        })
    }

    fn counts(replicas: i64, updated: i64, ready: i64, available: i64) -> Doc {
        doc!({
            "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready,
            "availableReplicas": available
        })
    }

    fn at(seconds: i64, millis: i64) -> MicroTime {
        MicroTime::from_unix_micros(seconds * 1_000_000 + millis * 1_000)
    }

    #[test]
    fn a_rollout_is_complete_when_all_counts_are_what_is_wanted() {
        for (wanted, replicas, updated, available, expected) in [
            (5, 5, 5, 4, false),
            (5, 5, 4, 5, false),
            (1, 2, 1, 1, false),
            (1, 1, 1, 0, false),
            (5, 5, 5, 5, true),
        ] {
            let counts = counts(replicas, updated, available, available);
            let deployment = deployment(None, wanted, counts);
            assert_eq!(is_complete(&deployment, &Status::of(&deployment)), expected);
        }
    }

    #[test]
    fn progress_is_more_new_pods_or_fewer_old_ones_or_better_ones() {
        let status = |counts: Doc| Status::of(&deployment(None, 10, counts));
        let before = status(counts(10, 4, 4, 4));
        for (after, expected) in [
            (counts(10, 6, 4, 4), true),
            (counts(8, 4, 4, 4), true),
            (counts(10, 4, 5, 4), true),
            (counts(10, 4, 4, 5), true),
            (counts(10, 4, 4, 4), false),
            (counts(10, 3, 4, 4), false),
            (counts(9, 5, 4, 4), true),
        ] {
            assert_eq!(is_progressing(&before, &status(after)), expected);
        }
    }

    #[test]
    fn a_rollout_is_late_when_its_deadline_has_passed() {
        let updated = "1970-01-01T00:01:40Z";
        for (deadline, reason, now, expected) in [
            (None, "Other", 10_000, false),
            (Some(2_147_483_647), "Other", 10_000, false),
            (Some(10), "Other", 111, true),
            (Some(10), "Other", 109, false),
            (Some(10), "Other", 110, false),
            (Some(10), COMPLETE, 111, false),
            (Some(10), TIMED_OUT, 100, true),
        ] {
            let deployment = deployment(deadline, 3, progressing(reason, updated));
            let found = is_timed_out(&deployment, &Status::of(&deployment), at(now, 0));
            assert_eq!(found, expected, "{deadline:?} {reason} at {now}");
        }
    }

    #[test]
    fn a_rollout_that_stands_still_is_looked_at_after_its_deadline() {
        let check = |deadline, status: Doc, now| {
            let deployment = deployment(deadline, 3, status);
            next_check(&deployment, &Status::of(&deployment), now)
        };
        let condition = |reason| progressing(reason, "1970-01-01T00:01:40Z");
        assert_eq!(check(None, condition("Other"), at(100, 0)), None);
        assert_eq!(check(Some(60), doc!({}), at(100, 0)), None);
        assert_eq!(check(Some(60), condition(TIMED_OUT), at(100, 0)), None);
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(check(Some(60), condition("Other"), at(130, 0)), seconds(31));
        assert_eq!(check(Some(60), condition("Other"), at(159, 0)), seconds(2));
        let soon = check(Some(60), condition("Other"), at(159, 500));
        assert_eq!(soon, Some(Duration::from_millis(510)));
        assert_eq!(check(Some(60), condition("Other"), at(200, 0)), Some(SOON));
    }
}
