//! The runtime class of a pod: its overhead, and the nodes that have it.

use windlass_core::{Doc, Object, Quantity};

use super::Request;
use super::plugin::Admit;
use windlass_rules::edit::put;
use windlass_rules::status::Status;

const GROUP: &str = "node.k8s.io";
const CLASSES: &str = "runtimeclasses";
const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Gives new pods the overhead and the node selection of their runtime class.
pub(super) struct RuntimeClass;

impl Admit for RuntimeClass {
    fn create(&self, request: &Request<'_>, pod: Doc) -> Result<Doc, Status> {
        let Some(class) = class_of(request, &pod)? else {
            return Ok(pod);
        };
        let pod = with_overhead(request, pod, &class)?;
        with_scheduling(request, pod, &class)
    }

    fn validate(&self, request: &Request<'_>, pod: &Doc, old: Option<&Doc>) -> Result<(), Status> {
        if old.is_some() {
            return Ok(());
        }
        let class = class_of(request, pod)?.unwrap_or_default();
        let (given, fixed) = (pod.at("/spec/overhead"), class.at("/overhead"));
        match fixed.is_null() {
            true if given.is_null() => Ok(()),
            true => Err(request.forbid(
                pod,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )),
            false if is_same(given, fixed.at("/podFixed")) => Ok(()),
            false => Err(request.forbid(pod, OTHER_OVERHEAD)),
        }
    }
}

/// The class that a pod names, which must exist.
fn class_of(request: &Request<'_>, pod: &Doc) -> Result<Option<Doc>, Status> {
    let Some(name) = pod.at("/spec/runtimeClassName").as_str() else {
        return Ok(None);
    };
    let class = request.objects.find(GROUP, CLASSES, "", name);
    let why = || format!("pod rejected: RuntimeClass {name:?} not found");
    class.map(Some).ok_or_else(|| request.forbid(pod, &why()))
}

fn with_overhead(request: &Request<'_>, pod: Doc, class: &Doc) -> Result<Doc, Status> {
    if class.at("/overhead").is_null() {
        return Ok(pod);
    }
    let fixed = class.at("/overhead/podFixed");
    let given = pod.at("/spec/overhead");
    let is_given = given.as_object().is_some_and(|amounts| !amounts.is_empty());
    if is_given && !is_same(given, fixed) {
        return Err(request.forbid(&pod, OTHER_OVERHEAD));
    }
    Ok(match fixed.is_null() {
        true => pod,
        false => put(pod, "/spec/overhead", fixed.clone()),
    })
}

/// Returns true if two lists of amounts are equal, however they are written.
fn is_same(a: &Doc, b: &Doc) -> bool {
    let amounts = |list: &Doc| -> Vec<(String, Option<Quantity>)> {
        let fields = list.as_object().cloned().unwrap_or_else(Object::empty);
        let amount = |value: &Doc| value.to_string().trim_matches('"').parse().ok();
        let fields = fields.iter();
        fields
            .map(|(key, value)| (key.to_string(), amount(value)))
            .collect()
    };
    a == b || amounts(a) == amounts(b)
}

fn with_scheduling(request: &Request<'_>, pod: Doc, class: &Doc) -> Result<Doc, Status> {
    let scheduling = class.at("/scheduling");
    if scheduling.is_null() {
        return Ok(pod);
    }
    let mut selector = pod.at("/spec/nodeSelector").as_object().cloned();
    let wanted = scheduling.at("/nodeSelector").as_object().cloned();
    for (key, value) in wanted.iter().flat_map(Object::iter) {
        let known = selector.clone().unwrap_or_else(Object::empty);
        if let Some(given) = known.get(key).filter(|given| *given != value) {
            let (given, value) = (text(given), text(value));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                 pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(request.forbid(&pod, &why));
        }
        selector = Some(known.with(key, value.clone()));
    }
    let mut tolerations = pod.at("/spec/tolerations").items().to_vec();
    tolerations.extend_from_slice(scheduling.at("/tolerations").items());
    let tolerations = merged(&tolerations);
    let pod = match selector {
        Some(selector) => put(pod, "/spec/nodeSelector", Doc::from(selector)),
        None => pod,
    };
    Ok(match tolerations.is_empty() {
        true => pod,
        false => put(pod, "/spec/tolerations", tolerations),
    })
}

fn text(value: &Doc) -> &str {
    value.as_str().unwrap_or_default()
}

/// Tolerations without those that another one covers.
fn merged(all: &[Doc]) -> Vec<Doc> {
    let mut merged: Vec<Doc> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_known = merged.iter().any(|known| covers(known, toleration));
        // Of two that are equal the first one stays.
        let later = all[index + 1..].iter();
        let mut later = later.filter(|other| *other != toleration);
        if !is_known && !later.any(|other| covers(other, toleration)) {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns true if one toleration tolerates all that another one does.
fn covers(wide: &Doc, narrow: &Doc) -> bool {
    if wide == narrow {
        return true;
    }
    let operator = wide.str_at("/operator");
    let exists = operator == "Exists";
    let (key, effect) = (wide.str_at("/key"), wide.str_at("/effect"));
    // An empty key that exists is any key, and an empty effect any effect.
    if narrow.str_at("/key") != key && !(key.is_empty() && exists) {
        return false;
    }
    if !effect.is_empty() && effect != narrow.str_at("/effect") {
        return false;
    }
    if effect == "NoExecute" {
        let longest = wide.at("/tolerationSeconds").as_i64();
        let seconds = narrow.at("/tolerationSeconds").as_i64();
        let is_longer = match (longest, seconds) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(longest), Some(seconds)) => longest >= seconds,
        };
        if !is_longer {
            return false;
        }
    }
    exists
        || matches!(operator, "" | "Equal")
            && narrow.str_at("/operator") == "Equal"
            && narrow.str_at("/value") == wide.str_at("/value")
}
