//! The steps that bring the pods of a StatefulSet closer to what it asks for.

use std::collections::BTreeMap;

use windlass_core::{Doc, EditError, Time};
use windlass_runtime::{Context, Error, Result};

use super::{
    BURST, Engine,
    pod::{self, Member},
    revisions::SetRevisions,
    spec::{SetSpec, UpdateStrategy},
    status::SetStatus,
};
use crate::{history, slow_start};

/// One sync of a set.
pub(super) struct Update<'a> {
    pub(super) engine: &'a Engine,
    pub(super) cx: &'a Context,
    pub(super) set: &'a Doc,
    pub(super) spec: &'a SetSpec,
    pub(super) revisions: &'a SetRevisions,
    pub(super) now: Time,
}

/// The pods of a set by their fate.
struct Members {
    /// One for each ordinal, in ascending order; those that do not exist are built.
    replicas: Vec<Member>,
    /// Those of ordinals that the set does not have, in descending order.
    condemned: Vec<Member>,
    /// True if more pods are missing than one sync creates.
    is_cut: bool,
}

/// The verdict of a step on those that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    GoesOn,
    Blocked,
}

/// A step that is taken for one pod after the other.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// Keeps a pod that the set asks for.
    Keep,
    /// Gives the claims of a pod that goes the owners of the policy.
    FixClaims,
    /// Deletes a pod that the set does not ask for.
    Condemn {
        /// The first pod that does not serve.
        first_unavailable: Option<&'a str>,
    },
}

