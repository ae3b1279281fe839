//! What goes wrong with sets, Deployments, owners and namespaces when people do two things at a
//! time. Each step waits for its effect, so that the end does not depend on how fast controllers
//! are.

use std::time::Duration;

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, doc, merge_patch};

use crate::{
    scripts::{
        COST, QUOTAS, ROLLBACK, Script, pause, rolling, scripts, set_image, sizes, until_complete,
        until_gone, until_rolled_back, until_set, until_sizes,
    },
    stage::{
        CONFIG_MAPS, DEPLOYMENTS, PODS, SETS, Stage, deployment, number, orphan, owner_ref, reason,
        replica_set,
    },
};

pub(crate) const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
pub(crate) const HELD: &str = "example.com/held";

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        rollout_interrupted_twice,
        rollback_while_paused,
        surge_rounded_up,
        three_sets_scaled,
        equal_sets_after_a_collision,
        strategy_changed_in_the_middle,
        recreation_interrupted,
        late_rollout_paused,
        deployment_under_quota,
        set_of_an_odd_revision,
        set_relabelled_while_it_shrinks,
        set_gives_up_the_cheap_and_the_young,
        set_with_flapping_pods,
        deployment_orphaned_down_to_its_pods,
        deployment_in_the_foreground,
        owner_of_the_same_name,
        owner_with_all_sorts_of_dependents,
        owner_that_is_let_go_after_all,
        owners_across_scopes,
        namespace_held_by_its_content,
    ]
}

pub(crate) async fn delete(stage: &Stage, object: &Doc, propagation: Propagation) {
    stage.cluster.delete(object, propagation).await;
}

/// Another rollout begins before the last one is over, twice; the second time it is the first one
/// again.
async fn rollout_interrupted_twice(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(6, 2, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken:1").await;
    until_sizes(stage, &[5, 3]).await;
    set_image(stage, "broken:2").await;
    until_sizes(stage, &[5, 0, 3]).await;
    set_image(stage, "nginx:1").await;
    until_complete(stage).await;
}

async fn rollback_while_paused(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
    stage.settle().await;
    let back = doc!({
        "metadata": { "annotations": { ROLLBACK: "1" } },
        "spec": { "paused": true, "replicas": 6 }
    });
    stage.patch(&DEPLOYMENTS, "web", back).await;
    until_sizes(stage, &[0, 6]).await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_rolled_back(stage).await;
    until_complete(stage).await;
}

/// A tenth of seven more is one, none may be missing; and then a tenth of eleven.
async fn surge_rounded_up(stage: &Stage) {
    stage.run_kubelet();
    let limits = doc!({ "maxSurge": "10%", "maxUnavailable": 0 });
    let rolling = rolling(7, 1, 0).with("/spec/strategy/rollingUpdate", limits);
    stage.create(rolling.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[7, 1]).await;
    stage.scale(&DEPLOYMENTS, "web", 11).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 13)
        .await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 4)
        .await;
}

/// A rollout that is overtaken half-way leaves two old sets with pods beside the new one.
async fn three_sets_scaled(stage: &Stage) {
    stage.create(rolling(6, 2, 1)).await;
    let ready = async |count: i64, expected: &[i64]| {
        stage
            .until(async |s| {
                let found = s.get(&DEPLOYMENTS, "web").await;
                number(&found, "/status/updatedReplicas") == count
                    && s.pods().await.iter().all(|pod| !pod.meta().is_deleting())
            })
            .await;
        stage.make_all_ready().await;
        until_sizes(stage, expected).await;
    };
    ready(6, &[6]).await;
    until_complete(stage).await;
    set_image(stage, "nginx:2").await;
    until_sizes(stage, &[5, 3]).await;
    ready(3, &[2, 6]).await;
    set_image(stage, "nginx:3").await;
    until_sizes(stage, &[2, 3, 3]).await;
    stage.scale(&DEPLOYMENTS, "web", 12).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 14)
        .await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 4).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/observedGeneration") == found.meta().generation()
                && sizes(s).await.iter().sum::<i64>() <= 6
        })
        .await;
}

/// A set that is taken away is replaced under another name; when it comes back it is the older one.
async fn equal_sets_after_a_collision(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let name = stage.sets().await[0].meta().name().to_owned();
    let label = |value: &str| doc!({ "metadata": { "labels": { "app": value } } });
    stage.patch(&SETS, &name, label("away")).await;
    stage.until(async |s| s.sets().await.len() == 2).await;
    until_complete(stage).await;
    stage.settle().await;
    stage.patch(&SETS, &name, label("web")).await;
    stage
        .until(async |s| s.get(&SETS, &name).await.meta().controller().is_some())
        .await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 2)
        .await;
    until_complete(stage).await;
}

