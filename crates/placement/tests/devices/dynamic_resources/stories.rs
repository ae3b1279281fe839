//! Whole stories.

use std::collections::BTreeSet;

use windlass_core::doc;
use windlass_placement::driver::DRIVER;

use crate::dynamic_resources::stage::*;

#[tokio::test(start_paused = true)]
async fn a_third_pod_waits_until_one_of_two_devices_is_free() {
    let stage = Stage::with_devices(1, 2).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    for name in ["a", "b", "c"] {
        stage.create(&pod(name, &["@t"])).await;
        stage.pass(2).await;
    }
    assert_eq!(stage.in_phase("Running").await, ["a", "b"]);
    let (reason, message) = stage.refusal("c").await.unwrap();
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, \
         preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    );
    assert_eq!(stage.events("FailedScheduling").await, [message]);
    let namespace = stage.claims().await;
    let waiting = namespace
        .iter()
        .find(|claim| claim.at("/status/allocation").is_null());
    let waiting = waiting.unwrap().meta().name().to_owned();
    assert_eq!(
        stage.events("DevicesUnavailable").await,
        [format!(
            "node n0: claim default/{waiting}, request gpu needs 1 device, 0 free, 2 in use; no \
             device is free"
        )]
    );

    stage.delete(&PODS, "a").await;
    stage
        .until(async |s| s.in_phase("Running").await == ["b", "c"])
        .await;
    assert_eq!(stage.owners().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_finished_pod_makes_room_and_its_claim_goes() {
    let stage = Stage::with_devices(1, 1).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    stage.create(&pod("a", &["@t"])).await;
    stage
        .until(async |s| s.in_phase("Running").await == ["a"])
        .await;
    stage.create(&pod("b", &["@t"])).await;
    stage.pass(5).await;
    assert_eq!(stage.in_phase("Pending").await, ["b"]);
    stage.delete(&PODS, "a").await;
    stage
        .until(async |s| s.in_phase("Running").await == ["b"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn every_device_of_every_node_is_used_once() {
    let stage = Stage::with_devices(8, 100).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    for at in 0..800 {
        stage.create(&pod(&format!("p{at:03}"), &["@t"])).await;
    }
    stage
        .until(async |s| s.in_phase("Running").await.len() == 800)
        .await;
    assert_eq!(stage.owners().await.len(), 800);
}

#[tokio::test(start_paused = true)]
async fn one_device_per_node_means_one_pod_per_node() {
    let stage = Stage::with_devices(5, 1).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    let names: Vec<String> = (0..5).map(|at| format!("p{at}")).collect();
    for name in &names {
        stage.create(&pod(name, &["@t"])).await;
    }
    stage
        .until(async |s| s.in_phase("Running").await.len() == 5)
        .await;
    let mut nodes = BTreeSet::new();
    for name in &names {
        nodes.insert(stage.node_of(name).await);
    }
    assert_eq!(nodes.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn three_pods_share_one_claim_on_its_node() {
    let stage = Stage::with_devices(3, 1).await;
    stage.create(&gpu_claim("shared")).await;
    for name in ["a", "b", "c"] {
        stage.create(&pod(name, &["shared"])).await;
    }
    stage
        .until(async |s| s.in_phase("Running").await.len() == 3)
        .await;
    let node = stage.node_of("a").await;
    assert_eq!(
        (stage.node_of("b").await, stage.node_of("c").await),
        (node.clone(), node)
    );
    assert_eq!(
        stage
            .claim("shared")
            .await
            .at("/status/reservedFor")
            .items()
            .len(),
        3
    );
    for name in ["a", "b", "c"] {
        stage.delete(&PODS, name).await;
    }
    stage
        .until(async |s| s.claim("shared").await.at("/status/allocation").is_null())
        .await;
    assert_eq!(stage.claim("shared").await.meta().finalizers().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_devices_and_one_without_meet_on_one_node() {
    let stage = Stage::with_devices(3, 2).await;
    stage.create(&gpu_claim("old")).await;
    stage.create(&pod("first", &["old"])).await;
    stage
        .until(async |s| s.in_phase("Running").await.len() == 1)
        .await;
    stage.create(&template("t", exactly(DRIVER))).await;
    stage.create(&pod("second", &["old", "@t"])).await;
    stage
        .until(async |s| s.in_phase("Running").await.len() == 2)
        .await;
    assert_eq!(stage.node_of("first").await, stage.node_of("second").await);
    assert_eq!(stage.owners().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_driver_reports_prepared_devices_and_takes_slices_back() {
    let stage = Stage::with_devices(2, 1).await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage
        .until(async |s| !s.claim("c").await.at("/status/devices").items().is_empty())
        .await;
    let devices = stage.claim("c").await.at("/status/devices").clone();
    assert_eq!(devices.str_at("/0/conditions/0/type"), "Ready");
    assert_eq!(devices.str_at("/0/device"), "gpu-0");
    stage.delete(&PODS, "a").await;
    stage
        .until(async |s| s.claim("c").await.at("/status/devices").items().is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_chooses_devices_by_expression_and_bus() {
    let stage = Stage::with_devices(1, 8).await;
    let devices = doc!({
        "requests": [
            { "name": "big", "exactly": {
                "deviceClassName": DRIVER,
                "selectors": [{ "cel": { "expression":
                    "device.capacity['gpu.windlass.dev'].memory.compareTo(quantity('80Gi')) >= 0"
                } }]
            } },
            { "name": "other", "exactly": { "deviceClassName": DRIVER } }
        ],
        "constraints": [{ "matchAttribute": "gpu.windlass.dev/pcieRoot" }]
    });
    stage.create(&claim("c", devices)).await;
    stage.create(&pod("a", &["c"])).await;
    stage
        .until(async |s| s.in_phase("Running").await.len() == 1)
        .await;
    let results = stage
        .claim("c")
        .await
        .at("/status/allocation/devices/results")
        .clone();
    assert_eq!(
        (results.str_at("/0/device"), results.str_at("/1/device")),
        ("gpu-1", "gpu-0")
    );
}

#[tokio::test(start_paused = true)]
async fn containers_that_prepare_a_pod_use_its_devices_too() {
    let stage = Stage::with_devices(1, 1).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    let uses = |name: &str| doc!([{ "name": name, "image": "i", "resources": { "claims": [{ "name": "e0" }] } }]);
    let pod = pod("a", &["@t"])
        .with("/spec/initContainers", uses("first"))
        .and_then(|pod| pod.with("/spec/containers", uses("c")));
    stage.create(&pod.unwrap()).await;
    stage
        .until(async |s| s.in_phase("Running").await == ["a"])
        .await;
    assert_eq!(stage.owners().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_its_claims_and_running_pods() {
    let stage = Stage::with_devices(1, 2).await;
    stage.cluster.run_with("namespaces", |manager| {
        windlass_workloads::namespace::add_to(manager, &Default::default());
    });
    let namespace = doc!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" }
    });
    stage.create(&namespace).await;
    let moved = |object: windlass_core::Doc| object.with("/metadata/namespace", "shop").unwrap();
    stage.create(&moved(template("t", exactly(DRIVER)))).await;
    stage.create(&moved(gpu_claim("own"))).await;
    stage.create(&moved(pod("a", &["@t"]))).await;
    stage.create(&moved(pod("b", &["own"]))).await;
    let running = async |s: &Stage| {
        let pods = s.cluster.list_docs(&PODS, "shop", "").await;
        let running = pods
            .iter()
            .filter(|pod| pod.str_at("/status/phase") == "Running");
        running.count()
    };
    stage.until(async |s| running(s).await == 2).await;
    stage.delete(&NAMESPACES, "shop").await;
    stage
        .until(async |s| s.cluster.find(&NAMESPACES, "shop").await.is_none())
        .await;
    assert_eq!(stage.cluster.list_docs(&CLAIMS, "", "").await.len(), 0);
}
