//! Admission that the plug-ins cannot do alone: waiting for an account, and charging quotas.
//!
//! The charge is decided on the newest state of the quota, and again if that changes before it is
//! stored, so that of two writes that want the last of something one is refused. A write that fails
//! after all gives back what it was charged for, unless somebody has counted since: then the next
//! count does.

use std::sync::Arc;
use std::time::Duration;

use windlass_access::admission::quota::{Bill, refunded};
pub(crate) use windlass_access::admission::*;
use windlass_core::{Doc, GroupResource, Key};
use windlass_quota::Amounts;
use windlass_store::{Change, Entry, Outcome, Resource as Shelf};

use crate::object_size::put_checked;
use crate::storage::{self, Storage};
use windlass_rules::status::Status;

/// The number of times that the `default` account is looked for: a controller makes it after its
/// namespace.
const ATTEMPTS: usize = 10;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
const QUOTAS: &str = "resourcequotas";

/// What was charged for a write that is not made yet.
#[derive(Debug, Default)]
pub(crate) struct Charged(Vec<Item>);

#[derive(Debug)]
struct Item {
    quota: Key,
    /// The quota as it was with the charge.
    revision: u64,
    amounts: Amounts,
}

/// Waits for what a new object needs and a controller is about to make.
pub(crate) async fn wait(request: &Request<'_>, object: &Doc) {
    if !lacks_account(request, object) {
        return;
    }
    let pause = request.env.jitter(RETRY_INTERVAL, 1.0);
    for _ in 1..ATTEMPTS {
        tokio::time::sleep(pause).await;
        if !lacks_account(request, object) {
            return;
        }
    }
}

/// A write that asks to be admitted, and where the quotas are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charging<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) request: &'a Request<'a>,
}

impl Charging<'_> {
    /// The quotas of the namespace of the request, by name.
    fn quotas(&self) -> Vec<Arc<Entry>> {
        let is_off = self.request.rules.disabled.contains("ResourceQuota");
        if is_off || self.request.namespace.is_empty() {
            return Vec::new();
        }
        let quotas = self.storage.snapshot_of("", QUOTAS);
        let quotas = quotas.namespace(self.request.namespace, "");
        quotas.cloned().collect()
    }

    /// Returns true if a new object will be refused because its name is taken.
    fn is_taken(&self, object: &Doc) -> bool {
        let shelf = &self.request.resource.shelf;
        let key = storage::key(self.request.namespace, object.meta().name());
        self.storage.get(shelf, &key).is_some()
    }

    /// Charges the quotas of the namespace for a new object, or for what one has more than before.
    /// This comes last: what is charged for is refused for no other reason. Nothing is charged for
    /// a trial, which is refused all the same.
    pub(crate) async fn charge(
        &self,
        object: &Doc,
        old: Option<&Doc>,
        is_trial: bool,
    ) -> Result<Charged, Status> {
        let mut charged = Charged::default();
        let quotas = self.quotas();
        if quotas.is_empty() {
            return Ok(charged);
        }
        let Some(bill) = Bill::new(self.request, object, old) else {
            return Ok(charged);
        };
        let mut due = Vec::new();
        for entry in &quotas {
            if bill.charge(entry.doc())?.is_some() {
                due.push(entry.key.clone());
            }
        }
        if is_trial || (old.is_none() && self.is_taken(object)) {
            return Ok(charged);
        }
        for quota in due {
            if let Err(status) = charge_to(&bill, &mut charged, quota, self.storage).await {
                charged.refund(self.storage).await;
                return Err(status);
            }
        }
        Ok(charged)
    }
}

/// Charges one quota, as it is when the store comes to it.
async fn charge_to(
    bill: &Bill<'_>,
    charged: &mut Charged,
    quota: Key,
    storage: &Storage,
) -> Result<(), Status> {
    let decide = |current: Option<&Arc<Entry>>| {
        let Some(current) = current else {
            return Ok((Change::Keep, None));
        };
        Ok(match bill.charge(current.doc())? {
            Some((with_charge, more)) => (put_checked(with_charge)?, Some(more)),
            None => (Change::Keep, None),
        })
    };
    let shelf = Shelf::new("", QUOTAS);
    let outcome = storage.settle((&shelf, &quota), decide).await;
    let modified = || Status::modified(&GroupResource::new("", QUOTAS), quota.name());
    let settled = outcome.map_err(|error| storage::unsettled(error, modified))?;
    if let (Outcome::Updated { entry, .. }, Some(amounts)) = settled {
        charged.0.push(Item {
            quota,
            revision: entry.revision,
            amounts,
        });
    }
    Ok(())
}

impl Charged {
    /// Gives back what was charged for a write that was not made.
    pub(crate) async fn refund(self, storage: &Storage) {
        let shelf = Shelf::new("", QUOTAS);
        for charge in self.0 {
            let decide = |current: Option<&Arc<Entry>>| {
                let current = current.filter(|it| it.revision == charge.revision);
                let change = current.map_or(Change::Keep, |current| {
                    Change::put(refunded(current.doc(), &charge.amounts))
                });
                Ok((change, ()))
            };
            let outcome = storage.settle((&shelf, &charge.quota), decide).await;
            if outcome.is_err() {
                tracing::warn!(quota = %charge.quota, "a charge stays until the next count");
            }
        }
    }
}
