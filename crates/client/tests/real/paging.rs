//! Five thousand objects, in pages.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_client::{Api, Clientset, Config, Error, ListOptions, RestClient, WriteOptions};
use windlass_envtest::{ControlPlane, Options};

use crate::setup::{config_map, namespace};

const COUNT: usize = 5000;

/// The number of concurrent requests that create the objects.
const WRITERS: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_config_maps_come_in_pages_and_an_expired_token_is_survived() {
    if windlass_envtest::real_assets().is_none() {
        return;
    }
    // A server of its own, which forgets its history every second instead of every five minutes.
    let options = Options::default().apiserver_flag("--etcd-compaction-interval=1s");
    let server = ControlPlane::start(&options).unwrap();
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let client = Clientset::new(RestClient::connect(&config).await.unwrap());
    namespace(&client, "paging").await;
    let maps: Api<ConfigMap> = client.api().namespaced("paging");
    create_all(&maps).await;

    let options = ListOptions::default().limit(400);
    let first = maps.list(&options).await.unwrap();
    assert_eq!(
        (first.items.len(), first.head.remaining()),
        (400, Some(4600))
    );
    let all = maps.list_all(&options).await.unwrap();
    assert_eq!(all.items.len(), COUNT);
    assert_eq!(all.head.continue_token(), "");
    let mut stream = maps
        .dynamic()
        .list_stream(&ListOptions::default())
        .await
        .unwrap();
    let mut streamed = 0;
    while let Some(item) = stream.next().await {
        item.unwrap();
        streamed += 1;
    }
    assert_eq!(streamed, COUNT);
    assert!(!stream.head().resource_version().is_empty());

    let token = first.head.continue_token().to_owned();
    let next = ListOptions {
        continue_token: token,
        ..options
    };
    let expired = until_expired(&maps, &next).await;
    assert!(expired.is_gone(), "{expired:?}");
    // The pager reads everything in one piece instead.
    let whole = maps
        .list_all(&ListOptions { limit: 400, ..next })
        .await
        .unwrap();
    assert!(whole.items.len() > COUNT);
    assert!(whole.undecodable.is_empty());
}

/// Writes until the state that a page continues from is forgotten.
async fn until_expired(maps: &Api<ConfigMap>, page: &ListOptions) -> Error {
    for number in 0.. {
        let map = config_map(&format!("z-{number}"), "value");
        maps.create(&map, &WriteOptions::default()).await.unwrap();
        if let Err(error) = maps.list(page).await {
            return error;
        }
    }
    unreachable!("the server forgets its history")
}

async fn create_all(maps: &Api<ConfigMap>) {
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let maps = maps.clone();
            tokio::spawn(async move {
                for number in (writer..COUNT).step_by(WRITERS) {
                    let map = config_map(&format!("m-{number:04}"), "value");
                    maps.create(&map, &WriteOptions::default()).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}
