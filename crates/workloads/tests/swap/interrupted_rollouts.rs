//! What happens to sets and Deployments when somebody takes a hand in the middle of a rollout, and
//! when pods end, stay or are refused. Each step waits for its effect, so that the end does not
//! depend on how fast controllers are.

use windlass_client::Propagation;
use windlass_core::{Doc, doc, merge_patch};

use crate::{
    concurrent_changes::{HELD, delete, map},
    limits_and_owners::{CONTROLLERS, until_observed},
    scripts::{
        COST, ROLLBACK, Script, pause, roll_out_two, rolling, scripts, set_image, sizes,
        until_complete, until_gone, until_rolled_back, until_set, until_sizes,
    },
    stage::{
        CONFIG_MAPS, DEPLOYMENTS, PODS, SETS, Stage, deployment, number, orphan, owner_ref, reason,
        replica_set, template,
    },
};

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        deployment_beside_a_set_of_somebody,
        deployment_left_behind_and_changed,
        newest_set_deleted_in_the_middle,
        old_set_scaled_in_the_middle,
        paused_and_scaled_in_the_middle,
        limits_changed_in_the_middle,
        rolled_back_to_what_history_forgot,
        history_cut_while_paused,
        template_of_a_set_that_is_going,
        name_of_the_new_set_taken,
        deployment_waits_for_availability,
        notes_go_back_with_the_template,
        recreation_waits_for_pods_that_end,
        deployment_deleted_and_held,
        deployment_of_refused_pods,
        set_scaled_beside_ended_pods,
        set_adopts_what_has_an_owner,
        set_lets_go_of_held_pods,
        set_inherits_from_another,
        controller_left_behind,
        controller_selects_others,
    ]
}

pub(crate) fn label(value: &str) -> Doc {
    doc!({ "metadata": { "labels": { "app": value } } })
}

/// Waits until the pods that are not being deleted are as many as this.
pub(crate) async fn until_pods(stage: &Stage, count: usize) {
    stage
        .until(async |s| {
            let pods = s.pods().await;
            pods.iter().filter(|it| !it.meta().is_deleting()).count() == count
        })
        .await;
    stage.settle().await;
}

fn is_mine(set: &Doc) -> bool {
    set.meta()
        .controller()
        .is_some_and(|it| it.kind == "Deployment")
}

/// The set is not the Deployment's until its owner lets go of it.
async fn deployment_beside_a_set_of_somebody(stage: &Stage) {
    stage.run_kubelet();
    let owner = stage.create(map("owner")).await;
    let set = replica_set("web", 2);
    let reference = vec![owner_ref(&owner, true)];
    let set = set.with("/metadata/ownerReferences", reference).unwrap();
    stage.create(set).await;
    until_set(stage, "web", 2, 2).await;
    stage.create(deployment("web", 3)).await;
    until_complete(stage).await;
    until_pods(stage, 5).await;
    assert!(!is_mine(&stage.get(&SETS, "web").await));
    let free = doc!({ "metadata": { "ownerReferences": null } });
    stage.patch(&SETS, "web", free).await;
    stage
        .until(async |s| is_mine(&s.get(&SETS, "web").await))
        .await;
    until_pods(stage, 3).await;
    until_complete(stage).await;
}

/// The next Deployment of the name takes over the set of the last one, and replaces it.
async fn deployment_left_behind_and_changed(stage: &Stage) {
    roll_out_two(stage).await;
    let first = stage.get(&DEPLOYMENTS, "web").await;
    delete(stage, &first, Propagation::Orphan).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    let image = template("web", "nginx:3", "");
    let changed = deployment("web", 3).with("/spec/template", image);
    stage.create(changed.unwrap()).await;
    until_complete(stage).await;
    until_sizes(stage, &[0, 0, 3]).await;
    set_image(stage, "nginx:1").await;
    until_complete(stage).await;
}

async fn newest_set_deleted_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[3, 2]).await;
    let newest = stage.sets().await.remove(1);
    delete(stage, &newest, Propagation::Background).await;
    stage
        .until(async |s| {
            let sets = s.sets().await;
            sets.len() == 2 && sets.iter().all(|it| it.meta().uid() != newest.meta().uid())
        })
        .await;
    until_sizes(stage, &[3, 2]).await;
    until_pods(stage, 5).await;
}

