//! One attempt to place a pod with claims.

use std::{sync::Arc, time::Duration};

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, Key, Selector, doc};

use super::{
    CLAIMS, Shared, VOLUMES,
    claims::{PodClaims, is_bound},
    matching::{can_provision, class_name, find_volume, is_reachable},
};
use crate::scheduler::{NodeView, PluginFuture, PodCycle, Refusal, Verdict};

/// The annotation that asks for a volume on a node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation of a volume that a controller, and no person, has bound.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// How long claims may take to be bound, as in kube-scheduler.
const BIND_TIMEOUT: Duration = Duration::from_secs(600);
/// How often they are looked at, if nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

const BIND_CONFLICT: &str = "node(s) didn't find available persistent volumes to bind";
const NODE_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const VOLUME_MISSING: &str =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod \
                      access mode already in-use by another pod";

/// What is done for the claims of a pod on one node.
#[derive(Debug, Default)]
struct Choice {
    node: String,
    /// Volumes and the claims that get them.
    bindings: Vec<(Doc, Doc)>,
    /// Claims for which volumes are provisioned.
    provisions: Vec<Doc>,
}

/// One attempt.
pub(super) struct Cycle {
    shared: Arc<Shared>,
    claims: PodClaims,
    choice: Option<Choice>,
}

impl Cycle {
    pub(super) fn new(shared: Arc<Shared>, claims: PodClaims) -> Self {
        Self {
            shared,
            claims,
            choice: None,
        }
    }

    /// Finds volumes for the claims that have none.
    fn choose(&self, node: &Doc) -> Option<Choice> {
        let mut choice = Choice {
            node: node.meta().name().to_owned(),
            ..Choice::default()
        };
        if self.claims.delayed.is_empty() {
            return Some(choice);
        }
        let volumes = self.shared.volumes.list(&Selector::everything());
        let volumes: Vec<Doc> = volumes.iter().map(|one| one.doc().clone()).collect();
        let assumed = self.shared.assumed.lock();
        for claim in &self.claims.delayed {
            // A claim for which a volume is being provisioned already stays with its node.
            let selected = claim.meta().annotation(SELECTED_NODE);
            if let Some(selected) = selected {
                if selected != choice.node {
                    return None;
                }
                choice.provisions.push(claim.clone());
                continue;
            }
            let is_taken = |volume: &Doc| {
                let name = volume.meta().name();
                let mut chosen = choice.bindings.iter();
                assumed.contains_key(name) || chosen.any(|(one, _)| one.meta().name() == name)
            };
            let found = find_volume(claim, node, &volumes, is_taken).cloned();
            match found {
                Some(volume) => choice.bindings.push((volume, claim.clone())),
                None => {
                    let class = self.shared.class(class_name(claim))?;
                    if !can_provision(&class, node) {
                        return None;
                    }
                    choice.provisions.push(claim.clone());
                }
            }
        }
        Some(choice)
    }

    async fn write(&self, choice: &Choice) -> Result<(), String> {
        let failed = |error: windlass_client::Error| format!("binding volumes: {error}");
        let options = WriteOptions::default();
        for (volume, claim) in &choice.bindings {
            let bound = bound_to(volume, claim);
            let volumes = self.shared.client.resource(VOLUMES);
            volumes.update(&bound, &options).await.map_err(failed)?;
        }
        for claim in &choice.provisions {
            let meta = claim.meta();
            let patch = Patch::Merge(doc!({ "metadata": {
                "uid": (meta.uid_str()), "resourceVersion": (meta.resource_version()),
                "annotations": { SELECTED_NODE: (&choice.node) },
            } }));
            if meta.annotation(SELECTED_NODE) == Some(choice.node.as_str()) {
                continue;
            }
            let claims = self.shared.client.resource(CLAIMS);
            let claims = claims.namespaced(meta.namespace());
            let patched = claims.patch(meta.name(), &patch, &options).await;
            patched.map_err(failed)?;
        }
        Ok(())
    }

