//! The life of one pretend pod, as a state machine without a clock of its own.

mod change;
mod container;
mod restart;
mod stop;

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, MicroTime, Time, condition};

pub(super) use container::{ContainerRun, ContainerState, PastRun, Sort, status_of};
pub(super) use restart::may_restart_all;

use super::{behaviour::Behaviour, resize::Resize};
use crate::pod::is_pod_terminal;
use container::reason_of;
use restart::{AfterExit, after_exit};

/// The exit code of a process that SIGKILL ended.
const KILLED: i64 = 137;
/// Passes over the containers of a pod for one step. Each pass moves one of them on.
const PASSES_LIMIT: usize = 256;
/// Notes that are kept until they are told. More at once would be a mistake.
const NOTES_LIMIT: usize = 64;

/// Why a pod has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its containers have exited for good.
    Finished,
    /// An init container has failed for good.
    InitFailed,
    /// It was active for longer than it may be.
    DeadlineExceeded,
    /// It was deleted.
    Stopped,
    /// It was deleted before it had a sandbox.
    NeverStarted,
}

/// Something to tell about a pod in an event of type `Warning`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A pod on a pretend node. Written by the worker that holds the key of the pod.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// In the order of [`Sort::all_of`]; ephemeral ones are added when they appear.
    pub(super) containers: Vec<ContainerRun>,
    /// True from when what the pod needs was prepared: it has an address.
    pub(super) has_sandbox: bool,
    /// True once all init containers have done their part.
    pub(super) is_initialized: bool,
    pub(super) ended: Option<Ending>,
    pub(super) resize: Resize,
    /// Told by the agent, then forgotten.
    pub(super) notes: Vec<Note>,
    /// When the containers began to be created.
    since: Instant,
    /// When the pod came to the node.
    came: Instant,
    /// When the last main container has ended. The sidecars stop then.
    mains_ended: Option<Instant>,
    /// When the deletion was seen.
    deleted: Option<Instant>,
    /// True once the last deletion was sent, or the pod was found to be gone.
    pub(super) is_gone: bool,
}

/// What to do about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Make the status say what the state is, then come back after this time, if there is one.
    Show(Option<Duration>),
    /// The containers may start if what they need is there.
    Prepare,
    /// Finish the deletion.
    Remove,
}

/// What a pass over the containers came to.
enum Pass {
    /// Something has changed.
    Made,
    /// The status must show that a container runs before it exits.
    Show,
    /// Nothing happens until then.
    Rest(Option<Instant>),
}

/// The pod, its behaviour, and the time, for one step.
#[derive(Clone, Copy)]
struct Scene<'a> {
    pod: &'a Doc,
    does: &'a Behaviour,
    now: Instant,
    wall: Time,
}

impl Run {
    /// A pod that was not known, in the state that it says it is in. The status of that state is
    /// the one that was read, so whoever takes over a pod writes nothing before something happens.
    pub(super) fn resume(pod: &Doc, now: Instant, wall: MicroTime) -> Self {
        let came: Option<Time> = pod.str_at("/status/startTime").parse().ok();
        let passed = came.map_or(Duration::ZERO, |came| wall.since(came.into()));
        let containers = Sort::all_of(pod).map(|(sort, container)| {
            let mut run = ContainerRun::resume(sort, container, pod, (now, wall));
            let code = run.past.as_ref().map(|past| past.exit_code);
            if let (ContainerState::BackOff { .. }, Some(code)) = (run.state, code)
                && after_exit(pod, sort, container, code) == AfterExit::Stay
            {
                run.state = ContainerState::Exited;
            }
            run
        });
        let containers: Vec<ContainerRun> = containers.collect();
        let has_main_run = |one: &ContainerRun| one.sort == Sort::Main && one.has_run();
        let holds = |kind| condition(pod, kind).map(|condition| condition.is_true());
        // The containers alone do not tell: none has run in a pod whose image cannot be pulled,
        // and all have in one that is initialized again.
        let has_sandbox = holds("PodReadyToStartContainers") == Some(true);
        let is_initialized = holds("Initialized");
        Self {
            has_sandbox: has_sandbox || containers.iter().any(ContainerRun::has_run),
            is_initialized: is_initialized.unwrap_or_else(|| containers.iter().any(has_main_run)),
            containers,
            ended: None,
            resize: Resize::resume(pod),
            notes: Vec::new(),
            since: now,
            came: now.checked_sub(passed).unwrap_or(now),
            mains_ended: None,
            deleted: None,
            is_gone: false,
        }
    }

    /// Lets time have its way, and says what to do next.
    pub(super) fn advance(
        &mut self,
        pod: &Doc,
        does: &Behaviour,
        now: Instant,
        wall: Time,
    ) -> Step {
        let scene = Scene {
            pod,
            does,
            now,
            wall,
        };
        if pod.meta().is_deleting() {
            return self.stop(scene);
        }
        if is_pod_terminal(pod) || self.ended.is_some() {
            return Step::Show(None);
        }
        self.find_ephemeral(pod);
        let deadline = pod.at("/spec/activeDeadlineSeconds").as_u64();
        let deadline = deadline.map(|seconds| self.came + Duration::from_secs(seconds));
        if deadline.is_some_and(|deadline| deadline <= now) {
            self.end(Ending::DeadlineExceeded, scene);
            return Step::Show(None);
        }
        let due = match self.has_sandbox {
            false => match self.created(does) {
                Some(due) if due <= now => return Step::Prepare,
                due => due,
            },
            true => match self.pass_all(scene) {
                Pass::Rest(due) => due,
                Pass::Made | Pass::Show => return Step::Show(Some(Duration::ZERO)),
            },
        };
        if self.ended.is_some() {
            return Step::Show(None);
        }
        let due = [due, deadline, self.resize.due()];
        let due = due.into_iter().flatten().min();
        Step::Show(due.map(|due| due.saturating_duration_since(now)))
    }

