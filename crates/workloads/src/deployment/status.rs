//! What a Deployment says about its sets.

use windlass_core::{Doc, Object, Str, Time};
use windlass_runtime::{Action, Result};

use super::{
    conditions::{AVAILABLE, Conditions, News, PROGRESSING, REPLICA_FAILURE},
    limits, progress,
    rollout::Rollout,
    set::Set,
};

/// The status of a Deployment, in numbers and conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) observed_generation: i64,
    pub(super) replicas: i64,
    pub(super) updated: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) unavailable: i64,
    pub(super) terminating: Option<i64>,
    pub(super) collisions: Option<i64>,
    pub(super) conditions: Conditions,
}

impl Status {
    /// What a Deployment said last.
    pub(super) fn of(deployment: &Doc) -> Self {
        let status = deployment.at("/status");
        let optional = |field: &str| status.get(field).and_then(Doc::as_i64);
        let count = |field: &str| optional(field).unwrap_or(0);
        Self {
            observed_generation: count("observedGeneration"),
            replicas: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
            unavailable: count("unavailableReplicas"),
            terminating: optional("terminatingReplicas"),
            collisions: optional("collisionCount"),
            conditions: Conditions::of(deployment),
        }
    }

    /// What it is to say now.
    fn now(deployment: &Doc, sets: &[Set], new: Option<&Set>, now: Time) -> Self {
        let sum = |count: fn(&Set) -> i64| sets.iter().map(count).sum::<i64>();
        let available = sum(Set::available);
        let mut conditions = Conditions::of(deployment);
        let needed = limits::replicas(deployment) - limits::max_unavailable(deployment);
        conditions.set(availability(available >= needed), now);
        Self {
            observed_generation: deployment.meta().generation(),
            replicas: sum(Set::replicas),
            updated: new.map_or(0, Set::replicas),
            ready: sum(Set::ready),
            available,
            unavailable: (sum(Set::size) - available).max(0),
            terminating: terminating(sets),
            collisions: deployment.at("/status/collisionCount").as_i64(),
            conditions,
        }
    }

    /// The status with what is zero left out, as an API server does.
    fn to_doc(&self) -> Doc {
        let counts = [
            ("observedGeneration", self.observed_generation),
            ("replicas", self.replicas),
            ("updatedReplicas", self.updated),
            ("readyReplicas", self.ready),
            ("availableReplicas", self.available),
            ("unavailableReplicas", self.unavailable),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count != 0);
        let optional = [
            ("terminatingReplicas", self.terminating),
            ("collisionCount", self.collisions),
        ];
        let optional = optional
            .into_iter()
            .filter_map(|(name, it)| Some((name, it?)));
        let numbers = counts.chain(optional);
        let fields = numbers.map(|(name, number)| (Str::new(name), Doc::from(number)));
        let conditions = self.conditions.clone().into_doc();
        let conditions = conditions.map(|it| (Str::new("conditions"), it));
        Object::new(fields.chain(conditions).collect()).into()
    }
}

fn availability(is_available: bool) -> News<'static> {
    let (status, reason, message) = match is_available {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    News {
        kind: AVAILABLE,
        status,
        reason,
        message,
    }
}

/// How many pods are being deleted; unknown if one of the sets that were looked at does not say.
fn terminating(sets: &[Set]) -> Option<i64> {
    let known = sets
        .iter()
        .filter(|set| set.observed_generation() > 0 || set.terminating().is_some());
    known.map(Set::terminating).sum()
}

