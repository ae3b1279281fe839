//! As many pods as a set asks for.

use std::time::Duration;

use http::Method;
use windlass_client::{DeleteOptions, Patch, WatchOptions, WriteOptions};
use windlass_core::{Gvr, condition, doc};
use windlass_testing::Fault;
use windlass_workloads::replicaset::Options;

use crate::replicaset::stage::{PODS, SETS, Stage, number, on_both, reason, replica_set, template};

const CONTROLLERS: Gvr = Gvr::constant("", "v1", "replicationcontrollers");

on_both!(
    status_follows_the_scale,
    a_change_of_the_template_is_observed_without_new_pods,
    pods_that_end_or_go_are_replaced,
    two_sets_of_one_selector_do_not_meddle,
    the_scale_subresource_scales,
    a_scale_without_a_version_is_taken,
    a_patched_set_converges,
    a_collection_can_be_deleted,
    conditions_of_others_survive,
    a_replication_controller_keeps_its_pods,
);

async fn status_follows_the_scale(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 2)).await;
    for replicas in [2, 3, 0, 2] {
        stage.scale(&SETS, "web", replicas).await;
        stage
            .until(async |s| {
                let set = s.get(&SETS, "web").await;
                let is_seen = number(&set, "/status/observedGeneration") == set.meta().generation();
                is_seen && number(&set, "/status/replicas") == replicas
            })
            .await;
        assert_eq!(stage.pods().await.len() as i64, replicas);
    }
}

async fn a_change_of_the_template_is_observed_without_new_pods(stage: &Stage) {
    stage.run();
    let created = stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let pods = stage.pods().await;
    let annotation =
        doc!({ "spec": { "template": { "metadata": { "annotations": { "a": "b" } } } } });
    let changed = stage.patch(&SETS, "web", annotation).await;
    assert!(changed.meta().generation() > created.meta().generation());
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            number(&set, "/status/observedGeneration") == changed.meta().generation()
        })
        .await;
    let names = |pods: &[windlass_core::Doc]| {
        pods.iter()
            .map(|pod| pod.meta().name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&stage.pods().await), names(&pods));
}

async fn pods_that_end_or_go_are_replaced(stage: &Stage) {
    stage.run();
    let set = replica_set("web", 2);
    let finalizers = doc!({ "metadata": { "finalizers": ["example.com/stay"] } });
    let template = windlass_core::merge_patch(set.at("/spec/template"), &finalizers);
    stage
        .create(set.with("/spec/template", template).unwrap())
        .await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    let pods = stage.pods().await;
    stage.delete(&PODS, pods[0].meta().name()).await;
    stage
        .patch_status(&PODS, pods[1].meta().name(), doc!({ "phase": "Failed" }))
        .await;
    stage.until(async |s| s.pods().await.len() == 4).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            number(&set, "/status/replicas") == 2
                && set.at("/status/terminatingReplicas").as_i64() == Some(1)
        })
        .await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 4, "both old ones remain");
}

async fn two_sets_of_one_selector_do_not_meddle(stage: &Stage) {
    stage.run();
    for (name, replicas) in [("one", 1), ("two", 2)] {
        let set = replica_set("web", replicas)
            .with("/metadata/name", name)
            .unwrap();
        stage.create(set).await;
    }
    stage
        .until(async |s| {
            let counts = [s.get(&SETS, "one").await, s.get(&SETS, "two").await];
            counts.map(|set| number(&set, "/status/replicas")) == [1, 2]
        })
        .await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 3);
}

async fn the_scale_subresource_scales(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    for replicas in [3, 0] {
        stage.put_scale(&SETS, "web", replicas).await;
        let set = stage.get(&SETS, "web").await;
        assert_eq!(number(&set, "/spec/replicas"), replicas);
        stage
            .until(async |s| s.pods().await.len() as i64 == replicas)
            .await;
        stage
            .until(async |s| {
                let scale = s.api(&SETS).get_part("web", "scale").await.unwrap();
                number(&scale, "/status/replicas") == replicas
            })
            .await;
    }
}

async fn a_scale_without_a_version_is_taken(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    let (api, options) = (stage.api(&SETS), WriteOptions::default());
    let scale = doc!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "web", "namespace": (&stage.namespace) },
        "spec": { "replicas": 2 }
    });
    api.update_part("web", "scale", &scale, &options)
        .await
        .unwrap();
    assert_eq!(number(&stage.get(&SETS, "web").await, "/spec/replicas"), 2);
    let patch = Patch::Merge(doc!({ "spec": { "replicas": 4 } }));
    api.patch_part("web", "scale", &patch, &options)
        .await
        .unwrap();
    stage.until(async |s| s.pods().await.len() == 4).await;
}