    /// When the containers have been created, if they ever are.
    fn created(&self, does: &Behaviour) -> Option<Instant> {
        does.never_start
            .is_none()
            .then(|| self.since + does.start_after)
    }

    /// What the pod needs is there: its containers may start.
    pub(super) fn has_prepared(&mut self) {
        self.has_sandbox = true;
    }

    /// Adds ephemeral containers that are new.
    fn find_ephemeral(&mut self, pod: &Doc) {
        let known = self.containers.len();
        let new = Sort::all_of(pod).skip(known);
        let new: Vec<ContainerRun> = new
            .map(|(sort, container)| ContainerRun::new(sort, container))
            .collect();
        self.containers.extend(new);
    }

    fn pass_all(&mut self, scene: Scene<'_>) -> Pass {
        for _ in 0..PASSES_LIMIT {
            match self.pass(scene) {
                Pass::Made => {}
                other => return other,
            }
        }
        tracing::error!(pod = %scene.pod.meta().key(), "a pretend pod goes in circles");
        Pass::Rest(Some(scene.now + Duration::from_secs(1)))
    }

    /// Moves one container on, if one can be.
    fn pass(&mut self, scene: Scene<'_>) -> Pass {
        if self.ended.is_some() {
            return Pass::Rest(None);
        }
        if let Some(at) = self.next_to_start(scene) {
            self.start(at, scene);
            return Pass::Made;
        }
        let mut rest: Option<Instant> = None;
        for at in 0..self.containers.len() {
            let Some(does) = scene.does.containers.get(at) else {
                continue;
            };
            let (changes, looks) = self.containers[at].due(does, scene.now);
            if changes.is_some_and(|due| due <= scene.now) {
                return self.change(at, does, scene);
            }
            rest = [rest, changes, looks].into_iter().flatten().min();
        }
        match self.finish(scene) {
            Pass::Rest(due) => Pass::Rest([rest, due].into_iter().flatten().min()),
            other => other,
        }
    }

    /// The container whose turn it is: init containers one after the other, then the main ones,
    /// and ephemeral ones at any time.
    fn next_to_start(&mut self, scene: Scene<'_>) -> Option<usize> {
        let waits = |one: &ContainerRun| one.state == ContainerState::Waiting;
        let is_ephemeral = |one: &ContainerRun| one.sort == Sort::Ephemeral;
        let ephemeral = self.containers.iter();
        if let Some(at) = ephemeral
            .clone()
            .position(|one| is_ephemeral(one) && waits(one))
        {
            return Some(at);
        }
        if !self.is_initialized {
            let inits = self
                .containers
                .iter()
                .zip(&scene.does.containers)
                .enumerate();
            for (at, (one, does)) in inits {
                let is_done = match one.sort {
                    Sort::Init => one.has_succeeded(),
                    Sort::Sidecar => one.is_started(does, scene.now),
                    Sort::Main | Sort::Ephemeral => true,
                };
                match is_done {
                    true => {}
                    false if waits(one) => return Some(at),
                    false => return None,
                }
            }
            self.is_initialized = true;
        }
        let mut mains = self.containers.iter();
        mains.position(|one| one.sort != Sort::Ephemeral && waits(one))
    }

    /// Ends the pod if its containers have.
    fn finish(&mut self, scene: Scene<'_>) -> Pass {
        let is_over = |one: &ContainerRun| one.state == ContainerState::Exited;
        let mut inits = self.containers.iter().filter(|one| one.sort == Sort::Init);
        if inits.any(|one| is_over(one) && !one.has_succeeded()) {
            self.end(Ending::InitFailed, scene);
            return Pass::Made;
        }
        let mut mains = self.containers.iter().filter(|one| one.sort == Sort::Main);
        if !mains.all(is_over) {
            return Pass::Rest(None);
        }
        let ended = *self.mains_ended.get_or_insert(scene.now);
        let has_sidecars = self
            .containers
            .iter()
            .any(|one| one.sort == Sort::Sidecar && one.is_running());
        let due = ended + scene.does.stop_after;
        if has_sidecars && due > scene.now {
            return Pass::Rest(Some(due));
        }
        self.end(Ending::Finished, scene);
        Pass::Made
    }

    /// Ends the pod: whatever still runs is stopped.
    fn end(&mut self, ending: Ending, scene: Scene<'_>) {
        for (at, one) in self.containers.iter_mut().enumerate() {
            let does = scene.does.containers.get(at);
            let code = match (ending, one.sort) {
                (Ending::Finished, Sort::Sidecar) => does.map_or(0, |does| does.stop_code),
                _ => KILLED,
            };
            one.exit(code, reason_of(code), scene.now, scene.wall);
            if matches!(one.state, ContainerState::BackOff { .. }) {
                one.state = ContainerState::Exited;
            }
        }
        self.ended = Some(ending);
    }

    fn note(&mut self, reason: &'static str, message: String) {
        if self.notes.len() < NOTES_LIMIT {
            self.notes.push(Note { reason, message });
        }
    }

    /// Returns true if the pod has ended and all its main containers have succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        let mut mains = self.containers.iter().filter(|one| one.sort == Sort::Main);
        matches!(self.ended, Some(Ending::Finished | Ending::Stopped))
            && mains.all(ContainerRun::has_succeeded)
    }
}

/// The name of a pod as a kubelet writes it in messages.
pub(super) fn full_name(pod: &Doc) -> String {
    let meta = pod.meta();
    format!("{}_{}({})", meta.name(), meta.namespace(), meta.uid_str())
}
