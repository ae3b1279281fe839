//! Writing what was reserved: the finalizer, then devices and reservation together.

use std::time::Duration;

use windlass_client::{Patch, WriteOptions};
use windlass_core::Doc;

use super::{
    MANAGER, PODS,
    cycle::{Cycle, stamped},
    deallocated, release_patch,
};
use crate::claims::{FINALIZER, consumer_of, is_allocated, is_pod_done, is_reserved_for};

/// How often a claim that others change meanwhile is tried.
const ATTEMPTS: u32 = 5;
const ATTEMPT_DELAY: Duration = Duration::from_millis(10);
const ATTEMPT_JITTER: f64 = 0.1;

/// How often a reservation is taken back before the cache is relied on instead, and how long to
/// wait in between: twice as long each time.
const RELEASE_ATTEMPTS: u32 = 7;
const RELEASE_DELAY: Duration = Duration::from_millis(200);

/// A write failed.
enum Failure {
    /// The claim has changed: it is read and tried again.
    Conflict(String),
    Final(String),
}

impl Cycle {
    /// Writes the devices and the reservation of one claim.
    pub(super) async fn bind(&mut self, at: usize) -> Result<(), String> {
        let (shared, uid) = (self.shared.clone(), self.claims[at].claim.meta().uid());
        let turn = shared.turn(&uid);
        let outcome = {
            let _mine = turn.lock().await;
            self.bind_in_turn(at).await
        };
        shared.end_turn(&uid, turn);
        outcome
    }

