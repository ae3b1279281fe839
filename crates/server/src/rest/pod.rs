//! Binding pods to nodes.

use http::{Response, StatusCode};
use windlass_core::{Doc, Gvk, Time, doc};

use super::ask::Question;
use super::fields::Author;
use super::operation::Operation;
use super::size::Measure;
use super::write::{Part, Proposal, Write};
use super::{Call, object};
use crate::body::Body;
use windlass_access::matching::OperationType;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;

const BINDING: Gvk = Gvk::constant("", "v1", "Binding");

/// Assigns the pod in the path to a node.
pub(super) async fn bind(call: &Call) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let binding = object::decode(call, &BINDING, options.validation, &mut Vec::new())?;
    let binding = Question {
        operation: call.operation(),
        sort: OperationType::Create,
        kind: BINDING,
        object: binding,
        dry_run: options.dry_run,
    };
    let binding = binding.ask().await?;
    assign(call, call.operation(), &binding, options.dry_run).await
}

/// Assigns the pod that a binding names to a node.
pub(super) async fn bind_named(call: &Call, binding: &Doc) -> Result<Response<Body>, Status> {
    let options = call.query.write_options("CreateOptions")?;
    let question = Question {
        operation: call.operation(),
        sort: OperationType::Create,
        kind: BINDING,
        object: binding.clone(),
        dry_run: options.dry_run,
    };
    let binding = &question.ask().await?;
    let table = call.server.inner().registry.table();
    let pods = table
        .find("", "v1", "pods")
        .cloned()
        .ok_or_else(Status::no_such_path)?;
    let operation = Operation {
        resource: &pods,
        name: binding.meta().name(),
        ..call.operation()
    };
    assign(call, operation, binding, options.dry_run).await
}

async fn assign(
    call: &Call,
    operation: Operation<'_>,
    binding: &Doc,
    dry_run: bool,
) -> Result<Response<Body>, Status> {
    check_binding(operation.name, binding)?;
    let now = call.server.inner().env.now();
    let propose = |pod: &Doc| assigned(pod, binding, now).map(Proposal::Change);
    let write = unattributed(operation, dry_run);
    write.change(propose).await?;
    success(call)
}

/// The answer of a subresource that makes something of a pod.
pub(super) fn success(call: &Call) -> Result<Response<Body>, Status> {
    let status = doc!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    call.answer(StatusCode::CREATED, &status)
}

/// A change that the server makes on behalf of somebody.
pub(super) fn unattributed(operation: Operation<'_>, dry_run: bool) -> Write<'_> {
    Write {
        operation,
        part: Part::Whole,
        dry_run,
        author: Author::nobody(operation.server),
        measure: Measure::Any,
        shown: None,
    }
}

fn check_binding(pod: &str, binding: &Doc) -> Result<(), Status> {
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
    if name != pod {
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
fn assigned(pod: &Doc, binding: &Doc, now: Time) -> Result<Doc, Status> {
    let name = pod.meta().name();
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
