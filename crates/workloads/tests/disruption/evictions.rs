//! Evictions, from the request to the budget that recovers.

use futures_util::future::join_all;
use windlass_core::{condition, doc};

use crate::world::World;

async fn three_of_two(spec: windlass_core::Doc) -> World {
    let world = World::new().await;
    let (_, set) = world.deployment("web", 3).await;
    world.pods("web", Some(&set), 3).await;
    world.budget(spec).await;
    world.until([3, 2, 3, 1]).await;
    world
}

/// P9 and P10
#[tokio::test(start_paused = true)]
async fn an_eviction_takes_one_disruption_and_the_next_one_waits() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    let answer = world.evict("web-0").await.unwrap();
    assert_eq!(answer.str_at("/status"), "Success");
    let refused = world.evict("web-1").await.unwrap_err();
    assert!(refused.is_too_many_requests(), "{refused}");
    let causes = &refused.status().unwrap().details.as_ref().unwrap().causes;
    assert_eq!(causes[0].reason, "DisruptionBudget");
    // The pod is being deleted, so that nobody has to remember it.
    world.until([2, 2, 3, 0]).await;
    assert!(world.status().await.get("disruptedPods").is_none());
    world.remove_deleted().await;
    world.until([2, 2, 2, 0]).await;
    let pod = world.pod("web-3", None).await;
    world.ready(&pod, true).await;
    world.until([3, 2, 3, 1]).await;
    world.evict("web-1").await.unwrap();
}

/// P11
#[tokio::test(start_paused = true)]
async fn an_evicted_pod_that_stays_is_told_of_and_counts_again() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    let budget = world
        .cluster
        .find(&crate::world::BUDGETS, "default/web")
        .await
        .unwrap();
    // As an eviction whose delete did not arrive.
    let now = world.cluster.env().now().to_string();
    let status = doc!({ "disruptionsAllowed": 0, "disruptedPods": { "web-0": now } });
    world.cluster.patch_status(&budget, status).await;
    world.until([2, 2, 3, 0]).await;
    world.pass(100).await;
    assert!(
        world
            .status()
            .await
            .at("/disruptedPods")
            .get("web-0")
            .is_some()
    );
    world.until([3, 2, 3, 1]).await;
    assert!(world.status().await.get("disruptedPods").is_none());
    let text = "Warning NotDeleted Pod was expected by PDB default/default to be deleted but it \
                wasn't";
    assert_eq!(world.events("web-0").await, [text]);
}

/// P12
#[tokio::test(start_paused = true)]
async fn a_pending_pod_is_evicted_whatever_the_budget_says() {
    let world = World::new().await;
    world.pod("web-0", None).await;
    world.budget(doc!({ "minAvailable": 1 })).await;
    world.until([0, 1, 1, 0]).await;
    world.evict("web-0").await.unwrap();
}

/// P13 and P14
#[tokio::test(start_paused = true)]
async fn an_unready_pod_goes_if_the_budget_is_met_or_says_so() {
    let world = World::new().await;
    let pods = world.pods("web", None, 2).await;
    world.ready(&pods[0], false).await;
    let budget = world.budget(doc!({ "minAvailable": 2 })).await;
    world.until([1, 2, 2, 0]).await;
    assert!(
        world
            .evict("web-0")
            .await
            .unwrap_err()
            .is_too_many_requests()
    );
    let edit = doc!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } });
    world.cluster.patch(&budget, edit).await;
    world.settle().await;
    world.evict("web-0").await.unwrap();
    world.until([1, 2, 2, 0]).await;
}

/// P15
#[tokio::test(start_paused = true)]
async fn an_unready_pod_of_a_budget_that_needs_nothing_takes_a_disruption() {
    let world = World::new().await;
    let pods = world.pods("web", None, 2).await;
    world.ready(&pods[0], false).await;
    world.budget(doc!({ "minAvailable": 0 })).await;
    world.until([1, 0, 2, 1]).await;
    world.evict("web-0").await.unwrap();
    assert_eq!(
        world.status().await.at("/disruptionsAllowed").as_i64(),
        Some(0)
    );
    world.until([1, 0, 2, 1]).await;
}

/// P16
#[tokio::test(start_paused = true)]
async fn a_pod_of_two_budgets_is_not_evicted() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    let second = crate::world::budget("second", doc!({ "minAvailable": 1 }));
    world.create(&second).await;
    world.settle().await;
    let refused = world.evict("web-0").await.unwrap_err();
    assert_eq!(refused.status().unwrap().code, 500);
}

/// P17
#[tokio::test(start_paused = true)]
async fn a_budget_that_was_just_edited_is_waited_for() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    world.running.stop().await;
    let budget = crate::world::budget("web", doc!({ "minAvailable": 1 }));
    let edit = doc!({ "spec": { "minAvailable": 1 } });
    world.cluster.patch(&budget, edit).await;
    assert!(
        world
            .evict("web-0")
            .await
            .unwrap_err()
            .is_too_many_requests()
    );
    let _running = crate::world::run(&world.cluster);
    world.until([3, 1, 3, 2]).await;
    world.evict("web-0").await.unwrap();
    world.evict("web-1").await.unwrap();
}

/// P18: windlass answers before it takes from the budget, which is kinder than kube-apiserver.
#[tokio::test(start_paused = true)]
async fn another_uid_is_a_conflict() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    let options = doc!({ "preconditions": { "uid": "another" } });
    let refused = world.evict_with("web-0", options).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    assert!(world.find_pod("web-0").await.is_some());
}

/// P19
#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let world = three_of_two(doc!({ "minAvailable": 2 })).await;
    let before = world.status().await;
    let options = doc!({ "dryRun": ["All"] });
    world.evict_with("web-0", options).await.unwrap();
    assert_eq!(world.status().await, before);
    let pod = world.find_pod("web-0").await.unwrap();
    assert!(!pod.meta().is_deleting() && condition(&pod, "DisruptionTarget").is_none());
}

/// P22
#[tokio::test(start_paused = true)]
async fn parallel_evictions_take_what_is_allowed() {
    let world = World::new().await;
    let (_, set) = world.deployment("web", 10).await;
    world.pods("web", Some(&set), 10).await;
    world.budget(doc!({ "maxUnavailable": 3 })).await;
    world.until([10, 7, 10, 3]).await;
    let names: Vec<String> = (0..10).map(|number| format!("web-{number}")).collect();
    let evictions = join_all(names.iter().map(|name| world.evict(name))).await;
    let done = evictions.iter().filter(|it| it.is_ok()).count();
    assert_eq!(done, 3, "{evictions:?}");
    world.until([7, 7, 10, 0]).await;
}
