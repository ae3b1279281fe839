//! What single kinds do.

use windlass_core::{Doc, doc};

use crate::support::{Api, CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS, workload};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

#[tokio::test]
async fn deployments_get_their_defaults_and_templates_alike() {
    let api = Api::new().await;
    let deployment = api.post(DEPLOYMENTS, &workload("a")).await.expect(201);
    let spec = deployment.body.at("/spec");
    assert_eq!(*spec.at("/replicas"), 1);
    assert_eq!(
        *spec.at("/strategy"),
        doc!({
            "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" }
        })
    );
    assert_eq!(*spec.at("/revisionHistoryLimit"), 10);
    assert_eq!(*spec.at("/progressDeadlineSeconds"), 600);
    let set = api.post(REPLICA_SETS, &workload("a")).await.expect(201);
    assert_eq!(set.body.at("/spec/template"), spec.at("/template"));
    assert_eq!(*set.body.at("/status"), doc!({ "replicas": 0 }));
}

#[tokio::test]
async fn workloads_are_validated() {
    let api = Api::new().await;
    let cases: [(&str, Doc, &str); 9] = [
        ("/spec/selector", Doc::NULL, "spec.selector"),
        ("/spec/selector", doc!({}), "spec.selector"),
        (
            "/spec/selector",
            doc!({ "matchLabels": { "x": "y" } }),
            "spec.template.metadata.labels",
        ),
        ("/spec/replicas", doc!(-1), "spec.replicas"),
        ("/spec/minReadySeconds", doc!(-1), "spec.minReadySeconds"),
        (
            "/spec/template/spec/restartPolicy",
            doc!("Never"),
            "spec.template.spec.restartPolicy",
        ),
        (
            "/spec/strategy",
            doc!({ "type": "Recreate", "rollingUpdate": {} }),
            "spec.strategy.rollingUpdate",
        ),
        (
            "/spec/strategy",
            doc!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } }),
            "spec.strategy.rollingUpdate.maxUnavailable",
        ),
        (
            "/spec/progressDeadlineSeconds",
            doc!(0),
            "spec.progressDeadlineSeconds",
        ),
    ];
    for (pointer, value, field) in cases {
        let answer = api
            .post(DEPLOYMENTS, &workload("a").with(pointer, value).unwrap())
            .await;
        assert_eq!(
            answer.str_at("/details/causes/0/field"),
            field,
            "{}",
            answer.text
        );
        answer.refused(422, "Invalid");
    }
}

#[tokio::test]
async fn a_job_gets_a_selector_of_its_own() {
    let api = Api::new().await;
    let path = "/apis/batch/v1/namespaces/default/jobs";
    let template = doc!({
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] }
    });
    let job = doc!({ "metadata": { "name": "j" }, "spec": { "template": template } });
    let created = api.post(path, &job).await.expect(201);
    let uid = created.str_at("/metadata/uid");
    let labels = created.body.at("/spec/template/metadata/labels");
    assert_eq!(
        labels.get("batch.kubernetes.io/controller-uid").unwrap(),
        uid
    );
    assert_eq!(labels.get("job-name").unwrap(), "j");
    assert_eq!(
        *created.body.at("/spec/selector"),
        doc!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } })
    );
    assert_eq!(*created.body.at("/spec/backoffLimit"), 6);
    let deleted = api.delete(&format!("{path}/j")).await.expect(200);
    assert!(
        deleted.headers.contains_key("warning"),
        "dependents are orphaned by default"
    );
}

#[tokio::test]
async fn immutable_maps_stay_as_they_are() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "name": "a" }, "data": { "k": "v" }, "immutable": true });
    api.post(CONFIG_MAPS, &object).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    api.merge(&path, &doc!({ "data": { "k": "w" } }))
        .await
        .refused(422, "Invalid");
    api.merge(&path, &doc!({ "immutable": false }))
        .await
        .refused(422, "Invalid");
    api.merge(&path, &doc!({ "metadata": { "labels": { "x": "y" } } }))
        .await
        .expect(200);
}

#[tokio::test]
async fn texts_of_a_secret_are_stored_as_data() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "name": "a" }, "stringData": { "k": "hello" } });
    let created = api.post(SECRETS, &object).await.expect(201);
    assert_eq!(created.str_at("/type"), "Opaque");
    assert_eq!(created.str_at("/data/k"), "aGVsbG8=");
    assert!(created.body.at("/stringData").is_null());
    let path = format!("{SECRETS}/a");
    api.merge(&path, &doc!({ "type": "other" }))
        .await
        .refused(422, "Invalid");
    let tls = doc!({ "metadata": { "name": "b" }, "type": "kubernetes.io/tls" });
    let message = api.post(SECRETS, &tls).await.refused(422, "Invalid");
    assert!(
        message.contains("data[tls.crt]: Required value"),
        "{message}"
    );
}

