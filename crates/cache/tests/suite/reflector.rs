//! Lists, watches and recovery of a reflector.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use windlass_cache::{
    BackoffPolicy, Batch, Delta, DeltaFifo, EventError, Indexer, Page, Phase, Reason, Reflector,
    ReflectorOptions, ReflectorState, Undecodable,
};
use windlass_client::{VersionMatch, WatchEvent};
use windlass_core::{Env, Gvk, Key, doc};

use crate::script::{
    Script, Step, added, bookmark, deleted, end_bookmark, error, fail, modified, page,
    page_with_more, pod,
};

/// A running reflector in front of a queue that nobody empties.
struct Bench {
    script: Arc<Script>,
    fifo: Arc<DeltaFifo>,
    state: watch::Receiver<ReflectorState>,
    stop: Option<oneshot::Sender<()>>,
    run: JoinHandle<()>,
}

/// Lists first, as most of the tests want it.
fn listing() -> ReflectorOptions {
    ReflectorOptions {
        name: "pods".into(),
        use_watch_list: false,
        ..ReflectorOptions::default()
    }
}

fn streaming() -> ReflectorOptions {
    ReflectorOptions {
        use_watch_list: true,
        ..listing()
    }
}

impl Bench {
    fn run(script: Script, options: ReflectorOptions) -> Self {
        let script = Arc::new(script);
        let fifo = Arc::new(DeltaFifo::new(Arc::new(Indexer::new()), None));
        let reflector = Reflector::new(script.clone(), fifo.clone(), Env::seeded(1), options);
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let state = reflector.state();
        let run = tokio::spawn(reflector.run(stopped));
        Self {
            script,
            fifo,
            state,
            stop: Some(stop),
            run,
        }
    }

    async fn stop(mut self) -> Arc<Script> {
        drop(self.stop.take());
        self.run.await.unwrap();
        self.script
    }

    /// Everything queued, in short.
    async fn queued(&self) -> Vec<String> {
        let mut found = Vec::new();
        while !self.fifo.is_empty() {
            match &*self.fifo.pop().await.unwrap() {
                Batch::Deltas(deltas) => found.extend(deltas.iter().map(short)),
                Batch::ReplacedAll(listing) => {
                    let names = listing.objects.iter().map(|object| {
                        format!("{}@{}", object.name(), object.meta().resource_version())
                    });
                    let names: Vec<_> = names.collect();
                    let revision = listing.revision.as_ref().unwrap();
                    found.push(format!("list {revision} [{}]", names.join(" ")));
                }
                Batch::Bookmark(revision) => found.push(format!("bookmark {revision}")),
                Batch::SyncAll => found.push("sync".to_owned()),
            }
        }
        found
    }

    fn phase(&self) -> Phase {
        self.state.borrow().phase.clone()
    }
}

fn short(delta: &Delta) -> String {
    let verb = match delta {
        Delta::Added(_) => "add",
        Delta::Updated(_) => "update",
        Delta::Deleted(_) => "delete",
        Delta::Replaced(_) => "replace",
        Delta::Sync(_) => "sync",
    };
    let object = delta.object();
    format!(
        "{verb} {}@{}",
        object.name(),
        object.meta().resource_version()
    )
}

/// Long enough for everything that does not wait for a back-off.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

async fn minutes(minutes: u64) {
    sleep(Duration::from_secs(60 * minutes)).await;
}

#[tokio::test(start_paused = true)]
async fn first_round_lists_any_version_in_pages_and_watches_from_the_list() {
    let script = Script::default().list(page("10", vec![pod("a", 5)]));
    let bench = Bench::run(script, listing());
    settle().await;
    assert_eq!(bench.queued().await, ["list 10 [a@5]"]);
    assert_eq!(bench.phase(), Phase::Watching);
    let script = bench.stop().await;
    let list = &script.list_requests.lock()[0];
    assert_eq!(
        (&*list.resource_version, list.limit, &*list.continue_token),
        ("0", 500, "")
    );
    let watch = &script.watch_requests.lock()[0];
    assert_eq!(
        (&*watch.resource_version, watch.allow_bookmarks),
        ("10", true)
    );
    assert!(!watch.send_initial_events && watch.version_match.is_none());
    assert!(!watch.timeout.is_zero());
}

