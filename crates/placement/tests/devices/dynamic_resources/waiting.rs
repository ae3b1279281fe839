//! Which pods wait, why, and what wakes them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use windlass_core::{Clock, Doc, Env, MicroTime, doc};
use windlass_placement::{
    driver::DRIVER,
    dynamic_resources::Options,
    scheduler::{ClusterEvent, Plugin, Refusal},
};

use windlass_testing::Fault;

use crate::dynamic_resources::stage::*;

async fn with_node() -> Stage {
    let stage = Stage::bare().await;
    stage.create(&bare_node("n1")).await;
    stage.create(&class(DRIVER, &[])).await;
    stage
}

/// The reference to a pod that a claim was made for.
fn owner(pod: &Doc) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod", "name": (pod.meta().name()),
        "uid": (pod.meta().uid_str()), "controller": true
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_claims_is_no_concern() {
    let stage = with_node().await;
    let plain = pod("a", &[]);
    assert!(matches!(stage.plugin().pre_filter(&plain), Ok(None)));
    stage.create(&plain).await;
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_claim_is_missing_is_not_tried() {
    let stage = with_node().await;
    stage.create(&slice("n1", vec![device("d0")])).await;
    stage.create(&pod("a", &["c"])).await;
    stage.pass(30).await;
    assert_eq!(stage.refusal("a").await, None);
    assert_eq!(stage.events("FailedScheduling").await, Vec::<String>::new());
    stage.create(&gpu_claim("c")).await;
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_claim_is_not_made_yet_is_not_tried() {
    let stage = with_node().await;
    stage.create(&slice("n1", vec![device("d0")])).await;
    let created = stage.create(&pod("a", &["@t"])).await;
    stage.pass(30).await;
    assert_eq!(stage.refusal("a").await, None);
    let made = gpu_claim("made").with("/metadata/ownerReferences", vec![owner(&created)]);
    stage.create(&made.unwrap()).await;
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "e0", "resourceClaimName": "made" }
    ] });
    stage.patch_status(&PODS, "a", status).await;
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_seen_long_after_its_pod_wakes_it() {
    let stage = with_node().await;
    stage.fault(
        |call| match call.is_watch && call.path.ends_with("/resourceclaims") {
            true => Fault::Lag(Duration::from_secs(5)),
            false => Fault::None,
        },
    );
    stage.schedule();
    stage.create(&slice("n1", vec![device("d0")])).await;
    let created = stage.create(&pod("a", &["@t"])).await;
    stage.pass(10).await;
    let made = gpu_claim("made").with("/metadata/ownerReferences", vec![owner(&created)]);
    stage.create(&made.unwrap()).await;
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "e0", "resourceClaimName": "made" }
    ] });
    stage.patch_status(&PODS, "a", status).await;
    stage.pass(3).await;
    assert!(!stage.is_bound("a").await);
    // Long before pods are tried again for no other reason.
    stage.pass(12).await;
    assert!(stage.is_bound("a").await);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_needs_no_claim_keeps_no_pod_waiting() {
    let stage = with_node().await;
    stage.create(&pod("a", &["@never"])).await;
    let status = doc!({ "resourceClaimStatuses": [{ "name": "e0" }] });
    stage.patch_status(&PODS, "a", status).await;
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(stage.claims().await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_goes_or_is_not_the_pods_own_is_named() {
    let stage = with_node().await;
    stage
        .create(&gpu_claim("going").with_finalizer("example.com/hold"))
        .await;
    stage.delete(&CLAIMS, "going").await;
    stage.create(&gpu_claim("foreign")).await;
    stage.pass(1).await;
    let refused = |pod: &Doc| stage.plugin().pre_enqueue(pod).unwrap_err();
    let text = "resourceclaim \"going\" is being deleted";
    assert_eq!(
        refused(&pod("a", &["going"])),
        Refusal::Unresolvable(text.to_owned())
    );
    let status = doc!({ "resourceClaimStatuses": [
        { "name": "e0", "resourceClaimName": "foreign" }
    ] });
    let foreign = pod("a", &["@t"]).with("/status", status).unwrap();
    let text = "ResourceClaim default/foreign was not created for Pod default/a (Pod is not owner)";
    assert_eq!(refused(&foreign), Refusal::Unresolvable(text.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_class_that_does_not_exist_is_named_and_waited_for() {
    let stage = with_node().await;
    stage.create(&slice("n1", vec![device("d0")])).await;
    stage.create(&claim("c", exactly("later"))).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (_, message) = stage.refusal("a").await.unwrap();
    let text = "0/1 nodes are available: request gpu: device class later does not exist.";
    assert!(message.starts_with(text), "{message}");
    stage.create(&class("later", &[])).await;
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_slices() {
    let stage = with_node().await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (reason, message) = stage.refusal("a").await.unwrap();
    assert_eq!(reason, "Unschedulable");
    assert!(
        message.contains("1 cannot allocate all claims."),
        "{message}"
    );
    stage.create(&slice("n1", vec![device("d0")])).await;
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_pool_is_counted_apart() {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    for at in 0..8 {
        stage.create(&bare_node(&format!("n{at}"))).await;
    }
    // Two slices of one pool, on one node, with the same device.
    for at in 0..2 {
        let part = slice("n0", vec![device("d0")])
            .with("/metadata/name", format!("part-{at}"))
            .and_then(|slice| slice.with("/spec/pool/resourceSliceCount", 2));
        stage.create(&part.unwrap()).await;
    }
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (_, message) = stage.refusal("a").await.unwrap();
    assert_eq!(
        message,
        "0/8 nodes are available: 1 invalid resource pools were encountered, 7 cannot allocate \
         all claims. still not schedulable, preemption: 0/8 nodes are available: 8 Preemption is \
         not helpful for scheduling."
    );
}

#[tokio::test(start_paused = true)]
async fn an_expression_that_fails_on_one_node_fails_the_pod() {
    let stage = Stage::bare().await;
    let text = "device.attributes['gpu.windlass.dev'].absent == 'x'";
    stage.create(&class(DRIVER, &[text])).await;
    for node in ["n1", "n2"] {
        stage.create(&bare_node(node)).await;
    }
    stage.create(&slice("n1", vec![device("d0")])).await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (reason, message) = stage.refusal("a").await.unwrap();
    assert_eq!(reason, "SchedulerError");
    let text = "class gpu.windlass.dev: selector #0: CEL runtime error: no such key: absent";
    assert!(message.contains(text), "{message}");
    assert!(!stage.is_bound("a").await);
}

/// A clock on which every look takes a minute.
#[derive(Default)]
struct SlowClock(AtomicU64);

impl Clock for SlowClock {
    fn elapsed(&self) -> Duration {
        Duration::from_secs(60 * self.0.fetch_add(1, SeqCst))
    }

    fn wall(&self) -> MicroTime {
        MicroTime::from_unix_micros(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_takes_too_long_is_an_error_and_is_repeated() {
    let stage = with_node().await;
    let env = Env::seeded_with(1, Arc::new(SlowClock::default()));
    stage.schedule_with(env.clone(), &Options::default());
    stage.create(&slice("n1", vec![device("d0")])).await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (reason, message) = stage.refusal("a").await.unwrap();
    assert_eq!(reason, "SchedulerError");
    let text = "node n1: timed out trying to allocate devices";
    assert!(message.contains(text), "{message}");
    // Without a limit it takes as long as it takes.
    let patient = Options {
        filter_timeout: Duration::ZERO,
        ..Options::default()
    };
    stage.schedule_with(env, &patient);
    stage.until(async |s| s.is_bound("a").await).await;
}

#[tokio::test(start_paused = true)]
async fn devices_elsewhere_are_given_up_if_nobody_uses_them() {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    for node in ["n1", "n2"] {
        stage.create(&bare_node(node)).await;
        stage.create(&slice(node, vec![device("d0")])).await;
    }
    stage.create(&gpu_claim("c")).await;
    stage
        .patch_status(
            &CLAIMS,
            "c",
            doc!({ "allocation": (allocation_on("n2", "d0")) }),
        )
        .await;
    let pinned = pod("a", &["c"]);
    let selector = doc!({ "kubernetes.io/hostname": "n1" });
    let pinned = pinned.with("/spec/nodeSelector", selector).unwrap();
    stage.create(&pinned).await;
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(stage.node_of("a").await, "n1");
    assert_eq!(stage.owners().await.keys().collect::<Vec<_>>(), ["n1/d0"]);
}

#[tokio::test(start_paused = true)]
async fn devices_elsewhere_that_somebody_uses_block_a_pod() {
    let stage = Stage::bare().await;
    stage.create(&class(DRIVER, &[])).await;
    for node in ["n1", "n2"] {
        stage.create(&bare_node(node)).await;
    }
    stage.create(&gpu_claim("c")).await;
    let consumer = doc!([{ "resource": "pods", "name": "other", "uid": "u" }]);
    let status = doc!({ "allocation": (allocation_on("n2", "d0")), "reservedFor": consumer });
    stage.patch_status(&CLAIMS, "c", status).await;
    let selector = doc!({ "kubernetes.io/hostname": "n1" });
    stage
        .create(
            &pod("a", &["c"])
                .with("/spec/nodeSelector", selector)
                .unwrap(),
        )
        .await;
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (_, message) = stage.refusal("a").await.unwrap();
    assert!(
        message.contains("1 resourceclaim not available on the node"),
        "{message}"
    );
    stage.pass(60).await;
    assert!(!stage.is_bound("a").await);
    assert_eq!(stage.owners().await.len(), 1);
}

pub(crate) fn allocation_on(node: &str, device: &str) -> Doc {
    let result = doc!({ "request": "gpu", "driver": DRIVER, "pool": node, "device": device });
    doc!({
        "devices": { "results": [result] },
        "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [
            { "key": "metadata.name", "operator": "In", "values": [node] }
        ] }] }
    })
}

#[tokio::test(start_paused = true)]
async fn only_what_could_help_wakes_a_pod() {
    let stage = with_node().await;
    stage.create(&gpu_claim("own")).await;
    stage.create(&gpu_claim("other")).await;
    stage.pass(1).await;
    let (own, other) = (stage.claim("own").await, stage.claim("other").await);
    let waiting = pod("a", &["own"]);
    let wakes = |resource: &'static str, old: Option<&Doc>, new: Option<&Doc>| {
        let (old, new) = (old.cloned(), new.cloned());
        let event = ClusterEvent::Other { resource, old, new };
        stage.plugin().wakes(&waiting, &event)
    };
    let with_devices = |claim: &Doc| {
        let allocation = allocation_on("n1", "d0");
        claim.with("/status/allocation", allocation).unwrap()
    };
    let claims = "resourceclaims";
    assert!(wakes(claims, None, Some(&own)), "its own claim has come");
    assert!(!wakes(claims, None, Some(&other)), "another claim has come");
    let finalized = own.with_finalizer("f");
    assert!(!wakes(claims, Some(&own), Some(&finalized)), "a finalizer");
    assert!(
        wakes(claims, Some(&own), Some(&with_devices(&own))),
        "its own status"
    );
    let taken = with_devices(&other);
    assert!(
        !wakes(claims, Some(&other), Some(&taken)),
        "others take devices"
    );
    assert!(
        wakes(claims, Some(&taken), Some(&other)),
        "others give devices back"
    );
    assert!(
        wakes(claims, Some(&taken), None),
        "a claim with devices is gone"
    );
    assert!(
        !wakes(claims, Some(&other), None),
        "a claim without devices is gone"
    );
    let slice = slice("n1", vec![]);
    assert!(wakes("resourceslices", None, Some(&slice)));
    assert!(wakes("deviceclasses", Some(&slice), Some(&slice)));
    assert!(!wakes("resourceslices", Some(&slice), None));
    let unresolved = pod("b", &["absent"]);
    let event = ClusterEvent::Other {
        resource: claims,
        old: Some(taken),
        new: None,
    };
    assert!(
        !stage.plugin().wakes(&unresolved, &event),
        "its claims are not there"
    );
}
