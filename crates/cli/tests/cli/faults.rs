//! Faults between a client and the stand-in for kube-apiserver.

use windlass_client::{DynamicApi, DynamicClient, Error, RestClient, WatchOptions, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

use crate::assets::{Bench, Stand, free_port};

const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");
const CONTROL: &str = "/debug/windlass/faults";

/// A server whose faults change while it runs.
struct Faulty {
    client: RestClient,
    maps: DynamicApi,
    bench: Bench,
    _etcd: Stand,
    _server: Stand,
}

impl Faulty {
    async fn start(rules: &str) -> Self {
        let bench = Bench::new();
        let (etcd_port, port) = (free_port(), free_port());
        bench.write_files(port);
        let etcd = bench.start_etcd(etcd_port);
        let variables = [("WINDLASS_FAULTS", rules)];
        let server = bench.start_api_server_with(etcd_port, port, &variables);
        let client = bench.rest_client().await;
        Self {
            maps: DynamicClient::new(client.clone())
                .resource(CONFIG_MAPS)
                .namespaced("default"),
            client,
            bench,
            _etcd: etcd,
            _server: server,
        }
    }

    async fn create(&self, name: &str) -> Result<Doc, Error> {
        let map = doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        self.maps.create(&map, &WriteOptions::default()).await
    }

    async fn set(&self, rule: &str) -> Doc {
        self.client.delete(CONTROL).into_doc().await.unwrap();
        let added = self.client.post(CONTROL).param("rule", rule);
        added.into_doc().await.unwrap()
    }
}

#[tokio::test]
async fn requests_are_dropped_lost_duplicated_and_refused() {
    let faulty = Faulty::start("drop,verb=create,resource=configmaps,at=1").await;
    faulty.create("dropped").await.unwrap_err();
    assert!(faulty.maps.get("dropped").await.unwrap_err().is_not_found());
    faulty.create("dropped").await.unwrap();

    faulty
        .set("lose,verb=create,resource=configmaps,at=1")
        .await;
    faulty.create("lost").await.unwrap_err();
    faulty.maps.get("lost").await.unwrap();

    faulty
        .set("duplicate,verb=create,resource=configmaps,at=1")
        .await;
    let error = faulty.create("twice").await.unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    faulty.maps.get("twice").await.unwrap();

    faulty
        .set("status=409,verb=create,user=windlass-admin,times=1")
        .await;
    let error = faulty.create("refused").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    faulty.create("refused").await.unwrap();

    // Another client is left alone.
    faulty.set("status=500,agent=somebody-else").await;
    faulty.create("other").await.unwrap();
}

#[tokio::test]
async fn a_watch_breaks_after_its_events_and_the_page_tells_of_it() {
    let faulty = Faulty::start("").await;
    faulty.set("cut=2,resource=configmaps").await;
    let mut watch = faulty.maps.watch(&WatchOptions::default()).await.unwrap();
    for name in ["one", "two", "three"] {
        faulty.create(name).await.unwrap();
    }
    let mut events = 0;
    while let Some(Ok(_)) = watch.next().await {
        events += 1;
    }
    assert_eq!(events, 2);
    let page = faulty.client.get(CONTROL).into_doc().await.unwrap();
    let rule = page.at("/rules").item(0).unwrap();
    assert_eq!(rule.str_at("/rule"), "cut=2,resource=configmaps");
    assert_eq!(rule.at("/requests").as_i64(), Some(1));
    let seen = page.at("/seen").items();
    assert!(
        seen.iter()
            .any(|request| request.str_at("/fault") == "cut=2")
    );
}

#[tokio::test]
async fn rules_that_cannot_be_read_and_strangers_are_refused() {
    let faulty = Faulty::start("").await;
    let refused = faulty.client.post(CONTROL).param("rule", "explode");
    let error = refused.into_doc().await.unwrap_err();
    assert!(error.to_string().contains("is not a fault"), "{error}");
    let stranger = faulty.bench.anonymous_client().await;
    let error = stranger.get(CONTROL).into_doc().await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
}
