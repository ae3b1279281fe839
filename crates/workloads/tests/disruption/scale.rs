//! The scale of the pods' controllers.

use windlass_core::doc;

use crate::world::{World, allowed, owned_by, owner};

/// P5
#[tokio::test(start_paused = true)]
async fn owners_without_a_scale_fail_the_sync() {
    let world = World::new().await;
    let job = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }]
        } } }
    });
    let job = world.create(&job).await;
    world.pods("web", Some(&job), 2).await;
    world.budget(doc!({ "maxUnavailable": 1 })).await;
    world.until([0, 0, 0, 0]).await;
    let text = "jobs.batch does not implement the scale subresource";
    assert_eq!(
        allowed(&world.status().await),
        ["False", "SyncFailed", text]
    );
    let expected = format!(
        "Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: \
         {text}"
    );
    assert_eq!(world.events("web").await, [expected]);
    assert!(
        world
            .evict("web-0")
            .await
            .unwrap_err()
            .is_too_many_requests()
    );
}

/// P6
#[tokio::test(start_paused = true)]
async fn bare_pods_work_with_an_integer_minimum_only() {
    let world = World::new().await;
    world.pods("web", None, 2).await;
    let budget = world.budget(doc!({ "minAvailable": 1 })).await;
    world.until([2, 1, 2, 1]).await;
    let edit = doc!({ "spec": { "minAvailable": null, "maxUnavailable": 1 } });
    world.cluster.patch(&budget, edit).await;
    world.until([2, 0, 0, 0]).await;
    let expected = "Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: \
                    &LabelSelector{MatchLabels:map[string]string{app: web,},\
                    MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged. \
                    As a result, the status of the PDB cannot be calculated correctly, which may \
                    result in undefined behavior. To account for these pods please set \
                    \".spec.minAvailable\" field of the PDB to an integer value.";
    assert_eq!(world.events("web").await, [expected]);
}

/// P7
#[tokio::test(start_paused = true)]
async fn two_replica_sets_of_one_deployment_count_once() {
    let world = World::new().await;
    let (deployment, first) = world.deployment("web", 4).await;
    let second = owner("ReplicaSet", "web-2", 3);
    let second = second
        .with("/metadata/ownerReferences", vec![owned_by(&deployment)])
        .unwrap();
    let second = world.create(&second).await;
    world.pods("a", Some(&first), 2).await;
    world.pods("b", Some(&second), 2).await;
    world.budget(doc!({ "maxUnavailable": 1 })).await;
    world.until([4, 3, 4, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn all_kinds_with_replicas_are_known() {
    let kinds = ["ReplicaSet", "StatefulSet", "ReplicationController"];
    for kind in kinds {
        let world = World::new().await;
        let owner = world.create(&owner(kind, "web", 5)).await;
        world.pods("web", Some(&owner), 2).await;
        world.budget(doc!({ "maxUnavailable": 4 })).await;
        world.until([2, 1, 5, 1]).await;
    }
}

/// P8
#[tokio::test(start_paused = true)]
async fn custom_resources_are_asked_for_their_scale() {
    let world = World::new().await;
    world
        .cluster
        .define(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: farms.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: farms, singular: farm, kind: Farm }
  versions:
  - name: v1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
    subresources:
      scale: { specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas }
",
        )
        .await;
    let farm = doc!({
        "apiVersion": "example.com/v1", "kind": "Farm",
        "metadata": { "name": "web", "namespace": "default" }, "spec": { "replicas": 6 }
    });
    let farm = world.create(&farm).await;
    world.pods("web", Some(&farm), 5).await;
    world.budget(doc!({ "maxUnavailable": 2 })).await;
    world.until([5, 4, 6, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_gone_fails_the_sync() {
    let world = World::new().await;
    let set = world.create(&owner("ReplicaSet", "web", 1)).await;
    let gone = set.with("/metadata/uid", "another").unwrap();
    world.pods("web", Some(&gone), 1).await;
    world.budget(doc!({ "maxUnavailable": 1 })).await;
    world.until([0, 0, 0, 0]).await;
    let text = "found no controllers for pod \"web-0\"";
    assert_eq!(
        allowed(&world.status().await),
        ["False", "SyncFailed", text]
    );
}
