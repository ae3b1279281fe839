use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, advance, sleep};
use windlass_core::{Doc, Env, Gvr, doc};
use windlass_testing::{Fault, Faults, ModelServer, TokioClock};

use super::{correlate::aggregate_key, *};
use windlass_client::{DynamicClient, ListOptions, RestClient, RestOptions};

fn env() -> Env {
    TokioClock::new().env(1)
}

fn event(reason: &str, message: &str) -> Event {
    let source = Source {
        component: "tester".to_owned(),
        host: String::new(),
    };
    let involved = Reference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        uid: "u1".to_owned(),
        ..Reference::default()
    };
    Event::new(
        &env(),
        &source,
        involved,
        EventType::Normal,
        reason,
        message,
    )
}

fn correlator() -> Correlator {
    Correlator::new(env(), CorrelatorOptions::default())
}

#[tokio::test(start_paused = true)]
async fn events_are_similar_when_only_their_messages_differ() {
    let key = |reason, message| aggregate_key(&event(reason, message));
    assert_eq!(key("Killing", "one"), key("Killing", "two"));
    assert_ne!(key("Killing", "one"), key("Started", "one"));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_counted_and_patched() {
    let mut correlator = correlator();
    let first = correlator.correlate(event("Killing", "one"), Instant::now());
    assert!(!first.is_repeat && !first.is_spam);
    assert_eq!(first.event.count, 1);
    correlator.stored(&first, "web.stored", "17");

    advance(Duration::from_secs(5)).await;
    let second = correlator.correlate(event("Killing", "one"), Instant::now());
    assert!(second.is_repeat);
    assert_eq!((second.event.count, &*second.event.name), (2, "web.stored"));
    assert_eq!(second.event.first, first.event.first);
    let patch = second.event.to_patch();
    let keys: Vec<_> = patch
        .as_object()
        .unwrap()
        .keys()
        .iter()
        .map(|it| it.as_str())
        .collect();
    assert_eq!(keys, ["count", "lastTimestamp", "message"]);
}

#[tokio::test(start_paused = true)]
async fn one_message_is_never_merged_however_often_it_comes() {
    let mut correlator = correlator();
    let mut last = None;
    for _ in 0..11 {
        last = Some(correlator.correlate(event("Killing", "one"), Instant::now()));
        advance(Duration::from_secs(30)).await;
    }
    let last = last.unwrap();
    assert_eq!((last.event.count, &*last.event.message), (11, "one"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_loud_is_held_back_and_still_counted() {
    let mut correlator = correlator();
    let mut held_back = Vec::new();
    for at in 1..=27 {
        let correlated = correlator.correlate(event("Killing", "one"), Instant::now());
        assert_eq!(correlated.event.count, at);
        if correlated.is_spam {
            held_back.push(at);
        }
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(held_back, [26, 27]);
    advance(SPAM_REFILL_INTERVAL).await;
    assert!(
        !correlator
            .correlate(event("Killing", "one"), Instant::now())
            .is_spam
    );
}

#[tokio::test(start_paused = true)]
async fn different_reasons_are_different_events() {
    let mut correlator = correlator();
    for at in 0..20 {
        let correlated = correlator.correlate(event(&format!("Reason{at}"), "one"), Instant::now());
        assert_eq!((correlated.event.count, correlated.is_repeat), (1, false));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tenth_similar_event_and_those_after_are_merged_into_one() {
    let mut correlator = correlator();
    let mut last = None;
    for at in 0..12 {
        let correlated = correlator.correlate(event("Killing", &format!("m{at}")), Instant::now());
        let is_merged = correlated
            .event
            .message
            .starts_with("(combined from similar events): ");
        assert_eq!(is_merged, at >= 9, "event {at}");
        last = Some(correlated);
        advance(Duration::from_secs(1)).await;
    }
    let last = last.unwrap();
    assert_eq!(last.event.message, "(combined from similar events): m11");
    assert_eq!(last.event.count, 3);
}

#[tokio::test(start_paused = true)]
async fn similar_events_that_are_far_apart_are_not_merged() {
    let mut correlator = correlator();
    for at in 0..20 {
        let correlated = correlator.correlate(event("Killing", &format!("m{at}")), Instant::now());
        assert_eq!(correlated.event.message, format!("m{at}"));
        advance(AGGREGATE_WINDOW + Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_an_object_are_counted_apart() {
    let mut correlator = correlator();
    for container in ["a", "b"] {
        let mut event = event("Killing", "one");
        event.involved = event
            .involved
            .field(&format!("spec.containers{{{container}}}"));
        assert_eq!(correlator.correlate(event, Instant::now()).event.count, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_spam_filter_tells_reasons_apart_if_asked_to() {
    let second = |spam_key, reason: &str, message: &str| {
        let options = CorrelatorOptions {
            spam_key,
            spam_burst: 1,
            ..CorrelatorOptions::default()
        };
        let mut correlator = Correlator::new(env(), options);
        correlator.correlate(event("One", "one"), Instant::now());
        correlator
            .correlate(event(reason, message), Instant::now())
            .is_spam
    };
    assert!(second(SpamKey::Object, "Two", "one"));
    assert!(!second(SpamKey::ObjectAndReason, "Two", "one"));
    assert!(second(SpamKey::ObjectAndReason, "One", "two"));
}

fn pod(name: &str, namespace: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace, "uid": "u1" }
    })
}

/// A recorder whose events go to a model server, with faults on the way.
fn recorder() -> (EventBroadcaster, EventRecorder, ModelServer, Faults) {
    let (server, faults) = (ModelServer::new(env()), Faults::none());
    let client = RestClient::new(server.transport().layer(&faults), RestOptions::default());
    let broadcaster = EventBroadcaster::new(env());
    broadcaster.start_sink(client);
    let recorder = broadcaster.recorder("tester");
    (broadcaster, recorder, server, faults)
}

#[tokio::test(start_paused = true)]
async fn two_equal_events_are_one_create_and_one_patch() {
    let (broadcaster, recorder, server, _) = recorder();
    for _ in 0..2 {
        recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    }
    broadcaster.shut_down().await;
    let methods: Vec<_> = server
        .writes()
        .iter()
        .map(|it| it.method.to_string())
        .collect();
    assert_eq!(methods, ["POST", "PATCH"]);
    let events = server.objects("events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].at("/count").as_i64(), Some(2));
    assert_eq!(events[0].str_at("/involvedObject/uid"), "u1");
    assert!(events[0].meta().name().starts_with("web."));
}

fn count(server: &ModelServer) -> Option<i64> {
    let events = server.objects("events");
    assert_eq!(events.len(), 1);
    events[0].at("/count").as_i64()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_repetitions_are_one_event_and_few_writes() {
    let (broadcaster, recorder, server, _) = recorder();
    for _ in 0..100 {
        for _ in 0..100 {
            recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(count(&server), Some(25));
    // What was held back is told when it is allowed, or at the end.
    sleep(SPAM_REFILL_INTERVAL * 2).await;
    assert_eq!(count(&server), Some(10_000));
    assert_eq!(server.writes().len(), 26);
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    broadcaster.shut_down().await;
    assert_eq!(count(&server), Some(10_003));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_created_again() {
    let (broadcaster, recorder, server, _) = recorder();
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    sleep(Duration::from_secs(1)).await;
    let name = server.objects("events")[0].meta().name().to_owned();
    server.delete(&format!("/api/v1/namespaces/shop/events/{name}"));
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    broadcaster.shut_down().await;
    let events = server.objects("events");
    assert_eq!(
        (events.len(), events[0].at("/count").as_i64()),
        (1, Some(2))
    );
}

/// A sink that always fails in one way.
#[derive(Clone)]
struct Failing {
    attempts: Arc<AtomicU32>,
    error: fn() -> SinkError,
    /// The number of attempts that fail before one succeeds.
    until: u32,
}

impl Failing {
    fn new(error: fn() -> SinkError) -> Self {
        Self {
            attempts: Arc::default(),
            error,
            until: u32::MAX,
        }
    }
}

impl EventSink for Failing {
    async fn create(&self, _: &str, event: &Doc) -> Result<Doc, SinkError> {
        let attempt = self.attempts.fetch_add(1, SeqCst) + 1;
        if attempt > self.until {
            Ok(event.clone())
        } else {
            Err((self.error)())
        }
    }

    async fn patch(&self, namespace: &str, _: &str, patch: &Doc) -> Result<Doc, SinkError> {
        self.create(namespace, patch).await
    }
}

async fn attempts(sink: Failing) -> u32 {
    let broadcaster = EventBroadcaster::new(env());
    let attempts = sink.attempts.clone();
    broadcaster.start_sink(sink);
    broadcaster
        .recorder("tester")
        .event(&pod("web", "shop"), EventType::Warning, "Killing", "one");
    sleep(Duration::from_secs(600)).await;
    attempts.load(SeqCst)
}

#[tokio::test(start_paused = true)]
async fn only_a_server_that_is_not_reached_is_tried_again() {
    assert_eq!(
        attempts(Failing::new(|| SinkError::Refused("no".to_owned()))).await,
        1
    );
    let unreachable = || SinkError::Unreachable("no".to_owned());
    assert_eq!(attempts(Failing::new(unreachable)).await, ATTEMPTS_LIMIT);
    assert_eq!(
        attempts(Failing {
            until: 1,
            ..Failing::new(unreachable)
        })
        .await,
        2
    );
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_there_is_one_attempt() {
    let broadcaster = EventBroadcaster::new(env());
    let sink = Failing::new(|| SinkError::Unreachable("no".to_owned()));
    broadcaster.start_sink(sink.clone());
    let recorder = broadcaster.recorder("tester");
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    broadcaster.shut_down().await;
    assert_eq!(sink.attempts.load(SeqCst), 1);
    // Late events are dropped, and nothing panics.
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "two");
    assert_eq!(sink.attempts.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_a_full_queue_drops() {
    let (broadcaster, recorder, _, faults) = recorder();
    faults.set(|_| Fault::Stall);
    let start = Instant::now();
    for at in 0..QUEUE_LIMIT * 2 {
        recorder.event(
            &pod("web", "shop"),
            EventType::Normal,
            "Killing",
            &at.to_string(),
        );
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    let mut registry = prometheus_client::registry::Registry::default();
    broadcaster.metrics().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(
        text.contains("event_recorder_dropped_events_total{component=\"tester\"} 1000"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_namespace_goes_to_default() {
    let (broadcaster, recorder, server, _) = recorder();
    recorder.event(&pod("node-1", ""), EventType::Normal, "Ready", "one");
    broadcaster.shut_down().await;
    assert_eq!(server.objects("events")[0].meta().namespace(), "default");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_name_is_no_dns_name_gets_an_event_with_a_uid_for_a_name() {
    let (broadcaster, recorder, server, _) = recorder();
    recorder.event(
        &pod("system:node", "shop"),
        EventType::Normal,
        "Ready",
        "one",
    );
    broadcaster.shut_down().await;
    let name = server.objects("events")[0].meta().name().to_owned();
    assert_eq!((name.len(), name.matches('-').count()), (36, 4), "{name}");
}

#[tokio::test(start_paused = true)]
async fn a_thing_without_a_kind_has_no_events() {
    let (broadcaster, recorder, server, _) = recorder();
    recorder.event(
        &doc!({ "metadata": { "name": "web" } }),
        EventType::Normal,
        "Ready",
        "one",
    );
    broadcaster.shut_down().await;
    assert!(server.objects("events").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_events_about_an_object_are_found_by_fields() {
    let (broadcaster, recorder, server, _) = recorder();
    for name in ["web", "db"] {
        recorder.event(&pod(name, "shop"), EventType::Normal, "Killing", "one");
    }
    broadcaster.shut_down().await;
    let selector = Reference::to(&pod("web", "shop")).field_selector();
    assert!(
        selector.starts_with(
            "involvedObject.kind=Pod,involvedObject.namespace=shop,involvedObject.name=web"
        ),
        "{selector}"
    );
    let events = DynamicClient::new(server.client()).resource(Gvr::constant("", "v1", "events"));
    let options = ListOptions {
        field_selector: selector,
        ..ListOptions::default()
    };
    let found = events.list(&options).await.unwrap().items;
    let names = found
        .iter()
        .map(|event| event.str_at("/involvedObject/name"));
    assert_eq!(names.collect::<Vec<_>>(), ["web"]);
    assert_eq!(Reference::default().field_selector(), "");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_joins_later_counts_from_one_and_watchers_hear_of_every_event() {
    let (broadcaster, recorder, _, _) = recorder();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    broadcaster.start_watcher(move |event| noted.lock().push(event.count));
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    sleep(Duration::from_secs(1)).await;
    let late = ModelServer::new(env());
    broadcaster.start_sink(late.client());
    recorder.event(&pod("web", "shop"), EventType::Normal, "Killing", "one");
    broadcaster.shut_down().await;
    assert_eq!(late.objects("events")[0].at("/count").as_i64(), Some(1));
    assert_eq!(*seen.lock(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn annotations_travel_with_the_event() {
    let (broadcaster, recorder, server, _) = recorder();
    let object = Reference::to(&pod("web", "shop"));
    recorder.annotated(object, &[("a", "b")], EventType::Normal, "Killing", "one");
    broadcaster.shut_down().await;
    assert_eq!(
        server.objects("events")[0].meta().annotation("a"),
        Some("b")
    );
}
