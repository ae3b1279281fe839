//! The status of a pretend pod, as a kubelet would write it.

use tokio::time::Instant;
use windlass_core::{Change, Difference, Doc, Object, Segment, Time, doc};

use super::{
    behaviour::Behaviour,
    container::statuses,
    resize::Resize,
    run::{ContainerRun, Ending, Run, Sort, may_restart_all},
};
use crate::pod::is_pod_terminal;

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) host: String,
    pub(super) pod: String,
}

/// Fields of a status that tell when something has happened.
const TIMES: [&str; 5] = [
    "finishedAt",
    "lastProbeTime",
    "lastTransitionTime",
    "startTime",
    "startedAt",
];

/// Returns true if two statuses differ in timestamps at most. Whatever happens to a pod changes
/// more than those: a restart has a count, and a condition a status.
pub(super) fn says_same(old: &Doc, new: &Doc) -> bool {
    let is_time = |difference: &Difference| {
        let (Some(Segment::Key(key)), Change::Changed(old, new)) =
            (difference.path.segments().last(), &difference.change)
        else {
            return false;
        };
        TIMES.contains(&key.as_str()) && old.as_str().is_some() && new.as_str().is_some()
    };
    old == new || old.diff(new).iter().all(is_time)
}

/// The pod with the status that it should have; the same document if nothing is new. A pod that has
/// ended keeps the status that it ended with.
pub(super) fn with_status(
    pod: &Doc,
    run: &Run,
    does: &Behaviour,
    addresses: &Addresses,
    (now, wall): (Instant, Time),
) -> Doc {
    if is_pod_terminal(pod) {
        return pod.clone();
    }
    let old = pod.at("/status");
    let mut status = old.as_object().cloned().unwrap_or_else(Object::empty);
    let generation = pod.meta().generation();
    let lists = statuses(pod, run, does, now);
    let claims = claims(pod, run, does, now);
    let fields = [
        ("phase", Doc::from(phase(run))),
        ("conditions", conditions(pod, &claims, wall, generation)),
        ("containerStatuses", lists.mains.into()),
        ("hostIP", (&addresses.host).into()),
        ("hostIPs", doc!([{ "ip": (&addresses.host) }])),
    ];
    for (key, value) in fields {
        status = status.with(key, value);
    }
    for (key, list) in [
        ("initContainerStatuses", lists.inits),
        ("ephemeralContainerStatuses", lists.ephemeral),
    ] {
        if !list.is_empty() {
            status = status.with(key, list.into());
        }
    }
    if old.get("startTime").is_none() {
        status = status.with("startTime", wall.to_string().into());
    }
    if generation > 0 {
        status = status.with("observedGeneration", generation.into());
    }
    if run.has_sandbox {
        status = status.with("podIP", (&addresses.pod).into());
        status = status.with("podIPs", doc!([{ "ip": (&addresses.pod) }]));
    }
    if run.ended == Some(Ending::DeadlineExceeded) {
        let message = "Pod was active on the node longer than the specified deadline";
        status = status.with("reason", "DeadlineExceeded".into());
        status = status.with("message", message.into());
    }
    pod.with("/status", Doc::from(status))
        .unwrap_or_else(|_| pod.clone())
}

fn phase(run: &Run) -> &'static str {
    if run.ended.is_some() {
        return if run.has_succeeded() {
            "Succeeded"
        } else {
            "Failed"
        };
    }
    let mut mains = run.containers.iter().filter(|one| one.sort == Sort::Main);
    match run.is_initialized && mains.all(ContainerRun::has_run) {
        true => "Running",
        false => "Pending",
    }
}

/// One condition, before it is compared with what is there.
struct Claim {
    kind: &'static str,
    is_true: bool,
    reason: String,
    message: String,
    /// The generation that the condition is about, if it is not the present one.
    generation: Option<i64>,
}

impl Claim {
    fn holds(kind: &'static str) -> Self {
        Self {
            kind,
            is_true: true,
            reason: String::new(),
            message: String::new(),
            generation: None,
        }
    }

    fn fails(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            is_true: false,
            reason: reason.to_owned(),
            message,
            generation: None,
        }
    }
}

/// The conditions in the order of a kubelet, then those that others have set.
fn conditions(pod: &Doc, claims: &[Claim], now: Time, generation: i64) -> Doc {
    let old = pod.at("/status/conditions").items();
    let is_own = |doc: &&Doc| {
        let kind = doc.str_at("/type");
        claims.iter().any(|claim| kind == claim.kind) || Resize::CONDITIONS.contains(&kind)
    };
    let mut all: Vec<Doc> = claims
        .iter()
        .map(|claim| {
            let before = old.iter().find(|doc| doc.str_at("/type") == claim.kind);
            condition(claim, before, now, generation)
        })
        .collect();
    all.extend(old.iter().filter(|doc| !is_own(doc)).cloned());
    all.into()
}

