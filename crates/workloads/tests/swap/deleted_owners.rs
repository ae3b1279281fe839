//! Owners that are deleted in one way while their dependents are deleted in another, references
//! that say a thing twice or by another name, and namespaces that end in the middle of something.
//! Each step waits for its effect, so that the end does not depend on how fast controllers are.

use windlass_client::{DeleteOptions, Propagation};
use windlass_core::{Doc, Gvr, doc, merge_patch};

use crate::{
    concurrent_changes::{HELD, NAMESPACES, blocking, delete, map, owned},
    scripts::{Script, rolling, scripts, set_image, until_gone},
    stage::{CONFIG_MAPS, DEPLOYMENTS, PODS, SETS, Stage, number, owner_ref, reason, replica_set},
};

const SCALERS: Gvr = Gvr::constant("autoscaling", "v2", "horizontalpodautoscalers");

/// The scripts by name.
pub(crate) fn all() -> Vec<(&'static str, Script)> {
    scripts![
        chain_of_mixed_propagation,
        orphan_finalizer_put_by_hand,
        foreground_finalizer_put_by_hand,
        owner_named_twice,
        dependents_that_are_going_already,
        owner_by_another_version,
        owners_in_a_circle,
        owner_given_up_while_it_waits,
        dependent_added_while_its_owner_waits,
        namespace_of_a_rollout,
        namespace_with_owners_that_wait,
    ]
}

/// Scripts that others would notice, to be played alone.
pub(crate) fn alone() -> Vec<(&'static str, Script)> {
    scripts![namespace_beside_a_missing_api]
}

async fn until_going(stage: &Stage, name: &str) {
    stage
        .until(async |s| {
            let found = s.find(&CONFIG_MAPS, name).await;
            found.is_some_and(|it| it.meta().is_deleting())
        })
        .await;
}

async fn until_owners(stage: &Stage, name: &str, count: usize) {
    stage
        .until(async |s| {
            let found = s.get(&CONFIG_MAPS, name).await;
            found.meta().owner_refs().count() == count
        })
        .await;
}

/// Three maps, each the owner of the next.
async fn chain(stage: &Stage, name: &str, middle: impl Fn(Doc) -> Doc) -> [Doc; 3] {
    let names = ["top", "middle", "bottom"].map(|it| format!("{name}-{it}"));
    let top = stage.create(map(&names[0])).await;
    let child = owned(&names[1], vec![blocking(&top)]);
    let child = stage.create(middle(child)).await;
    let last = stage.create(owned(&names[2], vec![blocking(&child)])).await;
    stage.settle().await;
    [top, child, last]
}

async fn free(stage: &Stage, name: &str) {
    let free = doc!({ "metadata": { "finalizers": null } });
    stage.patch(&CONFIG_MAPS, name, free).await;
}

