//! Status, scale and tokens.

use windlass_core::doc;

use crate::support::{Api, DEPLOYMENTS, PODS, REPLICA_SETS, pod, workload};

#[tokio::test]
async fn a_status_update_leaves_the_spec_alone() {
    let api = Api::new().await;
    let created = api.post(REPLICA_SETS, &workload("a")).await.expect(201);
    let changed = created
        .body
        .with("/status", doc!({ "replicas": 1 }))
        .and_then(|doc| doc.with("/spec/replicas", 9))
        .unwrap();
    let updated = api
        .put(&format!("{REPLICA_SETS}/a/status"), &changed)
        .await
        .expect(200);
    assert_eq!(*updated.body.at("/status/replicas"), 1);
    assert_eq!(updated.body.at("/spec"), created.body.at("/spec"));
    assert_eq!(*updated.body.at("/metadata/generation"), 1);
}

#[tokio::test]
async fn annotations_of_a_deployment_are_written_through_its_status_without_counting() {
    let api = Api::new().await;
    api.post(DEPLOYMENTS, &workload("a")).await.expect(201);
    let change = doc!({
        "metadata": { "annotations": { "revision": "1" }, "labels": { "x": "y" } },
        "status": { "observedGeneration": 1 }
    });
    let updated = api
        .merge(&format!("{DEPLOYMENTS}/a/status"), &change)
        .await
        .expect(200);
    assert_eq!(updated.str_at("/metadata/annotations/revision"), "1");
    assert!(updated.body.at("/metadata/labels").is_null());
    assert_eq!(*updated.body.at("/metadata/generation"), 1);
}

#[tokio::test]
async fn counts_in_a_status_must_fit_each_other() {
    let api = Api::new().await;
    api.post(REPLICA_SETS, &workload("a")).await.expect(201);
    let path = format!("{REPLICA_SETS}/a/status");
    for status in [
        doc!({ "replicas": -1 }),
        doc!({ "replicas": 1, "readyReplicas": 2 }),
        doc!({ "replicas": 2, "readyReplicas": 1, "availableReplicas": 2 }),
    ] {
        api.merge(&path, &doc!({ "status": status }))
            .await
            .refused(422, "Invalid");
    }
}

#[tokio::test]
async fn the_quality_class_of_a_pod_is_kept() {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let path = format!("{PODS}/a/status");
    let object = pod("a")
        .with("/status", doc!({ "phase": "Running" }))
        .unwrap();
    let updated = api.put(&path, &object).await.expect(200);
    assert_eq!(updated.str_at("/status/qosClass"), "BestEffort");
    let other = doc!({ "status": { "qosClass": "Guaranteed" } });
    api.merge(&path, &other).await.refused(422, "Invalid");
}

#[tokio::test]
async fn a_scale_is_a_view_of_replicas() {
    let api = Api::new().await;
    let created = api.post(DEPLOYMENTS, &workload("a")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/a/scale");
    let scale = api.get(&path).await.expect(200);
    assert_eq!(scale.str_at("/kind"), "Scale");
    assert_eq!(scale.str_at("/apiVersion"), "autoscaling/v1");
    assert_eq!(*scale.body.at("/spec/replicas"), 1);
    assert_eq!(scale.str_at("/status/selector"), "app=web");
    assert_eq!(
        scale.body.at("/metadata/uid"),
        created.body.at("/metadata/uid")
    );

    let scaled = api
        .merge(&path, &doc!({ "spec": { "replicas": 3 } }))
        .await
        .expect(200);
    assert_eq!(*scaled.body.at("/spec/replicas"), 3);
    let deployment = api.get(&format!("{DEPLOYMENTS}/a")).await;
    assert_eq!(*deployment.body.at("/spec/replicas"), 3);
    assert_eq!(*deployment.body.at("/metadata/generation"), 2);

    api.put(&path, &scale.body).await.refused(409, "Conflict");
    let negative = doc!({ "spec": { "replicas": -1 } });
    let message = api.merge(&path, &negative).await.refused(422, "Invalid");
    assert!(
        message.starts_with("Scale.autoscaling \"a\" is invalid: spec.replicas"),
        "{message}"
    );
    api.get(&format!("{DEPLOYMENTS}/none/scale"))
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn a_token_is_good_while_its_account_lives() {
    let api = Api::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, &doc!({ "metadata": { "name": "bot" } }))
        .await
        .expect(201);
    let answer = api
        .post(&format!("{accounts}/bot/token"), &doc!({ "spec": {} }))
        .await
        .expect(201);
    let token = answer.str_at("/status/token").to_owned();
    assert_eq!(*answer.body.at("/spec/expirationSeconds"), 3600);

    let review = doc!({ "spec": { "token": token } });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let found = api.post(reviews, &review).await.expect(201);
    assert_eq!(
        found.str_at("/status/user/username"),
        "system:serviceaccount:default:bot"
    );

    api.delete(&format!("{accounts}/bot")).await.expect(200);
    let gone = api.post(reviews, &review).await.expect(201);
    assert!(gone.body.at("/status/authenticated").is_null());
}

#[tokio::test]
async fn a_token_may_not_be_too_short_lived() {
    let api = Api::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, &doc!({ "metadata": { "name": "bot" } }))
        .await
        .expect(201);
    let path = format!("{accounts}/bot/token");
    let short = doc!({ "spec": { "expirationSeconds": 5 } });
    api.post(&path, &short).await.refused(422, "Invalid");
    let missing = doc!({ "spec": { "boundObjectRef": { "kind": "Pod", "name": "none" } } });
    api.post(&path, &missing).await.refused(404, "NotFound");
}

#[tokio::test]
async fn verbs_that_a_path_does_not_have_are_refused() {
    let api = Api::new().await;
    api.put(PODS, &doc!({}))
        .await
        .refused(405, "MethodNotAllowed");
    api.post(&format!("{PODS}/a"), &doc!({}))
        .await
        .refused(405, "MethodNotAllowed");
    api.post("/api/v1/pods", &pod("a"))
        .await
        .refused(405, "MethodNotAllowed");
    api.delete("/api/v1/pods")
        .await
        .refused(405, "MethodNotAllowed");
    api.get(&format!("{PODS}/a/binding"))
        .await
        .refused(405, "MethodNotAllowed");
    api.delete("/api/v1/namespaces")
        .await
        .refused(405, "MethodNotAllowed");
}
