//! Pods: defaults, validation, binding, graceful deletion, eviction.

use windlass_core::{Doc, doc};

use crate::support::{Api, PODS, pod};

async fn bound() -> Api {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } });
    let answer = api
        .post(&format!("{PODS}/a/binding"), &binding)
        .await
        .expect(201);
    assert_eq!(answer.str_at("/status"), "Success");
    api
}

#[tokio::test]
async fn what_the_author_left_out_is_filled_in() {
    let api = Api::new().await;
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": {
            "hostNetwork": true,
            "containers": [{
                "name": "c", "image": "registry:5000/x",
                "ports": [{ "containerPort": 80 }],
                "resources": { "limits": { "cpu": "1" } },
                "readinessProbe": { "httpGet": { "port": 80 } },
                "env": [{ "name": "N", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }]
            }],
            "volumes": [{ "name": "a" }, { "name": "b", "secret": { "secretName": "s" } }]
        }
    });
    let spec = api
        .post(PODS, &object)
        .await
        .expect(201)
        .body
        .at("/spec")
        .clone();
    let check = |pointer: &str, expected: Doc| assert_eq!(*spec.at(pointer), expected, "{pointer}");
    check("/restartPolicy", doc!("Always"));
    check("/dnsPolicy", doc!("ClusterFirst"));
    check("/terminationGracePeriodSeconds", doc!(30));
    check("/schedulerName", doc!("default-scheduler"));
    check("/securityContext", doc!({}));
    check("/enableServiceLinks", doc!(true));
    check("/priority", doc!(0));
    check("/containers/0/imagePullPolicy", doc!("Always"));
    check(
        "/containers/0/terminationMessagePath",
        doc!("/dev/termination-log"),
    );
    check(
        "/containers/0/ports/0",
        doc!({ "containerPort": 80, "hostPort": 80, "protocol": "TCP" }),
    );
    check("/containers/0/resources/requests", doc!({ "cpu": "1" }));
    check(
        "/containers/0/readinessProbe",
        doc!({
            "failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
            "httpGet": { "path": "/", "port": 80, "scheme": "HTTP" }
        }),
    );
    check(
        "/containers/0/env/0/valueFrom/fieldRef/apiVersion",
        doc!("v1"),
    );
    check("/volumes/0/emptyDir", doc!({}));
    check("/volumes/1/secret/defaultMode", doc!(420));
    check("/tolerations/0/tolerationSeconds", doc!(300));
}

#[tokio::test]
async fn the_image_decides_when_it_is_pulled() {
    let api = Api::new().await;
    for (index, (image, policy)) in [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("nginx@sha256:0", "IfNotPresent"),
    ]
    .into_iter()
    .enumerate()
    {
        let object = pod(&format!("p{index}"))
            .with("/spec/containers/0/image", image)
            .unwrap();
        let created = api.post(PODS, &object).await.expect(201);
        assert_eq!(
            created.str_at("/spec/containers/0/imagePullPolicy"),
            policy,
            "{image}"
        );
    }
}

#[tokio::test]
async fn the_quality_of_service_follows_from_resources() {
    let api = Api::new().await;
    let both = doc!({ "cpu": "1", "memory": "1Gi" });
    let cases = [
        (doc!({}), "BestEffort"),
        (doc!({ "requests": { "cpu": "1" } }), "Burstable"),
        (doc!({ "limits": (&both) }), "Guaranteed"),
        (
            doc!({ "limits": (&both), "requests": { "cpu": "500m" } }),
            "Burstable",
        ),
    ];
    for (index, (resources, class)) in cases.into_iter().enumerate() {
        let object = pod(&format!("p{index}"))
            .with("/spec/containers/0/resources", resources)
            .unwrap();
        let created = api.post(PODS, &object).await.expect(201);
        assert_eq!(created.str_at("/status/qosClass"), class);
    }
}

#[tokio::test]
async fn invalid_specs_are_refused_field_by_field() {
    let api = Api::new().await;
    let cases: [(&str, Doc, &str); 8] = [
        ("/spec/containers", doc!([]), "spec.containers"),
        (
            "/spec/containers/0/image",
            doc!(""),
            "spec.containers[0].image",
        ),
        (
            "/spec/containers/0/name",
            doc!("A"),
            "spec.containers[0].name",
        ),
        (
            "/spec/restartPolicy",
            doc!("Sometimes"),
            "spec.restartPolicy",
        ),
        ("/spec/dnsPolicy", doc!("None!"), "spec.dnsPolicy"),
        (
            "/spec/containers/0/ports",
            doc!([{ "containerPort": 70000 }]),
            "spec.containers[0].ports[0].containerPort",
        ),
        (
            "/spec/containers/0/volumeMounts",
            doc!([{ "name": "v", "mountPath": "/v" }]),
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            "/spec/containers/0/resources",
            doc!({ "limits": { "cpu": "1" }, "requests": { "cpu": "2" } }),
            "spec.containers[0].resources.requests",
        ),
    ];
    for (pointer, value, field) in cases {
        let answer = api
            .post(PODS, &pod("a").with(pointer, value).unwrap())
            .await;
        assert_eq!(
            answer.str_at("/details/causes/0/field"),
            field,
            "{}",
            answer.text
        );
        answer.refused(422, "Invalid");
    }
    assert!(api.get(PODS).await.names().is_empty());
}