async fn chain_of_mixed_propagation(stage: &Stage) {
    let [top, middle, _] = chain(stage, "a", |it| it).await;
    delete(stage, &middle, Propagation::Orphan).await;
    until_gone(stage, &CONFIG_MAPS, "a-middle").await;
    until_owners(stage, "a-bottom", 0).await;
    delete(stage, &top, Propagation::Foreground).await;
    until_gone(stage, &CONFIG_MAPS, "a-top").await;
    // The one in the middle is held while it goes alone, and then its owner wants it gone.
    let [top, middle, _] = chain(stage, "b", |it| it.with_finalizer(HELD)).await;
    delete(stage, &middle, Propagation::Orphan).await;
    until_owners(stage, "b-bottom", 0).await;
    delete(stage, &top, Propagation::Foreground).await;
    stage.settle().await;
    until_going(stage, "b-middle").await;
    // The whole chain in the foreground from the top, in the background from the middle.
    let [top, middle, _] = chain(stage, "c", |it| it.with_finalizer(HELD)).await;
    delete(stage, &middle, Propagation::Background).await;
    delete(stage, &top, Propagation::Foreground).await;
    stage.settle().await;
    free(stage, "c-middle").await;
    for name in ["c-bottom", "c-middle", "c-top"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    let [top, ..] = chain(stage, "d", |it| it).await;
    delete(stage, &top, Propagation::Orphan).await;
    until_owners(stage, "d-middle", 0).await;
    until_gone(stage, &CONFIG_MAPS, "d-top").await;
}

/// The finalizer says how an object is to be deleted when nobody else does.
async fn orphan_finalizer_put_by_hand(stage: &Stage) {
    let orphaning = |it: Doc| it.with_finalizer("orphan");
    let [top, ..] = chain(stage, "a", orphaning).await;
    delete(stage, &top, Propagation::Background).await;
    until_gone(stage, &CONFIG_MAPS, "a-middle").await;
    until_owners(stage, "a-bottom", 0).await;
    let [top, ..] = chain(stage, "b", orphaning).await;
    delete(stage, &top, Propagation::Foreground).await;
    until_gone(stage, &CONFIG_MAPS, "b-top").await;
    stage.settle().await;
    let [_, middle, _] = chain(stage, "c", orphaning).await;
    let maps = stage.api(&CONFIG_MAPS);
    let options = DeleteOptions::uid(middle.meta().uid_str());
    maps.delete("c-middle", &options).await.unwrap();
    until_gone(stage, &CONFIG_MAPS, "c-middle").await;
    until_owners(stage, "c-bottom", 0).await;
    let [_, middle, _] = chain(stage, "d", orphaning).await;
    delete(stage, &middle, Propagation::Background).await;
    until_gone(stage, &CONFIG_MAPS, "d-bottom").await;
}

async fn foreground_finalizer_put_by_hand(stage: &Stage) {
    let waiting = |it: Doc| it.with_finalizer("foregroundDeletion");
    let [top, ..] = chain(stage, "a", waiting).await;
    delete(stage, &top, Propagation::Background).await;
    for name in ["a-top", "a-middle", "a-bottom"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    let [_, middle, _] = chain(stage, "b", waiting).await;
    delete(stage, &middle, Propagation::Orphan).await;
    until_gone(stage, &CONFIG_MAPS, "b-middle").await;
    until_owners(stage, "b-bottom", 0).await;
    // One that nobody deletes waits for nothing.
    chain(stage, "c", waiting).await;
    let [_, middle, _] = chain(stage, "d", |it| waiting(it).with_finalizer(HELD)).await;
    let maps = stage.api(&CONFIG_MAPS);
    let options = DeleteOptions::uid(middle.meta().uid_str());
    maps.delete("d-middle", &options).await.unwrap();
    until_gone(stage, &CONFIG_MAPS, "d-bottom").await;
    stage
        .until(async |s| {
            let middle = s.get(&CONFIG_MAPS, "d-middle").await;
            !middle.meta().has_finalizer("foregroundDeletion")
        })
        .await;
}

async fn owner_named_twice(stage: &Stage) {
    let owner = stage.create(map("owner")).await;
    let stays = stage.create(map("stays")).await;
    let twice = || vec![blocking(&owner), owner_ref(&owner, false)];
    let more = |other: Doc| {
        let mut all = twice();
        all.push(other);
        all
    };
    stage.create(owned("twice", twice())).await;
    stage
        .create(owned("held", twice()).with_finalizer(HELD))
        .await;
    stage
        .create(owned("shared", more(owner_ref(&stays, false))))
        .await;
    // Once by its name, once by another.
    let other = owner_ref(&owner, false).with("/name", "other").unwrap();
    stage
        .create(owned("renamed", vec![owner_ref(&owner, false), other]))
        .await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Foreground).await;
    until_gone(stage, &CONFIG_MAPS, "twice").await;
    until_going(stage, "held").await;
    until_owners(stage, "shared", 1).await;
    stage.settle().await;
    let second = stage.create(map("second")).await;
    let twice = vec![blocking(&second), owner_ref(&second, false)];
    stage.create(owned("alone", twice)).await;
    stage.settle().await;
    delete(stage, &second, Propagation::Orphan).await;
    until_gone(stage, &CONFIG_MAPS, "second").await;
    until_owners(stage, "alone", 0).await;
}

async fn dependents_that_are_going_already(stage: &Stage) {
    for (name, propagation) in [
        ("back", Propagation::Background),
        ("fore", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        let owner = stage.create(map(name)).await;
        let child = format!("{name}-child");
        let held = owned(&child, vec![blocking(&owner)]).with_finalizer(HELD);
        let held = stage.create(held).await;
        let last = owned(&format!("{name}-last"), vec![blocking(&held)]);
        stage.create(last).await;
        delete(stage, &held, Propagation::Background).await;
        until_going(stage, &child).await;
        stage.settle().await;
        delete(stage, &owner, propagation).await;
        stage.settle().await;
    }
    until_gone(stage, &CONFIG_MAPS, "back").await;
    until_gone(stage, &CONFIG_MAPS, "orphan").await;
    until_owners(stage, "orphan-child", 0).await;
    assert!(stage.find(&CONFIG_MAPS, "fore").await.is_some());
    free(stage, "fore-child").await;
    until_gone(stage, &CONFIG_MAPS, "fore").await;
    until_gone(stage, &CONFIG_MAPS, "fore-last").await;
}

fn scaler(name: &str) -> Doc {
    doc!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name },
        "spec": {
            "maxReplicas": 1,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "none" }
        }
    })
}