#[tokio::test(start_paused = true)]
async fn cancellation_closes_the_watch_once_and_asks_for_nothing_more() {
    let bench = Bench::run(Script::default().list(page("10", vec![])), listing());
    settle().await;
    assert_eq!(bench.script.open_watches(), 1);
    let state = bench.state.clone();
    let script = bench.stop().await;
    assert_eq!(script.open_watches(), 0);
    assert_eq!(script.counts(), (1, 1));
    assert_eq!(state.borrow().phase, Phase::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_is_stopped_before_it_starts_asks_for_nothing() {
    let script = Arc::new(Script::default());
    let fifo = Arc::new(DeltaFifo::new(Arc::new(Indexer::new()), None));
    let reflector = Reflector::new(script.clone(), fifo, Env::seeded(1), listing());
    reflector.run(async {}).await;
    assert_eq!(script.counts(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_back_off_at_once() {
    let script = Script::default().watch(Err(error(Reason::TooManyRequests)));
    let bench = Bench::run(script, streaming());
    settle().await;
    assert!(matches!(bench.phase(), Phase::Waiting { .. }));
    let started = Instant::now();
    bench.stop().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_error_event_ends_the_round_and_a_new_one_follows_after_back_off() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![fail(Reason::Other)]))
        .list(page("20", vec![]));
    let bench = Bench::run(script, listing());
    settle().await;
    assert_eq!(bench.script.counts(), (1, 1));
    let failure = bench.state.borrow().last_failure.clone().unwrap();
    assert_eq!(failure.to_string(), "failed to watch pods: other");
    minutes(1).await;
    assert_eq!(bench.script.counts(), (2, 2));
    assert_eq!(bench.state.borrow().last_failure, None);
    assert_eq!(bench.stop().await.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_without_an_event_leads_to_a_new_list_at_the_same_version() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![]))
        .list(page("10", vec![]));
    let bench = Bench::run(script, listing());
    settle().await;
    let failure = bench.state.borrow().last_failure.clone().unwrap();
    assert_eq!(failure.error.reason, Reason::VeryShortWatch);
    assert!(failure.to_string().contains("pods"));
    minutes(1).await;
    assert_eq!(bench.stop().await.list_versions(), ["0", "10"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_after_events_is_resumed_from_the_last_at_once() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![added("a", 11), modified("a", 12)]));
    let bench = Bench::run(script, listing());
    settle().await;
    assert_eq!(
        bench.queued().await,
        ["list 10 []", "add a@11", "update a@12"]
    );
    let script = bench.stop().await;
    assert_eq!(script.watch_versions(), ["10", "12"]);
    assert_eq!(script.counts().0, 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_is_skipped_and_later_events_are_applied() {
    let stranger = doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "s", "resourceVersion": "11" }
    });
    let script = Script::default().list(page("10", vec![])).watch(Ok(vec![
        Step::Event(WatchEvent::Added(stranger)),
        added("a", 12),
        Step::Hang,
    ]));
    let options = ReflectorOptions {
        kind: Some(Gvk::constant("", "v1", "Pod")),
        ..listing()
    };
    let bench = Bench::run(script, options);
    settle().await;
    assert_eq!(bench.queued().await, ["list 10 []", "add a@12"]);
    assert_eq!(bench.state.borrow().unreadable, 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_list_is_reported_with_its_resource_and_changes_nothing() {
    let script = Script::default().list(Err(error(Reason::Other)));
    let bench = Bench::run(script, listing());
    settle().await;
    let failure = bench.state.borrow().last_failure.clone().unwrap();
    assert_eq!(failure.to_string(), "failed to list pods: other");
    assert!(bench.fifo.is_empty());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_leads_to_a_new_list() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Err(error(Reason::Other)))
        .list(page("10", vec![]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    assert_eq!(bench.stop().await.counts(), (2, 2));
}

/// The time until a watch succeeds after so many refused connections.
async fn time_of_refusals(refusals: usize) -> Duration {
    let mut script = Script::default().list(page("10", vec![]));
    for _ in 0..refusals {
        script = script.watch(Err(error(Reason::Unreachable)));
    }
    let millis = Duration::from_millis;
    let backoff = BackoffPolicy {
        initial: millis(1),
        max: millis(50),
        ..BackoffPolicy::default()
    };
    let mut bench = Bench::run(
        script,
        ReflectorOptions {
            backoff,
            ..listing()
        },
    );
    let started = Instant::now();
    bench
        .state
        .wait_for(|state| state.phase == Phase::Watching)
        .await
        .unwrap();
    let took = started.elapsed();
    assert_eq!(bench.stop().await.counts(), (1, refusals + 1));
    took
}

#[tokio::test(start_paused = true)]
async fn refused_connections_back_off_without_a_new_list() {
    let took = time_of_refusals(5).await.as_millis();
    assert!((31..=64).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn the_back_off_flattens_at_its_cap() {
    let took = time_of_refusals(40).await.as_millis();
    assert!((34 * 50..=2 * 40 * 50).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_back_off_without_a_new_list() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Err(error(Reason::TooManyRequests)))
        .watch(Ok(vec![fail(Reason::TooManyRequests)]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    assert_eq!(bench.state.borrow().failures, 2);
    assert_eq!(bench.stop().await.counts(), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn four_times_too_many_requests_take_one_list_and_five_watches() {
    let mut script = Script::default().list(page("10", vec![]));
    for _ in 0..4 {
        script = script.watch(Err(error(Reason::TooManyRequests)));
    }
    let bench = Bench::run(script, listing());
    minutes(5).await;
    assert_eq!(bench.stop().await.counts(), (1, 5));
}

/// The number of watches before the second list, when each lasts so long and then fails inside the
/// server.
async fn watches_until_second_list(window: u64, lasting: &[u64]) -> usize {
    let seconds = Duration::from_secs;
    let mut script = Script::default().list(page("10", vec![]));
    for delay in lasting {
        script = script.watch(Ok(vec![
            Step::Wait(seconds(*delay)),
            fail(Reason::Internal),
        ]));
    }
    let options = ReflectorOptions {
        internal_error_retry: seconds(window),
        ..listing()
    };
    let bench = Bench::run(script, options);
    loop {
        sleep(Duration::from_millis(100)).await;
        let (lists, watches) = bench.script.counts();
        if lists > 1 {
            bench.stop().await;
            return watches;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn internal_errors_are_not_retried_unless_asked_for() {
    assert_eq!(watches_until_second_list(0, &[1]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn internal_errors_are_retried_within_their_window() {
    // The first error opens the window; with one each second the last inside comes 30 s later.
    assert_eq!(watches_until_second_list(30, &[1; 60]).await, 32);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_minute_opens_the_window_for_internal_errors_anew() {
    let mut lasting = vec![1; 9];
    lasting.push(61);
    lasting.extend([1; 60]);
    assert_eq!(watches_until_second_list(30, &lasting).await, 9 + 32);
}

#[tokio::test(start_paused = true)]
async fn an_explicit_page_size_holds_at_every_version() {
    let pods = |range: std::ops::Range<u64>| {
        range
            .map(|n| pod(&format!("p{n}"), n + 1))
            .collect::<Vec<_>>()
    };
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![fail(Reason::Expired)]))
        .list(page_with_more("10", pods(0..4)))
        .list(page_with_more("ignored", pods(4..8)))
        .list(page("ignored", pods(8..10)));
    let bench = Bench::run(
        script,
        ReflectorOptions {
            page_limit: 4,
            ..listing()
        },
    );
    minutes(1).await;
    let queued = bench.queued().await;
    assert!(queued[1].starts_with("list 10 [p0@1 p1@2") && queued[1].ends_with("p9@10]"));
    let script = bench.stop().await;
    assert_eq!(script.limits(), [4; 4]);
    assert_eq!(script.list_versions(), ["0", "10", "", ""]);
    assert_eq!(script.list_requests.lock()[2].continue_token, "more");
}

#[tokio::test(start_paused = true)]
async fn a_list_at_a_known_version_is_asked_for_in_one_piece() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![fail(Reason::Expired)]))
        .list(page("11", vec![]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    let script = bench.stop().await;
    assert_eq!(script.list_versions(), ["0", "10"]);
    assert_eq!(script.limits(), [500, 0]);
}

#[tokio::test(start_paused = true)]
async fn pages_stay_when_the_server_does_not_answer_from_memory() {
    let script = Script::default()
        .list(page_with_more("10", vec![]))
        .list(page("", vec![]))
        .watch(Ok(vec![fail(Reason::Expired)]))
        .list(page("11", vec![]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    assert_eq!(bench.stop().await.limits(), [500, 500, 500]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_list_is_repeated_at_once_at_the_latest_version() {
    for reason in [Reason::Expired, Reason::VersionTooLarge] {
        let script = Script::default()
            .list(page("10", vec![]))
            .watch(Ok(vec![fail(Reason::Expired)]))
            .list(Err(error(reason)))
            .list(page("20", vec![]))
            .watch(Ok(vec![fail(Reason::Expired)]))
            .list(page("30", vec![]));
        let bench = Bench::run(script, listing());
        minutes(1).await;
        // The third round asks at its version again: the flag is cleared by success.
        assert_eq!(bench.stop().await.list_versions(), ["0", "10", "", "20"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_expires_leads_to_one_list_in_one_piece() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![fail(Reason::Expired)]))
        .list(page_with_more("10", vec![pod("a", 1)]))
        .list(Err(error(Reason::Expired)))
        .list(page("12", vec![pod("a", 1), pod("b", 2)]));
    let bench = Bench::run(
        script,
        ReflectorOptions {
            page_limit: 4,
            ..listing()
        },
    );
    minutes(1).await;
    assert_eq!(bench.queued().await, ["list 10 []", "list 12 [a@1 b@2]"]);
    let script = bench.stop().await;
    assert_eq!(script.list_versions(), ["0", "10", "", "10"]);
    assert_eq!(script.limits(), [4, 4, 4, 0]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_watch_is_drawn_between_its_minimum_and_twice_that() {
    let minute = Duration::from_secs(60);
    for (asked, min) in [
        (minute / 60, 5 * minute),
        (5 * minute, 5 * minute),
        (30 * minute, 30 * minute),
    ] {
        let mut script = Script::default().list(page("10", vec![]));
        for n in 0..20 {
            script = script.watch(Ok(vec![bookmark(11 + n)]));
        }
        let options = ReflectorOptions {
            watch_timeout_min: asked,
            ..listing()
        };
        let bench = Bench::run(script, options);
        settle().await;
        let script = bench.stop().await;
        let requests = script.watch_requests.lock();
        let mut times: Vec<_> = requests.iter().map(|request| request.timeout).collect();
        assert!(
            times.iter().all(|time| (min..=2 * min).contains(time)),
            "{times:?}"
        );
        times.dedup();
        assert!(times.len() > 10, "watches must not end together: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_moves_the_version_from_which_the_watch_is_resumed() {
    let script = Script::default()
        .list(page("5", vec![]))
        .watch(Ok(vec![added("a", 10)]))
        .watch(Ok(vec![modified("a", 20)]))
        .watch(Ok(vec![bookmark(30)]))
        .watch(Ok(vec![deleted("a", 40)]));
    let bench = Bench::run(script, listing());
    settle().await;
    let queued = [
        "list 5 []",
        "add a@10",
        "update a@20",
        "bookmark 30",
        "delete a@40",
    ];
    assert_eq!(bench.queued().await, queued);
    assert_eq!(
        bench.stop().await.watch_versions(),
        ["5", "10", "20", "30", "40"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_goes_back_is_counted_and_not_resumed_from() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![modified("a", 20), modified("b", 15)]));
    let bench = Bench::run(script, listing());
    settle().await;
    assert_eq!(bench.state.borrow().regressions, 1);
    assert_eq!(bench.stop().await.watch_versions(), ["10", "20"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_event_leads_to_one_new_list_which_keeps_the_object() {
    let broken = Undecodable {
        key: Some("default/a".parse::<Key>().unwrap()),
        message: "too deep".to_owned(),
    };
    let list = Page {
        undecodable: vec![broken.clone()],
        resource_version: "12".to_owned(),
        ..Page::default()
    };
    let script = Script::default()
        .list(page("10", vec![pod("a", 5)]))
        .watch(Ok(vec![
            Step::Fail(EventError::Undecodable(broken.clone())),
            Step::Hang,
        ]))
        .list(Ok(list))
        .watch(Ok(vec![
            Step::Fail(EventError::Undecodable(broken)),
            added("b", 13),
            Step::Hang,
        ]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    // The list could not read it either, so that the second event is no reason for another.
    assert_eq!(bench.script.counts(), (2, 2));
    assert_eq!(bench.state.borrow().unreadable, 1);
    let mut kept = Vec::new();
    while !bench.fifo.is_empty() {
        if let Batch::ReplacedAll(listing) = &*bench.fifo.pop().await.unwrap() {
            kept.push(listing.kept.clone());
        }
    }
    assert_eq!(kept, [vec![], vec!["default/a".parse().unwrap()]]);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_table_is_not_a_list() {
    for version in ["v1", "v1beta1"] {
        let kind = Some(Gvk::parse(&format!("meta.k8s.io/{version}"), "Table").unwrap());
        let table = Page {
            resource_version: "1".to_owned(),
            kind,
            ..Page::default()
        };
        let bench = Bench::run(Script::default().list(Ok(table)), listing());
        settle().await;
        let failure = bench.state.borrow().last_failure.clone().unwrap();
        assert_eq!(failure.error.reason, Reason::Unsupported);
        assert!(
            failure.to_string().contains("unsupported list gvk"),
            "{failure}"
        );
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_is_used_when_it_is_asked_for_and_the_source_can() {
    for (asked, lacks, is_used) in [
        (false, false, false),
        (true, false, true),
        (true, true, false),
    ] {
        let script = Script::default();
        let script = if lacks {
            script.without_watch_list()
        } else {
            script
        };
        let options = ReflectorOptions {
            use_watch_list: asked,
            ..listing()
        };
        let bench = Bench::run(script, options);
        settle().await;
        assert_eq!(
            bench.stop().await.counts(),
            if is_used { (0, 1) } else { (1, 0) }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_asks_for_the_latest_state_and_goes_on_as_a_watch() {
    let script = Script::default().watch(Ok(vec![
        added("a", 1),
        end_bookmark(2, "true"),
        modified("a", 3),
        Step::Hang,
    ]));
    let bench = Bench::run(script, streaming());
    settle().await;
    assert_eq!(bench.queued().await, ["list 2 [a@1]", "update a@3"]);
    assert!(bench.state.borrow().has_listed);
    assert_eq!(bench.phase(), Phase::Watching);
    let script = bench.stop().await;
    assert_eq!(script.counts(), (0, 1));
    let request = &script.watch_requests.lock()[0];
    assert_eq!(request.resource_version, "");
    assert_eq!(request.version_match, Some(VersionMatch::NotOlderThan));
    assert!(request.send_initial_events && request.allow_bookmarks);
}

#[tokio::test(start_paused = true)]
async fn only_the_right_bookmark_ends_the_initial_events() {
    for last in [bookmark(2), end_bookmark(2, "false"), end_bookmark(2, "")] {
        let script = Script::default().watch(Ok(vec![added("a", 1), last, Step::Hang]));
        let bench = Bench::run(script, streaming());
        settle().await;
        assert!(bench.fifo.is_empty());
        assert_eq!(
            bench.phase(),
            Phase::Streaming {
                received: 2,
                is_stalled: false
            }
        );
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_among_the_initial_events_end_up_in_one_list() {
    let script = Script::default().watch(Ok(vec![
        added("one", 1),
        added("two", 2),
        modified("one", 3),
        deleted("two", 4),
        end_bookmark(5, "true"),
        Step::Hang,
    ]));
    let bench = Bench::run(script, streaming());
    settle().await;
    assert_eq!(bench.queued().await, ["list 5 [one@3]"]);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_repeat_the_same_watch_list() {
    let script = Script::default()
        .watch(Err(error(Reason::TooManyRequests)))
        .watch(Ok(vec![fail(Reason::TooManyRequests)]))
        .watch(Ok(vec![end_bookmark(2, "true"), Step::Hang]));
    let bench = Bench::run(script, streaming());
    minutes(1).await;
    assert!(bench.state.borrow().has_listed);
    let script = bench.stop().await;
    assert_eq!(script.counts(), (0, 3));
    let requests = script.watch_requests.lock();
    assert!(requests.iter().all(|request| request.send_initial_events));
    assert!(
        requests
            .iter()
            .all(|request| request.resource_version.is_empty())
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_list_that_ends_after_the_sync_is_resumed_as_a_plain_watch() {
    let script = Script::default().watch(Ok(vec![end_bookmark(2, "true"), added("a", 3)]));
    let bench = Bench::run(script, streaming());
    settle().await;
    let script = bench.stop().await;
    let second = &script.watch_requests.lock()[1];
    assert_eq!(
        (&*second.resource_version, second.send_initial_events),
        ("3", false)
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_watch_list_falls_back_to_a_list_in_the_same_round() {
    let script = Script::default()
        .watch(Err(error(Reason::Other)))
        .list(page("10", vec![]));
    let bench = Bench::run(script, streaming());
    settle().await;
    assert_eq!(bench.queued().await, ["list 10 []"]);
    assert_eq!(bench.stop().await.counts(), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_after_the_sync_starts_from_a_new_watch_list() {
    let script = Script::default()
        .watch(Ok(vec![end_bookmark(2, "true"), added("a", 3)]))
        .watch(Err(error(Reason::Expired)))
        .watch(Ok(vec![end_bookmark(9, "true"), Step::Hang]));
    let bench = Bench::run(script, streaming());
    minutes(1).await;
    assert_eq!(bench.queued().await, ["list 2 []", "add a@3", "list 9 []"]);
    let script = bench.stop().await;
    assert_eq!(script.counts(), (0, 3));
    assert!(script.watch_requests.lock()[2].send_initial_events);
    assert_eq!(script.watch_versions(), ["", "3", "3"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_list_is_repeated_at_once_at_the_latest_version() {
    let script = Script::default()
        .watch(Ok(vec![end_bookmark(2, "true"), fail(Reason::Expired)]))
        .watch(Err(error(Reason::Expired)))
        .watch(Ok(vec![end_bookmark(9, "true"), Step::Hang]));
    let bench = Bench::run(script, streaming());
    minutes(1).await;
    assert_eq!(bench.queued().await, ["list 2 []", "list 9 []"]);
    assert_eq!(bench.stop().await.watch_versions(), ["", "2", ""]);
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_bookmark_is_reported() {
    let seconds = Duration::from_secs;
    let script = Script::default().watch(Ok(vec![
        Step::Wait(seconds(15)),
        added("a", 1),
        Step::Wait(seconds(15)),
        added("b", 2),
        Step::Wait(seconds(5)),
        added("c", 3),
        Step::Hang,
    ]));
    let (bench, started) = (Bench::run(script, streaming()), Instant::now());
    for (until, received, is_stalled) in [
        (9, 0, false),
        (11, 0, true),
        (16, 1, false),
        (26, 1, true),
        (31, 2, false),
        (36, 3, false),
    ] {
        sleep_until(started + seconds(until)).await;
        assert_eq!(
            bench.phase(),
            Phase::Streaming {
                received,
                is_stalled
            },
            "at {until} s"
        );
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_sends_the_bookmark_is_listed_and_remembered() {
    // It keeps the connection open, or closes it after some events: neither ends the wait for ever.
    for (stream, attempts) in [
        (vec![added("a", 1), Step::Hang], 1),
        (vec![added("a", 1)], 2),
    ] {
        let mut script = Script::default();
        for _ in 0..attempts {
            script = script.watch(Ok(stream.clone()));
        }
        let script = script
            .list(page("10", vec![pod("a", 1)]))
            .watch(Ok(vec![fail(Reason::Expired)]))
            .list(page("11", vec![]));
        let bench = Bench::run(script, streaming());
        minutes(3).await;
        assert_eq!(bench.queued().await, ["list 10 [a@1]", "list 11 []"]);
        let script = bench.stop().await;
        let streamed = script.watch_requests.lock();
        let streamed = streamed
            .iter()
            .filter(|request| request.send_initial_events)
            .count();
        assert_eq!(streamed, attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_reported_without_a_second_question() {
    let script = Script::default().watch(Err(error(Reason::Forbidden)));
    let bench = Bench::run(script, streaming());
    settle().await;
    let failure = bench.state.borrow().last_failure.clone().unwrap();
    assert_eq!(
        (failure.verb, failure.error.reason),
        ("watch", Reason::Forbidden)
    );
    assert_eq!(bench.stop().await.counts(), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_is_resumed_without_a_new_list() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![added("a", 11), fail(Reason::Unreachable)]))
        .watch(Err(error(Reason::Unreachable)))
        .watch(Ok(vec![modified("a", 12), Step::Hang]));
    let bench = Bench::run(script, listing());
    minutes(1).await;
    assert_eq!(
        bench.queued().await,
        ["list 10 []", "add a@11", "update a@12"]
    );
    let script = bench.stop().await;
    assert_eq!(script.counts(), (1, 3));
    assert_eq!(script.watch_versions(), ["10", "11", "11"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_outlives_its_time_is_taken_for_dead() {
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(vec![Step::Hang]));
    let bench = Bench::run(script, listing());
    minutes(11).await;
    assert_eq!(bench.script.open_watches(), 1);
    assert_eq!(bench.stop().await.watch_versions(), ["10", "10"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_holds_up_the_watch_and_loses_nothing() {
    let events = (0..5000)
        .map(|n| added(&format!("p{n}"), 11 + n))
        .chain([Step::Hang]);
    let script = Script::default()
        .list(page("10", vec![]))
        .watch(Ok(events.collect()));
    let bench = Bench::run(script, listing());
    settle().await;
    assert_eq!(bench.fifo.len(), windlass_cache::FIFO_LIMIT);
    let mut queued = Vec::new();
    while queued.len() < 5001 {
        queued.extend(bench.queued().await);
        settle().await;
    }
    assert_eq!(queued[5000], "add p4999@5010");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_reach_the_function_that_asked_for_them() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let options = ReflectorOptions {
        on_failure: Some(Arc::new(move |failure| {
            sink.lock().push(failure.to_string())
        })),
        ..listing()
    };
    let bench = Bench::run(
        Script::default().list(Err(error(Reason::Internal))),
        options,
    );
    settle().await;
    assert_eq!(*heard.lock(), ["failed to list pods: internal"]);
    bench.stop().await;
}
