//! Quotas: how much there may be in a namespace.
//!
//! A quota counts from the moment at which a controller has written its limits and what is used
//! of them to its status. A write that needs more of something is charged there before it is made;
//! whoever stores the quota does that with the [`Bill`] of the write, on the newest state.

use windlass_core::{Doc, GroupResource};
use windlass_quota::{self as quota, Amounts, amounts};
use windlass_rules::edit::put;
use windlass_rules::status::Status;

use super::Request;
use windlass_schema::needs::{Charge, Plugin};

/// Returns true if a change can make an object count for more than before.
pub(super) fn is_due(charge: Charge, is_main: bool, new: &Doc, old: &Doc) -> bool {
    let ends = |pod: &Doc| pod.at("/spec/activeDeadlineSeconds").as_i64() >= Some(0);
    match charge {
        Charge::MainPath => is_main,
        Charge::Pod => !is_main || ends(new) != ends(old),
    }
}

/// The bill of a write: the usage that it adds.
#[derive(Debug)]
pub struct Bill<'a> {
    request: &'a Request<'a>,
    resource: GroupResource,
    /// In its stored form, as whoever counts knows it.
    object: Doc,
    /// Everything, if the quota was not charged for the object before.
    whole: Amounts,
    /// The added usage.
    more: Amounts,
    old: Option<&'a Doc>,
}

impl<'a> Bill<'a> {
    /// The bill of a write, which makes an object or replaces an old one; `None` if no quota can
    /// count it.
    #[must_use]
    pub fn new(request: &'a Request<'a>, object: &Doc, old: Option<&'a Doc>) -> Option<Self> {
        let resource = request.resource.group_resource();
        if !quota::is_counted(&resource) {
            return None;
        }
        let now = request.env.now();
        let object = request.resource.to_storage(object);
        let whole = quota::usage(&resource, &object, now);
        let mut more = whole.clone();
        if let Some(old) = old {
            for (name, before) in quota::usage(&resource, old, now) {
                *more.entry(name).or_default() -= &before;
            }
        }
        Some(Self {
            request,
            resource,
            object,
            whole,
            more,
            old,
        })
    }

    /// A quota with the charge for this write, and what the write adds; `None` if the write does
    /// not matter to the quota.
    pub fn charge(&self, quota: &Doc) -> Result<Option<(Doc, Amounts)>, Status> {
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
        Ok((!added.is_empty()).then(|| (with_used(quota, &total), added)))
    }

    /// The part of the added usage that a quota limits.
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
}

/// A quota without a charge for a write that was not made.
#[must_use]
pub fn refunded(quota: &Doc, charged: &Amounts) -> Doc {
    let used = amounts(quota.at("/status/used"));
    with_used(quota, &difference(used, charged))
}

fn missing(names: &[&str], pod: &Doc) -> Option<String> {
    quota::missing_amounts(names.iter().copied(), pod)
}

fn sum(used: &Amounts, added: &Amounts) -> Amounts {
    let mut total = used.clone();
    quota::add_amounts(&mut total, added);
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
