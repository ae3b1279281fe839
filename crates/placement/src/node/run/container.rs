//! The life of one container of a pretend pod.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, MicroTime, Str, Time};
use windlass_runtime::parse_duration;

use crate::node::{
    behaviour::{ContainerBehaviour, NEVER_START},
    image::ImageProblem,
};

/// The delays between restarts: none before the first, then doubled from the least to the most.
const RESTART_DELAY_MIN: Duration = Duration::from_secs(10);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(300);
/// The crashes after which the delay is the longest.
const LONGEST_AFTER: u32 = 7;
/// A container that has run for so long is restarted as if it had never crashed.
const STABLE_AFTER: Duration = Duration::from_secs(600);
/// How long `ErrImagePull` is shown before `ImagePullBackOff`.
const PULL_ERROR_SHOWN: Duration = Duration::from_secs(1);

/// The list of a pod's spec to which a container belongs, and its part there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Sort {
    /// An init container: runs once, before the others.
    Init,
    /// A restartable init container: starts before the others and runs beside them.
    Sidecar,
    /// One of `spec.containers`.
    Main,
    /// An ephemeral container: added later, and never restarted.
    Ephemeral,
}

impl Sort {
    /// The containers of a pod in the order in which they start.
    pub(in crate::node) fn all_of(pod: &Doc) -> impl Iterator<Item = (Self, &Doc)> {
        let inits = pod.at("/spec/initContainers").items().iter();
        let inits = inits.map(|container| match container.str_at("/restartPolicy") {
            "Always" => (Self::Sidecar, container),
            _ => (Self::Init, container),
        });
        let mains = pod.at("/spec/containers").items().iter();
        let ephemeral = pod.at("/spec/ephemeralContainers").items().iter();
        inits
            .chain(mains.map(|container| (Self::Main, container)))
            .chain(ephemeral.map(|container| (Self::Ephemeral, container)))
    }
}

/// The state of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum ContainerState {
    /// Its turn has not come.
    Waiting,
    /// Its image is not pulled: failed so often, the last time then.
    Pulling {
        failures: u32,
        since: Instant,
    },
    /// Its image has a reference that cannot be parsed.
    InvalidImage,
    Running {
        since: Instant,
        at: Time,
    },
    /// It has exited and is restarted after a while.
    BackOff {
        since: Instant,
    },
    /// It has exited for good.
    Exited,
    /// It never ran, and its pod has ended.
    Lost,
}

/// A run of a container that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::node) struct PastRun {
    pub(in crate::node) exit_code: i64,
    pub(in crate::node) reason: Str,
    pub(in crate::node) started: Time,
    pub(in crate::node) ended: Time,
    /// The restarts before it, which tell its id.
    pub(in crate::node) restarts: i64,
}

/// One container. Written by the worker that holds the key of its pod.
#[derive(Clone, Debug)]
pub(in crate::node) struct ContainerRun {
    pub(in crate::node) name: Str,
    pub(in crate::node) sort: Sort,
    pub(in crate::node) state: ContainerState,
    /// How often it was started again.
    pub(in crate::node) restarts: i64,
    /// Crashes since it was stable last.
    crashes: u32,
    /// The last run that is over, and the one before.
    pub(in crate::node) past: Option<PastRun>,
    pub(in crate::node) before: Option<PastRun>,
}

impl ContainerRun {
    pub(super) fn new(sort: Sort, container: &Doc) -> Self {
        Self {
            name: Str::new(container.str_at("/name")),
            sort,
            state: ContainerState::Waiting,
            restarts: 0,
            crashes: 0,
            past: None,
            before: None,
        }
    }

