//! A server that goes away and comes back.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_client::{
    Api, Clientset, Config, RequestOutcome, RestClient, WatchEvent, WatchOptions, WriteOptions,
};
use windlass_envtest::{ControlPlane, Options};

use crate::setup::{config_map, namespace};

#[tokio::test]
async fn a_watch_ends_with_its_server_and_is_resumed_where_it_was() {
    if windlass_envtest::real_assets().is_none() {
        return;
    }
    let mut server = ControlPlane::start(&Options::default()).unwrap();
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let client = Clientset::new(RestClient::connect(&config).await.unwrap());
    namespace(&client, "restart").await;
    let maps: Api<ConfigMap> = client.api().namespaced("restart");
    let mut watch = maps.watch(&WatchOptions::initial()).await.unwrap();
    let plain = WriteOptions::default();
    let first = maps.create(&config_map("a", "1"), &plain).await.unwrap();
    loop {
        if matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))) {
            break;
        }
    }

    server.stop_apiserver();
    let last = watch.next().await;
    assert!(!matches!(last, Some(Ok(_))), "{last:?}");
    assert!(watch.next().await.is_none());
    let refused = maps
        .create(&config_map("b", "1"), &plain)
        .await
        .unwrap_err();
    assert!(refused.is_connection_refused(), "{refused:?}");
    assert_eq!(refused.outcome(), RequestOutcome::NotSent);

    server.restart_apiserver().unwrap();
    assert!(
        is_gone(&maps, "1").await,
        "a server keeps no events from before its start"
    );
    maps.create(&config_map("b", "1"), &plain).await.unwrap();
    let seen = first.metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchOptions::from(seen)).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    let WatchEvent::Added(map) = event else {
        panic!("{event:?}")
    };
    assert_eq!(map.metadata.name.as_deref(), Some("b"));
}

/// Returns true if a watch from this state is refused. A server may say so at once or in the first
/// event.
async fn is_gone(maps: &Api<ConfigMap>, resource_version: &str) -> bool {
    match maps.watch(&WatchOptions::from(resource_version)).await {
        Err(error) => error.is_gone(),
        Ok(mut watch) => {
            let first = watch.next().await.unwrap();
            first.is_err_and(|error| error.is_gone()) && watch.next().await.is_none()
        }
    }
}
