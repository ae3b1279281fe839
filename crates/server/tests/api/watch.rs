//! Watch: initial events, bookmarks, selectors, ends.

use std::time::Duration;

use http::Method;
use windlass_core::{Doc, doc};
use windlass_server::WatchDocs;
use windlass_wire::{Content, WatchEvent};

use crate::support::{Api, CONFIG_MAPS, PODS, config_map, labelled, pod, request};

#[tokio::test]
async fn a_watch_follows_a_list() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("old")).await.expect(201);
    let from = api.get(CONFIG_MAPS).await.revision();
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}"))
        .await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.merge(&format!("{CONFIG_MAPS}/a"), &doc!({ "data": { "x": "y" } }))
        .await
        .expect(200);
    api.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let mut last = from;
    for expected in ["ADDED", "MODIFIED", "DELETED"] {
        let (kind, object) = watch.next().await.unwrap();
        assert_eq!(kind, expected);
        assert_eq!(object.str_at("/kind"), "ConfigMap");
        let revision: u64 = object.str_at("/metadata/resourceVersion").parse().unwrap();
        assert!(revision > last, "each event has its own, later revision");
        last = revision;
    }
}

#[tokio::test]
async fn without_a_revision_the_present_objects_come_first() {
    let api = Api::new().await;
    for name in ["b", "a"] {
        api.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    for query in ["watch=1", "watch=true&resourceVersion=0", "watch"] {
        let mut watch = api.watch(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(watch.short().await, "ADDED a");
        assert_eq!(watch.short().await, "ADDED b");
    }
}

#[tokio::test]
async fn the_end_of_the_initial_events_is_announced() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &allowWatchBookmarks=true"
    );
    let mut watch = api.watch(&path).await;
    assert_eq!(watch.short().await, "ADDED a");
    let (kind, object) = watch.next().await.unwrap();
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(object.str_at("/kind"), "ConfigMap");
    assert_eq!(
        object.str_at("/metadata/annotations/k8s.io~1initial-events-end"),
        "true"
    );
    let list = api.get(CONFIG_MAPS).await;
    assert_eq!(
        object.at("/metadata/resourceVersion"),
        list.body.at("/metadata/resourceVersion")
    );
    api.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    assert_eq!(watch.short().await, "ADDED b");
}

#[tokio::test]
async fn initial_events_can_be_declined() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path =
        format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut watch = api.watch(&path).await;
    api.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    assert_eq!(watch.short().await, "ADDED b");
}

#[tokio::test]
async fn an_object_that_leaves_the_selection_is_deleted_to_the_watcher() {
    let api = Api::new().await;
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=n=1"))
        .await;
    let label = |value: &str| doc!({ "metadata": { "labels": { "n": value } } });
    let path = format!("{CONFIG_MAPS}/a");
    api.post(CONFIG_MAPS, &labelled("a", "n", "2"))
        .await
        .expect(201);
    api.merge(&path, &label("1")).await.expect(200);
    let inside = api
        .merge(&path, &doc!({ "data": { "x": "y" } }))
        .await
        .expect(200);
    let outside = api.merge(&path, &label("3")).await.expect(200);
    api.delete(&path).await.expect(200);
    api.post(CONFIG_MAPS, &labelled("b", "n", "1"))
        .await
        .expect(201);
    assert_eq!(watch.short().await, "ADDED a");
    assert_eq!(watch.short().await, "MODIFIED a");
    let (kind, object) = watch.next().await.unwrap();
    assert_eq!(kind, "DELETED");
    assert_eq!(
        object.str_at("/metadata/labels/n"),
        "1",
        "the last state that was inside"
    );
    let expected = inside.body.with(
        "/metadata/resourceVersion",
        outside.str_at("/metadata/resourceVersion"),
    );
    assert_eq!(object, expected.unwrap());
    assert_eq!(watch.short().await, "ADDED b");
}