impl Rollout<'_> {
    pub(super) fn status(&self) -> Status {
        let now = self.cx.env().now();
        Status::now(&self.deployment, &self.sets, self.new_set(), now)
    }

    /// Whether what the Deployment said last is all that it can hope for.
    pub(super) fn is_complete(&self) -> bool {
        progress::is_complete(&self.deployment, &Status::of(&self.deployment))
    }

    /// Writes the status without a look at the progress.
    pub(super) async fn write_scaled_status(mut self) -> Result<Action> {
        let status = self.status();
        self.write_if_new(&status).await?;
        Ok(Action::done())
    }

    /// Writes the status with what it says about the progress. If that is nothing new, comes back
    /// when the deadline has passed.
    pub(super) async fn write_rollout_status(mut self) -> Result<Action> {
        let mut status = self.status();
        let now = self.cx.env().now_micro();
        progress::note(&self.deployment, self.new_set(), &mut status, now);
        self.note_failures(&mut status.conditions);
        if self.write_if_new(&status).await? {
            return Ok(Action::done());
        }
        Ok(match progress::next_check(&self.deployment, &status, now) {
            Some(delay) => Action::requeue_after(delay),
            None => Action::done(),
        })
    }

    /// Returns whether there was something to write.
    async fn write_if_new(&mut self, status: &Status) -> Result<bool> {
        if *status == Status::of(&self.deployment) {
            return Ok(false);
        }
        let changed = self.deployment.with("/status", status.to_doc())?;
        self.write_status(&changed).await?;
        Ok(true)
    }

    /// Says that the Deployment was looked at, and nothing more.
    pub(super) async fn acknowledge(mut self) {
        let mut status = Status::of(&self.deployment);
        if status.observed_generation < self.deployment.meta().generation() {
            status.observed_generation = self.deployment.meta().generation();
            if let Err(error) = self.write_if_new(&status).await {
                tracing::warn!(%error, "the status is not written");
            }
        }
    }

    /// Takes over the failure of a set, that of the current one first.
    fn note_failures(&self, conditions: &mut Conditions) {
        let sets = self.new_set().into_iter().chain(self.old_sets());
        let mut failures = sets.filter_map(|set| {
            let conditions = Conditions::of(set.doc());
            conditions.get(REPLICA_FAILURE).cloned()
        });
        let Some(failure) = failures.next() else {
            return conditions.remove(REPLICA_FAILURE);
        };
        let news = News {
            kind: REPLICA_FAILURE,
            status: failure.str_at("/status"),
            reason: failure.str_at("/reason"),
            message: failure.str_at("/message"),
        };
        let since = failure.str_at("/lastTransitionTime");
        conditions.set_with_times(news, since, since);
    }
}

impl Status {
    /// The reason why the Deployment is progressing, or is not.
    pub(super) fn progress_reason(&self) -> &str {
        self.conditions.reason(PROGRESSING)
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn set(size: i64, observed: i64, terminating: Option<i64>) -> Set {
        let set = doc!({
            "metadata": { "name": "web-1", "generation": 1 },
            "spec": { "replicas": size },
            "status": { "replicas": size, "observedGeneration": observed }
        });
        Set::new(match terminating {
            None => set,
            Some(count) => set.with("/status/terminatingReplicas", count).unwrap(),
        })
    }

    #[test]
    fn pods_being_deleted_are_summed_unless_a_set_does_not_say() {
        assert_eq!(terminating(&[]), Some(0));
        assert_eq!(
            terminating(&[set(1, 1, Some(2)), set(1, 1, Some(3))]),
            Some(5)
        );
        assert_eq!(terminating(&[set(1, 1, Some(2)), set(1, 0, None)]), Some(2));
        assert_eq!(terminating(&[set(1, 1, Some(2)), set(1, 1, None)]), None);
    }

    #[test]
    fn a_status_is_read_as_it_was_written() {
        let deployment = doc!({
            "metadata": { "name": "web", "generation": 2 },
            "spec": { "replicas": 2, "strategy": { "type": "Recreate" } }
        });
        let sets = [set(2, 1, Some(0)), set(0, 1, Some(1))];
        let status = Status::now(&deployment, &sets, Some(&sets[0]), Time::from_unix(0));
        assert_eq!(
            (status.replicas, status.updated, status.unavailable),
            (2, 2, 2)
        );
        let written = deployment.with("/status", status.to_doc()).unwrap();
        assert_eq!(Status::of(&written), status);
    }
}
