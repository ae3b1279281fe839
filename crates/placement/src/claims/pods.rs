//! Reconciling a pod: its claims exist, its status names them, and those it was placed with are
//! reserved for it.

use std::collections::BTreeMap;

use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, Key, doc};
use windlass_runtime::{Action, Context, Error, EventType, Result};

use super::{
    ClaimName, Claims, NAME, STATUS_MANAGER, claim_kind, claim_name, consumer_of, is_allocated,
    is_reserved_for, keys::entries, must_be_for_pod, pod_kind,
};
use crate::pod::is_pod_terminal;

impl Claims {
    pub(super) async fn sync_pod(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(pod) = self.pods.get(key) else {
            return Ok(Action::done());
        };
        let pod = pod.doc();
        if pod.meta().is_deleting() || is_pod_terminal(pod) {
            return Ok(Action::done());
        }
        let new = self.provide_all(pod, cx).await?;
        if !new.is_empty() {
            // The change of the status brings the pod back.
            self.record(pod, new, cx).await?;
            return Ok(Action::done());
        }
        self.remove_surplus(pod, cx).await?;
        if !pod.str_at("/spec/nodeName").is_empty() {
            self.reserve_all(pod, cx).await?;
        }
        Ok(Action::done())
    }

    /// The names of claims that the status of the pod does not have, by entry.
    async fn provide_all(&self, pod: &Doc, cx: &Context) -> Result<BTreeMap<String, String>> {
        let mut new = BTreeMap::new();
        for entry in entries(pod) {
            let name = entry.str_at("/name");
            match self.provide(pod, entry, cx).await {
                Ok(None) => {}
                Ok(Some(claim)) => drop(new.insert(name.to_owned(), claim)),
                Err(error) => {
                    let message = format!("PodResourceClaim {name}: {error}");
                    let reason = "FailedResourceClaimCreation";
                    self.recorder
                        .event(&typed(pod), EventType::Warning, reason, &message);
                    let what = format!("pod {}, PodResourceClaim {name}", pod.meta().key());
                    return Err(error.context(what));
                }
            }
        }
        Ok(new)
    }

    /// Applies the names of all claims to the status of the pod. A list with the new names only
    /// would give up the others.
    async fn record(&self, pod: &Doc, new: BTreeMap<String, String>, cx: &Context) -> Result<()> {
        let statuses = pod.at("/status/resourceClaimStatuses").items().iter();
        let known = statuses.filter(|status| !status.str_at("/resourceClaimName").is_empty());
        let known = known.map(|status| {
            let text = |pointer| status.str_at(pointer).to_owned();
            (text("/name"), text("/resourceClaimName"))
        });
        let mut all: BTreeMap<String, String> = known.collect();
        all.extend(new);
        let all = all.into_iter();
        let list = all.map(|(name, claim)| doc!({ "name": name, "resourceClaimName": claim }));
        let meta = pod.meta();
        let patch = Patch::Apply(doc!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": (meta.name()), "namespace": (meta.namespace()), "uid": (meta.uid_str())
            },
            "status": { "resourceClaimStatuses": (list.collect::<Vec<Doc>>()) }
        }));
        let options = WriteOptions::manager(STATUS_MANAGER).force();
        let api = cx.api(&pod_kind(), meta.namespace());
        let applied = api.patch_status(meta.name(), &patch, &options).await;
        applied.map(drop).map_err(|error| {
            Error::from(error).context(format!("update pod {} ResourceClaimStatuses", meta.key()))
        })
    }

    /// Deletes claims that two controllers have made for one entry.
    async fn remove_surplus(&self, pod: &Doc, cx: &Context) -> Result<()> {
        for entry in entries(pod) {
            let Ok(ClaimName::Named {
                name,
                is_generated: true,
            }) = claim_name(pod, entry)
            else {
                continue;
            };
            for claim in self.surplus(pod, entry, name) {
                tracing::info!(claim = %claim.key(), "deleting a claim that was made twice");
                let api = cx.api(&claim_kind(), claim.namespace());
                let options = DeleteOptions {
                    // Whoever uses it by now has changed it.
                    resource_version: Some(claim.meta().resource_version().to_owned()),
                    ..DeleteOptions::uid(claim.uid().as_str())
                };
                match api.delete(claim.name(), &options).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Reserves the allocated claims of a pod that was placed without a scheduler.
    async fn reserve_all(&self, pod: &Doc, cx: &Context) -> Result<()> {
        for entry in entries(pod) {
            let ClaimName::Named { name, is_generated } = claim_name(pod, entry)? else {
                continue;
            };
            let Some(claim) = self.claims.get(&Key::new(pod.meta().namespace(), name)) else {
                return Ok(());
            };
            let claim = claim.doc();
            if is_generated {
                must_be_for_pod(pod, claim)?;
            }
            if is_allocated(claim) && !is_reserved_for(claim, pod) {
                self.reserve(claim, pod, cx).await?;
            }
        }
        Ok(())
    }

    async fn reserve(&self, claim: &Doc, pod: &Doc, cx: &Context) -> Result<()> {
        let mut consumers = claim.at("/status/reservedFor").items().to_vec();
        consumers.push(consumer_of(pod));
        let claim = claim.with("/status/reservedFor", consumers)?;
        let api = cx.api(&claim_kind(), claim.meta().namespace());
        let updated = api
            .update_status(&claim, &WriteOptions::manager(NAME))
            .await;
        updated.map(drop).map_err(|error| {
            Error::from(error).context(format!("reserve claim {}", claim.meta().key()))
        })
    }
}

/// The pod with its kind, which the items of a list do not say.
fn typed(pod: &Doc) -> Doc {
    let typed = pod.with("/apiVersion", "v1");
    let typed = typed.and_then(|pod| pod.with("/kind", "Pod"));
    typed.unwrap_or_else(|_| pod.clone())
}
