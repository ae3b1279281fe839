//! What happens between the decision and the first write.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use tokio::sync::Semaphore;
use windlass_core::{Doc, doc};
use windlass_placement::{
    driver::DRIVER,
    scheduler::{ClusterEvent, NodeView, Plugin, PluginFuture, PodCycle, Refusal, Verdict},
};

use crate::dynamic_resources::{stage::*, waiting::allocation_on};

/// Holds every pod that has its devices reserved until it is let go.
#[derive(Clone)]
struct Hold {
    gate: Arc<Semaphore>,
    held: Arc<AtomicUsize>,
}

impl Hold {
    fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            held: Arc::default(),
        }
    }

    fn let_go(&self, pods: usize) {
        self.gate.add_permits(pods);
    }

    async fn until_held(&self, stage: &Stage, pods: usize) {
        stage.until(async |_| self.held.load(SeqCst) == pods).await;
    }
}

impl Plugin for Hold {
    fn name(&self) -> &'static str {
        "Hold"
    }

    fn pre_filter(&self, _pod: &Doc) -> Result<Option<Box<dyn PodCycle>>, Refusal> {
        Ok(Some(Box::new(self.clone())))
    }

    fn wakes(&self, _pod: &Doc, _event: &ClusterEvent) -> bool {
        false
    }
}

impl PodCycle for Hold {
    fn filter(&mut self, _node: &NodeView) -> Verdict {
        Ok(())
    }

    fn reserve(&mut self, _node: &NodeView) -> Verdict {
        Ok(())
    }

    fn pre_bind(&mut self) -> PluginFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.held.fetch_add(1, SeqCst);
            self.gate.acquire().await.unwrap().forget();
            Ok(())
        })
    }

    fn unreserve(&mut self) -> PluginFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A node with one device, and a scheduler that holds pods before they are written.
async fn held() -> (Stage, Hold) {
    let (stage, hold) = (Stage::bare().await, Hold::new());
    stage.schedule_behind(Arc::new(hold.clone()));
    stage.create(&class(DRIVER, &[])).await;
    stage.create(&bare_node("n1")).await;
    stage.create(&slice("n1", vec![device("d0")])).await;
    (stage, hold)
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_before_anything_is_written_costs_no_write() {
    let (stage, hold) = held().await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&gpu_claim("other")).await;
    stage.create(&pod("a", &["c"])).await;
    hold.until_held(&stage, 1).await;
    // The device is taken: a second pod waits for it.
    stage.create(&pod("b", &["other"])).await;
    stage.until(async |s| s.refusal("b").await.is_some()).await;
    stage.calls();
    stage.delete(&PODS, "a").await;
    stage.pass(1).await;
    hold.let_go(2);
    stage.until(async |s| s.is_bound("b").await).await;
    let calls = stage.calls();
    assert!(
        !calls.iter().any(|call| call.contains("claims/c")),
        "{calls:?}"
    );
    let plugin = format!("{:?}", stage.plugin());
    assert!(plugin.contains("in_flight: 0, devices: 1"), "{plugin}");
    assert_eq!(stage.owners().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_device_that_is_given_back_unwritten_wakes_at_once_who_waits_for_it() {
    let (stage, hold) = held().await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&gpu_claim("other")).await;
    stage.create(&pod("a", &["c"])).await;
    hold.until_held(&stage, 1).await;
    stage.create(&pod("b", &["other"])).await;
    stage.until(async |s| s.refusal("b").await.is_some()).await;
    stage.delete(&PODS, "a").await;
    stage.pass(1).await;
    hold.let_go(2);
    // Long before pods are tried again for no other reason.
    stage.pass(15).await;
    assert!(stage.is_bound("b").await);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_while_it_is_written_leaves_no_device_with_its_claim() {
    let (stage, hold) = held().await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&gpu_claim("other")).await;
    stage.create(&pod("a", &["c"])).await;
    hold.until_held(&stage, 1).await;
    stage.create(&pod("b", &["other"])).await;
    stage.until(async |s| s.refusal("b").await.is_some()).await;
    stage.delete(&PODS, "a").await;
    // Nobody has heard of the deletion when the claim is written.
    hold.let_go(2);
    stage.pass(30).await;
    assert!(stage.is_bound("b").await);
    assert!(stage.claim("c").await.at("/status/allocation").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_loses_its_devices_meanwhile_is_tried_again() {
    let (stage, hold) = held().await;
    stage.create(&gpu_claim("c")).await;
    let status = doc!({ "allocation": (allocation_on("n1", "d0")) });
    stage.patch_status(&CLAIMS, "c", status).await;
    stage.create(&pod("a", &["c"])).await;
    hold.until_held(&stage, 1).await;
    let status = doc!({ "allocation": null });
    stage.patch_status(&CLAIMS, "c", status).await;
    stage.pass(1).await;
    hold.let_go(2);
    stage.until(async |s| s.refusal("a").await.is_some()).await;
    let (reason, message) = stage.refusal("a").await.unwrap();
    assert_eq!(reason, "SchedulerError");
    let text = "claim default/c got deallocated elsewhere in the meantime";
    assert!(message.contains(text), "{message}");
    stage.until(async |s| s.is_bound("a").await).await;
    assert_eq!(stage.owners().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_shares_a_claim_need_not_wait_long_for_the_first_one() {
    let (stage, hold) = held().await;
    stage.create(&gpu_claim("c")).await;
    stage.create(&pod("a", &["c"])).await;
    hold.until_held(&stage, 1).await;
    stage.create(&pod("b", &["c"])).await;
    stage.until(async |s| s.refusal("b").await.is_some()).await;
    let (_, message) = stage.refusal("b").await.unwrap();
    let text = "resource claim default/c is in the process of being allocated";
    assert!(message.contains(text), "{message}");
    hold.let_go(2);
    stage.pass(15).await;
    assert!(stage.is_bound("a").await && stage.is_bound("b").await);
}
