//! The same scripts with kube-controller-manager's controllers of DaemonSets, StatefulSets and mirrored
//! Endpoints, and with ours, end in the same objects and events.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

mod daemonsets;
mod mirroring;
mod picture;
mod scene;
mod statefulsets;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use windlass_client::Config;
use windlass_envtest::{ControlPlane, Options};
use windlass_runtime::Manager;
use windlass_testing::Cluster;
use windlass_workloads::{daemonset, endpointslice_mirroring, statefulset};

use scene::{PATIENCE, Scene, Script};

/// The end of every script.
async fn play(cluster: &Cluster, scripts: &[Script]) -> BTreeMap<&'static str, String> {
    let plays = scripts.iter().map(async |script| {
        let scene = Scene::new(cluster, script.name).await;
        (script.play)(&scene).await;
        scene.settle().await;
        (script.name, scene.picture().await)
    });
    join_all(plays).await.into_iter().collect()
}

async fn cluster_of(server: &ControlPlane) -> Cluster {
    let config = Config::from_file(server.kubeconfig()).await.unwrap();
    let cluster = Cluster::builder().existing(config).patience(PATIENCE);
    cluster.start().await
}

/// Plays scripts with a controller of ours and with theirs of the same name.
async fn end_alike(name: &str, scripts: &[Script], add: fn(&Manager)) {
    if windlass_envtest::real_server().is_none() {
        return;
    }
    let bare = ControlPlane::start(&Options::default()).unwrap();
    let cluster = cluster_of(&bare).await;
    let running = cluster.run_with("sets", add);
    let ours = play(&cluster, scripts).await;
    running.stop().await;
    drop(bare);
    let options = Options::default()
        .controllers([name])
        .controller_manager_flag("--kube-api-qps=1000")
        .controller_manager_flag("--kube-api-burst=1000");
    let server = ControlPlane::start(&options).unwrap();
    let theirs = play(&cluster_of(&server).await, scripts).await;
    assert_eq!((ours.len(), theirs.len()), (scripts.len(), scripts.len()));
    let mut different = Vec::new();
    for (name, theirs) in &theirs {
        if ours[name] != *theirs {
            different.push(format!("{name}\ntheirs:\n{theirs}\nours:\n{}", ours[name]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[tokio::test]
async fn stateful_sets_end_alike_with_their_controller_and_with_ours() {
    end_alike(statefulset::NAME, statefulsets::SCRIPTS, |manager| {
        statefulset::add_to(manager, &statefulset::Options::default());
    })
    .await;
}

#[tokio::test]
async fn daemon_sets_end_alike_with_their_controller_and_with_ours() {
    end_alike(daemonset::NAME, daemonsets::SCRIPTS, |manager| {
        daemonset::add_to(manager, &daemonset::Options::default());
    })
    .await;
}

#[tokio::test]
async fn endpoints_are_mirrored_alike_by_their_controller_and_by_ours() {
    end_alike(
        endpointslice_mirroring::NAME,
        mirroring::SCRIPTS,
        |manager| {
            let options = endpointslice_mirroring::Options::default();
            endpointslice_mirroring::add_to(manager, &options);
        },
    )
    .await;
}
