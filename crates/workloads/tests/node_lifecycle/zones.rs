//! Many nodes at once: rates and zones.

use crate::world::{UNREACHABLE, World, no_execute, status};

/// The number of nodes with a taint that evicts.
async fn tainted(world: &World, names: &[&str]) -> usize {
    let mut count = 0;
    for name in names {
        count += usize::from(world.has_taint(name, UNREACHABLE, "NoExecute").await);
    }
    count
}

/// N11
#[tokio::test(start_paused = true)]
async fn nodes_of_a_zone_are_tainted_one_after_the_other() {
    let world = World::new().await;
    let (down, up) = (["a", "b"], ["c", "d", "e"]);
    for name in down.iter().chain(&up) {
        world.node(name).await;
    }
    world.live(&["a", "b", "c", "d", "e"], 20).await;
    let mut seen = Vec::new();
    for second in 0..90 {
        if second % 10 == 0 {
            for name in up {
                world.renew(name).await;
            }
        }
        world.pass(1).await;
        let now = tainted(&world, &down).await;
        if now > seen.len() {
            seen.push(second);
        }
    }
    let [first, second] = seen[..] else {
        panic!("tainted at {seen:?}");
    };
    assert!((9..=16).contains(&(second - first)), "{seen:?}");
}

/// N12
#[tokio::test(start_paused = true)]
async fn a_small_zone_that_is_mostly_down_gets_no_more_taints() {
    let world = World::new().await;
    let down = ["a", "b", "c"];
    for name in ["a", "b", "c", "d"] {
        world.node(name).await;
    }
    world.live(&["a", "b", "c", "d"], 20).await;
    world.live(&["d"], 300).await;
    for name in down {
        assert_eq!(status(&world.get(name).await, "Ready").unwrap(), "Unknown");
    }
    assert!(tainted(&world, &down).await <= 1);
}

/// N13 and N14
#[tokio::test(start_paused = true)]
async fn if_all_nodes_are_down_nobody_is_evicted() {
    let world = World::new().await;
    world.node("a").await;
    world.node("b").await;
    world.live(&["a", "b"], 20).await;
    world.live(&["b"], 70).await;
    assert_eq!(tainted(&world, &["a"]).await, 1);
    // Now the other one, too.
    world.pass(80).await;
    assert_eq!(tainted(&world, &["a", "b"]).await, 0);
    for name in ["a", "b"] {
        assert!(world.has_taint(name, UNREACHABLE, "NoSchedule").await);
    }
    world.pass(600).await;
    assert_eq!(tainted(&world, &["a", "b"]).await, 0);
    // One returns.
    world.post("b", "Ready", "True").await;
    world.live(&["b"], 70).await;
    assert_eq!(tainted(&world, &["a", "b"]).await, 1);
    assert!(world.taints("b").await.is_empty());
}

/// A zone of its own is not held up by another.
#[tokio::test(start_paused = true)]
async fn zones_have_rates_of_their_own() {
    let world = World::new().await;
    let zone =
        |name: &str| windlass_core::doc!({ "labels": { "topology.kubernetes.io/zone": name } });
    for (name, of) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")] {
        world.node_with(name, zone(of)).await;
    }
    world.live(&["a", "b", "c", "d"], 20).await;
    world.live(&["c", "d"], 70).await;
    assert_eq!(tainted(&world, &["a", "b"]).await, 2);
}

/// A taint that somebody else set evicts as well, and is not ours to remove.
#[tokio::test(start_paused = true)]
async fn other_taints_are_not_counted() {
    let world = World::new().await;
    world.node("a").await;
    world.taint("a", vec![no_execute("mine")]).await;
    world.live(&["a"], 30).await;
    assert_eq!(world.taints("a").await, ["mine:NoExecute"]);
}
