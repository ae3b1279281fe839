//! Connections as admission extensions see them.

use windlass_access::matching::OperationType;
use windlass_core::{Doc, Gvk, Object};

use crate::rest::Call;
use crate::rest::ask::Question;
use windlass_rules::status::Status;

/// Asks extensions about a connection: they see its options.
pub(super) async fn ask_about_connection(call: &Call) -> Result<(), Status> {
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
