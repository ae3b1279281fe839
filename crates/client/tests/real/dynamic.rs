//! Resources that are known only at run time.

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use windlass_client::{
    Api, DeleteOptions, DiscoveryClient, DynamicClient, ListOptions, Patch, WatchEvent,
    WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Gvr, doc};

use crate::setup::{config_map, named, namespace, server};

const CRDS: Gvr = Gvr::constant("apiextensions.k8s.io", "v1", "customresourcedefinitions");
const MAPS: Gvr = Gvr::constant("", "v1", "configmaps");

fn definition(plural: &str, kind: &str) -> Doc {
    let short = format!("{plural}x");
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.client.windlass.dev") },
        "spec": {
            "group": "client.windlass.dev",
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "shortNames": [short], "categories": ["windlass-tests"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    })
}

/// Defines a custom resource and waits until it is served.
async fn define(client: &DynamicClient, plural: &str, kind: &str) {
    let crds = client.resource(CRDS);
    let created = crds
        .create(&definition(plural, kind), &WriteOptions::default())
        .await
        .unwrap();
    let mut watch = crds
        .watch(&WatchOptions::from(
            created.str_at("/metadata/resourceVersion"),
        ))
        .await
        .unwrap();
    while let Some(event) = watch.next().await {
        let event = event.unwrap();
        let crd = event.object();
        let is_this = crd.at("/metadata/name") == created.at("/metadata/name");
        let is_established = crd
            .at("/status/conditions")
            .items()
            .iter()
            .any(|condition| {
                condition.str_at("/type") == "Established" && condition.str_at("/status") == "True"
            });
        if is_this && is_established {
            return;
        }
    }
    panic!("the watch ended before {plural} was established");
}

