//! What is written when a pod gets its devices.

use windlass_core::doc;
use windlass_placement::{claims::FINALIZER, driver::DRIVER};
use windlass_testing::Fault;

use crate::dynamic_resources::{stage::*, waiting::allocation_on};

async fn with_device(nodes: &[&str]) -> Stage {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    for node in nodes {
        stage.create(&bare_node(node)).await;
        stage.create(&slice(node, vec![device("d0")])).await;
    }
    stage
}

#[tokio::test(start_paused = true)]
async fn finalizer_devices_and_reservation_are_written_in_order() {
    let stage = with_device(&["n1"]).await;
    stage.create(&gpu_claim("c")).await;
    let created = stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.is_bound("a").await).await;
    let expected = [
        "PUT resourceclaims/c",
        "PUT resourceclaims/c/status",
        "POST pods/a/binding",
    ];
    assert_eq!(stage.calls(), expected);
    let claim = stage.claim("c").await;
    assert!(claim.meta().has_finalizer(FINALIZER));
    let consumer = doc!([{ "resource": "pods", "name": "a", "uid": (created.meta().uid_str()) }]);
    assert_eq!(*claim.at("/status/reservedFor"), consumer);
    let allocation = claim.at("/status/allocation");
    assert!(!allocation.str_at("/allocationTimestamp").is_empty());
    let bare = allocation.without("/allocationTimestamp").unwrap();
    assert_eq!(bare, allocation_on("n1", "d0"));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_is_there_is_not_written_again() {
    let stage = with_device(&["n1"]).await;
    stage
        .create(&gpu_claim("c").with_finalizer(FINALIZER))
        .await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(
        stage.calls(),
        ["PUT resourceclaims/c/status", "POST pods/a/binding"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_pod_only_adds_its_reservation() {
    let stage = with_device(&["n1", "n2"]).await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.is_bound("a").await).await;
    let before = stage.claim("c").await.at("/status/allocation").clone();
    stage.calls();
    stage.create(&pod("b", &["c"])).await;
    stage.until(async |s| s.is_bound("b").await).await;
    assert_eq!(
        stage.calls(),
        ["PUT resourceclaims/c/status", "POST pods/b/binding"]
    );
    assert_eq!(stage.node_of("a").await, stage.node_of("b").await);
    let claim = stage.claim("c").await;
    assert_eq!(*claim.at("/status/allocation"), before);
    assert_eq!(claim.at("/status/reservedFor").items().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_binding_takes_the_reservation_back_and_is_repeated() {
    let stage = with_device(&["n1"]).await;
    stage.create(&gpu_claim("c")).await;
    let mut failures = 1;
    stage.fault(move |call| {
        if call.path.ends_with("/binding") && failures > 0 {
            failures -= 1;
            return Fault::Refuse(500, "InternalError");
        }
        Fault::None
    });
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.is_bound("a").await).await;
    let calls = stage.calls();
    let writes: Vec<&str> = calls
        .iter()
        .map(String::as_str)
        .filter(|call| !call.ends_with("pods/a/status"))
        .collect();
    let expected = [
        "PUT resourceclaims/c",
        "PUT resourceclaims/c/status",
        "POST pods/a/binding",
        "PATCH resourceclaims/c/status",
        "PUT resourceclaims/c/status",
        "POST pods/a/binding",
    ];
    assert_eq!(writes, expected);
    assert_eq!(
        stage
            .claim("c")
            .await
            .at("/status/reservedFor")
            .items()
            .len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_pods_than_the_limit_share_a_claim() {
    let stage = with_device(&["n1"]).await;
    stage.create(&gpu_claim("c")).await;
    let names: Vec<String> = (0..266).map(|at| format!("p{at:03}")).collect();
    for name in &names {
        stage.create(&pod(name, &["c"])).await;
    }
    let bound = async |s: &Stage| {
        let pods = s.cluster.list_docs(&PODS, "default", "").await;
        let bound = pods
            .iter()
            .filter(|pod| !pod.str_at("/spec/nodeName").is_empty());
        bound
            .map(|pod| pod.meta().name().to_owned())
            .collect::<Vec<_>>()
    };
    stage.until(async |s| bound(s).await.len() == 256).await;
    stage.pass(30).await;
    let running = bound(&stage).await;
    assert_eq!(running.len(), 256);
    let waiting: Vec<&String> = names
        .iter()
        .filter(|name| !running.contains(name))
        .collect();
    for name in &waiting {
        let (reason, message) = stage.refusal(name).await.unwrap();
        assert_eq!(reason, "SchedulerError");
        assert!(
            message.contains("add reservation to claim default/c"),
            "{message}"
        );
    }
    // The claim controller takes the reservations of pods that are gone.
    stage.cluster.run_with("claims", |manager| {
        windlass_placement::claims::add_to(manager, &Default::default());
    });
    for name in running.iter().take(10) {
        stage.delete(&PODS, name).await;
    }
    stage.until(async |s| bound(s).await.len() == 256).await;
    for name in waiting {
        assert!(stage.is_bound(name).await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_node_with_the_better_alternative_wins() {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    for (node, kind) in [("n1", "small"), ("n2", "big"), ("n3", "small")] {
        stage.create(&bare_node(node)).await;
        stage.create(&slice(node, vec![device(kind)])).await;
    }
    let selects = |kind: &str| {
        let text = format!("device.attributes['{DRIVER}'].kind == '{kind}'");
        doc!([{ "cel": { "expression": text } }])
    };
    let list = doc!({ "requests": [{ "name": "gpu", "firstAvailable": [
        { "name": "big", "deviceClassName": DRIVER, "selectors": (selects("big")) },
        { "name": "small", "deviceClassName": DRIVER, "selectors": (selects("small")) }
    ] }] });
    stage.create(&claim("c", list)).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(stage.node_of("a").await, "n2");
    let claim = stage.claim("c").await;
    assert_eq!(
        claim.str_at("/status/allocation/devices/results/0/request"),
        "gpu/big"
    );
}

/// A claim for one of three kinds of devices, the first the best.
fn choosy_claim(name: &str, kinds: [&str; 3]) -> windlass_core::Doc {
    let subs = kinds.iter().enumerate().map(|(at, kind)| {
        let text = format!("device.attributes['{DRIVER}'].kind == '{kind}'");
        doc!({
            "name": (format!("s{at}")), "deviceClassName": DRIVER,
            "selectors": [{ "cel": { "expression": text } }]
        })
    });
    let subs: Vec<_> = subs.collect();
    claim(
        name,
        doc!({ "requests": [{ "name": "gpu", "firstAvailable": subs }] }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_alternatives_of_all_claims_count_together() {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    // What the two claims get: second and second, first and second, first and third.
    let nodes = [("n1", "b", "y"), ("n2", "a", "y"), ("n3", "a", "z")];
    for (node, first, second) in nodes {
        stage.create(&bare_node(node)).await;
        let devices = vec![device(first), device(second)];
        stage.create(&slice(node, devices)).await;
    }
    stage.create(&choosy_claim("c", ["a", "b", "c"])).await;
    stage.create(&choosy_claim("d", ["x", "y", "z"])).await;
    stage.create(&pod("p", &["c", "d"])).await;
    stage.until(async |s| s.is_bound("p").await).await;
    assert_eq!(stage.node_of("p").await, "n2");
}

#[tokio::test(start_paused = true)]
async fn alternatives_are_weighed_beside_a_claim_that_has_its_devices() {
    let stage = with_device(&["n1", "n2"]).await;
    stage
        .create(&gpu_claim("old").with_finalizer(FINALIZER))
        .await;
    let status = doc!({ "allocation": (allocation_on("n2", "d0")) });
    stage.patch_status(&CLAIMS, "old", status).await;
    let more = slice("n2", vec![device("d0"), device("b")]);
    stage.delete(&SLICES, "slice-n2").await;
    stage.create(&more).await;
    stage.create(&choosy_claim("c", ["a", "b", "c"])).await;
    stage.create(&pod("p", &["old", "c"])).await;
    stage.until(async |s| s.is_bound("p").await).await;
    assert_eq!(stage.node_of("p").await, "n2");
    assert_eq!(stage.owners().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn half_done_bindings_of_an_earlier_scheduler_are_finished() {
    let stage = with_device(&["n1", "n2"]).await;
    stage
        .create(&gpu_claim("finalized").with_finalizer(FINALIZER))
        .await;
    stage
        .create(&gpu_claim("allocated").with_finalizer(FINALIZER))
        .await;
    let status = doc!({ "allocation": (allocation_on("n2", "d0")) });
    stage.patch_status(&CLAIMS, "allocated", status).await;
    stage.schedule();
    stage.create(&pod("a", &["finalized"])).await;
    stage.create(&pod("b", &["allocated"])).await;
    stage
        .until(async |s| s.is_bound("a").await && s.is_bound("b").await)
        .await;
    assert_eq!(
        (&*stage.node_of("a").await, &*stage.node_of("b").await),
        ("n1", "n2")
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_allocated_elsewhere_meanwhile_is_tried_again() {
    let stage = with_device(&["n1", "n2"]).await;
    stage.create(&gpu_claim("c")).await;
    // The first write is held back while somebody else allocates.
    let mut is_first = true;
    stage.fault(move |call| {
        if call.method == "PUT" && std::mem::take(&mut is_first) {
            return Fault::Delay(std::time::Duration::from_secs(5));
        }
        Fault::None
    });
    stage.create(&pod("a", &["c"])).await;
    stage.pass(1).await;
    let status = doc!({ "allocation": (allocation_on("n2", "d0")) });
    stage.patch_status(&CLAIMS, "c", status).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (reason, message) = stage.refusal("a").await.unwrap();
    assert_eq!(reason, "SchedulerError");
    let text = "claim default/c got allocated elsewhere in the meantime";
    assert!(message.contains(text), "{message}");
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(stage.node_of("a").await, "n2");
    assert_eq!(stage.owners().await.len(), 1);
}
