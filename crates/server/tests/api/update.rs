//! Update.

use windlass_core::{Doc, doc};

use crate::support::{
    Api, CONFIG_MAPS, DEPLOYMENTS, PODS, REPLICA_SETS, config_map, pod, workload,
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn an_update_moves_the_revision_and_keeps_identity() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let changed = created.body.with("/data/a", "c").unwrap();
    let updated = api
        .put(&format!("{CONFIG_MAPS}/a"), &changed)
        .await
        .expect(200);
    assert!(updated.revision() > created.revision());
    assert_eq!(
        updated.body.at("/metadata/uid"),
        created.body.at("/metadata/uid")
    );
    assert_eq!(updated.str_at("/data/a"), "c");
}

#[tokio::test]
async fn an_update_that_changes_nothing_costs_no_revision() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let again = api
        .put(&format!("{CONFIG_MAPS}/a"), &created.body)
        .await
        .expect(200);
    assert_eq!(again.body, created.body);
    let list = api.get(CONFIG_MAPS).await.expect(200);
    assert_eq!(list.revision(), created.revision());
}

#[tokio::test]
async fn an_old_revision_conflicts() {
    let api = Api::new().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    api.put(&path, &created.body.with("/data/a", "c").unwrap())
        .await
        .expect(200);
    let message = api
        .put(&path, &created.body.with("/data/a", "d").unwrap())
        .await
        .refused(409, "Conflict");
    assert_eq!(
        message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
         apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn without_a_revision_the_last_writer_wins_where_the_kind_allows_it() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.put(&format!("{CONFIG_MAPS}/a"), &config_map("a"))
        .await
        .expect(200);
    api.post(LEASES, &doc!({ "metadata": { "name": "l" } }))
        .await
        .expect(201);
    let message = api
        .put(
            &format!("{LEASES}/l"),
            &doc!({ "metadata": { "name": "l" } }),
        )
        .await
        .refused(422, "Invalid");
    assert!(
        message.contains(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    );
}

#[tokio::test]
async fn the_uid_in_a_body_is_a_condition() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let other = doc!({ "metadata": { "name": "a", "uid": "other" } });
    let message = api
        .put(&format!("{CONFIG_MAPS}/a"), &other)
        .await
        .refused(409, "Conflict");
    assert!(
        message.contains("Precondition failed: UID in precondition: other"),
        "{message}"
    );
}

#[tokio::test]
async fn name_and_namespace_must_be_those_of_the_path() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let message = api
        .put(&path, &config_map("b"))
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        "the name of the object (b) does not match the name on the URL (a)"
    );
    api.put(&path, &doc!({ "metadata": {} }))
        .await
        .refused(400, "BadRequest");
    let elsewhere = doc!({ "metadata": { "name": "a", "namespace": "x" } });
    api.put(&path, &elsewhere).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn system_metadata_cannot_be_changed() {
    let api = Api::new().await;
    let created = api.post(REPLICA_SETS, &workload("a")).await.expect(201);
    let tampered = created
        .body
        .with("/metadata/generation", 99)
        .and_then(|doc| doc.with("/metadata/creationTimestamp", "2001-01-01T00:00:00Z"))
        .unwrap();
    let path = format!("{REPLICA_SETS}/a");
    let updated = api.put(&path, &tampered).await.expect(200);
    assert_eq!(updated.body, created.body);
    let ended = created
        .body
        .with("/metadata/deletionTimestamp", "2001-01-01T00:00:00Z")
        .unwrap();
    let message = api.put(&path, &ended).await.refused(422, "Invalid");
    assert!(message.contains("metadata.deletionTimestamp"), "{message}");
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_spec() {
    let api = Api::new().await;
    let check = |collection: &'static str, change: Doc, expected: i64| {
        let api = api.clone();
        async move {
            let updated = api
                .merge(&format!("{collection}/a"), &change)
                .await
                .expect(200);
            assert_eq!(
                *updated.body.at("/metadata/generation"),
                expected,
                "{change}"
            );
        }
    };
    api.post(REPLICA_SETS, &workload("a")).await.expect(201);
    check(
        REPLICA_SETS,
        doc!({ "metadata": { "labels": { "x": "y" } } }),
        1,
    )
    .await;
    check(
        REPLICA_SETS,
        doc!({ "metadata": { "annotations": { "x": "y" } } }),
        1,
    )
    .await;
    check(REPLICA_SETS, doc!({ "spec": { "replicas": 1 } }), 1).await;
    check(REPLICA_SETS, doc!({ "spec": { "replicas": 2 } }), 2).await;
    api.post(DEPLOYMENTS, &workload("a")).await.expect(201);
    check(
        DEPLOYMENTS,
        doc!({ "metadata": { "annotations": { "x": "y" } } }),
        2,
    )
    .await;
    check(DEPLOYMENTS, doc!({ "spec": { "replicas": 2 } }), 3).await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    assert!(created.body.at("/metadata/generation").is_null());
}

#[tokio::test]
async fn the_main_path_ignores_the_status() {
    let api = Api::new().await;
    let created = api.post(PODS, &pod("a")).await.expect(201);
    let changed = created.body.with("/status/phase", "Running").unwrap();
    let updated = api.put(&format!("{PODS}/a"), &changed).await.expect(200);
    assert_eq!(updated.str_at("/status/phase"), "Pending");
    assert_eq!(updated.revision(), created.revision());
}

#[tokio::test]
async fn some_kinds_are_created_by_an_update() {
    let api = Api::new().await;
    let lease = doc!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "me" } });
    api.put(&format!("{LEASES}/l"), &lease).await.expect(201);
    api.put(&format!("{CONFIG_MAPS}/c"), &config_map("c"))
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn the_selector_of_a_workload_is_immutable() {
    let api = Api::new().await;
    for collection in [DEPLOYMENTS, REPLICA_SETS] {
        api.post(collection, &workload("a")).await.expect(201);
        let change = doc!({ "spec": { "selector": { "matchLabels": { "x": "y" } } } });
        let answer = api.merge(&format!("{collection}/a"), &change).await;
        assert!(
            answer.text.contains("field is immutable"),
            "{}",
            answer.text
        );
        answer.refused(422, "Invalid");
    }
}

#[tokio::test]
async fn concurrent_updates_without_a_revision_all_succeed() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..32 {
        let api = api.clone();
        tasks.spawn(async move {
            let key = format!("k{number}");
            let change = doc!({ "data": { (key.as_str()): "x" } });
            api.merge(&format!("{CONFIG_MAPS}/a"), &change)
                .await
                .expect(200);
        });
    }
    while let Some(outcome) = tasks.join_next().await {
        outcome.unwrap();
    }
    let got = api.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    assert_eq!(got.body.at("/data").as_object().unwrap().len(), 33);
}
