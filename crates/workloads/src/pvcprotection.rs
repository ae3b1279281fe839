//! The protection of persistent volume claims: one that a pod uses is not deleted before the pod is
//! gone.

use windlass_cache::{Lister, Obj};
use windlass_client::{ListOptions, WriteOptions};
use windlass_core::{Doc, Key, Str};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use crate::is_pod_terminal;
use crate::pvprotection::{CORE, needs_work, with_protection};

/// The name of the controller.
pub const NAME: &str = "persistentvolumeclaim-protection-controller";

/// The finalizer that keeps a claim.
pub const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName", "volumes"];

/// The index of pods by the claims that they name.
const PODS_BY_CLAIM: &str = "pod-pvc-index";

/// Options of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many claims are worked on at the same time.
    pub workers: usize,
}

impl Default for Options {
    /// Upstream's: one worker.
    fn default() -> Self {
        Self { workers: 1 }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let informer = manager.factory().dynamic(pods().gvr().clone());
    if let Err(failure) = informer.add_index(PODS_BY_CLAIM, claims_of_pod) {
        tracing::debug!(%failure, "an index was there before");
    }
    let lister = informer.lister();
    let reconcile = move |key: Key, cx: Context| {
        let lister = lister.clone();
        async move { protect(&key, &cx, &lister).await }
    };
    let controller = Controller::of_kind(claims(), reconcile)
        .filter(|change| needs_work(change, FINALIZER))
        .reacts_to_kind(pods(), claims_after)
        .named(NAME)
        .queue_named("pvcprotection")
        .workers(options.workers);
    manager.add(controller);
}

fn claims() -> ResourceKind {
    ResourceKind::namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims")
}

fn pods() -> ResourceKind {
    ResourceKind::namespaced(CORE, "Pod", "pods")
}

async fn protect(key: &Key, cx: &Context, pods: &Lister) -> Result<Action> {
    let Some(claim) = cx.lister_of(&claims())?.get(key) else {
        return Ok(Action::done());
    };
    let claim = claim.doc();
    // Only the end of a claim depends on who uses it.
    let is_used = claim.meta().is_deleting() && is_used(claim, key, cx, pods).await?;
    if let Some(changed) = with_protection(claim, FINALIZER, is_used) {
        let options = WriteOptions::manager(NAME);
        let namespace = key.namespace().unwrap_or_default();
        cx.api(&claims(), namespace)
            .update(&changed, &options)
            .await?;
    }
    Ok(Action::done())
}

/// Returns true if a pod uses a claim. A pod that is not in the cache yet counts as well, so the
/// server is asked before the answer is no.
async fn is_used(claim: &Doc, key: &Key, cx: &Context, cached: &Lister) -> Result<bool> {
    let known = cached.by_index(PODS_BY_CLAIM, key.as_str())?;
    if known.iter().any(|pod| uses(pod.doc(), claim)) {
        return Ok(true);
    }
    let namespace = key.namespace().unwrap_or_default();
    let listed = cx
        .api(&pods(), namespace)
        .list_all(&ListOptions::default())
        .await?;
    Ok(listed.items.iter().any(|pod| uses(pod, claim)))
}

/// Returns true if a pod keeps a claim. One without a node does not: no kubelet starts a pod on a
/// claim that is being deleted.
fn uses(pod: &Doc, claim: &Doc) -> bool {
    if pod.str_at("/spec/nodeName").is_empty() {
        return false;
    }
    let name = claim.meta().name();
    let is_own = claim.meta().is_controlled_by(&pod.meta().uid());
    volumes(pod).any(|(volume, is_ephemeral)| {
        volume == name && (!is_ephemeral || is_own && !is_shut_down(pod))
    })
}

/// Returns true if the kubelet is done with a pod, or was told not to care.
fn is_shut_down(pod: &Doc) -> bool {
    let grace = pod.at("/metadata/deletionGracePeriodSeconds").as_i64();
    pod.meta().is_deleting() && grace == Some(0)
}

/// The names of the claims of a pod, and whether each is made for an ephemeral volume.
fn volumes(pod: &Doc) -> impl Iterator<Item = (String, bool)> {
    let volumes = pod.at("/spec/volumes").items().iter();
    volumes.filter_map(
        |volume| match volume.str_at("/persistentVolumeClaim/claimName") {
            "" if volume.get("ephemeral").is_some() => {
                let name = format!("{}-{}", pod.meta().name(), volume.str_at("/name"));
                Some((name, true))
            }
            "" => None,
            name => Some((name.to_owned(), false)),
        },
    )
}

fn claim_keys(pod: &Obj) -> impl Iterator<Item = Key> {
    volumes(pod.doc()).map(|(name, _)| Key::new(pod.namespace(), &name))
}

fn claims_of_pod(pod: &Obj) -> Vec<Str> {
    claim_keys(pod).map(|key| Str::new(key.as_str())).collect()
}

/// The claims that a change of a pod may set free.
fn claims_after(change: &Change<'_>) -> Vec<Trigger> {
    let holds = |pod: &Obj| {
        let (pod, has_node) = (pod.doc(), !pod.doc().str_at("/spec/nodeName").is_empty());
        has_node && !is_pod_terminal(pod) && !pod.meta().is_deleting()
    };
    let new = change.new.filter(|new| !holds(new));
    // Another pod of the same name may hide that one is gone.
    let old = change.old.filter(|old| {
        let uid = old.meta().uid_str();
        change.new.is_none_or(|new| new.meta().uid_str() != uid)
    });
    let freed = new.into_iter().chain(old).flat_map(claim_keys);
    freed.map(Trigger::now).collect()
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn claim(name: &str, owner: &str) -> Doc {
        doc!({ "metadata": { "name": name, "namespace": "default", "ownerReferences": [
            { "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": owner, "controller": true }
        ] } })
    }

    fn pod() -> Doc {
        doc!({
            "metadata": { "name": "a", "namespace": "default", "uid": "u" },
            "spec": { "nodeName": "n", "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "c" } },
                { "name": "scratch", "ephemeral": {} },
                { "name": "other", "emptyDir": {} },
            ] }
        })
    }

    #[test]
    fn only_a_pod_on_a_node_uses_its_claims() {
        assert!(uses(&pod(), &claim("c", "")));
        assert!(!uses(&pod(), &claim("d", "")));
        let unscheduled = pod().without("/spec/nodeName").unwrap();
        assert!(!uses(&unscheduled, &claim("c", "")));
    }

    #[test]
    fn a_claim_of_an_ephemeral_volume_is_used_by_its_owner_until_it_is_shut_down() {
        assert!(uses(&pod(), &claim("a-scratch", "u")));
        assert!(!uses(&pod(), &claim("a-scratch", "another")));
        let metadata = "/metadata/deletionTimestamp";
        let ended = pod().with(metadata, "2026-01-01T00:00:00Z").unwrap();
        assert!(uses(&ended, &claim("a-scratch", "u")));
        let grace = "/metadata/deletionGracePeriodSeconds";
        let ended = ended.with(grace, 0).unwrap();
        assert!(!uses(&ended, &claim("a-scratch", "u")));
        assert!(uses(&ended, &claim("c", "")));
    }
}
