//! What the garbage collector does on any server. Each case has a namespace of its own, in a
//! cluster where a garbage collector runs.

use std::time::Duration;

use futures_util::future::join_all;
use windlass_client::Propagation::{self, Background, Foreground, Orphan};
use windlass_core::{Doc, Gvr, doc};

use crate::world::{
    CONFIG_MAPS, CONTROLLERS, DEFINITIONS, PODS, World, blocking, config_map, controller,
    create_namespace, custom, define, missing_owner, owned_by, owner_uids, pod, reference,
    with_finalizer, with_references, write_options,
};

/// A finalizer that nobody removes but the test.
const HELD: &str = "test.windlass.io/held";

pub(crate) async fn dependents_without_another_owner_go_with_the_last(world: &World) {
    let gone = world.create(controller("gone")).await;
    let stays = world.create(controller("stays")).await;
    world.create(owned_by(pod("only"), &[&gone])).await;
    world.create(owned_by(pod("both"), &[&gone, &stays])).await;
    world.create(pod("free")).await;
    world.delete(&gone, Background).await;
    world.until_gone(&PODS, "only").await;
    world
        .until(async |world| {
            let both = world.find(&PODS, "both").await.unwrap();
            owner_uids(&both) == [stays.meta().uid_str()]
        })
        .await;
    world.settle().await;
    assert_eq!(world.names(&PODS).await, ["both", "free"]);
}

pub(crate) async fn an_object_whose_owner_never_was_is_deleted(world: &World) {
    let lost = with_references(pod("lost"), vec![missing_owner()]);
    world.create(lost).await;
    world.until_gone(&PODS, "lost").await;
}

pub(crate) async fn an_owner_of_the_same_name_but_another_uid_is_no_owner(world: &World) {
    let owner = world.create(config_map("owner")).await;
    let other = reference(&owner)
        .with("/uid", "11111111-0000-4000-8000-000000000000")
        .unwrap();
    world
        .create(with_references(config_map("child"), vec![other]))
        .await;
    world.until_gone(&CONFIG_MAPS, "child").await;
    assert!(world.find(&CONFIG_MAPS, "owner").await.is_some());
}

/// How a controller of the stress case is made and deleted, and whether its pods stay.
const WAYS: [(Option<&str>, Option<Propagation>, bool); 5] = [
    (None, Some(Orphan), true),
    (Some("orphan"), None, true),
    (Some("orphan"), Some(Background), false),
    (None, Some(Background), false),
    (Some("orphan"), Some(Orphan), true),
];

pub(crate) async fn fifty_owners_go_each_in_its_way(world: &World) {
    let owners = (0..50).map(|number| async move {
        let (finalizer, propagation, stays) = WAYS[number % WAYS.len()];
        let mut owner = controller(&format!("rc-{number}"));
        if let Some(finalizer) = finalizer {
            owner = with_finalizer(&owner, finalizer);
        }
        let owner = world.create(owner).await;
        for part in 0..3 {
            let name = format!("pod-{number}-{part}");
            world.create(owned_by(pod(&name), &[&owner])).await;
        }
        match propagation {
            Some(propagation) => world.delete(&owner, propagation).await,
            None => world.delete_plainly(&owner).await,
        }
        stays.then(|| (0..3).map(move |part| format!("pod-{number}-{part}")))
    });
    let kept = join_all(owners).await;
    let mut kept: Vec<String> = kept.into_iter().flatten().flatten().collect();
    kept.sort();
    world
        .until(async |world| world.names(&CONTROLLERS).await.is_empty())
        .await;
    world
        .until(async |world| world.names(&PODS).await == kept)
        .await;
    world.settle().await;
    assert_eq!(world.names(&PODS).await, kept);
    for name in &kept {
        let pod = world.find(&PODS, name).await.unwrap();
        assert!(
            owner_uids(&pod).is_empty() && !pod.meta().is_deleting(),
            "{name}"
        );
    }
}