    /// Waits until all claims are bound.
    async fn wait(&self, choice: &Choice) -> Result<(), String> {
        let claims = choice.bindings.iter().map(|(_, claim)| claim);
        let claims: Vec<&Doc> = claims.chain(&choice.provisions).collect();
        loop {
            let notified = self.shared.news.notified();
            let mut is_done = true;
            for claim in &claims {
                is_done &= self.is_bound(claim, choice)?;
            }
            if is_done {
                return Ok(());
            }
            tokio::select! {
                () = notified => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    fn is_bound(&self, claim: &Doc, choice: &Choice) -> Result<bool, String> {
        let meta = claim.meta();
        let name = meta.name();
        let found = self.shared.claims.get(&Key::new(meta.namespace(), name));
        let Some(found) = found.filter(|found| found.meta().uid_str() == meta.uid_str()) else {
            return Err(format!(
                "binding volumes: PVC {name:?} does not exist any more"
            ));
        };
        let found = found.doc();
        if is_bound(found) {
            return Ok(true);
        }
        let was_provisioned = choice
            .provisions
            .iter()
            .any(|one| one.meta().name() == name);
        let is_newer = found.meta().resource_version() != meta.resource_version();
        // Whoever provisions takes the annotation away to say that it cannot.
        if was_provisioned && is_newer && found.meta().annotation(SELECTED_NODE).is_none() {
            return Err(format!(
                "binding volumes: selectedNode annotation reset for PVC {name:?}"
            ));
        }
        Ok(false)
    }
}

impl PodCycle for Cycle {
    fn filter(&mut self, view: &NodeView) -> Verdict {
        let refuse = |reason: &str| Err(Refusal::Unresolvable(reason.to_owned()));
        if self.claims.is_in_use {
            return Err(Refusal::Unschedulable(IN_USE.to_owned()));
        }
        for claim in &self.claims.bound {
            match self.shared.volume(claim.str_at("/spec/volumeName")) {
                None => return refuse(VOLUME_MISSING),
                Some(volume) if !is_reachable(&volume, &view.node) => return refuse(NODE_CONFLICT),
                Some(_) => {}
            }
        }
        match self.choose(&view.node) {
            Some(_) => Ok(()),
            None => refuse(BIND_CONFLICT),
        }
    }

    fn reserve(&mut self, view: &NodeView) -> Verdict {
        let Some(choice) = self.choose(&view.node) else {
            return Err(Refusal::Unschedulable(BIND_CONFLICT.to_owned()));
        };
        let mut assumed = self.shared.assumed.lock();
        for (volume, claim) in &choice.bindings {
            let (volume, claim) = (volume.meta().name(), claim.meta().uid_str());
            assumed.insert(volume.to_owned(), claim.to_owned());
        }
        drop(assumed);
        self.choice = Some(choice);
        Ok(())
    }

    fn pre_bind(&mut self) -> PluginFuture<'_, Result<(), String>> {
        Box::pin(async {
            let Some(choice) = &self.choice else {
                return Ok(());
            };
            self.write(choice).await?;
            let waited = tokio::time::timeout(BIND_TIMEOUT, self.wait(choice)).await;
            let timed_out = || "binding volumes: context deadline exceeded".to_owned();
            waited.map_err(|_| timed_out())?
        })
    }

    fn unreserve(&mut self) -> PluginFuture<'_, ()> {
        self.release();
        Box::pin(std::future::ready(()))
    }
}

impl Cycle {
    /// Gives back the volumes that were chosen. Those that are written have their claim by now.
    fn release(&mut self) {
        let Some(choice) = self.choice.take() else {
            return;
        };
        let mut assumed = self.shared.assumed.lock();
        for (volume, claim) in &choice.bindings {
            let name = volume.meta().name();
            if assumed.get(name).map(String::as_str) == Some(claim.meta().uid_str()) {
                assumed.remove(name);
            }
        }
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        self.release();
    }
}

/// A volume that belongs to a claim.
fn bound_to(volume: &Doc, claim: &Doc) -> Doc {
    let meta = claim.meta();
    let owner = doc!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": (meta.namespace()),
        "name": (meta.name()), "uid": (meta.uid_str()),
        "resourceVersion": (meta.resource_version()),
    });
    let was_reserved = !volume.at("/spec/claimRef").is_null();
    let bound = volume.with("/spec/claimRef", owner);
    let bound = bound.unwrap_or_else(|_| volume.clone());
    if was_reserved {
        return bound;
    }
    let old = bound.at("/metadata/annotations").as_object().cloned();
    let annotations = old.unwrap_or_else(windlass_core::Object::empty);
    let annotations = annotations.with(BOUND_BY_CONTROLLER, "yes".into());
    let marked = bound.with("/metadata/annotations", Doc::from(annotations));
    marked.unwrap_or(bound)
}
