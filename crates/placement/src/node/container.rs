//! The status of the containers of a pretend pod.

use windlass_core::{Doc, Object, Str, Time, doc};

use super::{
    behaviour::Behaviour,
    run::{Ending, PastRun, Run, Stage},
};

/// How a container has ended of which nothing is known.
const UNKNOWN_REASON: &str = "ContainerStatusUnknown";
const UNKNOWN_MESSAGE: &str = "The container could not be located when the pod was terminated";
const UNKNOWN_CODE: i64 = 137;

/// The parts of a pod whose containers have a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Runs once, before the others.
    Init,
    /// Starts before the others and runs beside them.
    SideCar,
    Main,
}

/// The status of the containers and of the init containers.
pub(super) fn statuses(pod: &Doc, run: &Run, does: &Behaviour) -> (Doc, Doc) {
    let spec = pod.at("/spec");
    let inits = spec.at("/initContainers").items().iter();
    let inits = inits.map(|container| {
        let sort = match container.str_at("/restartPolicy") {
            "Always" => Sort::SideCar,
            _ => Sort::Init,
        };
        status(pod, container, sort, run, does)
    });
    let inits: Vec<Doc> = inits.collect();
    let containers = spec.at("/containers").items().iter();
    let containers = containers.map(|container| status(pod, container, Sort::Main, run, does));
    let containers: Vec<Doc> = containers.collect();
    (containers.into(), inits.into())
}

fn status(pod: &Doc, container: &Doc, sort: Sort, run: &Run, does: &Behaviour) -> Doc {
    let name = container.str_at("/name");
    let state = state(pod, name, sort, run, does);
    let is_up = matches!(run.stage, Stage::Running { .. });
    let is_ready = match (sort, run.stage) {
        (Sort::Init, _) => run.has_started(),
        (_, Stage::Running { is_ready }) => is_ready,
        _ => false,
    };
    let (image, id) = match run.has_started() {
        true => (
            format!("windlass://{}", container.str_at("/image")),
            id(pod, name, run.restarts),
        ),
        false => (String::new(), String::new()),
    };
    let restarts = if sort == Sort::Init { 0 } else { run.restarts };
    let last = run
        .past
        .filter(|_| sort != Sort::Init && restarts > 0 && !is_over(run));
    let last =
        last.map(|past| terminated(past, reason_of(past.exit_code), &last_id(pod, name, run)));
    let mut fields = vec![
        ("name", Doc::from(name)),
        ("image", container.at("/image").clone()),
        ("imageID", image.into()),
        ("state", state),
        ("lastState", last.unwrap_or_else(Doc::empty_object)),
        ("ready", is_ready.into()),
        ("restartCount", restarts.into()),
        ("started", (is_up && sort != Sort::Init).into()),
    ];
    if !id.is_empty() {
        fields.push(("containerID", id.into()));
    }
    let resources = container.at("/resources");
    if resources.as_object().is_some_and(|given| !given.is_empty()) {
        fields.push(("resources", resources.clone()));
        let requests = resources.get("requests");
        fields.extend(requests.map(|requests| ("allocatedResources", requests.clone())));
    }
    fields.into_iter().collect::<Object>().into()
}

fn is_over(run: &Run) -> bool {
    matches!(run.stage, Stage::Ended(_))
}

fn state(pod: &Doc, name: &str, sort: Sort, run: &Run, does: &Behaviour) -> Doc {
    match (run.stage, sort) {
        (Stage::Creating, Sort::Main) if has_inits(pod) => waiting("PodInitializing", ""),
        (Stage::Creating, _) => waiting(reason_to_wait(does), ""),
        (Stage::Ended(Ending::NeverStarted), _) => match is_given_up(pod, name) {
            true => unknown(),
            false if sort == Sort::Main => waiting("PodInitializing", ""),
            false => waiting(reason_to_wait(does), ""),
        },
        (_, Sort::Init) => {
            let past = PastRun {
                exit_code: 0,
                started: run.started,
                ended: run.started,
            };
            terminated(past, "Completed", &id(pod, name, 0))
        }
        (Stage::Running { .. }, _) => {
            doc!({ "running": { "startedAt": (run.started.to_string()) } })
        }
        (Stage::BackOff, _) if run.restart_delay().is_zero() => ended(pod, name, run),
        (Stage::BackOff, _) => {
            let (delay, meta) = (run.restart_delay().as_secs(), pod.meta());
            let of = format!("{}_{}({})", meta.name(), meta.namespace(), meta.uid_str());
            let message = format!("back-off {delay}s restarting failed container={name} pod={of}");
            waiting("CrashLoopBackOff", &message)
        }
        (Stage::Ended(_), _) => ended(pod, name, run),
    }
}

fn reason_to_wait(does: &Behaviour) -> &str {
    does.never_start.as_deref().unwrap_or("ContainerCreating")
}

/// Whether a container that has never started counts as lost when its pod ends: the first one to
/// be initialized, or all if none is. The others wait for ever.
fn is_given_up(pod: &Doc, name: &str) -> bool {
    match pod.at("/spec/initContainers").items().first() {
        Some(first) => first.str_at("/name") == name,
        None => true,
    }
}

fn unknown() -> Doc {
    doc!({ "terminated": {
        "exitCode": UNKNOWN_CODE, "reason": UNKNOWN_REASON, "message": UNKNOWN_MESSAGE,
        "startedAt": null, "finishedAt": null,
    } })
}

fn has_inits(pod: &Doc) -> bool {
    !pod.at("/spec/initContainers").items().is_empty()
}

/// The containers as they have just ended.
fn ended(pod: &Doc, name: &str, run: &Run) -> Doc {
    let past = run.past.unwrap_or(PastRun {
        exit_code: 0,
        started: run.started,
        ended: run.started,
    });
    let reason = match run.stage {
        Stage::Ended(Ending::DeadlineExceeded) => "Error",
        _ => reason_of(past.exit_code),
    };
    terminated(past, reason, &id(pod, name, run.restarts))
}

fn reason_of(exit_code: i64) -> &'static str {
    if exit_code == 0 { "Completed" } else { "Error" }
}

fn waiting(reason: &str, message: &str) -> Doc {
    match message {
        "" => doc!({ "waiting": { "reason": reason } }),
        message => doc!({ "waiting": { "reason": reason, "message": message } }),
    }
}

fn terminated(past: PastRun, reason: &str, id: &str) -> Doc {
    let text = |time: Time| Str::new(&time.to_string());
    doc!({ "terminated": {
        "exitCode": (past.exit_code), "reason": reason,
        "startedAt": (text(past.started)), "finishedAt": (text(past.ended)), "containerID": id,
    } })
}

/// The id of the container that ended last.
fn last_id(pod: &Doc, name: &str, run: &Run) -> String {
    match run.stage {
        Stage::BackOff => id(pod, name, run.restarts),
        _ => id(pod, name, run.restarts - 1),
    }
}

/// The id of a container: 64 digits that repeat for the same pod, container and restart.
fn id(pod: &Doc, name: &str, restarts: i64) -> String {
    use std::fmt::Write;
    let mut digits = String::from("windlass://");
    for part in 0..4_u8 {
        // FNV-1a: ids must differ, and need not be hard to guess.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(part);
        let uid = pod.meta().uid_str().bytes();
        for byte in uid.chain(name.bytes()).chain(restarts.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let _ = write!(digits, "{hash:016x}");
    }
    digits
}
