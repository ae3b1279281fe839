//! What people rarely do to sets, Deployments, owners and namespaces: changing by hand what belongs
//! to a controller, limits at their ends, owners that cannot be. Each step waits for its effect, so
//! that the end does not depend on how fast controllers are.

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc, merge_patch};

use crate::{
    scripts::{
        COST, QUOTAS, ROLLBACK, Script, pause, roll_out_two, rolling, scripts, set_image, sizes,
        until_complete, until_gone, until_rolled_back, until_set, until_sizes,
    },
    stage::{
        CONFIG_MAPS, DEPLOYMENTS, PODS, SETS, Stage, deployment, number, orphan, owner_ref, reason,
        replica_set, template,
    },
};

pub(crate) const CONTROLLERS: Gvr = Gvr::constant("", "v1", "replicationcontrollers");
const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
const HASH: &str = "pod-template-hash";
const HELD: &str = "example.com/held";

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        deployment_left_behind,
        deployment_without_history,
        deployment_of_nothing,
        deployment_born_paused,
        deployment_without_deadline,
        deployments_of_one_selector,
        percents_without_surge,
        scaled_by_its_scale_in_the_middle,
        unhealthy_pods_go_first,
        template_changed_and_changed_back,
        template_of_a_set_changed_by_hand,
        size_of_a_set_changed_by_hand,
        new_set_deleted_by_hand,
        old_set_deleted_by_hand,
        hash_taken_off_a_pod,
        hash_taken_off_a_set,
        recreation_paused,
        set_deleted_and_held,
        set_selects_by_expressions,
        set_of_pods_that_end_slowly,
        set_under_a_quota_that_grows,
        controller_adopts_and_fails,
        controller_in_the_foreground,
        owners_that_cannot_be,
        owners_of_a_custom_kind,
        namespace_held_by_a_custom_object,
    ]
}

/// Waits until the controller has seen the newest Deployment and has nothing to do.
pub(crate) async fn until_observed(stage: &Stage, name: &str) {
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, name).await;
            number(&found, "/status/observedGeneration") == found.meta().generation()
        })
        .await;
    stage.settle().await;
}

fn map(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

fn owned(name: &str, reference: &Doc) -> Doc {
    map(name)
        .with("/metadata/ownerReferences", vec![reference.clone()])
        .unwrap()
}

async fn deployment_left_behind(stage: &Stage) {
    stage.run_kubelet();
    let first = stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let set = stage.sets().await.remove(0);
    stage.cluster.delete(&first, Propagation::Orphan).await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    let left = stage.get(&SETS, set.meta().name()).await;
    assert_eq!(left.meta().owner_refs().count(), 0);
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    let sets = stage.sets().await;
    assert_eq!(sets.len(), 1, "no other set was made");
    assert_eq!(sets[0].meta().uid(), set.meta().uid());
}

async fn deployment_without_history(stage: &Stage) {
    stage.run_kubelet();
    let short = deployment("web", 2).with("/spec/revisionHistoryLimit", 0);
    stage.create(short.unwrap()).await;
    until_complete(stage).await;
    for image in ["nginx:2", "nginx:1"] {
        set_image(stage, image).await;
        until_complete(stage).await;
        stage.until(async |s| s.sets().await.len() == 1).await;
        stage.settle().await;
    }
}

async fn deployment_of_nothing(stage: &Stage) {
    stage.create(deployment("web", 0)).await;
    until_observed(stage, "web").await;
    for image in ["nginx:2", "nginx:1"] {
        set_image(stage, image).await;
        until_observed(stage, "web").await;
    }
}

async fn deployment_born_paused(stage: &Stage) {
    stage.run_kubelet();
    let paused = deployment("web", 2).with("/spec/paused", true);
    stage.create(paused.unwrap()).await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:2").await;
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    until_observed(stage, "web").await;
    assert!(stage.sets().await.is_empty());
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_complete(stage).await;
}

/// Nothing is said about progress, whatever happens.
async fn deployment_without_deadline(stage: &Stage) {
    stage.run_kubelet();
    let patient = deployment("web", 2).with("/spec/progressDeadlineSeconds", i64::from(i32::MAX));
    stage.create(patient.unwrap()).await;
    let until_available = async |image: &str| {
        stage
            .until(async |s| {
                let found = s.get(&DEPLOYMENTS, "web").await;
                number(&found, "/status/availableReplicas") == 2
                    && number(&found, "/status/updatedReplicas") == 2
                    && number(&found, "/status/replicas") == 2
                    && found.str_at("/spec/template/spec/containers/0/image") == image
                    && number(&found, "/status/observedGeneration") == found.meta().generation()
            })
            .await;
        stage.settle().await;
    };
    until_available("nginx:1").await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:2").await;
    until_available("nginx:2").await;
}

async fn deployments_of_one_selector(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let other = deployment("web", 3)
        .with("/metadata/name", "other")
        .unwrap();
    let image = doc!({ "spec": { "containers": [{ "name": "c", "image": "other:1" }] } });
    let image = merge_patch(other.at("/spec/template"), &image);
    stage
        .create(other.with("/spec/template", image).unwrap())
        .await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "other").await;
            reason(&found, "Progressing") == "NewReplicaSetAvailable"
        })
        .await;
    stage.settle().await;
    set_image(stage, "nginx:2").await;
    until_complete(stage).await;
}