async fn old_set_scaled_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[3, 2]).await;
    let old = stage.sets().await.remove(0);
    for replicas in [6, 1] {
        stage.scale(&SETS, old.meta().name(), replicas).await;
        stage.settle().await;
        until_observed(stage, "web").await;
    }
    set_image(stage, "nginx:3").await;
    until_complete(stage).await;
}

/// What is added or taken away is spread over both sets although nothing is rolled out.
async fn paused_and_scaled_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(10, 3, 2)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[8, 5]).await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    for (replicas, total) in [(20, 23), (5, 8)] {
        stage.scale(&DEPLOYMENTS, "web", replicas).await;
        stage
            .until(async |s| sizes(s).await.iter().sum::<i64>() == total)
            .await;
        until_observed(stage, "web").await;
    }
    stage.scale(&DEPLOYMENTS, "web", 0).await;
    until_sizes(stage, &[0, 0]).await;
    stage.scale(&DEPLOYMENTS, "web", 4).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() > 0)
        .await;
    until_observed(stage, "web").await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_observed(stage, "web").await;
}

async fn limits_changed_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(6, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[5, 2]).await;
    for (surge, unavailable) in [(1, 3), (3, 0), (0, 4), (0, 6)] {
        let limits = doc!({ "maxSurge": surge, "maxUnavailable": unavailable });
        let patch = doc!({ "spec": { "strategy": { "rollingUpdate": limits } } });
        stage.patch(&DEPLOYMENTS, "web", patch).await;
        until_observed(stage, "web").await;
    }
    assert_eq!(sizes(stage).await, [0, 6]);
}

async fn rolled_back_to_what_history_forgot(stage: &Stage) {
    stage.run_kubelet();
    let short = deployment("web", 2).with("/spec/revisionHistoryLimit", 1);
    stage.create(short.unwrap()).await;
    until_complete(stage).await;
    for image in ["nginx:2", "nginx:3"] {
        set_image(stage, image).await;
        until_complete(stage).await;
        stage.settle().await;
    }
    stage.until(async |s| s.sets().await.len() == 2).await;
    let back = doc!({ "metadata": { "annotations": { ROLLBACK: "1" } } });
    stage.patch(&DEPLOYMENTS, "web", back).await;
    until_rolled_back(stage).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    until_complete(stage).await;
}

async fn history_cut_while_paused(stage: &Stage) {
    roll_out_two(stage).await;
    for image in ["nginx:3", "nginx:4"] {
        set_image(stage, image).await;
        until_complete(stage).await;
        stage.settle().await;
    }
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    let limit = |count: i64| doc!({ "spec": { "revisionHistoryLimit": count } });
    stage.patch(&DEPLOYMENTS, "web", limit(2)).await;
    stage.until(async |s| s.sets().await.len() == 3).await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_observed(stage, "web").await;
    stage.patch(&DEPLOYMENTS, "web", limit(1)).await;
    stage.until(async |s| s.sets().await.len() == 2).await;
    until_observed(stage, "web").await;
}

/// A set that history gave up stays for a while, and its template is asked for again.
async fn template_of_a_set_that_is_going(stage: &Stage) {
    roll_out_two(stage).await;
    let old = stage.sets().await.remove(0);
    let held = doc!({ "metadata": { "finalizers": [HELD] } });
    stage.patch(&SETS, old.meta().name(), held).await;
    let none = doc!({ "spec": { "revisionHistoryLimit": 0 } });
    stage.patch(&DEPLOYMENTS, "web", none).await;
    stage
        .until(async |s| {
            let old = s.get(&SETS, old.meta().name()).await;
            old.meta().is_deleting()
        })
        .await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:1").await;
    until_observed(stage, "web").await;
    stage.settle().await;
}

/// The set that has the name is of no concern to the Deployment.
async fn name_of_the_new_set_taken(stage: &Stage) {
    stage.run_kubelet();
    let first = stage.create(deployment("web", 1)).await;
    until_complete(stage).await;
    stage.settle().await;
    let set = stage.sets().await.remove(0);
    delete(stage, &first, Propagation::Foreground).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    let hash = set.meta().label("pod-template-hash").unwrap();
    let taken = doc!({ "metadata": {
        "name": (set.meta().name()),
        "labels": { "app": "other", "pod-template-hash": hash }
    } });
    let taken = merge_patch(&replica_set("other", 0), &taken);
    stage.create(taken).await;
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    assert_eq!(
        number(
            &stage.get(&DEPLOYMENTS, "web").await,
            "/status/collisionCount"
        ),
        1
    );
    for image in ["nginx:2", "nginx:1"] {
        set_image(stage, image).await;
        until_complete(stage).await;
        stage.settle().await;
    }
}

