//! The behaviour of a pretend pod, as its annotations say.

use std::time::Duration;

use windlass_core::{Doc, Labels};
use windlass_runtime::parse_duration;

use super::{
    Options,
    image::{self, ImageProblem},
    run::Sort,
};

/// How long the containers of a pod take to be created, such as `2s`.
pub const START_AFTER: &str = "windlass.dev/start-after";
/// How long containers run before they are ready, such as `2s`.
pub const READY_AFTER: &str = "windlass.dev/ready-after";
/// How long containers run before they exit, such as `1m`, or [`NEVER`].
pub const EXIT_AFTER: &str = "windlass.dev/exit-after";
/// The code with which containers exit.
pub const EXIT_CODE: &str = "windlass.dev/exit-code";
/// `"true"` for containers that exit at once, with code 1 unless another is given.
pub const CRASH: &str = "windlass.dev/crash";
/// How long containers take to stop when their pod is deleted, such as `5s`.
pub const STOP_AFTER: &str = "windlass.dev/stop-after";
/// The reason for which containers never start, such as `CreateContainerConfigError`.
pub const NEVER_START: &str = "windlass.dev/never-start";
/// The message of a pull that always fails: the containers wait with `ErrImagePull` and
/// `ImagePullBackOff`.
pub const PULL_ERROR: &str = "windlass.dev/pull-error";
/// The probes that fail, such as `liveness` or `readiness,startup`.
pub const FAIL_PROBE: &str = "windlass.dev/fail-probe";
/// How long probes succeed before they fail, such as `30s`.
pub const FAIL_PROBE_AFTER: &str = "windlass.dev/fail-probe-after";
/// How long an in-place resize takes, such as `5s`.
pub const RESIZE_AFTER: &str = "windlass.dev/resize-after";
/// The log of the containers.
pub const LOG: &str = "windlass.dev/log";

/// The value of [`EXIT_AFTER`] for containers that run until they are stopped.
pub const NEVER: &str = "never";

/// How the names of all annotations here begin.
const PREFIX: &str = "windlass.dev/";

/// The annotations of pods, and true for those that one container can have by itself: with a dot
/// and its name at the end.
const KNOWN: [(&str, bool); 12] = [
    (START_AFTER, false),
    (READY_AFTER, true),
    (EXIT_AFTER, true),
    (EXIT_CODE, true),
    (CRASH, true),
    (STOP_AFTER, false),
    (NEVER_START, false),
    (PULL_ERROR, true),
    (FAIL_PROBE, true),
    (FAIL_PROBE_AFTER, true),
    (RESIZE_AFTER, false),
    (LOG, true),
];

/// The exit code of a process that SIGTERM ended: work that is stopped is not done.
pub(super) const TERMINATED: i64 = 143;

/// The behaviour of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) start_after: Duration,
    pub(super) stop_after: Duration,
    pub(super) resize_after: Duration,
    pub(super) never_start: Option<String>,
    /// In the order of [`Sort::all_of`].
    pub(super) containers: Vec<ContainerBehaviour>,
    /// Annotations that could not be used, for people.
    pub(super) problems: Vec<String>,
}

/// The behaviour of a container. Durations count from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerBehaviour {
    /// When its startup probe succeeds; `None` for never.
    pub(super) started_after: Option<Duration>,
    pub(super) ready_after: Duration,
    /// When its readiness probe fails for good.
    pub(super) unready_after: Option<Duration>,
    /// When a probe has it killed, and the name of that probe.
    pub(super) killed_after: Option<(Duration, &'static str)>,
    pub(super) exit_after: Option<Duration>,
    pub(super) exit_code: i64,
    /// The code with which it exits if it is stopped in time.
    pub(super) stop_code: i64,
    /// How long its preStop hook sleeps.
    pub(super) pre_stop: Duration,
    pub(super) image: Option<ImageProblem>,
}