    /// A container in the state that the status of its pod shows. Times there are whole seconds:
    /// what counts from them comes up to a second early, and never takes anything back.
    pub(super) fn resume(
        sort: Sort,
        container: &Doc,
        pod: &Doc,
        (now, wall): (Instant, MicroTime),
    ) -> Self {
        let mut run = Self::new(sort, container);
        let status = status_of(pod, sort, &run.name);
        run.restarts = status.at("/restartCount").as_i64().unwrap_or(0);
        run.crashes = u32::try_from(run.restarts).unwrap_or(u32::MAX);
        let ago = |then: Time| now.checked_sub(wall.since(then.into())).unwrap_or(now);
        let ended = past_run(status.at("/state/terminated"), run.restarts);
        let last = |restarts| past_run(status.at("/lastState/terminated"), restarts);
        let started: Option<Time> = status.str_at("/state/running/startedAt").parse().ok();
        if let Some(at) = started {
            run.state = ContainerState::Running { since: ago(at), at };
            run.past = last(run.restarts - 1);
        } else if let Some(ended) = ended {
            // A back-off that takes time is shown as such: this one takes none.
            run.crashes = 1;
            run.state = ContainerState::BackOff {
                since: ago(ended.ended),
            };
            (run.past, run.before) = (Some(ended), last(run.restarts - 1));
        } else {
            // It is not yet started again: the last run has the id of the present count.
            run.past = last(run.restarts);
            let since = run.past.as_ref().map(|past| ago(past.ended));
            run.wait(pod, status.at("/state/waiting"), since, now);
        }
        run
    }

    /// Takes over the state of a container that waits, by the reason that its status gives.
    fn wait(&mut self, pod: &Doc, waiting: &Doc, ended: Option<Instant>, now: Instant) {
        let (reason, message) = (waiting.str_at("/reason"), waiting.str_at("/message"));
        // An annotation can give any reason, and does so without a message.
        if message.is_empty() && pod.meta().annotation(NEVER_START) == Some(reason) {
            return;
        }
        let pulling = |since: Instant| ContainerState::Pulling { failures: 1, since };
        self.state = match (reason, ended) {
            ("CrashLoopBackOff", Some(since)) => {
                self.crashes = crashes_before(message)
                    .unwrap_or_else(|| self.crashes.saturating_add(1).max(2));
                ContainerState::BackOff { since }
            }
            ("ErrImagePull", _) => pulling(now),
            // How often it has failed is not told. A kubelet begins to count anew, too.
            ("ImagePullBackOff", _) => pulling(now.checked_sub(PULL_ERROR_SHOWN).unwrap_or(now)),
            ("InvalidImageName", _) => ContainerState::InvalidImage,
            _ => ContainerState::Waiting,
        };
    }

    pub(in crate::node) fn is_running(&self) -> bool {
        matches!(self.state, ContainerState::Running { .. })
    }

    /// Returns true if it has run, or does.
    pub(in crate::node) fn has_run(&self) -> bool {
        self.is_running() || self.past.is_some()
    }

    /// Returns true if it has exited for good with code 0.
    pub(in crate::node) fn has_succeeded(&self) -> bool {
        let code = self.past.as_ref().map(|past| past.exit_code);
        self.state == ContainerState::Exited && code == Some(0)
    }

    /// Returns true if its startup probe has succeeded.
    pub(in crate::node) fn is_started(&self, does: &ContainerBehaviour, now: Instant) -> bool {
        match (self.state, does.started_after) {
            (ContainerState::Running { since, .. }, Some(after)) => since + after <= now,
            _ => false,
        }
    }

    /// Returns true if its readiness probe succeeds.
    pub(in crate::node) fn is_ready(&self, does: &ContainerBehaviour, now: Instant) -> bool {
        let ContainerState::Running { since, .. } = self.state else {
            return false;
        };
        self.is_started(does, now)
            && since + does.ready_after <= now
            && does.unready_after.is_none_or(|after| since + after > now)
            && does.exit_after != Some(Duration::ZERO)
    }

    /// How long it waits before it is restarted.
    pub(in crate::node) fn restart_delay(&self) -> Duration {
        backoff(self.crashes.saturating_sub(1))
    }