/// A kind has two versions, and references name the one that the collector does not watch.
async fn owner_by_another_version(stage: &Stage) {
    for (name, propagation) in [
        ("back", Propagation::Background),
        ("fore", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        let owner = stage.create(scaler(name)).await;
        let by = |version: &str| blocking(&owner).with("/apiVersion", version).unwrap();
        let child = |end: &str| format!("{name}-{end}");
        stage
            .create(owned(&child("one"), vec![by("autoscaling/v1")]))
            .await;
        stage
            .create(owned(&child("two"), vec![by("autoscaling/v2")]))
            .await;
        stage
            .create(owned(&child("held"), vec![by("autoscaling/v1")]).with_finalizer(HELD))
            .await;
        stage.settle().await;
        delete(stage, &owner, propagation).await;
        stage.settle().await;
        if propagation == Propagation::Orphan {
            continue;
        }
        until_gone(stage, &CONFIG_MAPS, &child("one")).await;
        until_gone(stage, &CONFIG_MAPS, &child("two")).await;
        until_going(stage, &child("held")).await;
    }
    until_gone(stage, &SCALERS, "back").await;
    until_gone(stage, &SCALERS, "orphan").await;
    let fore = stage.find(&SCALERS, "fore").await;
    stage
        .create(map(if fore.is_some() {
            "waits"
        } else {
            "does-not-wait"
        }))
        .await;
}

/// Each is the owner of the other.
async fn owners_in_a_circle(stage: &Stage) {
    for (name, propagation) in [
        ("back", Propagation::Background),
        ("fore", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        let names = ["a", "b"].map(|it| format!("{name}-{it}"));
        let first = stage.create(map(&names[0])).await;
        let second = stage.create(owned(&names[1], vec![blocking(&first)])).await;
        let reference = doc!({ "metadata": { "ownerReferences": (vec![blocking(&second)]) } });
        stage.patch(&CONFIG_MAPS, &names[0], reference).await;
        stage.settle().await;
        let first = stage.get(&CONFIG_MAPS, &names[0]).await;
        delete(stage, &first, propagation).await;
        until_gone(stage, &CONFIG_MAPS, &names[0]).await;
        match propagation {
            Propagation::Orphan => until_owners(stage, &names[1], 0).await,
            _ => until_gone(stage, &CONFIG_MAPS, &names[1]).await,
        }
    }
}

/// An owner waits for a dependent that is given to somebody else meanwhile.
async fn owner_given_up_while_it_waits(stage: &Stage) {
    let stays = stage.create(map("stays")).await;
    for name in ["none", "other", "loose"] {
        let owner = stage.create(map(name)).await;
        let child = format!("{name}-child");
        let held = owned(&child, vec![blocking(&owner)]).with_finalizer(HELD);
        stage.create(held).await;
        stage.settle().await;
        delete(stage, &owner, Propagation::Foreground).await;
        until_going(stage, &child).await;
        stage.settle().await;
        let references = match name {
            "none" => doc!(null),
            "other" => vec![owner_ref(&stays, false)].into(),
            _ => vec![owner_ref(&owner, false)].into(),
        };
        let patch = doc!({ "metadata": { "ownerReferences": references } });
        stage.patch(&CONFIG_MAPS, &child, patch).await;
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
}

async fn dependent_added_while_its_owner_waits(stage: &Stage) {
    let owner = stage.create(map("owner")).await;
    let held = owned("held", vec![blocking(&owner)]).with_finalizer(HELD);
    stage.create(held).await;
    stage.settle().await;
    delete(stage, &owner, Propagation::Foreground).await;
    until_going(stage, "held").await;
    stage.create(owned("late", vec![blocking(&owner)])).await;
    stage
        .create(owned("loose", vec![owner_ref(&owner, false)]))
        .await;
    let set = replica_set("web", 2);
    let set = set.with("/metadata/ownerReferences", vec![blocking(&owner)]);
    stage.create(set.unwrap()).await;
    stage.settle().await;
    assert!(stage.find(&CONFIG_MAPS, "owner").await.is_some());
    free(stage, "held").await;
    for name in ["held", "late", "owner", "loose"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    until_gone(stage, &SETS, "web").await;
    stage.until(async |s| s.pods().await.is_empty()).await;
}

async fn end_namespace(stage: &Stage) {
    let namespace = stage.cluster.find(&NAMESPACES, &stage.namespace).await;
    delete(stage, &namespace.unwrap(), Propagation::Background).await;
}

async fn condition_of(stage: &Stage, kind: &str) -> String {
    let namespace = stage.cluster.find(&NAMESPACES, &stage.namespace).await;
    reason(&namespace.unwrap(), kind)
}

/// The pods of a rollout are held: nothing new comes, and what there is goes on being counted.
async fn namespace_of_a_rollout(stage: &Stage) {
    let rolling = rolling(3, 1, 1);
    let finalizers = doc!({ "metadata": { "finalizers": [HELD] } });
    let held = merge_patch(rolling.at("/spec/template"), &finalizers);
    stage
        .create(rolling.with("/spec/template", held).unwrap())
        .await;
    stage.until(async |s| s.pods().await.len() == 3).await;
    stage.make_all_ready().await;
    stage
        .until(async |s| {
            let found = s.get(&DEPLOYMENTS, "web").await;
            number(&found, "/status/availableReplicas") == 3
        })
        .await;
    set_image(stage, "nginx:2").await;
    stage
        .until(async |s| {
            let pods = s.pods().await;
            pods.len() == 5 && pods.iter().filter(|it| it.meta().is_deleting()).count() == 1
        })
        .await;
    stage.settle().await;
    stage.create(map("held").with_finalizer(HELD)).await;
    end_namespace(stage).await;
    stage
        .until(async |s| {
            let pods = s.pods().await;
            let found = s.get(&DEPLOYMENTS, "web").await;
            pods.iter().all(|it| it.meta().is_deleting())
                && number(&found, "/status/terminatingReplicas") == 5
        })
        .await;
    stage.settle().await;
    // What is left when the pods are gone does not say what was counted before.
    let found = stage.get(&DEPLOYMENTS, "web").await;
    let counts = ["replicas", "updatedReplicas", "unavailableReplicas"];
    let counts = counts.map(|it| number(&found, &format!("/status/{it}")));
    let noted = doc!({ "data": {
        "counts": (format!("{counts:?}")), "progress": (reason(&found, "Progressing")),
        "failure": (reason(&found, "ReplicaFailure"))
    } });
    stage.patch(&CONFIG_MAPS, "held", noted).await;
    let free = doc!({ "metadata": { "finalizers": null } });
    for pod in stage.pods().await {
        stage.patch(&PODS, pod.meta().name(), free.clone()).await;
    }
    stage
        .until(async |s| {
            condition_of(s, "NamespaceFinalizersRemaining").await == "SomeFinalizersRemain"
        })
        .await;
    until_gone(stage, &DEPLOYMENTS, "web").await;
    stage.settle().await;
}

/// Everything is deleted at once, whatever it is the owner of.
async fn namespace_with_owners_that_wait(stage: &Stage) {
    let [top, ..] = chain(stage, "a", |it| it.with_finalizer(HELD)).await;
    delete(stage, &top, Propagation::Foreground).await;
    until_going(stage, "a-middle").await;
    stage.settle().await;
    let owner = stage.create(map("owner")).await;
    stage
        .create(owned("orphaned", vec![blocking(&owner)]).with_finalizer(HELD))
        .await;
    stage
        .create(map("orphaning").with_finalizer("orphan"))
        .await;
    end_namespace(stage).await;
    for name in ["owner", "orphaning", "a-bottom"] {
        until_gone(stage, &CONFIG_MAPS, name).await;
    }
    stage
        .until(async |s| {
            condition_of(s, "NamespaceFinalizersRemaining").await == "SomeFinalizersRemain"
        })
        .await;
    stage.settle().await;
}

/// Somebody who should serve a group is not there: nobody knows what else the namespace holds.
async fn namespace_beside_a_missing_api(stage: &Stage) {
    let missing = doc!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.missing.example.com" },
        "spec": {
            "group": "missing.example.com", "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": { "name": "missing", "namespace": (&stage.namespace) }
        }
    });
    stage.cluster.create_doc(&missing).await;
    stage.create(map("held").with_finalizer(HELD)).await;
    end_namespace(stage).await;
    stage
        .until(async |s| {
            condition_of(s, "NamespaceDeletionDiscoveryFailure").await == "DiscoveryFailed"
                && condition_of(s, "NamespaceFinalizersRemaining").await == "SomeFinalizersRemain"
        })
        .await;
}
