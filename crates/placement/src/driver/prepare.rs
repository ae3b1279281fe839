//! Preparing devices for pods.

use std::fmt;

use windlass_cache::Lister;
use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Key, doc};
use windlass_runtime::{Action, Context, Result};

use super::DRIVER;
use crate::{
    claims::{ClaimName, claim_kind, claim_name, is_allocated, is_reserved_for},
    node::PodResources,
};

/// Refuses pods whose claims have no devices, or are not reserved for them.
pub struct Preparer {
    claims: Lister,
}

impl Preparer {
    pub(super) fn new(claims: Lister) -> Self {
        Self { claims }
    }
}

impl PodResources for Preparer {
    fn prepare(&self, _node: &str, pod: &Doc) -> std::result::Result<(), String> {
        for entry in pod.at("/spec/resourceClaims").items() {
            let name = claim_name(pod, entry).map_err(|error| error.to_string())?;
            let ClaimName::Named { name, .. } = name else {
                continue;
            };
            let key = Key::new(pod.meta().namespace(), name);
            let Some(claim) = self.claims.get(&key) else {
                return Err(format!("ResourceClaim {key} is not known"));
            };
            if !is_allocated(claim.doc()) || !is_reserved_for(claim.doc(), pod) {
                let (name, uid) = (pod.meta().name(), pod.meta().uid_str());
                let (claim, claim_uid) = (claim.name(), claim.uid());
                return Err(format!(
                    "pod {name} ({uid}) is not allowed to use ResourceClaim {claim} ({claim_uid})"
                ));
            }
        }
        Ok(())
    }

    fn unprepare(&self, _node: &str, _pod: &Doc) {
        // What the status says about a device goes with the allocation.
    }
}

/// Says of the devices of claims that they are prepared.
pub(super) struct Reporter {
    claims: Lister,
}

impl Reporter {
    pub(super) fn new(claims: Lister) -> Self {
        Self { claims }
    }

    pub(super) async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(claim) = self
            .claims
            .get(key)
            .filter(|claim| lacks_report(claim.doc()))
        else {
            return Ok(Action::done());
        };
        let (doc, meta) = (claim.doc(), claim.meta());
        let now = cx.env().now().to_string();
        let devices = own_devices(doc).map(|result| {
            doc!({
                "driver": DRIVER, "pool": (result.at("/pool")), "device": (result.at("/device")),
                "conditions": [{
                    "type": "Ready", "status": "True", "reason": "Prepared",
                    "message": "the device is ready", "lastTransitionTime": (now.as_str())
                }]
            })
        });
        let patch = Patch::Apply(doc!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {
                "name": (meta.name()), "namespace": (meta.namespace()), "uid": (meta.uid_str())
            },
            "status": { "devices": (devices.collect::<Vec<Doc>>()) }
        }));
        let api = cx.api(&claim_kind(), meta.namespace());
        let options = WriteOptions::manager(DRIVER).force();
        match api.patch_status(meta.name(), &patch, &options).await {
            // The claim is gone, or has given its devices back.
            Err(error) if error.is_not_found() || error.is_invalid() => Ok(Action::done()),
            other => Ok(other.map(|_| Action::done())?),
        }
    }
}

/// Whether a claim that pods use has a device of this driver whose state nobody has reported.
pub(super) fn lacks_report(claim: &Doc) -> bool {
    let reported = claim.at("/status/devices").items();
    let is_reported = |result: &Doc| {
        reported.iter().any(|device| {
            let is_same = |key: &str| device.get(key) == result.get(key);
            ["driver", "pool", "device"].into_iter().all(is_same)
        })
    };
    let is_used = !claim.at("/status/reservedFor").items().is_empty();
    is_used && own_devices(claim).any(|result| !is_reported(result))
}

/// The devices of this driver that a claim has.
fn own_devices(claim: &Doc) -> impl Iterator<Item = &Doc> {
    let results = claim
        .at("/status/allocation/devices/results")
        .items()
        .iter();
    results.filter(|result| result.str_at("/driver") == DRIVER)
}

impl fmt::Debug for Preparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preparer(..)")
    }
}
