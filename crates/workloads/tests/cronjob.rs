//! CronJobs, seen by who waits for their Jobs.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, Time, doc, merge_patch};
use windlass_testing::{Cluster, Fault, Faults, Running};
use windlass_workloads::cronjob;

const JOBS: Gvr = Gvr::constant("batch", "v1", "jobs");
const CRON_JOBS: Gvr = Gvr::constant("batch", "v1", "cronjobs");
const EVENTS: Gvr = Gvr::constant("", "v1", "events");

const MINUTE: u64 = 60;

struct World {
    cluster: Cluster,
}

impl World {
    async fn idle() -> Self {
        let cluster = Cluster::start().await;
        Self { cluster }
    }

    async fn new() -> Self {
        let world = Self::idle().await;
        world.run();
        world
    }

    fn run(&self) -> Running {
        self.cluster.run_with("cronjobs", |manager| {
            cronjob::add_to(manager, &cronjob::Options::default());
        })
    }

    fn now(&self) -> Time {
        self.cluster.env().now()
    }

    /// Waits until so many seconds after the full minute, or hour.
    async fn pass_to(&self, period: u64, second: u64) {
        let now = u64::try_from(self.now().unix()).unwrap();
        let left = (period + second - now % period) % period;
        self.cluster.pass(Duration::from_secs(left)).await;
    }