/// Three tenths of seven are two, of ten three; none more than there should be.
async fn percents_without_surge(stage: &Stage) {
    stage.run_kubelet();
    let limits = doc!({ "maxSurge": 0, "maxUnavailable": "30%" });
    let rolling = rolling(7, 1, 0).with("/spec/strategy/rollingUpdate", limits);
    stage.create(rolling.unwrap()).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[5, 2]).await;
    stage.scale(&DEPLOYMENTS, "web", 10).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 10)
        .await;
    until_observed(stage, "web").await;
    stage
        .patch(
            &DEPLOYMENTS,
            "web",
            doc!({ "spec": { "strategy": { "rollingUpdate": { "maxUnavailable": "100%" } } } }),
        )
        .await;
    until_sizes(stage, &[0, 10]).await;
}

async fn scaled_by_its_scale_in_the_middle(stage: &Stage) {
    stage.run_kubelet();
    stage.create(rolling(10, 3, 2)).await;
    until_complete(stage).await;
    set_image(stage, "broken").await;
    until_sizes(stage, &[8, 5]).await;
    stage.put_scale(&DEPLOYMENTS, "web", 0).await;
    until_sizes(stage, &[0, 0]).await;
    stage.put_scale(&DEPLOYMENTS, "web", 5).await;
    stage
        .until(async |s| sizes(s).await.iter().sum::<i64>() == 5)
        .await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:1").await;
    until_complete(stage).await;
}

/// Half of the old pods never became ready: they go before those that did.
async fn unhealthy_pods_go_first(stage: &Stage) {
    stage.create(rolling(6, 2, 1)).await;
    stage.until(async |s| s.pods().await.len() == 6).await;
    stage.settle().await;
    for pod in &stage.pods().await[..3] {
        stage.make_ready(pod).await;
    }
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/availableReplicas") == 3
        })
        .await;
    stage.settle().await;
    set_image(stage, "nginx:2").await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/updatedReplicas") > 0
        })
        .await;
    until_observed(stage, "web").await;
}

async fn template_changed_and_changed_back(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    for image in ["nginx:2", "nginx:1"] {
        set_image(stage, image).await;
        until_observed(stage, "web").await;
    }
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_complete(stage).await;
    assert_eq!(stage.sets().await.len(), 1);
}

/// The set is no longer what the Deployment asks for, and its name is taken.
async fn template_of_a_set_changed_by_hand(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let set = stage.sets().await.remove(0);
    let image = doc!({ "spec": { "template": { "spec": {
        "containers": [{ "name": "c", "image": "by-hand:1" }]
    } } } });
    stage.patch(&SETS, set.meta().name(), image).await;
    stage.until(async |s| s.sets().await.len() == 2).await;
    until_complete(stage).await;
}