pub(crate) async fn an_owner_in_the_foreground_goes_after_dependents_that_block_it(world: &World) {
    let owner = world.create(controller("owner")).await;
    let stays = world.create(controller("stays")).await;
    for number in 0..6 {
        let mut references = vec![blocking(&owner)];
        if number % 2 == 0 {
            references.push(reference(&stays));
        }
        let name = format!("pod-{number}");
        world.create(with_references(pod(&name), references)).await;
    }
    let held = with_finalizer(&with_references(pod("held"), vec![blocking(&owner)]), HELD);
    let held = world.create(held).await;
    world.delete(&owner, Foreground).await;
    world
        .until(async |world| world.names(&PODS).await == ["held", "pod-0", "pod-2", "pod-4"])
        .await;
    world.settle().await;
    let waiting = world.find(&CONTROLLERS, "owner").await.unwrap();
    assert!(waiting.meta().has_finalizer("foregroundDeletion"));
    world.release(&held).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    assert!(world.find(&PODS, "held").await.is_none());
    for name in ["pod-0", "pod-2", "pod-4"] {
        let pod = world.find(&PODS, name).await.unwrap();
        assert_eq!(owner_uids(&pod), [stays.meta().uid_str()]);
        assert!(!pod.meta().is_deleting());
    }
}

pub(crate) async fn dependents_that_do_not_block_do_not_keep_their_owner(world: &World) {
    let owner = world.create(controller("owner")).await;
    let references = [
        reference(&owner),
        reference(&owner)
            .with("/blockOwnerDeletion", false)
            .unwrap(),
    ];
    let mut held = Vec::new();
    for (number, reference) in references.into_iter().enumerate() {
        let object = with_references(pod(&format!("pod-{number}")), vec![reference]);
        held.push(world.create(with_finalizer(&object, HELD)).await);
    }
    world.delete(&owner, Foreground).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    assert_eq!(world.names(&PODS).await.len(), 2);
    for pod in held {
        world.release(&pod).await;
    }
    world
        .until(async |world| world.names(&PODS).await.is_empty())
        .await;
}

pub(crate) async fn a_dependent_that_stops_blocking_lets_its_owner_go(world: &World) {
    let owner = world.create(controller("owner")).await;
    let object = with_references(pod("held"), vec![blocking(&owner)]);
    let held = world.create(with_finalizer(&object, HELD)).await;
    world.delete(&owner, Foreground).await;
    world
        .until(async |world| {
            let held = world.find(&PODS, "held").await.unwrap();
            held.meta().is_deleting()
        })
        .await;
    world.settle().await;
    assert!(world.find(&CONTROLLERS, "owner").await.is_some());
    let weak = doc!({ "metadata": { "ownerReferences": vec![reference(&owner)] } });
    world.cluster.patch(&held, weak).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    world.release(&held).await;
}

pub(crate) async fn a_second_deletion_in_the_foreground_is_carried_out_too(world: &World) {
    let held = world.create(with_finalizer(&pod("held"), HELD)).await;
    for _ in 0..2 {
        world.delete(&held, Foreground).await;
        world
            .until(async |world| {
                let held = world.find(&PODS, "held").await.unwrap();
                held.meta().finalizers().eq([HELD])
            })
            .await;
    }
    world.release(&held).await;
    world.until_gone(&PODS, "held").await;
}

pub(crate) async fn orphans_are_left_without_a_reference(world: &World) {
    let owner = world.create(controller("owner")).await;
    let stays = world.create(controller("stays")).await;
    for number in 0..5 {
        let name = format!("pod-{number}");
        let references = vec![blocking(&owner), reference(&stays)];
        world.create(with_references(pod(&name), references)).await;
    }
    world.delete(&owner, Orphan).await;
    world.until_gone(&CONTROLLERS, "owner").await;
    world.settle().await;
    let pods = world.cluster.list_docs(&PODS, &world.namespace, "").await;
    assert_eq!(pods.len(), 5);
    for pod in pods {
        assert_eq!(owner_uids(&pod), [stays.meta().uid_str()]);
    }
}

pub(crate) async fn a_chain_is_collected_from_its_top(world: &World) {
    let top = world.create(config_map("top")).await;
    let middle = world.create(owned_by(config_map("middle"), &[&top])).await;
    world.create(owned_by(config_map("end"), &[&middle])).await;
    world.delete(&top, Background).await;
    world.until_gone(&CONFIG_MAPS, "middle").await;
    world.until_gone(&CONFIG_MAPS, "end").await;
}

