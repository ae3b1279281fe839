//! Every case on the embedded server, on virtual time, and what needs virtual time.

use std::time::Duration;

use tokio::time::Instant;
use windlass_testing::Cluster;

use crate::{
    cases::{self, each_case},
    world::{World, config_map, control},
};

macro_rules! on_the_embedded_server {
    ($($case:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                let world = World::embedded().await;
                let running = control(&world.cluster);
                cases::$case(&world).await;
                running.stop().await;
            }
        )*
    };
}

each_case!(on_the_embedded_server);

#[tokio::test(start_paused = true)]
async fn content_stays_until_every_server_knows_of_the_deletion() {
    let world = World::embedded().await;
    control(&world.cluster);
    world.create(config_map("map")).await;
    world.cluster.pass(Duration::from_secs(1)).await;
    let deleted = Instant::now();
    world.delete().await;
    world.until_gone().await;
    let after = deleted.elapsed();
    assert!(after >= Duration::from_secs(5), "{after:?}");
    assert!(after < Duration::from_secs(6), "{after:?}");
}

/// Upstream's bound for its test of a hundred namespaces.
const TIME_FOR_MANY: Duration = Duration::from_secs(150);

#[tokio::test(start_paused = true)]
async fn a_hundred_namespaces_go_together() {
    let cluster = Cluster::start().await;
    control(&cluster);
    cases::a_hundred_namespaces_go_together(&cluster, TIME_FOR_MANY).await;
}
