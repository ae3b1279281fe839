//! The writes of a binding.

use windlass_client::WriteOptions;
use windlass_core::{Doc, doc};
use windlass_runtime::{Context, Error, Result};

use super::{
    Engine, NAME, claims,
    facts::{
        BIND_COMPLETED, BOUND_BY_CONTROLLER, access_modes, attributes_class, claim_of,
        has_annotation, is_meant_for,
    },
    volumes,
};

/// The JSON pointer of an annotation.
pub(super) fn annotation(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('/', "~1"))
}

/// An object with an annotation, which may be its first.
pub(super) fn with_annotation(object: &Doc, key: &str, value: &str) -> Result<Doc> {
    let object = match object.at("/metadata/annotations").is_null() {
        true => object.with("/metadata/annotations", Doc::empty_object())?,
        false => object.clone(),
    };
    Ok(object.with(&annotation(key), value)?)
}

impl Engine {
    /// Binds a volume and a claim to each other, in four writes: the volume, its phase, the claim,
    /// its status. What is written already is left alone, so that this continues an earlier try.
    pub(super) async fn bind(&self, cx: &Context, volume: &Doc, claim: &Doc) -> Result<()> {
        let volume = self.bind_volume(cx, volume, claim).await?;
        let volume = self.set_phase(cx, &volume, "Bound", "").await?;
        let claim = self.bind_claim(cx, claim, &volume).await?;
        self.set_claim_status(cx, &claim, "Bound", Some(&volume))
            .await?;
        Ok(())
    }

    async fn bind_volume(&self, cx: &Context, volume: &Doc, claim: &Doc) -> Result<Doc> {
        let is_ours = !is_meant_for(volume, claim);
        let is_complete = claim_of(volume) == Some(claim.meta().key())
            && volume.str_at("/spec/claimRef/uid") == claim.meta().uid_str();
        let mut changed = volume.clone();
        if !is_complete {
            changed = changed.with("/spec/claimRef", reference_to(claim))?;
        }
        if is_ours && !has_annotation(volume, BOUND_BY_CONTROLLER) {
            changed = with_annotation(&changed, BOUND_BY_CONTROLLER, "yes")?;
        }
        match changed == *volume {
            true => Ok(changed),
            false => self.put_volume(cx, &changed).await,
        }
    }

    pub(super) async fn put_volume(&self, cx: &Context, volume: &Doc) -> Result<Doc> {
        let api = cx.api(&volumes(), "");
        Ok(api.update(volume, &WriteOptions::manager(NAME)).await?)
    }

    async fn bind_claim(&self, cx: &Context, claim: &Doc, volume: &Doc) -> Result<Doc> {
        let mut changed = claim.clone();
        if claim.str_at("/spec/volumeName") != volume.meta().name() {
            changed = changed.with("/spec/volumeName", volume.meta().name())?;
            if !has_annotation(claim, BOUND_BY_CONTROLLER) {
                changed = with_annotation(&changed, BOUND_BY_CONTROLLER, "yes")?;
            }
        }
        if !has_annotation(claim, BIND_COMPLETED) {
            changed = with_annotation(&changed, BIND_COMPLETED, "yes")?;
        }
        match changed == *claim {
            true => Ok(changed),
            false => self.put_claim(cx, &changed).await,
        }
    }

    pub(super) async fn put_claim(&self, cx: &Context, claim: &Doc) -> Result<Doc> {
        let api = cx.api(&claims(), claim.meta().namespace());
        Ok(api.update(claim, &WriteOptions::manager(NAME)).await?)
    }

    /// Sets the phase of a volume.
    pub(super) async fn set_phase(
        &self,
        cx: &Context,
        volume: &Doc,
        phase: &str,
        message: &str,
    ) -> Result<Doc> {
        if volume.str_at("/status/phase") == phase {
            return Ok(volume.clone());
        }
        let mut changed = volume.with("/status/phase", phase)?;
        if !message.is_empty() {
            changed = changed.with("/status/message", message)?;
        } else if changed.at("/status").get("message").is_some() {
            changed = changed.without("/status/message")?;
        }
        let api = cx.api(&volumes(), "");
        let options = WriteOptions::manager(NAME);
        Ok(api.update_status(&changed, &options).await?)
    }

    /// Sets the phase of a claim, and what it has of its volume.
    pub(super) async fn set_claim_status(
        &self,
        cx: &Context,
        claim: &Doc,
        phase: &str,
        volume: Option<&Doc>,
    ) -> Result<Doc> {
        let before = claim.at("/status");
        let is_new = before.str_at("/phase") != phase;
        let mut changed = claim.with("/status/phase", phase)?;
        match volume {
            None => {
                for field in [
                    "accessModes",
                    "capacity",
                    "currentVolumeAttributesClassName",
                ] {
                    if before.get(field).is_some() {
                        changed = changed.without(&format!("/status/{field}"))?;
                    }
                }
            }
            Some(volume) => {
                let modes: Vec<Doc> = access_modes(volume).into_iter().map(Doc::from).collect();
                changed = changed.with("/status/accessModes", modes)?;
                if is_new {
                    changed = with_volume(&changed, volume)?;
                }
            }
        }
        if changed == *claim {
            return Ok(changed);
        }
        let api = cx.api(&claims(), claim.meta().namespace());
        let options = WriteOptions::manager(NAME);
        Ok(api.update_status(&changed, &options).await?)
    }
}

/// A claim with the size and the attributes class of its volume.
fn with_volume(claim: &Doc, volume: &Doc) -> Result<Doc> {
    let capacity = volume.at("/spec/capacity");
    if capacity.get("storage").is_none() {
        let name = volume.meta().name();
        let text = format!("PersistentVolume {name:?} is without a storage capacity");
        return Err(Error::msg(text));
    }
    let changed = claim.with("/status/capacity", capacity.clone())?;
    match attributes_class(volume) {
        "" => Ok(changed),
        class => Ok(changed.with("/status/currentVolumeAttributesClassName", class)?),
    }
}

fn reference_to(claim: &Doc) -> Doc {
    let meta = claim.meta();
    doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": (meta.namespace()), "name": (meta.name()), "uid": (meta.uid_str()),
        "resourceVersion": (meta.resource_version()),
    })
}
