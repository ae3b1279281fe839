//! Typed, dynamic and metadata-only informers of a real server, and what it refuses.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::Deserialize;
use tokio::time::timeout;
use windlass_cache::{InformerFactory, InformerSpec, Reason, SharedInformer, SyncError};
use windlass_client::WriteOptions;
use windlass_core::{Gvr, Selector};
use windlass_envtest::real_server;

use crate::setup::{CONFIG_MAPS, client, config_map, config_maps};

/// The time limit of each step of the test.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct Data {
    data: Values,
}

#[derive(Deserialize)]
struct Values {
    value: String,
}

#[tokio::test]
async fn one_cache_is_read_as_type_view_document_and_metadata() {
    let Some(server) = real_server() else { return };
    let rest = client(server.kubeconfig()).await;
    let maps = config_maps(&rest, "kinds").await;
    for value in 0..5 {
        let object = config_map(&format!("map-{value}"), value);
        maps.create(&object, &WriteOptions::default())
            .await
            .unwrap();
    }
    let factory = InformerFactory::on(rest)
        .sources()
        .namespace("kinds")
        .build();
    let typed = factory.informer::<ConfigMap>();
    let view: SharedInformer<Data> = factory.view::<ConfigMap, Data>();
    let metadata = factory.metadata(CONFIG_MAPS);
    let even: SharedInformer = factory.informer_of(
        InformerSpec::new(CONFIG_MAPS)
            .namespaced("kinds")
            .labels("parity=even"),
    );
    factory.start();
    timeout(PATIENCE, factory.wait_for_sync())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(factory.informers().len(), 3, "typed and view are one");

    let all = Selector::everything();
    let typed = typed.lister().list(&all);
    let typed = typed.iter().map(|object| object.decode().unwrap());
    let names: Vec<_> = typed.filter_map(|map| map.metadata.name).collect();
    assert_eq!(names, ["map-0", "map-1", "map-2", "map-3", "map-4"]);
    let third = view.lister().get(&"kinds/map-3".parse().unwrap()).unwrap();
    assert_eq!(third.decode().unwrap().data.value, "3");
    assert!(
        third.doc().at("/metadata/managedFields").is_null(),
        "pruned while decoding"
    );
    assert_eq!(metadata.lister().len(), 5);
    let bare = metadata
        .lister()
        .get(&"kinds/map-3".parse().unwrap())
        .unwrap();
    assert!(bare.doc().get("data").is_none() && bare.labels().value("parity") == Some("odd"));
    assert_eq!(even.lister().len(), 3);
    factory.shutdown().await;
}

#[tokio::test]
async fn a_forbidden_resource_is_reported_and_not_waited_for() {
    let Some(server) = real_server() else { return };
    let rest = client(&server.kubeconfig_for("nobody").unwrap()).await;
    let factory = InformerFactory::new(rest);
    let _secrets = factory.informer::<Secret>();
    factory.start();
    let error = timeout(PATIENCE, factory.wait_for_sync())
        .await
        .unwrap()
        .unwrap_err();
    let SyncError::Refused { resource, failure } = &error else {
        panic!("{error}")
    };
    assert_eq!((&**resource, failure.verb), ("secrets", "watch"));
    assert_eq!(failure.error.reason, Reason::Forbidden);
    let text = error.to_string();
    assert!(
        text.contains("User \"nobody\" cannot watch resource \"secrets\""),
        "{text}"
    );
    factory.shutdown().await;
}

#[tokio::test]
async fn a_resource_that_is_not_installed_is_reported_and_not_waited_for() {
    let Some(server) = real_server() else { return };
    let factory = InformerFactory::new(client(server.kubeconfig()).await);
    let _foos = factory.dynamic(Gvr::constant("example.com", "v1", "foos"));
    factory.start();
    let error = timeout(PATIENCE, factory.wait_for_sync())
        .await
        .unwrap()
        .unwrap_err();
    let SyncError::Refused { resource, failure } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (&**resource, failure.error.reason),
        ("foos.example.com", Reason::NotFound)
    );
    factory.shutdown().await;
}
