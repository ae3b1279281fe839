//! In-place resize: the resources of a running pod's containers follow its spec.

use std::time::Duration;

use tokio::time::Instant;
use windlass_core::{Doc, Str, Time};

use super::run::{Run, Sort, status_of};

/// How long a resize that does not fit waits before it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// The answer of a node to a resize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResizeVerdict {
    Fits,
    /// It does not fit beside the other pods of the node.
    Deferred(String),
    /// It would not fit on the empty node.
    Infeasible(String),
}

/// The resources that the containers of a pod have. Written by the worker that holds its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Resize {
    /// What the node has set aside, by container; empty before the pod has started.
    allocated: Vec<(Str, Doc)>,
    /// What the containers have, which lags behind while a resize takes time.
    actual: Vec<(Str, Doc)>,
    progress: Progress,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Done,
    Pending {
        reason: &'static str,
        message: String,
        generation: i64,
        again: Instant,
    },
    Actuating {
        generation: i64,
        until: Instant,
    },
}

/// A condition of a pod that is being resized.
pub(super) struct ResizeCondition<'a> {
    pub(super) kind: &'static str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) generation: i64,
}

impl Resize {
    /// The kinds of the conditions here.
    pub(super) const CONDITIONS: [&'static str; 2] = ["PodResizePending", "PodResizeInProgress"];

    /// Takes over what the status of a pod shows.
    pub(super) fn resume(pod: &Doc) -> Self {
        let shown = resizable(pod).filter_map(|(sort, container)| {
            let name = container.str_at("/name");
            let status = status_of(pod, sort, name);
            let has_run = !status.str_at("/containerID").is_empty();
            has_run.then(|| (Str::new(name), status.at("/resources").clone()))
        });
        let actual: Vec<(Str, Doc)> = shown.collect();
        Self {
            allocated: actual.clone(),
            actual,
            progress: Progress::Done,
        }
    }

    /// The resources that a container has.
    pub(super) fn actual<'a>(&'a self, container: &'a Doc) -> &'a Doc {
        lookup(&self.actual, container)
    }

    /// The resources that are set aside for a container.
    pub(super) fn allocated<'a>(&'a self, container: &'a Doc) -> &'a Doc {
        lookup(&self.allocated, container)
    }

    /// When something happens by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.progress {
            Progress::Done => None,
            Progress::Pending { again, .. } => Some(again),
            Progress::Actuating { until, .. } => Some(until),
        }
    }

    /// The condition that tells of a resize.
    pub(super) fn condition(&self) -> Option<ResizeCondition<'_>> {
        match &self.progress {
            Progress::Done => None,
            Progress::Pending {
                reason,
                message,
                generation,
                ..
            } => Some(ResizeCondition {
                kind: Self::CONDITIONS[0],
                reason,
                message,
                generation: *generation,
            }),
            Progress::Actuating { generation, .. } => Some(ResizeCondition {
                kind: Self::CONDITIONS[1],
                reason: "",
                message: "",
                generation: *generation,
            }),
        }
    }

    fn wants(&self, pod: &Doc) -> bool {
        let mut all = resizable(pod);
        all.any(|(_, container)| !is_same(self.allocated(container), container.at("/resources")))
    }
}

impl Run {
    /// Brings the resources of containers in line with the spec, as far as the node says that they
    /// fit.
    pub(super) fn settle_resize(
        &mut self,
        pod: &Doc,
        takes: Duration,
        (now, wall): (Instant, Time),
        judge: impl FnOnce() -> ResizeVerdict,
    ) {
        if !self.has_sandbox || self.ended.is_some() || pod.meta().is_deleting() {
            return;
        }
        if self.resize.allocated.is_empty() {
            self.resize.allocated = of_spec(pod);
            self.resize.actual = self.resize.allocated.clone();
            return;
        }
        if let Progress::Actuating { until, .. } = self.resize.progress
            && until <= now
        {
            self.actuate(pod, now, wall);
        }
        if !self.resize.wants(pod) {
            if matches!(self.resize.progress, Progress::Pending { .. }) {
                self.resize.progress = Progress::Done;
            }
            return;
        }
        let generation = pod.meta().generation();
        if let Progress::Pending {
            generation: judged,
            again,
            ..
        } = self.resize.progress
            && judged == generation
            && again > now
        {
            return;
        }
        let pending = |reason, message| Progress::Pending {
            reason,
            message,
            generation,
            again: now + RETRY_INTERVAL,
        };
        match judge() {
            ResizeVerdict::Deferred(message) => {
                self.resize.progress = pending("Deferred", message);
            }
            ResizeVerdict::Infeasible(message) => {
                self.resize.progress = pending("Infeasible", message);
            }
            ResizeVerdict::Fits => {
                self.resize.allocated = of_spec(pod);
                let until = now + takes;
                self.resize.progress = Progress::Actuating { generation, until };
                if takes.is_zero() {
                    self.actuate(pod, now, wall);
                }
            }
        }
    }

    /// The containers get what is set aside for them. Those whose resize policy says so are
    /// restarted.
    fn actuate(&mut self, pod: &Doc, now: Instant, wall: Time) {
        let restarted: Vec<&str> = resizable(pod)
            .filter(|(_, container)| {
                let (old, new) = (
                    self.resize.actual(container),
                    self.resize.allocated(container),
                );
                needs_restart(container, old, new)
            })
            .map(|(_, container)| container.str_at("/name"))
            .collect();
        for name in restarted {
            self.restart_for_resize(name, now, wall);
        }
        self.resize.actual = self.resize.allocated.clone();
        self.resize.progress = Progress::Done;
    }
}

/// The containers whose resources can change.
fn resizable(pod: &Doc) -> impl Iterator<Item = (Sort, &Doc)> {
    Sort::all_of(pod).filter(|(sort, _)| matches!(sort, Sort::Main | Sort::Sidecar))
}

fn of_spec(pod: &Doc) -> Vec<(Str, Doc)> {
    let all = resizable(pod).map(|(_, container)| {
        let name = Str::new(container.str_at("/name"));
        (name, container.at("/resources").clone())
    });
    all.collect()
}

fn lookup<'a>(known: &'a [(Str, Doc)], container: &'a Doc) -> &'a Doc {
    let name = container.str_at("/name");
    let found = known.iter().find(|(other, _)| &**other == name);
    found.map_or_else(|| container.at("/resources"), |(_, resources)| resources)
}

/// Returns true if two sets of resources say the same. None and an empty one do.
fn is_same(some: &Doc, other: &Doc) -> bool {
    let is_empty = |doc: &Doc| doc.as_object().is_none_or(windlass_core::Object::is_empty);
    some == other || is_empty(some) && is_empty(other)
}

/// Returns true if a resource has changed of which the policy says that the container restarts.
fn needs_restart(container: &Doc, old: &Doc, new: &Doc) -> bool {
    let mut policies = container.at("/resizePolicy").items().iter();
    policies.any(|policy| {
        let name = policy.str_at("/resourceName");
        let differs = |part: &str| {
            let of = |resources: &Doc| resources.get(part).and_then(|it| it.get(name)).cloned();
            of(old) != of(new)
        };
        policy.str_at("/restartPolicy") == "RestartContainer"
            && (differs("requests") || differs("limits"))
    })
}