impl Behaviour {
    pub(super) fn of(pod: &Doc, options: &Options) -> Self {
        let mut given = Annotations {
            given: pod.meta().annotations(),
            problems: Vec::new(),
        };
        given.find_unknown(pod);
        let all = Sort::all_of(pod);
        let containers =
            all.map(|(sort, container)| given.container(pod, sort, container, options));
        let containers = containers.collect();
        Self {
            start_after: given.duration(START_AFTER).unwrap_or(options.start_after),
            stop_after: given.duration(STOP_AFTER).unwrap_or(options.stop_after),
            resize_after: given.duration(RESIZE_AFTER).unwrap_or_default(),
            never_start: given.given.value(NEVER_START).map(str::to_owned),
            containers,
            problems: given.problems,
        }
    }
}

/// The annotations of a pod, and those that could not be used.
struct Annotations<'a> {
    given: Labels<'a>,
    problems: Vec<String>,
}

impl<'a> Annotations<'a> {
    /// Notes annotations that look like ours and mean nothing.
    fn find_unknown(&mut self, pod: &Doc) {
        for (key, _) in self.given.iter().filter(|(key, _)| key.starts_with(PREFIX)) {
            let is_known = KNOWN.iter().any(|(known, has_parts)| {
                let of_one = key
                    .strip_prefix(known)
                    .and_then(|rest| rest.strip_prefix('.'));
                key == *known || *has_parts && of_one.is_some_and(|name| has_container(pod, name))
            });
            if !is_known {
                let known = KNOWN.map(|(known, _)| known).join(", ");
                self.problems.push(format!(
                    "pretend nodes do not know the annotation {key}, or the pod has no such \
                     container; they know {known}"
                ));
            }
        }
    }

    fn duration(&mut self, key: &str) -> Option<Duration> {
        let text = self.given.value(key)?;
        self.read_duration(key, text)
    }

    fn read_duration(&mut self, key: &str, text: &str) -> Option<Duration> {
        let read = parse_duration(text);
        if let Err(error) = &read {
            self.problems
                .push(format!("the annotation {key} is not used: {error}"));
        }
        read.ok()
    }

    /// The annotation of a container. One without a name is for all main containers.
    fn text(&self, key: &str, sort: Sort, name: &str) -> Option<(String, &'a str)> {
        let own = format!("{key}.{name}");
        if let Some(text) = self.given.value(&own) {
            return Some((own, text));
        }
        let text = self.given.value(key).filter(|_| sort == Sort::Main)?;
        Some((key.to_owned(), text))
    }

    fn duration_of(&mut self, key: &str, sort: Sort, name: &str) -> Option<Duration> {
        let (key, text) = self.text(key, sort, name)?;
        self.read_duration(&key, text)
    }

    fn exit_code(&mut self, sort: Sort, name: &str) -> Option<i64> {
        let (key, text) = self.text(EXIT_CODE, sort, name)?;
        let code = text.parse::<u8>().ok();
        if code.is_none() {
            self.problems.push(format!(
                "the annotation {key} is not used: {text:?} is no number from 0 to 255"
            ));
        }
        code.map(i64::from)
    }

    fn crashes(&mut self, sort: Sort, name: &str) -> bool {
        match self.text(CRASH, sort, name) {
            None | Some((_, "false")) => false,
            Some((_, "true")) => true,
            Some((key, text)) => {
                self.problems.push(format!(
                    "the annotation {key} is not used: {text:?} is neither \"true\" nor \"false\""
                ));
                false
            }
        }
    }

    fn container(
        &mut self,
        pod: &Doc,
        sort: Sort,
        container: &Doc,
        options: &Options,
    ) -> ContainerBehaviour {
        let name = container.str_at("/name");
        let crashes = self.crashes(sort, name);
        let exit_after = match self.text(EXIT_AFTER, sort, name) {
            Some((_, NEVER)) => None,
            _ => self
                .duration_of(EXIT_AFTER, sort, name)
                .or(crashes.then_some(Duration::ZERO))
                .or_else(|| default_exit(pod, sort, options)),
        };
        let pull_error = self.text(PULL_ERROR, sort, name);
        let pull_error = pull_error.map(|(_, message)| ImageProblem::Pull(message.to_owned()));
        let mut behaviour = ContainerBehaviour {
            started_after: Some(seconds(container, "/startupProbe/initialDelaySeconds")),
            ready_after: seconds(container, "/readinessProbe/initialDelaySeconds"),
            unready_after: None,
            killed_after: None,
            exit_after,
            exit_code: self.exit_code(sort, name).unwrap_or(i64::from(crashes)),
            stop_code: match sort {
                Sort::Main if ends_by_itself(pod) => TERMINATED,
                Sort::Init | Sort::Ephemeral => TERMINATED,
                Sort::Main | Sort::Sidecar => 0,
            },
            pre_stop: seconds(container, "/lifecycle/preStop/sleep/seconds"),
            image: pull_error.or_else(|| image::problem(container.str_at("/image"))),
        };
        self.add_probes(&mut behaviour, sort, container);
        if let Some(after) = self.duration_of(READY_AFTER, sort, name) {
            behaviour.ready_after = after;
        }
        behaviour
    }

