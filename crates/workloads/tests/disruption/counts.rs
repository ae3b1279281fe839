//! The numbers in the status of a budget.

use windlass_client::Propagation;
use windlass_core::doc;

use crate::world::{DEPLOYMENTS, World, allowed, budget};

/// P1
#[tokio::test(start_paused = true)]
async fn surplus_over_the_minimum_is_allowed() {
    let world = World::new().await;
    let (_, set) = world.deployment("web", 3).await;
    world.pods("web", Some(&set), 3).await;
    world.budget(doc!({ "minAvailable": 2 })).await;
    world.until([3, 2, 3, 1]).await;
    let status = world.status().await;
    assert_eq!(status.at("/observedGeneration").as_i64(), Some(1));
    assert_eq!(allowed(&status), ["True", "SufficientPods", ""]);
    let condition = status.at("/conditions/0");
    assert_eq!(condition.at("/observedGeneration").as_i64(), Some(1));
}

/// P2
#[tokio::test(start_paused = true)]
async fn a_share_that_may_be_unavailable_is_rounded_up() {
    let world = World::new().await;
    let (deployment, set) = world.deployment("web", 10).await;
    world.pods("web", Some(&set), 10).await;
    world.budget(doc!({ "maxUnavailable": "30%" })).await;
    world.until([10, 7, 10, 3]).await;
    let replicas = doc!({ "spec": { "replicas": 7 } });
    world.cluster.patch(&deployment, replicas).await;
    // The number of an owner's replicas is seen with the next change of a pod.
    world.pod("another", Some(&set)).await;
    world.until([10, 4, 7, 6]).await;
}

/// P3
#[tokio::test(start_paused = true)]
async fn a_share_that_must_be_available_is_rounded_up() {
    let world = World::new().await;
    let (_, set) = world.deployment("web", 5).await;
    world.pods("web", Some(&set), 5).await;
    world.budget(doc!({ "minAvailable": "50%" })).await;
    world.until([5, 3, 5, 2]).await;
}

/// P4
#[tokio::test(start_paused = true)]
async fn pods_that_are_still_to_come_are_expected() {
    let world = World::new().await;
    let (deployment, set) = world.deployment("web", 4).await;
    world.pods("web", Some(&set), 4).await;
    world.budget(doc!({ "maxUnavailable": 1 })).await;
    world.until([4, 3, 4, 1]).await;
    let replicas = doc!({ "spec": { "replicas": 8 } });
    world.cluster.patch(&deployment, replicas).await;
    for number in 4..8 {
        world.pod(&format!("web-{number}"), Some(&set)).await;
    }
    world.until([4, 7, 8, 0]).await;
    assert_eq!(
        allowed(&world.status().await),
        ["False", "InsufficientPods", ""]
    );
}

/// P20
#[tokio::test(start_paused = true)]
async fn a_budget_without_pods_allows_nothing() {
    let world = World::new().await;
    world.budget(doc!({ "minAvailable": 0 })).await;
    world.until([0, 0, 0, 0]).await;
    let events = world.events("web").await;
    assert_eq!(events, ["Normal NoPods No matching pods found"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_or_being_deleted_is_not_healthy() {
    let world = World::new().await;
    let pods = world.pods("web", None, 3).await;
    world.budget(doc!({ "minAvailable": 1 })).await;
    world.until([3, 1, 3, 2]).await;
    world.ready(&pods[0], false).await;
    world.until([2, 1, 3, 1]).await;
    world
        .cluster
        .delete(&pods[1], Propagation::Background)
        .await;
    world.until([1, 1, 3, 0]).await;
    world.remove_deleted().await;
    world.until([1, 1, 2, 0]).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_selector_means_all_pods_and_none_means_none() {
    let world = World::new().await;
    world.pods("web", None, 2).await;
    let all = budget("web", doc!({ "minAvailable": 1, "selector": null }));
    let all = all.with("/spec/selector", doc!({})).unwrap();
    let all = world.create(&all).await;
    world.until([2, 1, 2, 1]).await;
    world.cluster.delete(&all, Propagation::Background).await;
    let none = budget("web", doc!({ "minAvailable": 1, "selector": null }));
    world.create(&none).await;
    world.until([0, 1, 0, 0]).await;
}

#[tokio::test(start_paused = true)]
async fn an_edited_budget_is_observed() {
    let world = World::new().await;
    let (_, set) = world.deployment("web", 3).await;
    world.pods("web", Some(&set), 3).await;
    let created = world.budget(doc!({ "minAvailable": 2 })).await;
    world.until([3, 2, 3, 1]).await;
    let edit = doc!({ "spec": { "minAvailable": null, "maxUnavailable": 0 } });
    world.cluster.patch(&created, edit).await;
    world.until([3, 3, 3, 0]).await;
    let status = world.status().await;
    assert_eq!(status.at("/observedGeneration").as_i64(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_two_budgets_is_warned_of() {
    let world = World::new().await;
    world.budget(doc!({ "minAvailable": 1 })).await;
    world
        .create(&budget("other", doc!({ "minAvailable": 1 })))
        .await;
    world.settle().await;
    world.pod("a", None).await;
    let expected = "Warning MultiplePodDisruptionBudgets Pod \"default\"/\"a\" matches multiple \
                    PodDisruptionBudgets.  Chose \"other\" arbitrarily.";
    assert_eq!(world.events("a").await, [expected]);
    let deployments = world.cluster.list_docs(&DEPLOYMENTS, "default", "").await;
    assert!(deployments.is_empty());
}