    /// When its state changes by itself, and when it only looks different.
    pub(super) fn due(
        &self,
        does: &ContainerBehaviour,
        now: Instant,
    ) -> (Option<Instant>, Option<Instant>) {
        match self.state {
            ContainerState::Running { since, .. } => {
                let killed = does.killed_after.map(|(after, _)| after);
                let ends = [does.exit_after, killed].into_iter().flatten().min();
                let started = does.started_after;
                let ready = started.map(|after| after.max(does.ready_after));
                let looks = [started, ready, does.unready_after].into_iter().flatten();
                let looks = looks.map(|after| since + after).filter(|at| *at > now);
                (ends.map(|after| since + after), looks.min())
            }
            ContainerState::BackOff { since } => (Some(since + self.restart_delay()), None),
            ContainerState::Pulling { failures, since } => {
                let shown = since + PULL_ERROR_SHOWN;
                let again = shown + backoff(failures);
                (Some(again), Some(shown).filter(|at| *at > now))
            }
            // The image of a pod can be changed, and with it the name.
            ContainerState::InvalidImage => match does.image {
                Some(ImageProblem::InvalidName(_)) => (None, None),
                _ => (Some(now), None),
            },
            ContainerState::Waiting | ContainerState::Exited | ContainerState::Lost => (None, None),
        }
    }

    /// Returns true if a pull has just failed and is not yet being put off.
    pub(in crate::node) fn has_just_failed_to_pull(&self, now: Instant) -> bool {
        matches!(self.state, ContainerState::Pulling { since, .. } if since + PULL_ERROR_SHOWN > now)
    }

    /// It exits.
    pub(super) fn exit(&mut self, exit_code: i64, reason: &str, now: Instant, wall: Time) {
        let ContainerState::Running { since, at } = self.state else {
            return;
        };
        self.crashes = match now.saturating_duration_since(since) >= STABLE_AFTER {
            true => 1,
            false => self.crashes.saturating_add(1),
        };
        self.before = self.past.take();
        self.past = Some(PastRun {
            exit_code,
            reason: Str::new(reason),
            started: at,
            ended: wall,
            restarts: self.restarts,
        });
        self.state = ContainerState::Exited;
    }
}

/// The reason of a container that has exited by itself.
pub(in crate::node) fn reason_of(exit_code: i64) -> &'static str {
    if exit_code == 0 { "Completed" } else { "Error" }
}

/// None for the first time, then doubled from the least to the most.
fn backoff(times: u32) -> Duration {
    match times.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => {
            let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
            RESTART_DELAY_MIN
                .saturating_mul(factor.max(1))
                .min(RESTART_DELAY_MAX)
        }
    }
}

/// The crashes after which a container waits for as long as the message of its back-off says. All
/// that wait longest are alike.
fn crashes_before(message: &str) -> Option<u32> {
    let delay = message.strip_prefix("back-off ")?.split(' ').next()?;
    let delay = parse_duration(delay).ok()?;
    (2..=LONGEST_AFTER).find(|crashes| backoff(crashes - 1) == delay)
}

/// The status of a container in its pod; null if there is none.
pub(in crate::node) fn status_of<'a>(pod: &'a Doc, sort: Sort, name: &str) -> &'a Doc {
    let list = match sort {
        Sort::Init | Sort::Sidecar => pod.at("/status/initContainerStatuses"),
        Sort::Main => pod.at("/status/containerStatuses"),
        Sort::Ephemeral => pod.at("/status/ephemeralContainerStatuses"),
    };
    let found = list.items().iter().find(|one| one.str_at("/name") == name);
    found.unwrap_or(&Doc::NULL)
}

fn past_run(ended: &Doc, restarts: i64) -> Option<PastRun> {
    Some(PastRun {
        exit_code: ended.at("/exitCode").as_i64()?,
        reason: Str::new(ended.str_at("/reason")),
        started: ended.str_at("/startedAt").parse().ok()?,
        ended: ended.str_at("/finishedAt").parse().ok()?,
        restarts,
    })
}
