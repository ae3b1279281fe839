//! Every case on a real kube-apiserver, with this garbage collector in place of Go's.

use windlass_testing::Fault;

use crate::{
    cases::{self, PATIENCE, each_case, each_custom_case},
    lag::{SLOWNESS, slow_owners},
    real_cases::{Case, all_hold, named_cases, real_cluster},
    world::{World, collect},
};

const CASES: &[(&str, Case<World>)] = each_case!(named_cases);
const CUSTOM_CASES: &[(&str, Case<World>)] = each_custom_case!(named_cases);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_the_real_server() {
    let Some(cluster) = real_cluster(PATIENCE).await else {
        return;
    };
    let running = collect(&cluster);
    all_hold(CASES.iter().chain(CUSTOM_CASES), async |number| {
        World::new(cluster.clone(), &format!("case-{number}")).await
    })
    .await;
    running.stop().await;

    // Another collector does not see some owners; the first would do its work. What comes over a
    // wire cannot be held back, but asking for it can.
    let world = World::new(cluster, "slow-owners").await;
    let (_, running) = slow_owners(&world, Fault::Delay(SLOWNESS)).await;
    running.stop().await;
}