/// Pods are ready, but not for long enough; then they need not be.
async fn deployment_waits_for_availability(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(3, 1, 0)).await;
    until_complete(stage).await;
    let patient = |seconds: i64| doc!({ "spec": { "minReadySeconds": seconds, "progressDeadlineSeconds": (seconds + 1) } });
    let change = merge_patch(
        &patient(3600),
        &doc!({ "spec": { "template": (template("web", "nginx:2", "")) } }),
    );
    stage.patch(&DEPLOYMENTS, "web", change).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/readyReplicas") == 4
        })
        .await;
    until_observed(stage, "web").await;
    stage
        .patch(
            &DEPLOYMENTS,
            "web",
            patient(0)
                .with("/spec/progressDeadlineSeconds", 600)
                .unwrap(),
        )
        .await;
    until_complete(stage).await;
}

/// Annotations follow the newest set, and come back with a template that is gone back to.
async fn notes_go_back_with_the_template(stage: &Stage) {
    stage.run_kubelet();
    let notes = doc!({ "example.com/note": "one", "kubernetes.io/change-cause": "first" });
    let first = deployment("web", 2).with("/metadata/annotations", notes);
    stage.create(first.unwrap()).await;
    until_complete(stage).await;
    stage.settle().await;
    let change = doc!({
        "metadata": { "annotations": {
            "example.com/note": null, "example.com/more": "two", "kubernetes.io/change-cause": "second",
            "kubectl.kubernetes.io/last-applied-configuration": "{}"
        } },
        "spec": { "template": (template("web", "nginx:2", "")) }
    });
    stage.patch(&DEPLOYMENTS, "web", change).await;
    until_complete(stage).await;
    stage.settle().await;
    let more = doc!({ "metadata": { "annotations": {
        "example.com/more": null, "example.com/late": "three", "kubernetes.io/change-cause": "third",
        "deployment.kubernetes.io/max-replicas": "77"
    } } });
    stage.patch(&DEPLOYMENTS, "web", more).await;
    stage
        .until(async |s| {
            let sets = s.sets().await;
            sets[1].meta().annotation("kubernetes.io/change-cause") == Some("third")
        })
        .await;
    stage.settle().await;
    let back = doc!({ "metadata": { "annotations": { ROLLBACK: "1" } } });
    stage.patch(&DEPLOYMENTS, "web", back).await;
    until_rolled_back(stage).await;
    until_complete(stage).await;
}

/// Two pods were told to go, take their time, and have to be gone before those of the next template
/// come.
pub(crate) async fn recreate_with_old_pods_going(stage: &Stage) {
    let slow = template("web", "nginx:1", "nowhere");
    let strategy = doc!({ "type": "Recreate" });
    let owner = deployment("web", 2).with("/spec/template", slow).unwrap();
    stage
        .create(owner.with("/spec/strategy", strategy).unwrap())
        .await;
    until_pods(stage, 2).await;
    stage.make_all_ready().await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_sizes(stage, &[0]).await;
    until_pods(stage, 0).await;
}

/// New pods come when the old ones have ended, not only when they are told to.
async fn recreation_waits_for_pods_that_end(stage: &Stage) {
    recreate_with_old_pods_going(stage).await;
    let going = stage.pods().await;
    assert_eq!(going.len(), 2);
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    until_observed(stage, "web").await;
    assert_eq!(stage.sets().await.len(), 1);
    let ended = doc!({ "phase": "Failed" });
    stage
        .patch_status(&PODS, going[0].meta().name(), ended)
        .await;
    stage.settle().await;
    stage.end_pod(going[1].meta().name()).await;
    until_pods(stage, 3).await;
    stage.make_all_ready().await;
    until_complete(stage).await;
}

