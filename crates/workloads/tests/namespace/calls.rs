//! Which requests the namespace controller makes, and when.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_client::DiscoveryClient;
use windlass_testing::{Call, Fault, Faults};

use crate::world::{CONFIG_MAPS, HELD, World, add, config_map, running_pod};

/// The requests of the controller, with their times.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<(Instant, Method, String)>>>);

impl Calls {
    fn count(&self, method: &Method, path: &str) -> usize {
        self.times(method, path).len()
    }

    fn times(&self, method: &Method, path: &str) -> Vec<Instant> {
        let calls = self.0.lock();
        let of = calls.iter().filter(|it| it.1 == *method && it.2 == path);
        of.map(|it| it.0).collect()
    }
}

/// Runs a controller whose requests are noted, and go wrong as `choose` says.
fn control_noting(world: &World, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) -> Calls {
    let calls = Calls::default();
    let noted = calls.clone();
    let faults = Faults::new(move |call| {
        if !call.is_watch {
            let call = (Instant::now(), call.method.clone(), call.path.clone());
            noted.0.lock().push(call);
        }
        choose(call)
    });
    let transport = world.cluster.transport().layer(&faults);
    let manager = world.cluster.manager_on("namespace-controller", transport);
    let manager = manager.build().unwrap();
    add(&manager);
    world.cluster.run_manager(manager);
    calls
}

/// The first requests of a method for a path go wrong.
fn fail(
    method: Method,
    path: &'static str,
    mut times: usize,
    fault: Fault,
) -> impl FnMut(&Call) -> Fault + Send + 'static {
    move |call| {
        if times == 0 || call.method != method || call.path != path {
            return Fault::None;
        }
        times -= 1;
        fault.clone()
    }
}

const SHOP: &str = "/api/v1/namespaces/shop";