#[tokio::test]
async fn most_of_a_spec_cannot_change() {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let path = format!("{PODS}/a");
    let image = doc!({ "spec": { "containers": [{ "name": "c", "image": "nginx:2" }] } });
    let changed = api.merge(&path, &image).await;
    assert!(
        changed.code.is_client_error(),
        "a merge patch replaces the container: {}",
        changed.text
    );
    let image = r#"[{"op":"replace","path":"/spec/containers/0/image","value":"nginx:2"}]"#;
    let changed = api
        .patch(&path, crate::support::JSON_PATCH, image)
        .await
        .expect(200);
    assert_eq!(*changed.body.at("/metadata/generation"), 2);
    let answer = api
        .merge(&path, &doc!({ "spec": { "nodeName": "n" } }))
        .await;
    let message = answer.refused(422, "Invalid");
    assert!(
        message.contains("pod updates may not change fields other than"),
        "{message}"
    );
}

#[tokio::test]
async fn a_binding_assigns_a_node_once() {
    let api = bound().await;
    let pod = api.get(&format!("{PODS}/a")).await;
    assert_eq!(pod.str_at("/spec/nodeName"), "n");
    assert_eq!(pod.str_at("/status/conditions/0/type"), "PodScheduled");
    assert_eq!(*pod.body.at("/metadata/generation"), 1);
    let again = doc!({ "metadata": { "name": "a" }, "target": { "name": "m" } });
    let message = api
        .post(&format!("{PODS}/a/binding"), &again)
        .await
        .refused(409, "Conflict");
    assert!(
        message.contains("pod a is already assigned to node \"n\""),
        "{message}"
    );
}

#[tokio::test]
async fn bindings_can_be_posted_by_name() {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "name": "n" } });
    api.post("/api/v1/namespaces/default/bindings", &binding)
        .await
        .expect(201);
    assert_eq!(
        api.get(&format!("{PODS}/a")).await.str_at("/spec/nodeName"),
        "n"
    );
}

#[tokio::test]
async fn a_pod_without_a_node_is_deleted_at_once() {
    let api = Api::new().await;
    api.post(PODS, &pod("a")).await.expect(201);
    let deleted = api.delete(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(deleted.str_at("/kind"), "Pod");
    assert_eq!(*deleted.body.at("/metadata/deletionGracePeriodSeconds"), 0);
    api.get(&format!("{PODS}/a")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_pod_on_a_node_is_given_time_that_can_only_get_shorter() {
    let api = bound().await;
    let path = format!("{PODS}/a");
    let ending = api.delete(&path).await.expect(200);
    assert_eq!(*ending.body.at("/metadata/deletionGracePeriodSeconds"), 30);
    assert_eq!(*ending.body.at("/metadata/generation"), 2);
    let longer = api
        .delete_with(&path, &doc!({ "gracePeriodSeconds": 60 }))
        .await
        .expect(200);
    assert_eq!(longer.body, ending.body);
    let shorter = api
        .delete_with(&path, &doc!({ "gracePeriodSeconds": 5 }))
        .await
        .expect(200);
    assert_eq!(*shorter.body.at("/metadata/deletionGracePeriodSeconds"), 5);
    assert!(
        shorter.str_at("/metadata/deletionTimestamp")
            < ending.str_at("/metadata/deletionTimestamp")
    );
    api.delete_with(&path, &doc!({ "gracePeriodSeconds": 0 }))
        .await
        .expect(200);
    api.get(&path).await.refused(404, "NotFound");
}

#[tokio::test]
async fn an_eviction_deletes_and_respects_a_budget() {
    let api = bound().await;
    let running = doc!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    api.merge(&format!("{PODS}/a/status"), &running)
        .await
        .expect(200);
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = doc!({
        "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } }
    });
    api.post(budgets, &budget).await.expect(201);
    let status = |allowed: i64| {
        doc!({
            "status": { "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1 }
        })
    };
    api.merge(&format!("{budgets}/b/status"), &status(0))
        .await
        .expect(200);
    let eviction =
        doc!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" } });
    let path = format!("{PODS}/a/eviction");
    let answer = api.post(&path, &eviction).await;
    assert_eq!(
        answer.str_at("/details/causes/0/reason"),
        "DisruptionBudget"
    );
    answer.refused(429, "TooManyRequests");
    api.merge(&format!("{budgets}/b/status"), &status(1))
        .await
        .expect(200);
    api.post(&path, &eviction).await.expect(201);
    let pod = api.get(&format!("{PODS}/a")).await.expect(200);
    assert!(!pod.str_at("/metadata/deletionTimestamp").is_empty());
    let why = windlass_core::condition(&pod.body, "DisruptionTarget").unwrap();
    assert_eq!(why.reason, "EvictionByEvictionAPI");
    let spent = api.get(&format!("{budgets}/b")).await.expect(200);
    assert_eq!(*spent.body.at("/status/disruptionsAllowed"), 0);
}

#[tokio::test]
async fn a_gated_pod_says_so() {
    let api = Api::new().await;
    let gated = pod("a")
        .with("/spec/schedulingGates", doc!([{ "name": "a.b/c" }]))
        .unwrap();
    let created = api.post(PODS, &gated).await.expect(201);
    assert_eq!(
        created.str_at("/status/conditions/0/reason"),
        "SchedulingGated"
    );
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "name": "n" } });
    api.post(&format!("{PODS}/a/binding"), &binding)
        .await
        .refused(409, "Conflict");
}
