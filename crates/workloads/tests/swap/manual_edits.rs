//! What controllers make of fields that are theirs and that people write all the same, of names and
//! templates at their limits, and of rollouts that stand still. Each step waits for its effect, so
//! that the end does not depend on how fast controllers are.

use windlass_client::{Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc, merge_patch};

use crate::{
    concurrent_changes::{blocking, delete, map},
    interrupted_rollouts::{label, recreate_with_old_pods_going, until_pods},
    limits_and_owners::{define, until_observed, widget},
    scripts::{
        QUOTAS, Script, pause, roll_out_two, rolling, scripts, set_image, sizes, until_complete,
        until_gone, until_set, until_sizes,
    },
    stage::{
        CONFIG_MAPS, DEPLOYMENTS, PODS, SETS, Stage, deployment, number, orphan, owner_ref, reason,
        replica_set, revision, template,
    },
};

const DEFINITIONS: Gvr = Gvr::constant("apiextensions.k8s.io", "v1", "customresourcedefinitions");
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        status_written_by_hand,
        revisions_written_by_hand,
        desired_size_written_by_hand,
        references_written_by_hand,
        set_scaled_while_its_deployment_is_paused,
        gone_back_to_what_is_refused,
        late_rollout_that_ends,
        late_rollout_overtaken,
        recreation_becomes_rolling,
        deployment_orphaned_in_the_middle,
        deployment_goes_with_its_owner,
        deployment_selects_by_expressions,
        template_with_a_hash_of_its_own,
        template_with_another_note,
        set_of_a_very_long_name,
        set_grows_while_pods_end_slowly,
        limits_that_leave_nothing,
        history_of_an_unfinished_rollout,
        availability_lost_and_found,
        template_with_more_labels,
        references_of_the_dead,
        definition_of_owners_deleted,
    ]
}

fn annotated(key: &str, value: Doc) -> Doc {
    doc!({ "metadata": { "annotations": { key: value } } })
}

async fn status_written_by_hand(stage: &Stage) {
    roll_out_two(stage).await;
    let wrong = doc!({
        "replicas": 9, "updatedReplicas": 1, "readyReplicas": 7, "availableReplicas": 3,
        "conditions": [{
            "type": "Mine", "status": "True", "reason": "ByHand", "message": "x",
            "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]
    });
    stage.patch_status(&DEPLOYMENTS, "web", wrong).await;
    stage.settle().await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/replicas") == 2
        })
        .await;
    let set = stage.sets().await.remove(1);
    let wrong = doc!({
        "replicas": 9, "readyReplicas": 7, "availableReplicas": 3, "fullyLabeledReplicas": 8,
        "conditions": [{
            "type": "Mine", "status": "True", "reason": "ByHand", "message": "x",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]
    });
    stage.patch_status(&SETS, set.meta().name(), wrong).await;
    stage.settle().await;
    stage
        .until(async |s| {
            let set = s.get(&SETS, set.meta().name()).await;
            number(&set, "/status/replicas") == 2
        })
        .await;
}

async fn revisions_written_by_hand(stage: &Stage) {
    roll_out_two(stage).await;
    let [old, new] = stage.sets().await.try_into().unwrap();
    let (old, new) = (old.meta().name(), new.meta().name());
    stage
        .patch(&SETS, new, annotated(REVISION, doc!("40")))
        .await;
    stage
        .until(async |s| revision(&s.get(&DEPLOYMENTS, "web").await) == 40)
        .await;
    stage.settle().await;
    stage
        .patch(&SETS, old, annotated(REVISION, doc!("60")))
        .await;
    stage
        .until(async |s| revision(&s.get(&DEPLOYMENTS, "web").await) == 61)
        .await;
    stage.settle().await;
    // The Deployment takes it from its set.
    stage
        .patch(&DEPLOYMENTS, "web", annotated(REVISION, doc!("7")))
        .await;
    stage
        .until(async |s| revision(&s.get(&DEPLOYMENTS, "web").await) == 61)
        .await;
    stage
        .patch(&SETS, new, annotated(REVISION, doc!(null)))
        .await;
    stage
        .until(async |s| revision(&s.get(&SETS, new).await) == 61)
        .await;
    stage.settle().await;
    set_image(stage, "nginx:3").await;
    until_complete(stage).await;
}

/// What a set says about the size of the Deployment tells whether it was scaled.
async fn desired_size_written_by_hand(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[3, 2]).await;
    let set = stage.sets().await.remove(0);
    for value in [doc!("7"), doc!("x"), doc!(null)] {
        stage
            .patch(&SETS, set.meta().name(), annotated(DESIRED, value))
            .await;
        stage.settle().await;
    }
}

