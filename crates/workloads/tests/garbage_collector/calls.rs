//! Which requests the garbage collector makes.

use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use windlass_client::Propagation::{Background, Foreground, Orphan};
use windlass_core::doc;
use windlass_testing::{Call, Fault, Faults, Running};

use crate::world::{
    CONFIG_MAPS, CONTROLLERS, PODS, World, add, blocking, config_map, controller, missing_owner,
    owned_by, owner_uids, pod, reference, with_finalizer, with_references,
};

/// The requests about single objects in the test's namespace.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, call: &Call) {
        let object = call.path.strip_prefix("/api/v1/namespaces/shop/");
        if let Some(object) = object.filter(|it| it.contains('/') && !it.starts_with("events")) {
            self.0.lock().push(format!("{} {object}", call.method));
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Runs a garbage collector whose requests are noted, and go wrong as `choose` says.
fn collect_noting(
    world: &World,
    mut choose: impl FnMut(&Call) -> Fault + Send + 'static,
) -> (Calls, Running) {
    let calls = Calls::default();
    let noted = calls.clone();
    let faults = Faults::new(move |call| {
        noted.note(call);
        choose(call)
    });
    let transport = world.cluster.transport().layer(&faults);
    let manager = world.cluster.manager_on("garbage-collector", transport);
    let manager = manager.build().unwrap();
    add(&manager);
    (calls, world.cluster.run_manager(manager))
}

/// Refuses the first request of a method whose path ends so.
fn refuse_once(
    method: Method,
    end: &'static str,
    fault: Fault,
) -> impl FnMut(&Call) -> Fault + Send + 'static {
    let mut fault = Some(fault);
    move |call| match call.method == method && call.path.ends_with(end) {
        true => fault.take().unwrap_or_default(),
        false => Fault::None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_without_an_owner_costs_three_requests() {
    let world = World::embedded().await;
    let (calls, _running) = collect_noting(&world, |_| Fault::None);
    world.settle().await;
    calls.take();
    let owner = missing_owner().with("/name", "other").unwrap();
    let owner = owner.with("/uid", "other").unwrap();
    world
        .create(with_references(pod("lost"), vec![owner]))
        .await;
    world.until_gone(&PODS, "lost").await;
    assert_eq!(
        calls.take(),
        [
            // The virtual owner is verified, and the object with it.
            "GET configmaps/other",
            "GET pods/lost",
            "DELETE pods/lost",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_absent_owner_is_looked_for_once() {
    let world = World::embedded().await;
    let owner = missing_owner();
    for number in 0..5 {
        let name = format!("lost-{number}");
        world
            .create(with_references(pod(&name), vec![owner.clone()]))
            .await;
    }
    let (calls, _running) = collect_noting(&world, |_| Fault::None);
    world
        .until(async |world| world.names(&PODS).await.is_empty())
        .await;
    let calls = calls.take();
    let owners = calls.iter().filter(|it| it.contains("never-was"));
    assert_eq!(owners.count(), 1, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_before_its_deletion_frees_its_dependents() {
    for (propagation, child_references) in [(Background, false), (Foreground, true)] {
        let world = World::embedded().await;
        let owner = world.create(config_map("owner")).await;
        let middle = with_references(config_map("middle"), vec![blocking(&owner)]);
        let middle = world.create(middle).await;
        if child_references {
            world
                .create(owned_by(config_map("child"), &[&middle]))
                .await;
        }
        let gone = Fault::Refuse(404, "NotFound");
        let (_calls, _running) =
            collect_noting(&world, refuse_once(Method::DELETE, "/middle", gone));
        world.settle().await;
        world.delete(&owner, propagation).await;
        world.until_gone(&CONFIG_MAPS, "middle").await;
        world.until_gone(&CONFIG_MAPS, "child").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_while_orphaning_is_retried() {
    let world = World::embedded().await;
    let owner = world.create(controller("owner")).await;
    world.create(owned_by(pod("child"), &[&owner])).await;
    let conflict = Fault::Refuse(409, "Conflict");
    let (calls, _running) = collect_noting(&world, refuse_once(Method::PATCH, "/child", conflict));
    world.delete(&owner, Orphan).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    let child = world.find(&PODS, "child").await.unwrap();
    assert!(owner_uids(&child).is_empty());
    let patches = calls.take();
    let patches = patches.iter().filter(|it| *it == "PATCH pods/child");
    assert_eq!(patches.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_version_conflict_with_the_same_owners_is_retried_by_uid() {
    let world = World::embedded().await;
    let owner = world.create(config_map("owner")).await;
    world.create(owned_by(config_map("child"), &[&owner])).await;
    let conflict = Fault::Refuse(409, "Conflict");
    let (calls, _running) = collect_noting(&world, refuse_once(Method::DELETE, "/child", conflict));
    world.settle().await;
    calls.take();
    world.delete(&owner, Background).await;
    world.until_gone(&CONFIG_MAPS, "child").await;
    assert_eq!(
        calls.take(),
        [
            "GET configmaps/child",
            "DELETE configmaps/child",
            "GET configmaps/child",
            "DELETE configmaps/child",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_conflict_with_other_owners_starts_over() {
    let world = World::embedded().await;
    let owner = world.create(config_map("owner")).await;
    let stays = world.create(config_map("stays")).await;
    world.create(owned_by(config_map("child"), &[&owner])).await;
    // While the deletion is on its way, the child gets an owner that exists.
    let delay = Fault::Delay(std::time::Duration::from_secs(5));
    let (calls, _running) = collect_noting(&world, refuse_once(Method::DELETE, "/child", delay));
    world.settle().await;
    world.delete(&owner, Background).await;
    world
        .until(async |_| {
            calls
                .0
                .lock()
                .contains(&"DELETE configmaps/child".to_owned())
        })
        .await;
    let child = world.find(&CONFIG_MAPS, "child").await.unwrap();
    let both =
        doc!({ "metadata": { "ownerReferences": vec![reference(&owner), reference(&stays)] } });
    world.cluster.patch(&child, both).await;
    world
        .until(async |world| {
            let child = world.find(&CONFIG_MAPS, "child").await.unwrap();
            owner_uids(&child) == [stays.meta().uid_str()]
        })
        .await;
    world.settle().await;
    assert!(world.find(&CONFIG_MAPS, "child").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn owners_that_exist_are_not_verified_at_the_start() {
    let world = World::embedded().await;
    let owner = world.create(config_map("owner")).await;
    for number in 0..20 {
        let name = format!("child-{number}");
        world.create(owned_by(pod(&name), &[&owner])).await;
    }
    let (calls, _running) = collect_noting(&world, |_| Fault::None);
    world.settle().await;
    let calls = calls.take();
    let about = calls
        .iter()
        .filter(|it| !it.contains("last-") && !it.contains("never-was"));
    assert_eq!(about.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_held_object_in_the_foreground_is_not_asked_about_again_and_again() {
    let world = World::embedded().await;
    let owner = world.create(config_map("owner")).await;
    let child = with_references(config_map("child"), vec![blocking(&owner)]);
    world
        .create(with_finalizer(&child, "test.windlass.io/held"))
        .await;
    let (calls, _running) = collect_noting(&world, |_| Fault::None);
    world.settle().await;
    world.delete(&owner, Foreground).await;
    world.settle().await;
    calls.take();
    world
        .cluster
        .pass(std::time::Duration::from_secs(3600))
        .await;
    assert_eq!(calls.take(), Vec::<String>::new());
}