    async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    async fn create(&self, schedule: &str, spec: Doc) -> Doc {
        let template = doc!({
            "metadata": { "labels": { "of": "tick" }, "annotations": { "a": "b" } },
            "spec": { "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }]
            } } }
        });
        let base = doc!({
            "apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": { "name": "tick", "namespace": "default" },
            "spec": { "schedule": schedule, "jobTemplate": template }
        });
        let object = merge_patch(&base, &doc!({ "spec": spec }));
        self.cluster.create_doc(&object).await
    }

    async fn get(&self) -> Doc {
        self.cluster.find(&CRON_JOBS, "default/tick").await.unwrap()
    }

    async fn patch(&self, spec: Doc) {
        let patch = doc!({ "spec": spec });
        self.cluster.patch(&self.get().await, patch).await;
    }

    /// The Jobs, by name.
    async fn jobs(&self) -> Vec<Doc> {
        let mut jobs = self.cluster.list_docs(&JOBS, "default", "").await;
        jobs.sort_by_key(|job| job.meta().name().to_owned());
        jobs
    }

    /// Ends a Job.
    async fn end(&self, job: &Doc, kind: &str) {
        let now = self.now().to_string();
        let interim = if kind == "Complete" {
            "SuccessCriteriaMet"
        } else {
            "FailureTarget"
        };
        let condition =
            |kind: &str| doc!({ "type": kind, "status": "True", "lastTransitionTime": (&now) });
        let mut status = doc!({
            "startTime": (&now), "conditions": [(condition(interim)), (condition(kind))]
        });
        if kind == "Complete" {
            status = status.with("/completionTime", now.as_str()).unwrap();
        }
        self.cluster.patch_status(job, status).await;
        self.pass(1).await;
    }

    async fn active(&self) -> usize {
        self.get().await.at("/status/active").items().len()
    }

    async fn has_event(&self, text: &str) -> bool {
        self.pass(2).await;
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let line = |it: &Doc| ["/type", "/reason", "/message"].map(|at| it.str_at(at).to_owned());
        events
            .iter()
            .any(|event| line(event).join(" ").starts_with(text))
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_when_it_is_due_under_the_name_of_its_minute() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    let created = world.create("*/1 * * * *", doc!({})).await;
    assert!(world.jobs().await.is_empty());
    world.pass_to(MINUTE, 1).await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    let minute = world.now().unix() / 60;
    let job = &jobs[0];
    assert_eq!(job.meta().name(), format!("tick-{minute}"));
    assert!(job.meta().is_controlled_by(&created.meta().uid()));
    assert_eq!(job.meta().label("of"), Some("tick"));
    assert_eq!(job.meta().annotation("a"), Some("b"));
    let due = Time::from_unix(minute * 60).to_string();
    let stamp = job
        .meta()
        .annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert_eq!(stamp, Some(due.as_str()));
    let cron_job = world.get().await;
    assert_eq!(cron_job.str_at("/status/lastScheduleTime"), due);
    assert_eq!(cron_job.str_at("/status/active/0/name"), job.meta().name());
    assert!(
        world
            .has_event(&format!(
                "Normal SuccessfulCreate Created job tick-{minute}"
            ))
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_time_is_the_first_after_the_creation() {
    let world = World::new().await;
    world.pass_to(3600, 30).await;
    world.create("0 * * * *", doc!({})).await;
    world.pass(3500).await;
    assert!(world.jobs().await.is_empty());
    world.pass(80).await;
    assert_eq!(world.jobs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn missed_times_are_made_up_once_by_the_latest() {
    let world = World::idle().await;
    let running = world.run();
    world.pass_to(MINUTE, 30).await;
    world.create("* * * * *", doc!({})).await;
    running.stop().await;
    world.pass(600).await;
    let minute = world.now().unix() / 60;
    world.run();
    world.pass(1).await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].meta().name(), format!("tick-{minute}"));
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_the_deadline_does_not_start() {
    let world = World::idle().await;
    world.pass_to(3600, 1).await;
    world
        .create("0 * * * *", doc!({ "startingDeadlineSeconds": 30 }))
        .await;
    world.pass_to(3600, 40).await;
    world.run();
    world.pass(10).await;
    assert!(world.jobs().await.is_empty());
    world.pass_to(3600, 1).await;
    assert_eq!(world.jobs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn more_than_a_hundred_missed_times_are_told_of() {
    let world = World::idle().await;
    world.create("* * * * *", doc!({})).await;
    world.pass(150 * 60).await;
    world.run();
    world.pass(1).await;
    assert_eq!(world.jobs().await.len(), 1);
    assert!(
        world
            .has_event("Warning TooManyMissedTimes too many missed start times.")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn jobs_overlap_if_they_may() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world.create("* * * * *", doc!({})).await;
    world.pass(181).await;
    assert_eq!((world.jobs().await.len(), world.active().await), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn forbidden_overlap_waits_and_then_starts_the_latest_at_once() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world
        .create("* * * * *", doc!({ "concurrencyPolicy": "Forbid" }))
        .await;
    world.pass(151).await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    assert!(
        world
            .has_event("Normal JobAlreadyActive Not starting job because prior")
            .await
    );
    let minute = world.now().unix() / 60;
    world.end(&jobs[0], "Complete").await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[1].meta().name(), format!("tick-{minute}"));
    assert_eq!(world.active().await, 1);
    assert!(
        world
            .has_event("Normal SawCompletedJob Saw completed job: tick-")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn replaced_jobs_are_deleted() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world
        .create("* * * * *", doc!({ "concurrencyPolicy": "Replace" }))
        .await;
    world.pass(31).await;
    let first = world.jobs().await[0].clone();
    world.pass(60).await;
    let jobs = world.jobs().await;
    assert_eq!((jobs.len(), world.active().await), (1, 1));
    assert_ne!(jobs[0].meta().uid(), first.meta().uid());
    assert!(
        world
            .has_event("Normal SuccessfulDelete Deleted job tick-")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_suspended_one_starts_nothing_and_catches_up_once() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world.create("* * * * *", doc!({ "suspend": true })).await;
    world.pass(300).await;
    assert!(world.jobs().await.is_empty());
    world.patch(doc!({ "suspend": false })).await;
    world.pass(1).await;
    assert_eq!(world.jobs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_are_kept_within_limits() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    let limits = doc!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0 });
    world.create("* * * * *", limits).await;
    for kind in ["Complete", "Complete", "Failed"] {
        world.pass_to(MINUTE, 5).await;
        let jobs = world.jobs().await;
        world.end(jobs.last().unwrap(), kind).await;
    }
    world.patch(doc!({ "suspend": true })).await;
    world.pass(5).await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    let cron_job = world.get().await;
    assert_eq!(
        cron_job.str_at("/status/lastSuccessfulTime"),
        jobs[0].str_at("/status/completionTime")
    );
    assert!(cron_job.at("/status/active").items().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_zone_shifts_the_time_and_shows_in_the_annotation() {
    let world = World::new().await;
    world
        .create("0 9 * * *", doc!({ "timeZone": "Asia/Tokyo" }))
        .await;
    world.pass(60).await;
    world.pass_to(24 * 3600, 5).await;
    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    let stamp = jobs[0]
        .meta()
        .annotation("batch.kubernetes.io/cronjob-scheduled-timestamp");
    assert!(stamp.unwrap().ends_with("T09:00:00+09:00"));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_deleted_by_hand_is_struck_off_and_not_started_again() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world.create("* * * * *", doc!({})).await;
    world.pass(31).await;
    let job = world.jobs().await[0].clone();
    let api = world.cluster.api(&JOBS, "default");
    let options = DeleteOptions::default().propagate(Propagation::Background);
    api.delete(job.meta().name(), &options).await.unwrap();
    world.pass(5).await;
    assert!(world.jobs().await.is_empty());
    assert_eq!(world.active().await, 0);
    assert!(
        world
            .has_event("Normal MissingJob Active job went missing: tick-")
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_made_by_hand_is_told_of_and_not_listed() {
    let world = World::new().await;
    let owner = world.create("0 0 1 1 *", doc!({})).await;
    let reference = doc!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick",
        "uid": (owner.meta().uid_str()), "controller": true
    });
    let job = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "hand", "namespace": "default", "ownerReferences": [reference] },
        "spec": (owner.at("/spec/jobTemplate/spec").clone())
    });
    world.cluster.create_doc(&job).await;
    world.pass(1).await;
    let text = "Warning UnexpectedJob Saw a job that the controller did not create or forgot: hand";
    assert!(world.has_event(text).await);
    assert_eq!(world.active().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_is_left_to_them() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    let owner = world.create("* * * * *", doc!({})).await;
    let name = format!("tick-{}", world.now().unix() / 60 + 1);
    let job = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": (owner.at("/spec/jobTemplate/spec").clone())
    });
    world.cluster.create_doc(&job).await;
    world.pass(31).await;
    assert_eq!((world.jobs().await.len(), world.active().await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_day_that_never_comes_is_told_of() {
    let world = World::new().await;
    world.create("59 23 31 2 *", doc!({})).await;
    let text = "Warning InvalidSchedule invalid schedule: 59 23 31 2 * : time difference between";
    assert!(world.has_event(text).await);
    world.pass(3600).await;
    assert!(world.jobs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sooner_schedule_fires_at_its_new_time() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world.create("0 0 1 1 *", doc!({})).await;
    world.pass(5).await;
    world.patch(doc!({ "schedule": "* * * * *" })).await;
    world.pass(5).await;
    assert!(world.jobs().await.is_empty());
    world.pass_to(MINUTE, 1).await;
    assert_eq!(world.jobs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_the_creation_makes_no_second_job() {
    let world = World::idle().await;
    let owner = world.create("* * * * *", doc!({})).await;
    world.pass_to(MINUTE, 30).await;
    world.pass(60).await;
    let name = format!("tick-{}", world.now().unix() / 60);
    let reference = doc!({
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tick",
        "uid": (owner.meta().uid_str()), "controller": true, "blockOwnerDeletion": true
    });
    let job = doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": (&name), "namespace": "default", "ownerReferences": [reference] },
        "spec": (owner.at("/spec/jobTemplate/spec").clone())
    });
    world.cluster.create_doc(&job).await;
    world.run();
    world.pass(1).await;
    assert_eq!(world.jobs().await.len(), 1);
    assert_eq!(world.get().await.str_at("/status/active/0/name"), name);
}

#[tokio::test(start_paused = true)]
async fn a_template_changes_future_jobs_only() {
    let world = World::new().await;
    world.pass_to(MINUTE, 30).await;
    world.create("* * * * *", doc!({})).await;
    world.pass_to(MINUTE, 2).await;
    let image = |job: &Doc| {
        job.str_at("/spec/template/spec/containers/0/image")
            .to_owned()
    };
    assert_eq!(image(&world.jobs().await[0]), "i");
    let containers = doc!([{ "name": "c", "image": "j" }]);
    let template = doc!({ "spec": { "template": { "spec": { "containers": containers } } } });
    world.patch(doc!({ "jobTemplate": template })).await;
    world.pass(MINUTE).await;
    let jobs = world.jobs().await;
    let images: Vec<String> = jobs.iter().map(image).collect();
    assert_eq!(images, ["i", "j"]);
}

#[tokio::test(start_paused = true)]
async fn jobs_go_with_their_cron_job() {
    let world = World::new().await;
    world.cluster.run_with("gc", |manager| {
        use windlass_workloads::garbage_collector;
        garbage_collector::add_to(manager, &garbage_collector::Options::default());
    });
    world.pass_to(MINUTE, 30).await;
    let created = world.create("* * * * *", doc!({})).await;
    world.pass_to(MINUTE, 2).await;
    assert_eq!(world.jobs().await.len(), 1);
    world
        .cluster
        .delete(&created, Propagation::Background)
        .await;
    world.pass(3 * MINUTE).await;
    assert!(world.jobs().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_when_the_namespace_is_going_and_it_is_tried_again() {
    let world = World::idle().await;
    let namespace = doc!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "going" }
    });
    let namespace = world.cluster.create_doc(&namespace).await;
    let cron_job = world.create("* * * * *", doc!({ "suspend": true })).await;
    let metadata = doc!({ "name": "tick", "namespace": "going" });
    let there = cron_job.with("/metadata", metadata).unwrap();
    let there = there.with("/spec/suspend", false).unwrap();
    world.cluster.create_doc(&there).await;
    world
        .cluster
        .delete(&namespace, Propagation::Background)
        .await;
    world.pass_to(MINUTE, 30).await;
    let (faults, calls) = (Faults::none(), Arc::new(Mutex::new(Vec::new())));
    let seen = calls.clone();
    faults.set(move |call| {
        if call.method == http::Method::POST {
            seen.lock().push(call.path.clone());
        }
        Fault::None
    });
    let transport = world.cluster.transport().layer(&faults);
    let manager = world.cluster.manager_on("cronjobs", transport);
    let manager = manager.build().unwrap();
    cronjob::add_to(&manager, &cronjob::Options::default());
    world.cluster.run_manager(manager);
    world.pass_to(MINUTE, 10).await;
    let count = |end: &str| {
        let calls = calls.lock();
        calls.iter().filter(|path| path.ends_with(end)).count()
    };
    assert!(count("going/jobs") > 1, "it is tried again");
    assert_eq!(count("events"), 0);
}