/// Pods and sets whose references were changed are taken back.
async fn references_written_by_hand(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 3)).await;
    until_complete(stage).await;
    stage.settle().await;
    let set = stage.sets().await.remove(0);
    let pods = stage.pods().await;
    let none = doc!({ "metadata": { "ownerReferences": null } });
    let plain = doc!({ "metadata": { "ownerReferences": (vec![owner_ref(&set, false)]) } });
    let other = owner_ref(&stage.create(map("other")).await, false);
    let other = doc!({ "metadata": { "ownerReferences": (vec![other]) } });
    for (pod, patch) in pods.iter().zip([none.clone(), plain, other]) {
        stage.patch(&PODS, pod.meta().name(), patch).await;
        stage
            .until(async |s| {
                let pod = s.get(&PODS, pod.meta().name()).await;
                pod.meta().is_controlled_by(&set.meta().uid())
            })
            .await;
    }
    stage.settle().await;
    stage.patch(&SETS, set.meta().name(), none).await;
    stage
        .until(async |s| {
            s.get(&SETS, set.meta().name())
                .await
                .meta()
                .controller()
                .is_some()
        })
        .await;
    until_complete(stage).await;
}

async fn set_scaled_while_its_deployment_is_paused(stage: &Stage) {
    roll_out_two(stage).await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    let [old, new] = stage.sets().await.try_into().unwrap();
    stage.scale(&SETS, new.meta().name(), 4).await;
    until_sizes(stage, &[0, 2]).await;
    until_pods(stage, 2).await;
    // Two sets with pods: nothing says that it is wrong.
    stage.scale(&SETS, old.meta().name(), 1).await;
    stage.settle().await;
    until_observed(stage, "web").await;
    stage.scale(&DEPLOYMENTS, "web", 6).await;
    until_observed(stage, "web").await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_complete(stage).await;
}

/// A template that was rolled out before cannot be now.
async fn gone_back_to_what_is_refused(stage: &Stage) {
    roll_out_two(stage).await;
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "quota" },
        "spec": { "hard": { "pods": "0" } }
    });
    stage.create(quota).await;
    // Nobody counts what is used here; the server adds to what is said in the status.
    let status = doc!({ "hard": { "pods": "0" }, "used": { "pods": "0" } });
    stage.patch_status(&QUOTAS, "quota", status).await;
    let dry_run = WriteOptions::default().dry_run();
    stage
        .until(async |s| {
            let pod = orphan("dry", "other");
            s.api(&PODS).create(&pod, &dry_run).await.is_err()
        })
        .await;
    set_image(stage, "nginx:1").await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            reason(&found, "ReplicaFailure") == "FailedCreate"
        })
        .await;
    until_observed(stage, "web").await;
}

async fn until_late(stage: &Stage, updated: i64) {
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            let is_late = reason(&found, "Progressing") == "ProgressDeadlineExceeded";
            is_late && number(&found, "/status/updatedReplicas") == updated
        })
        .await;
}

async fn late_rollout_that_ends(stage: &Stage) {
    let late = deployment("web", 2).with("/spec/progressDeadlineSeconds", 2);
    stage.create(late.unwrap()).await;
    until_late(stage, 2).await;
    stage.settle().await;
    stage.make_all_ready().await;
    until_complete(stage).await;
    // What goes wrong later is no rollout that is late.
    let pod = stage.pods().await.remove(0);
    let lost = doc!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    stage.patch_status(&PODS, pod.meta().name(), lost).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/availableReplicas") == 1
        })
        .await;
}

async fn late_rollout_overtaken(stage: &Stage) {
    stage.run_kubelet();
    let late = rolling(3, 1, 0).with("/spec/progressDeadlineSeconds", 2);
    stage.create(late.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken:1").await;
    until_late(stage, 1).await;
    set_image(stage, "broken:2").await;
    until_sizes(stage, &[3, 0, 1]).await;
    until_late(stage, 1).await;
    stage.settle().await;
    until_late(stage, 1).await;
}

/// The old pods were told to go, and the new ones need not wait for them any more.
async fn recreation_becomes_rolling(stage: &Stage) {
    recreate_with_old_pods_going(stage).await;
    let rolling = doc!({ "spec": { "strategy": { "type": "RollingUpdate" } } });
    stage.patch(&DEPLOYMENTS, "web", rolling).await;
    until_pods(stage, 2).await;
    stage.make_all_ready().await;
    until_complete(stage).await;
}

async fn deployment_orphaned_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    let owner = stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[3, 2]).await;
    delete(stage, &owner, Propagation::Orphan).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    stage.settle().await;
    // The next one is content with other limits.
    stage.create(rolling(6, 0, 3)).await;
    until_complete(stage).await;
}