async fn a_patched_set_converges(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let patch = Patch::Strategic(doc!({
        "metadata": { "labels": { "test-rs": "patched" } },
        "spec": {
            "replicas": 3,
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "c", "image": "nginx:2" }]
                }
            }
        }
    }));
    let options = WriteOptions::default();
    stage
        .api(&SETS)
        .patch("web", &patch, &options)
        .await
        .unwrap();
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.make_all_ready().await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            number(&set, "/status/availableReplicas") == 3
        })
        .await;
    let set = stage.get(&SETS, "web").await;
    assert_eq!(set.meta().label("test-rs"), Some("patched"));
    let images = stage.pods().await;
    let of = |image: &str| {
        let images = images
            .iter()
            .map(|pod| pod.str_at("/spec/containers/0/image"));
        images.filter(|it| *it == image).count()
    };
    assert_eq!(
        (of("nginx"), of("nginx:2")),
        (1, 2),
        "pods that exist are not replaced"
    );
}

async fn a_collection_can_be_deleted(stage: &Stage) {
    stage.run();
    for name in ["one", "two"] {
        let set = replica_set(name, 1)
            .with("/metadata/labels/group", "g")
            .unwrap();
        stage.create(set).await;
    }
    let which = windlass_client::ListOptions::default().labels("group=g");
    let options = DeleteOptions::default();
    stage
        .api(&SETS)
        .delete_collection(&options, &which)
        .await
        .unwrap();
    stage.until(async |s| s.sets().await.is_empty()).await;
}

/// A status can be read and written on its own by everybody, and whoever watches sees that.
async fn conditions_of_others_survive(stage: &Stage) {
    stage.run();
    stage.create(replica_set("web", 1)).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 1)
        .await;
    stage.settle().await;
    let (api, options) = (stage.api(&SETS), WriteOptions::default());
    let mut watch = api.watch(&WatchOptions::initial()).await.unwrap();
    let mut until_seen = async |kind: &str| {
        loop {
            let event = watch.next().await.unwrap().unwrap();
            if condition(event.object(), kind).is_some() {
                return;
            }
        }
    };
    let now = api.get_part("web", "status").await.unwrap();
    assert_eq!(number(&now, "/status/replicas"), 1);
    let updated = doc!([{ "type": "StatusUpdate", "status": "True", "reason": "Test" }]);
    let updated = now.with("/status/conditions", updated).unwrap();
    api.update_part("web", "status", &updated, &options)
        .await
        .unwrap();
    until_seen("StatusUpdate").await;
    let patch = Patch::Strategic(doc!({
        "status": { "conditions": [{ "type": "StatusPatched", "status": "True" }] }
    }));
    api.patch_status("web", &patch, &options).await.unwrap();
    until_seen("StatusPatched").await;
    stage.scale(&SETS, "web", 2).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 2)
        .await;
    let set = stage.get(&SETS, "web").await;
    for kind in ["StatusUpdate", "StatusPatched"] {
        assert!(condition(&set, kind).is_some(), "{kind}");
    }
}

async fn a_replication_controller_keeps_its_pods(stage: &Stage) {
    stage.run();
    let controller = doc!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2, "selector": { "app": "web" },
            "template": (template("web", "nginx", ""))
        }
    });
    stage.create(controller).await;
    for replicas in [2, 1] {
        stage.scale(&CONTROLLERS, "web", replicas).await;
        stage
            .until(async |s| {
                let found = s.get(&CONTROLLERS, "web").await;
                number(&found, "/status/replicas") == replicas
                    && s.pods().await.len() as i64 == replicas
            })
            .await;
    }
    let found = stage.get(&CONTROLLERS, "web").await;
    assert!(found.at("/status/terminatingReplicas").is_null());
    let pods = stage.pods().await;
    let owner = pods[0].meta().controller().unwrap();
    assert_eq!(
        (&*owner.kind, &*owner.api_version),
        ("ReplicationController", "v1")
    );
    assert!(stage.has_event("web", "SuccessfulCreate").await);
}

