//! Cells of the kinds that are looked at less often.

use std::time::Duration;

use windlass_core::{Doc, LabelSelector, Selector, Time};

use super::cells;
use crate::kinds;

/// The text at a pointer; empty, not `<none>`, if there is none.
fn plain(object: &Doc, pointer: &str) -> Doc {
    object.str_at(pointer).into()
}

fn or_unset(value: &Doc) -> Doc {
    match value.as_str() {
        None | Some("") => "<unset>".into(),
        Some(text) => text.into(),
    }
}

/// The networks of a ServiceCIDR.
pub(super) fn service_networks(object: &Doc) -> Doc {
    let networks = object.at("/spec/cidrs").items().iter();
    let networks: Vec<&str> = networks.filter_map(Doc::as_str).collect();
    networks.join(",").into()
}

/// The object that an IPAddress belongs to.
pub(super) fn address_parent(object: &Doc) -> Doc {
    let parent = object.at("/spec/parentRef");
    if parent.is_null() {
        return "<none>".into();
    }
    let (group, resource) = (parent.str_at("/group"), parent.str_at("/resource"));
    let mut shown = match group {
        "" => resource.to_lowercase(),
        group => format!("{resource}.{group}").to_lowercase(),
    };
    for part in [parent.str_at("/namespace"), parent.str_at("/name")] {
        if !part.is_empty() {
            shown.push('/');
            shown.push_str(part);
        }
    }
    shown.into()
}

pub(super) fn volume_name(claim: &Doc) -> Doc {
    plain(claim, "/spec/volumeName")
}

pub(super) fn storage_class(object: &Doc) -> Doc {
    plain(object, "/spec/storageClassName")
}

pub(super) fn attributes_class(object: &Doc) -> Doc {
    or_unset(object.at("/spec/volumeAttributesClassName"))
}

pub(super) fn volume_reason(volume: &Doc) -> Doc {
    plain(volume, "/status/reason")
}

/// A claim has a capacity once it is bound.
pub(super) fn claim_capacity(claim: &Doc) -> Doc {
    match claim.str_at("/spec/volumeName") {
        "" => "".into(),
        _ => plain(claim, "/status/capacity/storage"),
    }
}

pub(super) fn claim_modes(claim: &Doc) -> Doc {
    match claim.str_at("/spec/volumeName") {
        "" => "".into(),
        _ => cells::modes(claim.at("/status/accessModes")),
    }
}

fn amount(value: &Doc) -> Doc {
    match value {
        none if none.is_null() => "N/A".into(),
        number if number.as_i64().is_some() => number.to_string().into(),
        text => text.clone(),
    }
}

pub(super) fn min_available(budget: &Doc) -> Doc {
    amount(budget.at("/spec/minAvailable"))
}

pub(super) fn max_unavailable(budget: &Doc) -> Doc {
    amount(budget.at("/spec/maxUnavailable"))
}

