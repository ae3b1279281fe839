//! One sync of one Deployment.

use windlass_client::{DynamicApi, WriteOptions};
use windlass_core::Doc;
use windlass_runtime::{Action, Context, Error, EventType, Result};

use super::{
    Engine,
    annotations::ROLLBACK_TO,
    conditions::{Conditions, News, PROGRESSING},
    limits::{self, Strategy},
    progress,
    set::Set,
    template,
};

/// A Deployment and its sets, in the state after whatever this sync wrote.
pub(super) struct Rollout<'a> {
    pub(super) engine: &'a Engine,
    pub(super) cx: &'a Context,
    pub(super) deployment: Doc,
    /// From the oldest to the newest.
    pub(super) sets: Vec<Set>,
    /// Which of them has the current template: of several the oldest.
    pub(super) new: Option<usize>,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        cx: &'a Context,
        deployment: &Doc,
        mut sets: Vec<Set>,
    ) -> Self {
        sets.sort_by(Set::by_age);
        let current = deployment.at("/spec/template");
        let new = (sets.iter()).position(|set| template::is_same(set.template(), current));
        Self {
            engine,
            cx,
            deployment: deployment.clone(),
            sets,
            new,
        }
    }

    /// Takes the next step.
    pub(super) async fn step(mut self) -> Result<Action> {
        if self.deployment.meta().is_deleting() {
            self.sync_revision().await?;
            return self.write_scaled_status().await;
        }
        self.note_pause().await?;
        if self.is_paused() {
            return self.sync_scale().await;
        }
        if let Some(revision) = self.rollback_to() {
            return self.roll_back(revision).await;
        }
        if self.is_to_be_scaled() {
            return self.sync_scale().await;
        }
        match Strategy::of(&self.deployment) {
            Ok(Strategy::Recreate) => self.recreate().await,
            Ok(Strategy::RollingUpdate) => self.roll().await,
            Err(other) => Err(Error::msg(format!(
                "unexpected deployment strategy type: {other}"
            ))),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.deployment.at("/spec/paused").as_bool() == Some(true)
    }

    fn rollback_to(&self) -> Option<i64> {
        self.deployment.meta().annotation(ROLLBACK_TO)?.parse().ok()
    }

    /// Whether an active set was scaled for another number of replicas.
    fn is_to_be_scaled(&self) -> bool {
        let replicas = limits::replicas(&self.deployment);
        let mut active = self.sets.iter().filter(|set| set.size() > 0);
        active.any(|set| set.desired_replicas().is_some_and(|it| it != replicas))
    }

    /// Says that the rollout is paused or goes on, which also restarts the clock of the deadline.
    async fn note_pause(&mut self) -> Result<()> {
        if progress::deadline(&self.deployment).is_none() {
            return Ok(());
        }
        let mut conditions = Conditions::of(&self.deployment);
        let reason = conditions.reason(PROGRESSING);
        let (reason, message) = match (self.is_paused(), reason) {
            (_, progress::TIMED_OUT) => return Ok(()),
            (true, reason) if reason != PAUSED => (PAUSED, "Deployment is paused"),
            (false, PAUSED) => (RESUMED, "Deployment is resumed"),
            _ => return Ok(()),
        };
        let news = News {
            kind: PROGRESSING,
            status: "Unknown",
            reason,
            message,
        };
        conditions.set(news, self.cx.env().now());
        self.write_conditions(conditions).await
    }

    /// The sets of former templates.
    pub(super) fn old_sets(&self) -> impl Iterator<Item = &Set> {
        let new = self.new;
        let sets = self.sets.iter().enumerate();
        sets.filter(move |(at, _)| Some(*at) != new)
            .map(|(_, set)| set)
    }

    /// Where the sets of former templates that have pods, or are to have some, stand.
    pub(super) fn active_old(&self) -> Vec<usize> {
        let is_old = |at: &usize| Some(*at) != self.new && self.sets[*at].size() > 0;
        (0..self.sets.len()).filter(is_old).collect()
    }

    pub(super) fn new_set(&self) -> Option<&Set> {
        self.new.map(|at| &self.sets[at])
    }

    /// How many pods all sets together are to have.
    pub(super) fn total_size(&self) -> i64 {
        self.sets.iter().map(Set::size).sum()
    }

    /// How many pods there may be now. Those of a set that is being scaled down count until they
    /// are gone: only so are there never more pods than allowed.
    pub(super) fn most_replicas(&self) -> i64 {
        self.sets.iter().map(Set::most_replicas).sum()
    }

    pub(super) fn set_api(&self) -> DynamicApi {
        let namespace = self.deployment.meta().namespace();
        self.cx.api(&self.engine.kinds.sets, namespace)
    }

    pub(super) fn deployment_api(&self) -> DynamicApi {
        let namespace = self.deployment.meta().namespace();
        self.cx.api(&self.engine.kinds.deployments, namespace)
    }

    /// Writes the status of the Deployment, and with it its annotations. What comes back is what
    /// the rest of the sync works with.
    pub(super) async fn write_status(&mut self, changed: &Doc) -> Result<()> {
        let api = self.deployment_api();
        self.deployment = api.update_status(changed, &WriteOptions::default()).await?;
        Ok(())
    }

    pub(super) async fn write_conditions(&mut self, conditions: Conditions) -> Result<()> {
        let changed = match conditions.into_doc() {
            Some(conditions) => self.deployment.with("/status/conditions", conditions)?,
            None => self.deployment.without("/status/conditions")?,
        };
        self.write_status(&changed).await
    }

    pub(super) fn tell(&self, event_type: EventType, reason: &str, message: &str) {
        let recorder = self.cx.recorder();
        recorder.event(&self.deployment, event_type, reason, message);
    }
}

const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";
