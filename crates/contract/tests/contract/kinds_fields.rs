//! Which fields the author of a new object of each kind owns: what it sent and what defaults it
//! took, not what the server added.

use windlass_contract::{Edit, Scope, cases, managers, updater};
use windlass_core::{Doc, doc};

/// Makes a case of each kind: the resource, the object, and the fields of its author.
macro_rules! creations {
    ($($name:ident: $resource:literal, $object:tt => $fields:tt)*) => {
        cases![$($name),*];
        $(
            async fn $name(t: &Scope) {
                check(t, $resource, &doc!($object), doc!($fields)).await;
            }
        )*
    };
}

async fn check(t: &Scope, resource: &str, object: &Doc, fields: Doc) {
    let version = object.str_at("/apiVersion").to_owned();
    // Objects outside of namespaces must not meet those of other cases.
    let name = t.unique("x");
    let object = object.set("/metadata/name", name.as_str());
    let path = format!("{resource}?fieldManager=author");
    let made = t.create(&path, &object).await.is(201);
    let author = updater("author", &version, fields);
    assert_eq!(managers(&made), doc!([author]));
}

/// The template of what makes pods.
fn template() -> Doc {
    doc!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "app:1" }] }
    })
}

/// What the author of that template owns.
fn template_fields() -> Doc {
    doc!({
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
        "f:spec": {
            "f:containers": { "k:{\"name\":\"main\"}": (container_fields()) },
            "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {},
            "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}
        }
    })
}

fn container_fields() -> Doc {
    doc!({
        ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
        "f:resources": {}, "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}
    })
}