/// An owner, its Deployment, the sets of that and their pods, in the foreground.
async fn deployment_goes_with_its_owner(stage: &Stage) {
    stage.run_kubelet();
    let owner = stage.create(map("owner")).await;
    let owned = deployment("web", 2).with("/metadata/ownerReferences", vec![blocking(&owner)]);
    stage.create(owned.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Foreground).await;
    until_gone(stage, &CONFIG_MAPS, "owner").await;
    assert!(stage.sets().await.is_empty() && stage.pods().await.is_empty());
}

async fn deployment_selects_by_expressions(stage: &Stage) {
    stage.run_kubelet();
    let selector = doc!({ "matchExpressions": [
        { "key": "app", "operator": "In", "values": ["web", "shop"] },
        { "key": "tier", "operator": "DoesNotExist" }
    ] });
    // One set fits, the other does not.
    let fits = replica_set("shop", 1);
    stage.create(fits).await;
    until_set(stage, "shop", 1, 1).await;
    let tier = doc!({ "metadata": { "name": "back", "labels": { "tier": "back" } } });
    stage
        .create(merge_patch(&replica_set("shop", 0), &tier))
        .await;
    let owner = deployment("web", 2).with("/spec/selector", selector);
    stage.create(owner.unwrap()).await;
    until_complete(stage).await;
    until_pods(stage, 2).await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
}

/// The label is the Deployment's business, whatever the template says.
async fn template_with_a_hash_of_its_own(stage: &Stage) {
    stage.run_kubelet();
    let owner = deployment("web", 2);
    let own = doc!({ "metadata": { "labels": { HASH: "mine" } } });
    let own = merge_patch(owner.at("/spec/template"), &own);
    stage
        .create(owner.with("/spec/template", own).unwrap())
        .await;
    until_complete(stage).await;
    stage.settle().await;
    let other =
        |hash: Doc| doc!({ "spec": { "template": { "metadata": { "labels": { HASH: hash } } } } });
    for hash in [doc!("other"), doc!(null)] {
        stage.patch(&DEPLOYMENTS, "web", other(hash)).await;
        until_observed(stage, "web").await;
        until_complete(stage).await;
    }
    assert_eq!(stage.sets().await.len(), 1);
}

/// What is only written out changes nothing, a note changes all.
async fn template_with_another_note(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let defaults = doc!({ "spec": { "template": { "spec": {
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "hostNetwork": false,
        "containers": [{ "name": "c", "image": "nginx:1", "env": [], "stdin": false }]
    } } } });
    stage.patch(&DEPLOYMENTS, "web", defaults).await;
    until_observed(stage, "web").await;
    assert_eq!(stage.sets().await.len(), 1);
    for note in [doc!("x"), doc!(""), doc!(null)] {
        let note = doc!({ "metadata": { "annotations": { "example.com/note": note } } });
        let patch = doc!({ "spec": { "template": note } });
        stage.patch(&DEPLOYMENTS, "web", patch).await;
        until_complete(stage).await;
        stage.settle().await;
    }
}

async fn set_of_a_very_long_name(stage: &Stage) {
    let long = "a".repeat(230);
    let set = replica_set("web", 2).with("/metadata/name", long.as_str());
    stage.create(set.unwrap()).await;
    until_set(stage, &long, 2, 0).await;

    let dotted = format!("{}.b", "c".repeat(60));
    let set = replica_set("dot", 1).with("/metadata/name", dotted.as_str());
    stage.create(set.unwrap()).await;
    until_set(stage, &dotted, 1, 0).await;
}

/// Pods that are going are no longer counted, and others take their places.
async fn set_grows_while_pods_end_slowly(stage: &Stage) {
    let slow = template("web", "nginx", "nowhere");
    let set = replica_set("web", 3).with("/spec/template", slow);
    stage.create(set.unwrap()).await;
    until_set(stage, "web", 3, 0).await;
    stage.make_all_ready().await;
    until_set(stage, "web", 3, 3).await;
    stage.scale(&SETS, "web", 1).await;
    until_set(stage, "web", 1, 1).await;
    stage.settle().await;
    stage.scale(&SETS, "web", 2).await;
    until_set(stage, "web", 2, 1).await;
    until_pods(stage, 2).await;
    let pods = stage.pods().await;
    assert_eq!(pods.len(), 4);
    // One that is going is taken away: it is not let go of.
    let going = pods.iter().find(|it| it.meta().is_deleting()).unwrap();
    stage.patch(&PODS, going.meta().name(), label("away")).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/terminatingReplicas") == 1)
        .await;
    assert_eq!(sizes(stage).await, [2]);
}

/// A hundredth of three is nothing, and nothing may be added: then one may be missing.
async fn limits_that_leave_nothing(stage: &Stage) {
    stage.run_kubelet();
    let limits = doc!({ "maxSurge": "0%", "maxUnavailable": "1%" });
    let rolling = rolling(3, 1, 0).with("/spec/strategy/rollingUpdate", limits);
    stage.create(rolling.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[2, 1]).await;
    stage.scale(&DEPLOYMENTS, "web", 1).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 1)
        .await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:3").await;
    until_complete(stage).await;
}