pub(crate) async fn a_chain_in_the_foreground_goes_from_its_end(world: &World) {
    let top = world.create(config_map("top")).await;
    let middle = with_references(config_map("middle"), vec![blocking(&top)]);
    let middle = world.create(middle).await;
    let end = with_references(config_map("end"), vec![blocking(&middle)]);
    let end = world.create(with_finalizer(&end, HELD)).await;
    world.delete(&top, Foreground).await;
    world
        .until(async |world| {
            let end = world.find(&CONFIG_MAPS, "end").await.unwrap();
            end.meta().is_deleting()
        })
        .await;
    world.settle().await;
    for name in ["top", "middle"] {
        let waiting = world.find(&CONFIG_MAPS, name).await.unwrap();
        assert!(waiting.meta().has_finalizer("foregroundDeletion"), "{name}");
    }
    world.release(&end).await;
    world.until_gone(&CONFIG_MAPS, "top").await;
    assert!(world.find(&CONFIG_MAPS, "middle").await.is_none());
}

pub(crate) async fn a_deployment_takes_its_replica_sets_along_or_leaves_them(world: &World) {
    for (name, propagation) in [("taken", Background), ("left", Orphan)] {
        let deployment = world.create(apps("Deployment", name)).await;
        let set = with_references(apps("ReplicaSet", name), vec![blocking(&deployment)]);
        world.create(set).await;
        world.delete(&deployment, propagation).await;
    }
    let sets = Gvr::constant("apps", "v1", "replicasets");
    world.until_gone(&sets, "taken").await;
    world
        .until_gone(&Gvr::constant("apps", "v1", "deployments"), "left")
        .await;
    world.settle().await;
    let left = world.find(&sets, "left").await.unwrap();
    assert!(owner_uids(&left).is_empty() && !left.meta().is_deleting());
}

fn apps(kind: &str, name: &str) -> Doc {
    let template = controller(name).at("/spec/template").clone();
    doc!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": name } }, "template": template },
    })
}

pub(crate) async fn a_cycle_goes_as_a_whole(world: &World) {
    let mut pods = Vec::new();
    for number in 0..3 {
        pods.push(world.create(pod(&format!("pod-{number}"))).await);
    }
    for (number, pod) in pods.iter().enumerate() {
        let owner = blocking(&pods[(number + 1) % 3]);
        let patch = doc!({ "metadata": { "ownerReferences": vec![owner] } });
        world.cluster.patch(pod, patch).await;
    }
    world.settle().await;
    world.delete(&pods[0], Foreground).await;
    world
        .until(async |world| world.names(&PODS).await.is_empty())
        .await;
}

pub(crate) async fn an_owner_in_another_namespace_is_no_owner(world: &World) {
    let other = world.unique("other");
    create_namespace(&world.cluster, &other).await;
    let owner = config_map("owner")
        .with("/metadata/namespace", &*other)
        .unwrap();
    let owner = world.cluster.create_doc(&owner).await;
    let child = world.create(owned_by(config_map("child"), &[&owner])).await;
    world.until_gone(&CONFIG_MAPS, "child").await;
    world.settle().await;
    let key = format!("{other}/owner");
    assert!(world.cluster.find(&CONFIG_MAPS, &key).await.is_some());
    world
        .until(async |world| !world.events_of(&child).await.is_empty())
        .await;
    let events = world.events_of(&child).await;
    let event = &events[0];
    let (namespace, uid) = (&world.namespace, owner.meta().uid_str());
    assert_eq!(event.str_at("/reason"), "OwnerRefInvalidNamespace");
    assert_eq!(event.str_at("/type"), "Warning");
    assert_eq!(
        event.str_at("/source/component"),
        "garbage-collector-controller"
    );
    assert_eq!(
        event.str_at("/message"),
        format!(
            "ownerRef [v1/ConfigMap, namespace: {namespace}, name: owner, uid: {uid}] does not exist in namespace \"{namespace}\""
        )
    );
}

