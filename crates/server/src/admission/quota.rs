//! Quotas: how much there may be in a namespace.
//!
//! A quota counts from the moment at which a controller has written its limits and what is used
//! of them to its status. A write that needs more of something is charged there before it is made.
//! The charge is decided on the newest state of the quota, and again if that changes before it is
//! stored, so that of two writes that want the last of something one is refused. A write that fails after all gives
//! back what it was charged for, unless somebody has counted since: then the next count does.

use std::sync::Arc;

use windlass_core::{Amounts, Doc, GroupResource, Key, amounts, quota};
use windlass_store::{Change, Entry, Outcome, Resource as Shelf};

use super::{Plugin, Request};
use crate::rest::{put, put_checked};
use crate::status::Status;
use crate::storage::{self, Storage};

const QUOTAS: &str = "resourcequotas";

/// What was charged for a write that is not made yet.
#[derive(Debug, Default)]
pub(crate) struct Charged(Vec<Item>);

/// The changes of an object for which quotas are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Charge {
    /// Those of the whole object.
    MainPath,
    /// Those of a pod: the main path changes its scopes, its resize the amounts of its containers.
    Pod,
}

impl Charge {
    /// Returns true if a change can make an object count for more than before.
    pub(super) fn is_due(self, is_main: bool, new: &Doc, old: &Doc) -> bool {
        let ends = |pod: &Doc| pod.at("/spec/activeDeadlineSeconds").as_i64() >= Some(0);
        match self {
            Self::MainPath => is_main,
            Self::Pod => !is_main || ends(new) != ends(old),
        }
    }
}

#[derive(Debug)]
struct Item {
    quota: Key,
    /// The quota as it was with the charge.
    revision: u64,
    amounts: Amounts,
}

/// What a write needs more of than it has.
struct Bill<'a> {
    request: &'a Request<'a>,
    resource: GroupResource,
    /// In its stored form, as whoever counts knows it.
    object: Doc,
    /// Everything, if the quota was not charged for the object before.
    whole: Amounts,
    /// What was not there before.
    more: Amounts,
    old: Option<&'a Doc>,
}

/// The quotas of the namespace of a request, by name.
fn quotas(request: &Request<'_>) -> Vec<Arc<Entry>> {
    if request.namespace.is_empty() {
        return Vec::new();
    }
    let quotas = request.storage.snapshot_of("", QUOTAS);
    let quotas = quotas.namespace(request.namespace, "");
    quotas.cloned().collect()
}

/// Charges the quotas of the namespace for a new object, or for what one has more than before.
/// Nothing is charged for a trial, which is refused all the same.
pub(super) async fn charge(
    request: &Request<'_>,
    object: &Doc,
    old: Option<&Doc>,
    is_trial: bool,
) -> Result<Charged, Status> {
    let quotas = quotas(request);
    if quotas.is_empty() {
        return Ok(Charged::default());
    }
    let resource = request.resource.group_resource();
    if !quota::is_counted(&resource) {
        return Ok(Charged::default());
    }
    let bill = Bill::new(request, resource, object, old);
    let mut due = Vec::new();
    for entry in &quotas {
        if bill.charge(entry.doc())?.is_some() {
            due.push(entry.key.clone());
        }
    }
    let mut charged = Charged::default();
    if is_trial || bill.is_in_vain() {
        return Ok(charged);
    }
    for quota in due {
        if let Err(status) = bill.charge_to(&mut charged, quota).await {
            charged.refund(request.storage).await;
            return Err(status);
        }
    }
    Ok(charged)
}

impl<'a> Bill<'a> {
    fn new(
        request: &'a Request<'a>,
        resource: GroupResource,
        object: &Doc,
        old: Option<&'a Doc>,
    ) -> Self {
        let now = request.env.now();
        let object = request.resource.to_storage(object);
        let whole = quota::usage(&resource, &object, now);
        let mut more = whole.clone();
        if let Some(old) = old {
            for (name, before) in quota::usage(&resource, old, now) {
                *more.entry(name).or_default() -= &before;
            }
        }
        Self {
            request,
            resource,
            object,
            whole,
            more,
            old,
        }
    }

    /// Whether the new object will be refused because its name is taken.
    fn is_in_vain(&self) -> bool {
        let shelf = &self.request.resource.shelf;
        let key = storage::key(self.request.namespace, self.object.meta().name());
        self.old.is_none() && self.request.storage.get(shelf, &key).is_some()
    }

