//! What only pods have: binding to a node, eviction, logs.

use std::time::Duration;

use http::{Response, StatusCode};
use windlass_core::{Condition, Doc, Gvk, LabelSelector, Selector, Time, doc};

use super::delete::{self, DeleteOptions};
use super::fields::Author;
use super::update::{self, Part, Proposal, Writing};
use super::{Call, object};
use crate::body::Body;
use crate::field::{FieldErrors, FieldPath};
use crate::query::FieldValidation;
use crate::respond;
use crate::status::{Cause, Status};
use crate::storage;

const BINDING: Gvk = Gvk::constant("", "v1", "Binding");
const EVICTION: Gvk = Gvk::constant("policy", "v1", "Eviction");

/// Assigns the pod in the path to a node.
pub(super) async fn bind(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let binding = object::decode(call, &BINDING, options.validation, &mut Vec::new())?;
    assign(call, &binding, options.dry_run).await
}

/// Assigns the pod that a binding names to a node.
pub(super) async fn bind_named(call: &Call, binding: &Doc) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let table = call.server.inner().registry.table();
    let pods = table
        .find("", "v1", "pods")
        .cloned()
        .ok_or_else(Status::no_such_path)?;
    let mut path = call.path.clone();
    binding.meta().name().clone_into(&mut path.name);
    let call = Call {
        server: call.server.clone(),
        resource: pods,
        path,
        query: call.query.clone(),
        headers: call.headers.clone(),
        user: call.user.clone(),
        body: call.body.clone(),
        given: call.given.clone(),
    };
    assign(&call, binding, options.dry_run).await
}

async fn assign(call: &Call, binding: &Doc, dry_run: bool) -> Result<Response<Body>, Status> {
    check_binding(call, binding)?;
    let now = call.server.inner().env.now();
    let propose = |pod: &Doc| assigned(call, pod, binding, now).map(Proposal::Change);
    update::write(call, &unattributed(call, dry_run), propose).await?;
    let status = doc!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(respond::json(
        StatusCode::CREATED,
        &status,
        call.is_pretty(),
    ))
}

/// A change that the server makes on behalf of somebody.
fn unattributed(call: &Call, dry_run: bool) -> Writing {
    Writing {
        part: Part::Whole,
        dry_run,
        author: Author::of(call, ""),
    }
}

fn check_binding(call: &Call, binding: &Doc) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let target = FieldPath::new("target");
    match binding.str_at("/target/kind") {
        "" | "Node" => {}
        other => errors.not_supported(&target.child("kind"), other, &["Node", "<empty>"]),
    }
    if binding.str_at("/target/name").is_empty() {
        errors.required(&target.child("name"), "");
    }
    let name = binding.meta().name();
    if !name.is_empty() && name != call.path.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // Upstream answers this with a plain failure.
    Err(Status::plain(errors.to_string()))
}

