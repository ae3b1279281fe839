//! A cache that lags behind.

use std::time::Duration;

use windlass_client::RestOptions;
use windlass_core::{Doc, doc, merge_patch};
use windlass_runtime::{Manager, Shutdown};
use windlass_testing::{ModelServer, TokioClock};
use windlass_workloads::replicaset::{self, Options};

use crate::replicaset::stage::replica_set;

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const MINUTE: Duration = Duration::from_secs(60);

/// Runs the controller on a server whose watch of pods lags.
fn run(server: &ModelServer, lag: Duration, options: &Options) -> Shutdown {
    server.lag("pods", lag);
    let shutdown = Shutdown::new();
    let manager = Manager::builder("lag")
        .transport(server.transport(), RestOptions::default())
        .env(TokioClock::new().env(2))
        .shutdown(shutdown.clone())
        .build()
        .unwrap();
    replicaset::add_to(&manager, options);
    tokio::spawn(async move { manager.run().await });
    shutdown
}

fn scale(server: &ModelServer, replicas: i64) {
    let set = server.find("replicasets", "default/web").unwrap();
    let set: Doc = set.with("/spec/replicas", replicas).unwrap();
    server.update(&format!("{SETS}/web"), &set);
}

/// The most pods there were at any time within an hour of looking every second.
async fn most_pods(server: &ModelServer) -> usize {
    let mut most = 0;
    for _ in 0..3600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        most = most.max(server.objects("pods").len());
    }
    most
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_for_ten_minutes_makes_no_pod_too_many() {
    let server = ModelServer::new(TokioClock::new().env(1));
    server.create(SETS, &replica_set("web", 3));
    let _running = run(&server, 10 * MINUTE, &Options::default());
    assert_eq!(most_pods(&server).await, 3);
    scale(&server, 5);
    assert_eq!(most_pods(&server).await, 5);
    scale(&server, 2);
    assert_eq!(most_pods(&server).await, 2);
    assert_eq!(server.objects("pods").len(), 2);
}

/// Pods are seen one by one while the set is looked at again and again: a look that comes before
/// the last of them must not take it for missing.
#[tokio::test(start_paused = true)]
async fn pods_that_arrive_during_syncs_are_not_made_again() {
    let options = Options::default();
    for lag in [0, 1, 3, 20] {
        let server = ModelServer::new(TokioClock::new().env(lag));
        server.create(SETS, &replica_set("web", 0));
        let _running = run(&server, Duration::from_millis(lag), &options);
        for round in 1..200 {
            let set = server.find("replicasets", "default/web").unwrap();
            let wanted = (round / 10).min(16);
            let change = doc!({
                "metadata": { "annotations": { "round": (round.to_string()) } },
                "spec": { "replicas": wanted }
            });
            server.update(&format!("{SETS}/web"), &merge_patch(&set, &change));
            tokio::time::sleep(Duration::from_millis(1)).await;
            let pods = server.objects("pods").len();
            assert!(pods <= wanted, "{pods} pods in round {round}");
        }
        assert_eq!(most_pods(&server).await, 16);
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_guard_a_short_lag_makes_too_many_pods() {
    let options = Options {
        waits_for_caches: false,
        ..Options::default()
    };
    let server = ModelServer::new(TokioClock::new().env(1));
    server.create(SETS, &replica_set("web", 3));
    let _running = run(&server, Duration::from_secs(1), &options);
    assert!(most_pods(&server).await > 3);
}
