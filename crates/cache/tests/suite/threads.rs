//! Stores, queues and handlers under real threads.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};
use windlass_cache::{HandlerOptions, Indexer, InformerBuilder, Obj, SharedInformer, functions};
use windlass_core::{Gvr, doc};

use crate::{recorder::Recorder, world::World};

/// Long enough for any machine; a wake-up that is lost lasts longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn account(number: u64, balance: u64, version: u64) -> Obj {
    Obj::new(doc!({
        "metadata": { "name": format!("account-{number}"), "resourceVersion": version.to_string() },
        "balance": balance
    }))
    .unwrap()
}

fn balance(object: &Obj) -> u64 {
    object.doc().at("/balance").as_u64().unwrap()
}

#[test]
fn readers_only_ever_see_whole_transactions() {
    const ACCOUNTS: u64 = 100;
    const TOTAL: u64 = ACCOUNTS * 10;
    const TRANSFERS: u64 = 3000;
    let (store, is_over) = (Indexer::new(), AtomicBool::new(false));
    store
        .add_index("balance", functions::field("/balance"))
        .unwrap();
    let opening = (0..ACCOUNTS).map(|number| account(number, 10, 1)).collect();
    store.write(|transaction| transaction.replace(opening));
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                barrier.wait();
                let mut last = None;
                while !is_over.load(SeqCst) {
                    let snapshot = store.snapshot();
                    assert_eq!(snapshot.len(), ACCOUNTS as usize);
                    assert_eq!(snapshot.iter().map(|it| balance(&it)).sum::<u64>(), TOTAL);
                    let tens = snapshot.by_index("balance", "10").unwrap();
                    assert_eq!(
                        tens.len(),
                        snapshot.iter().filter(|it| balance(it) == 10).count()
                    );
                    assert!(
                        snapshot.revision().cloned() >= last,
                        "a reader never goes back"
                    );
                    last = snapshot.revision().cloned();
                }
            });
        }
        barrier.wait();
        for version in 2..2 + TRANSFERS {
            store.write(|transaction| {
                let (from, to) = (version % ACCOUNTS, version * 7 % ACCOUNTS);
                if from == to {
                    return;
                }
                for (number, change) in [(from, -1_i64), (to, 1)] {
                    let name = format!("account-{number}");
                    let before = balance(transaction.get("", &name).unwrap());
                    let after = before.saturating_add_signed(change);
                    transaction.put(&account(number, after, version));
                }
                // A balance of zero cannot pay: then nothing has moved either.
                let total: u64 = (0..ACCOUNTS)
                    .map(|number| {
                        balance(transaction.get("", &format!("account-{number}")).unwrap())
                    })
                    .sum();
                if total > TOTAL {
                    let payee = format!("account-{to}");
                    let too_much = balance(transaction.get("", &payee).unwrap());
                    transaction.put(&account(to, too_much - 1, version));
                }
                transaction.advance(account(0, 0, version).revision());
            });
        }
        is_over.store(true, SeqCst);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_come_and_go_among_threads_miss_nothing() {
    let world = World::new();
    let informer: SharedInformer =
        InformerBuilder::new(world.source(), Gvr::constant("", "v1", "pods"))
            .build()
            .unwrap();
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
    let writer = tokio::task::spawn_blocking({
        let world = world.clone();
        move || {
            for round in 0..2000_u64 {
                let name = format!("default/{}", round * 31 % 50);
                let is_deletion = round % 5 == 4;
                let _revision = if is_deletion {
                    world.delete(&name)
                } else {
                    world.put(&name, round)
                };
            }
        }
    });
    let mut kept = Vec::new();
    let mut round = 0_usize;
    while !writer.is_finished() || kept.len() < 20 {
        let recorder = Recorder::default();
        let buffer_limit = Some([1, 8, 1024][round % 3]);
        let options = HandlerOptions {
            buffer_limit,
            ..HandlerOptions::default()
        };
        let registration = informer
            .add_handler_with(recorder.clone(), options)
            .unwrap();
        if round.is_multiple_of(2) {
            tokio::task::yield_now().await;
            assert!(informer.remove_handler(&registration));
            recorder.belief();
        } else if kept.len() < 20 {
            kept.push((recorder, registration));
        }
        round += 1;
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    world.put("default/last", 1);
    timeout(PATIENCE, informer.wait_for_revision(&world.revision()))
        .await
        .unwrap()
        .unwrap();
    let cached = informer
        .lister()
        .snapshot()
        .iter()
        .map(|it| (it.key(), it))
        .collect();
    for (recorder, registration) in kept {
        timeout(PATIENCE, async {
            registration.wait_for_sync().await;
            while recorder.belief() != cached {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
    drop(stop);
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everyone_who_waits_for_a_revision_is_woken() {
    let world = World::new();
    let informer: SharedInformer =
        InformerBuilder::new(world.source(), Gvr::constant("", "v1", "pods"))
            .build()
            .unwrap();
    let runner = Arc::new(informer.clone());
    let running = tokio::spawn(async move { runner.run(std::future::pending()).await });
    for round in 0..500 {
        world.put("default/a", round);
        let revision = world.revision();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (informer, revision) = (informer.clone(), revision.clone());
                tokio::spawn(async move { informer.wait_for_revision(&revision).await })
            })
            .collect();
        for task in waiting {
            timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
        }
    }
    running.abort();
}
