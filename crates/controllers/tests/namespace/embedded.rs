//! Every case on the embedded server, on virtual time, and what needs virtual time.

use std::time::Duration;

use tokio::time::Instant;
use windlass_client::Propagation;
use windlass_testing::Cluster;

use crate::{
    cases::{self, each_case},
    world::{NAMESPACES, World, config_map, control, namespace},
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

#[tokio::test(start_paused = true)]
async fn a_hundred_namespaces_go_together() {
    let cluster = Cluster::start().await;
    control(&cluster);
    let mut all = Vec::new();
    for number in 0..100 {
        let created = cluster
            .create_doc(&namespace(&format!("ns-{number}")))
            .await;
        let map = config_map("map").with("/metadata/namespace", created.meta().name());
        cluster.create_doc(&map.unwrap()).await;
        all.push(created);
    }
    for namespace in &all {
        cluster.delete(namespace, Propagation::Background).await;
    }
    let is_left = |name: &str| name.starts_with("ns-");
    let left = async |cluster: &Cluster| {
        let left = cluster.list_docs(&NAMESPACES, "", "").await;
        left.iter().filter(|it| is_left(it.meta().name())).count()
    };
    cluster
        .until_within(Duration::from_secs(150), async |cluster| {
            left(cluster).await <= 10
        })
        .await;
    cluster
        .until(async |cluster| left(cluster).await == 0)
        .await;
}
