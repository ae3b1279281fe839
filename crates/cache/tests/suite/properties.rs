//! Random histories against naive models.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proptest::{prelude::*, test_runner::RngSeed};
use tokio::{sync::oneshot, time::sleep};
use windlass_cache::{
    ByKey, Deleted, Delta, DeltaFifo, DeltaQueue, Indexer, InformerBuilder, Listing, Obj,
    Registration, SharedInformer, functions,
};
use windlass_core::{Doc, Env, Gvr, Key, doc};

use crate::{
    recorder::{Recorder, Told},
    world::World,
};

/// The same cases in every run.
fn config(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig {
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

/// One step of a server and an informer of it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u8, u64),
    Delete(u8),
    Cut,
    Compact,
    Wait(u64),
    AddHandler,
    RemoveHandler(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0..8_u8, 0..5_u64).prop_map(|(name, value)| Step::Put(name, value)),
        5 => (0..8_u8).prop_map(Step::Delete),
        1 => Just(Step::Cut),
        1 => Just(Step::Compact),
        6 => (0..5000_u64).prop_map(Step::Wait),
        2 => (0..3_000_000_u64).prop_map(Step::Wait),
        1 => Just(Step::AddHandler),
        1 => (0..4_usize).prop_map(Step::RemoveHandler),
    ];
    prop::collection::vec(step, 0..120)
}

/// A handler with what was there when it came.
struct Listening {
    recorder: Recorder,
    registration: Registration,
    present: Option<Vec<Obj>>,
}

struct Run {
    world: World,
    informer: SharedInformer,
    listening: Vec<Listening>,
    last_revision: u64,
}

impl Run {
    fn add_handler(&mut self) {
        let recorder = Recorder::default();
        // One thread: nothing is applied between these two.
        let present = self
            .informer
            .has_synced()
            .then(|| self.informer.lister().snapshot().iter().collect());
        let registration = self.informer.add_handler(recorder.clone()).unwrap();
        self.listening.push(Listening {
            recorder,
            registration,
            present,
        });
    }

    /// The cache is the state of the server at the revision it names, which never goes back.
    fn check_snapshot(&mut self) {
        let snapshot = self.informer.lister().snapshot();
        let Some(revision) = snapshot.revision() else {
            assert!(snapshot.is_empty());
            return;
        };
        let cached: Vec<_> = snapshot.iter().map(|object| object.doc().clone()).collect();
        assert_eq!(cached, self.world.at(revision), "at revision {revision}");
        let number = revision.as_u64().unwrap();
        assert!(
            number >= self.last_revision,
            "{number} after {}",
            self.last_revision
        );
        self.last_revision = number;
        let informed = self.informer.revision();
        assert!(
            informed.as_ref() <= Some(revision),
            "a revision is told after it is reached"
        );
        for value in ["v0", "v1", "v2"] {
            let found: Vec<_> = snapshot.by_index("value", value).unwrap();
            let expected: Vec<_> = snapshot
                .iter()
                .filter(|it| it.labels().value("value") == Some(value))
                .collect();
            assert_eq!(found, expected);
        }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Put(name, value) => {
                self.world.put(&format!("default/{name}"), value);
            }
            Step::Delete(name) => {
                self.world.delete(&format!("default/{name}"));
            }
            Step::Cut => self.world.cut(),
            Step::Compact => self.world.compact(),
            Step::Wait(micros) => sleep(Duration::from_micros(micros)).await,
            Step::AddHandler => self.add_handler(),
            Step::RemoveHandler(at) if at < self.listening.len() => {
                let gone = self.listening.remove(at);
                assert!(self.informer.remove_handler(&gone.registration));
                gone.recorder.belief();
            }
            Step::RemoveHandler(_) => {}
        }
        self.check_snapshot();
    }

    fn check_end(&mut self) {
        self.check_snapshot();
        assert_eq!(
            self.informer.revision(),
            Some(self.world.revision()),
            "up to date"
        );
        let cached: BTreeMap<Key, Obj> = self
            .informer
            .lister()
            .snapshot()
            .iter()
            .map(|it| (it.key(), it))
            .collect();
        for listening in &self.listening {
            assert!(listening.registration.has_synced());
            assert_eq!(listening.recorder.belief(), cached);
            let told = listening.recorder.told();
            let initial: Vec<Obj> = told
                .iter()
                .map_while(|told| match told {
                    Told::Add(object, true) => Some(object.clone()),
                    _ => None,
                })
                .collect();
            let later = &told[initial.len()..];
            assert!(!later.iter().any(|told| matches!(told, Told::Add(_, true))));
            if let Some(present) = &listening.present {
                assert_eq!(&initial, present, "each present object once");
            }
        }
    }
}

