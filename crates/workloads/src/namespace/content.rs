//! What is in a namespace, resource by resource.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use windlass_client::{
    ApiResource, DeleteOptions, Discovery, DiscoveryClient, DynamicApi, DynamicClient, Error, List,
    ListOptions, Propagation,
};
use windlass_core::{Doc, Gvr, Prune};

use super::{Remover, conditions::Conditions, remove::Place};

const PODS: Gvr = Gvr::constant("", "v1", "pods");

/// In how many seconds finalizers are expected to be done.
const FINALIZERS_ESTIMATE: u64 = 15;

/// How many objects a page of a list holds.
const PAGE_LIMIT: u32 = 500;

/// A resource that is to be emptied, with what can be done about it.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    gvr: Gvr,
    can_delete_collection: bool,
    can_list: bool,
}

/// What became of the objects of one resource.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) resource: Gvr,
    /// In how many seconds the rest may be gone.
    pub(super) estimate: u64,
    /// How many are left.
    pub(super) remaining: usize,
    /// How many of them each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    pub(super) error: Option<String>,
}

impl Resource {
    fn of(resource: &ApiResource) -> Self {
        let can = |verb: &str| resource.verbs.iter().any(|it| it == verb);
        Self {
            gvr: resource.gvr.clone(),
            can_delete_collection: can("deletecollection"),
            can_list: can("list"),
        }
    }

    fn pods() -> Self {
        Self {
            gvr: PODS,
            can_delete_collection: true,
            can_list: true,
        }
    }
}

impl Removed {
    fn nothing(resource: &Gvr) -> Self {
        Self {
            resource: resource.clone(),
            estimate: 0,
            remaining: 0,
            finalizers: BTreeMap::new(),
            error: None,
        }
    }
}

impl Remover {
    /// Asks the server for all resources that may hold content, other than pods. What fails is
    /// noted, and the rest is worked on.
    pub(super) async fn discover(&self, conditions: &mut Conditions) -> Vec<Resource> {
        // A client that knows nothing yet, so that it has to ask: a kind that came since the last
        // time may hold objects here.
        let discovery = match DiscoveryClient::new(self.client.clone()).discovery().await {
            Ok(discovery) => discovery,
            Err(error) => {
                conditions.discovery_failed(reason(&error));
                return Vec::new();
            }
        };
        if !discovery.failed.is_empty() {
            conditions.groups_failed(&discovery.failed);
        }
        resources(&discovery, conditions)
    }

    /// Removes the pods of a namespace.
    pub(super) async fn remove_pods(&self, place: &Place) -> Removed {
        match self.estimate_pods(place).await {
            Ok(estimate) => {
                let mut removed = self
                    .remove_resource(&Resource::pods(), place, estimate)
                    .await;
                let wrap = |error| {
                    let namespace = &place.namespace;
                    format!("failed to delete pods for namespace: {namespace}, err: {error}")
                };
                removed.error = removed.error.map(wrap);
                removed
            }
            Err(error) => Removed {
                error: Some(reason(&error)),
                ..Removed::nothing(&PODS)
            },
        }
    }

    /// Removes the objects of several resources.
    pub(super) async fn remove_all(
        &self,
        resources: &[Resource],
        place: &Place,
        parallel: usize,
    ) -> Vec<Removed> {
        let attempts = resources
            .iter()
            .map(|resource| self.remove_resource(resource, place, 0));
        let attempts: Vec<_> = attempts.collect();
        stream::iter(attempts).buffered(parallel).collect().await
    }

    async fn remove_resource(&self, resource: &Resource, place: &Place, estimate: u64) -> Removed {
        let attempt = self.empty(resource, place, estimate).await;
        attempt.unwrap_or_else(|error| Removed {
            estimate,
            error: Some(reason(&error)),
            ..Removed::nothing(&resource.gvr)
        })
    }

    async fn empty(
        &self,
        resource: &Resource,
        place: &Place,
        estimate: u64,
    ) -> Result<Removed, Error> {
        let api = DynamicClient::new(self.client.clone()).resource(resource.gvr.clone());
        let api = api.namespaced(&place.namespace);
        let is_supported = resource.can_delete_collection && delete_collection(&api).await?;
        if !is_supported {
            delete_each(&api, resource).await?;
        }
        let Some(left) = list(&api, resource).await? else {
            // Nobody can tell; the deletions were accepted.
            return Ok(Removed {
                estimate,
                ..Removed::nothing(&resource.gvr)
            });
        };
        Ok(verify(&resource.gvr, &left, place, estimate))
    }

    /// In how many seconds the slowest pod should be gone; zero if that time is over.
    async fn estimate_pods(&self, place: &Place) -> Result<u64, Error> {
        let api = DynamicClient::new(self.client.clone()).resource(PODS);
        let options = ListOptions {
            prune: Prune::managed_fields()
                .and("spec.containers")
                .and("spec.volumes"),
            ..ListOptions::default().limit(PAGE_LIMIT)
        };
        let pods = api.namespaced(&place.namespace).list_all(&options).await?;
        let seconds = pods.items.iter().filter_map(grace).max().unwrap_or(0);
        let since = place.deleted_at.map(|at| self.env.now().since(at));
        let is_over = since.is_some_and(|since| since >= Duration::from_secs(seconds));
        Ok(if is_over { 0 } else { seconds })
    }
}

/// How many seconds a pod may take to end, if it has not ended.
fn grace(pod: &Doc) -> Option<u64> {
    if matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed") {
        return None;
    }
    let grace = pod.at("/spec/terminationGracePeriodSeconds").as_i64()?;
    u64::try_from(grace).ok()
}

