//! Volumes, and what becomes of them when their claim is gone.

use windlass_core::Doc;
use windlass_runtime::{Context, EventType, Result};

use super::{
    Engine,
    bind::annotation,
    claims,
    facts::{BOUND_BY_CONTROLLER, PROVISIONED_BY, claim_of, has_annotation, volume_mode},
};

impl Engine {
    /// Brings the phase of a volume in line with its claim.
    pub(super) async fn follow_claim(&self, cx: &Context, volume: &Doc) -> Result<()> {
        if volume.str_at("/spec/claimRef/uid").is_empty() {
            self.set_phase(cx, volume, "Available", "").await?;
            return Ok(());
        }
        let Some(claim) = self.claim_for(cx, volume).await? else {
            return self.release(cx, volume).await;
        };
        let name = claim.str_at("/spec/volumeName");
        if name == volume.meta().name() {
            self.set_phase(cx, volume, "Bound", "").await?;
            return Ok(());
        }
        if name.is_empty() {
            // The claim is bound by its own sync, which this volume's change has started.
            tell_mismatch(cx, volume, &claim);
            return Ok(());
        }
        let is_deleted_after_use = has_annotation(volume, PROVISIONED_BY)
            && volume.str_at("/spec/persistentVolumeReclaimPolicy") == "Delete";
        match is_deleted_after_use {
            true => self.release(cx, volume).await,
            false => self.unbind(cx, volume).await,
        }
    }

    /// The claim of a volume, if it is still the one that is meant. The cache may be behind, so the
    /// server is asked before the answer is no.
    async fn claim_for(&self, cx: &Context, volume: &Doc) -> Result<Option<Doc>> {
        let Some(key) = claim_of(volume) else {
            return Ok(None);
        };
        let uid = volume.str_at("/spec/claimRef/uid");
        let cached = self.claims.lister().get(&key);
        if let Some(cached) = cached.filter(|it| it.meta().uid_str() == uid) {
            return Ok(Some(cached.doc().clone()));
        }
        let api = cx.api(&claims(), key.namespace().unwrap_or_default());
        match api.get(key.name()).await {
            Ok(live) => Ok(Some(live).filter(|it| it.meta().uid_str() == uid)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Frees a volume whose claim is gone. Nobody else gets it before its data is taken care of.
    async fn release(&self, cx: &Context, volume: &Doc) -> Result<()> {
        let is_released = matches!(volume.str_at("/status/phase"), "Released" | "Failed");
        let volume = match is_released {
            true => volume.clone(),
            false => self.set_phase(cx, volume, "Released", "").await?,
        };
        let name = volume.meta().name();
        match volume.str_at("/spec/persistentVolumeReclaimPolicy") {
            "Retain" => Ok(()),
            "Delete" if is_external(&volume) => Ok(()),
            "Delete" => {
                let text = format!(
                    "error getting deleter volume plugin for volume {name:?}: no volume plugin matched"
                );
                self.fail(cx, &volume, "VolumeFailedDelete", &text).await
            }
            "Recycle" => {
                let text = "No recycler plugin found for the volume!";
                self.fail(cx, &volume, "VolumeFailedRecycle", text).await
            }
            _ => {
                let text = "Volume has unrecognized PersistentVolumeReclaimPolicy";
                self.fail(cx, &volume, "VolumeUnknownReclaimPolicy", text)
                    .await
            }
        }
    }

    async fn fail(&self, cx: &Context, volume: &Doc, reason: &str, text: &str) -> Result<()> {
        if volume.str_at("/status/phase") == "Failed" {
            return Ok(());
        }
        let failed = self.set_phase(cx, volume, "Failed", text).await?;
        cx.recorder()
            .event(&failed, EventType::Warning, reason, text);
        Ok(())
    }

    /// Takes a binding back: all of it if it was made here, or the UID if a user named the claim.
    async fn unbind(&self, cx: &Context, volume: &Doc) -> Result<()> {
        let changed = match has_annotation(volume, BOUND_BY_CONTROLLER) {
            true => volume
                .without("/spec/claimRef")?
                .without(&annotation(BOUND_BY_CONTROLLER))?,
            false => volume.without("/spec/claimRef/uid")?,
        };
        let freed = self.put_volume(cx, &changed).await?;
        self.set_phase(cx, &freed, "Available", "").await?;
        Ok(())
    }
}

/// Returns true if another program deletes the volume.
fn is_external(volume: &Doc) -> bool {
    let provisioner = volume.meta().annotation(PROVISIONED_BY).unwrap_or("");
    let is_provisioned = !provisioner.is_empty() && !provisioner.starts_with("kubernetes.io/");
    is_provisioned || !volume.at("/spec/csi").is_null()
}

fn tell_mismatch(cx: &Context, volume: &Doc, claim: &Doc) {
    if volume_mode(volume) == volume_mode(claim) {
        return;
    }
    let recorder = cx.recorder();
    let text = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible \
         volumeMode.",
        claim.meta().name()
    );
    recorder.event(volume, EventType::Warning, "VolumeMismatch", &text);
    let text = format!(
        "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible \
         volumeMode.",
        volume.meta().name()
    );
    recorder.event(claim, EventType::Warning, "VolumeMismatch", &text);
}
