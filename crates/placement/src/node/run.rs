//! The life of one pretend pod, as a state machine without a clock of its own.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, Time};

use super::behaviour::Behaviour;
use crate::pod::is_pod_terminal;

/// The delays between restarts: none before the first, then doubled from the least to the most.
const RESTART_DELAY_MIN: Duration = Duration::from_secs(10);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(300);

/// What the containers of a pod are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// They are being created.
    Creating,
    Running {
        is_ready: bool,
    },
    /// They have exited and are restarted after a while.
    BackOff,
    /// They have exited for good.
    Ended(Ending),
}

/// Why a pod has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With this exit code.
    Exited(i64),
    /// It was active for longer than it may be.
    DeadlineExceeded,
    /// It was deleted, and stopped with this exit code.
    Stopped(i64),
    /// It was deleted before its containers had started.
    NeverStarted,
}

/// How the containers ran the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PastRun {
    pub(super) exit_code: i64,
    pub(super) started: Time,
    pub(super) ended: Time,
}

/// A pod on a pretend node. Written by the worker that holds the key of the pod.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) stage: Stage,
    /// When the stage began.
    since: Instant,
    /// When the pod came to the node.
    came: Instant,
    /// How often the containers were started again.
    pub(super) restarts: i64,
    pub(super) started: Time,
    pub(super) past: Option<PastRun>,
    /// When the deletion was seen.
    deleted: Option<Instant>,
    /// Whether the last deletion was sent, or the pod was found to be gone.
    pub(super) is_gone: bool,
}

/// What to do about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Make the status say what the stage is, then come back after this time, if there is one.
    Show(Option<Duration>),
    /// The containers may start if what they need is there.
    Prepare,
    /// Finish the deletion.
    Remove,
}

impl Run {
    /// A pod that was not known, in the state that it says it is in.
    pub(super) fn resume(pod: &Doc, now: Instant, wall: Time) -> Self {
        let status = pod.at("/status/containerStatuses/0");
        let started: Option<Time> = status.str_at("/state/running/startedAt").parse().ok();
        let came: Option<Time> = pod.str_at("/status/startTime").parse().ok();
        let ago = |then: Option<Time>| {
            let passed = then.map_or(Duration::ZERO, |then| wall.since(then));
            now.checked_sub(passed).unwrap_or(now)
        };
        let past = past_run(status);
        let stage = match (started, past) {
            (Some(_), _) => Stage::Running {
                is_ready: status.at("/ready").as_bool() == Some(true),
            },
            (None, Some(_)) => Stage::BackOff,
            (None, None) => Stage::Creating,
        };
        Self {
            stage,
            since: ago(started),
            came: ago(came),
            restarts: status.at("/restartCount").as_i64().unwrap_or(0),
            started: started.unwrap_or(wall),
            past,
            deleted: None,
            is_gone: false,
        }
    }