#[tokio::test(start_paused = true)]
async fn every_resource_is_deleted_and_listed_once() {
    let world = World::embedded().await;
    world.create(config_map("map")).await;
    let calls = control_noting(&world, |_| Fault::None);
    world.delete().await;
    world.until_gone().await;
    let discovery = DiscoveryClient::new(world.cluster.client().clone());
    let discovery = discovery.discovery().await.unwrap();
    let mut seen = BTreeMap::new();
    for resource in &discovery.resources {
        let can_delete = resource.verbs.iter().any(|verb| verb == "delete");
        if resource.is_namespaced && can_delete {
            seen.entry(resource.gvr.group_resource())
                .or_insert_with(|| resource.gvr.clone());
        }
    }
    assert!(seen.len() > 20);
    for gvr in seen.values() {
        let root = match gvr.group() {
            "" => "/api".to_owned(),
            _ => "/apis".to_owned(),
        };
        let path = format!(
            "{root}/{}/namespaces/shop/{}",
            gvr.group_version(),
            gvr.resource()
        );
        assert_eq!(calls.count(&Method::DELETE, &path), 1, "{path}");
        // Pods are listed once more, to see how long they may take.
        let lists = if gvr.resource() == "pods" { 2 } else { 1 };
        assert_eq!(calls.count(&Method::GET, &path), lists, "{path}");
    }
    assert_eq!(calls.count(&Method::GET, SHOP), 1);
    assert_eq!(calls.count(&Method::PUT, &format!("{SHOP}/finalize")), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_deleted_is_left_alone() {
    let world = World::embedded().await;
    let calls = control_noting(&world, |_| Fault::None);
    world.cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(calls.count(&Method::GET, SHOP), 0);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried_once() {
    let world = World::embedded().await;
    let conflict = Fault::Refuse(409, "Conflict");
    let finalize = "/api/v1/namespaces/shop/finalize";
    let calls = control_noting(&world, fail(Method::PUT, finalize, 1, conflict));
    world.delete().await;
    world.until_gone().await;
    assert_eq!(calls.count(&Method::PUT, finalize), 2);
    assert_eq!(calls.count(&Method::GET, SHOP), 2);
}

#[tokio::test(start_paused = true)]
async fn without_discovery_nothing_is_finalized_and_the_namespace_says_why() {
    let world = World::embedded().await;
    let refused = Fault::Refuse(403, "Forbidden");
    let calls = control_noting(&world, fail(Method::GET, "/apis", 3, refused));
    world.delete().await;
    let kind = "NamespaceDeletionDiscoveryFailure";
    world
        .until(async |world| world.condition(kind).await.is_some())
        .await;
    let found = world.condition(kind).await.unwrap();
    assert_eq!(
        (&*found.0, &*found.1, &*found.2),
        ("True", "DiscoveryFailed", "refused by a fault")
    );
    assert_eq!(calls.count(&Method::PUT, &format!("{SHOP}/finalize")), 0);
    assert!(calls.count(&Method::DELETE, &format!("{SHOP}/pods")) > 0);
    world.until_gone().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_deleted_together_is_deleted_one_by_one() {
    for (code, reason) in [(404, "NotFound"), (405, "MethodNotAllowed")] {
        let world = World::embedded().await;
        for name in ["a", "b"] {
            world.create(config_map(name)).await;
        }
        let maps = "/api/v1/namespaces/shop/configmaps";
        let refused = Fault::Refuse(code, reason);
        let calls = control_noting(&world, fail(Method::DELETE, maps, 1, refused));
        world.delete().await;
        world.until_gone().await;
        for name in ["a", "b"] {
            assert_eq!(calls.count(&Method::DELETE, &format!("{maps}/{name}")), 1);
            assert_eq!(world.find(&CONFIG_MAPS, name).await, None);
        }
        // The next namespace is asked to delete them together again.
        let other = World::new(world.cluster.clone(), "other").await;
        other.create(config_map("c")).await;
        other.delete().await;
        other.until_gone().await;
        let maps = "/api/v1/namespaces/other/configmaps";
        assert_eq!(calls.count(&Method::DELETE, maps), 1);
        assert_eq!(calls.count(&Method::DELETE, &format!("{maps}/c")), 0);
    }
}

/// The seconds between the looks at a namespace.
fn waits(calls: &Calls) -> Vec<u64> {
    let times = calls.times(&Method::GET, SHOP);
    let pairs = times.windows(2);
    pairs.map(|it| (it[1] - it[0]).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_that_shut_down_are_looked_for_after_half_their_time() {
    let world = World::embedded().await;
    let pod = world.create(running_pod("slow", 30)).await;
    let calls = control_noting(&world, |_| Fault::None);
    world.delete().await;
    world.cluster.pass(Duration::from_secs(28)).await;
    let waits = waits(&calls);
    assert!(waits.contains(&16), "{waits:?}");
    let pod_now = world.find(&crate::world::PODS, "slow").await.unwrap();
    assert!(pod_now.meta().is_deleting());
    world.end(&pod).await;
    world.until_gone().await;
}

#[tokio::test(start_paused = true)]
async fn finalizers_are_looked_for_after_eight_seconds() {
    let world = World::embedded().await;
    world.create(config_map("held").with_finalizer(HELD)).await;
    let calls = control_noting(&world, |_| Fault::None);
    world.delete().await;
    world.cluster.pass(Duration::from_secs(60)).await;
    let waits = waits(&calls);
    assert!(waits.len() > 4, "{waits:?}");
    assert!(
        waits.iter().rev().take(3).all(|&wait| wait == 8),
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_within_a_minute() {
    let world = World::embedded().await;
    let refused = Fault::Refuse(403, "Forbidden");
    let maps = "/api/v1/namespaces/shop/configmaps";
    let calls = control_noting(&world, fail(Method::DELETE, maps, 17, refused));
    world.delete().await;
    world.cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(world.now().await, None);
    assert_eq!(calls.count(&Method::DELETE, maps), 18);
    let longest = waits(&calls).into_iter().max().unwrap();
    assert_eq!(longest, 60);
}