/// Nothing is done any more, but it is still counted.
async fn deployment_deleted_and_held(stage: &Stage) {
    stage.run_kubelet();
    let held = rolling(2, 1, 0).with_finalizer(HELD);
    let owner = stage.create(held).await;
    until_complete(stage).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Background).await;
    set_image(stage, "nginx:2").await;
    stage.scale(&DEPLOYMENTS, "web", 4).await;
    until_observed(stage, "web").await;
    let set = stage.sets().await.remove(0);
    stage.scale(&SETS, set.meta().name(), 3).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/replicas") == 3
                && number(&found, "/status/availableReplicas") == 3
        })
        .await;
    assert_eq!(stage.sets().await.len(), 1);
}

/// The server refuses the pods of one template; the next one is good.
async fn deployment_of_refused_pods(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(3, 1, 1)).await;
    until_complete(stage).await;
    stage.settle().await;
    let class =
        |name: Doc| doc!({ "spec": { "template": { "spec": { "priorityClassName": name } } } });
    stage
        .patch(&DEPLOYMENTS, "web", class(doc!("nothing")))
        .await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            reason(&found, "ReplicaFailure") == "FailedCreate"
        })
        .await;
    until_sizes(stage, &[2, 2]).await;
    stage.scale(&DEPLOYMENTS, "web", 6).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 7)
        .await;
    until_observed(stage, "web").await;
    stage.patch(&DEPLOYMENTS, "web", class(doc!(null))).await;
    until_complete(stage).await;
    stage
        .until(async |s| reason(&s.get(&DEPLOYMENTS, "web").await, "ReplicaFailure").is_empty())
        .await;
}

async fn set_scaled_beside_ended_pods(stage: &Stage) {
    stage.create(replica_set("web", 4)).await;
    until_set(stage, "web", 4, 0).await;
    stage.make_all_ready().await;
    until_set(stage, "web", 4, 4).await;
    for (pod, phase) in stage.pods().await.iter().zip(["Failed", "Succeeded"]) {
        let ended = doc!({ "phase": phase });
        stage.patch_status(&PODS, pod.meta().name(), ended).await;
    }
    until_pods(stage, 6).await;
    stage.make_all_ready().await;
    until_set(stage, "web", 4, 4).await;
    for replicas in [2, 0, 1] {
        stage.scale(&SETS, "web", replicas).await;
        until_pods(stage, replicas as usize + 2).await;
    }
    // What has ended is not let go of.
    let pods = stage.pods().await;
    let ended = pods
        .iter()
        .filter(|it| it.str_at("/status/phase") == "Failed");
    for pod in ended {
        stage.patch(&PODS, pod.meta().name(), label("away")).await;
    }
    stage.settle().await;
}

/// A pod may have other owners: they stay when the set lets go of it.
async fn set_adopts_what_has_an_owner(stage: &Stage) {
    let stays = stage.create(map("stays")).await;
    let goes = stage.create(map("goes")).await;
    let blocking = |owner: &Doc| {
        let reference = owner_ref(owner, false);
        reference.with("/blockOwnerDeletion", true).unwrap()
    };
    let owned = |name: &str, owners: Vec<Doc>| {
        let pod = orphan(name, "web").with("/metadata/ownerReferences", owners);
        stage.create(pod.unwrap())
    };
    owned("first", vec![blocking(&goes)]).await;
    owned("second", vec![blocking(&stays), owner_ref(&goes, false)]).await;
    // Somebody else's, although it has the labels.
    owned("third", vec![owner_ref(&stays, true)]).await;
    stage.create(replica_set("web", 2)).await;
    until_set(stage, "web", 2, 0).await;
    delete(stage, &goes, Propagation::Foreground).await;
    until_gone(stage, &CONFIG_MAPS, "goes").await;
    stage.settle().await;
    stage.patch(&PODS, "second", label("away")).await;
    until_pods(stage, 4).await;
    until_set(stage, "web", 2, 0).await;
    // It comes back when there is one too many, and its price keeps it.
    let dear = doc!({ "metadata": {
        "labels": { "app": "web" }, "annotations": { COST: "9" }
    } });
    let first = doc!({ "metadata": { "annotations": { COST: "9" } } });
    stage.patch(&PODS, "first", first).await;
    stage.settle().await;
    stage.patch(&PODS, "second", dear).await;
    until_pods(stage, 3).await;
}