#[tokio::test]
async fn fields_and_namespaces_narrow_a_watch() {
    let api = Api::new().await;
    api.post(
        "/api/v1/namespaces",
        &doc!({ "metadata": { "name": "ns" } }),
    )
    .await
    .expect(201);
    let mut one = api
        .watch(&format!("{PODS}?watch=1&fieldSelector=metadata.name=b"))
        .await;
    let mut old_path = api.watch("/api/v1/watch/namespaces/default/pods/b").await;
    let mut other = api.watch("/api/v1/namespaces/ns/pods?watch=1").await;
    api.post(PODS, &pod("a")).await.expect(201);
    api.post(PODS, &pod("b")).await.expect(201);
    api.post("/api/v1/namespaces/ns/pods", &pod("c"))
        .await
        .expect(201);
    assert_eq!(one.short().await, "ADDED b");
    assert_eq!(old_path.short().await, "ADDED b");
    assert_eq!(other.short().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout_without_an_event() {
    let api = Api::new().await;
    let before = tokio::time::Instant::now();
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=7"))
        .await;
    assert_eq!(watch.short().await, "end");
    assert_eq!(before.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=130&allowWatchBookmarks=true");
    let begun = tokio::time::Instant::now();
    let mut watch = api.watch(&path).await;
    api.post(PODS, &pod("elsewhere")).await.expect(201);
    for expected in [60, 120, 128] {
        let (kind, object) = watch.next().await.unwrap();
        assert_eq!(kind, "BOOKMARK");
        assert_eq!(begun.elapsed(), Duration::from_secs(expected));
        let newest = api.get(PODS).await.revision().to_string();
        assert_eq!(
            object.str_at("/metadata/resourceVersion"),
            newest,
            "it moves with other resources"
        );
    }
    assert_eq!(watch.short().await, "end");
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_a_watch_lasts_half_an_hour_to_an_hour() {
    let api = Api::new().await;
    let begun = tokio::time::Instant::now();
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.short().await, "end");
    assert!((1800..=3600).contains(&begun.elapsed().as_secs()));
}

#[tokio::test]
async fn a_revision_that_is_forgotten_ends_the_watch_with_an_error() {
    let api = Api::forgetful(4).await;
    let from = api.post(CONFIG_MAPS, &config_map("a")).await.revision();
    for number in 0..10 {
        let change = doc!({ "data": { "n": (number.to_string()) } });
        api.merge(&format!("{CONFIG_MAPS}/a"), &change)
            .await
            .expect(200);
    }
    let mut watch = api
        .watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}"))
        .await;
    let (kind, status) = watch.next().await.unwrap();
    assert_eq!(kind, "ERROR");
    assert_eq!(status.str_at("/reason"), "Expired");
    assert_eq!(*status.at("/code"), 410);
    assert!(
        status
            .str_at("/message")
            .starts_with(&format!("too old resource version: {from} ("))
    );
    assert_eq!(watch.short().await, "end");
    let exact = format!("{CONFIG_MAPS}?resourceVersion={from}&resourceVersionMatch=Exact");
    let message = api.get(&exact).await.refused(410, "Expired");
    assert_eq!(
        message,
        "The resourceVersion for the provided list is too old."
    );
}

#[tokio::test]
async fn a_slow_watcher_is_ended_and_others_are_not() {
    let api = Api::forgetful(16).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let (mut slow, mut quick) = (api.watch(&path).await, api.watch(&path).await);
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    assert_eq!(quick.short().await, "ADDED a");
    assert_eq!(slow.short().await, "ADDED a");
    for number in 0..100 {
        let change = doc!({ "data": { "n": (number.to_string()) } });
        api.merge(&format!("{CONFIG_MAPS}/a"), &change)
            .await
            .expect(200);
        assert_eq!(quick.short().await, "MODIFIED a");
    }
    let (kind, status) = slow.next().await.unwrap();
    assert_eq!(
        (kind.as_str(), status.str_at("/reason")),
        ("ERROR", "Expired")
    );
    assert_eq!(slow.short().await, "end");
}

#[tokio::test]
async fn watch_options_must_make_sense() {
    let api = Api::new().await;
    for query in [
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "continue=abc",
        "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
    ] {
        api.get(&format!("{CONFIG_MAPS}?watch=1&{query}"))
            .await
            .refused(422, "Invalid");
    }
    api.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=abc"))
        .await
        .refused(500, "");
}

#[tokio::test]
async fn tables_carry_their_columns_once() {
    let api = Api::new().await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut watch = api
        .watch_as(&format!("{CONFIG_MAPS}?watch=1"), accept)
        .await;
    for name in ["a", "b"] {
        api.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let (_, first) = watch.next().await.unwrap();
    assert_eq!(first.str_at("/kind"), "Table");
    assert!(!first.at("/columnDefinitions").items().is_empty());
    let (_, second) = watch.next().await.unwrap();
    assert!(second.at("/columnDefinitions").items().is_empty());
    assert_eq!(*second.at("/rows/0/cells/0"), "b");
}

#[tokio::test]
async fn all_watches_end_when_the_server_closes() {
    let api = Api::new().await;
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    api.server.close();
    assert_eq!(watch.short().await, "end");
    api.post(CONFIG_MAPS, &config_map("a"))
        .await
        .refused(503, "ServiceUnavailable");
    api.get(CONFIG_MAPS).await.expect(200);
}

#[tokio::test]
async fn many_watchers_see_the_same_order() {
    let api = Api::new().await;
    let mut watches = Vec::new();
    for _ in 0..50 {
        watches.push(api.watch(&format!("{CONFIG_MAPS}?watch=1")).await);
    }
    for number in 0..20 {
        api.post(CONFIG_MAPS, &config_map(&format!("c{number:02}")))
            .await
            .expect(201);
    }
    for watch in &mut watches {
        for number in 0..20 {
            assert_eq!(watch.short().await, format!("ADDED c{number:02}"));
        }
    }
}

#[tokio::test]
async fn in_process_events_are_the_stored_documents() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let watch = WatchDocs {
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: "default".to_owned(),
        initial_events: true,
        ..WatchDocs::default()
    };
    let mut watch = api.server.watch_docs(&watch).unwrap();
    let stored = api.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(watch.next().await, Some(Ok(WatchEvent::Added(stored.body))));
    assert!(matches!(
        watch.next().await,
        Some(Ok(WatchEvent::Bookmark(_)))
    ));
    let created = api.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    assert_eq!(
        watch.next().await,
        Some(Ok(WatchEvent::Added(created.body)))
    );
}

#[tokio::test]
async fn in_process_answers_carry_documents() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let content = |path: String| {
        let api = api.clone();
        async move {
            api.respond(request(Method::GET, &path, "", ""))
                .await
                .into_body()
                .into_content()
        }
    };
    let Content::Doc(object) = content(format!("{CONFIG_MAPS}/a")).await else {
        panic!("an object is a document");
    };
    assert_eq!(object, created.body);
    let Content::List(list) = content(CONFIG_MAPS.to_owned()).await else {
        panic!("a list is a list of documents");
    };
    assert_eq!(list.kind, "ConfigMapList");
    let items: Vec<Doc> = list.items.collect();
    assert_eq!(items, std::slice::from_ref(&object));
    let Content::Events(mut watch) = content(format!("{CONFIG_MAPS}?watch=1")).await else {
        panic!("a watch is a stream of documents");
    };
    let event = watch.next().await.unwrap();
    assert_eq!(event.unwrap(), WatchEvent::Added(object));
    let Content::Doc(refusal) = content(format!("{CONFIG_MAPS}/none")).await else {
        panic!("a refusal is a document");
    };
    assert_eq!(refusal.str_at("/reason"), "NotFound");
}
