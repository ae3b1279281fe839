//! The scheduler, seen by a plug-in.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};
use windlass_core::{Doc, condition};
use windlass_placement::scheduler::{
    self, ClusterEvent, NodeView, Plugin, PluginFuture, PodCycle, Refusal, Verdict, Waker,
};
use windlass_testing::{Cluster, Fault, Faults};

use crate::support::*;

type Judge = Box<dyn Fn(&Doc) -> Verdict + Send + Sync>;

/// A plug-in that does as it is told and writes down what it is asked.
struct Script {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
    attempts: Mutex<Vec<Instant>>,
    gate: Mutex<Judge>,
    pre_filter: Mutex<Judge>,
    /// What it says about nodes by name.
    nodes: Mutex<BTreeMap<String, Refusal>>,
    scores: Mutex<BTreeMap<String, i64>>,
    reserve: Mutex<Verdict>,
    pre_bind: Mutex<Result<(), String>>,
    /// Binding waits for a permit.
    permits: Semaphore,
    /// The plug-in knows everything once there is a permit.
    synced: Semaphore,
    /// Whether an event arrives during each attempt.
    is_woken_meanwhile: Mutex<bool>,
    waker: Mutex<Option<Waker>>,
}

impl Script {
    fn new(name: &'static str) -> Arc<Self> {
        Self::logging_to(name, Arc::default())
    }

    fn logging_to(name: &'static str, log: Arc<Mutex<Vec<String>>>) -> Arc<Self> {
        let pass = || Mutex::new(Box::new(|_: &Doc| Ok(())) as Judge);
        Arc::new(Self {
            name,
            log,
            attempts: Mutex::default(),
            gate: pass(),
            pre_filter: pass(),
            nodes: Mutex::default(),
            scores: Mutex::default(),
            reserve: Mutex::new(Ok(())),
            pre_bind: Mutex::new(Ok(())),
            permits: Semaphore::new(Semaphore::MAX_PERMITS),
            synced: Semaphore::new(1),
            is_woken_meanwhile: Mutex::default(),
            waker: Mutex::default(),
        })
    }

    fn note(&self, what: &str) {
        self.log.lock().push(format!("{} {what}", self.name));
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().clone()
    }

    fn refuse(&self, refusal: &Refusal) {
        let refusal = refusal.clone();
        *self.pre_filter.lock() = Box::new(move |_| Err(refusal.clone()));
    }

    fn wake(&self) {
        let event = ClusterEvent::Other {
            resource: "widgets",
            old: None,
            new: None,
        };
        let waker = self.waker.lock().clone();
        waker.expect("the plug-in is attached").wake(event);
    }

    fn attempts(&self) -> usize {
        self.attempts.lock().len()
    }

    /// The seconds between attempts.
    fn pauses(&self) -> Vec<u64> {
        let attempts = self.attempts.lock();
        let pairs = attempts.windows(2);
        pairs.map(|pair| (pair[1] - pair[0]).as_secs()).collect()
    }
}

struct Handle(Arc<Script>);

impl Plugin for Handle {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn attach(&self, waker: Waker) {
        *self.0.waker.lock() = Some(waker);
    }

    fn wait_for_sync(&self) -> PluginFuture<'_, ()> {
        Box::pin(async {
            let is_synced = self.0.synced.acquire().await;
            is_synced.expect("the permits are open").forget();
        })
    }

    fn pre_enqueue(&self, pod: &Doc) -> Verdict {
        (self.0.gate.lock())(pod)
    }

    fn pre_filter(&self, pod: &Doc) -> Result<Option<Box<dyn PodCycle>>, Refusal> {
        self.0.attempts.lock().push(Instant::now());
        if *self.0.is_woken_meanwhile.lock() {
            self.0.wake();
        }
        (self.0.pre_filter.lock())(pod)?;
        if pod.meta().label("plain").is_some() {
            return Ok(None);
        }
        Ok(Some(Box::new(Cycle(self.0.clone()))))
    }

    fn wakes(&self, _pod: &Doc, event: &ClusterEvent) -> bool {
        matches!(
            event,
            ClusterEvent::Other {
                resource: "widgets",
                ..
            }
        )
    }

    fn weight(&self) -> i64 {
        1000
    }

    fn idle_message(&self) -> &'static str {
        "nothing to give up"
    }
}

struct Cycle(Arc<Script>);

