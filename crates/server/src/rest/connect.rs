//! Subresources that lead to a node or a pod: log, exec, attach, portforward and proxy.
//!
//! Everything that kube-apiserver decides itself is decided here, in its order. Where it would call
//! a kubelet the answer says that none runs; the log of a pod on a pretend node is what an annotation
//! says, or empty.

mod options;

use http::{Response, StatusCode, header};
use windlass_core::{Doc, GroupKind, GroupResource};

use super::Call;
use crate::body::Body;
use crate::registry::Allocation;
use crate::request::Verb;
use crate::respond;
use windlass_rules::field::{FieldErrors, FieldPath};
use windlass_rules::status::Status;
use windlass_schema::needs::NodeRule;

/// The lists of containers in a pod.
const CONTAINER_LISTS: [&str; 3] = [
    "/spec/initContainers",
    "/spec/containers",
    "/spec/ephemeralContainers",
];

/// Returns true if a call wants to reach a node or a pod.
pub(super) fn is_connection(call: &Call) -> bool {
    let connections = call.resource.needs.connections;
    connections.contains(&call.path.subresource.as_str())
}

/// The annotation of a pod that says what its log is, for all containers, or for one if a dot and
/// its name follow.
const LOG: &str = "windlass.dev/log";

/// The log of a container. Nothing runs, so it is what an annotation says, or empty.
pub(super) fn log(call: &Call) -> Result<Response<Body>, Status> {
    check_log_options(call)?;
    let pod = call.find()?;
    let container = check_container(call, &pod)?;
    if pod.str_at("/spec/nodeName").is_empty() {
        let empty = Vec::new().into();
        return Ok(respond::whole(StatusCode::NO_CONTENT, "text/plain", empty));
    }
    check_node(call, &pod)?;
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

/// The reason for which nobody reaches into a pod or a node.
pub(super) async fn refusal(call: &Call, verb: Verb) -> Status {
    let part = call.path.subresource.as_str();
    let refused = match check_verb(call, part, verb) {
        Ok(()) => options::ask_about_connection(call).await,
        refused => refused,
    };
    let refused = refused.and_then(|()| match part {
        "proxy" => proxy(call),
        part => stream(call, part),
    });
    refused.err().unwrap_or_else(Status::no_such_path)
}

fn check_verb(call: &Call, part: &str, verb: Verb) -> Result<(), Status> {
    match (part, verb) {
        ("proxy", _) => Ok(()),
        // Whoever may only read must not run anything by a GET.
        (_, Verb::Get | Verb::Create) => {
            let refuse =
                |_| Status::forbidden(&call.resource.group_resource(), &call.path.name, "");
            call.check_also(Verb::Create).map_err(refuse)
        }
        _ => Err(Status::method_unknown()),
    }
}

/// Exec, attach and portforward.
fn stream(call: &Call, part: &str) -> Result<(), Status> {
    let pod = call.find()?;
    if part != "portforward" {
        check_container(call, &pod)?;
    }
    let node = pod.str_at("/spec/nodeName");
    if node.is_empty() {
        return Err(Status::bad_request(format!(
            "pod {} does not have a host assigned",
            call.path.name
        )));
    }
    check_node(call, &pod)?;
    if !call.headers.contains_key(header::UPGRADE) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    Err(Status::internal(format!(
        "error dialing backend: node {node:?} only pretends, and no container runs on it"
    )))
}

/// A request to a port of a pod, a service or a node: `[scheme:]name[:port]`.
fn proxy(call: &Call) -> Result<(), Status> {
    let parts: Vec<&str> = call.path.name.split(':').collect();
    let (name, port) = match parts[..] {
        [name] => (name, ""),
        [name, port] => (name, port),
        ["http" | "https" | "", name, port] => (name, port),
        _ => {
            let why = format!("invalid request {:?}", call.path.name);
            return Err(Status::bad_request(why));
        }
    };
    let mut operation = call.operation();
    operation.name = name;
    let object = operation.find()?;
    let needs = &call.resource.needs;
    match (needs.node_rule, needs.allocation) {
        (NodeRule::Node, _) => check_addresses(&object)?,
        (_, Allocation::ServiceAddresses) => check_endpoints(call, &object, port)?,
        _ => check_pod_address(&object)?,
    }
    Err(Status::unavailable(
        "error trying to reach service: no network leads to pods and nodes that only pretend",
    ))
}

/// Addresses of this machine, and what is none, are not reached through the server.
fn check_pod_address(pod: &Doc) -> Result<(), Status> {
    let address = pod.str_at("/status/podIP").parse::<std::net::IpAddr>();
    let is_allowed = address.is_ok_and(|address| {
        !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
    });
    match is_allowed {
        true => Ok(()),
        false => Err(Status::bad_request("address not allowed")),
    }
}

fn check_endpoints(call: &Call, service: &Doc, port: &str) -> Result<(), Status> {
    let name = service.meta().name();
    let ports = service.at("/spec/ports").items();
    let is_port = |known: &Doc| {
        port == known.str_at("/name") || port.parse().ok() == known.at("/port").as_i64()
    };
    if !port.is_empty() && !ports.iter().any(is_port) {
        let why = format!("no service port {port:?} found for service {name:?}");
        return Err(Status::unavailable(why));
    }
    let storage = &call.server.inner().storage;
    let slices = storage.snapshot_of("discovery.k8s.io", "endpointslices");
    let mut slices = slices.namespace(call.namespace(), "").filter(|slice| {
        let labels = slice.doc().at("/metadata/labels");
        labels
            .get("kubernetes.io/service-name")
            .and_then(Doc::as_str)
            == Some(name)
    });
    let is_ready = |endpoint: &Doc| *endpoint.at("/conditions/ready") != false;
    let has_endpoint = slices.any(|slice| {
        let endpoints = slice.doc().at("/endpoints").items();
        endpoints.iter().any(is_ready)
    });
    match has_endpoint {
        true => Ok(()),
        false => Err(Status::unavailable(format!(
            "no endpoints available for service {name:?}"
        ))),
    }
}

/// The container that a request names must be one of the pod; only a pod with one needs no name.
fn check_container(call: &Call, pod: &Doc) -> Result<String, Status> {
    let wanted = call.query.get("container");
    let name = &call.path.name;
    let names = |pointer: &str| -> Vec<String> {
        let containers = pod.at(pointer).items().iter();
        containers
            .map(|container| container.str_at("/name").to_owned())
            .collect()
    };
    if !wanted.is_empty() {
        let is_known = |list: &&str| names(list).iter().any(|name| name == wanted);
        return match CONTAINER_LISTS.iter().any(is_known) {
            true => Ok(wanted.to_owned()),
            false => Err(Status::bad_request(format!(
                "container {wanted} is not valid for pod {name}"
            ))),
        };
    }
    let [init, main, ephemeral] = CONTAINER_LISTS.map(names);
    let given = pod
        .meta()
        .annotation("kubectl.kubernetes.io/default-container");
    if let [only] = &main[..] {
        return Ok(only.clone());
    }
    if let Some(given) = given.filter(|given| main.iter().any(|name| name == given)) {
        return Ok(given.to_owned());
    }
    let mut why = format!(
        "a container name must be specified for pod {name}, choose one of: [{}]",
        main.join(" ")
    );
    for (list, sort) in [(init, "init"), (ephemeral, "ephemeral")] {
        if !list.is_empty() {
            why += &format!(" or one of the {sort} containers: [{}]", list.join(" "));
        }
    }
    Err(Status::bad_request(why))
}

/// The node of a pod must exist, and have an address.
fn check_node(call: &Call, pod: &Doc) -> Result<(), Status> {
    let name = pod.str_at("/spec/nodeName");
    let node = call.server.inner().storage.find("", "nodes", "", name);
    // Upstream names the resource of the request.
    let missing = || Status::not_found(&GroupResource::new("", "pods"), name);
    check_addresses(&node.ok_or_else(missing)?)
}

fn check_addresses(node: &Doc) -> Result<(), Status> {
    match node.at("/status/addresses").items().is_empty() {
        false => Ok(()),
        true => Err(Status::plain(
            "no preferred addresses found; known addresses: []",
        )),
    }
}

fn check_log_options(call: &Call) -> Result<(), Status> {
    let mut errors = FieldErrors::default();
    let query = &call.query;
    let number = |key: &str, least: i64, errors: &mut FieldErrors| -> Result<bool, Status> {
        let Some(value) = query.number(key)? else {
            return Ok(false);
        };
        if value < least {
            let than = if least == 0 {
                "than or equal to"
            } else {
                "than"
            };
            let why = format!("must be greater {than} 0");
            errors.invalid(&FieldPath::new(key), value, why);
        }
        Ok(true)
    };
    number("tailLines", 0, &mut errors)?;
    number("limitBytes", 1, &mut errors)?;
    let has_time = !query.get("sinceTime").is_empty();
    let has_seconds = query.number("sinceSeconds")?.is_some();
    if has_time && has_seconds {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.forbidden(&FieldPath::new("[]"), why);
    } else {
        number("sinceSeconds", 1, &mut errors)?;
    }
    if query
        .find("stream")
        .is_some_and(|stream| !stream.is_empty())
    {
        errors.forbidden(&FieldPath::new("stream"), "may not be specified");
    }
    if errors.is_empty() {
        return Ok(());
    }
    let kind = GroupKind::new("", "PodLogOptions");
    Err(Status::invalid(&kind, &call.path.name, &errors))
}
