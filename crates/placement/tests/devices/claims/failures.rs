//! What goes wrong between the controller and the server does no harm.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use windlass_core::doc;
use windlass_placement::claims::FINALIZER;
use windlass_testing::{Call, Fault};

use crate::claims::stage::*;

scenarios![
    a_refused_create_is_counted_and_repeated,
    a_lost_answer_makes_no_second_claim,
    a_status_that_cannot_be_written_is_written_later_for_the_same_claim,
    a_server_that_cannot_say_whether_a_pod_exists_changes_nothing,
    a_conflict_is_repeated_without_losing_a_consumer,
];

/// Refuses the first call that a test is about.
fn once(
    matches: impl Fn(&Call) -> bool + Send + 'static,
    fault: Fault,
) -> impl FnMut(&Call) -> Fault {
    let mut fault = Some(fault);
    move |call| match matches(call) {
        true => fault.take().unwrap_or_default(),
        false => Fault::None,
    }
}

fn is_create(call: &Call) -> bool {
    call.method == "POST" && call.path.ends_with("/resourceclaims")
}

async fn a_refused_create_is_counted_and_repeated(stage: &Stage) {
    stage.fault(once(is_create, Fault::Refuse(409, "Conflict")));
    stage.run();
    stage.template("t").await;
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    let metrics = &stage.options.metrics;
    assert_eq!(
        (metrics.creates(true, false), metrics.creates(false, false)),
        (1, 1)
    );
    assert_eq!(stage.claims().await.len(), 1);
}

async fn a_lost_answer_makes_no_second_claim(stage: &Stage) {
    stage.fault(once(is_create, Fault::LostAnswer));
    stage.run();
    stage.template("t").await;
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 1);
}

async fn a_status_that_cannot_be_written_is_written_later_for_the_same_claim(stage: &Stage) {
    let is_apply = |call: &Call| call.method == "PATCH" && call.path.ends_with("/pods/web/status");
    stage.fault(once(is_apply, Fault::Refuse(500, "InternalError")));
    stage.run();
    stage.template("t").await;
    stage.pod("web", &["gpu@t"]).await;
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    assert_eq!(stage.claims().await.len(), 1);
    assert_eq!(stage.options.metrics.creates(true, false), 1);
}

async fn a_server_that_cannot_say_whether_a_pod_exists_changes_nothing(stage: &Stage) {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = is_asked.clone();
    stage.fault(move |call| {
        if call.method == "GET" && call.path.ends_with("/pods/web") {
            asked.store(true, SeqCst);
            return Fault::Refuse(500, "InternalError");
        }
        Fault::None
    });
    stage.claim("c", &[consumer("web", "1234")]).await;
    stage.run();
    stage.until(async |_| is_asked.load(SeqCst)).await;
    stage.settle().await;
    let claim = stage.find(&CLAIMS, "c").await.unwrap();
    assert_eq!(*claim.at("/status/allocation"), allocation());
    assert_eq!(claim.at("/status/reservedFor").items().len(), 1);
    stage.fault(|_| Fault::None);
    stage
        .until(async |s| {
            let claim = s.find(&CLAIMS, "c").await.unwrap();
            claim.at("/status/allocation").is_null()
        })
        .await;
}

async fn a_conflict_is_repeated_without_losing_a_consumer(stage: &Stage) {
    let (a, b) = (
        stage.pod_on_node("a", &["gpu=c"]).await,
        stage.pod_on_node("b", &["gpu=c"]).await,
    );
    stage.claim("c", &[consumer_of(&a)]).await;
    let is_status = |call: &Call| call.method == "PUT" && call.path.ends_with("/c/status");
    stage.fault(once(is_status, Fault::Refuse(409, "Conflict")));
    stage.run();
    stage
        .until(async |s| {
            let claim = s.find(&CLAIMS, "c").await.unwrap();
            claim.at("/status/reservedFor").items().len() == 2
        })
        .await;
    let claim = stage.find(&CLAIMS, "c").await.unwrap();
    assert_eq!(
        claim.at("/status/reservedFor").items(),
        [consumer_of(&a), consumer_of(&b)]
    );
}

/// A thousand pods at once, while the caches are held back.
#[tokio::test(start_paused = true)]
async fn many_pods_get_one_claim_each_while_the_caches_are_behind() {
    let stage = Stage::embedded().await;
    stage.template("t").await;
    for at in 0..1000 {
        stage.pod(&format!("p{at:04}"), &["gpu@t"]).await;
    }
    let watches = AtomicUsize::new(0);
    stage.fault(move |call| {
        // The first watch of claims starts, and stands still.
        let is_claims = call.path.ends_with("/resourceclaims") && call.is_watch;
        if is_claims && watches.fetch_add(1, SeqCst) == 1 {
            return Fault::Delay(Duration::from_secs(120));
        }
        Fault::None
    });
    stage.run();
    stage
        .cluster
        .until_within(Duration::from_secs(600), async |_| {
            stage.claims().await.len() >= 1000
        })
        .await;
    stage.cluster.pass(Duration::from_secs(300)).await;
    assert_eq!(stage.claims().await.len(), 1000);
    assert_eq!(stage.options.metrics.creates(true, false), 1000);
}

/// The controller ends before or after each of its calls; a new one finishes the work.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_call_leaves_nothing_behind() {
    for position in [Fault::Stall, Fault::StallAfter] {
        for number in 0.. {
            if !crash_at(number, position.clone()).await {
                break;
            }
        }
    }
}

/// The life of a pod with a claim, with a crash at one write. Returns whether there was such a
/// write.
async fn crash_at(number: usize, fault: Fault) -> bool {
    let stage = Stage::embedded().await;
    let is_reached = Arc::new(AtomicBool::new(false));
    let (reached, writes) = (is_reached.clone(), AtomicUsize::new(0));
    stage.fault(move |call| {
        let is_ours = call.is_write() && !call.path.contains("/events");
        if is_ours && writes.fetch_add(1, SeqCst) == number {
            reached.store(true, SeqCst);
            return fault.clone();
        }
        Fault::None
    });
    let mut running = stage.run();
    stage.template("t").await;
    let pod = stage.pod("web", &["gpu@t"]).await;
    let restart = |running: &mut windlass_testing::Running| {
        if is_reached.load(SeqCst) {
            running.abort();
            stage.fault(|_| Fault::None);
            *running = stage.run();
        }
    };
    stage.cluster.pass(Duration::from_secs(1)).await;
    restart(&mut running);
    stage
        .until(async |s| s.recorded("web").await.len() == 1)
        .await;
    let claims = stage.claims().await;
    assert_eq!(claims.len(), 1, "crash at {number}");
    let name = claims[0].meta().name();

    // As the scheduler does it.
    let api = stage.cluster.api(&CLAIMS, "default");
    let options = Default::default();
    let claim = api
        .update(&claims[0].with_finalizer(FINALIZER), &options)
        .await
        .unwrap();
    let status = doc!({ "allocation": (allocation()), "reservedFor": [(consumer_of(&pod))] });
    stage.cluster.patch_status(&claim, status).await;
    stage.phase("web", "Succeeded").await;
    stage.cluster.pass(Duration::from_secs(1)).await;
    restart(&mut running);
    stage
        .until(async |s| s.find(&CLAIMS, name).await.is_none())
        .await;
    stage.settle().await;
    assert_eq!(stage.claims().await.len(), 0, "crash at {number}");
    is_reached.load(SeqCst)
}
