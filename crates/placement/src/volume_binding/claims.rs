//! The claims of a pod, by what the scheduler has to do for them.

use windlass_core::{Doc, Key};

use super::{Shared, matching::class_name};
use crate::scheduler::Refusal;

/// The annotation of a claim that is bound completely.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The claims of a pod.
#[derive(Debug, Default)]
pub(super) struct PodClaims {
    /// Those that have a volume.
    pub(super) bound: Vec<Doc>,
    /// Those that get a volume when the pod gets a node.
    pub(super) delayed: Vec<Doc>,
    /// True if another pod uses a claim that is for one pod at a time.
    pub(super) is_in_use: bool,
}

/// The names of the claims of a pod, and true for those that belong to it alone.
pub(super) fn claim_names(pod: &Doc) -> impl Iterator<Item = (String, bool)> {
    let volumes = pod.at("/spec/volumes").items().iter();
    volumes.filter_map(|volume| {
        let named = volume.str_at("/persistentVolumeClaim/claimName");
        if !named.is_empty() {
            return Some((named.to_owned(), false));
        }
        let is_ephemeral = !volume.at("/ephemeral").is_null();
        is_ephemeral.then(|| {
            let name = format!("{}-{}", pod.meta().name(), volume.str_at("/name"));
            (name, true)
        })
    })
}

/// Returns true if a claim has its volume, and its volume the claim.
pub(super) fn is_bound(claim: &Doc) -> bool {
    !claim.str_at("/spec/volumeName").is_empty()
        && claim.meta().annotation(BIND_COMPLETED).is_some()
}

impl PodClaims {
    /// The claims of a pod; `None` if it has none.
    pub(super) fn of(shared: &Shared, pod: &Doc) -> Result<Option<Self>, Refusal> {
        let mut found: Option<Self> = None;
        let mut has_immediate = false;
        for (name, is_ephemeral) in claim_names(pod) {
            let claims = found.get_or_insert_default();
            let claim = find(shared, pod, &name, is_ephemeral)?;
            let mut modes = claim.at("/spec/accessModes").items().iter();
            if modes.any(|mode| mode == "ReadWriteOncePod") {
                claims.is_in_use |= shared.is_used_by_another(pod, &name);
            }
            if is_bound(&claim) {
                claims.bound.push(claim);
            } else if is_delayed(shared, &claim) && claim.str_at("/spec/volumeName").is_empty() {
                claims.delayed.push(claim);
            } else {
                has_immediate = true;
            }
        }
        if has_immediate {
            let reason = "pod has unbound immediate PersistentVolumeClaims";
            return Err(Refusal::Unresolvable(reason.to_owned()));
        }
        Ok(found)
    }
}

fn find(shared: &Shared, pod: &Doc, name: &str, is_ephemeral: bool) -> Result<Doc, Refusal> {
    let refuse = |reason: String| Err(Refusal::Unresolvable(reason));
    let key = Key::new(pod.meta().namespace(), name);
    let Some(claim) = shared.claims.get(&key) else {
        return refuse(match is_ephemeral {
            true => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim \
                 {name:?}"
            ),
            false => format!("persistentvolumeclaim {name:?} not found"),
        });
    };
    let claim = claim.doc().clone();
    if claim.str_at("/status/phase") == "Lost" {
        let volume = claim.str_at("/spec/volumeName");
        return refuse(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.meta().is_deleting() {
        return refuse(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    if is_ephemeral && !claim.meta().is_controlled_by(&pod.meta().uid()) {
        return refuse(format!(
            "PVC {key} was not created for pod {} (pod is not owner)",
            pod.meta().key()
        ));
    }
    Ok(claim)
}

/// Returns true if a claim gets its volume only when a pod that uses it gets a node.
fn is_delayed(shared: &Shared, claim: &Doc) -> bool {
    let class = shared.class(class_name(claim));
    class.is_some_and(|class| class.str_at("/volumeBindingMode") == "WaitForFirstConsumer")
}