impl PodCycle for Cycle {
    fn filter(&mut self, node: &NodeView) -> Verdict {
        let refusal = self.0.nodes.lock().get(node.name()).cloned();
        refusal.map_or(Ok(()), Err)
    }

    fn has_scores(&self) -> bool {
        !self.0.scores.lock().is_empty()
    }

    fn score(&mut self, node: &NodeView) -> i64 {
        self.0.scores.lock().get(node.name()).copied().unwrap_or(0)
    }

    fn post_filter(&mut self) -> PluginFuture<'_, String> {
        Box::pin(async { "gave up nothing".to_owned() })
    }

    fn reserve(&mut self, node: &NodeView) -> Verdict {
        self.0.note(&format!("reserves on {}", node.name()));
        self.0.reserve.lock().clone()
    }

    fn pre_bind(&mut self) -> PluginFuture<'_, Result<(), String>> {
        Box::pin(async {
            let permit = self.0.permits.acquire().await;
            permit.expect("the permits are open").forget();
            self.0.note("writes");
            self.0.pre_bind.lock().clone()
        })
    }

    fn unreserve(&mut self) -> PluginFuture<'_, ()> {
        self.0.note("gives back");
        Box::pin(async {})
    }
}

fn options(scripts: &[&Arc<Script>]) -> scheduler::Options {
    let mut options = scheduler::Options::default();
    let handle = |script: &&Arc<Script>| Arc::new(Handle((*script).clone())) as Arc<dyn Plugin>;
    options.plugins = scripts.iter().map(handle).collect();
    options
}

async fn started(nodes: &[Doc], scripts: &[&Arc<Script>]) -> Cluster {
    let cluster = bare_cluster(nodes).await;
    run(&cluster, &options(scripts));
    cluster
}

#[tokio::test(start_paused = true)]
async fn plug_in_reserves_and_writes_before_the_pod_is_bound() {
    let script = Script::new("Widgets");
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    assert_eq!(script.log(), ["Widgets reserves on a", "Widgets writes"]);
}

