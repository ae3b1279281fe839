//! Cells that are more than one value of the object.

use std::time::Duration;

use windlass_core::{Doc, Kind, LabelSelector, Selector, Time};

/// The time passed since a moment, in the short words of upstream.
pub(super) fn since(moment: &Doc, now: Time) -> Doc {
    match moment.as_str().map(str::parse::<Time>) {
        Some(Ok(moment)) => human(now.since(moment)).into(),
        _ => "<unknown>".into(),
    }
}

/// A duration with about two digits of precision.
pub(super) fn human(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let seconds = duration.as_secs();
    let two = |large: u64, large_name: &str, small: u64, small_name: &str| {
        let (whole, rest) = (seconds / large, seconds % large / small);
        if rest == 0 {
            format!("{whole}{large_name}")
        } else {
            format!("{whole}{large_name}{rest}{small_name}")
        }
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

pub(super) fn template_containers(object: &Doc) -> Doc {
    join(object.at("/spec/template/spec/containers").items(), "/name")
}

pub(super) fn template_images(object: &Doc) -> Doc {
    join(
        object.at("/spec/template/spec/containers").items(),
        "/image",
    )
}

/// The selector of a workload in its text form.
pub(super) fn selector(object: &Doc) -> Doc {
    let selector = object.at("/spec/selector");
    // Replication controllers select by plain labels.
    if selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none() {
        return plain_selector(object);
    }
    match selector
        .decode::<LabelSelector>()
        .map(|parsed| Selector::try_from(&parsed))
    {
        Ok(Ok(selector)) => selector.to_string().into(),
        _ => "<error>".into(),
    }
}

/// A selector that is a plain map of labels.
pub(super) fn plain_selector(object: &Doc) -> Doc {
    pairs(object.at("/spec/selector"))
}

pub(super) fn node_selector(object: &Doc) -> Doc {
    pairs(object.at("/spec/template/spec/nodeSelector"))
}

pub(super) fn ready_of_wanted(object: &Doc) -> Doc {
    let ready = count(object.at("/status/readyReplicas"));
    format!("{ready}/{}", count(object.at("/spec/replicas"))).into()
}

pub(super) fn updated(object: &Doc) -> Doc {
    count(object.at("/status/updatedReplicas")).into()
}

pub(super) fn available(object: &Doc) -> Doc {
    count(object.at("/status/availableReplicas")).into()
}

pub(super) fn pod_ready(pod: &Doc) -> Doc {
    let statuses = pod.at("/status/containerStatuses").items();
    let ready = statuses
        .iter()
        .filter(|status| *status.at("/ready") == true)
        .count();
    format!("{ready}/{}", pod.at("/spec/containers").items().len()).into()
}

/// The one word that says how a pod is.
pub(super) fn pod_status(pod: &Doc) -> Doc {
    let phase = pod.str_at("/status/phase");
    let mut word = match pod.str_at("/status/reason") {
        "" => phase.to_owned(),
        reason => reason.to_owned(),
    };
    let scheduled = condition(pod, "PodScheduled");
    if scheduled.is_some_and(|scheduled| scheduled.str_at("/reason") == "SchedulingGated") {
        "SchedulingGated".clone_into(&mut word);
    }
    if let Some(init) = init_status(pod) {
        word = init;
    } else if let Some(container) = container_status(pod, &word) {
        word = container;
    }
    if pod.meta().is_deleting() {
        let lost = pod.str_at("/status/reason") == "NodeLost";
        let ended = matches!(phase, "Succeeded" | "Failed");
        if lost {
            "Unknown".clone_into(&mut word);
        } else if !ended {
            "Terminating".clone_into(&mut word);
        }
    }
    word.into()
}

/// What the first init container that is not done says.
fn init_status(pod: &Doc) -> Option<String> {
    let statuses = pod.at("/status/initContainerStatuses").items();
    let total = pod.at("/spec/initContainers").items().len();
    for (index, status) in statuses.iter().enumerate() {
        let terminated = status.at("/state/terminated");
        let is_sidecar = pod.at("/spec/initContainers").items().iter().any(|spec| {
            spec.str_at("/name") == status.str_at("/name")
                && spec.str_at("/restartPolicy") == "Always"
        });
        if *terminated.at("/exitCode") == 0 || is_sidecar && *status.at("/started") == true {
            continue;
        }
        let waiting = status.str_at("/state/waiting/reason");
        return Some(if terminated.is_null() {
            match waiting {
                "" | "PodInitializing" => format!("Init:{index}/{total}"),
                reason => format!("Init:{reason}"),
            }
        } else {
            format!("Init:{}", ended(terminated))
        });
    }
    None
}

/// What the first container with something to say says.
fn container_status(pod: &Doc, before: &str) -> Option<String> {
    let mut word = None;
    let mut has_running = false;
    for status in pod.at("/status/containerStatuses").items().iter().rev() {
        let terminated = status.at("/state/terminated");
        let waiting = status.str_at("/state/waiting/reason");
        if !waiting.is_empty() {
            word = Some(waiting.to_owned());
        } else if !terminated.is_null() {
            word = Some(ended(terminated));
        } else if *status.at("/ready") == true && !status.at("/state/running").is_null() {
            has_running = true;
        }
    }
    let current = word.as_deref().unwrap_or(before);
    if current == "Completed" && has_running {
        let ready = condition(pod, "Ready").is_some_and(|ready| ready.str_at("/status") == "True");
        return Some(if ready { "Running" } else { "NotReady" }.to_owned());
    }
    word
}

/// Why a container ended.
fn ended(terminated: &Doc) -> String {
    match (
        terminated.str_at("/reason"),
        terminated.at("/signal").as_i64().unwrap_or(0),
    ) {
        ("", 0) => format!("ExitCode:{}", count(terminated.at("/exitCode"))),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

pub(super) fn pod_restarts(pod: &Doc, now: Time) -> Doc {
    let statuses = pod.at("/status/containerStatuses").items();
    let restarts: i64 = statuses
        .iter()
        .map(|status| count(status.at("/restartCount")))
        .sum();
    let last = statuses
        .iter()
        .filter_map(|status| {
            status
                .str_at("/lastState/terminated/finishedAt")
                .parse::<Time>()
                .ok()
        })
        .max();
    match last {
        Some(last) if restarts > 0 => format!("{restarts} ({} ago)", human(now.since(last))).into(),
        _ => restarts.to_string().into(),
    }
}

pub(super) fn pod_gates(pod: &Doc) -> Doc {
    let gates = pod.at("/spec/readinessGates").items();
    if gates.is_empty() {
        return Doc::NULL;
    }
    let is_met = |gate: &&Doc| {
        condition(pod, gate.str_at("/conditionType"))
            .is_some_and(|condition| condition.str_at("/status") == "True")
    };
    format!("{}/{}", gates.iter().filter(is_met).count(), gates.len()).into()
}

pub(super) fn job_status(job: &Doc) -> Doc {
    let is_true = |kind: &str| {
        condition(job, kind).is_some_and(|condition| condition.str_at("/status") == "True")
    };
    let words = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let found = words
        .into_iter()
        .find(|(kind, _)| is_true(kind))
        .map(|(_, word)| word);
    match found {
        Some(word @ ("Complete" | "Failed")) => word.into(),
        _ if job.meta().is_deleting() => "Terminating".into(),
        Some(word) => word.into(),
        None => "Running".into(),
    }
}

pub(super) fn job_completions(job: &Doc) -> Doc {
    let done = count(job.at("/status/succeeded"));
    match job.at("/spec/completions").as_i64() {
        Some(wanted) => format!("{done}/{wanted}").into(),
        None => match count(job.at("/spec/parallelism")) {
            parallel if parallel > 1 => format!("{done}/1 of {parallel}").into(),
            _ => format!("{done}/1").into(),
        },
    }
}

pub(super) fn job_duration(job: &Doc, now: Time) -> Doc {
    let time = |pointer| job.str_at(pointer).parse::<Time>().ok();
    match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => Doc::from(""),
        (Some(start), end) => human(end.unwrap_or(now).since(start)).into(),
    }
}

pub(super) fn active_jobs(cron_job: &Doc) -> Doc {
    cron_job.at("/status/active").items().len().into()
}

pub(super) fn external_addresses(service: &Doc) -> Doc {
    let external = service.at("/spec/externalIPs").items();
    if service.str_at("/spec/type") == "ExternalName" {
        return service.at("/spec/externalName").clone();
    }
    let balancer = service.at("/status/loadBalancer/ingress").items();
    let addresses: Vec<&str> = balancer
        .iter()
        .map(|entry| match entry.str_at("/ip") {
            "" => entry.str_at("/hostname"),
            ip => ip,
        })
        .chain(external.iter().filter_map(Doc::as_str))
        .collect();
    match (addresses.is_empty(), service.str_at("/spec/type")) {
        (true, "LoadBalancer") => "<pending>".into(),
        (true, _) => Doc::NULL,
        (false, _) => addresses.join(",").into(),
    }
}

pub(super) fn service_ports(service: &Doc) -> Doc {
    let show = |port: &Doc| {
        let (number, protocol) = (count(port.at("/port")), port.str_at("/protocol"));
        match port.at("/nodePort").as_i64() {
            Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    };
    list(service.at("/spec/ports").items().iter().map(show))
}

pub(super) fn endpoints(endpoints: &Doc) -> Doc {
    let subsets = endpoints.at("/subsets").items();
    let pairs = subsets.iter().flat_map(|subset| {
        let addresses = subset.at("/addresses").items().iter();
        let ports = subset.at("/ports").items();
        addresses.flat_map(move |address| {
            ports
                .iter()
                .map(move |port| format!("{}:{}", address.str_at("/ip"), count(port.at("/port"))))
        })
    });
    first_three(&pairs.collect::<Vec<_>>())
}

pub(super) fn slice_ports(slice: &Doc) -> Doc {
    let show = |port: &Doc| {
        port.at("/port")
            .as_i64()
            .map_or("*".to_owned(), |n| n.to_string())
    };
    let ports: Vec<String> = slice.at("/ports").items().iter().map(show).collect();
    if ports.is_empty() {
        "<unset>".into()
    } else {
        first_three(&ports)
    }
}

pub(super) fn slice_addresses(slice: &Doc) -> Doc {
    let addresses: Vec<String> = slice
        .at("/endpoints")
        .items()
        .iter()
        .flat_map(|endpoint| endpoint.at("/addresses").items())
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    if addresses.is_empty() {
        "<unset>".into()
    } else {
        first_three(&addresses)
    }
}

pub(super) fn ingress_hosts(ingress: &Doc) -> Doc {
    let rules = ingress.at("/spec/rules").items();
    let hosts: Vec<String> = rules
        .iter()
        .map(|rule| rule.str_at("/host"))
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect();
    if hosts.is_empty() {
        "*".into()
    } else {
        first_three(&hosts)
    }
}

pub(super) fn ingress_address(ingress: &Doc) -> Doc {
    let entries = ingress.at("/status/loadBalancer/ingress").items();
    let addresses: Vec<&str> = entries
        .iter()
        .map(|entry| match entry.str_at("/ip") {
            "" => entry.str_at("/hostname"),
            ip => ip,
        })
        .collect();
    addresses.join(",").into()
}

pub(super) fn ingress_ports(ingress: &Doc) -> Doc {
    if ingress.at("/spec/tls").items().is_empty() {
        "80".into()
    } else {
        "80, 443".into()
    }
}

pub(super) fn node_status(node: &Doc) -> Doc {
    let ready = condition(node, "Ready");
    let word = match ready.map(|ready| ready.str_at("/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if *node.at("/spec/unschedulable") == true {
        return format!("{word},SchedulingDisabled").into();
    }
    word.into()
}

pub(super) fn node_roles(node: &Doc) -> Doc {
    let labels = node.meta().labels();
    let mut roles: Vec<String> = labels
        .iter()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => Some(role.to_owned()),
                _ if key == "kubernetes.io/role" && !value.is_empty() => Some(value.to_owned()),
                _ => None,
            },
        )
        .collect();
    roles.sort();
    list(roles.into_iter())
}

pub(super) fn event_last_seen(event: &Doc, now: Time) -> Doc {
    let candidates = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/firstTimestamp",
    ];
    let found = candidates
        .iter()
        .map(|at| event.at(at))
        .find(|time| !time.is_null());
    since(found.unwrap_or(&Doc::NULL), now)
}

pub(super) fn event_object(event: &Doc) -> Doc {
    let object = event
        .get("involvedObject")
        .unwrap_or_else(|| event.at("/regarding"));
    let kind = object.str_at("/kind").to_ascii_lowercase();
    match object.str_at("/name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

pub(super) fn event_message(event: &Doc) -> Doc {
    let text = match event.str_at("/message") {
        "" => event.str_at("/note"),
        text => text,
    };
    text.trim().into()
}

pub(super) fn data_count(object: &Doc) -> Doc {
    let len = |key| {
        object
            .get(key)
            .and_then(Doc::as_object)
            .map_or(0, windlass_core::Object::len)
    };
    Doc::from(len("data") + len("binaryData"))
}

pub(super) fn access_modes(object: &Doc) -> Doc {
    modes(object.at("/spec/accessModes"))
}

/// Access modes in their short form.
pub(super) fn modes(modes: &Doc) -> Doc {
    let short = |mode: &Doc| match mode.as_str()? {
        "ReadWriteOnce" => Some("RWO"),
        "ReadOnlyMany" => Some("ROX"),
        "ReadWriteMany" => Some("RWX"),
        "ReadWriteOncePod" => Some("RWOP"),
        _ => None,
    };
    let modes: Vec<&str> = modes.items().iter().filter_map(short).collect();
    modes.join(",").into()
}

pub(super) fn claim_ref(volume: &Doc) -> Doc {
    let claim = volume.at("/spec/claimRef");
    if claim.is_null() {
        return Doc::from("");
    }
    format!("{}/{}", claim.str_at("/namespace"), claim.str_at("/name")).into()
}

pub(super) fn role_ref(binding: &Doc) -> Doc {
    format!(
        "{}/{}",
        binding.str_at("/roleRef/kind"),
        binding.str_at("/roleRef/name")
    )
    .into()
}

pub(super) fn claim_state(claim: &Doc) -> Doc {
    let mut words = Vec::new();
    if claim.meta().is_deleting() {
        words.push("deleted");
    }
    let is_allocated = !claim.at("/status/allocation").is_null();
    let is_reserved = !claim.at("/status/reservedFor").items().is_empty();
    match (is_allocated, is_reserved) {
        (true, true) => words.extend(["allocated", "reserved"]),
        (true, false) => words.push("allocated"),
        (false, _) => words.push("pending"),
    }
    words.join(",").into()
}

fn condition<'a>(object: &'a Doc, kind: &str) -> Option<&'a Doc> {
    let conditions = object.at("/status/conditions").items();
    conditions
        .iter()
        .find(|condition| condition.str_at("/type") == kind)
}

fn count(value: &Doc) -> i64 {
    value.as_i64().unwrap_or(0)
}

pub(super) fn join(items: &[Doc], pointer: &str) -> Doc {
    list(items.iter().map(|item| item.str_at(pointer).to_owned()))
}

fn list(items: impl Iterator<Item = String>) -> Doc {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        Doc::NULL
    } else {
        items.join(",").into()
    }
}

/// A map of labels as `a=b,c=d`.
pub(super) fn pairs(map: &Doc) -> Doc {
    let Kind::Object(map) = map.kind() else {
        return Doc::NULL;
    };
    list(
        map.iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())),
    )
}

/// At most three items and how many more there are.
fn first_three(items: &[String]) -> Doc {
    match items.len() {
        0 => Doc::NULL,
        1..=3 => items.join(",").into(),
        more => format!("{} + {} more...", items[..3].join(","), more - 3).into(),
    }
}
