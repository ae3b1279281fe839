//! The caches of what quotas limit, each from the first quota on that needs it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use windlass_cache::{Lister, SharedInformer};
use windlass_client::{ApiResource, DiscoveryClient};
use windlass_core::{Doc, Env, GroupResource, Selector};
use windlass_quota as quota;
use windlass_runtime::{Change, Context, Manager, Result, Trigger};

use super::{REPLENISH_TIME, count::is_limited};

/// What a resource must be able to do to be counted.
const VERBS: [&str; 4] = ["create", "delete", "list", "watch"];

/// Caches of resources, as quotas ask for them. There are never more than the server serves.
pub(super) struct Watches {
    discovery: DiscoveryClient,
    quotas: Lister,
    env: Env,
    /// Those that have been asked for.
    known: Mutex<BTreeMap<GroupResource, SharedInformer>>,
}

impl Watches {
    pub(super) fn new(manager: &Manager, quotas: Lister) -> Self {
        Self {
            discovery: DiscoveryClient::new(manager.client().clone()),
            quotas,
            env: manager.env().clone(),
            known: Mutex::default(),
        }
    }

    /// The objects of a resource, all of them; `None` if the server does not serve it.
    pub(super) async fn cache(
        &self,
        resource: &GroupResource,
        cx: &Context,
    ) -> Result<Option<Lister>> {
        let known = self.known.lock().get(resource).cloned();
        let informer = match known {
            Some(informer) => informer,
            None => match self.served(resource).await? {
                Some(served) => self.start(&served, cx)?,
                None => return Ok(None),
            },
        };
        informer.wait_for_sync().await?;
        Ok(Some(informer.lister()))
    }

    /// The resource as the server prefers it.
    async fn served(&self, resource: &GroupResource) -> Result<Option<ApiResource>> {
        let is_meant = |it: &&ApiResource| {
            let can = |verb: &&str| it.verbs.iter().any(|known| known == verb);
            it.is_namespaced && it.gvr.group_resource() == *resource && VERBS.iter().all(can)
        };
        let known = self.discovery.discovery().await?;
        if let Some(found) = known.resources.iter().find(is_meant) {
            return Ok(Some(found.clone()));
        }
        let newest = self.discovery.refresh().await?;
        Ok(newest.resources.iter().find(is_meant).cloned())
    }

    fn start(&self, served: &ApiResource, cx: &Context) -> Result<SharedInformer> {
        let resource = served.gvr.group_resource();
        let mut known = self.known.lock();
        if let Some(informer) = known.get(&resource) {
            return Ok(informer.clone());
        }
        let factory = cx.factory();
        let informer = match is_read(&resource) {
            true => factory.dynamic(served.gvr.clone()),
            false => factory.metadata(served.gvr.clone()),
        };
        let (quotas, env) = (self.quotas.clone(), self.env.clone());
        let counted = resource.clone();
        cx.react_to(&informer, move |change| {
            replenish(change, &counted, &quotas, &env)
        })?;
        factory.start();
        known.insert(resource, informer.clone());
        Ok(informer)
    }
}

/// Whether more than the number of objects counts, or they are watched anyway.
fn is_read(resource: &GroupResource) -> bool {
    matches!(
        (resource.group(), resource.resource()),
        (
            "",
            "pods" | "services" | "persistentvolumeclaims" | "resourcequotas"
        ) | ("resource.k8s.io", "resourceclaims")
    )
}

/// The quotas for which an object that has changed or gone counted otherwise before. What is new
/// was charged for.
fn replenish(
    change: &Change<'_>,
    resource: &GroupResource,
    quotas: &Lister,
    env: &Env,
) -> Vec<Trigger> {
    let Some(old) = change.old else {
        return Vec::new();
    };
    let counts = |object: &Doc| {
        let scopes = [
            object.at("/spec/activeDeadlineSeconds").clone(),
            object.at("/spec/volumeAttributesClassName").clone(),
            object
                .at("/status/currentVolumeAttributesClassName")
                .clone(),
        ];
        (quota::usage(resource, object, env.now()), scopes)
    };
    let is_same = change
        .new
        .is_some_and(|new| old.uid() == new.uid() && counts(new.doc()) == counts(old.doc()));
    if is_same {
        return Vec::new();
    }
    let quotas = quotas.list_in(old.namespace(), &Selector::everything());
    let limiting = quotas.iter().filter(|it| is_limited(it.doc(), resource));
    limiting
        .map(|quota| Trigger::after(quota.key(), REPLENISH_TIME))
        .collect()
}
