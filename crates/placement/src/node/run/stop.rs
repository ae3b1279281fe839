//! The end of a pretend pod that is deleted.

use std::time::Duration;

use tokio::time::Instant;

use super::{ContainerState, Ending, KILLED, Run, Scene, Sort, Step, container::reason_of};
use crate::pod::is_pod_terminal;

impl Run {
    /// Stops the containers of a pod that is deleted, lets the status say how they have ended, and
    /// then removes the pod. Whoever holds it back by a finalizer sees a pod that has ended.
    pub(super) fn stop(&mut self, scene: Scene<'_>) -> Step {
        let deleted = *self.deleted.get_or_insert(scene.now);
        if self.ended.is_none() && !is_pod_terminal(scene.pod) {
            if !self.has_sandbox {
                self.lose();
                self.ended = Some(Ending::NeverStarted);
            } else if let Some(due) = self.stop_containers(deleted, scene) {
                let left = due.saturating_duration_since(scene.now);
                return Step::Show(Some(left));
            } else {
                self.lose();
                self.ended = Some(Ending::Stopped);
            }
        }
        match self.is_gone || is_pod_terminal(scene.pod) {
            true => Step::Remove,
            false => Step::Show(Some(Duration::ZERO)),
        }
    }

    /// Stops what runs: sidecars after all others. Returns when the next one stops.
    fn stop_containers(&mut self, deleted: Instant, scene: Scene<'_>) -> Option<Instant> {
        let grace = scene
            .pod
            .at("/metadata/deletionGracePeriodSeconds")
            .as_u64();
        let end = deleted + Duration::from_secs(grace.unwrap_or(0));
        let others = self.stop_each(scene, deleted, end, |sort| sort != Sort::Sidecar);
        if others.is_some() {
            return others;
        }
        let ended = *self.mains_ended.get_or_insert(scene.now);
        self.stop_each(scene, ended, end, |sort| sort == Sort::Sidecar)
    }

    /// Stops some of the containers. Each takes as long as it says, and is killed at the end of the
    /// grace period.
    fn stop_each(
        &mut self,
        scene: Scene<'_>,
        began: Instant,
        end: Instant,
        is_meant: impl Fn(Sort) -> bool,
    ) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for (at, one) in self.containers.iter_mut().enumerate() {
            if !is_meant(one.sort) {
                continue;
            }
            // Containers that wait to be restarted have ended as they last did.
            if matches!(one.state, ContainerState::BackOff { .. }) {
                one.state = ContainerState::Exited;
            }
            let (true, Some(does)) = (one.is_running(), scene.does.containers.get(at)) else {
                continue;
            };
            let wanted = began + does.pre_stop.saturating_add(scene.does.stop_after);
            let due = wanted.min(end);
            if due > scene.now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            let code = if wanted > end { KILLED } else { does.stop_code };
            one.exit(code, reason_of(code), scene.now, scene.wall);
        }
        next
    }

    /// Marks containers that never ran as lost: the first one of the initialization, or all main
    /// ones after it. The others wait for ever.
    fn lose(&mut self) {
        let inits = self.containers.iter_mut();
        let mut inits = inits.filter(|one| matches!(one.sort, Sort::Init | Sort::Sidecar));
        let first = inits.find(|one| !one.has_succeeded() && !one.has_run());
        if let Some(first) = first {
            first.state = ContainerState::Lost;
            return;
        }
        let has_failed = |sort: Sort, state: ContainerState| {
            sort == Sort::Init && state != ContainerState::Exited
        };
        if self
            .containers
            .iter()
            .any(|one| has_failed(one.sort, one.state))
        {
            return;
        }
        for one in &mut self.containers {
            if one.sort == Sort::Main && !one.has_run() {
                one.state = ContainerState::Lost;
            }
        }
    }
}
