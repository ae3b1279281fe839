//! Limit ranges: what containers, pods and claims of a namespace may ask for.

use windlass_core::{Doc, Object, Quantity, Str};
use windlass_quota::{Amounts, amounts, pod_amounts};

use super::Request;
use super::plugin::Admit;
use windlass_rules::edit::edit;
use windlass_rules::edit::put;
use windlass_rules::status::Status;
use windlass_schema::needs::Limited;

/// Where the defaults that were filled in are noted.
const ANNOTATION: &str = "/metadata/annotations/kubernetes.io~1limit-ranger";
/// The largest amount that still has room for thousandths.
const MILLI_LIMIT: i64 = i64::MAX / 1000;

/// Requests and limits.
struct Usage {
    requests: Amounts,
    limits: Amounts,
}

/// Gives pods the defaults of limit ranges, and refuses what those do not allow.
pub(super) struct LimitRanger(pub(super) Limited);

impl Admit for LimitRanger {
    fn create(&self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        Ok(match self.0 {
            Limited::Pod => default_pod(request, object),
            Limited::Claim => object,
        })
    }

    fn validate(
        &self,
        request: &Request<'_>,
        object: &Doc,
        old: Option<&Doc>,
    ) -> Result<(), Status> {
        match (self.0, old) {
            // A pod keeps what it was admitted with.
            (Limited::Pod, Some(_)) => Ok(()),
            (limited, _) => validate(request, limited, object, old),
        }
    }
}

/// The limit ranges of a namespace.
fn ranges(request: &Request<'_>) -> Vec<Doc> {
    let ranges = request.objects;
    ranges.list("", "limitranges", request.namespace)
}

/// The items of a limit range for a type: `Container`, `Pod` or `PersistentVolumeClaim`.
fn items_of<'a>(range: &'a Doc, sort: &'a str) -> impl Iterator<Item = &'a Doc> {
    let items = range.at("/spec/limits").items().iter();
    items.filter(move |item| item.str_at("/type") == sort)
}

/// A new pod with the defaults of its namespace.
fn default_pod(request: &Request<'_>, pod: Doc) -> Doc {
    ranges(request).iter().fold(pod, default_by)
}

fn default_by(pod: Doc, range: &Doc) -> Doc {
    let (mut limits, mut requests) = (Vec::new(), Vec::new());
    for item in items_of(range, "Container") {
        let fields = |key: &str| {
            let map = item.at(key).as_object();
            map.into_iter()
                .flat_map(|map| map.iter())
                .map(|(name, value)| (name.to_string(), value.clone()))
                .collect::<Vec<_>>()
        };
        limits.extend(fields("/default"));
        requests.extend(fields("/defaultRequest"));
    }
    if limits.is_empty() && requests.is_empty() {
        return pod;
    }
    let notes = std::cell::RefCell::new(Vec::new());
    let changed = edit(&pod, |pod| {
        pod.inside("spec", |spec| {
            edit(spec, |spec| {
                for (list, sort) in [
                    ("containers", "container"),
                    ("initContainers", "init container"),
                ] {
                    spec.each(list, |container| {
                        let name = container.str_at("/name");
                        let fill = |container: &Doc, which: &str, values: &[(String, Doc)]| {
                            let (container, set) = filled(container, which, values);
                            if !set.is_empty() {
                                let what = which.trim_end_matches('s');
                                let note = format!("{} {what} for {sort} {name}", set.join(", "));
                                notes.borrow_mut().push(note);
                            }
                            container
                        };
                        let filled = fill(container, "requests", &requests);
                        fill(&filled, "limits", &limits)
                    });
                }
            })
        });
    });
    let notes = notes.into_inner();
    if notes.is_empty() {
        return changed;
    }
    let note = format!("LimitRanger plugin set: {}", notes.join("; "));
    put(changed, ANNOTATION, note)
}

/// A container with the amounts that it leaves out, and their names.
fn filled(container: &Doc, which: &str, values: &[(String, Doc)]) -> (Doc, Vec<String>) {
    let known = container.at(&format!("/resources/{which}"));
    let mut missing: Vec<_> = values
        .iter()
        .filter(|(name, _)| known.get(name).is_none())
        .collect();
    // Of several items for a name the last counts.
    missing.reverse();
    missing.sort_by(|a, b| a.0.cmp(&b.0));
    missing.dedup_by(|later, earlier| later.0 == earlier.0);
    let names = missing.iter().map(|(name, _)| name.clone()).collect();
    if missing.is_empty() {
        return (container.clone(), names);
    }
    let pairs = missing.iter();
    let pairs = pairs.map(|(name, value)| (Str::new(name), Some(value.clone())));
    let known = known.as_object().cloned().unwrap_or_else(Object::empty);
    let all = known.with_changes(pairs.collect());
    let filled = put(container.clone(), &format!("/resources/{which}"), all);
    (filled, names)
}

