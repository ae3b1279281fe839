//! The status of a pretend pod, as a kubelet would write it.

use windlass_core::{Doc, Object, Time, doc};

use super::{
    behaviour::Behaviour,
    container::statuses,
    run::{Ending, Run, Stage},
};

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) host: String,
    pub(super) pod: String,
}

/// The pod with the status that it should have; the same document if nothing is new.
pub(super) fn with_status(
    pod: &Doc,
    run: &Run,
    does: &Behaviour,
    addresses: &Addresses,
    now: Time,
) -> Doc {
    let old = pod.at("/status");
    let mut status = old.as_object().cloned().unwrap_or_else(Object::empty);
    let generation = pod.meta().generation();
    let (containers, inits) = statuses(pod, run, does);
    let conditions = conditions(pod, run, now, generation);
    let fields = [
        ("phase", Doc::from(phase(run))),
        ("conditions", conditions),
        ("containerStatuses", containers),
        ("hostIP", (&addresses.host).into()),
        ("hostIPs", doc!([{ "ip": (&addresses.host) }])),
    ];
    for (key, value) in fields {
        status = status.with(key, value);
    }
    if !inits.items().is_empty() {
        status = status.with("initContainerStatuses", inits);
    }
    if old.get("startTime").is_none() {
        status = status.with("startTime", now.to_string().into());
    }
    if generation > 0 {
        status = status.with("observedGeneration", generation.into());
    }
    if run.has_started() {
        status = status.with("podIP", (&addresses.pod).into());
        status = status.with("podIPs", doc!([{ "ip": (&addresses.pod) }]));
    }
    if run.stage == Stage::Ended(Ending::DeadlineExceeded) {
        let message = "Pod was active on the node longer than the specified deadline";
        status = status.with("reason", "DeadlineExceeded".into());
        status = status.with("message", message.into());
    }
    pod.with("/status", Doc::from(status))
        .unwrap_or_else(|_| pod.clone())
}

fn phase(run: &Run) -> &'static str {
    match run.stage {
        Stage::Creating => "Pending",
        Stage::Running { .. } | Stage::BackOff => "Running",
        Stage::Ended(Ending::Exited(0) | Ending::Stopped(0)) => "Succeeded",
        Stage::Ended(_) => "Failed",
    }
}

/// One condition, before it is compared with what is there.
struct Claim {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Claim {
    fn holds(kind: &'static str) -> Self {
        Self {
            kind,
            is_true: true,
            reason: "",
            message: String::new(),
        }
    }

    fn fails(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            is_true: false,
            reason,
            message,
        }
    }
}

/// The conditions in the order of a kubelet, then those that others have set.
fn conditions(pod: &Doc, run: &Run, now: Time, generation: i64) -> Doc {
    let old = pod.at("/status/conditions").items();
    let claims = claims(pod, run);
    let is_own = |doc: &&Doc| claims.iter().any(|claim| doc.str_at("/type") == claim.kind);
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
    if generation > 0 {
        fields.push(("observedGeneration", generation.into()));
    }
    if !claim.reason.is_empty() {
        fields.push(("reason", claim.reason.into()));
    }
    if !claim.message.is_empty() {
        fields.push(("message", (&claim.message).into()));
    }
    fields.into_iter().collect::<Object>().into()
}

fn claims(pod: &Doc, run: &Run) -> Vec<Claim> {
    let ready = |kind: &'static str| match run.stage {
        Stage::Running { is_ready: true } => Claim::holds(kind),
        _ if !run.has_started() => Claim::fails(kind, "ContainersNotReady", unready(pod)),
        Stage::Ended(Ending::Exited(0) | Ending::Stopped(0)) => {
            Claim::fails(kind, "PodCompleted", String::new())
        }
        Stage::Ended(_) => Claim::fails(kind, "PodFailed", String::new()),
        _ => Claim::fails(kind, "ContainersNotReady", unready(pod)),
    };
    let is_done = matches!(
        run.stage,
        Stage::Ended(Ending::Exited(0) | Ending::Stopped(0))
    );
    let initialized = match (run.has_started(), incomplete(pod)) {
        (false, Some(message)) => Claim::fails("Initialized", "ContainersNotInitialized", message),
        _ => Claim {
            reason: if is_done { "PodCompleted" } else { "" },
            ..Claim::holds("Initialized")
        },
    };
    let has_sandbox = matches!(run.stage, Stage::Running { .. } | Stage::BackOff);
    let sandbox = match has_sandbox {
        true => Claim::holds("PodReadyToStartContainers"),
        false => Claim::fails("PodReadyToStartContainers", "", String::new()),
    };
    let mut pod_ready = ready("Ready");
    if pod_ready.is_true
        && let Some(message) = closed_gate(pod)
    {
        pod_ready = Claim::fails("Ready", "ReadinessGatesNotReady", message);
    }
    vec![
        sandbox,
        initialized,
        pod_ready,
        ready("ContainersReady"),
        Claim::holds("PodScheduled"),
    ]
}

fn unready(pod: &Doc) -> String {
    format!(
        "containers with unready status: [{}]",
        names(pod, "/spec/containers")
    )
}

fn incomplete(pod: &Doc) -> Option<String> {
    let names = names(pod, "/spec/initContainers");
    (!names.is_empty()).then(|| format!("containers with incomplete status: [{names}]"))
}

fn names(pod: &Doc, pointer: &str) -> String {
    let containers = pod.at(pointer).items().iter();
    let names: Vec<&str> = containers.map(|one| one.str_at("/name")).collect();
    names.join(" ")
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
