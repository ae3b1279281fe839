//! Whatever goes wrong, no device is given twice and none is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use windlass_placement::driver::DRIVER;
use windlass_testing::Fault;

use crate::dynamic_resources::stage::*;

/// The writes of a scheduler that places two pods, each with one fault.
async fn with_fault(number: usize, fault: Fault, is_crash: bool) -> bool {
    let stage = Stage::with_devices(1, 2).await;
    stage.create(&template("t", exactly(DRIVER))).await;
    let is_reached = Arc::new(AtomicBool::new(false));
    let (reached, writes, chosen) = (is_reached.clone(), AtomicUsize::new(0), fault.clone());
    stage.fault(move |call| {
        let is_ours = call.is_write() && !call.path.contains("/events");
        if is_ours && writes.fetch_add(1, SeqCst) == number {
            reached.store(true, SeqCst);
            return chosen.clone();
        }
        Fault::None
    });
    for name in ["a", "b"] {
        stage.create(&pod(name, &["@t"])).await;
    }
    stage.pass(5).await;
    if is_crash && is_reached.load(SeqCst) {
        stage.fault(|_| Fault::None);
        stage.schedule();
    }
    stage
        .until(async |s| s.in_phase("Running").await.len() == 2)
        .await;
    assert_eq!(stage.owners().await.len(), 2, "{fault:?} at {number}");

    // A device that is given back can be had again.
    stage.delete(&PODS, "a").await;
    stage.create(&pod("c", &["@t"])).await;
    stage
        .until(async |s| s.in_phase("Running").await == ["b", "c"])
        .await;
    for claim in stage.claims().await {
        let consumers = claim.at("/status/reservedFor").items().len();
        let has_devices = !claim.at("/status/allocation").is_null();
        assert_eq!(
            has_devices,
            consumers == 1,
            "{fault:?} at {number}: {claim:?}"
        );
    }
    is_reached.load(SeqCst)
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_at_any_point_does_no_harm() {
    let faults = [
        Fault::Refuse(409, "Conflict"),
        Fault::Refuse(500, "InternalError"),
        Fault::LostRequest,
        Fault::LostAnswer,
        Fault::Delay(Duration::from_secs(3)),
    ];
    for fault in faults {
        for number in 0.. {
            if !with_fault(number, fault.clone(), false).await {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_ends_at_any_write_does_no_harm() {
    for fault in [Fault::Stall, Fault::StallAfter] {
        for number in 0.. {
            if !with_fault(number, fault.clone(), true).await {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_at_any_step_leaves_no_device_behind() {
    for delay in (0..40).map(|at| Duration::from_millis(at * 5)) {
        let stage = Stage::with_devices(1, 1).await;
        stage.create(&template("t", exactly(DRIVER))).await;
        // Every write takes a while, so that the deletion falls between two of them.
        stage.fault(|call| match call.is_write() {
            true => Fault::Delay(Duration::from_millis(20)),
            false => Fault::None,
        });
        stage.create(&pod("a", &["@t"])).await;
        stage.cluster.pass(delay).await;
        stage.delete(&PODS, "a").await;
        stage.create(&pod("b", &["@t"])).await;
        stage
            .until(async |s| s.in_phase("Running").await == ["b"])
            .await;
        assert_eq!(stage.owners().await.len(), 1, "deleted after {delay:?}");
    }
}