/// A pod that is being deleted is neither let go of nor taken.
async fn set_lets_go_of_held_pods(stage: &Stage) {
    let set = replica_set("web", 3);
    let finalizers = doc!({ "metadata": { "finalizers": [HELD] } });
    let held = merge_patch(set.at("/spec/template"), &finalizers);
    stage
        .create(set.with("/spec/template", held).unwrap())
        .await;
    until_set(stage, "web", 3, 0).await;
    let pods = stage.pods().await;
    let names: Vec<_> = pods.iter().map(|it| it.meta().name()).collect();
    stage.patch(&PODS, names[0], label("away")).await;
    until_pods(stage, 4).await;
    stage.delete(&PODS, names[0]).await;
    stage.settle().await;
    stage.patch(&PODS, names[0], label("web")).await;
    stage.settle().await;
    stage.delete(&PODS, names[1]).await;
    until_pods(stage, 3).await;
    stage.patch(&PODS, names[1], label("away")).await;
    stage.settle().await;
    until_set(stage, "web", 3, 0).await;
}

/// Pods that a set leaves behind go to the other one of the selector, which has enough.
async fn set_inherits_from_another(stage: &Stage) {
    for name in ["one", "two"] {
        let set = replica_set("web", 2).with("/metadata/name", name);
        stage.create(set.unwrap()).await;
        until_set(stage, name, 2, 0).await;
    }
    for pod in stage.pods().await {
        if pod.meta().generate_name() == "one-" {
            let dear = doc!({ "metadata": { "annotations": { COST: "9" } } });
            stage.patch(&PODS, pod.meta().name(), dear).await;
        }
    }
    stage.settle().await;
    let one = stage.get(&SETS, "one").await;
    delete(stage, &one, Propagation::Orphan).await;
    until_gone(stage, &SETS, "one").await;
    until_pods(stage, 2).await;
    until_set(stage, "two", 2, 0).await;
}

fn controller(replicas: i64) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "web" },
        "spec": { "replicas": replicas, "template": (template("web", "nginx", "")) }
    })
}

async fn until_controller(stage: &Stage, replicas: i64) {
    stage
        .until(async |s| {
            let found = s.get(&CONTROLLERS, "web").await;
            number(&found, "/status/replicas") == replicas
                && number(&found, "/status/observedGeneration") == found.meta().generation()
        })
        .await;
    stage.settle().await;
}

async fn controller_left_behind(stage: &Stage) {
    let owner = stage.create(controller(3)).await;
    until_controller(stage, 3).await;
    delete(stage, &owner, Propagation::Orphan).await;
    until_gone(stage, &CONTROLLERS, "web").await;
    until_pods(stage, 3).await;
    stage.create(controller(2)).await;
    until_pods(stage, 2).await;
    until_controller(stage, 2).await;
    // A set of the same selector finds nothing that is free.
    stage.create(replica_set("web", 1)).await;
    until_set(stage, "web", 1, 0).await;
    stage.put_scale(&CONTROLLERS, "web", 4).await;
    until_controller(stage, 4).await;
}

/// Its selector may change, unlike that of a set.
async fn controller_selects_others(stage: &Stage) {
    stage.create(controller(2)).await;
    until_controller(stage, 2).await;
    stage.create(orphan("free", "shop")).await;
    let other = doc!({ "spec": {
        "selector": { "app": "shop" },
        "template": { "metadata": { "labels": { "app": "shop" } } }
    } });
    stage.patch(&CONTROLLERS, "web", other).await;
    until_pods(stage, 4).await;
    until_controller(stage, 2).await;
    let refused = doc!({ "spec": {
        "replicas": 3, "template": { "spec": { "priorityClassName": "nothing" } }
    } });
    stage.patch(&CONTROLLERS, "web", refused).await;
    stage
        .until(async |s| {
            reason(&s.get(&CONTROLLERS, "web").await, "ReplicaFailure") == "FailedCreate"
        })
        .await;
    stage
        .until(async |s| s.has_event("web", "FailedCreate").await)
        .await;
    let good = doc!({ "spec": { "template": { "spec": { "priorityClassName": null } } } });
    stage.patch(&CONTROLLERS, "web", good).await;
    until_controller(stage, 3).await;
    stage
        .until(async |s| reason(&s.get(&CONTROLLERS, "web").await, "ReplicaFailure").is_empty())
        .await;
}