/// The part of a quota that starts with `limits.`, or the other.
fn quota(quota: &Doc, is_limit: bool) -> Doc {
    let hard = quota.at("/status/hard").as_object();
    let parts: Vec<String> = hard
        .into_iter()
        .flat_map(|hard| hard.iter())
        .filter(|(name, _)| name.starts_with("limits.") == is_limit)
        .map(|(name, most)| {
            let used = quota.at("/status/used").get(name);
            let used = used.and_then(Doc::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", most.as_str().unwrap_or_default())
        })
        .collect();
    parts.join(", ").into()
}

pub(super) fn quota_requests(object: &Doc) -> Doc {
    quota(object, false)
}

pub(super) fn quota_limits(object: &Doc) -> Doc {
    quota(object, true)
}

pub(super) fn scale_target(scaler: &Doc) -> Doc {
    let target = scaler.at("/spec/scaleTargetRef");
    format!("{}/{}", target.str_at("/kind"), target.str_at("/name")).into()
}

/// How many replicas a scale asks for; a zero is left out of it.
pub(super) fn desired_replicas(scale: &Doc) -> Doc {
    scale
        .at("/spec/replicas")
        .as_i64()
        .unwrap_or_default()
        .into()
}

/// Who asks for a certificate.
pub(super) fn requestor(request: &Doc) -> Doc {
    plain(request, "/spec/username")
}

/// For how long a certificate is wanted.
pub(super) fn requested_duration(request: &Doc) -> Doc {
    match request.at("/spec/expirationSeconds").as_i64() {
        Some(seconds) => {
            let seconds = u64::try_from(seconds).unwrap_or_default();
            cells::human(Duration::from_secs(seconds)).into()
        }
        None => "<none>".into(),
    }
}

/// How far a request for a certificate has come.
pub(super) fn signing_state(request: &Doc) -> Doc {
    let conditions = request.at("/status/conditions").items();
    let is = |sort: &str| conditions.iter().any(|known| *known.at("/type") == sort);
    let mut state = match (is("Denied"), is("Approved")) {
        (true, _) => "Denied".to_owned(),
        (false, true) => "Approved".to_owned(),
        (false, false) => "Pending".to_owned(),
    };
    if is("Failed") {
        state += ",Failed";
    }
    if !request.str_at("/status/certificate").is_empty() {
        state += ",Issued";
    }
    state.into()
}

/// Where an API is served: here, or by a service.
pub(super) fn api_service(service: &Doc) -> Doc {
    let at = service.at("/spec/service");
    match at.is_null() {
        true => "Local".into(),
        false => format!("{}/{}", at.str_at("/namespace"), at.str_at("/name")).into(),
    }
}

/// Whether an API is available, and if not, why.
pub(super) fn api_available(service: &Doc) -> Doc {
    let conditions = service.at("/status/conditions").items().iter();
    let mut conditions = conditions.filter(|known| *known.at("/type") == "Available");
    match conditions.next() {
        None => "Unknown".into(),
        Some(known) if *known.at("/status") == "True" => "True".into(),
        Some(known) => format!("{} ({})", known.str_at("/status"), known.str_at("/reason")).into(),
    }
}

/// Whether a component is well, as far as is known.
pub(super) fn component_health(component: &Doc) -> Doc {
    let conditions = component.at("/conditions").items().iter();
    let mut conditions = conditions.filter(|known| *known.at("/type") == "Healthy");
    match conditions.next() {
        None => "Unknown".into(),
        Some(known) if *known.at("/status") == "True" => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
    }
}

/// What a component says of itself.
pub(super) fn component_message(component: &Doc) -> Doc {
    component.str_at("/conditions/0/message").into()
}

/// What is wrong with a component.
pub(super) fn component_error(component: &Doc) -> Doc {
    component.str_at("/conditions/0/error").into()
}

/// How far the metrics of an autoscaler are from their targets.
pub(super) fn scale_metrics(scaler: &Doc) -> Doc {
    let scaler = &kinds::in_version_2(scaler);
    let wanted = scaler.at("/spec/metrics").items();
    if wanted.is_empty() {
        return "<none>".into();
    }
    let now = scaler.at("/status/currentMetrics").items();
    let mut shown: Vec<String> = Vec::new();
    for (index, metric) in wanted.iter().enumerate().take(2) {
        shown.push(scale_metric(metric, now.get(index).unwrap_or(&Doc::NULL)));
    }
    let all = shown.join(", ");
    match wanted.len() {
        0..=2 => all.into(),
        more => format!("{all} + {} more...", more - 2).into(),
    }
}

fn scale_metric(metric: &Doc, now: &Doc) -> String {
    let (key, is_named) = match metric.str_at("/type") {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (
        metric.at(&format!("/{key}/target")),
        now.at(&format!("/{key}/current")),
    );
    let sort = ["averageUtilization", "averageValue", "value"]
        .into_iter()
        .find(|sort| target.get(sort).is_some_and(|value| !value.is_null()));
    let Some(sort) = sort else {
        return "<unknown>/<auto>".to_owned();
    };
    let percent = if sort == "averageUtilization" {
        "%"
    } else {
        ""
    };
    let show = |value: Option<&Doc>| match value.map(|value| (value.as_str(), value)) {
        Some((Some(text), _)) => text.to_owned(),
        Some((None, number)) if !number.is_null() => format!("{number}{percent}"),
        _ => "<unknown>".to_owned(),
    };
    let average = match (is_named, sort) {
        (false, "averageValue") if key != "pods" => " (avg)",
        _ => "",
    };
    let shown = format!(
        "{}/{}{average}",
        show(current.get(sort)),
        show(target.get(sort))
    );
    match is_named {
        true => format!("{}: {shown}", metric.str_at(&format!("/{key}/name"))),
        false => shown,
    }
}

pub(super) fn least_replicas(scaler: &Doc) -> Doc {
    match scaler.at("/spec/minReplicas") {
        none if none.is_null() => "<unset>".into(),
        number => number.to_string().into(),
    }
}

/// The subjects of a binding of one kind.
fn subjects(binding: &Doc, kind: &str) -> Doc {
    let of_kind = binding.at("/subjects").items().iter();
    let names: Vec<String> = of_kind
        .filter(|subject| subject.str_at("/kind") == kind)
        .map(|subject| match (kind, subject.str_at("/name")) {
            ("ServiceAccount", name) => format!("{}/{name}", subject.str_at("/namespace")),
            (_, name) => name.to_owned(),
        })
        .collect();
    names.join(", ").into()
}

pub(super) fn bound_users(binding: &Doc) -> Doc {
    subjects(binding, "User")
}

pub(super) fn bound_groups(binding: &Doc) -> Doc {
    subjects(binding, "Group")
}

pub(super) fn bound_accounts(binding: &Doc) -> Doc {
    subjects(binding, "ServiceAccount")
}

fn address(node: &Doc, sort: &str) -> Doc {
    let addresses = node.at("/status/addresses").items();
    let found = addresses
        .iter()
        .find(|address| address.str_at("/type") == sort);
    found.map_or("<none>".into(), |found| plain(found, "/address"))
}

pub(super) fn internal_address(node: &Doc) -> Doc {
    address(node, "InternalIP")
}

pub(super) fn external_address(node: &Doc) -> Doc {
    address(node, "ExternalIP")
}

fn or_unknown(node: &Doc, key: &str) -> Doc {
    match node.str_at(&format!("/status/nodeInfo/{key}")) {
        "" => "<unknown>".into(),
        text => text.into(),
    }
}

pub(super) fn os_image(node: &Doc) -> Doc {
    or_unknown(node, "osImage")
}

pub(super) fn kernel(node: &Doc) -> Doc {
    or_unknown(node, "kernelVersion")
}

pub(super) fn container_runtime(node: &Doc) -> Doc {
    or_unknown(node, "containerRuntimeVersion")
}

pub(super) fn kubelet(node: &Doc) -> Doc {
    plain(node, "/status/nodeInfo/kubeletVersion")
}

fn selector_text(selector: &Doc) -> Doc {
    let parsed = selector.decode::<LabelSelector>().ok();
    let parsed = parsed.and_then(|parsed| Selector::try_from(&parsed).ok());
    match parsed.map(|parsed| parsed.to_string()) {
        Some(text) if !text.is_empty() => text.into(),
        _ => "<none>".into(),
    }
}

pub(super) fn policy_selector(policy: &Doc) -> Doc {
    selector_text(policy.at("/spec/podSelector"))
}

const JOB_TEMPLATE: &str = "/spec/jobTemplate/spec";

pub(super) fn job_containers(cron_job: &Doc) -> Doc {
    let containers = cron_job.at(&format!("{JOB_TEMPLATE}/template/spec/containers"));
    cells::join(containers.items(), "/name")
}

pub(super) fn job_images(cron_job: &Doc) -> Doc {
    let containers = cron_job.at(&format!("{JOB_TEMPLATE}/template/spec/containers"));
    cells::join(containers.items(), "/image")
}

pub(super) fn job_selector(cron_job: &Doc) -> Doc {
    selector_text(cron_job.at(&format!("{JOB_TEMPLATE}/selector")))
}

pub(super) fn suspended(cron_job: &Doc) -> Doc {
    match cron_job.at("/spec/suspend").as_bool() {
        Some(true) => "True".into(),
        Some(false) => "False".into(),
        None => "<unset>".into(),
    }
}

pub(super) fn last_schedule(cron_job: &Doc, now: Time) -> Doc {
    match cron_job.at("/status/lastScheduleTime") {
        none if none.is_null() => "<none>".into(),
        time => cells::since(time, now),
    }
}

pub(super) fn lone_containers(template: &Doc) -> Doc {
    cells::join(template.at("/template/spec/containers").items(), "/name")
}

pub(super) fn lone_images(template: &Doc) -> Doc {
    cells::join(template.at("/template/spec/containers").items(), "/image")
}

pub(super) fn lone_labels(template: &Doc) -> Doc {
    cells::pairs(template.at("/template/metadata/labels"))
}

/// The controller that owns an object, such as `daemonset.apps/web`.
pub(super) fn controller(object: &Doc) -> Doc {
    let owners = object.at("/metadata/ownerReferences").items();
    let Some(owner) = owners.iter().find(|owner| *owner.at("/controller") == true) else {
        return "<none>".into();
    };
    let group = owner.str_at("/apiVersion").split_once('/');
    let kind = owner.str_at("/kind").to_ascii_lowercase();
    let dotted = group.map_or(kind.clone(), |(group, _)| format!("{kind}.{group}"));
    format!("{dotted}/{}", owner.str_at("/name")).into()
}

pub(super) fn class_parameters(class: &Doc) -> Doc {
    let parameters = class.at("/spec/parameters");
    if parameters.is_null() {
        return "<none>".into();
    }
    let (kind, name) = (parameters.str_at("/kind"), parameters.str_at("/name"));
    match parameters.str_at("/apiGroup") {
        "" => format!("{kind}/{name}").into(),
        group => format!("{kind}.{group}/{name}").into(),
    }
}

pub(super) fn token_audiences(driver: &Doc) -> Doc {
    match driver.at("/spec/tokenRequests").items() {
        [] => "<unset>".into(),
        requests => cells::join(requests, "/audience"),
    }
}

pub(super) fn lifecycle_modes(driver: &Doc) -> Doc {
    let modes = driver.at("/spec/volumeLifecycleModes").items().iter();
    let modes: Vec<&str> = modes.filter_map(Doc::as_str).collect();
    modes.join(",").into()
}

pub(super) fn drivers(node: &Doc) -> Doc {
    node.at("/spec/drivers").items().len().into()
}

pub(super) fn webhooks(configuration: &Doc) -> Doc {
    configuration.at("/webhooks").items().len().into()
}

pub(super) fn missing_level(schema: &Doc) -> Doc {
    let conditions = schema.at("/status/conditions").items();
    let dangling = conditions
        .iter()
        .find(|condition| condition.str_at("/type") == "Dangling");
    dangling.map_or("?".into(), |condition| plain(condition, "/status"))
}

pub(super) fn scaled_replicas(scaler: &Doc) -> Doc {
    let replicas = scaler.at("/status/currentReplicas").as_i64();
    replicas.unwrap_or(0).into()
}

pub(super) fn expands(class: &Doc) -> Doc {
    let expands = class.at("/allowVolumeExpansion").as_bool();
    expands.unwrap_or(false).into()
}

/// How often an event happened, in either of its two forms.
pub(super) fn event_count(event: &Doc) -> Doc {
    let counts = ["/series/count", "/count", "/deprecatedCount"];
    let counts = counts.iter().filter_map(|at| event.at(at).as_i64());
    counts.filter(|count| *count > 0).max().unwrap_or(1).into()
}

pub(super) fn event_part(event: &Doc) -> Doc {
    match event.str_at("/involvedObject/fieldPath") {
        "" => plain(event, "/regarding/fieldPath"),
        part => part.into(),
    }
}

pub(super) fn event_first_seen(event: &Doc, now: Time) -> Doc {
    let moments = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    let mut moments = moments.iter().map(|at| event.at(at));
    let first = moments.find(|moment| !moment.is_null());
    match first {
        Some(moment) => cells::since(moment, now),
        None => "<unknown>".into(),
    }
}

/// Who reports an event, and from where.
pub(super) fn event_source(event: &Doc) -> Doc {
    let first = |pointers: &[&str]| {
        let mut texts = pointers.iter().map(|at| event.str_at(at));
        let text = texts.find(|text| !text.is_empty());
        text.unwrap_or_default().to_owned()
    };
    let who = first(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let from = first(&[
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
    ]);
    match from.as_str() {
        "" => who.into(),
        from => format!("{who}, {from}").into(),
    }
}