async fn strategy_changed_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(4, 1, 1)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[3, 2]).await;
    let patch = doc!({ "spec": {
        "strategy": { "type": "Recreate", "rollingUpdate": null },
        "template": { "spec": { "containers": [{ "name": "c", "image": "nginx:3" }] } }
    } });
    stage.patch(&DEPLOYMENTS, "web", patch).await;
    until_complete(stage).await;
    assert_eq!(sizes(stage).await, [0, 0, 4]);
}

async fn recreation_interrupted(stage: &Stage) {
    stage.run_kubelet();
    let strategy = doc!({ "type": "Recreate" });
    let recreating = deployment("web", 3).with("/spec/strategy", strategy);
    stage.create(recreating.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[0, 3]).await;
    set_image(stage, "nginx:1").await;
    until_complete(stage).await;
}

async fn late_rollout_paused(stage: &Stage) {
    let late = deployment("web", 2).with("/spec/progressDeadlineSeconds", 2);
    stage.create(late.unwrap()).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            let is_late = reason(&found, "Progressing") == "ProgressDeadlineExceeded";
            is_late && number(&found, "/status/updatedReplicas") == 2
        })
        .await;
    for is_paused in [true, false] {
        stage.patch(&DEPLOYMENTS, "web", pause(is_paused)).await;
        stage
            .until(async |s| {
                let found = s.get(&DEPLOYMENTS, "web").await;
                number(&found, "/status/observedGeneration") == found.meta().generation()
            })
            .await;
        stage.settle().await;
    }
}

/// The failure stays, word for word.
async fn deployment_under_quota(stage: &Stage) {
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "quota" },
        "spec": { "hard": { "pods": "0" } }
    });
    stage.create(quota).await;
    // Nobody counts what is used here; the server adds to what is said in the status.
    let status = doc!({ "hard": { "pods": "0" }, "used": { "pods": "0" } });
    stage.patch_status(&QUOTAS, "quota", status).await;
    let dry_run = windlass_client::WriteOptions::default().dry_run();
    stage
        .until(async |s| {
            let pod = orphan("dry", "other");
            s.api(&PODS).create(&pod, &dry_run).await.is_err()
        })
        .await;
    stage.create(deployment("web", 2)).await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            reason(&found, "ReplicaFailure") == "FailedCreate"
        })
        .await;
}

/// The revision of an adopted set is no number: it is nobody's successor.
async fn set_of_an_odd_revision(stage: &Stage) {
    stage.run_kubelet();
    let more = doc!({
        "metadata": { "annotations": { "deployment.kubernetes.io/revision": "abc" } },
        "spec": { "template": (deployment("web", 1).at("/spec/template").clone()) }
    });
    stage
        .create(merge_patch(&replica_set("web", 2), &more))
        .await;
    until_set(stage, "web", 2, 2).await;
    let noted = deployment("web", 2).with("/metadata/annotations", doc!({ "note": "x" }));
    stage.create(noted.unwrap()).await;
    until_complete(stage).await;
    stage.settle().await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
}

/// A pod that is taken away while others go is not missed.
async fn set_relabelled_while_it_shrinks(stage: &Stage) {
    stage.create(replica_set("web", 5)).await;
    until_set(stage, "web", 5, 0).await;
    let name = stage.pods().await[0].meta().name().to_owned();
    let dear = doc!({ "metadata": { "annotations": { COST: "1000" } } });
    stage.patch(&PODS, &name, dear).await;
    stage.settle().await;
    stage.scale(&SETS, "web", 3).await;
    let away = doc!({ "metadata": { "labels": { "app": "away" } } });
    stage.patch(&PODS, &name, away).await;
    stage
        .until(async |s| s.get(&PODS, &name).await.meta().controller().is_none())
        .await;
    until_set(stage, "web", 3, 0).await;
}

async fn set_gives_up_the_cheap_and_the_young(stage: &Stage) {
    stage.create(replica_set("web", 7)).await;
    until_set(stage, "web", 7, 0).await;
    let now = stage.cluster.env().now();
    let ago = |hours: u64| (now - Duration::from_secs(hours * 3600)).to_string();
    // A mark, what a pod costs, and for how many hours it has been ready.
    let pods = [
        ("unready", "50", None),
        ("cheap", "-3", Some(100)),
        ("young", "0", Some(1)),
        ("free", "0", Some(3)),
        ("older", "0", Some(9)),
        ("oldest", "0", Some(1000)),
        ("dear", "5", Some(0)),
    ];
    for (pod, (mark, cost, hours)) in stage.pods().await.iter().zip(pods) {
        let patch =
            doc!({ "metadata": { "annotations": { COST: cost }, "labels": { "mark": mark } } });
        stage.patch(&PODS, pod.meta().name(), patch).await;
        if let Some(hours) = hours {
            stage.make_ready_since(pod, &ago(hours)).await;
        }
    }
    until_set(stage, "web", 7, 6).await;
    stage.settle().await;
    for (replicas, ready) in [(6, 6), (5, 5), (4, 4), (3, 3), (2, 2)] {
        stage.scale(&SETS, "web", replicas).await;
        until_set(stage, "web", replicas, ready).await;
        stage.settle().await;
        let pods = stage.pods().await;
        let marks = pods.iter().filter_map(|pod| pod.meta().label("mark"));
        let mut marks: Vec<_> = marks.collect();
        marks.sort_unstable();
        let left = marks.join(" ");
        let annotation = doc!({ "metadata": { "annotations": { (format!("left-{replicas}").as_str()): left } } });
        stage.patch(&SETS, "web", annotation).await;
    }
}

