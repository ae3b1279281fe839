//! Protobuf says what JSON says: objects are the same, however they came to the server and however
//! they come back.

use windlass_client::{
    Config, DynamicClient, Encoding, RestClient, WatchError, WatchEvent, WatchOptions, WriteOptions,
};
use windlass_core::{Doc, Gvr, doc};

use crate::setup::{namespace, server};

/// Objects that together have every sort of field.
fn objects() -> Vec<(Gvr, Doc)> {
    let labels = || doc!({ "app": "web" });
    let template = || {
        doc!({
            "metadata": { "labels": (labels()), "creationTimestamp": null },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "securityContext": { "runAsUser": 0, "supplementalGroups": [1, 2] },
                "nodeSelector": { "disk": "ssd" },
                "tolerations": [{ "operator": "Exists", "tolerationSeconds": 30, "key": "k", "effect": "NoExecute" }],
                "volumes": [
                    { "name": "empty", "emptyDir": { "sizeLimit": "1.5Gi" } },
                    { "name": "map", "configMap": { "name": "m", "defaultMode": 420, "optional": true } },
                ],
                "containers": [{
                    "name": "web", "image": "web:1", "command": ["sh", "-c", "true"],
                    "env": [
                        { "name": "PLAIN", "value": "v" },
                        { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                    ],
                    "ports": [{ "name": "http", "containerPort": 8080 }],
                    "resources": { "requests": { "cpu": "0.5", "memory": "64Mi" }, "limits": { "cpu": 1 } },
                    "readinessProbe": { "httpGet": { "path": "/", "port": "http" }, "periodSeconds": 3 },
                    "livenessProbe": { "tcpSocket": { "port": 8080 } },
                    "lifecycle": { "preStop": { "exec": { "command": ["true"] } } },
                    "volumeMounts": [{ "name": "empty", "mountPath": "/a", "readOnly": false }],
                }],
            }
        })
    };
    let apps = |resource, kind, spec: Doc| {
        let object = doc!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "a" }, "spec": spec });
        (Gvr::constant("apps", "v1", resource), object)
    };
    let selector = || doc!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web", "db"] }] });
    let strategy = doc!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0 } });
    let core = |resource, mut object: Doc| {
        object = object.with("/apiVersion", "v1").unwrap();
        (Gvr::constant("", "v1", resource), object)
    };
    vec![
        core(
            "pods",
            template()
                .with("/kind", "Pod")
                .unwrap()
                .with("/metadata/name", "a")
                .unwrap(),
        ),
        core(
            "configmaps",
            doc!({ "kind": "ConfigMap", "metadata": { "name": "a", "annotations": { "e": "é\n" } },
            "data": { "k": "v", "empty": "" }, "binaryData": { "b": "AAH/" }, "immutable": true }),
        ),
        core(
            "secrets",
            doc!({ "kind": "Secret", "metadata": { "name": "a" }, "type": "Opaque",
            "data": { "k": "c2VjcmV0" }, "stringData": { "s": "t" } }),
        ),
        core(
            "services",
            doc!({ "kind": "Service", "metadata": { "name": "a" }, "spec": {
            "selector": (labels()), "ports": [{ "name": "a", "port": 80, "targetPort": "http" }, { "name": "b", "port": 81, "targetPort": 82 }] } }),
        ),
        core(
            "events",
            doc!({ "kind": "Event", "metadata": { "name": "a" }, "count": 2, "reason": "r",
            "involvedObject": { "kind": "Pod", "name": "a", "namespace": "PLACE" },
            "firstTimestamp": "2026-01-02T03:04:05Z", "eventTime": "2026-01-02T03:04:05.678901Z",
            "action": "a", "reportingComponent": "c", "reportingInstance": "i", "type": "Normal",
            "series": { "count": 2, "lastObservedTime": "2026-01-02T03:04:06.000001Z" } }),
        ),
        apps(
            "replicasets",
            "ReplicaSet",
            doc!({ "replicas": 0, "selector": (selector()), "template": (template()) }),
        ),
        apps(
            "deployments",
            "Deployment",
            doc!({ "selector": (selector()), "template": (template()),
            "strategy": strategy, "paused": false, "revisionHistoryLimit": 0 }),
        ),
        apps(
            "statefulsets",
            "StatefulSet",
            doc!({ "selector": (selector()), "template": (template()), "serviceName": "a",
            "volumeClaimTemplates": [{ "metadata": { "name": "v" }, "spec": { "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } } } }] }),
        ),
        (
            Gvr::constant("policy", "v1", "poddisruptionbudgets"),
            doc!({ "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
            "spec": { "minAvailable": "50%", "selector": (selector()) } }),
        ),
        (
            Gvr::constant("coordination.k8s.io", "v1", "leases"),
            doc!({ "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease", "metadata": { "name": "a" }, "spec": { "holderIdentity": "h",
                "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000000Z" } }),
        ),
        (
            Gvr::constant("rbac.authorization.k8s.io", "v1", "roles"),
            doc!({ "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role", "metadata": { "name": "a" },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }] }),
        ),
    ]
}

/// An object without what differs from one creation to the next.
fn comparable(doc: &Doc) -> Doc {
    let meta = ["uid", "resourceVersion", "creationTimestamp", "namespace"];
    let paths = meta.map(|name| format!("/metadata/{name}"));
    let plain = [
        "/spec/clusterIP",
        "/spec/clusterIPs",
        "/involvedObject/namespace",
    ];
    let paths = paths.iter().map(String::as_str).chain(plain);
    let stripped = paths.fold(doc.clone(), |doc, path| doc.without(path).unwrap());
    let managers = stripped.at("/metadata/managedFields").items().iter();
    let managers: Vec<Doc> = managers.map(|it| it.without("/time").unwrap()).collect();
    stripped.with("/metadata/managedFields", managers).unwrap()
}

#[tokio::test]
async fn objects_are_the_same_in_both_encodings() {
    let Some((server, client)) = server().await else {
        return;
    };
    let connect = async |encoding| {
        let config = Config::from_file(server.kubeconfig()).await.unwrap();
        RestClient::connect(&config.encoding(encoding).user_agent("same"))
            .await
            .unwrap()
    };
    let (json, protobuf) = (
        connect(Encoding::Json).await,
        connect(Encoding::Protobuf).await,
    );
    let places = [("said-in-json", &json), ("said-in-protobuf", &protobuf)];
    for (place, _) in places {
        namespace(&client, place).await;
    }
    for (resource, object) in objects() {
        let mut made = Vec::new();
        for (place, rest) in places {
            let object = match object.at("/involvedObject/namespace").is_null() {
                true => object.clone(),
                false => object.with("/involvedObject/namespace", place).unwrap(),
            };
            let api = DynamicClient::new(rest.clone())
                .resource(resource.clone())
                .namespaced(place);
            let created = api.create(&object, &WriteOptions::default()).await;
            let created = created.unwrap_or_else(|error| panic!("{resource}: {error}"));
            made.push(comparable(&created));
            // What comes from a watch is what comes from the other one.
            let seen = [
                first(&json, &resource, place).await,
                first(&protobuf, &resource, place).await,
            ];
            let difference = seen[0].diff(&seen[1]);
            assert!(difference.is_empty(), "{resource}: {difference:?}");
            assert_eq!(seen[0].at("/metadata/uid"), created.at("/metadata/uid"));
        }
        let difference = made[0].diff(&made[1]);
        assert!(difference.is_empty(), "{resource}: {difference:?}");
    }
}

/// The object of the first event of a watch.
async fn first(rest: &RestClient, resource: &Gvr, place: &str) -> Doc {
    let options = WatchOptions {
        field_selector: "metadata.name=a".to_owned(),
        prune: windlass_core::Prune::nothing(),
        ..WatchOptions::initial()
    };
    loop {
        let mut watch = rest.watch(resource, Some(place), &options).await.unwrap();
        match watch.next().await.unwrap() {
            Ok(WatchEvent::Added(doc)) => return doc,
            // Claims inside do not say their kind; the next watch is in JSON.
            Err(WatchError::Decode(error)) if resource.resource() == "statefulsets" => {
                assert!(
                    error.to_string().contains("does not say its kind"),
                    "{error}"
                );
            }
            event => panic!("{event:?}"),
        }
    }
}