#[tokio::test(start_paused = true)]
async fn no_pod_is_tried_before_the_plug_in_knows_everything() {
    let script = Script::new("Widgets");
    script.synced.forget_permits(1);
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    assert_waits(&cluster, "p").await;
    assert_eq!(script.attempts(), 0);
    script.synced.add_permits(1);
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn pod_that_does_not_concern_a_plug_in_passes_it_by() {
    let script = Script::new("Widgets");
    let cluster = started(&[node("a")], &[&script]).await;
    let plain = set(
        &pod("p"),
        "/metadata/labels",
        windlass_core::doc!({ "plain": "yes" }),
    );
    cluster.create_doc(&plain).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    assert!(script.log().is_empty());
    let huge = set(
        &pod_with("huge", "9", "1Gi"),
        "/metadata/labels",
        windlass_core::doc!({ "plain": "yes" }),
    );
    cluster.create_doc(&huge).await;
    let (_, message) = refusal_of(&cluster, "huge").await;
    assert!(
        message.contains("Insufficient cpu. nothing to give up, preemption: "),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn gated_pod_waits_without_a_word_until_the_plug_in_wakes_it() {
    let script = Script::new("Widgets");
    *script.gate.lock() = Box::new(|_| Err(Refusal::Unresolvable("not yet".to_owned())));
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    cluster.pass(Duration::from_secs(600)).await;
    assert_eq!(script.attempts(), 0);
    assert!(condition(&find(&cluster, "p").await, "PodScheduled").is_none());
    assert!(events_of(&cluster, "p").await.is_empty());
    // Woken, but the gate is still closed.
    script.wake();
    assert_waits(&cluster, "p").await;
    assert_eq!(script.attempts(), 0);
    *script.gate.lock() = Box::new(|_| Ok(()));
    script.wake();
    assert_eq!(node_of(&cluster, "p").await, "a");
}

#[tokio::test(start_paused = true)]
async fn refusals_of_nodes_and_of_the_whole_pod_are_told() {
    let script = Script::new("Widgets");
    let no = Refusal::Unresolvable("no widget here".to_owned());
    script.nodes.lock().insert("a".to_owned(), no);
    let full = set(&node("b"), "/status/allocatable/pods", "0");
    let cluster = started(&[node("a"), full], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "Unschedulable");
    assert_eq!(
        message,
        "0/2 nodes are available: 1 Too many pods, 1 no widget here. gave up nothing, preemption: \
         0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is \
         not helpful for scheduling."
    );
    script.refuse(&Refusal::Unresolvable("no widgets at all".to_owned()));
    cluster.create_doc(&pod("q")).await;
    let (_, message) = refusal_of(&cluster, "q").await;
    assert_eq!(
        message,
        "0/2 nodes are available: no widgets at all. nothing to give up, preemption: 0/2 nodes are \
         available: 2 Preemption is not helpful for scheduling."
    );
}

#[tokio::test(start_paused = true)]
async fn error_on_one_node_ends_the_attempt_on_all() {
    let script = Script::new("Widgets");
    let broken = Refusal::Error("the widget is broken".to_owned());
    script.nodes.lock().insert("b".to_owned(), broken);
    let cluster = started(&[node("a"), node("b")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "SchedulerError");
    assert_eq!(
        message,
        "running \"Widgets\" filter plugin: the widget is broken"
    );
    script.nodes.lock().clear();
    node_of(&cluster, "p").await;
}

#[tokio::test(start_paused = true)]
async fn scores_of_a_plug_in_count_with_its_weight() {
    let script = Script::new("Widgets");
    let scores = BTreeMap::from([
        ("a".to_owned(), 3),
        ("b".to_owned(), 8),
        ("c".to_owned(), 5),
    ]);
    *script.scores.lock() = scores;
    let cluster = started(&[node("a"), node("b"), node("c")], &[&script]).await;
    for name in ["p1", "p2", "p3"] {
        cluster.create_doc(&pod_with(name, "1", "1Gi")).await;
        assert_eq!(node_of(&cluster, name).await, "b");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_back_off_up_to_ten_seconds() {
    let script = Script::new("Widgets");
    script.refuse(&Refusal::Error("broken".to_owned()));
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    cluster
        .until_within(Duration::from_secs(60), async |_| script.attempts() == 7)
        .await;
    assert_eq!(script.pauses(), [1, 2, 4, 8, 10, 10]);
}

#[tokio::test(start_paused = true)]
async fn refusals_back_off_too_and_are_counted_apart_from_errors() {
    let script = Script::new("Widgets");
    script.refuse(&Refusal::Unschedulable("none free".to_owned()));
    *script.is_woken_meanwhile.lock() = true;
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    cluster
        .until_within(Duration::from_secs(60), async |_| script.attempts() == 4)
        .await;
    assert_eq!(script.pauses(), [1, 2, 4]);
    // The first error counts as one, although there were refusals before.
    script.refuse(&Refusal::Error("broken".to_owned()));
    cluster
        .until_within(Duration::from_secs(60), async |_| script.attempts() == 7)
        .await;
    assert_eq!(script.pauses(), [1, 2, 4, 8, 1, 2]);
    // A refusal ends the row of errors, and goes on where refusals had got to.
    script.refuse(&Refusal::Unschedulable("none free".to_owned()));
    cluster
        .until_within(Duration::from_secs(60), async |_| script.attempts() == 9)
        .await;
    assert_eq!(script.pauses(), [1, 2, 4, 8, 1, 2, 4, 10]);
}

#[tokio::test(start_paused = true)]
async fn event_during_an_attempt_is_not_lost() {
    let script = Script::new("Widgets");
    script.refuse(&Refusal::Unschedulable("none free".to_owned()));
    *script.is_woken_meanwhile.lock() = true;
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    cluster.until(async |_| script.attempts() == 1).await;
    *script.pre_filter.lock() = Box::new(|_| Ok(()));
    assert_eq!(node_of(&cluster, "p").await, "a");
    assert_eq!(script.pauses(), [1]);
}

#[tokio::test(start_paused = true)]
async fn refused_pod_waits_for_an_event_and_for_the_end_of_its_back_off() {
    let script = Script::new("Widgets");
    script.refuse(&Refusal::Unschedulable("none free".to_owned()));
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("p")).await;
    assert_waits(&cluster, "p").await;
    assert_eq!(script.attempts(), 1, "nothing has happened");
    script.wake();
    cluster.until(async |_| script.attempts() == 2).await;
    script.wake();
    script.wake();
    cluster.until(async |_| script.attempts() == 3).await;
    assert_eq!(script.pauses()[1], 2);
}

#[tokio::test(start_paused = true)]
async fn failed_write_gives_back_in_reverse_and_tries_again() {
    let log = Arc::default();
    let first = Script::logging_to("First", Arc::clone(&log));
    let second = Script::logging_to("Second", Arc::clone(&log));
    *second.pre_bind.lock() = Err("the disk is full".to_owned());
    let cluster = started(&[node("a")], &[&first, &second]).await;
    cluster.create_doc(&pod_with("p", "4", "1Gi")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "SchedulerError");
    assert_eq!(
        message,
        "running PreBind plugin \"Second\": the disk is full"
    );
    assert_eq!(
        first.log(),
        [
            "First reserves on a",
            "Second reserves on a",
            "First writes",
            "Second writes",
            "Second gives back",
            "First gives back",
        ]
    );
    *second.pre_bind.lock() = Ok(());
    assert_eq!(node_of(&cluster, "p").await, "a", "the node was free again");
}

#[tokio::test(start_paused = true)]
async fn refused_reservation_gives_back_what_others_have_reserved() {
    let log = Arc::default();
    let first = Script::logging_to("First", Arc::clone(&log));
    let second = Script::logging_to("Second", Arc::clone(&log));
    *second.reserve.lock() = Err(Refusal::Error("taken".to_owned()));
    let cluster = started(&[node("a")], &[&first, &second]).await;
    cluster.create_doc(&pod("p")).await;
    let (reason, message) = refusal_of(&cluster, "p").await;
    assert_eq!(reason, "SchedulerError");
    assert_eq!(message, "running Reserve plugin \"Second\": taken");
    let log = first.log();
    assert_eq!(
        log[..3],
        [
            "First reserves on a",
            "Second reserves on a",
            "First gives back"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn refused_binding_gives_back_what_was_reserved() {
    let script = Script::new("Widgets");
    let cluster = bare_cluster(&[node("a")]).await;
    let mut refusals = 1;
    let faults = Faults::new(move |call| {
        if call.path.ends_with("/binding") && refusals > 0 {
            refusals -= 1;
            return Fault::Refuse(500, "InternalError");
        }
        Fault::None
    });
    let transport = cluster.transport().layer(&faults);
    let manager = cluster.manager_on("scheduler", transport).build().unwrap();
    scheduler::add_to(&manager, &options(&[&script]));
    cluster.run_manager(manager);
    cluster.create_doc(&pod("p")).await;
    assert_eq!(node_of(&cluster, "p").await, "a");
    let once = ["Widgets reserves on a", "Widgets writes"];
    assert_eq!(
        script.log(),
        [&once[..], &["Widgets gives back"], &once[..]].concat()
    );
}

#[tokio::test(start_paused = true)]
async fn pod_deleted_while_it_is_bound_is_given_up_and_frees_its_node() {
    let script = Script::new("Widgets");
    script.permits.forget_permits(Semaphore::MAX_PERMITS);
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod_with("p", "4", "1Gi")).await;
    cluster.until(async |_| !script.log().is_empty()).await;
    force_delete(&cluster, "p").await;
    let plain = set(
        &pod_with("next", "4", "1Gi"),
        "/metadata/labels",
        windlass_core::doc!({ "plain": "yes" }),
    );
    cluster.create_doc(&plain).await;
    assert_eq!(node_of(&cluster, "next").await, "a");
    script.permits.add_permits(1);
    cluster.until(async |_| script.log().len() == 3).await;
    assert_eq!(
        script.log(),
        [
            "Widgets reserves on a",
            "Widgets writes",
            "Widgets gives back"
        ]
    );
    cluster.pass(Duration::from_secs(30)).await;
    assert!(cluster.find(&PODS, "default/p").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn slow_writes_of_one_pod_do_not_hold_up_others() {
    let script = Script::new("Widgets");
    script.permits.forget_permits(Semaphore::MAX_PERMITS);
    let cluster = started(&[node("a")], &[&script]).await;
    cluster.create_doc(&pod("slow")).await;
    cluster.until(async |_| !script.log().is_empty()).await;
    let plain = set(
        &pod("quick"),
        "/metadata/labels",
        windlass_core::doc!({ "plain": "yes" }),
    );
    cluster.create_doc(&plain).await;
    assert_eq!(node_of(&cluster, "quick").await, "a");
    assert_waits(&cluster, "slow").await;
    script.permits.add_permits(1);
    assert_eq!(node_of(&cluster, "slow").await, "a");
}