    /// What is used of a quota with this write, and what the write adds; `None` if the write does
    /// not matter to the quota.
    fn charge(&self, quota: &Doc) -> Result<Option<(Amounts, Amounts)>, Status> {
        let hard = amounts(quota.at("/status/hard"));
        let is_counted = |name: &&String| quota::counted_by(name).as_ref() == Some(&self.resource);
        let names: Vec<&str> = hard.keys().filter(is_counted).map(String::as_str).collect();
        if names.is_empty() || !quota::is_in_scope(quota, &self.resource, &self.object) {
            return Ok(None);
        }
        let name = quota.meta().name();
        let pod = Plugin::ResourceQuota(Charge::Pod);
        let is_pod = self.request.plugins().any(|plugin| plugin == pod);
        if let Some(why) = is_pod.then(|| missing(&names, &self.object)).flatten() {
            return Err(self.forbid(&format!("failed quota: {name}: {why}")));
        }
        let used = amounts(quota.at("/status/used"));
        if names.iter().any(|name| !used.contains_key(*name)) {
            let names = names.join(",");
            let why = format!("status unknown for quota: {name}, resources: {names}");
            return Err(self.forbid(&why));
        }
        let added = self.added(quota, &names);
        let total = sum(&used, &added);
        self.check(name, &added, &used, &total, &hard)?;
        Ok((!added.is_empty()).then_some((total, added)))
    }

    /// What the write adds to what a quota limits.
    fn added(&self, quota: &Doc, names: &[&str]) -> Amounts {
        let is_known = |old: &Doc| quota::is_in_scope(quota, &self.resource, old);
        let source = match self.old.is_some_and(is_known) {
            true => &self.more,
            false => &self.whole,
        };
        let limited = source.iter().filter(|(name, amount)| {
            names.contains(&name.as_str()) && !amount.is_zero() && !amount.is_negative()
        });
        let limited = limited.map(|(name, amount)| (name.clone(), amount.clone()));
        limited.collect()
    }

    /// Refuses what is more than there may be.
    fn check(
        &self,
        name: &str,
        added: &Amounts,
        used: &Amounts,
        total: &Amounts,
        hard: &Amounts,
    ) -> Result<(), Status> {
        let is_exceeded = |name: &&String| total.get(*name) > hard.get(*name);
        let exceeded: Vec<&String> = added.keys().filter(is_exceeded).collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let show = |amounts: &Amounts| {
            let parts = exceeded.iter().filter_map(|name| {
                let amount = amounts.get(*name)?;
                Some(format!("{name}={amount}"))
            });
            parts.collect::<Vec<_>>().join(",")
        };
        let (added, used, hard) = (show(added), show(used), show(hard));
        let why =
            format!("exceeded quota: {name}, requested: {added}, used: {used}, limited: {hard}");
        Err(self.forbid(&why))
    }

    fn forbid(&self, why: &str) -> Status {
        self.request.forbid(&self.object, why)
    }

    /// Charges one quota, as it is when the store comes to it.
    async fn charge_to(&self, charged: &mut Charged, quota: Key) -> Result<(), Status> {
        let decide = |current: Option<&Arc<Entry>>| {
            let Some(current) = current else {
                return Ok((Change::Keep, None));
            };
            let Some((total, more)) = self.charge(current.doc())? else {
                return Ok((Change::Keep, None));
            };
            let change = put_checked(with_used(current.doc(), &total))?;
            Ok((change, Some(more)))
        };
        let shelf = Shelf::new("", QUOTAS);
        let outcome = self.request.storage.settle((&shelf, &quota), decide).await;
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
}

impl Charged {
    /// Gives back what was charged for a write that was not made.
    pub(crate) async fn refund(self, storage: &Storage) {
        let shelf = Shelf::new("", QUOTAS);
        for charge in self.0 {
            let decide = |current: Option<&Arc<Entry>>| {
                let current = current.filter(|it| it.revision == charge.revision);
                let change = current.map_or(Change::Keep, |current| {
                    let used = amounts(current.doc().at("/status/used"));
                    Change::put(with_used(current.doc(), &difference(used, &charge.amounts)))
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

fn missing(names: &[&str], pod: &Doc) -> Option<String> {
    quota::missing_amounts(names.iter().copied(), pod)
}

fn sum(used: &Amounts, added: &Amounts) -> Amounts {
    let mut total = used.clone();
    windlass_core::add_amounts(&mut total, added);
    total
}

fn difference(mut used: Amounts, less: &Amounts) -> Amounts {
    for (name, amount) in less {
        if let Some(known) = used.get_mut(name) {
            *known -= amount;
        }
    }
    used
}

/// A quota with other amounts in use.
fn with_used(quota: &Doc, used: &Amounts) -> Doc {
    let fields = used
        .iter()
        .map(|(name, amount)| (name.as_str().into(), Doc::from(amount.to_string())));
    let used: Doc = windlass_core::Object::new(fields.collect()).into();
    put(quota.clone(), "/status/used", used)
}
