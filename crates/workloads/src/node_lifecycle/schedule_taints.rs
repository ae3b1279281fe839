//! The taints that keep new pods away from a node follow its conditions, and the old labels of a
//! node's system follow the new ones.

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Key, Object, doc};
use windlass_runtime::{Action, Context, Controller, Result};

use super::{
    NAME,
    taints::{BY_CONDITION, TaintKey, UNSCHEDULABLE, swap},
};
use crate::taint_eviction::nodes;

/// Upstream's.
const WORKERS: usize = 8;

/// A label, and the one that follows it.
const LABELS: [(&str, &str); 2] = [
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];

pub(super) fn controller() -> Controller {
    let reconcile = |key: Key, cx: Context| async move { follow(&key, &cx).await };
    Controller::of_kind(nodes(), reconcile)
        .named("node-lifecycle-controller-taints")
        .queue_named("node_lifecycle_controller")
        .workers(WORKERS)
}

async fn follow(key: &Key, cx: &Context) -> Result<Action> {
    let Some(node) = cx.lister_of(&nodes())?.get(key) else {
        return Ok(Action::done());
    };
    let node = node.doc();
    let wanted = wanted(node);
    let ours = BY_CONDITION.map(|(_, _, key)| key);
    let ours = ours.into_iter().chain([UNSCHEDULABLE]);
    let stale: Vec<TaintKey> = ours
        .map(TaintKey::no_schedule)
        .filter(|taint| !wanted.contains(taint))
        .collect();
    let now = cx.env().now().to_string();
    let api = cx.api(&nodes(), "");
    if swap(&api, node, &wanted, &stale, &now).await? {
        // The labels are looked at with the change that this makes.
        return Ok(Action::done());
    }
    if let Some(labels) = stale_labels(node) {
        let patch = Patch::Merge(doc!({
            "metadata": { "uid": (node.meta().uid_str()), "labels": labels },
        }));
        let options = WriteOptions::manager(NAME).metadata_only();
        api.patch(key.name(), &patch, &options).await?;
    }
    Ok(Action::done())
}

/// The taints that a node should have, in the order of its conditions.
fn wanted(node: &Doc) -> Vec<TaintKey> {
    let conditions = node.at("/status/conditions").items().iter();
    let keys = conditions.filter_map(|it| {
        let (kind, status) = (it.str_at("/type"), it.str_at("/status"));
        let found = BY_CONDITION.iter();
        let mut found = found.filter(|(of, in_status, _)| *of == kind && *in_status == status);
        found.next().map(|(_, _, key)| *key)
    });
    let is_cordoned = node.at("/spec/unschedulable").as_bool() == Some(true);
    let cordon = is_cordoned.then_some(UNSCHEDULABLE);
    keys.chain(cordon).map(TaintKey::no_schedule).collect()
}

fn stale_labels(node: &Doc) -> Option<Doc> {
    let labels = node.meta().labels();
    let stale = LABELS.iter().filter_map(|(of, follower)| {
        let value = labels.value(of)?;
        (labels.value(follower) != Some(value)).then(|| (*follower, Doc::from(value)))
    });
    let stale: Object = stale.collect();
    (!stale.is_empty()).then(|| stale.into())
}
