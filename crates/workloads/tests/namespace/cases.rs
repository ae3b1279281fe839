//! What the namespace controller does on any server. Each case has a namespace of its own, in a
//! cluster where a namespace controller runs.

use std::time::Duration;

use windlass_client::{Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::Cluster;

use crate::world::{
    CONFIG_MAPS, HELD, NAMESPACES, PODS, World, config_map, deployment, namespace, pod,
};

/// The conditions of a namespace that is removed, in their order.
const CONDITIONS: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

pub(crate) async fn a_deleted_namespace_goes_with_its_content(world: &World) {
    world.create(config_map("map")).await;
    world.create(pod("pod")).await;
    world.create(deployment("web")).await;
    world.delete().await;
    let now = world.now().await.unwrap();
    assert_eq!(now.str_at("/status/phase"), "Terminating");
    world.until_gone().await;
    let deployments = Gvr::constant("apps", "v1", "deployments");
    for (resource, name) in [(CONFIG_MAPS, "map"), (PODS, "pod"), (deployments, "web")] {
        assert_eq!(world.find(&resource, name).await, None);
    }
}

pub(crate) async fn a_namespace_that_is_held_says_by_what(world: &World) {
    let held = world.create(deployment("held").with_finalizer(HELD)).await;
    world.delete().await;
    let kind = "NamespaceFinalizersRemaining";
    world
        .until(async |world| world.condition(kind).await.is_some_and(|it| it.0 == "True"))
        .await;
    let now = world.now().await.unwrap();
    let conditions = now.at("/status/conditions").items().iter();
    let kinds: Vec<_> = conditions.map(|it| it.str_at("/type")).collect();
    assert_eq!(kinds, CONDITIONS);
    let expected = [
        (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: deployments.apps has 1 resource instances",
        ),
        (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: custom.io/finalizer in 1 resource instances",
        ),
    ];
    for (kind, (status, reason, message)) in CONDITIONS.iter().zip(expected) {
        let found = world.condition(kind).await.unwrap();
        assert_eq!((&*found.0, &*found.1, &*found.2), (status, reason, message));
    }
    release(world, &held).await;
    world.until_gone().await;
}

pub(crate) async fn pods_go_before_anything_else(world: &World) {
    let held = world.create(pod("held").with_finalizer(HELD)).await;
    world.create(config_map("map")).await;
    world.delete().await;
    world
        .until(async |world| {
            let pod = world.find(&PODS, "held").await.unwrap();
            pod.meta().is_deleting() && world.condition(CONDITIONS[3]).await.is_some()
        })
        .await;
    let map = world.find(&CONFIG_MAPS, "map").await.unwrap();
    assert!(!map.meta().is_deleting());
    let remaining = world.condition(CONDITIONS[3]).await.unwrap();
    assert_eq!(
        remaining.2,
        "Some resources are remaining: pods. has 1 resource instances"
    );
    release(world, &held).await;
    world.until_gone().await;
    assert_eq!(world.find(&CONFIG_MAPS, "map").await, None);
}

async fn release(world: &World, object: &Doc) {
    let patch = doc!({ "metadata": { "finalizers": Doc::NULL } });
    world.cluster.patch(object, patch).await;
}

pub(crate) async fn the_finalizers_of_others_keep_a_namespace(world: &World) {
    let api = world.cluster.resource(NAMESPACES);
    let others = vec![Doc::from("kubernetes"), Doc::from("other.io/keeper")];
    let kept = world.namespace.with("/spec/finalizers", others).unwrap();
    let options = WriteOptions::manager("test");
    api.update_part(world.name(), "finalize", &kept, &options)
        .await
        .unwrap();
    world.create(config_map("map")).await;
    world.delete().await;
    world
        .until(async |world| {
            let now = world.now().await.unwrap();
            *now.at("/spec/finalizers") == doc!(["other.io/keeper"])
        })
        .await;
    assert_eq!(world.find(&CONFIG_MAPS, "map").await, None);
    let now = world.now().await.unwrap();
    let free = now.with("/spec/finalizers", Vec::new()).unwrap();
    api.update_part(world.name(), "finalize", &free, &options)
        .await
        .unwrap();
    world.until_gone().await;
}

pub(crate) async fn nothing_is_created_in_a_namespace_that_goes(world: &World) {
    let held = world.create(config_map("held").with_finalizer(HELD)).await;
    world.delete().await;
    let api = world.cluster.api(&CONFIG_MAPS, world.name());
    let late = api
        .create(&config_map("late"), &WriteOptions::manager("test"))
        .await;
    let error = late.unwrap_err();
    assert!(error.is_forbidden());
    let details = error.status().unwrap().details.clone().unwrap();
    assert_eq!(details.causes[0].reason, "NamespaceTerminating");
    assert_eq!(
        details.causes[0].message,
        format!("namespace {} is being terminated", world.name())
    );
    release(world, &held).await;
    world.until_gone().await;
}

pub(crate) async fn content_with_owners_goes_with_its_namespace(world: &World) {
    let owner = world.create(config_map("owner")).await;
    let reference = doc!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.meta().uid_str(),
        "blockOwnerDeletion": true,
    });
    let child = config_map("child").with("/metadata/ownerReferences", vec![reference]);
    world.create(child.unwrap()).await;
    world
        .cluster
        .delete(&world.namespace, Propagation::Foreground)
        .await;
    // The foreground of a namespace is for the garbage collector, which does not run here.
    world
        .until(async |world| {
            let now = world.now().await;
            now.is_none_or(|now| now.at("/spec/finalizers").items().is_empty())
        })
        .await;
    assert_eq!(world.find(&CONFIG_MAPS, "child").await, None);
}

/// Nine in ten of them within a time, and then the others.
pub(crate) async fn a_hundred_namespaces_go_together(cluster: &Cluster, time: Duration) {
    let mut all = Vec::new();
    for number in 0..100 {
        let object = namespace(&format!("many-{number}"));
        let created = cluster.create_doc(&object).await;
        let map = config_map("map").with("/metadata/namespace", created.meta().name());
        cluster.create_doc(&map.unwrap()).await;
        all.push(created);
    }
    for namespace in &all {
        cluster.delete(namespace, Propagation::Background).await;
    }
    let left = async |cluster: &Cluster| {
        let left = cluster.list_docs(&NAMESPACES, "", "").await;
        let is_left = |it: &&Doc| it.meta().name().starts_with("many-");
        left.iter().filter(is_left).count()
    };
    for at_most in [10, 0] {
        cluster
            .until_within(time, async |cluster| left(cluster).await <= at_most)
            .await;
    }
}

/// Calls a macro with the names of all cases.
macro_rules! each_case {
    ($call:ident) => {
        $call! {
            a_deleted_namespace_goes_with_its_content
            a_namespace_that_is_held_says_by_what
            content_with_owners_goes_with_its_namespace
            nothing_is_created_in_a_namespace_that_goes
            pods_go_before_anything_else
            the_finalizers_of_others_keep_a_namespace
        }
    };
}
pub(crate) use each_case;
