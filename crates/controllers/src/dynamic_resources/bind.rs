//! Writing what was reserved: the finalizer, then devices and reservation together.

use std::time::Duration;

use windlass_client::WriteOptions;
use windlass_core::Doc;

use super::{
    MANAGER,
    cycle::{Cycle, stamped},
};
use crate::claims::{FINALIZER, consumer_of, is_allocated, is_reserved_for};

/// How often a claim that others change meanwhile is tried.
const ATTEMPTS: u32 = 5;
const ATTEMPT_DELAY: Duration = Duration::from_millis(10);
const ATTEMPT_JITTER: f64 = 0.1;

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
        let claim = &mut self.claims[at];
        let planned = claim.planned.take();
        let mut tracker = self.shared.tracker.lock();
        let outcome = match outcome {
            Ok(stored) => {
                // First the one, then the other: the devices are never out of sight.
                tracker.assume(&stored);
                claim.claim = stored;
                Ok(())
            }
            Err(Failure::Conflict(text) | Failure::Final(text)) => Err(text),
        };
        if let Some(planned) = planned {
            tracker.land(&planned);
        }
        outcome
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
        let updated = api.update_status(&changed, &options).await;
        updated.map_err(|error| failure(&error, &what))
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