fn condition(claim: &Claim, before: Option<&Doc>, now: Time, generation: i64) -> Doc {
    let status = if claim.is_true { "True" } else { "False" };
    let same = before.filter(|before| before.str_at("/status") == status);
    let since = same.and_then(|before| before.get("lastTransitionTime"));
    let mut fields = vec![
        ("type", Doc::from(claim.kind)),
        ("status", status.into()),
        ("lastProbeTime", Doc::NULL),
        (
            "lastTransitionTime",
            since.cloned().unwrap_or_else(|| now.to_string().into()),
        ),
    ];
    let generation = claim.generation.unwrap_or(generation);
    if generation > 0 {
        fields.push(("observedGeneration", generation.into()));
    }
    if !claim.reason.is_empty() {
        fields.push(("reason", (&claim.reason).into()));
    }
    if !claim.message.is_empty() {
        fields.push(("message", (&claim.message).into()));
    }
    fields.into_iter().collect::<Object>().into()
}

fn claims(pod: &Doc, run: &Run, does: &Behaviour, now: Instant) -> Vec<Claim> {
    let has_sandbox = run.has_sandbox && run.ended.is_none();
    let sandbox = match has_sandbox {
        true => Claim::holds("PodReadyToStartContainers"),
        false => Claim::fails("PodReadyToStartContainers", "", String::new()),
    };
    let mut pod_ready = ready("Ready", run, does, now);
    if pod_ready.is_true
        && let Some(message) = closed_gate(pod)
    {
        pod_ready = Claim::fails("Ready", "ReadinessGatesNotReady", message);
    }
    let mut all = vec![
        sandbox,
        initialized(run, does, now),
        pod_ready,
        ready("ContainersReady", run, does, now),
        Claim::holds("PodScheduled"),
    ];
    if may_restart_all(pod) {
        let reason = terminal_reason(run).unwrap_or("");
        all.push(Claim::fails(
            "AllContainersRestarting",
            reason,
            String::new(),
        ));
    }
    all.extend(run.resize.condition().map(|found| Claim {
        reason: found.reason.to_owned(),
        message: found.message.to_owned(),
        generation: Some(found.generation),
        ..Claim::holds(found.kind)
    }));
    all
}

/// The reason of conditions of a pod whose containers have run and ended.
fn terminal_reason(run: &Run) -> Option<&'static str> {
    match run.ended {
        None | Some(Ending::NeverStarted) => None,
        Some(_) if run.has_succeeded() => Some("PodCompleted"),
        Some(_) => Some("PodFailed"),
    }
}

/// The condition `Ready` without readiness gates, and `ContainersReady`.
fn ready(kind: &'static str, run: &Run, does: &Behaviour, now: Instant) -> Claim {
    if let Some(reason) = terminal_reason(run) {
        return Claim::fails(kind, reason, String::new());
    }
    let all = run.containers.iter().zip(&does.containers);
    let unready = all.filter(|(one, does)| {
        matches!(one.sort, Sort::Main | Sort::Sidecar) && !one.is_ready(does, now)
    });
    let names: Vec<&str> = unready.map(|(one, _)| &*one.name).collect();
    match names.is_empty() {
        true => Claim::holds(kind),
        false => {
            let message = format!("containers with unready status: [{}]", names.join(" "));
            Claim::fails(kind, "ContainersNotReady", message)
        }
    }
}

fn initialized(run: &Run, does: &Behaviour, now: Instant) -> Claim {
    let kind = "Initialized";
    if run.ended.is_some() && run.has_succeeded() {
        return Claim {
            reason: "PodCompleted".to_owned(),
            ..Claim::holds(kind)
        };
    }
    let all = run.containers.iter().zip(&does.containers);
    let incomplete = all.filter(|(one, does)| match one.sort {
        Sort::Init => !one.has_succeeded(),
        Sort::Sidecar => !run.is_initialized && !one.is_started(does, now),
        Sort::Main | Sort::Ephemeral => false,
    });
    let names: Vec<&str> = incomplete.map(|(one, _)| &*one.name).collect();
    match names.is_empty() {
        true => Claim::holds(kind),
        false => {
            let message = format!("containers with incomplete status: [{}]", names.join(" "));
            Claim::fails(kind, "ContainersNotInitialized", message)
        }
    }
}

/// What others must say before the pod is ready, and do not.
fn closed_gate(pod: &Doc) -> Option<String> {
    let gates = pod.at("/spec/readinessGates").items().iter();
    let found = gates.filter_map(|gate| {
        let kind = gate.str_at("/conditionType");
        match windlass_core::condition(pod, kind) {
            None => Some(format!(
                "corresponding condition of pod readiness gate {kind:?} does not exist."
            )),
            Some(condition) if condition.is_true() => None,
            Some(condition) => Some(format!(
                "the status of pod readiness gate {kind:?} is not \"True\", but {}",
                condition.status
            )),
        }
    });
    let found: Vec<String> = found.collect();
    (!found.is_empty()).then(|| found.join(", "))
}