/// A pod on its node.
fn assigned(call: &Call, pod: &Doc, binding: &Doc, now: Time) -> Result<Doc, Status> {
    let name = &call.path.name;
    let refuse = |why: &str| {
        let resource = windlass_core::GroupResource::new("", "pods/binding");
        Err(Status::conflict(&resource, name, why))
    };
    let (node, target) = (pod.str_at("/spec/nodeName"), binding.str_at("/target/name"));
    if pod.meta().is_deleting() {
        return refuse(&format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    if !node.is_empty() {
        return refuse(&format!("pod {name} is already assigned to node {node:?}"));
    }
    if !pod.at("/spec/schedulingGates").items().is_empty() {
        return refuse(&format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut bound = object::put(pod.clone(), "/spec/nodeName", target);
    bound = object::cut(bound, "/status/nominatedNodeName");
    for (key, value) in binding.meta().annotations().iter() {
        bound = object::edit_metadata(&bound, |metadata| {
            let annotations = metadata
                .get("annotations")
                .and_then(Doc::as_object)
                .cloned();
            let annotations = annotations.unwrap_or_else(windlass_core::Object::empty);
            metadata.with("annotations", annotations.with(key, value.into()).into())
        });
    }
    bound = with_scheduled(bound, now);
    let (uid, revision) = (binding.meta().uid_str(), binding.meta().resource_version());
    Ok(object::edit_metadata(&bound, |metadata| {
        metadata
            .with("uid", uid.into())
            .with("resourceVersion", revision.into())
    }))
}

/// A pod that says that it found its place.
fn with_scheduled(pod: Doc, now: Time) -> Doc {
    let known = pod.at("/status/conditions").items();
    let mut conditions: Vec<Doc> = known
        .iter()
        .filter(|known| known.str_at("/type") != "PodScheduled")
        .cloned()
        .collect();
    conditions.push(doc!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": (now.to_string())
    }));
    object::put(pod, "/status/conditions", conditions)
}

/// Pods have no log where nothing runs.
pub(super) fn log(call: &Call) -> Result<Response<Body>, Status> {
    let pod = call.find()?;
    if pod.str_at("/spec/nodeName").is_empty() {
        return Ok(respond::whole(
            StatusCode::NO_CONTENT,
            "text/plain",
            Vec::new().into(),
        ));
    }
    Ok(respond::text(StatusCode::OK, ""))
}

/// Whether a call wants to reach into a pod.
pub(super) fn is_connection(call: &Call) -> bool {
    let is_pod = call.path.group.is_empty() && call.path.resource == "pods";
    is_pod
        && matches!(
            call.path.subresource.as_str(),
            "attach" | "exec" | "portforward"
        )
}

/// Why nobody reaches into a pod: nothing runs in it.
pub(super) fn connect(call: &Call) -> Status {
    let pod = match call.find() {
        Ok(pod) => pod,
        Err(status) => return status,
    };
    match pod.str_at("/spec/nodeName") {
        "" => Status::bad_request(format!(
            "pod {} does not have a host assigned",
            call.path.name
        )),
        node => Status::internal(format!(
            "error dialing backend: node {node:?} only pretends, and no container runs on it"
        )),
    }
}

/// Deletes a pod if its disruption budget allows.
pub(super) async fn evict(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let eviction = object::decode(call, &EVICTION, FieldValidation::Ignore, &mut Vec::new())?;
    let name = eviction.meta().name();
    if !name.is_empty() && name != call.path.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let pod = call.find()?;
    if needs_budget(&pod) {
        spend_budget(call, &pod, options.dry_run).await?;
    }
    let now = call.server.inner().env.now();
    let mark = |pod: &Doc| Ok(Proposal::Change(with_disruption(pod, now)));
    update::write(call, &unattributed(call, options.dry_run), mark).await?;
    let given = eviction.at("/deleteOptions");
    let uid = given
        .at("/preconditions/uid")
        .as_str()
        .unwrap_or(pod.meta().uid_str());
    let delete = DeleteOptions {
        grace_seconds: given.at("/gracePeriodSeconds").as_i64(),
        uid: Some(uid.to_owned()),
        dry_run: options.dry_run,
        ..DeleteOptions::default()
    };
    delete::delete_one(call, &call.path.name, call.namespace(), &delete).await?;
    let status = doc!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(respond::json(
        StatusCode::CREATED,
        &status,
        call.is_pretty(),
    ))
}

/// A pod that says why it ends.
fn with_disruption(pod: &Doc, now: Time) -> Doc {
    let message = "Eviction API: evicting";
    let condition = Condition::new("DisruptionTarget", true, "EvictionByEvictionAPI", message);
    windlass_core::with_condition(pod, &condition, now)
}

/// A pod that does not serve, or is going anyway, costs no budget.
fn needs_budget(pod: &Doc) -> bool {
    let phase = pod.str_at("/status/phase");
    !matches!(phase, "Succeeded" | "Failed" | "Pending") && !pod.meta().is_deleting()
}

/// Takes one disruption from the budget of a pod, if it has one.
async fn spend_budget(call: &Call, pod: &Doc, dry_run: bool) -> Result<(), Status> {
    let store = &call.server.inner().storage;
    let budgets = store.snapshot_of("policy", "poddisruptionbudgets");
    let mut found = budgets
        .namespace(call.namespace(), "")
        .filter(|entry| covers(entry.doc(), pod));
    let Some(budget) = found.next() else {
        return Ok(());
    };
    if found.next().is_some() {
        return Err(Status::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        ));
    }
    let is_ready = windlass_core::condition(pod, "Ready").is_some_and(|ready| ready.is_true());
    let always = budget.doc().str_at("/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    let healthy = budget
        .doc()
        .at("/status/currentHealthy")
        .as_i64()
        .unwrap_or(0);
    let desired = budget
        .doc()
        .at("/status/desiredHealthy")
        .as_i64()
        .unwrap_or(0);
    if !is_ready && (always || healthy >= desired && desired > 0) {
        return Ok(());
    }
    let name = pod.meta().name();
    let now = call.server.inner().env.now();
    let take = |current: Option<&std::sync::Arc<windlass_store::Entry>>| match current {
        None => Ok(windlass_store::Change::Keep),
        Some(entry) => match spent(entry.doc(), name, now) {
            Ok(_) if dry_run => Ok(windlass_store::Change::Keep),
            Ok(doc) => Ok(windlass_store::Change::put(doc)),
            Err(status) => Err(status),
        },
    };
    let shelf = windlass_store::Resource::new("policy", "poddisruptionbudgets");
    let key = storage::key(call.namespace(), budget.doc().meta().name());
    store
        .update(&shelf, &key, take)
        .await
        .map(drop)
        .map_err(super::write_failed)
}

fn covers(budget: &Doc, pod: &Doc) -> bool {
    let selector = budget.at("/spec/selector");
    let parsed = selector.decode::<LabelSelector>().ok();
    let selector = parsed.and_then(|parsed| Selector::try_from(&parsed).ok());
    selector.is_some_and(|selector| selector.matches(&pod.meta().labels()))
}

/// A budget with one disruption less, or the refusal.
fn spent(budget: &Doc, pod: &str, now: Time) -> Result<Doc, Status> {
    let name = budget.meta().name();
    let refuse = |message: String, after: u64| {
        let cannot = "Cannot evict pod as it would violate the pod's disruption budget.";
        let status = Status::too_many_requests(cannot, Duration::from_secs(after));
        status.with_cause(Cause {
            reason: "DisruptionBudget",
            message,
            field: String::new(),
        })
    };
    if budget
        .at("/status/observedGeneration")
        .as_i64()
        .unwrap_or(0)
        < budget.meta().generation()
    {
        let message =
            format!("The disruption budget {name} is still being processed by the server.");
        return Err(refuse(message, 10));
    }
    let allowed = budget
        .at("/status/disruptionsAllowed")
        .as_i64()
        .unwrap_or(0);
    if allowed <= 0 {
        let (needed, have) = (
            budget.at("/status/desiredHealthy").as_i64().unwrap_or(0),
            budget.at("/status/currentHealthy").as_i64().unwrap_or(0),
        );
        let message = format!(
            "The disruption budget {name} needs {needed} healthy pods and has {have} currently"
        );
        return Err(refuse(message, 0));
    }
    let disrupted = budget.at("/status/disruptedPods").as_object().cloned();
    let disrupted = disrupted.unwrap_or_else(windlass_core::Object::empty);
    let disrupted = disrupted.with(pod, now.to_string().into());
    let budget = object::put(budget.clone(), "/status/disruptionsAllowed", allowed - 1);
    Ok(object::put(budget, "/status/disruptedPods", disrupted))
}
