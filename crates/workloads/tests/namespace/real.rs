//! Every case on a real kube-apiserver, with this namespace controller in place of Go's.

use std::time::Duration;

use crate::{
    cases::{self, each_case},
    real_cases::{Case, all_hold, named_cases, real_cluster},
    world::{World, control},
};

/// How long a condition may take on a server whose clock is real.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a hundred namespaces may take there. A server that is not busy with other things needs
/// far less.
const PATIENCE_FOR_MANY: Duration = Duration::from_secs(600);

const CASES: &[(&str, Case<World>)] = each_case!(named_cases);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_on_the_real_server() {
    let Some(cluster) = real_cluster(PATIENCE).await else {
        return;
    };
    let running = control(&cluster);
    all_hold(CASES, async |number| {
        World::new(cluster.clone(), &format!("case-{number}")).await
    })
    .await;
    cases::a_hundred_namespaces_go_together(&cluster, PATIENCE_FOR_MANY).await;
    running.stop().await;
}
