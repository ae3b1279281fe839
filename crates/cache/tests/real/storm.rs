//! Ten thousand changes, with everything that can happen to a watch in between.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use windlass_cache::{
    BackoffPolicy, Deleted, Handler, InformerBuilder, Obj, ResourceSource, SharedInformer,
    functions,
};
use windlass_client::{DeleteOptions, DynamicApi, ListOptions, WriteOptions};
use windlass_core::{Doc, Env, Key};
use windlass_envtest::{ControlPlane, Options, real_assets};

use crate::{
    faults::Faulty,
    setup::{CONFIG_MAPS, client, config_map, config_maps},
};

const OPERATIONS: u64 = 10_000;
const WORKERS: u64 = 8;
const NAMES: u64 = 200;
const FAULTS: u64 = 20;

/// The time limit of each step of the test.
const PATIENCE: Duration = Duration::from_secs(300);

/// The objects that exist according to a handler, checked with every call.
#[derive(Clone, Default)]
struct Belief(watch::Sender<BTreeMap<Key, Obj>>);

impl Belief {
    fn change<R>(&self, change: impl FnOnce(&mut BTreeMap<Key, Obj>) -> R) -> R {
        let mut result = None;
        self.0
            .send_modify(|believed| result = Some(change(believed)));
        result.unwrap()
    }

    async fn until(&self, expected: &BTreeMap<Key, Obj>) {
        let mut believed = self.0.subscribe();
        timeout(PATIENCE, believed.wait_for(|believed| believed == expected))
            .await
            .unwrap()
            .unwrap();
    }
}

impl Handler<Doc> for Belief {
    async fn on_add(&self, object: Obj, _: bool) {
        let before = self.change(|all| all.insert(object.key(), object.clone()));
        assert!(before.is_none(), "{object:?} was added twice");
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        let before = self.change(|all| all.insert(new.key(), new));
        assert_eq!(before, Some(old));
    }

    async fn on_delete(&self, deleted: Deleted) {
        let before = self.change(|all| all.remove(&deleted.key()));
        assert!(before.is_some(), "{deleted:?} without an addition");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_equals_the_list_after_cuts_a_restart_and_forced_expiry() {
    if real_assets().is_none() {
        return;
    }
    let mut server = ControlPlane::start(&Options::default()).unwrap();
    let rest = client(server.kubeconfig()).await;
    let maps = config_maps(&rest, "storm").await;
    let faulty = Faulty::new(ResourceSource::new(
        rest,
        CONFIG_MAPS,
        Some("storm".to_owned()),
    ));
    let informer = informer(&faulty);
    let early = Belief::default();
    let registration = informer.add_handler(early.clone()).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let informer = informer.clone();
        async move {
            informer
                .run(async {
                    let _ = stopped.await;
                })
                .await;
        }
    });
    timeout(PATIENCE, informer.wait_for_sync())
        .await
        .unwrap()
        .unwrap();

    let (mut workers, progress) = (JoinSet::new(), watch::Sender::new(0));
    for worker in 0..WORKERS {
        workers.spawn(work(maps.clone(), worker, progress.clone()));
    }
    let late = Belief::default();
    let mut done = progress.subscribe();
    for fault in 1..=FAULTS {
        let due = OPERATIONS * fault / (FAULTS + 1);
        drop(
            timeout(PATIENCE, done.wait_for(|done| *done >= due))
                .await
                .unwrap()
                .unwrap(),
        );
        match fault {
            8 => tokio::task::block_in_place(|| server.restart_apiserver().unwrap()),
            10 => drop(informer.add_handler(late.clone()).unwrap()),
            fault if fault % 3 == 0 => faulty.expire(),
            _ => faulty.cut(),
        }
    }
    timeout(PATIENCE, workers.join_all()).await.unwrap();
    faulty.expire();

    let last = maps
        .create(&config_map("last", 0), &WriteOptions::default())
        .await
        .unwrap();
    let revision = last.meta().revision().unwrap();
    timeout(PATIENCE, informer.wait_for_revision(&revision))
        .await
        .unwrap()
        .unwrap();
    let list = maps.list_all(&ListOptions::default()).await.unwrap();
    let listed: BTreeMap<Key, Doc> = list
        .items
        .into_iter()
        .map(|object| (object.meta().key(), object))
        .collect();
    let snapshot = informer.lister().snapshot();
    let cached: BTreeMap<Key, Doc> = snapshot
        .iter()
        .map(|object| (object.key(), object.doc().clone()))
        .collect();
    assert_eq!(cached, listed);
    let odd = snapshot
        .iter()
        .filter(|it| it.labels().value("parity") == Some("odd"))
        .count();
    assert_eq!(snapshot.by_index("parity", "odd").unwrap().len(), odd);
    assert!(faulty.expired() > 3, "{} watches expired", faulty.expired());
    assert!(faulty.lists() > 3, "{} lists", faulty.lists());

    let objects: BTreeMap<Key, Obj> = snapshot.iter().map(|it| (it.key(), it)).collect();
    early.until(&objects).await;
    late.until(&objects).await;
    assert_eq!(registration.panics(), 0);
    drop(stop);
    running.await.unwrap();
}

fn informer(source: &Faulty) -> SharedInformer {
    let backoff = BackoffPolicy {
        initial: Duration::from_millis(20),
        max: Duration::from_millis(500),
        ..BackoffPolicy::default()
    };
    InformerBuilder::new(Arc::new(source.clone()), CONFIG_MAPS)
        .index("parity", functions::label("parity"))
        .reflector(|options| options.backoff = backoff)
        .build()
        .unwrap()
}

/// Creates, updates and deletes at random, each worker objects of its own.
async fn work(maps: DynamicApi, worker: u64, progress: watch::Sender<u64>) {
    let env = Env::seeded(worker);
    for step in 0..OPERATIONS / WORKERS {
        let name = format!("map-{worker}-{}", env.random_below(NAMES / WORKERS));
        let value = step * WORKERS + worker;
        while !operate(&maps, &name, value, env.random_below(4)).await {
            // The server restarts; asking without a pause would only slow it down.
            sleep(Duration::from_millis(50)).await;
        }
        progress.send_modify(|done| *done += 1);
    }
}

/// One change; whether the server was there for it.
async fn operate(maps: &DynamicApi, name: &str, value: u64, choice: u64) -> bool {
    let options = WriteOptions::default();
    let outcome = if choice == 0 {
        maps.delete(name, &DeleteOptions::default()).await.map(drop)
    } else {
        match maps.update(&config_map(name, value), &options).await {
            Err(error) if error.is_not_found() => maps
                .create(&config_map(name, value), &options)
                .await
                .map(drop),
            updated => updated.map(drop),
        }
    };
    outcome.is_ok_and(|()| true) || {
        // What the server answers, whatever it is, is an answer.
        let reachable = maps.list(&ListOptions::default().limit(1)).await;
        reachable.is_ok()
    }
}