#[derive(kube_derive::CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "client.windlass.dev",
    version = "v1",
    kind = "Gadget",
    plural = "gadgets"
)]
#[kube(namespaced, schema = "disabled", status = "GadgetStatus")]
#[kube(crates(kube_core = "kube_core", k8s_openapi = "k8s_openapi"))]
struct GadgetSpec {
    size: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct GadgetStatus {
    ready: bool,
}

#[tokio::test]
async fn a_custom_resource_is_used_as_a_document_and_as_a_derived_type() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "dynamic-custom").await;
    let dynamic = DynamicClient::new(client.rest().clone());
    define(&dynamic, "gadgets", "Gadget").await;

    let typed: Api<Gadget> = client.api().namespaced("dynamic-custom");
    let gadget = Gadget {
        metadata: named("g"),
        spec: GadgetSpec { size: 3 },
        status: None,
    };
    // The server serves a new resource a moment after it calls it established.
    let created = loop {
        match typed.create(&gadget, &WriteOptions::default()).await {
            Err(error) if error.is_not_found() => tokio::task::yield_now().await,
            created => break created.unwrap(),
        }
    };
    assert_eq!(created.spec, gadget.spec);

    let gadgets = typed.dynamic();
    let doc = gadgets.get("g").await.unwrap();
    assert_eq!(doc.at("/spec/size"), &doc!(3));
    let doc = doc.with("/spec/size", 4).unwrap();
    let doc = gadgets
        .update(&doc, &WriteOptions::default())
        .await
        .unwrap();
    let doc = doc.with("/status/ready", true).unwrap();
    gadgets
        .update_status(&doc, &WriteOptions::default())
        .await
        .unwrap();
    let read = typed.get("g").await.unwrap();
    assert_eq!(
        (read.spec.size, read.status),
        (4, Some(GadgetStatus { ready: true }))
    );

    let wrong = Patch::Merge(doc!({ "spec": { "size": "large" } }));
    gadgets
        .patch("g", &wrong, &WriteOptions::default())
        .await
        .unwrap();
    let list = typed.list(&ListOptions::default()).await.unwrap();
    assert!(list.items.is_empty());
    assert_eq!(
        list.undecodable[0].key.as_ref().unwrap().as_str(),
        "dynamic-custom/g"
    );
    gadgets
        .delete("g", &DeleteOptions::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_name_that_is_not_known_yet_is_found_after_it_was_defined() {
    let Some((_, client)) = server().await else {
        return;
    };
    let discovery = DiscoveryClient::new(client.rest().clone());
    discovery.discovery().await.unwrap();
    let dynamic = DynamicClient::new(client.rest().clone());
    define(&dynamic, "sprockets", "Sprocket").await;
    let found = loop {
        match discovery.resolve("sprocketsx").await {
            Ok(found) => break found,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(
        found.gvr,
        Gvr::constant("client.windlass.dev", "v1", "sprockets")
    );
    assert_eq!(found.subresources, ["status"]);
    let all = discovery.discovery().await.unwrap();
    assert!(
        all.category("windlass-tests")
            .iter()
            .any(|it| it.gvr == found.gvr)
    );
}

#[tokio::test]
async fn metadata_comes_without_the_rest() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "dynamic-meta").await;
    let typed: Api<ConfigMap> = client.api().namespaced("dynamic-meta");
    typed
        .create(&config_map("a", "large"), &WriteOptions::default())
        .await
        .unwrap();
    let maps = DynamicClient::new(client.rest().clone())
        .resource(MAPS)
        .namespaced("dynamic-meta");

    let one = maps.get_metadata("a").await.unwrap();
    assert_eq!(one.str_at("/kind"), "PartialObjectMetadata");
    assert_eq!(one.str_at("/metadata/name"), "a");
    assert!(one.get("data").is_none());

    let options = ListOptions {
        is_metadata_only: true,
        ..ListOptions::default()
    };
    let list = maps.list(&options).await.unwrap();
    assert_eq!(list.head.kind, "PartialObjectMetadataList");
    assert!(list.items.iter().all(|item| item.get("data").is_none()));
    assert!(
        list.items
            .iter()
            .all(|item| item.at("/metadata/managedFields").is_null())
    );

    let options = WatchOptions {
        is_metadata_only: true,
        ..WatchOptions::initial()
    };
    let mut watch = maps.watch(&options).await.unwrap();
    let first = watch.next().await.unwrap().unwrap();
    let WatchEvent::Added(doc) = first else {
        panic!("{first:?}")
    };
    assert_eq!(doc.str_at("/kind"), "PartialObjectMetadata");
}

#[tokio::test]
async fn an_object_is_the_same_document_from_a_list_and_from_a_watch() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "dynamic-same").await;
    let typed: Api<ConfigMap> = client.api().namespaced("dynamic-same");
    typed
        .create(&config_map("a", "1"), &WriteOptions::default())
        .await
        .unwrap();
    let maps = typed.dynamic();
    let listed = maps.list(&ListOptions::default()).await.unwrap().items;
    let mut watch = maps.watch(&WatchOptions::initial()).await.unwrap();
    let mut watched = Vec::new();
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(doc) => watched.push(doc),
            event if event.is_initial_events_end() => break,
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(listed, watched);
    assert_eq!(listed[0].str_at("/kind"), "ConfigMap");
}

#[tokio::test]
async fn a_write_is_answered_with_metadata_alone_where_no_more_is_wanted() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "dynamic-brief").await;
    let maps = DynamicClient::new(client.rest().clone())
        .resource(MAPS)
        .namespaced("dynamic-brief");
    let map = doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a" }, "data": { "key": "value" },
    });
    let brief = WriteOptions::default().metadata_only();
    let created = maps.create(&map, &brief).await.unwrap();
    assert_eq!(created.str_at("/kind"), "PartialObjectMetadata");
    assert!(created.at("/data").is_null() && created.at("/metadata/managedFields").is_null());
    let stored = maps.get("a").await.unwrap();
    assert_eq!(stored.at("/data"), map.at("/data"));
    assert_eq!(stored.meta().uid(), created.meta().uid());
    assert_eq!(
        stored.meta().resource_version(),
        created.meta().resource_version()
    );
    let refused = maps.create(&map, &brief).await.unwrap_err();
    assert!(refused.is_already_exists(), "{refused}");
    assert_eq!(refused.status().unwrap().code, 409);
}