impl Update<'_> {
    /// Takes as many steps as may be taken now. The status is to be written whatever comes of them.
    pub(super) async fn run(&self, pods: Vec<Member>) -> (SetStatus, Result<()>) {
        let members = match self.partition(pods) {
            Ok(members) => members,
            Err((pods, error)) => return (self.count(pods.iter()), Err(error)),
        };
        let all = members.replicas.iter().chain(&members.condemned);
        let mut status = self.count(all);
        if self.set.meta().is_deleting() {
            return (status, Ok(()));
        }
        let result = self.steps(&members, &mut status).await;
        (status, result)
    }

    async fn steps(&self, members: &Members, status: &mut SetStatus) -> Result<()> {
        let progress = self.for_all(&members.replicas, Step::Keep).await?;
        if progress == Progress::Blocked || members.is_cut {
            return Ok(());
        }
        let first_unavailable = self.first_unavailable(members);
        for step in [Step::FixClaims, Step::Condemn { first_unavailable }] {
            if self.for_all(&members.condemned, step).await? == Progress::Blocked {
                return Ok(());
            }
        }
        self.replace_outdated(&members.replicas, status).await
    }

    /// Puts pods where they belong, and builds those that are missing.
    fn partition(&self, pods: Vec<Member>) -> Result<Members, (Vec<Member>, Error)> {
        let (mut known, mut condemned) = (BTreeMap::new(), Vec::new());
        for pod in &pods {
            match pod.ordinal {
                ordinal if self.spec.ordinals.contains(&ordinal) => {
                    known.insert(ordinal, pod.clone());
                }
                0.. => condemned.push(pod.clone()),
                _ => {}
            }
        }
        condemned.sort_by_key(|pod| std::cmp::Reverse(pod.ordinal));
        match self.replicas(known) {
            Ok((replicas, is_cut)) => Ok(Members {
                replicas,
                condemned,
                is_cut,
            }),
            Err(error) => Err((pods, error.into())),
        }
    }

    /// The pods of the ordinals that the set has, up to the last missing one that this sync may
    /// create, and true if there are more.
    fn replicas(&self, mut known: BTreeMap<i64, Member>) -> Result<(Vec<Member>, bool), EditError> {
        let current_replicas = self.set.at("/status/currentReplicas").as_i64().unwrap_or(0);
        let templates = [&self.revisions.current, &self.revisions.update];
        let [current, update] = templates.map(history::template);
        let mut room = if self.spec.is_parallel { BURST } else { 1 };
        let mut replicas = Vec::new();
        for ordinal in self.spec.ordinals.clone() {
            if let Some(pod) = known.remove(&ordinal) {
                replicas.push(pod);
                continue;
            }
            if room == 0 {
                return Ok((replicas, true));
            }
            room -= 1;
            let is_below = self.spec.is_below_partition(ordinal, current_replicas);
            let (template, revision) = match is_below {
                true => (&current, self.revisions.current_name()),
                false => (&update, self.revisions.update_name()),
            };
            let kind = &self.engine.kinds.sets;
            let pod = pod::build(self.set, kind, template, revision, ordinal)?;
            replicas.push(pod);
        }
        Ok((replicas, false))
    }

    fn count<'p>(&self, pods: impl Iterator<Item = &'p Member>) -> SetStatus {
        let min_ready = self.spec.min_ready;
        SetStatus::count(self.set, self.revisions, pods, min_ready, self.now)
    }

    /// Takes a step for each pod: one after the other until one blocks, or all at once.
    async fn for_all(&self, pods: &[Member], step: Step<'_>) -> Result<Progress> {
        if self.spec.is_parallel {
            let outcome = slow_start(pods.len(), |at| self.take(step, &pods[at])).await;
            return outcome.error.map_or(Ok(Progress::GoesOn), Err);
        }
        for pod in pods {
            if self.take(step, pod).await? == Progress::Blocked {
                return Ok(Progress::Blocked);
            }
        }
        Ok(Progress::GoesOn)
    }

    async fn take(&self, step: Step<'_>, pod: &Member) -> Result<Progress> {
        match step {
            Step::Keep => self.keep(pod).await,
            Step::Condemn { first_unavailable } => self.condemn(pod, first_unavailable).await,
            Step::FixClaims => {
                if !self.claims_match(pod) {
                    self.update_claim_owners(pod).await?;
                }
                Ok(Progress::GoesOn)
            }
        }
    }

    /// Creates a pod that is missing, deletes one that has ended, and puts one right that differs
    /// from what its ordinal asks for.
    async fn keep(&self, pod: &Member) -> Result<Progress> {
        let is_ordered = !self.spec.is_parallel;
        if pod.is_ended() {
            if !pod.is_terminating() {
                self.delete_pod(pod).await?;
            }
            // The next pod of this name is created when this one is gone.
            return Ok(Progress::Blocked);
        }
        if !pod.is_created() {
            if self.has_stale_claim(pod) {
                return Ok(Progress::Blocked);
            }
            self.create_pod(pod).await?;
            return Ok(match is_ordered {
                true => Progress::Blocked,
                false => Progress::GoesOn,
            });
        }
        if pod.is_pending() {
            self.restore_claims(pod).await?;
        }
        if is_ordered && (pod.is_terminating() || !self.is_healthy(pod)) {
            return Ok(Progress::Blocked);
        }
        let is_right = pod.has_identity(self.set)
            && super::claims::match_volumes(self.set, &pod.doc, pod.ordinal)
            && self.claims_match(pod);
        if !is_right {
            self.update_pod(pod).await?;
        }
        Ok(Progress::GoesOn)
    }

    fn is_healthy(&self, pod: &Member) -> bool {
        pod.is_running_and_ready() && pod.is_available(self.spec.min_ready, self.now)
    }

    /// Deletes a pod of an ordinal that the set does not have. In order, that waits for pods that
    /// are being deleted, and for unhealthy ones unless this is the first of them.
    async fn condemn(&self, pod: &Member, first_unavailable: Option<&str>) -> Result<Progress> {
        let is_ordered = !self.spec.is_parallel;
        if pod.is_terminating() {
            return Ok(match is_ordered {
                true => Progress::Blocked,
                false => Progress::GoesOn,
            });
        }
        let is_first = first_unavailable == Some(pod.name());
        if is_ordered && !is_first && !self.is_healthy(pod) {
            return Ok(Progress::Blocked);
        }
        self.delete_pod(pod).await?;
        Ok(Progress::Blocked)
    }

    /// The first pod that does not serve, from the lowest ordinal on; those that stay come first.
    fn first_unavailable<'m>(&self, members: &'m Members) -> Option<&'m str> {
        let condemned = members.condemned.iter().rev();
        let mut all = members.replicas.iter().chain(condemned);
        let found = all.find(|pod| pod.is_unavailable(self.spec.min_ready, self.now));
        found.map(Member::name)
    }

    /// Deletes the highest pod that is not at the new revision, unless one above it does not serve.
    async fn replace_outdated(&self, replicas: &[Member], status: &mut SetStatus) -> Result<()> {
        let UpdateStrategy::RollingUpdate { partition } = self.spec.strategy else {
            return Ok(());
        };
        let lowest = usize::try_from(partition.unwrap_or(0)).unwrap_or(usize::MAX);
        for pod in replicas.iter().skip(lowest).rev() {
            if pod.revision() != self.revisions.update_name() && !pod.is_terminating() {
                self.delete_pod(pod).await?;
                status.current -= 1;
                return Ok(());
            }
            if pod.is_unavailable(self.spec.min_ready, self.now) {
                return Ok(());
            }
        }
        Ok(())
    }
}
