//! What there is in a namespace.

use std::collections::BTreeMap;

use windlass_cache::Lister;
use windlass_core::{Doc, GroupResource, Selector, Time};
use windlass_quota::{self as quota, Amounts, add_amounts};
use windlass_runtime::{Context, Result};

use super::watches::Watches;

/// What is used of a quota.
pub(super) struct Counted {
    pub(super) used: Amounts,
    /// Whether the server serves everything that the quota limits.
    pub(super) is_complete: bool,
}

impl Watches {
    /// Counts what a quota limits.
    pub(super) async fn count(&self, quota: &Doc, cx: &Context) -> Result<Counted> {
        let mut counted = Counted {
            used: Amounts::new(),
            is_complete: true,
        };
        for (resource, names) in limited(quota) {
            let Some(objects) = self.cache(&resource, cx).await? else {
                counted.is_complete = false;
                continue;
            };
            let now = cx.env().now();
            let used = count_in(&objects, quota, &resource, &names, now);
            counted.used.extend(used);
        }
        Ok(counted)
    }
}

/// What a quota limits, by the resource whose objects count.
fn limited(quota: &Doc) -> BTreeMap<GroupResource, Vec<&str>> {
    let mut limited: BTreeMap<GroupResource, Vec<&str>> = BTreeMap::new();
    let hard = quota.at("/spec/hard").as_object();
    for name in hard.into_iter().flat_map(|hard| hard.keys().iter()) {
        if let Some(resource) = quota::counted_by(name) {
            limited.entry(resource).or_default().push(name);
        }
    }
    limited
}

/// Whether objects of a resource count for a quota.
pub(super) fn is_limited(quota: &Doc, resource: &GroupResource) -> bool {
    limited(quota).contains_key(resource)
}

fn count_in(
    objects: &Lister,
    quota: &Doc,
    resource: &GroupResource,
    names: &[&str],
    now: Time,
) -> Amounts {
    let zero = |name: &&str| ((*name).to_owned(), Default::default());
    let mut total: Amounts = names.iter().map(zero).collect();
    for object in objects.list_in(quota.meta().namespace(), &Selector::everything()) {
        let object = object.doc();
        if quota::is_in_scope(quota, resource, object) {
            let mut used = quota::usage(resource, object, now);
            used.retain(|name, _| names.contains(&name.as_str()));
            add_amounts(&mut total, &used);
        }
    }
    total
}