creations! {
    pod: "pods", {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "labels": { "a": "b" }, "annotations": { "c": "d" },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u1", "controller": true
            }],
            "finalizers": ["a.b/c"]
        },
        "spec": {
            "containers": [{
                "name": "main", "image": "app:1", "env": [{ "name": "A", "value": "b" }],
                "ports": [{ "containerPort": 80 }]
            }]
        }
    }
    => {
        "f:metadata": {
            "f:annotations": { ".": {}, "f:c": {} },
            "f:finalizers": { ".": {}, "v:\"a.b/c\"": {} }, "f:labels": { ".": {}, "f:a": {} },
            "f:ownerReferences": { ".": {}, "k:{\"uid\":\"u1\"}": {} }
        },
        "f:spec": {
            "f:containers": {
                "k:{\"name\":\"main\"}": {
                    ".": {},
                    "f:env": {
                        ".": {},
                        "k:{\"name\":\"A\"}": { ".": {}, "f:name": {}, "f:value": {} }
                    },
                    "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                    "f:ports": {
                        ".": {},
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                            ".": {}, "f:containerPort": {}, "f:protocol": {}
                        }
                    },
                    "f:resources": {}, "f:terminationMessagePath": {},
                    "f:terminationMessagePolicy": {}
                }
            },
            "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {},
            "f:schedulerName": {}, "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}
        }
    }
    deployment: "deployments", {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": (template())
        }
    }
    => {
        "f:spec": {
            "f:progressDeadlineSeconds": {}, "f:replicas": {}, "f:revisionHistoryLimit": {},
            "f:selector": {},
            "f:strategy": {
                "f:rollingUpdate": { ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} },
                "f:type": {}
            },
            "f:template": (template_fields())
        }
    }
    replica_set: "replicasets", {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": (template())
        }
    }
    => {
        "f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:template": (template_fields())
        }
    }
    daemon_set: "daemonsets", {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": (template())
        }
    }
    => {
        "f:metadata": {
            "f:annotations": { ".": {}, "f:deprecated.daemonset.template.generation": {} }
        },
        "f:spec": {
            "f:revisionHistoryLimit": {}, "f:selector": {},
            "f:template": (template_fields()),
            "f:updateStrategy": {
                "f:rollingUpdate": { ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} },
                "f:type": {}
            }
        }
    }
    stateful_set: "statefulsets", {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": (template()),
            "serviceName": "s",
            "volumeClaimTemplates": [{
                "metadata": { "name": "d" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": "1Gi" } }
                }
            }]
        }
    }
    => {
        "f:spec": {
            "f:persistentVolumeClaimRetentionPolicy": {
                ".": {}, "f:whenDeleted": {}, "f:whenScaled": {}
            },
            "f:podManagementPolicy": {}, "f:replicas": {}, "f:revisionHistoryLimit": {},
            "f:selector": {}, "f:serviceName": {},
            "f:template": (template_fields()),
            "f:updateStrategy": { "f:rollingUpdate": { ".": {}, "f:partition": {} }, "f:type": {} },
            "f:volumeClaimTemplates": {}
        }
    }
    controller_revision: "controllerrevisions", {
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "data": { "a": { "b": [1] } }
    }
    => { "f:data": {}, "f:revision": {} }
    job: "jobs", {
        "apiVersion": "batch/v1", "kind": "Job",
        "spec": {
            "template": {
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "b" }] }
            }
        }
    }
    => {
        "f:spec": {
            "f:backoffLimit": {}, "f:completionMode": {}, "f:completions": {},
            "f:manualSelector": {}, "f:parallelism": {}, "f:podReplacementPolicy": {},
            "f:suspend": {},
            "f:template": {
                "f:spec": {
                    "f:containers": {
                        "k:{\"name\":\"a\"}": (container_fields())
                    },
                    "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                    "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}
                }
            }
        }
    }
    cron_job: "cronjobs", {
        "apiVersion": "batch/v1", "kind": "CronJob",
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {
                "spec": {
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{ "name": "a", "image": "b" }]
                        }
                    }
                }
            }
        }
    }
    => {
        "f:spec": {
            "f:concurrencyPolicy": {}, "f:failedJobsHistoryLimit": {},
            "f:jobTemplate": {
                "f:spec": {
                    "f:template": {
                        "f:spec": {
                            "f:containers": {
                                "k:{\"name\":\"a\"}": (container_fields())
                            },
                            "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                            "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}
                        }
                    }
                }
            },
            "f:schedule": {}, "f:successfulJobsHistoryLimit": {}, "f:suspend": {}
        }
    }
    config_map: "configmaps", {
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" },
        "binaryData": { "z": "aGk=" }, "immutable": true
    }
    => {
        "f:binaryData": { ".": {}, "f:z": {} }, "f:data": { ".": {}, "f:a": {} }, "f:immutable": {}
    }
    secret: "secrets", {
        "apiVersion": "v1", "kind": "Secret", "data": { "a": "aGk=" }, "stringData": { "s": "t" }
    }
    => { "f:data": { ".": {}, "f:a": {}, "f:s": {} }, "f:type": {} }
    service_account: "serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{ "name": "s" }],
        "imagePullSecrets": [{ "name": "p" }]
    }
    => { "f:imagePullSecrets": {}, "f:secrets": { ".": {}, "k:{\"name\":\"s\"}": {} } }
    service: "services", {
        "apiVersion": "v1", "kind": "Service",
        "spec": { "selector": { "a": "b" }, "ports": [{ "port": 80 }] }
    }
    => {
        "f:spec": {
            "f:internalTrafficPolicy": {},
            "f:ports": {
                ".": {},
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}
                }
            },
            "f:selector": {}, "f:sessionAffinity": {}, "f:type": {}
        }
    }
    external_service: "services", {
        "apiVersion": "v1", "kind": "Service",
        "spec": { "type": "ExternalName", "externalName": "a.b" }
    }
    => { "f:spec": { "f:externalName": {}, "f:sessionAffinity": {}, "f:type": {} } }
    endpoints: "endpoints", {
        "apiVersion": "v1", "kind": "Endpoints",
        "subsets": [{ "addresses": [{ "ip": "10.1.1.1" }], "ports": [{ "port": 80 }] }]
    }
    => { "f:subsets": {} }
    limit_range: "limitranges", {
        "apiVersion": "v1", "kind": "LimitRange",
        "spec": { "limits": [{ "type": "PersistentVolumeClaim", "max": { "storage": "1Gi" } }] }
    }
    => { "f:spec": { "f:limits": {} } }
    resource_quota: "resourcequotas", {
        "apiVersion": "v1", "kind": "ResourceQuota", "spec": { "hard": { "pods": "10" } }
    }
    => { "f:spec": { "f:hard": { ".": {}, "f:pods": {} } } }
    claim: "persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } }
        }
    }
    => {
        "f:spec": {
            "f:accessModes": {},
            "f:resources": { "f:requests": { ".": {}, "f:storage": {} } }, "f:volumeMode": {}
        }
    }
    pod_template: "podtemplates", {
        "apiVersion": "v1", "kind": "PodTemplate",
        "template": (template())
    }
    => {
        "f:template": (template_fields())
    }
    replication_controller: "replicationcontrollers", {
        "apiVersion": "v1", "kind": "ReplicationController",
        "spec": {
            "selector": { "app": "web" },
            "template": (template())
        }
    }
    => {
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
        "f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:template": {
                ".": {},
                "f:metadata": { ".": {}, "f:labels": { ".": {}, "f:app": {} } },
                "f:spec": {
                    ".": {},
                    "f:containers": {
                        ".": {},
                        "k:{\"name\":\"main\"}": (container_fields())
                    },
                    "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                    "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}
                }
            }
        }
    }
    ingress: "ingresses", {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "spec": {
            "rules": [{
                "host": "a.b",
                "http": {
                    "paths": [{
                        "path": "/", "pathType": "Prefix",
                        "backend": { "service": { "name": "s", "port": { "number": 80 } } }
                    }]
                }
            }]
        }
    }
    => { "f:spec": { "f:rules": {} } }
    network_policy: "networkpolicies", {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "spec": {
            "podSelector": { "matchLabels": { "a": "b" } },
            "ingress": [{ "from": [{ "podSelector": {} }] }]
        }
    }
    => { "f:spec": { "f:ingress": {}, "f:podSelector": {}, "f:policyTypes": {} } }
    disruption_budget: "poddisruptionbudgets", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "a": "b" } } }
    }
    => { "f:spec": { "f:minAvailable": {}, "f:selector": {} } }
    role: "roles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]
    }
    => { "f:rules": {} }
    role_binding: "rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x" },
        "subjects": [{ "kind": "User", "name": "u" }]
    }
    => { "f:roleRef": {}, "f:subjects": {} }
    lease: "leases", {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z"
        }
    }
    => { "f:spec": { "f:holderIdentity": {}, "f:leaseDurationSeconds": {}, "f:renewTime": {} } }
    endpoint_slice: "endpointslices", {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": true } }],
        "ports": [{ "port": 80 }]
    }
    => { "f:addressType": {}, "f:endpoints": {}, "f:ports": {} }
    autoscaler: "horizontalpodautoscalers", {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "x" },
            "maxReplicas": 3,
            "behavior": { "scaleDown": { "stabilizationWindowSeconds": 5 } }
        }
    }
    => {
        "f:spec": {
            "f:behavior": {
                ".": {},
                "f:scaleDown": {
                    ".": {}, "f:policies": {}, "f:selectPolicy": {},
                    "f:stabilizationWindowSeconds": {}
                },
                "f:scaleUp": {
                    ".": {}, "f:policies": {}, "f:selectPolicy": {},
                    "f:stabilizationWindowSeconds": {}
                }
            },
            "f:maxReplicas": {}, "f:metrics": {}, "f:minReplicas": {},
            "f:scaleTargetRef": { "f:apiVersion": {}, "f:kind": {}, "f:name": {} }
        }
    }
    resource_claim: "resourceclaims", {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "spec": {
            "devices": { "requests": [{ "name": "r", "exactly": { "deviceClassName": "c" } }] }
        }
    }
    => { "f:spec": { "f:devices": { "f:requests": {} } } }
    namespace: "namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "labels": { "x": "y" } }
    }
    => {
        "f:metadata": { "f:labels": { ".": {}, "f:kubernetes.io/metadata.name": {}, "f:x": {} } }
    }
    node: "nodes", {
        "apiVersion": "v1", "kind": "Node",
        "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] },
        "status": {
            "capacity": { "cpu": "1" },
            "conditions": [{ "type": "Ready", "status": "True" }]
        }
    }
    => { "f:spec": { "f:taints": {} } }
    volume: "persistentvolumes", {
        "apiVersion": "v1", "kind": "PersistentVolume",
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/tmp" }
        }
    }
    => {
        "f:spec": {
            "f:accessModes": {},
            "f:capacity": { ".": {}, "f:storage": {} },
            "f:hostPath": { ".": {}, "f:path": {}, "f:type": {} },
            "f:persistentVolumeReclaimPolicy": {}, "f:volumeMode": {}
        }
    }
    storage_class: "storageclasses", {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "a.b/c",
        "parameters": { "x": "y" }
    }
    => {
        "f:parameters": { ".": {}, "f:x": {} }, "f:provisioner": {}, "f:reclaimPolicy": {},
        "f:volumeBindingMode": {}
    }
    priority_class: "priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100
    }
    => { "f:preemptionPolicy": {}, "f:value": {} }
    device_class: "deviceclasses", {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "spec": { "selectors": [{ "cel": { "expression": "true" } }] }
    }
    => { "f:spec": { "f:selectors": {} } }
    cluster_role: "clusterroles", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]
    }
    => { "f:rules": {} }
}