async fn size_of_a_set_changed_by_hand(stage: &Stage) {
    roll_out_two(stage).await;
    for (at, size) in [(1, 5), (1, 1), (0, 3)] {
        let set = stage.sets().await.remove(at);
        stage.scale(&SETS, set.meta().name(), size).await;
        until_sizes(stage, &[0, 2]).await;
        until_complete(stage).await;
        stage.settle().await;
    }
}

async fn new_set_deleted_by_hand(stage: &Stage) {
    roll_out_two(stage).await;
    let set = stage.sets().await.remove(1);
    stage.cluster.delete(&set, Propagation::Background).await;
    stage
        .until(async |s| {
            let sets = s.sets().await;
            sets.len() == 2 && sets.iter().all(|it| it.meta().uid() != set.meta().uid())
        })
        .await;
    until_complete(stage).await;
    stage.until(async |s| s.pods().await.len() == 2).await;
}

/// What is not there any more cannot be gone back to.
async fn old_set_deleted_by_hand(stage: &Stage) {
    roll_out_two(stage).await;
    let set = stage.sets().await.remove(0);
    stage.cluster.delete(&set, Propagation::Background).await;
    until_gone(stage, &SETS, set.meta().name()).await;
    stage.settle().await;
    for to in ["0", "1"] {
        let patch = doc!({ "metadata": { "annotations": { ROLLBACK: to } } });
        stage.patch(&DEPLOYMENTS, "web", patch).await;
        until_rolled_back(stage).await;
        stage.settle().await;
    }
    until_complete(stage).await;
}

/// The pod matches the Deployment, but none of its sets.
async fn hash_taken_off_a_pod(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let pods = stage.pods().await;
    for (pod, hash) in pods.iter().zip([doc!(null), doc!("by-hand")]) {
        let patch = doc!({ "metadata": { "labels": { HASH: hash } } });
        stage.patch(&PODS, pod.meta().name(), patch).await;
    }
    stage.until(async |s| s.pods().await.len() == 4).await;
    until_complete(stage).await;
    // One comes back to a set that has enough.
    let hash = pods[0].meta().label(HASH).unwrap();
    let patch = doc!({ "metadata": { "labels": { HASH: hash } } });
    stage.patch(&PODS, pods[0].meta().name(), patch).await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    until_complete(stage).await;
}

/// The label of a set is only for people; its selector and template have it, too.
async fn hash_taken_off_a_set(stage: &Stage) {
    stage.run_kubelet();
    stage.create(deployment("web", 2)).await;
    until_complete(stage).await;
    stage.settle().await;
    let set = stage.sets().await.remove(0);
    let patch = doc!({ "metadata": { "labels": { HASH: null, "mark": "x" } } });
    stage.patch(&SETS, set.meta().name(), patch).await;
    stage.settle().await;
    stage.scale(&DEPLOYMENTS, "web", 3).await;
    until_complete(stage).await;
}

async fn recreation_paused(stage: &Stage) {
    stage.run_kubelet();
    let strategy = doc!({ "type": "Recreate" });
    let recreating = deployment("web", 3).with("/spec/strategy", strategy);
    stage.create(recreating.unwrap()).await;
    until_complete(stage).await;
    stage.settle().await;
    stage.patch(&DEPLOYMENTS, "web", pause(true)).await;
    until_observed(stage, "web").await;
    set_image(stage, "nginx:2").await;
    stage.scale(&DEPLOYMENTS, "web", 2).await;
    until_sizes(stage, &[2]).await;
    stage.patch(&DEPLOYMENTS, "web", pause(false)).await;
    until_complete(stage).await;
}

