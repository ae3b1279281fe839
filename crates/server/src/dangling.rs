//! After a change of flow schemas or priority levels: they take effect, and flow schemas are told
//! whether the priority level that they name exists.

use tokio::task::JoinSet;
use windlass_core::{Doc, doc};

use crate::rest::{self, Operation};
use crate::server::Server;
use windlass_access::User;
use windlass_rules::status::Status;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
/// Upstream's name for who says so.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// Brings the conditions of all flow schemas in line, all at once.
pub(crate) async fn tell(server: Server) {
    server.inner().flow.reload(&server.inner().storage);
    let schemas = server.inner().storage.snapshot_of(GROUP, SCHEMAS);
    let mut tasks = JoinSet::new();
    for entry in schemas.iter() {
        if let Some(told) = wanted(&server, entry.doc()) {
            let server = server.clone();
            tasks.spawn(async move { apply(&server, told).await });
        }
    }
    while let Some(outcome) = tasks.join_next().await {
        match outcome {
            Ok(Err(status)) if !is_overtaken(&status) => {
                tracing::warn!(%status, "a flow schema is not told about its level");
            }
            _ => {}
        }
    }
}

/// Whether a flow schema was deleted, or made anew, meanwhile.
fn is_overtaken(status: &Status) -> bool {
    matches!(status.code(), 404 | 409)
}

/// What is to be said of a flow schema, unless it was said before.
fn wanted(server: &Server, schema: &Doc) -> Option<Doc> {
    let level = schema.str_at("/spec/priorityLevelConfiguration/name");
    let exists = server
        .inner()
        .storage
        .find(GROUP, LEVELS, "", level)
        .is_some();
    let (status, reason, rest) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}"
    );
    let conditions = schema.at("/status/conditions").items().iter();
    let mut known = conditions.filter(|known| *known.at("/type") == "Dangling");
    let known = known.next();
    let is_said = |known: &Doc| *known.at("/status") == status && *known.at("/message") == *message;
    if known.is_some_and(is_said) {
        return None;
    }
    let now = Doc::from(server.inner().env.now().to_string());
    let since = match known {
        Some(known) if *known.at("/status") == status => known.at("/lastTransitionTime").clone(),
        _ => now,
    };
    let condition = doc!({
        "type": "Dangling", "status": status, "lastTransitionTime": since, "reason": reason,
        "message": message
    });
    Some(doc!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": { "name": (schema.meta().name()), "uid": (schema.meta().uid_str()) },
        "status": { "conditions": [condition] }
    }))
}

async fn apply(server: &Server, told: Doc) -> Result<(), Status> {
    let table = server.inner().registry.table();
    let Some(resource) = table.find(GROUP, "v1", SCHEMAS) else {
        return Ok(());
    };
    let name = told.meta().name().to_owned();
    let operation = Operation {
        request: None,
        server,
        resource,
        namespace: "",
        name: &name,
        subresource: "status",
        user: &User::server(),
    };
    rest::apply_status(operation, MANAGER, told).await
}
