//! Behaviour where the design differs from upstream's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};
use windlass_cache::{
    BoxFuture, BoxWatch, Handler, InformerBuilder, InformerFactory, InformerSpec, ListRequest,
    ListWatch, Obj, Page, Phase, Reason, SharedInformer, SourceError, SyncError, TransformError,
    WatchRequest,
};
use windlass_core::{Doc, Env, Gvr, doc};

use crate::{
    informer::{builder, every, run, seconds, settle},
    logged::Log,
    recorder::Recorder,
    script::{Script, Step, added, deleted, fail, modified, page, pod},
    world::World,
};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");

/// An informer over written answers, with a handler that remembers.
fn scripted(script: Script) -> (SharedInformer, Recorder) {
    let informer = InformerBuilder::new(Arc::new(script.without_watch_list()), PODS)
        .env(Env::seeded(1))
        .build()
        .unwrap();
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone()).unwrap();
    (informer, recorder)
}

fn nameless() -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "resourceVersion": "7" } })
}

#[tokio::test(start_paused = true)]
async fn what_was_queued_is_told_before_a_list_buries_it_and_the_new_come_last() {
    let (informer, recorder) = scripted(
        Script::default()
            .list(page("1", vec![pod("known", 1)]))
            .watch(Ok(vec![
                added("b", 2),
                added("a", 3),
                fail(Reason::Expired),
            ]))
            .list(page("9", vec![pod("new", 8)])),
    );
    let running = run(&informer);
    sleep(seconds(10)).await;
    // Upstream buries what was queued before what was known; here the store decides, in the order
    // of keys.
    let told = recorder.short();
    assert_eq!(told, ["+known", "b", "a", "xa", "xb", "xknown", "new"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_has_deleted_is_not_buried_again_by_a_list() {
    let (informer, recorder) = scripted(
        Script::default()
            .list(page("1", vec![pod("a", 1)]))
            .watch(Ok(vec![deleted("a", 2), fail(Reason::Expired)]))
            .list(page("3", vec![])),
    );
    let running = run(&informer);
    sleep(seconds(10)).await;
    assert_eq!(recorder.short(), ["+a", "-a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_is_left_out_of_a_list_and_reported() {
    let (informer, recorder) =
        scripted(Script::default().list(page("1", vec![nameless(), pod("a", 1)])));
    let running = run(&informer);
    settle().await;
    assert!(informer.has_synced());
    assert_eq!(recorder.short(), ["+a"]);
    assert_eq!(informer.state().unreadable, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_does_not_hold_up_the_events_around_it() {
    let (informer, recorder) = scripted(Script::default().list(page("1", vec![])).watch(Ok(vec![
        added("a", 2),
        Step::Event(windlass_client::WatchEvent::Added(nameless())),
        added("b", 8),
        Step::Hang,
    ])));
    let running = run(&informer);
    settle().await;
    assert_eq!(recorder.short(), ["a", "b"]);
    assert_eq!(informer.state().unreadable, 1);
    assert_eq!(informer.revision().unwrap().to_string(), "8");
    running.stop().await;
}

/// Upstream splits a batch where an object comes again, because its transaction reads the old
/// states before it writes. Here each change reads what the one before has written.
#[tokio::test(start_paused = true)]
async fn changes_of_one_object_in_one_batch_are_told_one_by_one() {
    let (informer, recorder) = scripted(Script::default().list(page("1", vec![])).watch(Ok(vec![
        added("a", 2),
        modified("a", 3),
        added("b", 4),
        deleted("a", 5),
        added("a", 6),
        Step::Hang,
    ])));
    let running = run(&informer);
    settle().await;
    assert_eq!(recorder.short(), ["a", "~a", "b", "-a", "a"]);
    assert_eq!(recorder.belief().len(), 2);
    running.stop().await;
}

/// A transaction cannot fail for some of its changes: the one part that is foreign code, the
/// function of an index, costs an object its place in that index and nothing else.
#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_indexed_is_stored_and_told_like_the_others() {
    let world = World::new();
    let informer = builder(&world)
        .index("by-value", |object| {
            let value = object.doc().at("/spec/value").as_i64();
            assert_ne!(value, Some(2), "an index function that panics");
            vec![value.unwrap_or_default().to_string().as_str().into()]
        })
        .build()
        .unwrap();
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    for (key, value) in [("default/a", 1), ("default/b", 2), ("default/c", 3)] {
        world.put(key, value);
    }
    settle().await;
    assert_eq!(recorder.short(), ["a", "b", "c"]);
    assert_eq!(informer.lister().len(), 3);
    let indexed = |value: &str| informer.lister().by_index("by-value", value).unwrap().len();
    assert_eq!([indexed("1"), indexed("2"), indexed("3")], [1, 0, 1]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_takes_the_metadata_away_keeps_the_object_and_the_revision() {
    let world = World::new();
    world.put("default/a", 1);
    let informer = builder(&world)
        .transform(|doc| match doc.at("/spec/value").as_i64() {
            Some(2) => doc
                .without("/metadata")
                .map_err(|error| TransformError(error.to_string())),
            _ => Ok(doc),
        })
        .build()
        .unwrap();
    let running = run(&informer);
    settle().await;
    let before = informer.revision();
    world.put("default/a", 2);
    settle().await;
    let value = |key: &str| {
        let object = informer.lister().get(&key.parse().unwrap()).unwrap();
        object.doc().at("/spec/value").as_i64()
    };
    assert_eq!(value("default/a"), Some(1));
    assert_eq!(informer.revision(), before);
    assert_eq!(informer.state().unreadable, 1);
    world.put("default/b", 3);
    settle().await;
    assert_eq!(informer.revision(), Some(world.revision()));
    running.stop().await;
}

/// A handler is contained; what runs inside the informer itself is not, and takes it down loudly.
#[tokio::test(start_paused = true)]
async fn a_transform_that_panics_ends_the_run_and_whoever_waits_hears_of_it() {
    let world = World::new();
    world.put("default/a", 1);
    let informer = builder(&world)
        .transform(|_| panic!("a transform that panics"))
        .build()
        .unwrap();
    let running = informer.clone();
    let run = tokio::spawn(async move { running.run(std::future::pending()).await });
    let error = informer.wait_for_sync().await.unwrap_err();
    assert!(matches!(error, SyncError::Stopped { .. }), "{error}");
    assert!(run.await.unwrap_err().is_panic());
    assert!(informer.is_stopped());
}

/// Takes its time over the first object, so that everything else waits for it meanwhile.
struct SlowStart {
    has_started: AtomicBool,
    recorder: Recorder,
}

impl Handler<Doc> for SlowStart {
    async fn on_add(&self, object: Obj, is_initial: bool) {
        if !self.has_started.swap(true, SeqCst) {
            sleep(seconds(1)).await;
        }
        self.recorder.on_add(object, is_initial).await;
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        self.recorder.on_update(old, new).await;
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_that_start_late_are_reminded_at_their_periods_all_the_same() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let informer = builder(&world).resync(seconds(1)).build().unwrap();
    let recorders = [0, 2, 3].map(|period| {
        let recorder = Recorder::default();
        let handler = SlowStart {
            has_started: AtomicBool::new(false),
            recorder: recorder.clone(),
        };
        informer.add_handler_with(handler, every(period)).unwrap();
        recorder
    });
    let updates = || {
        recorders.each_ref().map(|recorder| {
            let short = recorder.short();
            short.iter().filter(|line| line.starts_with('~')).count()
        })
    };
    let running = run(&informer);
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(updates(), [0, 2, 0]);
    sleep(seconds(1)).await;
    assert_eq!(updates(), [0, 2, 2]);
    running.stop().await;
}

/// A source that takes a second for a complete state, and counts how many are read at once.
#[derive(Clone, Default)]
struct Slow {
    world: Option<World>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
}

impl ListWatch for Slow {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Page, SourceError>> {
        Box::pin(async move {
            if self.fails.load(SeqCst) {
                return Err(SourceError::new(Reason::Unreachable, "away"));
            }
            let now = self.now.fetch_add(1, SeqCst) + 1;
            self.most.fetch_max(now, SeqCst);
            sleep(seconds(1)).await;
            self.now.fetch_sub(1, SeqCst);
            self.world.as_ref().unwrap().list(request).await
        })
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<BoxWatch, SourceError>> {
        self.world.as_ref().unwrap().watch(request)
    }

    fn supports_watch_list(&self) -> bool {
        false
    }
}

fn crowd(source: &Slow, limit: Option<usize>) -> (InformerFactory, Vec<SharedInformer>) {
    let source = Slow {
        world: Some(World::new()),
        ..source.clone()
    };
    let builder = InformerFactory::builder(move |_| Arc::new(source.clone())).env(Env::seeded(1));
    let factory = match limit {
        None => builder.build(),
        Some(limit) => builder.starts_limit(limit).build(),
    };
    let informers = (0..25).map(|number| {
        factory.informer_of(InformerSpec::new(PODS).namespaced(format!("ns-{number}")))
    });
    let informers = informers.collect();
    (factory, informers)
}

#[tokio::test(start_paused = true)]
async fn only_some_informers_read_a_complete_state_at_the_same_time() {
    for (limit, expected) in [(None, 10), (Some(3), 3), (Some(0), 1)] {
        let source = Slow::default();
        let (factory, informers) = crowd(&source, limit);
        factory.start();
        settle().await;
        let in_line = informers.iter();
        let in_line = in_line.filter(|informer| informer.state().phase == Phase::InLine);
        assert_eq!(in_line.count(), 25 - expected);
        factory.wait_for_sync().await.unwrap();
        assert_eq!(source.most.load(SeqCst), expected);
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_waits_after_a_failure_lets_another_go_first() {
    let source = Slow::default();
    source.fails.store(true, SeqCst);
    let (factory, informers) = crowd(&source, Some(1));
    factory.start();
    sleep(Duration::from_millis(700)).await;
    let all_failed = informers
        .iter()
        .all(|informer| informer.state().failures == 1);
    assert!(all_failed, "each has had its turn within one back-off");
    source.fails.store(false, SeqCst);
    factory.wait_for_sync().await.unwrap();
    assert_eq!(source.most.load(SeqCst), 1);
    factory.shutdown().await;
}

fn two_worlds() -> (InformerFactory, World, World) {
    let (pods, nodes) = (World::new(), World::new());
    let worlds = (pods.clone(), nodes.clone());
    let factory = InformerFactory::builder(move |spec| match spec.resource == PODS {
        true => worlds.0.source(),
        false => worlds.1.source(),
    });
    let factory = factory.env(Env::seeded(1)).build();
    let _informers = (factory.dynamic(PODS), factory.dynamic(NODES));
    (factory, pods, nodes)
}

fn away() -> Option<SourceError> {
    Some(SourceError::new(Reason::Unreachable, "away"))
}

#[tokio::test(start_paused = true)]
async fn a_wait_logs_each_cache_when_it_is_complete_and_only_then() {
    let log = Log::start();
    let (factory, _pods, nodes) = two_worlds();
    nodes.refuse(away());
    factory.start();
    let complete = |log: &Log| {
        let lines = log.lines().into_iter();
        let lines = lines.filter(|line| line.starts_with("INFO cache is complete"));
        lines.collect::<Vec<_>>()
    };
    let waiting = factory.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_sync().await });
    sleep(seconds(5)).await;
    assert_eq!(complete(&log), ["INFO cache is complete resource=pods"]);
    nodes.refuse(None);
    wait.await.unwrap().unwrap();
    assert_eq!(
        complete(&log),
        [
            "INFO cache is complete resource=pods",
            "INFO cache is complete resource=nodes"
        ]
    );
    let gave_up = log
        .lines()
        .iter()
        .any(|line| line.contains("gave up waiting"));
    assert!(!gave_up);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_names_what_is_missing() {
    let log = Log::start();
    let (factory, _pods, nodes) = two_worlds();
    nodes.refuse(away());
    factory.start();
    let wait = timeout(seconds(30), factory.wait_for_sync()).await;
    assert!(wait.is_err());
    let gave_up = log.lines().into_iter();
    let gave_up = gave_up.filter(|line| line.contains("gave up waiting"));
    assert_eq!(
        gave_up.collect::<Vec<_>>(),
        ["WARN gave up waiting for caches that are not complete resources=nodes"]
    );
    factory.shutdown().await;
    let error = factory.wait_for_sync().await;
    assert!(
        error.is_ok(),
        "nothing runs any more, so nothing is waited for"
    );
}
