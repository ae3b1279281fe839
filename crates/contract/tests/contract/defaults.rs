//! What the server fills in.

use windlass_contract::objects::{
    daemon_set, deployment, job, pod as pod_object, pod_spec, replica_set, role_binding, secret,
    service, stateful_set, template,
};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    pod_fields,
    pod_container,
    pod_pull_policy_follows_the_tag,
    pod_probes,
    pod_volumes,
    pod_requests_follow_limits,
    pod_quality_of_service,
    pod_host_ports_on_the_host_network,
    pod_environment,
    deployment_spec,
    deployment_with_recreate,
    deployment_partly_given,
    template_is_defaulted_like_a_pod_but_for_pod_only_fields,
    replica_set_spec,
    stateful_set_spec,
    daemon_set_spec,
    replication_controller_spec,
    job_spec,
    job_selector_and_labels,
    cron_job_spec,
    service_spec,
    service_headless,
    service_node_port,
    service_external_name,
    secret_type,
    role_binding_groups,
    persistent_volume_claim,
    explicit_values_are_kept,
    resource_claim_requests,
];

/// Every field of `expected` as it is in `got`; other fields of `got` do not matter.
#[track_caller]
fn assert_has(got: &Doc, expected: &Doc) {
    let Some(fields) = expected.as_object() else {
        assert_eq!(got, expected);
        return;
    };
    for (key, value) in fields.iter() {
        let Some(found) = got.get(key.as_str()) else {
            panic!("{key} is missing, {value} expected: {got}");
        };
        assert_has(found, value);
    }
}

async fn pod_fields(t: &Scope) {
    let made = t.made("pods", &pod_object("a")).await;
    let expected = doc!({
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30, "securityContext": {},
        "schedulerName": "default-scheduler", "enableServiceLinks": true,
        "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready", "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": 300
            },
            {
                "key": "node.kubernetes.io/unreachable", "operator": "Exists",
                "effect": "NoExecute", "tolerationSeconds": 300
            }
        ]
    });
    assert_has(made.at("/spec"), &expected);
    assert_eq!(
        made.at("/status"),
        &doc!({ "phase": "Pending", "qosClass": "BestEffort" })
    );
}

async fn pod_container(t: &Scope) {
    let ports = doc!([{ "containerPort": 80 }]);
    let object = pod_object("a").set("/spec/containers/0/ports", ports);
    let made = t.made("pods", &object).await;
    let expected = doc!({
        "name": "main", "image": "registry.example/app:1", "resources": {},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent", "ports": [{ "containerPort": 80, "protocol": "TCP" }]
    });
    assert_eq!(made.at("/spec/containers/0"), &expected);
}

async fn pod_pull_policy_follows_the_tag(t: &Scope) {
    for (name, image, expected) in [
        ("a", "app", "Always"),
        ("b", "app:latest", "Always"),
        ("c", "app:v1", "IfNotPresent"),
        ("d", "registry.example:5000/app", "Always"),
        ("e", "registry.example:5000/app:2", "IfNotPresent"),
    ] {
        let object = pod_object(name).set("/spec/containers/0/image", image);
        let made = t.made("pods", &object).await;
        assert_eq!(
            made.at("/spec/containers/0/imagePullPolicy"),
            expected,
            "{image}"
        );
    }
}

async fn pod_probes(t: &Scope) {
    let probe = doc!({ "httpGet": { "port": 80 } });
    let object = pod_object("a").set("/spec/containers/0/readinessProbe", probe);
    let made = t.made("pods", &object).await;
    let expected = doc!({
        "httpGet": { "path": "/", "port": 80, "scheme": "HTTP" },
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
    });
    assert_eq!(made.at("/spec/containers/0/readinessProbe"), &expected);
}

async fn pod_volumes(t: &Scope) {
    let volumes = doc!([
        { "name": "a" },
        { "name": "b", "configMap": { "name": "c" } },
        { "name": "c", "secret": { "secretName": "s" } },
        { "name": "d", "hostPath": { "path": "/" } }
    ]);
    let made = t
        .made("pods", &pod_object("a").set("/spec/volumes", volumes))
        .await;
    let expected = doc!([
        { "name": "a", "emptyDir": {} },
        { "name": "b", "configMap": { "name": "c", "defaultMode": 420 } },
        { "name": "c", "secret": { "secretName": "s", "defaultMode": 420 } },
        { "name": "d", "hostPath": { "path": "/", "type": "" } }
    ]);
    assert_eq!(made.at("/spec/volumes"), &expected);
}