/// It does not replace what goes, nor take what comes, and still counts.
async fn set_deleted_and_held(stage: &Stage) {
    let set = replica_set("web", 3).with_finalizer(HELD);
    let set = stage.create(set).await;
    until_set(stage, "web", 3, 0).await;
    stage.settle().await;
    stage.cluster.delete(&set, Propagation::Background).await;
    let pods = stage.pods().await;
    stage.end_pod(pods[0].meta().name()).await;
    let away = doc!({ "metadata": { "labels": { "app": "away" } } });
    stage.patch(&PODS, pods[1].meta().name(), away).await;
    stage.create(orphan("late", "web")).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/replicas") == 1)
        .await;
    stage.make_ready(&pods[2]).await;
    stage
        .until(async |s| number(&s.get(&SETS, "web").await, "/status/readyReplicas") == 1)
        .await;
}

async fn set_selects_by_expressions(stage: &Stage) {
    let selector = doc!({ "matchExpressions": [
        { "key": "app", "operator": "In", "values": ["web", "shop"] },
        { "key": "tier", "operator": "NotIn", "values": ["back"] },
        { "key": "mark", "operator": "DoesNotExist" }
    ] });
    // Of pods that are alike any may go when there is one too many: these are dearer.
    let dear = |name: &str, labels: Doc| {
        let pod = orphan(name, "web").with("/metadata/labels", labels);
        let dear = doc!({ COST: "1" });
        pod.unwrap().with("/metadata/annotations", dear).unwrap()
    };
    for (name, given) in [
        ("shop", doc!({ "app": "shop" })),
        ("back", doc!({ "app": "web", "tier": "back" })),
        ("marked", doc!({ "app": "web", "mark": "" })),
        ("other", doc!({ "app": "other", "tier": "front" })),
    ] {
        stage.create(dear(name, given)).await;
    }
    let set = replica_set("web", 3).with("/spec/selector", selector);
    stage.create(set.unwrap()).await;
    until_set(stage, "web", 3, 0).await;
    let front = doc!({ "metadata": { "labels": { "tier": "front" } } });
    stage.patch(&PODS, "back", front).await;
    stage
        .until(async |s| {
            let back = s.get(&PODS, "back").await;
            back.meta().controller().is_some() && s.pods().await.len() == 5
        })
        .await;
    until_set(stage, "web", 3, 0).await;
}

/// Pods on a node that says nothing go on counting as terminating.
async fn set_of_pods_that_end_slowly(stage: &Stage) {
    let slow = template("web", "nginx:1", "nowhere");
    let owner = deployment("web", 3).with("/spec/template", slow).unwrap();
    stage.create(owner).await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.make_all_ready().await;
    until_complete(stage).await;
    let terminating = async |expected: i64| {
        stage
            .until(async |s| {
                let found = s.get(&DEPLOYMENTS, "web").await;
                number(&found, "/status/terminatingReplicas") == expected
            })
            .await;
        stage.settle().await;
    };
    stage.scale(&DEPLOYMENTS, "web", 1).await;
    terminating(2).await;
    let pods = stage.pods().await;
    let going = pods.iter().find(|pod| pod.meta().is_deleting()).unwrap();
    stage.end_pod(going.meta().name()).await;
    terminating(1).await;
    // One that has ended is nowhere counted, although it is still there.
    let pods = stage.pods().await;
    let going = pods.iter().find(|pod| pod.meta().is_deleting()).unwrap();
    let ended = doc!({ "phase": "Succeeded" });
    stage.patch_status(&PODS, going.meta().name(), ended).await;
    terminating(0).await;
    until_complete(stage).await;
}