/// Refuses what a limit range does not allow.
fn validate(
    request: &Request<'_>,
    limited: Limited,
    object: &Doc,
    old: Option<&Doc>,
) -> Result<(), Status> {
    if old.is_some_and(|old| old.meta().is_deleting()) {
        return Ok(());
    }
    for range in ranges(request) {
        let faults = match limited {
            Limited::Pod => pod_faults(&range, object),
            Limited::Claim => claim_faults(&range, object),
        };
        match &faults[..] {
            [] => {}
            [fault] => return Err(request.forbid(object, fault)),
            faults => {
                let why = format!("[{}]", faults.join(", "));
                return Err(request.forbid(object, &why));
            }
        }
    }
    Ok(())
}

fn pod_faults(range: &Doc, pod: &Doc) -> Vec<String> {
    let mut faults = Vec::new();
    for item in range.at("/spec/limits").items() {
        match item.str_at("/type") {
            "Container" => {
                let lists = ["/spec/containers", "/spec/initContainers"];
                for container in lists.iter().flat_map(|list| pod.at(list).items()) {
                    let usage = Usage {
                        requests: amounts(container.at("/resources/requests")),
                        limits: amounts(container.at("/resources/limits")),
                    };
                    check(item, &usage, &mut faults);
                }
            }
            "Pod" => {
                let usage = Usage {
                    requests: pod_amounts(pod, "requests"),
                    limits: pod_amounts(pod, "limits"),
                };
                check(item, &usage, &mut faults);
            }
            _ => {}
        }
    }
    faults
}

fn claim_faults(range: &Doc, claim: &Doc) -> Vec<String> {
    let mut faults = Vec::new();
    let usage = Usage {
        requests: amounts(claim.at("/spec/resources/requests")),
        limits: Amounts::new(),
    };
    for item in items_of(range, "PersistentVolumeClaim") {
        let sort = item.str_at("/type");
        for (name, bound) in amounts(item.at("/min")) {
            faults.extend(min_fault(sort, &name, &bound, &usage));
        }
        for (name, bound) in amounts(item.at("/max")) {
            faults.extend(max_request_fault(sort, &name, &bound, &usage));
        }
    }
    faults
}

fn check(item: &Doc, usage: &Usage, faults: &mut Vec<String>) {
    let sort = item.str_at("/type");
    for (name, bound) in amounts(item.at("/min")) {
        faults.extend(min_fault(sort, &name, &bound, usage));
    }
    for (name, bound) in amounts(item.at("/max")) {
        faults.extend(max_fault(sort, &name, &bound, usage));
    }
    for (name, bound) in amounts(item.at("/maxLimitRequestRatio")) {
        faults.extend(ratio_fault(sort, &name, &bound, usage));
    }
}

fn min_fault(sort: &str, name: &str, bound: &Quantity, usage: &Usage) -> Option<String> {
    let least = format!("minimum {name} usage per {sort} is {bound}");
    let Some(request) = usage.requests.get(name) else {
        return Some(format!("{least}.  No request is specified"));
    };
    if request < bound {
        return Some(format!("{least}, but request is {request}"));
    }
    let limit = usage.limits.get(name)?;
    (limit < bound).then(|| format!("{least}, but limit is {limit}"))
}

fn max_fault(sort: &str, name: &str, bound: &Quantity, usage: &Usage) -> Option<String> {
    let most = format!("maximum {name} usage per {sort} is {bound}");
    let Some(limit) = usage.limits.get(name) else {
        return Some(format!("{most}.  No limit is specified"));
    };
    if limit > bound {
        return Some(format!("{most}, but limit is {limit}"));
    }
    let request = usage.requests.get(name)?;
    (request > bound).then(|| format!("{most}, but request is {request}"))
}

fn max_request_fault(sort: &str, name: &str, bound: &Quantity, usage: &Usage) -> Option<String> {
    let most = format!("maximum {name} usage per {sort} is {bound}");
    let Some(request) = usage.requests.get(name) else {
        return Some(format!("{most}.  No request is specified"));
    };
    (request > bound).then(|| format!("{most}, but request is {request}"))
}

fn ratio_fault(sort: &str, name: &str, bound: &Quantity, usage: &Usage) -> Option<String> {
    let most = format!("{name} max limit to request ratio per {sort} is {bound}");
    let given = |amounts: &Amounts| amounts.get(name).filter(|it| !it.is_zero()).cloned();
    let Some(request) = given(&usage.requests) else {
        return Some(format!(
            "{most}, but no request is specified or request is 0"
        ));
    };
    let Some(limit) = given(&usage.limits) else {
        return Some(format!("{most}, but no limit is specified or limit is 0"));
    };
    let ratio = as_number(&limit) / as_number(&request);
    let is_over = ratio > as_number(bound);
    is_over.then(|| format!("{most}, but provided ratio is {ratio:.6}"))
}

/// An amount with its thousandths, if it is not too large for them.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio is a float, here as upstream"
)]
fn as_number(amount: &Quantity) -> f64 {
    match amount.value() {
        whole if whole > MILLI_LIMIT => whole as f64,
        _ => amount.milli_value() as f64 / 1000.0,
    }
}