    /// Whether the containers have ever started.
    pub(super) fn has_started(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Creating | Stage::Ended(Ending::NeverStarted)
        )
    }

    fn enter(&mut self, stage: Stage, now: Instant) {
        (self.stage, self.since) = (stage, now);
    }

    /// Lets time have its way, and says what to do next.
    pub(super) fn advance(
        &mut self,
        pod: &Doc,
        does: &Behaviour,
        now: Instant,
        wall: Time,
    ) -> Step {
        if pod.meta().is_deleting() {
            return self.stop(pod, does, now, wall);
        }
        if is_pod_terminal(pod) {
            return Step::Show(None);
        }
        let deadline = pod.at("/spec/activeDeadlineSeconds").as_u64();
        let deadline = deadline.map(|seconds| self.came + Duration::from_secs(seconds));
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.end(Ending::DeadlineExceeded, 137, now, wall);
        }
        let due = loop {
            let Some(due) = self.due(does) else {
                break None;
            };
            if due > now {
                break Some(due);
            }
            match self.stage {
                Stage::Creating => return Step::Prepare,
                // What is shown must have been so: containers run before they exit.
                Stage::Running { .. } if !is_running(pod, self.restarts) => {
                    return Step::Show(Some(Duration::ZERO));
                }
                _ => self.pass(pod, does, now, wall),
            }
        };
        let due = [due, deadline].into_iter().flatten().min();
        let due = due.filter(|_| !matches!(self.stage, Stage::Ended(_)));
        Step::Show(due.map(|due| due.saturating_duration_since(now)))
    }

    /// When the stage ends by itself.
    fn due(&self, does: &Behaviour) -> Option<Instant> {
        let exit = does.exit_after.map(|after| self.since + after);
        match self.stage {
            Stage::Creating => does
                .never_start
                .is_none()
                .then(|| self.since + does.start_after),
            Stage::Running { is_ready: false } => {
                let ready = self.since + does.ready_after;
                Some(exit.map_or(ready, |exit| exit.min(ready)))
            }
            Stage::Running { is_ready: true } => exit,
            Stage::BackOff => Some(self.since + self.restart_delay()),
            Stage::Ended(_) => None,
        }
    }

    /// The containers start.
    pub(super) fn start(&mut self, does: &Behaviour, now: Instant, wall: Time) {
        self.started = wall;
        let is_ready = does.ready_after.is_zero() && does.exit_after != Some(Duration::ZERO);
        self.enter(Stage::Running { is_ready }, now);
    }

    /// The stage ends.
    fn pass(&mut self, pod: &Doc, does: &Behaviour, now: Instant, wall: Time) {
        match self.stage {
            Stage::Running { is_ready: false } if !self.has_exited(does, now) => {
                // The time of running counts from the start, not from being ready.
                self.stage = Stage::Running { is_ready: true };
            }
            Stage::Running { .. } => self.exit(pod, does, now, wall),
            Stage::BackOff => {
                self.restarts += 1;
                self.start(does, now, wall);
            }
            Stage::Creating | Stage::Ended(_) => {}
        }
    }

    fn has_exited(&self, does: &Behaviour, now: Instant) -> bool {
        does.exit_after
            .is_some_and(|after| self.since + after <= now)
    }

    fn exit(&mut self, pod: &Doc, does: &Behaviour, now: Instant, wall: Time) {
        let code = does.exit_code;
        match (pod.str_at("/spec/restartPolicy"), code) {
            ("Never", _) | ("OnFailure", 0) => self.end(Ending::Exited(code), code, now, wall),
            _ => {
                self.note(code, wall);
                self.enter(Stage::BackOff, now);
            }
        }
    }

    /// Remembers how the containers ran.
    fn note(&mut self, exit_code: i64, wall: Time) {
        self.past = Some(PastRun {
            exit_code,
            started: self.started,
            ended: wall,
        });
    }

    fn end(&mut self, ending: Ending, code: i64, now: Instant, wall: Time) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.note(code, wall);
            self.enter(Stage::Ended(ending), now);
        }
    }

    /// How long containers that have exited wait before they are started again.
    pub(super) fn restart_delay(&self) -> Duration {
        match u32::try_from(self.restarts).unwrap_or(u32::MAX) {
            0 => Duration::ZERO,
            count => {
                let factor = 1_u32.checked_shl(count - 1).unwrap_or(u32::MAX);
                RESTART_DELAY_MIN
                    .saturating_mul(factor.max(1))
                    .min(RESTART_DELAY_MAX)
            }
        }
    }

    /// The pod is deleted: its containers stop, the status says how they have ended, and then it is
    /// removed. Whoever holds it back by a finalizer sees a pod that has ended.
    fn stop(&mut self, pod: &Doc, does: &Behaviour, now: Instant, wall: Time) -> Step {
        let deleted = *self.deleted.get_or_insert(now);
        match (self.stage, self.past) {
            (Stage::Running { .. }, _) => {
                let grace = pod.at("/metadata/deletionGracePeriodSeconds").as_u64();
                let grace = Duration::from_secs(grace.unwrap_or(0));
                let left = (deleted + does.stop_after.min(grace)).saturating_duration_since(now);
                if !left.is_zero() {
                    return Step::Show(Some(left));
                }
                // Containers that take longer than they may are killed.
                let is_killed = does.stop_after > grace;
                let code = if is_killed { 137 } else { does.stop_code };
                self.end(Ending::Stopped(code), code, now, wall);
            }
            // Containers that wait to be restarted have ended as they last did.
            (Stage::BackOff, Some(past)) => {
                let ending = Ending::Stopped(past.exit_code);
                self.enter(Stage::Ended(ending), now);
            }
            (Stage::Creating | Stage::BackOff, _) => {
                self.enter(Stage::Ended(Ending::NeverStarted), now);
            }
            (Stage::Ended(_), _) => {}
        }
        match self.is_gone || is_pod_terminal(pod) {
            true => Step::Remove,
            false => Step::Show(Some(Duration::ZERO)),
        }
    }
}

/// Whether a status shows that the containers run, after so many restarts.
fn is_running(pod: &Doc, restarts: i64) -> bool {
    let status = pod.at("/status/containerStatuses/0");
    status
        .get("state")
        .is_some_and(|state| state.get("running").is_some())
        && *status.at("/restartCount") == restarts
}

/// How the containers ran before, unless they run for the first time, or did never run.
fn past_run(status: &Doc) -> Option<PastRun> {
    let ended = status.at("/state/terminated");
    let past = match ended.is_null() {
        true => status.at("/lastState/terminated"),
        false => ended,
    };
    Some(PastRun {
        exit_code: past.at("/exitCode").as_i64()?,
        started: past.str_at("/startedAt").parse().ok()?,
        ended: past.str_at("/finishedAt").parse().ok()?,
    })
}