#[tokio::test(start_paused = true)]
async fn pods_look_like_their_template() {
    let stage = Stage::embedded("template").await;
    stage.run();
    let set = replica_set("web", 1);
    let metadata = doc!({
        "metadata": {
            "name": "ignored", "annotations": { "a": "b" }, "finalizers": ["example.com/x"]
        }
    });
    let template = windlass_core::merge_patch(set.at("/spec/template"), &metadata);
    let set = stage
        .create(set.with("/spec/template", template).unwrap())
        .await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let pod = stage.pods().await.remove(0);
    assert!(pod.meta().name().starts_with("web-"));
    assert_eq!(pod.meta().generate_name(), "web-");
    assert_eq!(pod.meta().annotation("a"), Some("b"));
    assert!(pod.meta().has_finalizer("example.com/x"));
    let owner = pod.meta().controller().unwrap();
    assert_eq!(owner.uid, set.meta().uid());
    assert!(owner.block_owner_deletion);
    let events = stage.events("web").await;
    let message = format!("Created pod: {}", pod.meta().name());
    let expected = ("Normal".to_owned(), "SuccessfulCreate".to_owned(), message);
    assert_eq!(events, [expected]);
}

#[tokio::test(start_paused = true)]
async fn every_pass_is_bounded_and_the_end_is_exact() {
    for (burst, up, down) in [(5, 30, 12), (3, 2, 2), (3, 2, 0)] {
        let stage = Stage::embedded("bursts").await;
        stage.run_sets(&Options {
            burst,
            ..Options::default()
        });
        stage.create(replica_set("web", up)).await;
        stage
            .until(async |s| s.pods().await.len() as i64 == up)
            .await;
        stage.settle().await;
        assert_eq!(stage.calls(&Method::POST, "/pods").len() as i64, up);
        stage.scale(&SETS, "web", down).await;
        stage
            .until(async |s| s.pods().await.len() as i64 == down)
            .await;
        stage.settle().await;
        assert_eq!(
            stage.calls_with(&Method::DELETE, "/pods/") as i64,
            up - down
        );
        assert_eq!(stage.pods().await.len() as i64, down);
    }
}