async fn set_with_flapping_pods(stage: &Stage) {
    let patient = replica_set("web", 3).with("/spec/minReadySeconds", 3600);
    stage.create(patient.unwrap()).await;
    until_set(stage, "web", 3, 0).await;
    for _ in 0..3 {
        stage.make_all_ready().await;
        until_set(stage, "web", 3, 3).await;
        for pod in &stage.pods().await[..2] {
            let lost = doc!({ "conditions": [{ "type": "Ready", "status": "False" }] });
            stage.patch_status(&PODS, pod.meta().name(), lost).await;
        }
        until_set(stage, "web", 3, 1).await;
    }
}

async fn deployment_orphaned_down_to_its_pods(stage: &Stage) {
    let owner = stage.create(deployment("web", 2)).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Orphan).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    let set = stage.sets().await.remove(0);
    assert!(set.meta().controller().is_none());
    stage.settle().await;
    let set = stage.get(&SETS, set.meta().name()).await;
    delete(stage, &set, Propagation::Orphan).await;
    until_gone(stage, &SETS, set.meta().name()).await;
}

/// One pod is held: its set and its Deployment wait for it.
async fn deployment_in_the_foreground(stage: &Stage) {
    stage.run_kubelet();
    let owner = stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    let pod = stage.pods().await.remove(0);
    let held = doc!({ "metadata": { "finalizers": [HELD], "labels": { "mark": "held" } } });
    stage.patch(&PODS, pod.meta().name(), held).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Foreground).await;
    stage
        .until(async |s| {
            let pods = s.pods().await;
            pods.len() == 1 && pods[0].meta().is_deleting()
        })
        .await;
    stage.settle().await;
    // It goes on by itself when it is let go; another one stays half-way.
    let free = doc!({ "metadata": { "finalizers": null } });
    stage.patch(&PODS, pod.meta().name(), free).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    let other = stage.create(deployment("half-way", 1)).await;
    stage.until(async |s| s.pods().await.len() == 1).await;
    let pod = stage.pods().await.remove(0);
    let held = doc!({ "metadata": { "finalizers": [HELD] } });
    stage.patch(&PODS, pod.meta().name(), held).await;
    stage
        .until(async |s| {
            number(
                &s.get(&DEPLOYMENTS, "half-way").await,
                "/status/readyReplicas",
            ) == 1
        })
        .await;
    stage.settle().await;
    delete(stage, &other, Propagation::Foreground).await;
    stage
        .until(async |s| {
            let sets = s.sets().await;
            let pods = s.pods().await;
            let all = sets.iter().chain(&pods);
            all.into_iter().all(|it| it.meta().is_deleting())
        })
        .await;
}

pub(crate) fn map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

pub(crate) fn owned(name: &str, references: Vec<Doc>) -> Doc {
    map(name)
        .with("/metadata/ownerReferences", references)
        .unwrap()
}

pub(crate) fn blocking(owner: &Doc) -> Doc {
    owner_ref(owner, false)
        .with("/blockOwnerDeletion", true)
        .unwrap()
}

