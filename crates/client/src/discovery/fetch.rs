//! Asking a server what it serves: in two requests where it can aggregate, in one for each group
//! version where it cannot.

use std::pin::Pin;

use serde::Deserialize;
use windlass_core::{Doc, GroupVersion, Gvk};

use super::{ApiGroup, ApiResource, Discovery};
use crate::{Cause, Error, RequestOutcome, RestClient};

/// Asks for the aggregated form and takes the old one as well.
const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Asks for everything. Behind a pointer, so that it is compiled here, once.
pub(super) fn fetch(
    rest: &RestClient,
) -> Pin<Box<dyn Future<Output = Result<Discovery, Error>> + Send + '_>> {
    Box::pin(fetch_all(rest))
}

async fn fetch_all(rest: &RestClient) -> Result<Discovery, Error> {
    let mut discovery = Discovery::default();
    for root in ["/api", "/apis"] {
        let doc = rest.get(root).accept(ACCEPT).into_doc().await?;
        if doc.str_at("/kind") == "APIGroupDiscoveryList" {
            let list: Aggregated = decode(root, &doc)?;
            list.items
                .into_iter()
                .for_each(|group| add_aggregated(&mut discovery, group));
        } else {
            legacy(rest, root, &doc, &mut discovery).await?;
        }
    }
    Ok(discovery)
}

fn decode<T: for<'de> Deserialize<'de>>(path: &str, doc: &Doc) -> Result<T, Error> {
    let request = format!("GET {path}");
    let failed = |error| Error::new(RequestOutcome::Unknown, request, Cause::Decode(error));
    doc.decode().map_err(|error| failed(Box::new(error)))
}

#[derive(Deserialize)]
struct Aggregated {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize)]
struct AggregatedSubresource {
    subresource: String,
}

fn add_aggregated(discovery: &mut Discovery, group: AggregatedGroup) {
    let name = group.metadata.name;
    let versions = group
        .versions
        .iter()
        .map(|version| version.version.clone())
        .collect();
    discovery.groups.push(ApiGroup {
        name: name.clone(),
        versions,
    });
    for AggregatedVersion {
        version,
        freshness,
        resources,
    } in group.versions
    {
        let place = group_version(&name, &version);
        // Whoever serves this version does not answer: what it is said to serve is from before.
        if freshness == "Stale" {
            let error = format!("stale GroupVersion discovery: {place}");
            discovery.failed.push((place.to_string(), error));
            continue;
        }
        let resources = resources
            .into_iter()
            .map(|resource| aggregated(&place, resource));
        discovery.resources.extend(resources);
    }
}

fn aggregated(place: &GroupVersion, resource: AggregatedResource) -> ApiResource {
    let answer = resource.response_kind.unwrap_or_default();
    ApiResource {
        gvr: place.clone().with_resource(resource.resource),
        gvk: kind_in(place, &answer.group, &answer.version, answer.kind),
        singular: resource.singular_resource,
        short_names: resource.short_names,
        categories: resource.categories,
        verbs: resource.verbs,
        is_namespaced: resource.scope == "Namespaced",
        subresources: resource
            .subresources
            .into_iter()
            .map(|it| it.subresource)
            .collect(),
    }
}

/// A kind that may be of another group than its resource; empty parts mean the same one.
fn kind_in(place: &GroupVersion, group: &str, version: &str, kind: String) -> Gvk {
    let is_same = group.is_empty() && version.is_empty();
    let place = if is_same {
        place.clone()
    } else {
        group_version(group, version)
    };
    place.with_kind(kind)
}

fn group_version(group: &str, version: &str) -> GroupVersion {
    let text = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    text.parse().unwrap_or(GroupVersion::constant("", ""))
}

#[derive(Deserialize)]
struct LegacyVersions {
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct LegacyGroups {
    #[serde(default)]
    groups: Vec<LegacyGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyGroup {
    name: String,
    #[serde(default)]
    versions: Vec<LegacyVersion>,
    #[serde(default)]
    preferred_version: LegacyVersion,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyVersion {
    version: String,
}

#[derive(Deserialize)]
struct LegacyResources {
    #[serde(default)]
    resources: Vec<LegacyResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

/// Reads the groups under one root, and then each version of each group.
async fn legacy(
    rest: &RestClient,
    root: &str,
    doc: &Doc,
    discovery: &mut Discovery,
) -> Result<(), Error> {
    let groups = match root {
        "/api" => {
            let core: LegacyVersions = decode(root, doc)?;
            vec![ApiGroup {
                name: String::new(),
                versions: core.versions,
            }]
        }
        _ => {
            let list: LegacyGroups = decode(root, doc)?;
            list.groups.into_iter().map(preferred_first).collect()
        }
    };
    for group in groups {
        for version in &group.versions {
            let place = group_version(&group.name, version);
            let path = format!("{root}/{place}");
            // One group that is not served by anybody shall not hide all others.
            match legacy_resources(rest, &path).await {
                Ok(resources) => add_legacy(discovery, &place, resources),
                Err(error) => discovery
                    .failed
                    .push((place.to_string(), error.to_string())),
            }
        }
        discovery.groups.push(group);
    }
    Ok(())
}

async fn legacy_resources(rest: &RestClient, path: &str) -> Result<Vec<LegacyResource>, Error> {
    let list: LegacyResources = decode(path, &rest.get(path).into_doc().await?)?;
    Ok(list.resources)
}

fn preferred_first(group: LegacyGroup) -> ApiGroup {
    let preferred = group.preferred_version.version;
    let mut versions: Vec<_> = group.versions.into_iter().map(|it| it.version).collect();
    // Stable: all others keep the order of the server.
    versions.sort_by_key(|version| *version != preferred);
    ApiGroup {
        name: group.name,
        versions,
    }
}

fn add_legacy(discovery: &mut Discovery, place: &GroupVersion, resources: Vec<LegacyResource>) {
    let (parts, whole): (Vec<_>, Vec<_>) = resources
        .into_iter()
        .partition(|resource| resource.name.contains('/'));
    for resource in whole {
        let of_this = parts.iter().filter_map(|part| part.name.split_once('/'));
        let subresources = of_this
            .filter(|(name, _)| *name == resource.name)
            .map(|it| it.1.to_owned())
            .collect();
        discovery.resources.push(ApiResource {
            gvk: kind_in(place, &resource.group, &resource.version, resource.kind),
            gvr: place.clone().with_resource(resource.name),
            singular: resource.singular_name,
            short_names: resource.short_names,
            categories: resource.categories,
            verbs: resource.verbs,
            is_namespaced: resource.namespaced,
            subresources,
        });
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn what_a_stale_version_serves_is_not_known() {
        let version = |version: &str, freshness: &str| {
            let resources = doc!([{ "resource": "things", "scope": "Cluster" }]);
            doc!({ "version": version, "freshness": freshness, "resources": resources })
        };
        let group = doc!({
            "metadata": { "name": "example.com" },
            "versions": [(version("v1", "Stale")), (version("v2", "Current"))]
        });
        let mut discovery = Discovery::default();
        add_aggregated(&mut discovery, group.decode().unwrap());
        let served: Vec<String> = discovery
            .resources
            .iter()
            .map(|resource| resource.gvr.to_string())
            .collect();
        assert_eq!(served.len(), 1, "{served:?}");
        assert!(served[0].contains("v2"), "{served:?}");
        let error = "stale GroupVersion discovery: example.com/v1".to_owned();
        assert_eq!(
            discovery.failed,
            [("example.com/v1".to_owned(), error)],
            "and that it is not known is told"
        );
    }
}