async fn run(steps: Vec<Step>, buffer_limit: usize, use_watch_list: bool) {
    let world = World::new();
    let informer: SharedInformer =
        InformerBuilder::new(world.source(), Gvr::constant("", "v1", "pods"))
            .env(Env::seeded(7))
            .index("value", functions::label("value"))
            .buffer_limit(buffer_limit)
            .resync(Duration::from_secs(1))
            .reflector(|options| options.use_watch_list = use_watch_list)
            .build()
            .unwrap();
    let mut run = Run {
        world,
        informer,
        listening: Vec::new(),
        last_revision: 0,
    };
    run.add_handler();
    let (stop, stopped) = oneshot::channel::<()>();
    let runner = run.informer.clone();
    let task = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        runner.run(stopped).await;
    });
    for step in steps {
        run.step(step).await;
    }
    // A bookmark would do for a revision that changed nothing; a last change does it for sure.
    run.world.put("default/last", 1);
    sleep(Duration::from_secs(600)).await;
    run.check_end();
    drop(stop);
    task.await.unwrap();
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future);
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn an_informer_follows_any_history(
        steps in steps(),
        buffer_limit in prop_oneof![Just(1_usize), Just(4), Just(1024)],
        use_watch_list in any::<bool>(),
    ) {
        block_on(run(steps, buffer_limit, use_watch_list));
    }
}

/// One step of a delta queue.
#[derive(Clone, Debug)]
enum Change {
    Add(u8, u64),
    Delete(u8, u64),
    Replace(Vec<(u8, u64)>),
    Resync,
    Pop,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let item = || (0..5_u8, 0..4_u64);
    let change = prop_oneof![
        4 => item().prop_map(|(name, value)| Change::Add(name, value)),
        3 => item().prop_map(|(name, value)| Change::Delete(name, value)),
        1 => prop::collection::vec(item(), 0..6).prop_map(Change::Replace),
        1 => Just(Change::Resync),
        5 => Just(Change::Pop),
    ];
    prop::collection::vec(change, 0..80)
}

fn object(name: u8, value: u64) -> Obj {
    let name = format!("name-{name}");
    Obj::new(doc!({ "metadata": { "name": name }, "value": value })).unwrap()
}

/// Applies what was popped to a store, as a consumer does.
fn consume(store: &Indexer, deltas: &[Delta]) {
    for delta in deltas {
        match delta {
            Delta::Deleted(deleted) => drop(store.remove(&deleted.key())),
            delta => drop(store.put(delta.object())),
        }
    }
}

