//! Factories: one informer per resource, started and stopped together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use tokio::time::{sleep, timeout};
use windlass_cache::{
    FactoryBuilder, HandlerOptions, InformerFactory, InformerSpec, Reason, SharedInformer,
    SourceError,
};
use windlass_core::{Doc, Env, Gvr};

use crate::{recorder::Recorder, world::World};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");

fn factory(worlds: &[(Gvr, &World)]) -> FactoryBuilder {
    let worlds: BTreeMap<Gvr, World> = worlds
        .iter()
        .map(|(resource, world)| (resource.clone(), (*world).clone()))
        .collect();
    InformerFactory::builder(move |spec| worlds[&spec.resource].source()).env(Env::seeded(1))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn one_informer_serves_everyone_who_asks_for_the_same() {
    let world = World::new();
    let factory = factory(&[(PODS, &world)]).build();
    let (typed, dynamic) = (factory.informer::<Pod>(), factory.dynamic(PODS));
    dynamic.add_handler(Recorder::default()).unwrap();
    assert_eq!(typed.handlers(), 1, "the same informer under another type");
    let _view: SharedInformer<Doc> = factory.view::<Pod, Doc>();
    assert_eq!(factory.informers().len(), 1);
    let _others = (
        factory.metadata(PODS),
        factory.informer_of::<Doc>(InformerSpec::new(PODS).namespaced("a")),
        factory.informer_of::<Doc>(InformerSpec::new(PODS).labels("app=web")),
        factory.informer_of::<Doc>(InformerSpec::new(PODS).fields("spec.nodeName=n1")),
    );
    assert_eq!(factory.informers().len(), 5);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert_eq!(world.watches(), 5);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn informers_are_started_whenever_they_were_asked_for() {
    let (pods, nodes) = (World::new(), World::new());
    let factory = factory(&[(PODS, &pods), (NODES, &nodes)]).build();
    let first = factory.dynamic(PODS);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    let second = factory.dynamic(NODES);
    assert!(first.has_synced() && !second.has_synced());
    // One that is not started is not waited for.
    factory.wait_for_sync().await.unwrap();
    factory.start();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    assert!(second.has_synced());
    assert_eq!((pods.watches(), nodes.watches()), (1, 1));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_names_the_resource_that_cannot_sync_even_if_another_hangs() {
    let (pods, nodes) = (World::new(), World::new());
    pods.refuse(Some(SourceError::new(
        Reason::Unreachable,
        "connection refused",
    )));
    nodes.refuse(Some(SourceError::new(
        Reason::Forbidden,
        "nodes is forbidden",
    )));
    let factory = factory(&[(PODS, &pods), (NODES, &nodes)]).build();
    let _informers = (factory.dynamic(PODS), factory.dynamic(NODES));
    factory.start();
    let error = factory.wait_for_sync().await.unwrap_err();
    assert_eq!(error.resource(), "nodes");
    assert!(
        error
            .to_string()
            .contains("failed to watch nodes: nodes is forbidden"),
        "{error}"
    );
    nodes.refuse(None);
    sleep(seconds(60)).await;
    assert!(
        timeout(seconds(60), factory.wait_for_sync()).await.is_err(),
        "pods hang"
    );
    pods.refuse(None);
    factory.wait_for_sync().await.unwrap();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_factory_without_informers_has_nothing_to_wait_for() {
    let factory = factory(&[]).build();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_informer_and_lets_none_start() {
    let world = World::new();
    let factory = factory(&[(PODS, &world)]).build();
    let pods = factory.dynamic(PODS);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    factory.shutdown().await;
    factory.shutdown().await;
    assert!(pods.is_stopped());
    let late = factory.metadata(PODS);
    factory.start();
    sleep(seconds(1)).await;
    assert!(!late.has_synced());
    assert_eq!(world.watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_factory_stops_its_informers() {
    let world = World::new();
    let factory = factory(&[(PODS, &world)]).build();
    let pods = factory.dynamic(PODS);
    factory.start();
    factory.wait_for_sync().await.unwrap();
    drop(factory);
    sleep(seconds(1)).await;
    assert!(pods.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn periods_and_transforms_of_a_factory_hold_for_its_informers() {
    let (pods, nodes) = (World::new(), World::new());
    pods.put("default/a", 1);
    nodes.put("default/n", 1);
    let factory = factory(&[(PODS, &pods), (NODES, &nodes)])
        .resync(seconds(10))
        .resync_for(NODES, seconds(30))
        .transform(|doc| Ok(doc.without("/spec").unwrap_or(doc)))
        .build();
    let recorders = [PODS, NODES].map(|resource| {
        let recorder = Recorder::default();
        let informer = factory.dynamic(resource);
        informer
            .add_handler_with(recorder.clone(), HandlerOptions::default())
            .unwrap();
        recorder
    });
    factory.start();
    factory.wait_for_sync().await.unwrap();
    sleep(seconds(35)).await;
    assert_eq!(recorders[0].short(), ["+a", "~a", "~a", "~a"]);
    assert_eq!(recorders[1].short(), ["+n", "~n"]);
    let pod = factory
        .dynamic(PODS)
        .lister()
        .get(&"default/a".parse().unwrap())
        .unwrap();
    assert!(pod.doc().get("spec").is_none());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_namespace_of_a_factory_is_that_of_its_informers() {
    let world = World::new();
    let specs = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = specs.clone();
    let factory = InformerFactory::builder(move |spec| {
        seen.lock().push(spec.namespace.clone());
        world.source()
    })
    .namespace("shop")
    .build();
    let shop = Some("shop".to_owned());
    let _pods = (
        factory.informer::<Pod>(),
        factory.informer_of::<Doc>(InformerSpec::new(PODS)),
    );
    assert_eq!(*specs.lock(), [shop.clone(), None]);
    // What is asked for goes before what the factory says, and a node is in no namespace.
    let _others = (
        factory.informer_of::<Doc>(InformerSpec::new(PODS).namespaced("bank")),
        factory.metadata(PODS),
        factory.informer::<Node>(),
        factory.view::<Node, Doc>(),
    );
    let bank = Some("bank".to_owned());
    assert_eq!(specs.lock()[2..], [bank, shop, None]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_has_not_started_is_empty_and_says_that_it_is_not_complete() {
    let world = World::new();
    world.put("default/a", 1);
    let factory = factory(&[(PODS, &world)]).build();
    let informer = factory.dynamic(PODS);
    let (lister, key) = (informer.lister(), "default/a".parse().unwrap());
    assert!(lister.get(&key).is_none() && lister.snapshot().is_empty());
    assert!(!informer.has_synced() && informer.revision().is_none());
    // Whoever waits may give up, and nobody else is held up by that.
    assert!(timeout(seconds(5), informer.wait_for_sync()).await.is_err());
    factory.start();
    factory.wait_for_sync().await.unwrap();
    informer.wait_for_sync().await.unwrap();
    assert!(lister.get(&key).is_some() && informer.revision().is_some());
    factory.shutdown().await;
}
