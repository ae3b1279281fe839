//! Shared informers: handlers, resyncs, sync states, life.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinHandle,
    time::sleep,
};
use windlass_cache::{
    AddError, Deleted, Filtered, Handler, HandlerFns, HandlerOptions, InformerBuilder, Metrics,
    Obj, Phase, Reason, SharedInformer, SourceError, SyncError, TransformError, functions, on_any,
};
use windlass_core::{Doc, Env, Gvr, Selector};

use crate::{
    recorder::{Recorder, Told},
    script::{Script, Step, added, deleted, modified, page, pod},
    world::World,
};

const PODS: Gvr = Gvr::constant("", "v1", "pods");

pub(crate) fn builder(world: &World) -> InformerBuilder {
    InformerBuilder::new(world.source(), PODS).env(Env::seeded(1))
}

fn informer(world: &World) -> SharedInformer {
    builder(world).build().unwrap()
}

/// A running informer, which stops when this is dropped or told to.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<()>,
}

pub(crate) fn run(informer: &SharedInformer) -> Running {
    let (stop, stopped) = oneshot::channel();
    let informer = informer.clone();
    let run = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        informer.run(stopped).await;
    });
    Running {
        stop: Some(stop),
        run,
    }
}

impl Running {
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.run.await.unwrap();
    }
}

pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn every(period: u64) -> HandlerOptions {
    HandlerOptions {
        resync: Some(seconds(period)),
        ..HandlerOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_hear_of_what_is_there_and_then_of_every_change() {
    let world = World::new();
    world.put("default/a", 1);
    let (informer, recorder) = (informer(&world), Recorder::default());
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    settle().await;
    world.put("default/b", 1);
    world.put("default/a", 2);
    world.delete("default/b");
    settle().await;
    assert_eq!(recorder.short(), ["+a", "b", "~a", "-b"]);
    assert_eq!(informer.lister().len(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn indices_work_whether_they_are_added_before_or_while_it_runs() {
    let world = World::new();
    world.put("default/a", 1);
    let informer = builder(&world)
        .index("value", functions::label("value"))
        .build()
        .unwrap();
    informer
        .add_index("early", functions::field("/spec/value"))
        .unwrap();
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    informer
        .add_index("late", functions::field("/spec/value"))
        .unwrap();
    world.put("default/b", 4);
    settle().await;
    let lister = informer.lister();
    let found = |index: &str, value: &str| lister.by_index(index, value).unwrap().len();
    assert_eq!(
        (
            found("value", "v1"),
            found("early", "4"),
            found("late", "1")
        ),
        (2, 1, 1)
    );
    assert!(informer.add_index("late", functions::owner_uid).is_err());
    running.stop().await;
    let error = informer
        .add_index("too-late", functions::owner_uid)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "indexer was not added to shared informer because it has stopped already"
    );
}

#[tokio::test(start_paused = true)]
async fn each_handler_is_reminded_at_its_own_period() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let informer = builder(&world).resync(seconds(1)).build().unwrap();
    let handlers = [0, 2, 3].map(|period| {
        let recorder = Recorder::default();
        informer
            .add_handler_with(recorder.clone(), every(period))
            .unwrap();
        recorder
    });
    let running = run(&informer);
    settle().await;
    handlers.iter().for_each(Recorder::forget);
    let count = |expected: [usize; 3]| {
        assert_eq!(
            handlers.each_ref().map(|recorder| recorder.told().len()),
            expected
        );
        handlers.iter().for_each(Recorder::forget);
    };
    sleep(seconds(1)).await;
    count([0, 0, 0]);
    sleep(seconds(1)).await;
    count([0, 2, 0]);
    sleep(seconds(1)).await;
    count([0, 0, 2]);
    sleep(seconds(3)).await;
    count([0, 4, 2]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reminder_repeats_the_object_as_it_is() {
    let world = World::new();
    world.put("default/a", 1);
    let informer = builder(&world).resync(seconds(10)).build().unwrap();
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    sleep(seconds(11)).await;
    let told = recorder.told();
    assert!(matches!(&told[1], Told::Update(old, new) if old.ptr_eq(new)));
    assert_eq!(recorder.short(), ["+a", "~a"]);
    // Nothing was asked of the server for it.
    assert_eq!((world.lists(), world.watches()), (0, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_without_a_period_reminds_nobody() {
    let world = World::new();
    world.put("default/a", 1);
    let (informer, recorder) = (informer(&world), Recorder::default());
    informer
        .add_handler_with(recorder.clone(), every(5))
        .unwrap();
    let running = run(&informer);
    sleep(seconds(60)).await;
    assert_eq!(recorder.short(), ["+a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_list_tells_of_differences_only_and_of_the_gone_first() {
    let world = World::new();
    for name in ["1", "2", "3"] {
        world.put(&format!("default/{name}"), 1);
    }
    let (informer, recorder) = (informer(&world), Recorder::default());
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    recorder.forget();
    world.refuse(Some(SourceError::new(Reason::Unreachable, "away")));
    world.cut();
    settle().await;
    world.put("default/1", 2);
    world.delete("default/3");
    world.put("default/4", 1);
    world.delete("default/2");
    world.put("default/2", 1);
    world.compact();
    world.refuse(None);
    sleep(seconds(60)).await;
    // The second "2" is another object of the same name, and so the first is gone.
    assert_eq!(recorder.short(), ["x3", "~1", "x2", "2", "4"]);
    assert_eq!(informer.revision(), Some(world.revision()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_server_repeats_is_told_once_and_what_nobody_knew_is_not_deleted() {
    let script = Script::default()
        .list(page("10", vec![pod("a", 5)]))
        .watch(Ok(vec![
            added("a", 5),
            modified("a", 11),
            modified("a", 11),
            deleted("never-seen", 12),
            deleted("a", 13),
            deleted("a", 13),
            Step::Hang,
        ]));
    let informer: SharedInformer = InformerBuilder::new(Arc::new(script), PODS)
        .env(Env::seeded(1))
        .reflector(|options| options.use_watch_list = false)
        .build()
        .unwrap();
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    assert_eq!(recorder.short(), ["+a", "~a", "-a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_complete_before_the_first_handler_hears_of_a_list() {
    struct Counter(SharedInformer, Mutex<Vec<usize>>);
    impl Handler<Doc> for Counter {
        async fn on_add(&self, _: Obj, _: bool) {
            self.1.lock().push(self.0.lister().len());
        }
    }
    let world = World::new();
    for n in 0..5 {
        world.put(&format!("default/{n}"), 1);
    }
    let informer = informer(&world);
    let counter = Arc::new(Counter(informer.clone(), Mutex::default()));
    informer.add_handler(counter.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    assert_eq!(*counter.1.lock(), [5; 5]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_hears_of_each_object_once_and_of_later_changes() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let informer = informer(&world);
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    world.put("default/b", 2);
    settle().await;
    let late = Recorder::default();
    informer.add_handler(late.clone()).unwrap();
    world.put("default/c", 1);
    world.delete("default/a");
    settle().await;
    assert_eq!(late.short(), ["+a", "+b", "c", "-a"]);
    late.belief();
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_transform_decides_what_is_cached_and_told() {
    let world = World::new();
    world.put("default/a", 1);
    let (informer, recorder) = (
        builder(&world)
            .transform(|doc| {
                doc.without("/spec")
                    .map_err(|error| TransformError(error.to_string()))
            })
            .build()
            .unwrap(),
        Recorder::default(),
    );
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    world.put("default/b", 1);
    settle().await;
    assert_eq!(informer.lister().len(), 2);
    for object in informer.lister().list(&Selector::everything()) {
        assert!(object.doc().get("spec").is_none());
    }
    for told in recorder.told() {
        assert!(matches!(told, Told::Add(object, _) if object.doc().get("spec").is_none()));
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_transform_runs_once_for_each_object_and_event() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let count = move |doc| {
        *counted.lock() += 1;
        Ok(doc)
    };
    let informer = builder(&world).transform(count).build().unwrap();
    let running = run(&informer);
    settle().await;
    assert_eq!(*calls.lock(), 2);
    world.put("default/c", 1);
    settle().await;
    assert_eq!(*calls.lock(), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_the_transform_refuses_is_kept_as_it_was_and_reported() {
    let world = World::new();
    world.put("default/a", 1);
    let refuse_two = |doc: Doc| {
        if doc.at("/spec/value").as_i64() == Some(2) {
            Err(TransformError("two".into()))
        } else {
            Ok(doc)
        }
    };
    let informer = builder(&world).transform(refuse_two).build().unwrap();
    let running = run(&informer);
    settle().await;
    world.put("default/a", 2);
    world.put("default/b", 1);
    settle().await;
    let value = |key: &str| {
        informer
            .lister()
            .get(&key.parse().unwrap())
            .and_then(|it| it.doc().at("/spec/value").as_i64())
    };
    assert_eq!((value("default/a"), value("default/b")), (Some(1), Some(1)));
    assert_eq!(informer.state().unreadable, 1);
    // Also a list does not lose it, and a deletion is a deletion.
    world.compact();
    sleep(seconds(60)).await;
    assert_eq!(value("default/a"), Some(1));
    world.delete("default/a");
    settle().await;
    assert_eq!(value("default/a"), None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn handlers_are_removed_one_by_one_and_only_from_their_informer() {
    let world = World::new();
    let (informer, other) = (informer(&world), informer(&world));
    let one = informer.add_handler(Recorder::default()).unwrap();
    let two = informer.add_handler(Recorder::default()).unwrap();
    assert_eq!(informer.handlers(), 2);
    assert!(!other.remove_handler(&one));
    assert!(informer.remove_handler(&one));
    assert_eq!(informer.handlers(), 1);
    assert!(informer.remove_handler(&two));
    assert!(!informer.remove_handler(&two));
    assert_eq!(informer.handlers(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_handler_may_be_added_twice() {
    let world = World::new();
    let (informer, recorder) = (informer(&world), Recorder::default());
    let one = informer.add_handler(recorder.clone()).unwrap();
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    world.put("default/a", 1);
    settle().await;
    assert_eq!(recorder.short(), ["a", "a"]);
    informer.remove_handler(&one);
    world.delete("default/a");
    settle().await;
    assert_eq!(recorder.short(), ["a", "a", "-a"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_is_new_running_and_stopped() {
    let world = World::new();
    let informer = informer(&world);
    let registration = informer.add_handler(Recorder::default()).unwrap();
    assert!(!informer.is_stopped() && !informer.has_synced());
    assert_eq!(informer.state().phase, Phase::Idle);
    let running = run(&informer);
    settle().await;
    assert!(!informer.is_stopped() && informer.has_synced() && registration.has_synced());
    assert_eq!(informer.state().phase, Phase::Watching);
    running.stop().await;
    assert!(informer.is_stopped());
    assert_eq!(informer.state().phase, Phase::Stopped);
    let error = informer.add_handler(Recorder::default()).unwrap_err();
    assert!(matches!(error, AddError::Stopped { .. }));
    let text = "was not added to shared informer because it has stopped already";
    assert!(error.to_string().ends_with(text), "{error}");
    assert!(informer.remove_handler(&registration));
    // It runs once.
    informer.run(std::future::pending()).await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_hears_no_more_even_of_what_waits() {
    let world = World::new();
    world.put("default/a", 1);
    let (informer, gate) = (informer(&world), Arc::new(Semaphore::new(0)));
    let blocked = Blocked {
        gate: gate.clone(),
        recorder: Recorder::default(),
    };
    let recorder = blocked.recorder.clone();
    let registration = informer.add_handler(blocked).unwrap();
    let running = run(&informer);
    settle().await;
    world.put("default/b", 1);
    settle().await;
    assert_eq!(
        registration.pending(),
        2,
        "the rest of the first list and one note"
    );
    informer.remove_handler(&registration);
    gate.add_permits(10);
    settle().await;
    assert_eq!(recorder.short(), ["+a"], "the call in progress ends");
    running.stop().await;
}

/// Waits for a permit before each note is taken for handled.
struct Blocked {
    gate: Arc<Semaphore>,
    recorder: Recorder,
}

impl Blocked {
    async fn wait(&self) {
        self.gate.acquire().await.unwrap().forget();
    }
}

impl Handler<Doc> for Blocked {
    async fn on_add(&self, object: Obj, is_initial: bool) {
        self.wait().await;
        self.recorder.on_add(object, is_initial).await;
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        self.wait().await;
        self.recorder.on_update(old, new).await;
    }

    async fn on_delete(&self, deleted: Deleted) {
        self.wait().await;
        self.recorder.on_delete(deleted).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_synced_when_it_has_handled_what_was_there() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let (informer, gate) = (informer(&world), Arc::new(Semaphore::new(0)));
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    let blocked = Blocked {
        gate: gate.clone(),
        recorder: Recorder::default(),
    };
    let registration = informer.add_handler(blocked).unwrap();
    settle().await;
    assert!(informer.has_synced() && !registration.has_synced());
    gate.add_permits(1);
    settle().await;
    assert!(!registration.has_synced());
    gate.add_permits(1);
    registration.wait_for_sync().await;
    assert!(registration.has_synced());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_holds_up_nobody_and_its_buffer_stays_bounded() {
    let world = World::new();
    for n in 0..10 {
        world.put(&format!("default/{n}"), 0);
    }
    let (informer, gate) = (informer(&world), Arc::new(Semaphore::new(0)));
    let blocked = Blocked {
        gate: gate.clone(),
        recorder: Recorder::default(),
    };
    let (slow, quick) = (blocked.recorder.clone(), Recorder::default());
    let options = HandlerOptions {
        buffer_limit: Some(20),
        ..HandlerOptions::default()
    };
    let registration = informer.add_handler_with(blocked, options).unwrap();
    informer.add_handler(quick.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    for round in 1..=100 {
        for n in 0..10 {
            world.put(&format!("default/{n}"), round);
        }
        world.put(&format!("default/short-lived-{round}"), round);
        settle().await;
        world.delete(&format!("default/short-lived-{round}"));
        settle().await;
    }
    assert_eq!(quick.told().len(), 10 + 100 * 12);
    // Ten objects that are there, and as many as the buffer holds that came and went.
    let pending = registration.pending();
    assert!(pending <= 20 + 10 + 20, "{pending} wait");
    assert!(registration.coalesced() > 1000);
    gate.add_permits(10_000);
    settle().await;
    assert_eq!(registration.pending(), 0);
    // It has skipped states, but knows the last of each object.
    assert_eq!(slow.belief(), quick.belief());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_hears_of_what_came_and_went_and_a_late_one_does_not() {
    let world = World::new();
    world.put("default/there", 1);
    let (informer, gate) = (informer(&world), Arc::new(Semaphore::new(0)));
    let blocked = Blocked {
        gate: gate.clone(),
        recorder: Recorder::default(),
    };
    let slow = blocked.recorder.clone();
    let options = HandlerOptions {
        buffer_limit: Some(4),
        ..HandlerOptions::default()
    };
    let registration = informer.add_handler_with(blocked, options).unwrap();
    let running = run(&informer);
    settle().await;
    for round in 0..10 {
        world.put("default/there", round);
    }
    for name in ["a", "b", "c"] {
        world.put(&format!("default/{name}"), 1);
        settle().await;
        world.delete(&format!("default/{name}"));
    }
    settle().await;
    assert!(registration.coalesced() > 0, "the buffer has overflowed");
    let late = Recorder::default();
    informer.add_handler(late.clone()).unwrap();
    gate.add_permits(100);
    settle().await;
    let told = slow.told();
    for name in ["a", "b", "c"] {
        let of_it = told.iter().filter(|told| match told {
            Told::Add(object, is_initial) => object.name() == name && !is_initial,
            Told::Delete(deleted) => deleted.object().name() == name,
            Told::Update(..) => false,
        });
        assert_eq!(of_it.count(), 2, "{name} is added and deleted");
    }
    assert_eq!(late.short(), ["+there"]);
    assert_eq!(slow.belief(), late.belief());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_counted_and_goes_on() {
    let world = World::new();
    world.put("default/a", 1);
    world.put("default/b", 1);
    let recorder = Recorder::default();
    let seen = recorder.clone();
    let informer = informer(&world);
    let registration = informer
        .add_handler(Filtered::new(
            |object: &Obj| {
                assert!(object.name() != "a", "as the test wants it");
                true
            },
            recorder,
        ))
        .unwrap();
    let running = run(&informer);
    registration.wait_for_sync().await;
    world.put("default/c", 1);
    settle().await;
    assert_eq!(seen.short(), ["+b", "c"]);
    assert_eq!(registration.panics(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_leaves_no_task_whenever_it_comes() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for wait in [0, 1, 1000] {
        let world = World::new();
        world.put("default/a", 1);
        let informer = informer(&world);
        informer.add_handler(Recorder::default()).unwrap();
        let before = tasks();
        let running = run(&informer);
        sleep(Duration::from_millis(wait)).await;
        informer.add_handler(Recorder::default()).ok();
        running.stop().await;
        settle().await;
        assert_eq!(tasks(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_stops_the_informer() {
    let world = World::new();
    let (informer, recorder) = (informer(&world), Recorder::default());
    informer.add_handler(recorder.clone()).unwrap();
    let running = run(&informer);
    settle().await;
    running.run.abort();
    settle().await;
    assert!(informer.is_stopped());
    world.put("default/a", 1);
    settle().await;
    assert_eq!(recorder.short(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_forbidden_resource_ends_with_the_verb_and_the_reason() {
    let world = World::new();
    let text = "pods is forbidden: User \"u\" cannot watch resource \"pods\"";
    world.refuse(Some(SourceError::new(Reason::Forbidden, text)));
    let informer = informer(&world);
    let running = run(&informer);
    let error = informer.wait_for_sync().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cache of pods cannot sync: failed to watch pods: {text}")
    );
    assert_eq!(error.resource(), "pods");
    // The informer goes on trying, and syncs when the permission is there.
    world.refuse(None);
    sleep(seconds(60)).await;
    informer.wait_for_sync().await.unwrap();
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_server_that_is_away_goes_on_until_it_is_there_or_the_informer_stops() {
    let world = World::new();
    world.refuse(Some(SourceError::new(
        Reason::Unreachable,
        "connection refused",
    )));
    let informer = informer(&world);
    let running = run(&informer);
    assert!(
        tokio::time::timeout(seconds(60), informer.wait_for_sync())
            .await
            .is_err()
    );
    let waiting = tokio::spawn({
        let informer = informer.clone();
        async move { informer.wait_for_sync().await }
    });
    settle().await;
    running.stop().await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(&error, SyncError::Stopped { .. }));
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_waited_for_until_it_is_in_the_cache() {
    let world = World::new();
    let informer = informer(&world);
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    world.refuse(Some(SourceError::new(Reason::Unreachable, "away")));
    world.cut();
    settle().await;
    world.put("default/a", 1);
    let revision = world.revision();
    assert!(
        tokio::time::timeout(seconds(5), informer.wait_for_revision(&revision))
            .await
            .is_err()
    );
    world.refuse(None);
    informer.wait_for_revision(&revision).await.unwrap();
    assert_eq!(informer.lister().len(), 1);
    assert!(informer.revision() >= Some(revision));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_filter_turns_updates_into_what_the_handler_sees() {
    let world = World::new();
    let (informer, recorder) = (informer(&world), Recorder::default());
    let is_large = |object: &Obj| object.doc().at("/spec/value").as_i64() >= Some(10);
    informer
        .add_handler(Filtered::new(is_large, recorder.clone()))
        .unwrap();
    let running = run(&informer);
    settle().await;
    for (value, told) in [
        (1, vec![]),
        (2, vec![]),
        (10, vec!["a"]),
        (11, vec!["~a"]),
        (3, vec!["-a"]),
    ] {
        recorder.forget();
        world.put("default/a", value);
        settle().await;
        assert_eq!(recorder.short(), told, "at {value}");
    }
    recorder.forget();
    world.delete("default/a");
    settle().await;
    assert_eq!(recorder.short(), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_function_hears_of_everything() {
    let world = World::new();
    let (informer, keys) = (informer(&world), Arc::new(Mutex::new(Vec::new())));
    let sink = keys.clone();
    informer
        .add_handler(on_any(move |object: Obj| {
            sink.lock().push(object.key().to_string())
        }))
        .unwrap();
    informer.add_handler(HandlerFns::new()).unwrap();
    let running = run(&informer);
    settle().await;
    world.put("default/a", 1);
    world.put("default/a", 2);
    world.delete("default/a");
    settle().await;
    assert_eq!(*keys.lock(), ["default/a"; 3]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_to_whoever_asked() {
    let world = World::new();
    world.refuse(Some(SourceError::new(Reason::Internal, "boom")));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let informer = builder(&world)
        .on_failure(move |it| sink.lock().push(it.to_string()))
        .build()
        .unwrap();
    let running = run(&informer);
    settle().await;
    assert_eq!(*heard.lock(), ["failed to list pods: boom"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn metrics_carry_the_names_of_upstream_and_belong_to_one_informer_each() {
    let (world, metrics) = (World::new(), Metrics::new());
    world.put("default/a", 1);
    let informer = builder(&world).metrics(&metrics, "one").build().unwrap();
    let hidden = builder(&world).metrics(&metrics, "one").build().unwrap();
    let (running, second) = (run(&informer), run(&hidden));
    settle().await;
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let print = |registry: &prometheus_client::registry::Registry| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    };
    let text = print(&registry);
    let labels = "{name=\"one\",group=\"\",version=\"v1\",resource=\"pods\"}";
    for line in [
        format!("informer_queued_items{labels} 0"),
        format!("informer_store_resource_version{labels} 2"),
        format!("informer_objects{labels} 1"),
        format!("informer_processing_latency_seconds_count{labels} 1"),
        format!("reflector_lists_total{labels} 1"),
        format!("reflector_last_resource_version{labels} 2"),
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is missing in\n{text}"
        );
    }
    running.stop().await;
    second.stop().await;
    drop(informer);
    assert!(
        !print(&registry).contains("informer_objects{"),
        "gauges go with their informer"
    );
    let again = builder(&world).metrics(&metrics, "one").build().unwrap();
    assert!(print(&registry).contains("informer_objects{"));
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn memory_is_reported() {
    let world = World::new();
    for n in 0..100 {
        world.put(&format!("default/pod-with-a-long-name-{n}"), n);
    }
    let informer = builder(&world).memory_budget(1).build().unwrap();
    let running = run(&informer);
    informer.wait_for_sync().await.unwrap();
    let report = informer.memory();
    assert_eq!(report.objects, 100);
    assert!(report.document_bytes > 100 * 100, "{report:?}");
    assert!(report.store_bytes < 100 * 100, "{report:?}");
    assert_eq!(report.bytes(), report.document_bytes + report.store_bytes);
    assert!(report.interner_share() > 0.0);
    running.stop().await;
}
