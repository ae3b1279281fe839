//! The report of a run: the requests, the objects that are left, their events, and what
//! controllers did about them.

use windlass_core::{Doc, Key, Prune, doc};

use super::cluster::TestCluster;
use super::program::Ended;
use super::{Arguments, objects};

/// The report as a document.
pub(super) async fn of(
    arguments: &Arguments,
    cluster: &TestCluster,
    ended: &Ended,
) -> anyhow::Result<Doc> {
    let now = objects::all(&cluster.client).await?;
    let words = arguments.command.iter();
    let command: Vec<Doc> = words
        .map(|word| word.to_string_lossy().as_ref().into())
        .collect();
    let requests = cluster.plan.seen();
    let requests: Vec<Doc> = requests.iter().map(|request| request.describe()).collect();
    let changed = objects::since(&cluster.first_objects, &now);
    let prune = Prune::managed_fields();
    let left: Vec<Doc> = changed.iter().map(|object| prune.apply(object)).collect();
    let millis = i64::try_from(ended.took.as_millis()).unwrap_or(i64::MAX);
    Ok(doc!({
        "command": command,
        "exitCode": (i64::from(ended.code)),
        "milliseconds": millis,
        "faults": (cluster.plan.describe().at("/rules").clone()),
        "requests": requests,
        "objects": left,
        "events": (events(&now)),
        "why": (why(cluster, &changed))
    }))
}

/// The events, in few words each.
fn events(objects: &[Doc]) -> Vec<Doc> {
    let is_event =
        |object: &&Doc| object.str_at("/kind") == "Event" && object.str_at("/apiVersion") == "v1";
    let events = objects.iter().filter(is_event).map(|event| {
        doc!({
            "type": (event.str_at("/type")), "reason": (event.str_at("/reason")),
            "message": (event.str_at("/message")), "kind": (event.str_at("/involvedObject/kind")),
            "namespace": (event.str_at("/involvedObject/namespace")),
            "name": (event.str_at("/involvedObject/name")),
            "count": (event.at("/count").clone())
        })
    });
    events.collect()
}

/// The journals of the controllers about the objects that are left.
fn why(cluster: &TestCluster, objects: &[Doc]) -> Vec<Doc> {
    let Some(controllers) = &cluster.controllers else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for object in objects {
        let key: Key = object.meta().key();
        let text = controllers.handle.why(&key);
        if !text.is_empty() {
            let kind = object.str_at("/kind");
            found.push(doc!({ "kind": kind, "key": (key.as_str()), "why": text }));
        }
    }
    found
}
