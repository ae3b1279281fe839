//! The model server answers as an API server does.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass_client::{
    DeleteOptions, DynamicApi, DynamicClient, Patch, RequestOutcome, RestClient, RestOptions,
    WatchEvent, WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};

const PODS: Gvr = Gvr::constant("", "v1", "pods");

fn pod(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": { "a": 1 } })
}

fn stage() -> (ModelServer, Faults, DynamicApi) {
    let (server, faults) = (ModelServer::new(TokioClock::new().env(1)), Faults::none());
    let client = RestClient::new(server.transport().layer(&faults), RestOptions::default());
    let pods = DynamicClient::new(client)
        .resource(PODS)
        .namespaced("default");
    (server, faults, pods)
}

fn plain() -> WriteOptions {
    WriteOptions::default()
}

#[tokio::test(start_paused = true)]
async fn writes_are_checked_against_what_is_stored() {
    let (_, _, pods) = stage();
    let first = pods.create(&pod("web"), &plain()).await.unwrap();
    assert_eq!(
        (first.meta().resource_version(), first.meta().generation()),
        ("1", 1)
    );
    assert!(
        pods.create(&pod("web"), &plain())
            .await
            .unwrap_err()
            .is_already_exists()
    );

    let second = pods
        .update(&first.with("/spec/a", 2).unwrap(), &plain())
        .await
        .unwrap();
    assert_eq!(
        (second.meta().resource_version(), second.meta().generation()),
        ("2", 2)
    );
    assert!(
        pods.update(&first, &plain())
            .await
            .unwrap_err()
            .is_conflict()
    );
    let same = pods.update(&second, &plain()).await.unwrap();
    assert_eq!(same.meta().resource_version(), "2");

    let wrong = DeleteOptions::uid("another");
    assert!(pods.delete("web", &wrong).await.unwrap_err().is_conflict());
    pods.delete("web", &DeleteOptions::uid(first.meta().uid_str()))
        .await
        .unwrap();
    assert!(pods.get("web").await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart() {
    let (_, _, pods) = stage();
    pods.create(&pod("web"), &plain()).await.unwrap();
    let status = Patch::Merge(doc!({ "status": { "phase": "Running" }, "spec": { "a": 9 } }));
    let stored = pods.patch_status("web", &status, &plain()).await.unwrap();
    assert_eq!(
        (
            stored.str_at("/status/phase"),
            stored.at("/spec/a").as_i64()
        ),
        ("Running", Some(1))
    );
    let rest = Patch::Merge(doc!({ "status": { "phase": "Failed" }, "spec": { "a": 9 } }));
    let stored = pods.patch("web", &rest, &plain()).await.unwrap();
    assert_eq!(
        (
            stored.str_at("/status/phase"),
            stored.at("/spec/a").as_i64()
        ),
        ("Running", Some(9))
    );
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let (server, _, pods) = stage();
    pods.create(&pod("web").with_finalizer("x/y"), &plain())
        .await
        .unwrap();
    pods.delete("web", &DeleteOptions::default()).await.unwrap();
    let held = pods.get("web").await.unwrap();
    assert!(held.meta().is_deleting());
    pods.update(&held.without_finalizer("x/y"), &plain())
        .await
        .unwrap();
    assert!(server.objects("pods").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_where_it_is_told_and_a_forgotten_past_is_gone() {
    let (server, _, pods) = stage();
    pods.create(&pod("a"), &plain()).await.unwrap();
    pods.create(&pod("b"), &plain()).await.unwrap();
    let mut watch = pods.watch(&WatchOptions::from("1")).await.unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert!(matches!(&event, WatchEvent::Added(pod) if pod.meta().name() == "b"));

    let mut initial = pods.watch(&WatchOptions::initial()).await.unwrap();
    for name in ["a", "b"] {
        let event = initial.next().await.unwrap().unwrap();
        assert_eq!(event.object().meta().name(), name);
    }
    assert!(
        initial
            .next()
            .await
            .unwrap()
            .unwrap()
            .is_initial_events_end()
    );

    server.delete("/api/v1/namespaces/default/pods/a");
    let event = watch.next().await.unwrap().unwrap();
    assert!(matches!(&event, WatchEvent::Deleted(pod) if pod.meta().resource_version() == "3"));
    server.compact();
    assert!(
        pods.watch(&WatchOptions::from("1"))
            .await
            .unwrap_err()
            .is_gone()
    );
    // A watch that is open has seen everything, and goes on.
    server.create("/api/v1/namespaces/default/pods", &pod("c"));
    assert_eq!(
        watch.next().await.unwrap().unwrap().object().meta().name(),
        "c"
    );
}

#[tokio::test(start_paused = true)]
async fn a_selector_turns_changes_into_arrivals_and_departures() {
    let (_, _, pods) = stage();
    let labelled = |value: &str| {
        pod("web")
            .with("/metadata/labels", doc!({ "app": value }))
            .unwrap()
    };
    let mut watch = pods
        .watch(&WatchOptions::from("0").labels("app=x"))
        .await
        .unwrap();
    pods.create(&labelled("y"), &plain()).await.unwrap();
    pods.update(&labelled("x"), &plain()).await.unwrap();
    pods.update(&labelled("y"), &plain()).await.unwrap();
    assert!(matches!(
        watch.next().await.unwrap().unwrap(),
        WatchEvent::Added(_)
    ));
    assert!(matches!(
        watch.next().await.unwrap().unwrap(),
        WatchEvent::Deleted(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_lagging_watch_brings_events_late_and_in_order() {
    let (server, _, pods) = stage();
    let mut watch = pods.watch(&WatchOptions::from("0")).await.unwrap();
    server.lag("pods", Duration::from_secs(10));
    let start = Instant::now();
    pods.create(&pod("a"), &plain()).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    pods.create(&pod("b"), &plain()).await.unwrap();
    for (name, after) in [("a", 10), ("b", 14)] {
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(
            (event.object().meta().name(), start.elapsed().as_secs()),
            (name, after)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn faults_say_what_the_client_may_know() {
    let (server, faults, pods) = stage();
    let cases = [
        (Fault::NotSent, RequestOutcome::NotSent, 0),
        (Fault::LostRequest, RequestOutcome::Unknown, 0),
        (Fault::LostAnswer, RequestOutcome::Unknown, 1),
        (Fault::Refuse(403, "Forbidden"), RequestOutcome::Rejected, 1),
        (Fault::StallAfter, RequestOutcome::Unknown, 2),
    ];
    for (at, (fault, outcome, stored)) in cases.into_iter().enumerate() {
        let name = fault.clone();
        faults.set(move |_| fault.clone());
        let error = pods
            .create(&pod(&format!("p{at}")), &plain())
            .await
            .unwrap_err();
        assert_eq!(error.outcome(), outcome, "{name:?}");
        assert_eq!(server.objects("pods").len(), stored, "{name:?}");
    }
    faults.set(|_| Fault::DelayAnswer(Duration::from_secs(3)));
    let start = Instant::now();
    pods.create(&pod("late"), &plain()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(faults.calls(), 6);
}
