//! Delete: preconditions, finalizers, propagation, collections.

use windlass_core::{Doc, doc};

use crate::support::{Api, CONFIG_MAPS, REPLICA_SETS, config_map, labelled, workload};

#[tokio::test]
async fn a_delete_answers_with_a_success() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let deleted = api.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let uid = created.str_at("/metadata/uid");
    assert_eq!(deleted.str_at("/status"), "Success");
    assert_eq!(
        *deleted.body.at("/details"),
        doc!({ "name": "a", "kind": "configmaps", "uid": uid })
    );
    api.get(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(404, "NotFound");
    api.delete(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn some_kinds_answer_with_the_object() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/serviceaccounts";
    api.post(path, &doc!({ "metadata": { "name": "a" } }))
        .await
        .expect(201);
    let deleted = api.delete(&format!("{path}/a")).await.expect(200);
    assert_eq!(deleted.str_at("/kind"), "ServiceAccount");
}

#[tokio::test]
async fn preconditions_must_hold() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let by_uid = doc!({ "preconditions": { "uid": "x" } });
    let message = api
        .delete_with(&path, &by_uid)
        .await
        .refused(409, "Conflict");
    assert!(
        message.contains("the UID in the precondition (x) does not match"),
        "{message}"
    );
    let by_revision = doc!({ "preconditions": { "resourceVersion": "1" } });
    api.delete_with(&path, &by_revision)
        .await
        .refused(409, "Conflict");
    let right = doc!({ "preconditions": { "uid": (created.str_at("/metadata/uid")) } });
    api.delete_with(&path, &right).await.expect(200);
}

#[tokio::test]
async fn an_object_with_a_finalizer_lingers_until_it_is_removed() {
    let api = Api::new().await;
    let object = workload("a")
        .with("/metadata/finalizers", doc!(["a.b/c"]))
        .unwrap();
    api.post(REPLICA_SETS, &object).await.expect(201);
    let path = format!("{REPLICA_SETS}/a");
    let lingering = api.delete(&path).await.expect(200);
    assert_eq!(lingering.str_at("/kind"), "ReplicaSet");
    assert!(!lingering.str_at("/metadata/deletionTimestamp").is_empty());
    assert_eq!(
        *lingering.body.at("/metadata/deletionGracePeriodSeconds"),
        0
    );
    assert_eq!(*lingering.body.at("/metadata/generation"), 2);

    let more = doc!({ "metadata": { "finalizers": ["a.b/c", "d.e/f"] } });
    let message = api.merge(&path, &more).await.refused(422, "Invalid");
    assert!(message.contains("no new finalizers can be added if the object is being deleted"));

    let none = doc!({ "metadata": { "finalizers": null } });
    api.merge(&path, &none).await.expect(200);
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn propagation_becomes_finalizers() {
    let api = Api::new().await;
    let finalizers = |doc: &Doc| doc.at("/metadata/finalizers").clone();
    for (policy, expected) in [
        ("Orphan", doc!(["orphan"])),
        ("Foreground", doc!(["foregroundDeletion"])),
    ] {
        api.post(REPLICA_SETS, &workload("a")).await.expect(201);
        let path = format!("{REPLICA_SETS}/a");
        let options = doc!({ "propagationPolicy": policy });
        let lingering = api.delete_with(&path, &options).await.expect(200);
        assert_eq!(finalizers(&lingering.body), expected);
        let again = api.delete(&path).await.expect(200);
        assert_eq!(
            finalizers(&again.body),
            expected,
            "a delete that does not say keeps it"
        );
        let background = doc!({ "propagationPolicy": "Background" });
        api.delete_with(&path, &background).await.expect(200);
        api.get(&path).await.refused(404, "NotFound");
    }
}

#[tokio::test]
async fn jobs_and_replication_controllers_orphan_by_default() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    let object = doc!({
        "metadata": { "name": "a" }, "spec": { "template": (workload("a").at("/spec/template")) }
    });
    api.post(path, &object).await.expect(201);
    let lingering = api.delete(&format!("{path}/a")).await.expect(200);
    assert_eq!(*lingering.body.at("/metadata/finalizers"), doc!(["orphan"]));
}

#[tokio::test]
async fn contradicting_options_are_refused() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    for options in [
        doc!({ "propagationPolicy": "Orphan", "orphanDependents": true }),
        doc!({ "propagationPolicy": "Sideways" }),
        doc!({ "dryRun": ["Some"] }),
    ] {
        api.delete_with(&path, &options)
            .await
            .refused(422, "Invalid");
    }
    api.delete_with(&path, &doc!([]))
        .await
        .refused(400, "BadRequest");
    api.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.delete(&format!("{CONFIG_MAPS}/a?dryRun=All"))
        .await
        .expect(200);
    api.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::new().await;
    for (name, value) in [("a", "1"), ("b", "1"), ("c", "2")] {
        api.post(CONFIG_MAPS, &labelled(name, "n", value))
            .await
            .expect(201);
    }
    let deleted = api
        .delete(&format!("{CONFIG_MAPS}?labelSelector=n=1"))
        .await
        .expect(200);
    assert_eq!(deleted.str_at("/kind"), "ConfigMapList");
    assert_eq!(deleted.names(), ["a", "b"]);
    assert_eq!(api.get(CONFIG_MAPS).await.names(), ["c"]);
}

#[tokio::test]
async fn a_namespace_ends_when_its_finalizers_are_gone() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/ns";
    let created = api
        .post(
            "/api/v1/namespaces",
            &doc!({ "metadata": { "name": "ns" } }),
        )
        .await;
    assert_eq!(*created.body.at("/spec/finalizers"), doc!(["kubernetes"]));
    assert_eq!(
        created.str_at("/metadata/labels/kubernetes.io~1metadata.name"),
        "ns"
    );
    let ending = api.delete(path).await.expect(200);
    assert_eq!(ending.str_at("/status/phase"), "Terminating");
    assert_eq!(api.delete(path).await.expect(200).body, ending.body);
    let empty = doc!({ "metadata": { "name": "ns" }, "spec": { "finalizers": [] } });
    api.put(&format!("{path}/finalize"), &empty)
        .await
        .expect(200);
    api.get(path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn the_first_namespaces_may_not_be_deleted() {
    let api = Api::new().await;
    for name in ["default", "kube-system", "kube-public"] {
        let message = api
            .delete(&format!("/api/v1/namespaces/{name}"))
            .await
            .refused(403, "Forbidden");
        assert!(message.ends_with("this namespace may not be deleted"));
    }
}