#[tokio::test]
async fn a_service_keeps_the_address_it_was_given() {
    let api = Api::new().await;
    let service = doc!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }] } });
    let created = api.post(SERVICES, &service).await.expect(201);
    let address = created.str_at("/spec/clusterIP").to_owned();
    assert!(address.starts_with("10."));
    assert_eq!(
        *created.body.at("/spec/ports/0"),
        doc!({ "port": 80, "protocol": "TCP", "targetPort": 80 })
    );
    let updated = api
        .put(&format!("{SERVICES}/s"), &service)
        .await
        .expect(200);
    assert_eq!(updated.str_at("/spec/clusterIP"), address);
    let moved = doc!({ "spec": { "clusterIP": "10.0.0.1" } });
    api.merge(&format!("{SERVICES}/s"), &moved)
        .await
        .refused(422, "Invalid");
    let portless = doc!({ "metadata": { "name": "p" }, "spec": {} });
    api.post(SERVICES, &portless).await.refused(422, "Invalid");
}

#[tokio::test]
async fn events_are_served_in_both_forms() {
    let api = Api::new().await;
    let event = doc!({
        "metadata": { "name": "e" }, "reason": "Scheduled", "message": "hello", "type": "Normal",
        "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" }
    });
    let path = "/api/v1/namespaces/default/events";
    api.post(path, &event).await.expect(201);
    let new = api
        .get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        .await
        .expect(200);
    assert_eq!(new.str_at("/apiVersion"), "events.k8s.io/v1");
    assert_eq!(new.str_at("/note"), "hello");
    assert_eq!(new.str_at("/regarding/name"), "p");
    let found = api
        .get(&format!(
            "{path}?fieldSelector=involvedObject.name=p,reason=Scheduled"
        ))
        .await;
    assert_eq!(found.expect(200).names(), ["e"]);
    let elsewhere = event.with("/involvedObject/namespace", "other").unwrap();
    api.post(path, &elsewhere).await.refused(422, "Invalid");
}

#[tokio::test]
async fn resource_claims_are_immutable_and_reserved_only_when_allocated() {
    let api = Api::new().await;
    let request = doc!({ "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } });
    let claim =
        doc!({ "metadata": { "name": "c" }, "spec": { "devices": { "requests": [request] } } });
    let created = api.post(CLAIMS, &claim).await.expect(201);
    assert_eq!(
        *created.body.at("/spec/devices/requests/0/exactly/count"),
        1
    );
    assert_eq!(
        created.str_at("/spec/devices/requests/0/exactly/allocationMode"),
        "ExactCount"
    );
    let path = format!("{CLAIMS}/c");
    api.merge(
        &path,
        &doc!({ "spec": { "devices": { "requests": null } } }),
    )
    .await
    .refused(422, "Invalid");
    let reserved = doc!([{ "resource": "pods", "name": "p", "uid": "1" }]);
    let early = doc!({ "status": { "reservedFor": (&reserved) } });
    api.merge(&format!("{path}/status"), &early)
        .await
        .refused(422, "Invalid");
    let allocated = doc!({
        "metadata": { "labels": { "x": "y" } },
        "status": { "allocation": { "devices": {} }, "reservedFor": (&reserved) }
    });
    let updated = api
        .merge(&format!("{path}/status"), &allocated)
        .await
        .expect(200);
    assert!(
        updated.body.at("/metadata/labels").is_null(),
        "the status path writes no metadata"
    );
}

#[tokio::test]
async fn every_stored_kind_can_be_created_listed_and_deleted() {
    let api = Api::new().await;
    let kinds = [
        "/api/v1/namespaces/default/limitranges",
        "/api/v1/namespaces/default/resourcequotas",
        "/api/v1/namespaces/default/podtemplates",
        "/api/v1/persistentvolumes",
        "/apis/apps/v1/namespaces/default/controllerrevisions",
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        "/apis/networking.k8s.io/v1/ingressclasses",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/resource.k8s.io/v1/deviceclasses",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ];
    for path in kinds {
        let created = api
            .post(path, &doc!({ "metadata": { "name": "a" } }))
            .await
            .expect(201);
        assert!(!created.str_at("/kind").is_empty());
        assert_eq!(api.get(path).await.expect(200).names(), ["a"], "{path}");
        api.merge(
            &format!("{path}/a"),
            &doc!({ "metadata": { "finalizers": null } }),
        )
        .await
        .expect(200);
        api.delete(&format!("{path}/a")).await.expect(200);
        assert!(api.get(path).await.names().is_empty(), "{path}");
    }
}