#[tokio::test(start_paused = true)]
async fn batches_double_until_the_burst_is_spent() {
    let stage = Stage::embedded("batches").await;
    stage.fail(
        |call| match call.path.ends_with("/pods") && call.is_write() {
            true => Fault::DelayAnswer(Duration::from_secs(1)),
            false => Fault::None,
        },
    );
    stage.run();
    stage.create(replica_set("web", 700)).await;
    stage
        .cluster
        .until_within(Duration::from_secs(60), async |_| {
            stage.calls(&Method::POST, "/pods").len() >= 500
        })
        .await;
    let calls = stage.calls(&Method::POST, "/pods");
    let mut batches: Vec<(tokio::time::Instant, usize)> = Vec::new();
    for call in &calls[..500] {
        match batches.last_mut() {
            Some((at, count)) if *at == call.at => *count += 1,
            _ => batches.push((call.at, 1)),
        }
    }
    let sizes: Vec<usize> = batches.into_iter().map(|(_, count)| count).collect();
    assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 245]);
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_found_out_in_few_calls() {
    let stage = Stage::embedded("quota").await;
    let mut created = 0;
    stage.fail(move |call| {
        if !(call.path.ends_with("/pods") && call.is_write()) {
            return Fault::None;
        }
        created += 1;
        match created {
            ..=10 => Fault::None,
            _ => Fault::Refuse(403, "Forbidden"),
        }
    });
    stage.run();
    stage.create(replica_set("web", 100)).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            reason(&set, "ReplicaFailure") == "FailedCreate"
        })
        .await;
    // The sync ends with its status; those that follow find the refusal at their first call.
    let calls = stage.all_calls();
    let of_pods = |call: &&crate::replicaset::stage::Seen| {
        call.method == Method::POST && call.path.ends_with("/pods")
    };
    let is_status = |call: &crate::replicaset::stage::Seen| call.path.ends_with("/status");
    let status = calls.iter().position(is_status).unwrap();
    assert_eq!(
        calls[..status].iter().filter(of_pods).count(),
        1 + 2 + 4 + 8
    );
    assert!(stage.has_event("web", "FailedCreate").await);
    stage.no_faults();
    // The next try is far off by now: each failure doubles the wait.
    stage.cluster.pass(Duration::from_secs(1800)).await;
    stage.until(async |s| s.pods().await.len() == 100).await;
    stage
        .until(async |s| condition(&s.get(&SETS, "web").await, "ReplicaFailure").is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_create_is_tried_again_without_a_pod_too_many() {
    let stage = Stage::embedded("retry").await;
    let mut failures = 3;
    stage.fail(move |call| {
        if failures > 0 && call.path.ends_with("/pods") && call.is_write() {
            failures -= 1;
            return Fault::Refuse(500, "InternalError");
        }
        Fault::None
    });
    stage.run();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_makes_no_pod_too_many() {
    let stage = Stage::embedded("lost").await;
    let mut losses = 2;
    stage.fail(move |call| {
        if losses > 0 && call.path.ends_with("/pods") && call.is_write() {
            losses -= 1;
            return Fault::LostAnswer;
        }
        Fault::None
    });
    stage.run();
    stage.create(replica_set("web", 3)).await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_goes() {
    let stage = Stage::embedded("going").await;
    stage.run();
    stage.create(replica_set("web", 0)).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/observedGeneration") > 0)
        .await;
    let namespaces = stage
        .cluster
        .resource(Gvr::constant("", "v1", "namespaces"));
    namespaces
        .delete(&stage.namespace, &DeleteOptions::default())
        .await
        .unwrap();
    stage.scale(&SETS, "web", 2).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/observedGeneration") == 2)
        .await;
    stage.settle().await;
    assert!(stage.pods().await.is_empty());
    assert!(stage.events("web").await.is_empty());
    let set = stage.get(&SETS, "web").await;
    assert!(set.at("/status/conditions").is_null());
    stage.forget_calls();
    stage.cluster.pass(Duration::from_secs(3600)).await;
    assert!(
        stage.calls(&Method::POST, "/pods").is_empty(),
        "nobody insists"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_already_is_no_failure() {
    let stage = Stage::embedded("gone").await;
    stage.run();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    let mut refusals = 1;
    stage.fail(move |call| {
        if refusals > 0 && call.method == Method::DELETE {
            refusals -= 1;
            return Fault::Refuse(404, "NotFound");
        }
        Fault::None
    });
    stage.scale(&SETS, "web", 1).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    assert!(!stage.has_event("web", "FailedDelete").await);
    let set = stage.get(&SETS, "web").await;
    assert!(condition(&set, "ReplicaFailure").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_told_and_tried_again() {
    let stage = Stage::embedded("stuck").await;
    stage.run();
    stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    stage.fail(|call| match call.method == Method::DELETE {
        true => Fault::Refuse(500, "InternalError"),
        false => Fault::None,
    });
    stage.scale(&SETS, "web", 1).await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, "web").await;
            reason(&set, "ReplicaFailure") == "FailedDelete"
        })
        .await;
    let set = stage.get(&SETS, "web").await;
    let message = condition(&set, "ReplicaFailure").unwrap().message;
    assert!(message.starts_with("unable to delete pods: "), "{message}");
    stage
        .until(async |s| s.has_event("web", "FailedDelete").await)
        .await;
    stage.no_faults();
    stage.cluster.pass(Duration::from_secs(1800)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    stage
        .until(async |s| condition(&s.get(&SETS, "web").await, "ReplicaFailure").is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_given_again_starts_afresh() {
    let stage = Stage::embedded("again").await;
    stage.run();
    let first = stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    // Without a garbage collector the pods of the first one stay, and belong to nobody here.
    stage.delete(&SETS, "web").await;
    let second = stage.create(replica_set("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 4).await;
    stage.settle().await;
    let pods = stage.pods().await;
    for owner in [first, second] {
        let uid = owner.meta().uid();
        let own = pods.iter().filter(|pod| pod.meta().is_controlled_by(&uid));
        assert_eq!(own.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_being_deleted_creates_and_adopts_nothing() {
    let stage = Stage::embedded("deleting").await;
    let set = replica_set("web", 2);
    let finalizers = vec![windlass_core::Doc::from("example.com/stay")];
    stage
        .create(set.with("/metadata/finalizers", finalizers).unwrap())
        .await;
    stage.delete(&SETS, "web").await;
    stage
        .create(crate::replicaset::stage::orphan("free", "web"))
        .await;
    stage.run();
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/observedGeneration") > 0)
        .await;
    stage.settle().await;
    assert_eq!(stage.pods().await.len(), 1);
    assert!(stage.get(&PODS, "free").await.meta().controller().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_set_makes_no_calls() {
    let stage = Stage::embedded("quiet").await;
    stage.run();
    stage.create(replica_set("web", 3)).await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.settle().await;
    stage.forget_calls();
    stage.cluster.pass(Duration::from_secs(3600)).await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert!(stage.calls_with(&method, "replicasets") == 0);
        assert!(stage.calls_with(&method, "pods") == 0);
    }
}