async fn pod_requests_follow_limits(t: &Scope) {
    let resources = doc!({
        "limits": { "cpu": "2", "memory": "1Gi" }, "requests": { "cpu": "1" }
    });
    let object = pod_object("a").set("/spec/containers/0/resources", resources);
    let made = t.made("pods", &object).await;
    let requests = made.at("/spec/containers/0/resources/requests");
    assert_eq!(requests, &doc!({ "cpu": "1", "memory": "1Gi" }));
    let template = template().set("/spec/containers/0/resources/limits/cpu", "2");
    let object = deployment("a").set("/spec/template", template);
    let made = t.made("deployments", &object).await;
    assert!(
        made.at("/spec/template/spec/containers/0/resources/requests")
            .is_null()
    );
}

async fn pod_quality_of_service(t: &Scope) {
    let with =
        |name, resources: Doc| pod_object(name).set("/spec/containers/0/resources", resources);
    let both = doc!({ "limits": { "cpu": "1", "memory": "1Gi" } });
    let some = doc!({ "requests": { "cpu": "1" } });
    let guaranteed = t.made("pods", &with("a", both)).await;
    let burstable = t.made("pods", &with("b", some)).await;
    assert_eq!(guaranteed.at("/status/qosClass"), "Guaranteed");
    assert_eq!(burstable.at("/status/qosClass"), "Burstable");
}

async fn pod_host_ports_on_the_host_network(t: &Scope) {
    let object = pod_object("a")
        .set("/spec/hostNetwork", true)
        .set("/spec/containers/0/ports", doc!([{ "containerPort": 80 }]));
    let made = t.made("pods", &object).await;
    assert_eq!(made.at("/spec/containers/0/ports/0/hostPort"), 80);
}

async fn pod_environment(t: &Scope) {
    let env = doc!([
        { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }
    ]);
    let made = t
        .made("pods", &pod_object("a").set("/spec/containers/0/env", env))
        .await;
    let field = made.at("/spec/containers/0/env/0/valueFrom/fieldRef");
    assert_eq!(
        field,
        &doc!({ "apiVersion": "v1", "fieldPath": "spec.nodeName" })
    );
}

async fn deployment_spec(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let expected = doc!({
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": "25%" }
        }
    });
    assert_has(made.at("/spec"), &expected);
}

async fn deployment_with_recreate(t: &Scope) {
    let object = deployment("a").set("/spec/strategy/type", "Recreate");
    let made = t.made("deployments", &object).await;
    assert_eq!(made.at("/spec/strategy"), &doc!({ "type": "Recreate" }));
}

async fn deployment_partly_given(t: &Scope) {
    let object = deployment("a").set("/spec/strategy/rollingUpdate/maxSurge", 3);
    let made = t.made("deployments", &object).await;
    let expected = doc!({
        "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%", "maxSurge": 3 }
    });
    assert_eq!(made.at("/spec/strategy"), &expected);
}

async fn template_is_defaulted_like_a_pod_but_for_pod_only_fields(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let expected = doc!({
        "containers": [{
            "name": "main", "image": "registry.example/app:1", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent"
        }],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst", "securityContext": {},
        "schedulerName": "default-scheduler"
    });
    assert_eq!(made.at("/spec/template/spec"), &expected);
}

async fn replica_set_spec(t: &Scope) {
    let made = t.made("replicasets", &replica_set("a")).await;
    assert_eq!(made.at("/spec/replicas"), 1);
    assert_eq!(made.at("/status"), &doc!({ "replicas": 0 }));
    assert!(made.at("/metadata/labels").is_null());
}

async fn stateful_set_spec(t: &Scope) {
    let made = t.made("statefulsets", &stateful_set("a")).await;
    let expected = doc!({
        "replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" }
    });
    assert_has(made.at("/spec"), &expected);
    assert_eq!(
        made.at("/status"),
        &doc!({ "replicas": 0, "availableReplicas": 0 })
    );
}

async fn daemon_set_spec(t: &Scope) {
    let made = t.made("daemonsets", &daemon_set("a")).await;
    let expected = doc!({
        "revisionHistoryLimit": 10,
        "updateStrategy": {
            "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1, "maxSurge": 0 }
        }
    });
    assert_has(made.at("/spec"), &expected);
}

async fn replication_controller_spec(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "spec": { "template": (template()) } });
    let made = t.made("replicationcontrollers", &object).await;
    assert_eq!(made.at("/spec/replicas"), 1);
    assert_eq!(made.at("/spec/selector"), &doc!({ "app": "web" }));
    assert_eq!(made.at("/metadata/labels"), &doc!({ "app": "web" }));
}