/// History is not cut before a rollout is complete.
async fn history_of_an_unfinished_rollout(stage: &Stage) {
    stage.run_kubelet();
    let short = rolling(3, 1, 0).with("/spec/revisionHistoryLimit", 0);
    stage.create(short.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken:1").await;
    until_sizes(stage, &[3, 1]).await;
    set_image(stage, "broken:2").await;
    until_sizes(stage, &[3, 0, 1]).await;
    until_observed(stage, "web").await;
    assert_eq!(stage.sets().await.len(), 3);
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
    stage.until(async |s| s.sets().await.len() == 1).await;
}

async fn availability_lost_and_found(stage: &Stage) {
    stage.create(rolling(4, 1, 1)).await;
    until_pods(stage, 4).await;
    stage.make_all_ready().await;
    until_complete(stage).await;
    let pods = stage.pods().await;
    let until_available = async |count: i64, expected: &str| {
        stage
            .until(async |s| {
                let found = s.get(&DEPLOYMENTS, "web").await;
                number(&found, "/status/availableReplicas") == count
                    && reason(&found, "Available") == expected
            })
            .await;
        stage.settle().await;
    };
    let lost = doc!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] });
    for (pod, left, expected) in [
        (&pods[0], 3, "MinimumReplicasAvailable"),
        (&pods[1], 2, "MinimumReplicasUnavailable"),
    ] {
        let name = pod.meta().name();
        stage.patch_status(&PODS, name, lost.clone()).await;
        until_available(left, expected).await;
    }
    stage.make_ready(&pods[0]).await;
    until_available(3, "MinimumReplicasAvailable").await;
    // One that is gone is replaced, which is no rollout.
    stage.end_pod(pods[2].meta().name()).await;
    until_pods(stage, 4).await;
    until_available(2, "MinimumReplicasUnavailable").await;
}

async fn template_with_more_labels(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let labels = doc!({ "metadata": { "labels": { "tier": "front" } } });
    let more = doc!({ "metadata": { "labels": { "own": "x" } }, "spec": { "template": labels } });
    stage.patch(&DEPLOYMENTS, "web", more).await;
    until_complete(stage).await;
    stage.settle().await;
    // A pod of the template that has lost the label is still one, but not fully labelled.
    let pod = stage.pods().await.remove(0);
    let less = doc!({ "metadata": { "labels": { "tier": null } } });
    stage.patch(&PODS, pod.meta().name(), less).await;
    stage
        .until(async |s| {
            let set = s.sets().await.remove(1);
            number(&set, "/status/fullyLabeledReplicas") == 1
        })
        .await;
}

/// Their names are in use again, by others.
async fn references_of_the_dead(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 1)).await;
    until_complete(stage).await;
    let set = stage.create(replica_set("shop", 1)).await;
    until_set(stage, "shop", 1, 1).await;
    let dead = |owner: &Doc| {
        let reference = owner_ref(owner, true);
        vec![
            reference
                .with("/uid", "00000000-0000-4000-8000-000000000000")
                .unwrap(),
        ]
    };
    let pod = orphan("stray", "shop").with("/metadata/ownerReferences", dead(&set));
    stage.create(pod.unwrap()).await;
    let owner = stage.get(&DEPLOYMENTS, "web").await;
    // Without replicas: with one, the garbage collector and the ReplicaSet controller would race
    // for the first event.
    let stray = replica_set("web", 0)
        .with("/metadata/name", "stray")
        .unwrap();
    let stray = stray.with("/metadata/ownerReferences", dead(&owner));
    stage.create(stray.unwrap()).await;
    until_gone(stage, &PODS, "stray").await;
    until_gone(stage, &SETS, "stray").await;
    until_pods(stage, 2).await;
    until_complete(stage).await;
}

/// A kind goes with all its objects, and they take their dependents along.
async fn definition_of_owners_deleted(stage: &Stage) {
    let (widgets, version) = define(stage).await;
    // What is deleted in the foreground goes only when its kind is watched.
    let first = stage.create(widget(&version, "first")).await;
    delete(stage, &first, Propagation::Foreground).await;
    until_gone(stage, &widgets, "first").await;
    let owner = stage.create(widget(&version, "owner")).await;
    let child = map("child").with("/metadata/ownerReferences", vec![blocking(&owner)]);
    stage.create(child.unwrap()).await;
    stage.create(map("free")).await;
    let definition = format!("{}.{}", widgets.resource(), widgets.group_version().group());
    let definition = stage.cluster.find(&DEFINITIONS, &definition).await;
    delete(stage, &definition.unwrap(), Propagation::Background).await;
    until_gone(stage, &CONFIG_MAPS, "child").await;
}
