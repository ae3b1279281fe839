//! The resource quota controller: how much of each quota is used.
//!
//! It writes the limits of a quota to its status and counts what there is in the namespace; from
//! then on the server charges the quota for what is made. What goes is noticed here, and so is what
//! was charged for in vain: after each charge the quota is counted again, a while later.
//!
//! Only what some quota limits is watched, from the first quota on that does.

mod count;
mod watches;

use std::{sync::Arc, time::Duration};

use windlass_cache::Lister;
use windlass_client::WriteOptions;
use windlass_core::{Doc, GroupVersion, Key, Object};
use windlass_quota::{Amounts, amounts};
use windlass_runtime::{
    Action, Change, Context, Controller, Manager, ResourceKind, Result, Trigger,
};

use watches::Watches;

/// The name of the controller.
pub const NAME: &str = "resourcequota-controller";

/// How long after a charge a quota is counted again. What was charged for is made by then, or was
/// not made.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// How long after something has gone the quota is counted: what goes together is counted once.
const REPLENISH_TIME: Duration = Duration::from_millis(50);

/// How long a quota waits that limits something which the server does not serve.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

/// Options of the resource quota controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many quotas are worked on at the same time.
    pub workers: usize,
    /// How often a quota is counted even if nothing has happened.
    pub sync_period: Duration,
}

impl Default for Options {
    /// Upstream's: 5 workers, 5 minutes.
    fn default() -> Self {
        Self {
            workers: 5,
            sync_period: Duration::from_secs(5 * 60),
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let quotas = manager.factory().dynamic(kind().gvr().clone()).lister();
    let shared = Arc::new(Quotas {
        watches: Watches::new(manager, quotas.clone()),
        quotas,
        sync_period: options.sync_period,
    });
    let reconcile = move |key: Key, cx: Context| {
        let quotas = shared.clone();
        async move { quotas.sync(&key, &cx).await }
    };
    let controller = Controller::of_kind(kind(), reconcile)
        // Not every change of a quota matters at once.
        .filter(|_| false)
        .reacts_to_kind(kind(), when_changed)
        .named(NAME)
        .queue_named("resourcequota_primary")
        .workers(options.workers);
    manager.add(controller);
}

fn kind() -> ResourceKind {
    ResourceKind::namespaced(
        GroupVersion::constant("", "v1"),
        "ResourceQuota",
        "resourcequotas",
    )
}

/// New limits are counted at once, new charges when they have settled.
fn when_changed(change: &Change<'_>) -> Vec<Trigger> {
    let Some(new) = change.new else {
        return Vec::new();
    };
    let differs = |field: &str| {
        let before = change.old.map(|old| old.doc().get(field));
        before != Some(new.doc().get(field))
    };
    if differs("spec") {
        return vec![Trigger::now(new.key())];
    }
    if differs("status") {
        return vec![Trigger::after(new.key(), SETTLE_TIME)];
    }
    Vec::new()
}

/// What every sync works with.
struct Quotas {
    quotas: Lister,
    watches: Watches,
    sync_period: Duration,
}

impl Quotas {
    async fn sync(&self, key: &Key, cx: &Context) -> Result<Action> {
        let Some(quota) = self.quotas.get(key) else {
            return Ok(Action::done());
        };
        let quota = quota.doc();
        let counted = self.watches.count(quota, cx).await?;
        let hard = amounts(quota.at("/spec/hard"));
        let (known_hard, known) = (
            amounts(quota.at("/status/hard")),
            amounts(quota.at("/status/used")),
        );
        // What cannot be counted now keeps its last amount.
        let mut used = known.clone();
        used.extend(counted.used);
        used.retain(|name, _| hard.contains_key(name));
        if hard != known_hard || used != known {
            let limits = quota.at("/spec/hard").clone();
            let changed = quota
                .with("/status/hard", limits)?
                .with("/status/used", written(&used))?;
            let api = cx.api(&kind(), quota.meta().namespace());
            let options = WriteOptions::manager(NAME);
            api.update_status(&changed, &options).await?;
        }
        let period = match counted.is_complete {
            true => self.sync_period,
            false => self.sync_period.min(DISCOVERY_PERIOD),
        };
        Ok(Action::requeue_after(period))
    }
}

fn written(amounts: &Amounts) -> Doc {
    let fields = amounts
        .iter()
        .map(|(name, amount)| (name.as_str().into(), Doc::from(amount.to_string())));
    Object::new(fields.collect()).into()
}