/// When there is room again, what is missing comes and the failure goes.
async fn set_under_a_quota_that_grows(stage: &Stage) {
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "quota" },
        "spec": { "hard": { "pods": "1" } }
    });
    stage.create(quota).await;
    // Nobody counts what is used here; the server adds to what is said in the status.
    let used =
        |hard: &str, used: &str| doc!({ "hard": { "pods": hard }, "used": { "pods": used } });
    stage.patch_status(&QUOTAS, "quota", used("1", "1")).await;
    let dry_run = windlass_client::WriteOptions::default().dry_run();
    stage
        .until(async |s| {
            let pod = orphan("dry", "other");
            s.api(&PODS).create(&pod, &dry_run).await.is_err()
        })
        .await;
    stage.create(replica_set("web", 3)).await;
    stage
        .until(async |s| reason(&s.get(&SETS, "web").await, "ReplicaFailure") == "FailedCreate")
        .await;
    stage
        .until(async |s| s.has_event("web", "FailedCreate").await)
        .await;
    let room = doc!({ "spec": { "hard": { "pods": "9" } } });
    stage.patch(&QUOTAS, "quota", room).await;
    stage.patch_status(&QUOTAS, "quota", used("9", "0")).await;
    until_set(stage, "web", 3, 0).await;
    stage
        .until(async |s| reason(&s.get(&SETS, "web").await, "ReplicaFailure").is_empty())
        .await;
}

fn controller(replicas: i64) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "web" },
        "spec": { "replicas": replicas, "minReadySeconds": 3600, "template": (template("web", "nginx", "")) }
    })
}

async fn until_controller(stage: &Stage, replicas: i64, ready: i64) {
    stage
        .until(async |s| {
            let found = s.get(&CONTROLLERS, "web").await;
            number(&found, "/status/replicas") == replicas
                && number(&found, "/status/readyReplicas") == ready
                && number(&found, "/status/observedGeneration") == found.meta().generation()
        })
        .await;
}

async fn controller_adopts_and_fails(stage: &Stage) {
    stage.create(orphan("free", "web")).await;
    stage.create(orphan("foreign", "other")).await;
    stage.create(controller(2)).await;
    until_controller(stage, 2, 0).await;
    stage.make_ready(&stage.get(&PODS, "free").await).await;
    until_controller(stage, 2, 1).await;
    let ended = doc!({ "phase": "Failed" });
    stage.patch_status(&PODS, "free", ended).await;
    until_controller(stage, 2, 0).await;
    stage.until(async |s| s.pods().await.len() == 4).await;
    // What the template says now makes pods that the server refuses.
    let bad = doc!({ "spec": {
        "replicas": 3, "template": { "spec": { "serviceAccountName": "nobody" } }
    } });
    stage.patch(&CONTROLLERS, "web", bad).await;
    stage.settle().await;
}

async fn controller_in_the_foreground(stage: &Stage) {
    let owner = stage.create(controller(2)).await;
    until_controller(stage, 2, 0).await;
    let pods = stage.pods().await;
    let held = doc!({ "metadata": { "finalizers": [HELD] } });
    stage.patch(&PODS, pods[0].meta().name(), held).await;
    stage.settle().await;
    stage.cluster.delete(&owner, Propagation::Foreground).await;
    stage
        .until(async |s| {
            let pods = s.pods().await;
            pods.len() == 1 && pods[0].meta().is_deleting()
        })
        .await;
}

/// References with the right UID and something else that is wrong.
async fn owners_that_cannot_be(stage: &Stage) {
    let owner = stage.create(map("owner")).await;
    let right = owner_ref(&owner, false);
    let wrong = [
        ("renamed", right.with("/name", "other").unwrap()),
        ("rekinded", right.with("/kind", "Secret").unwrap()),
        (
            "unserved",
            right.with("/apiVersion", "example.com/v9").unwrap(),
        ),
    ];
    stage.create(owned("good", &right)).await;
    stage.settle().await;
    for (name, reference) in &wrong {
        stage.create(owned(name, reference)).await;
    }
    let elsewhere = Gvr::constant("", "v1", "configmaps");
    let elsewhere = stage
        .cluster
        .find(&elsewhere, "kube-system/extension-apiserver-authentication")
        .await
        .unwrap();
    stage
        .create(owned("foreign", &owner_ref(&elsewhere, false)))
        .await;
    for name in ["renamed", "rekinded", "foreign"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    stage
        .until(async |s| s.has_event("foreign", "OwnerRefInvalidNamespace").await)
        .await;
    stage.settle().await;
}

/// The definition of a kind of this stage.
pub(crate) async fn define(stage: &Stage) -> (Gvr, String) {
    let group = format!("{}.example.com", stage.namespace);
    let text = format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{ name: widgets.{group} }}
spec:
  group: {group}
  names: {{ kind: Widget, listKind: WidgetList, plural: widgets, singular: widget }}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{ openAPIV3Schema: {{ type: object, x-kubernetes-preserve-unknown-fields: true }} }}
