//! Reconciling a claim: reservations of pods that are gone or done are removed, and what nobody
//! uses any more is given back.

use windlass_client::{DeleteOptions, WriteOptions};
use windlass_core::{Doc, Key, Uid};
use windlass_runtime::{Action, Context, Error, Result};

use super::{
    Claims, Consumer, FINALIZER, NAME, claim_kind, is_allocated, is_pod_done, keys::owner_pod,
    pod_kind,
};

impl Claims {
    pub(super) async fn sync_claim(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(claim) = self.claims.get(key) else {
            return Ok(Action::done());
        };
        let claim = claim.doc();
        let consumers = claim.at("/status/reservedFor").items();
        let mut remaining = Vec::with_capacity(consumers.len());
        for consumer in consumers {
            if self.look_at(claim, consumer, cx).await?.keeps() {
                remaining.push(consumer.clone());
            }
        }
        let is_unused = remaining.is_empty();
        if remaining.len() < consumers.len() {
            self.release(claim, remaining, cx).await?;
        } else if is_unused && claim.meta().is_deleting() && claim.meta().has_finalizer(FINALIZER) {
            let claim = match is_allocated(claim) {
                true => self.write_status(without_allocation(claim)?, cx).await?,
                false => claim.clone(),
            };
            self.remove_finalizer(&claim, cx).await?;
        }
        if is_unused {
            self.delete_generated(claim, cx).await?;
        }
        Ok(Action::done())
    }

    /// What became of a consumer. Only what is certain is acted on: a pod that was seen to go, a
    /// pod that the cache shows to have ended, or a pod that the server does not have.
    async fn look_at(&self, claim: &Doc, consumer: &Doc, cx: &Context) -> Result<Consumer> {
        if !consumer.str_at("/apiGroup").is_empty() || consumer.str_at("/resource") != "pods" {
            return Ok(Consumer::Other);
        }
        let uid = Uid::from(consumer.str_at("/uid"));
        if self.deleted.lock().contains(&uid) {
            return Ok(Consumer::SeenDeleted);
        }
        let (namespace, name) = (claim.meta().namespace(), consumer.str_at("/name"));
        let cached = self.pods.get(&Key::new(namespace, name));
        if let Some(pod) = cached.filter(|pod| pod.uid() == uid) {
            return Ok(match is_pod_done(pod.doc()) {
                true => Consumer::Done,
                false => Consumer::Active,
            });
        }
        // A cache that is behind shows no pod, or one that went before this one came.
        let is_there = self.live_pod_uid(namespace, name, cx).await? == Some(uid);
        Ok(match is_there {
            true => Consumer::Unseen,
            false => Consumer::Absent,
        })
    }

    async fn live_pod_uid(&self, namespace: &str, name: &str, cx: &Context) -> Result<Option<Uid>> {
        match cx.api(&pod_kind(), namespace).get(name).await {
            Ok(pod) => Ok(Some(pod.meta().uid())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the consumers that remain. The devices go back with the last of them, unless
    /// somebody else allocated them, which the missing finalizer shows.
    async fn release(&self, claim: &Doc, remaining: Vec<Doc>, cx: &Context) -> Result<()> {
        let is_last = remaining.is_empty();
        let mut changed = match is_last {
            true => claim.without("/status/reservedFor")?,
            false => claim.with("/status/reservedFor", remaining)?,
        };
        if is_last && claim.meta().has_finalizer(FINALIZER) {
            changed = without_allocation(&changed)?;
        }
        let stored = self.write_status(changed, cx).await?;
        if stored.meta().has_finalizer(FINALIZER) && !is_allocated(&stored) {
            self.remove_finalizer(&stored, cx).await?;
        }
        Ok(())
    }

    /// Replaces the status, if nobody has changed the claim since.
    async fn write_status(&self, claim: Doc, cx: &Context) -> Result<Doc> {
        let api = cx.api(&claim_kind(), claim.meta().namespace());
        Ok(api
            .update_status(&claim, &WriteOptions::manager(NAME))
            .await?)
    }

    async fn remove_finalizer(&self, claim: &Doc, cx: &Context) -> Result<()> {
        let api = cx.api(&claim_kind(), claim.meta().namespace());
        let changed = claim.without_finalizer(FINALIZER);
        match api.update(&changed, &WriteOptions::manager(NAME)).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Deletes a claim that was made for a pod which has ended. Those whose pod is gone are the
    /// garbage collector's.
    async fn delete_generated(&self, claim: &Doc, cx: &Context) -> Result<()> {
        let meta = claim.meta();
        let Some(owner) = owner_pod(claim).filter(|_| !is_ending(claim)) else {
            return Ok(());
        };
        let Some(pod) = self.pods.get(&Key::new(meta.namespace(), &owner.name)) else {
            return Ok(());
        };
        let is_over = if pod.uid() == owner.uid {
            is_pod_done(pod.doc())
        } else {
            // The cache may show the pod that went before the owner came.
            let live = self.live_pod_uid(meta.namespace(), &owner.name, cx).await?;
            live.is_some_and(|live| live != owner.uid)
        };
        if !is_over {
            return Ok(());
        }
        let api = cx.api(&claim_kind(), meta.namespace());
        match api
            .delete(meta.name(), &DeleteOptions::uid(meta.uid_str()))
            .await
        {
            Err(error) if !error.is_not_found() => {
                let what = format!("delete unused generated claim {}", meta.key());
                Err(Error::from(error).context(what))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a claim is on its way out and needs no second deletion.
fn is_ending(claim: &Doc) -> bool {
    claim.meta().is_deleting()
}

fn without_allocation(claim: &Doc) -> Result<Doc> {
    Ok(claim.without("/status/allocation")?)
}