async fn job_spec(t: &Scope) {
    let made = t.made("jobs", &job("a")).await;
    let expected = doc!({
        "parallelism": 1, "completions": 1, "backoffLimit": 6, "manualSelector": false,
        "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed"
    });
    assert_has(made.at("/spec"), &expected);
}

async fn job_selector_and_labels(t: &Scope) {
    let made = t.made("jobs", &job("a")).await;
    let uid = made.at("/metadata/uid");
    let labels = doc!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid, "job-name": "a"
    });
    assert_eq!(made.at("/spec/template/metadata/labels"), &labels);
    assert_eq!(made.at("/metadata/labels"), &labels);
    let selector = doc!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    assert_eq!(made.at("/spec/selector"), &selector);
    let rule = doc!({ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }] });
    let policy = doc!({ "rules": [rule] });
    let patient = job("b").set("/spec/podFailurePolicy", policy);
    let patient = patient.set("/spec/template/spec/restartPolicy", "Never");
    let made = t.made("jobs", &patient).await;
    let pattern = made.at("/spec/podFailurePolicy/rules/0/onPodConditions/0");
    assert_eq!(
        pattern,
        &doc!({ "type": "DisruptionTarget", "status": "True" })
    );
}

async fn cron_job_spec(t: &Scope) {
    let spec = pod_spec().set("/restartPolicy", "Never");
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": {
            "schedule": "*/5 * * * *",
            "jobTemplate": { "spec": { "template": { "spec": spec } } }
        }
    });
    let made = t.made("cronjobs", &object).await;
    let expected = doc!({
        "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1
    });
    assert_has(made.at("/spec"), &expected);
}

async fn service_spec(t: &Scope) {
    let made = t.made("services", &service("a")).await;
    let expected = doc!({
        "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "ports": [{ "protocol": "TCP", "port": 80, "targetPort": 80 }]
    });
    assert_has(made.at("/spec"), &expected);
    let address = made.str_at("/spec/clusterIP");
    assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{address}");
    assert_eq!(made.at("/spec/clusterIPs/0"), address);
    assert_eq!(made.at("/status"), &doc!({ "loadBalancer": {} }));
}

async fn service_headless(t: &Scope) {
    let made = t
        .made("services", &service("a").set("/spec/clusterIP", "None"))
        .await;
    assert_eq!(made.at("/spec/clusterIP"), "None");
    assert_eq!(made.at("/spec/clusterIPs"), &doc!(["None"]));
}

async fn service_node_port(t: &Scope) {
    let made = t
        .made("services", &service("a").set("/spec/type", "NodePort"))
        .await;
    let port = made.at("/spec/ports/0/nodePort");
    assert!(
        port.as_i64()
            .is_some_and(|port| (30_000..=32_767).contains(&port)),
        "{port}"
    );
    assert_eq!(made.at("/spec/externalTrafficPolicy"), "Cluster");
}

async fn service_external_name(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": { "type": "ExternalName", "externalName": "db.example.com" }
    });
    let made = t.made("services", &object).await;
    assert!(made.at("/spec/clusterIP").is_null());
}

async fn secret_type(t: &Scope) {
    assert_eq!(t.made("secrets", &secret("a")).await.at("/type"), "Opaque");
}

async fn role_binding_groups(t: &Scope) {
    let object = role_binding("a", "r", "ann")
        .cut("/roleRef/apiGroup")
        .cut("/subjects/0/apiGroup");
    let made = t.made("rolebindings", &object).await;
    assert_eq!(made.at("/roleRef/apiGroup"), "rbac.authorization.k8s.io");
    assert_eq!(made.at("/subjects/0/apiGroup"), "rbac.authorization.k8s.io");
}

async fn persistent_volume_claim(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        }
    });
    let made = t.made("persistentvolumeclaims", &object).await;
    assert_eq!(made.at("/spec/volumeMode"), "Filesystem");
    assert_eq!(made.at("/status/phase"), "Pending");
    assert_eq!(
        made.at("/metadata/finalizers"),
        &doc!(["kubernetes.io/pvc-protection"])
    );
}

async fn explicit_values_are_kept(t: &Scope) {
    let object = deployment("a")
        .set("/spec/replicas", 0)
        .set("/spec/revisionHistoryLimit", 0);
    let made = t.made("deployments", &object).await;
    assert_eq!(made.at("/spec/replicas"), 0);
    assert_eq!(made.at("/spec/revisionHistoryLimit"), 0);
}

async fn resource_claim_requests(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" },
        "spec": { "devices": { "requests": [
            { "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }
        ] } }
    });
    let made = t.made("resourceclaims", &object).await;
    let expected = doc!({
        "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1
    });
    assert_eq!(made.at("/spec/devices/requests/0/exactly"), &expected);
}