    /// Adds the probes that fail.
    fn add_probes(&mut self, does: &mut ContainerBehaviour, sort: Sort, container: &Doc) {
        let name = container.str_at("/name");
        let after = self.duration_of(FAIL_PROBE_AFTER, sort, name);
        let after = after.unwrap_or_default();
        let Some((key, text)) = self.text(FAIL_PROBE, sort, name) else {
            return;
        };
        for which in text.split(',').map(str::trim) {
            let (probe, kind) = match which {
                "readiness" => (container.at("/readinessProbe"), "readiness"),
                "liveness" => (container.at("/livenessProbe"), "liveness"),
                "startup" => (container.at("/startupProbe"), "startup"),
                other => {
                    self.problems.push(format!(
                        "the annotation {key} is not used: {other:?} is none of readiness, \
                         liveness and startup"
                    ));
                    continue;
                }
            };
            if probe.is_null() {
                self.problems.push(format!(
                    "the annotation {key} is not used: container {name:?} has no {kind} probe"
                ));
                continue;
            }
            does.fail(kind, probe, after);
        }
    }
}

impl ContainerBehaviour {
    /// Lets a probe fail, after some time in which it succeeds.
    fn fail(&mut self, kind: &'static str, probe: &Doc, after: Duration) {
        let period = Duration::from_secs(probe.at("/periodSeconds").as_u64().unwrap_or(10));
        let threshold = probe.at("/failureThreshold").as_u64().unwrap_or(3);
        let threshold = u32::try_from(threshold).unwrap_or(u32::MAX).max(1);
        let delay = Duration::from_secs(probe.at("/initialDelaySeconds").as_u64().unwrap_or(0));
        // The first failure comes at once, the last one that counts some periods later.
        let noticed = period.saturating_mul(threshold - 1);
        match kind {
            "readiness" if after.is_zero() => self.unready_after = Some(Duration::ZERO),
            "readiness" => self.unready_after = Some(after.saturating_add(noticed)),
            "startup" => {
                self.started_after = None;
                self.kill(delay.saturating_add(noticed), kind);
            }
            _ => self.kill(delay.max(after).saturating_add(noticed), kind),
        }
    }

    fn kill(&mut self, after: Duration, kind: &'static str) {
        if self.killed_after.is_none_or(|(earlier, _)| after < earlier) {
            self.killed_after = Some((after, kind));
        }
    }
}

fn has_container(pod: &Doc, name: &str) -> bool {
    Sort::all_of(pod).any(|(_, container)| container.str_at("/name") == name)
}

fn seconds(container: &Doc, pointer: &str) -> Duration {
    Duration::from_secs(container.at(pointer).as_u64().unwrap_or(0))
}

/// When containers exit of which no annotation says so.
fn default_exit(pod: &Doc, sort: Sort, options: &Options) -> Option<Duration> {
    match sort {
        Sort::Init => Some(Duration::ZERO),
        Sort::Main => ends_by_itself(pod).then_some(options.exit_after),
        Sort::Sidecar | Sort::Ephemeral => None,
    }
}

/// Returns true if the restart policy of a pod says that its containers have work to finish.
fn ends_by_itself(pod: &Doc) -> bool {
    matches!(pod.str_at("/spec/restartPolicy"), "Never" | "OnFailure")
}