pub(crate) async fn an_object_outside_of_namespaces_keeps_an_owner_inside(world: &World) {
    let owner = world.create(config_map("owner")).await;
    let name = world.unique("child");
    let child = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": &*name, "ownerReferences": vec![reference(&owner)] },
        "rules": [],
    });
    let child = world.cluster.create_doc(&child).await;
    world
        .until(async |world| !world.events_of(&child).await.is_empty())
        .await;
    let event = &world.events_of(&child).await[0];
    assert_eq!(event.str_at("/reason"), "OwnerRefInvalidNamespace");
    world.delete(&owner, Background).await;
    world.settle().await;
    let roles = Gvr::constant("rbac.authorization.k8s.io", "v1", "clusterroles");
    assert!(world.cluster.find(&roles, &name).await.is_some());
}

pub(crate) async fn an_owner_outside_of_namespaces_keeps_objects_inside(world: &World) {
    let name = world.unique("owner");
    let owner = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [],
    });
    let owner = world.cluster.create_doc(&owner).await;
    world.create(owned_by(config_map("child"), &[&owner])).await;
    world.settle().await;
    assert!(world.find(&CONFIG_MAPS, "child").await.is_some());
    world.delete(&owner, Background).await;
    world.until_gone(&CONFIG_MAPS, "child").await;
}

pub(crate) async fn an_owner_of_an_unknown_kind_keeps_its_dependents(world: &World) {
    let unknown = doc!({
        "apiVersion": "nowhere.windlass.io/v1", "kind": "Thing", "name": "x", "uid": "x-1",
    });
    let unserved = doc!({
        "apiVersion": "apps/v1beta9", "kind": "Deployment", "name": "x", "uid": "x-2",
    });
    for (name, owner) in [("unknown", unknown), ("unserved", unserved)] {
        world
            .create(with_references(config_map(name), vec![owner]))
            .await;
    }
    world.settle().await;
    assert_eq!(
        world.names(&CONFIG_MAPS).await.len(),
        2 + extra_maps(world).await
    );
    for name in ["unknown", "unserved"] {
        assert!(world.find(&CONFIG_MAPS, name).await.is_some());
    }
}

/// ConfigMaps that a cluster puts into every namespace.
async fn extra_maps(world: &World) -> usize {
    let root = world.find(&CONFIG_MAPS, "kube-root-ca.crt").await;
    usize::from(root.is_some())
}

pub(crate) async fn a_wrong_kind_with_the_uid_of_another_is_no_owner(world: &World) {
    let owner = world.create(config_map("owner")).await;
    world.create(owned_by(pod("good"), &[&owner])).await;
    let wrong = reference(&owner).with("/kind", "Secret").unwrap();
    world.create(with_references(pod("bad"), vec![wrong])).await;
    world.until_gone(&PODS, "bad").await;
    world.settle().await;
    assert!(world.find(&PODS, "good").await.is_some());
    assert!(world.find(&CONFIG_MAPS, "owner").await.is_some());
}

pub(crate) async fn custom_resources_own_and_are_owned(world: &World) {
    let group = format!("{}.windlass.io", world.namespace);
    let (_, widgets) = define(world, &group, "Widget", "Namespaced").await;
    let create = async |name: &str, owner: Option<&Doc>| {
        let object = custom(&group, "Widget", name);
        let owners = owner.map(|owner| vec![blocking(owner)]);
        world
            .create(with_references(object, owners.unwrap_or_default()))
            .await
    };
    let top = create("top", None).await;
    create("part", Some(&top)).await;
    let map = with_references(config_map("of-widget"), vec![blocking(&top)]);
    world.create(map).await;
    let core = world.create(config_map("core")).await;
    create("of-core", Some(&core)).await;
    // The kind is new: until it is watched, its objects are no more than what references say.
    world
        .until(async |world| {
            let map = world.find(&CONFIG_MAPS, "of-widget").await;
            map.is_some() && world.names(&widgets).await.len() == 3
        })
        .await;
    world.delete(&top, Foreground).await;
    world.delete(&core, Foreground).await;
    for name in ["part", "top", "of-core"] {
        world.until_gone(&widgets, name).await;
    }
    for name in ["of-widget", "core"] {
        world.until_gone(&CONFIG_MAPS, name).await;
    }
}

