//! The taints that this controller gives and takes.

use windlass_client::{DynamicApi, Error, Patch, WriteOptions};
use windlass_core::{Doc, doc};

use super::NAME;

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(super) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Tries to write the taints of a node, as upstream.
const TRIES: usize = 5;

/// A condition, the status in which it taints, and the taint.
pub(super) const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// A taint by its key and effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaintKey {
    pub(super) key: &'static str,
    pub(super) effect: &'static str,
}

impl TaintKey {
    pub(super) fn no_execute(key: &'static str) -> Self {
        Self {
            key,
            effect: "NoExecute",
        }
    }

    pub(super) fn no_schedule(key: &'static str) -> Self {
        Self {
            key,
            effect: "NoSchedule",
        }
    }

    pub(super) fn is(self, taint: &Doc) -> bool {
        taint.str_at("/key") == self.key && taint.str_at("/effect") == self.effect
    }

    pub(super) fn is_on(self, node: &Doc) -> bool {
        node.at("/spec/taints").items().iter().any(|it| self.is(it))
    }
}

/// Gives a node taints and takes others away. Returns false if it has them already. A node that
/// somebody else has written meanwhile is read again, because the cache may be behind.
pub(super) async fn swap(
    api: &DynamicApi,
    node: &Doc,
    add: &[TaintKey],
    remove: &[TaintKey],
    now: &str,
) -> Result<bool, Error> {
    let mut node = node.clone();
    for _ in 1..TRIES {
        match try_to_swap(api, &node, add, remove, now).await {
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
        let live = api.get(node.meta().name()).await?;
        if live.meta().uid() != node.meta().uid() {
            return Ok(false);
        }
        node = live;
    }
    try_to_swap(api, &node, add, remove, now).await
}

async fn try_to_swap(
    api: &DynamicApi,
    node: &Doc,
    add: &[TaintKey],
    remove: &[TaintKey],
    now: &str,
) -> Result<bool, Error> {
    let before = node.at("/spec/taints").items();
    let is_kept = |taint: &&Doc| !remove.iter().any(|it| it.is(taint));
    let mut taints: Vec<Doc> = before.iter().filter(is_kept).cloned().collect();
    let new = add.iter().filter(|it| !it.is_on(node));
    taints.extend(new.map(|it| doc!({ "key": (it.key), "effect": (it.effect), "timeAdded": now })));
    if taints == before {
        return Ok(false);
    }
    let meta = node.meta();
    let taints = match taints.is_empty() {
        true => Doc::NULL,
        false => taints.into(),
    };
    let patch = Patch::Merge(doc!({
        "metadata": { "uid": (meta.uid_str()), "resourceVersion": (meta.resource_version()) },
        "spec": { "taints": taints },
    }));
    let options = WriteOptions::manager(NAME).metadata_only();
    api.patch(meta.name(), &patch, &options).await?;
    Ok(true)
}
