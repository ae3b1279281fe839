//! What a pretend pod does, as its annotations say.

use std::time::Duration;

use windlass_core::Doc;
use windlass_runtime::parse_duration;

use super::Options;

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
/// The reason for which containers never start, such as `ImagePullBackOff`.
pub const NEVER_START: &str = "windlass.dev/never-start";

/// The value of [`EXIT_AFTER`] for containers that run until they are stopped.
pub const NEVER: &str = "never";

/// The exit code of a process that SIGTERM ended: work that is stopped is not done.
const TERMINATED: i64 = 143;

/// What the containers of a pod do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) start_after: Duration,
    pub(super) ready_after: Duration,
    pub(super) exit_after: Option<Duration>,
    pub(super) exit_code: i64,
    pub(super) stop_after: Duration,
    /// The code with which containers exit that are stopped in time.
    pub(super) stop_code: i64,
    pub(super) never_start: Option<String>,
}

impl Behaviour {
    pub(super) fn of(pod: &Doc, options: &Options) -> Self {
        let annotations = pod.meta().annotations();
        let duration = |key: &str| {
            let given = annotations.value(key)?;
            let read = parse_duration(given);
            if let Err(error) = &read {
                tracing::warn!(pod = %pod.meta().key(), annotation = key, %error, "ignored");
            }
            read.ok()
        };
        let crashes = annotations.value(CRASH) == Some("true");
        let exit_code = annotations.value(EXIT_CODE);
        let exit_code = exit_code.and_then(|code| code.parse().ok());
        let exit_after = match annotations.value(EXIT_AFTER) {
            Some(NEVER) => None,
            _ => duration(EXIT_AFTER)
                .or(crashes.then_some(Duration::ZERO))
                .or_else(|| ends_by_itself(pod).then_some(options.exit_after)),
        };
        Self {
            start_after: duration(START_AFTER).unwrap_or(options.start_after),
            ready_after: duration(READY_AFTER).unwrap_or_else(|| probe_delay(pod)),
            exit_after,
            exit_code: exit_code.unwrap_or(i64::from(crashes)),
            stop_code: if ends_by_itself(pod) { TERMINATED } else { 0 },
            stop_after: duration(STOP_AFTER).unwrap_or(options.stop_after),
            never_start: annotations.value(NEVER_START).map(str::to_owned),
        }
    }
}

/// Returns true if the restart policy of a pod says that its containers have work to finish.
fn ends_by_itself(pod: &Doc) -> bool {
    matches!(pod.str_at("/spec/restartPolicy"), "Never" | "OnFailure")
}

/// Probes of readiness succeed the first time.
fn probe_delay(pod: &Doc) -> Duration {
    let containers = pod.at("/spec/containers").items().iter();
    let delays = containers.map(|one| one.at("/readinessProbe/initialDelaySeconds").as_u64());
    Duration::from_secs(delays.flatten().max().unwrap_or(0))
}