pub(crate) async fn custom_resources_are_orphaned_without_strategic_patches(world: &World) {
    let group = format!("{}.windlass.io", world.namespace);
    let (_, widgets) = define(world, &group, "Widget", "Namespaced").await;
    let owner = world.create(custom(&group, "Widget", "owner")).await;
    let stays = world.create(config_map("stays")).await;
    let part = custom(&group, "Widget", "part");
    world.create(owned_by(part, &[&owner, &stays])).await;
    world.delete(&owner, Orphan).await;
    world.until_gone(&widgets, "owner").await;
    world.settle().await;
    let part = world.find(&widgets, "part").await.unwrap();
    assert_eq!(owner_uids(&part), [stays.meta().uid_str()]);
}

pub(crate) async fn the_end_of_a_definition_takes_instances_and_dependents_along(world: &World) {
    let group = format!("{}.windlass.io", world.namespace);
    for round in 0..2 {
        let (definition, widgets) = define(world, &group, "Widget", "Namespaced").await;
        let owner = world.create(custom(&group, "Widget", "owner")).await;
        let name = format!("child-{round}");
        world.create(owned_by(config_map(&name), &[&owner])).await;
        world.settle().await;
        let child = world.find(&CONFIG_MAPS, &name).await;
        assert!(child.is_some(), "{name} has an owner");
        if round == 0 {
            let definition = world
                .cluster
                .find(&DEFINITIONS, definition.meta().name())
                .await
                .unwrap();
            world.delete(&definition, Background).await;
            world
                .until(async |world| {
                    let name = definition.meta().name();
                    world.cluster.find(&DEFINITIONS, name).await.is_none()
                })
                .await;
        } else {
            let api = world.api(&widgets);
            api.delete("owner", &Default::default()).await.unwrap();
        }
        world.until_gone(&CONFIG_MAPS, &name).await;
    }
}

pub(crate) async fn the_owner_of_a_child_that_was_changed_since_is_looked_up_again(world: &World) {
    let first = world.create(config_map("first")).await;
    let second = world.create(config_map("second")).await;
    let child = world.create(owned_by(config_map("child"), &[&first])).await;
    let patch = doc!({ "metadata": { "ownerReferences": vec![reference(&second)] } });
    world.cluster.patch(&child, patch).await;
    world.delete(&first, Background).await;
    world.settle().await;
    assert!(world.find(&CONFIG_MAPS, "child").await.is_some());
    let api = world.api(&CONFIG_MAPS);
    let now = api.get("child").await.unwrap();
    let free = now.without("/metadata/ownerReferences").unwrap();
    api.update(&free, &write_options()).await.unwrap();
    world.delete(&second, Background).await;
    world.settle().await;
    assert!(world.find(&CONFIG_MAPS, "child").await.is_some());
}

/// How long one case may take on a server whose clock is real.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Calls a macro with the names of all cases of built-in kinds.
macro_rules! each_case {
    ($call:ident) => {
        $call! {
            a_chain_in_the_foreground_goes_from_its_end
            a_chain_is_collected_from_its_top
            a_cycle_goes_as_a_whole
            a_dependent_that_stops_blocking_lets_its_owner_go
            a_deployment_takes_its_replica_sets_along_or_leaves_them
            a_second_deletion_in_the_foreground_is_carried_out_too
            a_wrong_kind_with_the_uid_of_another_is_no_owner
            an_object_outside_of_namespaces_keeps_an_owner_inside
            an_object_whose_owner_never_was_is_deleted
            an_owner_in_another_namespace_is_no_owner
            an_owner_in_the_foreground_goes_after_dependents_that_block_it
            an_owner_of_an_unknown_kind_keeps_its_dependents
            an_owner_of_the_same_name_but_another_uid_is_no_owner
            an_owner_outside_of_namespaces_keeps_objects_inside
            dependents_that_do_not_block_do_not_keep_their_owner
            dependents_without_another_owner_go_with_the_last
            fifty_owners_go_each_in_its_way
            orphans_are_left_without_a_reference
            the_owner_of_a_child_that_was_changed_since_is_looked_up_again
        }
    };
}
pub(crate) use each_case;

/// Calls a macro with the names of all cases of custom resources.
macro_rules! each_custom_case {
    ($call:ident) => {
        $call! {
            custom_resources_are_orphaned_without_strategic_patches
            custom_resources_own_and_are_owned
            the_end_of_a_definition_takes_instances_and_dependents_along
        }
    };
}
pub(crate) use each_custom_case;
