//! Claims, bound and unbound.

use windlass_cache::Obj;
use windlass_core::{Doc, Key};
use windlass_runtime::{Context, Error, EventType, Result};

use super::{
    Engine,
    facts::{BOUND_BY_CONTROLLER, SELECTED_NODE, claim_of, class_of, has_annotation, is_meant_for},
    matching,
};
use crate::is_pod_terminal;

impl Engine {
    /// Looks for a volume. Returns true if the claim waits for something.
    pub(super) async fn sync_unbound(&self, cx: &Context, claim: &Doc) -> Result<bool> {
        let name = claim.str_at("/spec/volumeName");
        if !name.is_empty() {
            return self.sync_chosen(cx, claim, name).await;
        }
        let is_delayed = self.is_binding_delayed(claim);
        let volumes: Vec<Obj> = self.volumes.lister().snapshot().iter().collect();
        if let Some(volume) = matching::best(claim, &volumes, is_delayed)? {
            self.bind(cx, volume.doc(), claim).await?;
            return Ok(false);
        }
        if self.assign_default_class(cx, claim).await? {
            return Ok(false);
        }
        if is_delayed && !has_annotation(claim, SELECTED_NODE) {
            self.tell_waiting(cx, claim);
        } else if !class_of(claim).is_empty() {
            self.provision(cx, claim).await?;
            return Ok(true);
        } else {
            let text = "no persistent volumes available for this claim and no storage class is set";
            let recorder = cx.recorder();
            recorder.event(claim, EventType::Normal, "FailedBinding", text);
        }
        self.set_claim_status(cx, claim, "Pending", None).await?;
        Ok(true)
    }

    /// A claim that names a volume itself gets that one or none.
    async fn sync_chosen(&self, cx: &Context, claim: &Doc, name: &str) -> Result<bool> {
        let recorder = cx.recorder();
        let Some(volume) = self.volumes.lister().get(&Key::cluster(name)) else {
            self.set_claim_status(cx, claim, "Pending", None).await?;
            return Ok(true);
        };
        let volume = volume.doc();
        if claim_of(volume).is_none() {
            if let Some(why) = matching::mismatch(volume, claim) {
                let text = format!("Cannot bind to requested volume {name:?}: {why}");
                recorder.event(claim, EventType::Warning, "VolumeMismatch", &text);
                self.set_claim_status(cx, claim, "Pending", None).await?;
                return Ok(true);
            }
        } else if !is_meant_for(volume, claim) {
            let text = format!("volume {name:?} already bound to a different claim.");
            recorder.event(claim, EventType::Warning, "FailedBinding", &text);
            if has_annotation(claim, BOUND_BY_CONTROLLER) {
                let key = claim.meta().key();
                let text = format!("invalid binding of claim {key} to volume {name}");
                return Err(Error::msg(text));
            }
            self.set_claim_status(cx, claim, "Pending", None).await?;
            return Ok(true);
        }
        self.bind(cx, volume, claim).await?;
        Ok(false)
    }

    /// Looks whether a claim that had a volume still has it.
    pub(super) async fn sync_bound(&self, cx: &Context, claim: &Doc) -> Result<bool> {
        let name = claim.str_at("/spec/volumeName");
        if name.is_empty() {
            let text = "Bound claim has lost reference to PersistentVolume. Data on the volume is \
                        lost!";
            self.lose(cx, claim, "ClaimLost", text).await?;
            return Ok(false);
        }
        let Some(volume) = self.volumes.lister().get(&Key::cluster(name)) else {
            let text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            self.lose(cx, claim, "ClaimLost", text).await?;
            return Ok(false);
        };
        let volume = volume.doc();
        let holder = volume.str_at("/spec/claimRef/uid");
        if claim_of(volume).is_none() || holder == claim.meta().uid_str() {
            self.bind(cx, volume, claim).await?;
            return Ok(false);
        }
        let text = "Two claims are bound to the same volume, this one is bound incorrectly";
        self.lose(cx, claim, "ClaimMisbound", text).await?;
        Ok(false)
    }

    async fn lose(&self, cx: &Context, claim: &Doc, reason: &str, text: &str) -> Result<()> {
        if claim.str_at("/status/phase") == "Lost" {
            return Ok(());
        }
        let lost = self.set_claim_status(cx, claim, "Lost", None).await?;
        cx.recorder().event(&lost, EventType::Warning, reason, text);
        Ok(())
    }

    /// Returns true if the claim's class leaves the choice of a volume to the scheduler.
    fn is_binding_delayed(&self, claim: &Doc) -> bool {
        let class = self.classes.lister().get(&Key::cluster(class_of(claim)));
        class.is_some_and(|it| it.doc().str_at("/volumeBindingMode") == "WaitForFirstConsumer")
    }

    fn tell_waiting(&self, cx: &Context, claim: &Doc) {
        let meta = claim.meta();
        let pods = self.pods.lister();
        let pods = pods.list_in(meta.namespace(), &windlass_core::Selector::everything());
        let waiting = pods
            .iter()
            .filter(|pod| is_waiting_for(pod.doc(), meta.name()));
        let names: Vec<&str> = waiting.map(Obj::name).collect();
        let (reason, text) = match names.as_slice() {
            [] => (
                "WaitForFirstConsumer",
                "waiting for first consumer to be created before binding".to_owned(),
            ),
            [name] => (
                "WaitForPodScheduled",
                format!("waiting for pod {name} to be scheduled"),
            ),
            names => (
                "WaitForPodScheduled",
                format!("waiting for pods {} to be scheduled", names.join(",")),
            ),
        };
        cx.recorder().event(claim, EventType::Normal, reason, &text);
    }
}

/// Returns true if a pod uses a claim and has no node yet.
fn is_waiting_for(pod: &Doc, claim: &str) -> bool {
    let is_unscheduled = pod.str_at("/spec/nodeName").is_empty() && !is_pod_terminal(pod);
    let mut volumes = pod.at("/spec/volumes").items().iter();
    is_unscheduled
        && volumes.any(|volume| {
            let is_ephemeral = volume.get("ephemeral").is_some();
            let own = || format!("{}-{}", pod.meta().name(), volume.str_at("/name"));
            volume.str_at("/persistentVolumeClaim/claimName") == claim
                || is_ephemeral && own() == claim
        })
}
