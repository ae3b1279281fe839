//! Starts, exits and restarts of the containers of a pretend pod.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, Time};

use super::{
    ContainerRun, ContainerState, KILLED, Pass, Run, Scene, Sort,
    container::reason_of,
    full_name,
    restart::{AfterExit, after_exit},
    status_of,
};
use crate::node::{behaviour::ContainerBehaviour, image::ImageProblem};

impl Run {
    /// Starts a container, if its image is there.
    pub(super) fn start(&mut self, at: usize, scene: Scene<'_>) {
        let problem = scene.does.containers.get(at);
        let problem = problem.and_then(|does| does.image.clone());
        let one = &mut self.containers[at];
        match problem {
            None => {
                one.restarts += i64::from(one.past.is_some());
                one.state = ContainerState::Running {
                    since: scene.now,
                    at: scene.wall,
                };
            }
            Some(ImageProblem::InvalidName(message)) => {
                one.state = ContainerState::InvalidImage;
                self.note("InspectFailed", message);
                self.note("Failed", "Error: InvalidImageName".to_owned());
            }
            Some(ImageProblem::Pull(message)) => {
                let failures = match one.state {
                    ContainerState::Pulling { failures, .. } => failures,
                    _ => 0,
                };
                one.state = ContainerState::Pulling {
                    failures: failures.saturating_add(1),
                    since: scene.now,
                };
                self.note("Failed", format!("Failed to pull image: {message}"));
                self.note("Failed", "Error: ErrImagePull".to_owned());
            }
        }
    }

    /// The state of a container ends.
    pub(super) fn change(
        &mut self,
        at: usize,
        does: &ContainerBehaviour,
        scene: Scene<'_>,
    ) -> Pass {
        let one = &self.containers[at];
        let ContainerState::Running { since, .. } = one.state else {
            self.start(at, scene);
            return Pass::Made;
        };
        // What is shown must have been so: containers run before they exit. Only init containers
        // that take no time are not shown.
        let takes_none = one.sort == Sort::Init && does.exit_after == Some(Duration::ZERO);
        if !takes_none && !is_shown_running(scene.pod, one) {
            return Pass::Show;
        }
        let probe = does
            .killed_after
            .filter(|(after, _)| since + *after <= scene.now);
        let probe = probe.map(|(_, probe)| probe);
        match probe {
            Some(probe) => {
                let name = &one.name;
                let failed = format!("{} probe failed: an annotation says so", capital(probe));
                let message = format!("Container {name} failed {probe} probe, will be restarted");
                self.note("Unhealthy", failed);
                self.note("Killing", message);
                self.exit(at, KILLED, scene);
            }
            None => self.exit(at, does.exit_code, scene),
        }
        Pass::Made
    }

    /// A container exits, and is restarted or not.
    fn exit(&mut self, at: usize, code: i64, scene: Scene<'_>) {
        let Some((sort, container)) = Sort::all_of(scene.pod).nth(at) else {
            return;
        };
        self.containers[at].exit(code, reason_of(code), scene.now, scene.wall);
        match after_exit(scene.pod, sort, container, code) {
            AfterExit::Stay => {}
            AfterExit::RestartAll => self.restart_all(scene),
            AfterExit::Restart => {
                let one = &mut self.containers[at];
                one.state = ContainerState::BackOff { since: scene.now };
                if !one.restart_delay().is_zero() {
                    let (name, of) = (one.name.clone(), full_name(scene.pod));
                    let message =
                        format!("Back-off restarting failed container {name} in pod {of}");
                    self.note("BackOff", message);
                }
            }
        }
    }

    /// All containers end and start again, the init containers first.
    fn restart_all(&mut self, scene: Scene<'_>) {
        for one in &mut self.containers {
            if one.sort == Sort::Ephemeral {
                continue;
            }
            one.exit(KILLED, "RestartingAllContainers", scene.now, scene.wall);
            one.state = ContainerState::Waiting;
        }
        self.is_initialized = false;
    }

    /// Restarts a running container for a resize.
    pub(in crate::node) fn restart_for_resize(&mut self, name: &str, now: Instant, wall: Time) {
        let mut all = self.containers.iter_mut();
        if let Some(one) = all.find(|one| &*one.name == name && one.is_running()) {
            one.exit(KILLED, "Error", now, wall);
            one.restarts += 1;
            one.state = ContainerState::Running {
                since: now,
                at: wall,
            };
        }
    }
}

/// Returns true if the status shows that a container runs, after so many restarts.
fn is_shown_running(pod: &Doc, one: &ContainerRun) -> bool {
    let status = status_of(pod, one.sort, &one.name);
    !status.at("/state/running").is_null() && *status.at("/restartCount") == one.restarts
}

fn capital(probe: &str) -> &'static str {
    match probe {
        "liveness" => "Liveness",
        "startup" => "Startup",
        _ => "Readiness",
    }
}
