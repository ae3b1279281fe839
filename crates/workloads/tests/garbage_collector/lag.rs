//! Kinds that cannot be watched, or only late, and servers that do not say what they serve.

use std::time::Duration;

use tower::util::MapRequestLayer;
use windlass_client::{
    Payload,
    Propagation::{Background, Foreground, Orphan},
    Transport,
};
use windlass_core::{Doc, doc};
use windlass_testing::{Call, Fault, Faults, Running, Seen};

use crate::world::{
    CONFIG_MAPS, CONTROLLERS, PODS, World, add, blocking, config_map, controller, custom, define,
    owned_by, owner_uids, pod, with_references,
};

/// Runs a garbage collector whose requests go wrong as `choose` says.
fn collect_with(
    world: &World,
    choose: impl FnMut(&Call) -> Fault + Send + 'static,
) -> (Faults, Running) {
    collect_on(world, world.cluster.transport(), choose)
}

fn collect_on(
    world: &World,
    transport: Transport,
    choose: impl FnMut(&Call) -> Fault + Send + 'static,
) -> (Faults, Running) {
    let faults = Faults::new(choose);
    let transport = transport.layer(&faults);
    let manager = world.cluster.manager_on("garbage-collector", transport);
    let manager = manager.build().unwrap();
    add(&manager);
    (faults, world.cluster.run_manager(manager))
}

fn metric(running: &Running, name: &str) -> u64 {
    let text = running.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

const SYNC_ERRORS: &str = "garbagecollector_controller_resources_sync_error_total ";

fn role(name: &str) -> Doc {
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [],
    })
}

/// How late a watch tells what it knows. No test lasts as long on a real server.
pub(crate) const SLOWNESS: Duration = Duration::from_secs(250);