/// Applies an announced change to the model of the server.
fn announce(server: &mut BTreeMap<Key, Obj>, change: &Change) {
    match change {
        Change::Add(name, value) => {
            let object = object(*name, *value);
            server.insert(object.key(), object);
        }
        Change::Delete(name, _) => drop(server.remove(&object(*name, 0).key())),
        Change::Replace(list) => {
            let objects = list.iter().map(|(name, value)| object(*name, *value));
            *server = objects.map(|object| (object.key(), object)).collect();
        }
        Change::Resync | Change::Pop => {}
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn a_queue_by_key_brings_its_consumer_to_the_state_of_the_server(changes in changes()) {
        let (store, mut queue) = (Indexer::new(), ByKey::default());
        let (mut server, mut order) = (BTreeMap::new(), Vec::<Key>::new());
        let pop = |queue: &mut ByKey, order: &mut Vec<Key>| {
            let before = queue.has_synced();
            let Some((deltas, is_initial)) = queue.pop() else { return false };
            assert_eq!(is_initial, !before);
            assert!(!deltas.is_empty());
            let key = deltas[0].key();
            assert!(deltas.iter().all(|delta| delta.key() == key));
            let doubled = deltas.windows(2).any(|pair| pair.iter().all(Delta::is_deleted));
            assert!(!doubled, "two deletions in a row are one");
            assert_eq!(order.remove(0), key, "keys come in the order in which they were queued");
            consume(&store, &deltas);
            queue.finished();
            true
        };
        for change in changes {
            let known = store.snapshot();
            announce(&mut server, &change);
            match change {
                Change::Add(name, value) => queue.push(Delta::Added(object(name, value))),
                Change::Delete(name, value) => {
                    queue.delete(Deleted::Observed(object(name, value)), &known);
                }
                Change::Replace(list) => {
                    let objects = list.iter().map(|(name, value)| object(*name, *value)).collect();
                    queue.replace(Listing { objects, ..Listing::default() }, &known);
                }
                Change::Resync => queue.resync(&known),
                Change::Pop => {
                    pop(&mut queue, &mut order);
                }
            }
            // Whatever was queued anew stands at the end, in some order that the queue chose.
            let names = (0..5).map(|name| object(name, 0).key());
            let queued: Vec<Key> = names.filter(|key| !queue.deltas(key).is_empty()).collect();
            prop_assert_eq!(queued.len(), queue.len());
            order.retain(|key| queued.contains(key));
            let fresh = queue.order().skip(order.len()).cloned().collect::<Vec<_>>();
            order.extend(fresh);
            prop_assert!(queue.order().eq(order.iter()));
        }
        while pop(&mut queue, &mut order) {}
        let stored: BTreeMap<Key, Obj> =
            store.snapshot().iter().map(|object| (object.key(), object)).collect();
        prop_assert_eq!(stored, server);
    }

    #[test]
    fn an_index_equals_a_search_through_all_objects(
        operations in prop::collection::vec((0..40_u8, prop::collection::vec(0..5_u8, 0..4), any::<bool>()), 0..200),
        index_at in 0..200_usize,
    ) {
        let store = Indexer::new();
        for (at, (name, values, is_put)) in operations.into_iter().enumerate() {
            if at == index_at {
                store.add_index("value", functions::field("/values")).unwrap();
            }
            let values: Vec<Doc> = values.iter().map(|value| Doc::from(format!("v{value}"))).collect();
            let object = Obj::new(doc!({ "metadata": { "name": format!("n{name}") }, "values": values })).unwrap();
            if is_put {
                store.put(&object);
            } else {
                store.remove(&object.key());
            }
        }
        let _ = store.add_index("value", functions::field("/values"));
        let snapshot = store.snapshot();
        for value in (0..5).map(|value| format!("v{value}")) {
            let has = |object: &Obj| object.doc().at("/values").items().iter().any(|it| it.as_str() == Some(&value));
            let expected: Vec<Obj> = snapshot.iter().filter(has).collect();
            let is_used = !expected.is_empty();
            prop_assert_eq!(snapshot.by_index("value", &value).unwrap(), expected);
            prop_assert_eq!(snapshot.index_values("value").iter().any(|it| **it == *value), is_used);
        }
    }
}

#[test]
fn both_queues_bring_a_consumer_to_the_same_state() {
    block_on(async {
        let store = || {
            let store = Arc::new(Indexer::new());
            (1..=3).for_each(|name| drop(store.put(&object(name, 1))));
            store
        };
        let list = || vec![object(1, 2), object(2, 2), object(4, 2)];
        let keyed = store();
        let fifo: DeltaFifo<ByKey> = DeltaFifo::new(keyed.clone(), None);
        fifo.replace(list(), None);
        while !fifo.is_empty() {
            let popped = fifo.pop().await.unwrap();
            consume(&keyed, &popped.0);
        }
        let ordered = store();
        ordered.write(|transaction| transaction.replace(list()));
        assert!(keyed.snapshot().iter().eq(ordered.snapshot().iter()));
    });
}
