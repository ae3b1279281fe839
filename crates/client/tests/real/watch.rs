//! Watches of a real server.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_client::{Api, DeleteOptions, ListOptions, WatchEvent, WatchOptions, WriteOptions};

use crate::setup::{config_map, namespace, server};

fn plain() -> WriteOptions {
    WriteOptions::default()
}

#[tokio::test]
async fn changes_arrive_in_order_with_their_types() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "watch-order").await;
    let maps: Api<ConfigMap> = client.api().namespaced("watch-order");
    let list = maps.list(&ListOptions::default()).await.unwrap();
    let mut watch = maps
        .watch(&WatchOptions::from(list.head.resource_version()))
        .await
        .unwrap();

    let mut map = maps.create(&config_map("a", "1"), &plain()).await.unwrap();
    map.data = None;
    let map = maps.update(&map, &plain()).await.unwrap();
    maps.delete("a", &DeleteOptions::default()).await.unwrap();

    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    let modified = watch.next().await.unwrap().unwrap();
    let WatchEvent::Modified(seen) = modified else {
        panic!("{modified:?}")
    };
    assert_eq!(
        seen.metadata.resource_version,
        map.metadata.resource_version
    );
    assert!(seen.metadata.managed_fields.is_none(), "pruned");
    let deleted = watch.next().await.unwrap().unwrap();
    let WatchEvent::Deleted(last) = deleted else {
        panic!("{deleted:?}")
    };
    assert_ne!(
        last.metadata.resource_version,
        map.metadata.resource_version
    );
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_and_then_live_ones_follow() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "watch-initial").await;
    let maps: Api<ConfigMap> = client.api().namespaced("watch-initial");
    for name in ["a", "b"] {
        maps.create(&config_map(name, "1"), &plain()).await.unwrap();
    }
    let mut watch = maps.watch(&WatchOptions::initial()).await.unwrap();
    let mut names = Vec::new();
    let bookmark = loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => names.push(map.metadata.name.unwrap()),
            WatchEvent::Bookmark(doc) => break WatchEvent::<()>::Bookmark(doc),
            event => panic!("{event:?}"),
        }
    };
    names.sort();
    assert_eq!(names, ["a", "b"]);
    let WatchEvent::Bookmark(doc) = bookmark else {
        unreachable!()
    };
    assert_eq!(
        doc.str_at("/metadata/annotations/k8s.io~1initial-events-end"),
        "true"
    );
    maps.create(&config_map("c", "1"), &plain()).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
}

#[tokio::test]
async fn the_server_ends_a_watch_when_it_was_asked_to() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "watch-end").await;
    let maps: Api<ConfigMap> = client.api().namespaced("watch-end");
    let options = WatchOptions::from("").timeout(std::time::Duration::from_secs(1));
    let mut watch = maps.watch(&options).await.unwrap();
    while let Some(event) = watch.next().await {
        assert!(matches!(event, Ok(WatchEvent::Bookmark(_))), "{event:?}");
    }
}

#[tokio::test]
async fn many_watches_share_connections_and_do_not_hold_up_writes() {
    let Some((_, client)) = server().await else {
        return;
    };
    namespace(&client, "watch-many").await;
    let maps: Api<ConfigMap> = client.api().namespaced("watch-many");
    let options = WatchOptions {
        bookmarks: false,
        ..WatchOptions::default()
    };
    let mut watches = Vec::new();
    for _ in 0..200 {
        watches.push(maps.watch(&options).await.unwrap());
    }
    maps.create(&config_map("a", "1"), &plain()).await.unwrap();
    for watch in &mut watches {
        let event = watch.next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Added(_)), "{event:?}");
    }
}