/// Children of owners outside of namespaces whose watch is slow: those that have an owner stay, and
/// so do those of a kind that nobody knows. Owners come before the collector starts, and after.
pub(crate) async fn slow_owners(world: &World, slow: Fault) -> (Doc, Running) {
    let owner = world
        .cluster
        .create_doc(&role(&world.unique("owner")))
        .await;
    let lost = world.cluster.create_doc(&role(&world.unique("lost"))).await;
    world.delete(&lost, Background).await;
    world.create(owned_by(config_map("valid"), &[&owner])).await;
    world.create(owned_by(config_map("lost"), &[&lost])).await;
    let unknown = doc!({
        "apiVersion": "nowhere.windlass.io/v1", "kind": "Thing", "name": "x", "uid": "x",
    });
    let unknown = with_references(config_map("unknown"), vec![unknown]);
    world.create(unknown).await;
    let (faults, running) = collect_with(world, move |call| {
        match call.is_watch && call.path.ends_with("/clusterroles") {
            true => slow.clone(),
            false => Fault::None,
        }
    });
    world.until_gone(&CONFIG_MAPS, "lost").await;
    let late = world.cluster.create_doc(&role(&world.unique("late"))).await;
    world.create(owned_by(config_map("late"), &[&late])).await;
    world.settle().await;
    for name in ["valid", "unknown", "late"] {
        let now = world.find(&CONFIG_MAPS, name).await;
        assert!(now.is_some_and(|it| !it.meta().is_deleting()), "{name}");
    }
    // The collector did not know the owners: it asked for them.
    let seen = faults.seen();
    let of_roles = |it: &&Seen| it.call.path.contains("/clusterroles");
    let asked: Vec<_> = seen.iter().filter(of_roles).collect();
    let path = format!("/clusterroles/{}", late.meta().name());
    let is_asked = asked.iter().any(|it| it.call.path.ends_with(&path));
    assert!(is_asked, "{asked:#?}");
    (owner, running)
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_of_owners_costs_no_child_that_has_one() {
    let world = World::embedded().await;
    let (owner, _running) = slow_owners(&world, Fault::Lag(SLOWNESS)).await;
    world.cluster.pass(4 * SLOWNESS).await;
    for name in ["valid", "unknown", "late"] {
        assert!(world.find(&CONFIG_MAPS, name).await.is_some(), "{name}");
    }
    world.delete(&owner, Background).await;
    world.cluster.pass(4 * SLOWNESS).await;
    assert!(world.find(&CONFIG_MAPS, "valid").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn dependents_that_no_watch_has_shown_yet_are_orphaned_too() {
    let world = World::embedded().await;
    let (faults, _running) = collect_with(&world, |_| Fault::None);
    world.settle().await;
    let owner = world.create(controller("owner")).await;
    faults.lag_watches(Duration::from_secs(1));
    world.create(owned_by(pod("early"), &[&owner])).await;
    world.delete(&owner, Orphan).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    world.cluster.pass(Duration::from_secs(60)).await;
    let early = world.find(&PODS, "early").await.unwrap();
    assert!(owner_uids(&early).is_empty() && !early.meta().is_deleting());
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_dependents_that_no_watch_has_shown_yet() {
    let world = World::embedded().await;
    let (_faults, _running) = collect_with(&world, |call| {
        match call.is_watch && call.path.ends_with("/pods") {
            true => Fault::Lag(Duration::from_secs(300)),
            false => Fault::None,
        }
    });
    world.cluster.pass(Duration::from_secs(400)).await;
    let owner = world.create(controller("owner")).await;
    let child = with_references(pod("child"), vec![blocking(&owner)]);
    world.create(child).await;
    world.delete(&owner, Foreground).await;
    world.cluster.pass(Duration::from_secs(200)).await;
    assert!(world.find(&CONTROLLERS, "owner").await.is_some());
    world.cluster.pass(Duration::from_secs(800)).await;
    assert!(world.find(&PODS, "child").await.is_none());
    assert!(world.find(&CONTROLLERS, "owner").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_watched_does_not_stop_the_others() {
    let world = World::embedded().await;
    let (_faults, running) = collect_with(&world, |call| match call.path.ends_with("/secrets") {
        true => Fault::Refuse(500, "InternalError"),
        false => Fault::None,
    });
    let owner = world.create(config_map("owner")).await;
    world.create(owned_by(config_map("child"), &[&owner])).await;
    world.delete(&owner, Background).await;
    world.until_gone(&CONFIG_MAPS, "child").await;
    world.cluster.pass(Duration::from_secs(120)).await;
    assert_eq!(metric(&running, SYNC_ERRORS), 1);
}

#[tokio::test(start_paused = true)]
async fn without_discovery_what_is_watched_stays_so() {
    let world = World::embedded().await;
    let (faults, running) = collect_with(&world, |_| Fault::None);
    world.settle().await;
    faults.set(|call| match call.path == "/apis" {
        true => Fault::Refuse(403, "Forbidden"),
        false => Fault::None,
    });
    world.cluster.pass(Duration::from_secs(301)).await;
    assert_eq!(metric(&running, SYNC_ERRORS), 10);
    world.settle().await;
}

/// Asks as clients did before discovery could be had in one piece: for each group on its own.
fn asked_in_the_old_way(mut request: http::Request<Payload>) -> http::Request<Payload> {
    let json = http::HeaderValue::from_static("application/json");
    if matches!(request.uri().path(), "/api" | "/apis") {
        request.headers_mut().insert(http::header::ACCEPT, json);
    }
    request
}

#[tokio::test(start_paused = true)]
async fn a_group_that_the_server_cannot_tell_about_keeps_its_watches() {
    const SILENT: &str = "silent.windlass.io";
    let world = World::embedded().await;
    define(&world, SILENT, "Thing", "Namespaced").await;
    let transport = world.cluster.transport();
    let transport = transport.layer(&MapRequestLayer::new(asked_in_the_old_way));
    let (faults, running) = collect_on(&world, transport, |_| Fault::None);
    world.settle().await;
    faults.set(
        |call| match call.path == format!("/apis/{SILENT}/v1") && !call.is_watch {
            true => Fault::Refuse(503, "ServiceUnavailable"),
            false => Fault::None,
        },
    );
    // Meanwhile another group comes, which is watched as ever.
    define(&world, "loud.windlass.io", "Thing", "Namespaced").await;
    world.cluster.pass(Duration::from_secs(120)).await;
    for group in [SILENT, "loud.windlass.io"] {
        let owner = world.create(custom(group, "Thing", "owner")).await;
        world.create(owned_by(config_map("child"), &[&owner])).await;
        world.delete(&owner, Background).await;
        world.until_gone(&CONFIG_MAPS, "child").await;
    }
    let watches = |group: &str| {
        let path = format!("/apis/{group}/v1/things");
        let seen = faults.seen().into_iter();
        seen.filter(|it| it.call.is_watch && it.call.path == path)
            .count()
    };
    assert_eq!((watches(SILENT), watches("loud.windlass.io")), (1, 1));
    assert_eq!(metric(&running, SYNC_ERRORS), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_at_first_is_waited_for() {
    let world = World::embedded().await;
    let mut refusals = 3;
    let (_faults, _running) = collect_with(&world, move |call| {
        if refusals == 0 || call.path != "/api" {
            return Fault::None;
        }
        refusals -= 1;
        Fault::Refuse(403, "Forbidden")
    });
    world.cluster.pass(Duration::from_secs(200)).await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn the_graph_holds_nothing_that_is_gone() {
    let world = World::embedded().await;
    let (_faults, running) = collect_with(&world, |_| Fault::None);
    world.settle().await;
    let nodes = "garbagecollector_controller_graph_nodes ";
    let before = metric(&running, nodes);
    let ways = [Background, Foreground, Orphan].into_iter().cycle();
    for (number, way) in (0..21).zip(ways) {
        let owner = world.create(controller(&format!("rc-{number}"))).await;
        let child = owned_by(pod(&format!("pod-{number}")), &[&owner]);
        world.create(child).await;
        world.delete(&owner, way).await;
    }
    world
        .until(async |world| {
            let left = (world.names(&CONTROLLERS).await, world.names(&PODS).await);
            left.0.is_empty() && left.1.len() == 7
        })
        .await;
    world.cluster.pass(Duration::from_secs(60)).await;
    assert_eq!(metric(&running, nodes), before + 7, "the orphans alone");
    let virtual_nodes = "garbagecollector_controller_graph_virtual_nodes ";
    assert_eq!(metric(&running, virtual_nodes), 0);
}
