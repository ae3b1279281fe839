//! The runtime against the real server: etcd and kube-apiserver.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod processes;
mod setup;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass_client::{RestOptions, WriteOptions};
use windlass_core::{Doc, Env, Key, doc};
use windlass_envtest::real_server;
use windlass_runtime::{
    Action, Context, Controller, EventBroadcaster, EventType, Manager, ResourceKind, Result,
    Shutdown,
};

use setup::{Place, place};

/// Makes one pod per ConfigMap, under a generated name: a stale look at the cache would show.
async fn one_pod(key: Key, cx: Context) -> Result<Action> {
    let Some(map) = cx.lister::<ConfigMap>()?.get(&key) else {
        return Ok(Action::done());
    };
    let pods = cx
        .lister::<Pod>()?
        .list_in(map.namespace(), &"app=x".parse()?);
    if pods
        .iter()
        .any(|pod| pod.meta().is_controlled_by(&map.uid()))
    {
        return Ok(Action::done());
    }
    let gvk = ResourceKind::of::<ConfigMap>().gvk().clone();
    let owner = Doc::from(&windlass_core::OwnerRef::controller_of(map.doc(), &gvk));
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "generateName": "x-", "labels": { "app": "x" }, "ownerReferences": vec![owner] },
        "spec": { "containers": [{ "name": "x", "image": "x" }] }
    });
    let api = cx.api(&ResourceKind::of::<Pod>(), map.namespace());
    api.create(&pod, &WriteOptions::default()).await?;
    Ok(Action::done())
}

#[tokio::test]
async fn a_controller_acts_once_per_object_and_recreates_what_is_deleted() {
    let Some(server) = real_server() else { return };
    let Place {
        transport,
        client,
        namespace,
    } = place(server, "act-once").await;
    let shutdown = Shutdown::new();
    let manager = Manager::builder("act-once")
        .transport(transport, RestOptions::default())
        .namespace(&namespace)
        .shutdown(shutdown.clone())
        .build()
        .unwrap();
    let mine = |change: &windlass_runtime::Change<'_>| {
        change
            .object()
            .is_some_and(|it| it.meta().label("app") == Some("x"))
    };
    let controller = Controller::of_keys::<ConfigMap>(one_pod)
        .filter(mine)
        .owns::<Pod>();
    manager.add(controller.workers(4));
    let handle = manager.handle();
    let running = tokio::spawn(manager.run());
    let maps = setup::resource(&client, "configmaps", &namespace);
    let pods = setup::resource(&client, "pods", &namespace);
    for at in 0..50 {
        let map = doc!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("m{at}"), "labels": { "app": "x" } }
        });
        maps.create(&map, &WriteOptions::default()).await.unwrap();
    }
    setup::until("50 pods", async || setup::count(&pods).await == 50).await;
    // Each of these is a reason to look again.
    for at in 0..50 {
        let patch = windlass_client::Patch::Merge(doc!({ "data": { "a": "b" } }));
        maps.patch(&format!("m{at}"), &patch, &WriteOptions::default())
            .await
            .unwrap();
    }
    let list = pods.list(&Default::default()).await.unwrap();
    let gone = list.items[0].meta().name().to_owned();
    pods.delete(
        &gone,
        &windlass_client::DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..Default::default()
        },
    )
    .await
    .unwrap();
    setup::until("50 pods again", async || {
        let names = setup::names(&pods).await;
        names.len() == 50 && !names.contains(&gone)
    })
    .await;
    shutdown.trigger();
    running.await.unwrap().unwrap();
    assert_eq!(setup::count(&pods).await, 50);
    drop(handle);
}

#[tokio::test]
async fn ten_thousand_repeated_events_are_one_event() {
    let Some(server) = real_server() else { return };
    let Place {
        client, namespace, ..
    } = place(server, "events").await;
    let broadcaster = EventBroadcaster::new(Env::real());
    broadcaster.start_sink(client.clone());
    let recorder = broadcaster.recorder("loud");
    let object = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "namespace": &namespace, "uid": "u1" }
    });
    let events = setup::resource(&client, "events", &namespace);
    for at in 1..=10_000 {
        recorder.event(
            &object,
            EventType::Warning,
            "BackOff",
            "Back-off restarting",
        );
        // A program that is faster than the sink for long loses events: the queue is bounded.
        while at % 500 == 0 && broadcaster.pending() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    broadcaster.shut_down().await;
    let list = events.list(&Default::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    // The spam filter lets 25 of them through at once, and the last word at the end.
    assert_eq!(list.items[0].at("/count").as_i64(), Some(10_000));
}
