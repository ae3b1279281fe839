//! What only pods have: binding to a node, logs.

use http::{Response, StatusCode};
use windlass_core::{Doc, Gvk, Object, Time, doc};

use super::ask::Question;
use super::fields::Author;
use super::operation::Operation;
use super::size::Measure;
use super::write::{Part, Proposal, Write};
use super::{Call, object};
use crate::body::Body;
use crate::respond;
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
    if !name.is_empty() && name != pod {
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

/// The annotation of a pod that says what its log is, for all containers, or for one if a dot and
/// its name follow.
const LOG: &str = "windlass.dev/log";

/// The log of a container. Nothing runs, so it is what an annotation says, or empty.
pub(super) fn log(call: &Call) -> Result<Response<Body>, Status> {
    let pod = call.find()?;
    let container = container_of(&pod, call.query.get("container"))?;
    if pod.str_at("/spec/nodeName").is_empty() {
        return Ok(respond::whole(
            StatusCode::NO_CONTENT,
            "text/plain",
            Vec::new().into(),
        ));
    }
    let annotations = pod.meta().annotations();
    let own = annotations.value(&format!("{LOG}.{container}"));
    let text = own.or_else(|| annotations.value(LOG)).unwrap_or_default();
    let text = last_lines(text, call.query.get("tailLines"));
    Ok(respond::text(StatusCode::OK, text))
}

/// The last lines of a log, ended as a program ends them.
fn last_lines(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted = wanted.parse().unwrap_or(lines.len());
    let skipped = lines.len().saturating_sub(wanted);
    let lines = lines.iter().skip(skipped);
    lines.flat_map(|line| [*line, "\n"]).collect()
}

/// The container that a request names, or the only one.
fn container_of(pod: &Doc, named: &str) -> Result<String, Status> {
    let name = pod.meta().name();
    let lists = [
        pod.at("/spec/initContainers"),
        pod.at("/spec/containers"),
        pod.at("/spec/ephemeralContainers"),
    ];
    let all = lists.into_iter().flat_map(Doc::items);
    let all: Vec<&str> = all.map(|container| container.str_at("/name")).collect();
    match (named, pod.at("/spec/containers").items()) {
        ("", [only]) => Ok(only.str_at("/name").to_owned()),
        ("", _) => Err(Status::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
        (named, _) if all.contains(&named) => Ok(named.to_owned()),
        (named, _) => Err(Status::bad_request(format!(
            "container {named} is not valid for pod {name}"
        ))),
    }
}

/// Whether a call wants to reach into a pod.
pub(super) fn is_connection(call: &Call) -> bool {
    let connections = call.resource.needs.connections;
    connections.contains(&call.path.subresource.as_str())
}

/// Why nobody reaches into a pod: nothing runs in it.
pub(super) async fn connect(call: &Call) -> Status {
    if let Err(status) = ask_about_connection(call).await {
        return status;
    }
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

/// Asks extensions about a connection: they see its options.
async fn ask_about_connection(call: &Call) -> Result<(), Status> {
    let operation = call.operation();
    if !operation.has_extensions() {
        return Ok(());
    }
    let Some(kind) = connection_kind(&call.path.subresource) else {
        return Ok(());
    };
    let question = Question {
        operation,
        sort: OperationType::Connect,
        object: connection_options(call, &kind),
        kind,
        dry_run: false,
    };
    question.ask().await.map(drop)
}

/// The kind of the options of a connection.
fn connection_kind(subresource: &str) -> Option<Gvk> {
    Some(match subresource {
        "attach" => Gvk::constant("", "v1", "PodAttachOptions"),
        "exec" => Gvk::constant("", "v1", "PodExecOptions"),
        "portforward" => Gvk::constant("", "v1", "PodPortForwardOptions"),
        "proxy" => Gvk::constant("", "v1", "PodProxyOptions"),
        _ => return None,
    })
}

/// The options of a connection, which the query carries.
fn connection_options(call: &Call, kind: &Gvk) -> Doc {
    let mut options = Object::empty()
        .with("kind", kind.kind().into())
        .with("apiVersion", kind.api_version().into());
    for key in ["stdin", "stdout", "stderr", "tty"] {
        if call.query.flag(key) == Some(true) {
            options = options.with(key, true.into());
        }
    }
    for key in ["container", "path"] {
        let value = call.query.get(key);
        if !value.is_empty() {
            options = options.with(key, value.into());
        }
    }
    let command: Vec<Doc> = call.query.all("command").map(Doc::from).collect();
    if !command.is_empty() {
        options = options.with("command", command.into());
    }
    let ports = call.query.all("ports").flat_map(|ports| ports.split(','));
    let ports: Vec<Doc> = ports
        .filter_map(|port| port.parse::<i64>().ok())
        .map(Doc::from)
        .collect();
    if !ports.is_empty() {
        options = options.with("ports", ports.into());
    }
    options.into()
}