/// What depends on the first owner goes with it, although there is one of its name again.
async fn owner_of_the_same_name(stage: &Stage) {
    let first = stage.create(map("owner")).await;
    stage.create(owned("child", vec![blocking(&first)])).await;
    let child = owned("held", vec![owner_ref(&first, false)]).with_finalizer(HELD);
    stage.create(child).await;
    delete(stage, &first, Propagation::Background).await;
    let second = stage.create(map("owner")).await;
    stage.create(owned("late", vec![blocking(&first)])).await;
    stage.create(owned("good", vec![blocking(&second)])).await;
    let both = vec![owner_ref(&first, false), owner_ref(&second, false)];
    stage.create(owned("both", both)).await;
    for name in ["child", "late"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    stage
        .until(async |s| {
            let held = s.get(&CONFIG_MAPS, "held").await;
            let both = s.get(&CONFIG_MAPS, "both").await;
            held.meta().is_deleting() && both.meta().owner_refs().count() == 1
        })
        .await;
}

async fn owner_with_all_sorts_of_dependents(stage: &Stage) {
    let owner = stage.create(map("owner")).await;
    let stays = stage.create(map("stays")).await;
    let plain = owner_ref(&owner, false);
    stage.create(owned("plain", vec![plain.clone()])).await;
    let held = owned("held", vec![plain.clone()]).with_finalizer(HELD);
    stage.create(held).await;
    let shared = vec![blocking(&owner), blocking(&stays)];
    stage.create(owned("shared", shared)).await;
    let parent = stage.create(owned("parent", vec![blocking(&owner)])).await;
    stage
        .create(owned("grandchild", vec![blocking(&parent)]))
        .await;
    let slow = owned("slow", vec![owner_ref(&parent, false)]).with_finalizer(HELD);
    stage.create(slow).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Foreground).await;
    for name in ["owner", "parent", "grandchild", "plain"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    stage
        .until(async |s| {
            let names = ["held", "slow"];
            let mut all = Vec::new();
            for name in names {
                all.push(s.get(&CONFIG_MAPS, name).await.meta().is_deleting());
            }
            let shared = s.get(&CONFIG_MAPS, "shared").await;
            all == [true, true] && shared.meta().owner_refs().count() == 1
        })
        .await;
}

/// First it is to take its dependents along, then it is not.
async fn owner_that_is_let_go_after_all(stage: &Stage) {
    let owner = stage.create(map("owner")).await;
    let held = owned("held", vec![blocking(&owner)]).with_finalizer(HELD);
    stage.create(held).await;
    delete(stage, &owner, Propagation::Foreground).await;
    stage
        .until(async |s| s.get(&CONFIG_MAPS, "held").await.meta().is_deleting())
        .await;
    let options = DeleteOptions::uid(owner.meta().uid_str()).propagate(Propagation::Orphan);
    let maps = stage.api(&CONFIG_MAPS);
    maps.delete("owner", &options).await.unwrap();
    until_gone(stage, &CONFIG_MAPS, "owner").await;
    stage
        .until(async |s| {
            let held = s.get(&CONFIG_MAPS, "held").await;
            held.meta().owner_refs().count() == 0
        })
        .await;
}

fn role(name: &str) -> Doc {
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name }, "rules": []
    })
}

/// An owner outside of namespaces has dependents inside; the other way round it cannot be.
async fn owners_across_scopes(stage: &Stage) {
    let name = |name: &str| format!("{}-{name}", stage.namespace);
    let gone = stage.cluster.create_doc(&role(&name("gone"))).await;
    let stays = stage.cluster.create_doc(&role(&name("stays"))).await;
    stage.create(owned("lost", vec![blocking(&gone)])).await;
    stage.create(owned("kept", vec![blocking(&stays)])).await;
    let both = vec![blocking(&gone), blocking(&stays)];
    stage.create(owned("both", both)).await;
    let inside = stage.create(map("inside")).await;
    let outside = role(&name("outside")).with("/metadata/ownerReferences", vec![blocking(&inside)]);
    stage.cluster.create_doc(&outside.unwrap()).await;
    delete(stage, &gone, Propagation::Background).await;
    until_gone(stage, &CONFIG_MAPS, "lost").await;
    stage
        .until(async |s| {
            let both = s.get(&CONFIG_MAPS, "both").await;
            both.meta().owner_refs().count() == 1
        })
        .await;
    // It waits for a dependent that nobody will delete.
    delete(stage, &inside, Propagation::Foreground).await;
    stage.settle().await;
    let outside = Gvr::constant("rbac.authorization.k8s.io", "v1", "clusterroles");
    let outside = stage.cluster.find(&outside, &name("outside")).await;
    assert!(outside.is_some_and(|it| !it.meta().is_deleting()));
}

async fn namespace_held_by_its_content(stage: &Stage) {
    stage.create(map("free")).await;
    stage.create(map("held").with_finalizer(HELD)).await;
    let held = replica_set("web", 0).with_finalizer("example.com/other");
    stage.create(held.with_finalizer(HELD)).await;
    until_set(stage, "web", 0, 0).await;
    stage.settle().await;
    let namespace = stage
        .cluster
        .find(&NAMESPACES, &stage.namespace)
        .await
        .unwrap();
    delete(stage, &namespace, Propagation::Background).await;
    stage
        .until(async |s| {
            let now = s.cluster.find(&NAMESPACES, &s.namespace).await.unwrap();
            reason(&now, "NamespaceFinalizersRemaining") == "SomeFinalizersRemain"
                && s.find(&CONFIG_MAPS, "free").await.is_none()
        })
        .await;
}