/// The resources that may hold content, other than pods, each in its preferred version.
fn resources(discovery: &Discovery, conditions: &mut Conditions) -> Vec<Resource> {
    let mut seen = BTreeSet::new();
    let preferred = discovery
        .resources
        .iter()
        .filter(|it| it.is_namespaced && seen.insert(it.gvr.group_resource()));
    let mut found = Vec::new();
    for resource in preferred {
        if resource.gvr.version().is_empty() {
            let name = resource.gvr.resource();
            conditions.unreadable(format!("unexpected GroupVersion string of resource {name}"));
        } else if resource.verbs.iter().any(|it| it == "delete") && resource.gvr != PODS {
            found.push(Resource::of(resource));
        }
    }
    found
}

/// Deletes all objects at once. Returns whether the server can do that.
async fn delete_collection(api: &DynamicApi) -> Result<bool, Error> {
    let options = DeleteOptions::default().propagate(Propagation::Background);
    match api
        .delete_collection(&options, &ListOptions::default())
        .await
    {
        Ok(()) => Ok(true),
        Err(error) if is_unsupported(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Deletes one object after the other.
async fn delete_each(api: &DynamicApi, resource: &Resource) -> Result<(), Error> {
    let Some(list) = list(api, resource).await? else {
        return Ok(());
    };
    for item in &list.items {
        let meta = item.meta();
        let options = DeleteOptions::uid(meta.uid_str()).propagate(Propagation::Background);
        match api.delete(meta.name(), &options).await {
            // Another object of the same name is found when what is left is listed.
            Err(error) if !is_unsupported(&error) && !error.is_conflict() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The metadata of all objects; `None` if the server cannot list them.
async fn list(api: &DynamicApi, resource: &Resource) -> Result<Option<List>, Error> {
    if !resource.can_list {
        return Ok(None);
    }
    let options = ListOptions {
        is_metadata_only: true,
        prune: Prune::managed_fields()
            .and("metadata.annotations")
            .and("metadata.labels"),
        ..ListOptions::default().limit(PAGE_LIMIT)
    };
    match api.list_all(&options).await {
        Ok(list) => Ok(Some(list)),
        Err(error) if is_unsupported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the objects that are left say about when they will be gone.
fn verify(gvr: &Gvr, left: &List, place: &Place, estimate: u64) -> Removed {
    let mut removed = Removed::nothing(gvr);
    removed.remaining = left.items.len() + left.undecodable.len();
    if removed.remaining == 0 {
        return removed;
    }
    for finalizer in left.items.iter().flat_map(|item| item.meta().finalizers()) {
        *removed.finalizers.entry(finalizer.to_owned()).or_default() += 1;
    }
    if estimate > 0 {
        removed.estimate = estimate;
    } else if !removed.finalizers.is_empty() {
        removed.estimate = FINALIZERS_ESTIMATE;
    } else {
        let (namespace, version, resource) =
            (&place.namespace, gvr.group_version(), gvr.resource());
        let (group, version) = (version.group(), version.version());
        removed.error = Some(format!(
            "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={resource}"
        ));
    }
    removed
}

/// Whether the server does not have the verb, or not the resource any more.
fn is_unsupported(error: &Error) -> bool {
    let is_not_allowed = error.status().is_some_and(|status| status.code == 405);
    is_not_allowed || error.is_not_found()
}

/// The failure as the server told it, without our own words.
fn reason(error: &Error) -> String {
    let status = error.status().map(ToString::to_string);
    status.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use windlass_core::{Time, doc};

    use super::*;

    fn place() -> Place {
        Place {
            namespace: "shop".to_owned(),
            deleted_at: Some(Time::from_unix(0)),
        }
    }

    fn list_of(items: &[Doc]) -> List {
        List {
            items: items.to_vec(),
            ..List::default()
        }
    }

    #[test]
    fn nothing_left_needs_no_time() {
        let removed = verify(&PODS, &list_of(&[]), &place(), 30);
        assert_eq!((removed.estimate, removed.remaining), (0, 0));
        assert_eq!(removed.error, None);
    }

    #[test]
    fn pods_that_shut_down_are_waited_for_as_long_as_they_may_take() {
        let left = list_of(&[doc!({ "metadata": { "finalizers": ["a.io/x"] } })]);
        let removed = verify(&PODS, &left, &place(), 30);
        assert_eq!((removed.estimate, removed.remaining), (30, 1));
    }

    #[test]
    fn finalizers_are_given_time_and_counted() {
        let held = doc!({ "metadata": { "finalizers": ["a.io/x", "b.io/y"] } });
        let left = list_of(&[held.clone(), held]);
        let removed = verify(&PODS, &left, &place(), 0);
        assert_eq!(removed.estimate, 15);
        assert_eq!(removed.finalizers["a.io/x"], 2);
        assert_eq!(removed.error, None);
    }

    #[test]
    fn what_nothing_holds_should_not_be_there() {
        let left = list_of(&[doc!({ "metadata": {} })]);
        let removed = verify(&PODS, &left, &place(), 0);
        assert_eq!(
            removed.error.as_deref(),
            Some("unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods")
        );
    }

    #[test]
    fn pods_that_have_ended_need_no_time() {
        let pod = |phase: &str| doc!({ "spec": { "terminationGracePeriodSeconds": 30 }, "status": { "phase": phase } });
        assert_eq!(grace(&pod("Running")), Some(30));
        assert_eq!(grace(&pod("Succeeded")), None);
        assert_eq!(grace(&pod("Failed")), None);
    }
}
