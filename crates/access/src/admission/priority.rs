//! The priority of a pod is the number of its class.

use windlass_core::Doc;

use super::Request;
use super::plugin::Admit;
use windlass_rules::edit::edit;
use windlass_rules::edit::put;
use windlass_rules::status::Status;

const GROUP: &str = "scheduling.k8s.io";
const CLASSES: &str = "priorityclasses";

/// Gives pods the priority of their class.
pub(super) struct Priority;

impl Admit for Priority {
    fn create(&self, request: &Request<'_>, pod: Doc) -> Result<Doc, Status> {
        admit(request, &pod)
    }

    fn update(&self, _: &Request<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
        Ok(keep(new, old))
    }
}

/// Refuses a second class that is the default.
pub(super) struct PriorityClassDefault;

impl Admit for PriorityClassDefault {
    fn validate(
        &self,
        request: &Request<'_>,
        class: &Doc,
        old: Option<&Doc>,
    ) -> Result<(), Status> {
        validate(request, class, old)
    }
}

fn admit(request: &Request<'_>, pod: &Doc) -> Result<Doc, Status> {
    let name = pod.str_at("/spec/priorityClassName");
    let class = match name {
        "" => default_class(request),
        name => {
            let class = request.objects.find(GROUP, CLASSES, "", name);
            let why = || format!("no PriorityClass with name {name} was found");
            Some(class.ok_or_else(|| request.forbid(pod, &why()))?)
        }
    };
    let class = class.unwrap_or_default();
    let priority = class.at("/value").as_i64().unwrap_or(0);
    check_priority(request, pod, priority)?;
    let policy = match class.str_at("/preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    check_policy(request, pod, policy)?;
    Ok(edit(pod, |pod| {
        pod.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.default("priorityClassName", class.meta().name());
                if spec.text("priorityClassName").is_empty() {
                    spec.remove("priorityClassName");
                }
                spec.set("priority", priority);
                spec.set("preemptionPolicy", policy);
            })
        });
    }))
}

fn check_priority(request: &Request<'_>, pod: &Doc, priority: i64) -> Result<(), Status> {
    match pod.at("/spec/priority").as_i64() {
        Some(given) if given != priority => {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; \
                 priority admission controller computed {priority} from the given PriorityClass \
                 name"
            );
            Err(request.forbid(pod, &why))
        }
        _ => Ok(()),
    }
}

fn check_policy(request: &Request<'_>, pod: &Doc, policy: &str) -> Result<(), Status> {
    match pod.str_at("/spec/preemptionPolicy") {
        given if given.is_empty() || given == policy => Ok(()),
        given => {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
                 priority admission controller computed {policy} from the given PriorityClass name"
            );
            Err(request.forbid(pod, &why))
        }
    }
}

/// The class of pods that name none. Of several the one with the lowest value counts.
fn default_class(request: &Request<'_>) -> Option<Doc> {
    let classes = request.objects.list(GROUP, CLASSES, "");
    classes
        .into_iter()
        .filter(|class| *class.at("/globalDefault") == true)
        .min_by_key(|class| {
            let value = class.at("/value").as_i64().unwrap_or(0);
            (value, class.meta().name().to_owned())
        })
}

/// A changed pod with the priority that it had, if it does not say.
fn keep(new: Doc, old: &Doc) -> Doc {
    ["/spec/priority", "/spec/preemptionPolicy"]
        .iter()
        .fold(new, |new, pointer| {
            match (new.at(pointer).is_null(), old.at(pointer)) {
                (true, before) if !before.is_null() => put(new, pointer, before),
                _ => new,
            }
        })
}

/// There is one default.
fn validate(request: &Request<'_>, class: &Doc, old: Option<&Doc>) -> Result<(), Status> {
    if *class.at("/globalDefault") != true {
        return Ok(());
    }
    match default_class(request) {
        Some(known) if old.is_none() || known.meta().name() != class.meta().name() => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                known.meta().name()
            );
            Err(request.forbid(class, &why))
        }
        _ => Ok(()),
    }
}