"
    );
    stage.cluster.define(&text).await;
    let version: windlass_core::GroupVersion = format!("{group}/v1").parse().unwrap();
    (version.with_resource("widgets"), format!("{group}/v1"))
}

pub(crate) fn widget(version: &str, name: &str) -> Doc {
    doc!({ "apiVersion": version, "kind": "Widget", "metadata": { "name": name } })
}

/// A custom object goes with all that depends on it, in the foreground.
async fn owners_of_a_custom_kind(stage: &Stage) {
    let (widgets, version) = define(stage).await;
    let blocking = |owner: &Doc| {
        let reference = owner_ref(owner, false);
        reference.with("/blockOwnerDeletion", true).unwrap()
    };
    let parent = stage.create(widget(&version, "parent")).await;
    let child = widget(&version, "child");
    let child = child.with("/metadata/ownerReferences", vec![blocking(&parent)]);
    let child = stage.create(child.unwrap()).await;
    stage.create(owned("first", &blocking(&parent))).await;
    stage.create(owned("second", &blocking(&child))).await;
    let held = owned("held", &blocking(&child)).with_finalizer(HELD);
    stage.create(held).await;
    let stays = stage.create(widget(&version, "stays")).await;
    stage.create(owned("kept", &blocking(&stays))).await;
    stage.cluster.delete(&parent, Propagation::Foreground).await;
    stage
        .until(async |s| {
            let held = s.find(&CONFIG_MAPS, "held").await;
            held.is_some_and(|it| it.meta().is_deleting())
        })
        .await;
    assert!(stage.find(&widgets, "parent").await.is_some());
    let free = doc!({ "metadata": { "finalizers": null } });
    stage.patch(&CONFIG_MAPS, "held", free).await;
    for name in ["child", "parent"] {
        until_gone(stage, &widgets, name).await;
    }
    for name in ["first", "second", "held"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
}

async fn namespace_held_by_a_custom_object(stage: &Stage) {
    let (widgets, version) = define(stage).await;
    for name in ["one", "two"] {
        let held = widget(&version, name).with_finalizer(HELD);
        stage.create(held.with_finalizer("example.com/other")).await;
    }
    stage.create(widget(&version, "free")).await;
    let pod = orphan("held", "web").with_finalizer(HELD);
    stage.create(pod).await;
    stage.create(map("free")).await;
    let namespace = stage
        .cluster
        .find(&NAMESPACES, &stage.namespace)
        .await
        .unwrap();
    stage
        .cluster
        .delete(&namespace, Propagation::Background)
        .await;
    // Pods go first, and everything else waits for them.
    stage
        .until(async |s| {
            let pod = s.find(&PODS, "held").await;
            pod.is_some_and(|it| it.meta().is_deleting())
        })
        .await;
    stage.settle().await;
    assert!(stage.find(&CONFIG_MAPS, "free").await.is_some());
    let free = doc!({ "metadata": { "finalizers": null } });
    stage.patch(&PODS, "held", free).await;
    stage
        .until(async |s| {
            let now = s.cluster.find(&NAMESPACES, &s.namespace).await.unwrap();
            let texts = String::from_utf8(now.to_json()).unwrap();
            s.find(&CONFIG_MAPS, "free").await.is_none()
                && s.find(&widgets, "free").await.is_none()
                && texts.contains("has 2 resource instances")
                && texts.contains("in 2 resource instances")
        })
        .await;
}