    async fn bind_in_turn(&mut self, at: usize) -> Result<(), String> {
        let mut outcome = Err(Failure::Final(String::new()));
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                let delay = self.shared.env.jitter(ATTEMPT_DELAY, ATTEMPT_JITTER);
                tokio::time::sleep(delay).await;
            }
            outcome = self.try_bind(at, attempt > 0).await;
            if !matches!(outcome, Err(Failure::Conflict(_))) {
                break;
            }
        }
        let stored = match outcome {
            Ok(stored) => stored,
            // What was decided stays in sight until it is known what the server has.
            Err(Failure::Conflict(text) | Failure::Final(text)) => return Err(text),
        };
        self.landed(at, stored);
        Ok(())
    }

    /// A claim was written. Pods that share it may have been waiting for this.
    fn landed(&mut self, at: usize, stored: Doc) {
        let claim = &mut self.claims[at];
        let before = std::mem::replace(&mut claim.claim, stored.clone());
        {
            let mut tracker = self.shared.tracker.lock();
            // First the one, then the other: the devices are never out of sight.
            tracker.assume(&stored);
            if let Some(planned) = claim.planned.take() {
                tracker.land(&planned);
            }
        }
        if stored.meta().controller().is_none() {
            self.shared
                .wake("resourceclaims", Some(before), Some(stored));
        }
    }

    async fn try_bind(&mut self, at: usize, is_repeated: bool) -> Result<Doc, Failure> {
        let shared = self.shared.clone();
        let (known, planned) = (&self.claims[at].claim, self.claims[at].planned.clone());
        let (api, key) = (shared.api(known), known.meta().key());
        let options = WriteOptions::manager(MANAGER);
        let gone = || Failure::Final(format!("claim {key} got deleted in the meantime"));
        let mut claim = match is_repeated {
            false => shared.tracker.lock().get(&key).ok_or_else(gone)?,
            true => match api.get(known.meta().name()).await {
                Ok(claim) => claim,
                Err(error) if error.is_not_found() => return Err(gone()),
                Err(error) => return Err(Failure::Final(format!("get claim {key}: {error}"))),
            },
        };
        if claim.meta().is_deleting() || claim.meta().uid() != known.meta().uid() {
            return Err(gone());
        }
        let is_known = is_reserved_for(&claim, &self.pod);
        let what = match &planned {
            // An earlier attempt may have been carried out without an answer.
            Some(_) if is_known => return Ok(claim),
            Some(_) if is_allocated(&claim) => "allocated",
            None if !is_allocated(&claim) => "deallocated",
            _ => "",
        };
        if !what.is_empty() {
            let text = format!("claim {key} got {what} elsewhere in the meantime");
            return Err(Failure::Final(text));
        }
        if planned.is_some() && !claim.meta().has_finalizer(FINALIZER) {
            let protected = claim.with_finalizer(FINALIZER);
            let updated = api.update(&protected, &options).await;
            claim = updated
                .map_err(|error| failure(&error, &format!("add finalizer to claim {key}")))?;
        }
        let mut consumers = claim.at("/status/reservedFor").items().to_vec();
        if !is_known {
            consumers.push(consumer_of(&self.pod));
        }
        let mut changed = with(&claim, "/status/reservedFor", consumers.into());
        let mut what = format!("add reservation to claim {key}");
        if let Some(planned) = &planned {
            let now = shared.env.now().to_string();
            let allocation = stamped(planned.at("/status/allocation"), &now);
            changed = with(&changed, "/status/allocation", allocation);
            what = format!("add allocation and reservation to claim {key}");
        }
        self.claims[at].may_be_reserved = true;
        self.claims[at].is_allocated_here |= planned.is_some();
        let updated = api.update_status(&changed, &options).await;
        updated.map_err(|error| failure(&error, &what))
    }

    /// Gives back what was taken for one claim. Its devices are free for others only when it is
    /// known that the server has not given them away.
    pub(super) async fn give_back(&mut self, at: usize) {
        if self.claims[at].may_be_reserved
            && let Some(released) = self.release(at).await
        {
            self.abandon(&released, at).await;
        }
        let claim = &mut self.claims[at];
        let Some(planned) = claim.planned.take() else {
            return;
        };
        let now = {
            let mut tracker = self.shared.tracker.lock();
            tracker.land(&planned);
            tracker.get(&planned.meta().key())
        };
        if !now.as_ref().is_some_and(is_allocated) {
            self.shared.wake("resourceclaims", Some(planned), now);
        }
    }

    /// Takes the reservation of the pod from a claim. What the server answers is also the news
    /// whether it has carried out what it did not answer.
    async fn release(&mut self, at: usize) -> Option<Doc> {
        let claim = &self.claims[at].claim;
        let (key, api) = (claim.meta().key(), self.shared.api(claim));
        let patch = Patch::Strategic(release_patch(claim, &self.pod));
        let options = WriteOptions::manager(MANAGER);
        let mut delay = RELEASE_DELAY;
        for _ in 0..RELEASE_ATTEMPTS {
            let patched = api
                .patch_status(claim.meta().name(), &patch, &options)
                .await;
            match patched {
                Ok(now) => {
                    self.shared.tracker.lock().assume(&now);
                    return Some(now);
                }
                Err(error) if error.is_not_found() => break,
                Err(error) => {
                    tracing::warn!(claim = %key, %error, "a reservation is not taken back yet");
                }
            }
            tokio::time::sleep(self.shared.env.jitter(delay, ATTEMPT_JITTER)).await;
            delay *= 2;
        }
        self.shared.tracker.lock().restore(&key);
        None
    }

    /// Gives back the devices that a claim got for a pod which is gone, and which nobody else uses
    /// by now. A pod that is tried again finds them where they are.
    async fn abandon(&self, claim: &Doc, at: usize) {
        let is_idle = claim.at("/status/reservedFor").items().is_empty();
        let is_ours = self.claims[at].is_allocated_here && is_allocated(claim);
        if !is_idle || !is_ours || !self.is_pod_gone().await {
            return;
        }
        let (api, options) = (self.shared.api(claim), WriteOptions::manager(MANAGER));
        // Whoever uses it meanwhile has changed it, and keeps it.
        if let Err(error) = api.update_status(&deallocated(claim), &options).await {
            let claim = claim.meta().key();
            tracing::info!(%claim, %error, "a claim keeps the devices it got for a pod");
        }
    }

    async fn is_pod_gone(&self) -> bool {
        let meta = self.pod.meta();
        let pods = self.shared.client.resource(PODS);
        match pods.namespaced(meta.namespace()).get(meta.name()).await {
            Ok(pod) => pod.meta().uid_str() != meta.uid_str() || is_pod_done(&pod),
            Err(error) => error.is_not_found(),
        }
    }
}

fn with(claim: &Doc, pointer: &str, value: Doc) -> Doc {
    claim.with(pointer, value).unwrap_or_else(|_| claim.clone())
}

fn failure(error: &windlass_client::Error, what: &str) -> Failure {
    let text = format!("{what}: {error}");
    match error.is_conflict() {
        true => Failure::Conflict(text),
        false => Failure::Final(text),
    }
}
