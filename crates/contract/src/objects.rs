//! The objects that cases begin with: as small as each kind may be.

use windlass_core::{Doc, doc};

use crate::edit::Edit;

/// A namespace.
#[must_use]
pub fn namespace(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A config map with one key.
#[must_use]
pub fn config_map(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "key": "value" }
    })
}

/// A secret with one key.
#[must_use]
pub fn secret(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name },
        "data": { "key": "dmFsdWU=" }
    })
}

/// A pod with one container.
#[must_use]
pub fn pod(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name },
        "spec": (pod_spec())
    })
}

/// The spec of a pod with one container.
#[must_use]
pub fn pod_spec() -> Doc {
    doc!({ "containers": [{ "name": "main", "image": "registry.example/app:1" }] })
}

/// A pod template whose label `app` is `web`.
#[must_use]
pub fn template() -> Doc {
    doc!({ "metadata": { "labels": { "app": "web" } }, "spec": (pod_spec()) })
}

/// A kind of `apps/v1` that selects the pods of its template.
fn workload(kind: &str, name: &str) -> Doc {
    doc!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": (template())
        }
    })
}

/// A deployment.
#[must_use]
pub fn deployment(name: &str) -> Doc {
    workload("Deployment", name)
}

/// A replica set.
#[must_use]
pub fn replica_set(name: &str) -> Doc {
    workload("ReplicaSet", name)
}

/// A daemon set.
#[must_use]
pub fn daemon_set(name: &str) -> Doc {
    workload("DaemonSet", name)
}

/// A stateful set.
#[must_use]
pub fn stateful_set(name: &str) -> Doc {
    let set = workload("StatefulSet", name);
    set.set("/spec/serviceName", "web")
}

/// A job.
#[must_use]
pub fn job(name: &str) -> Doc {
    let spec = pod_spec().set("/restartPolicy", "Never");
    doc!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name },
        "spec": { "template": { "spec": spec } }
    })
}

/// A service with one port.
#[must_use]
pub fn service(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] }
    })
}

/// A lease.
#[must_use]
pub fn lease(name: &str) -> Doc {
    doc!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name },
        "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 }
    })
}

/// A node.
#[must_use]
pub fn node(name: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } })
}

/// A role that allows verbs on resources of the core group.
#[must_use]
pub fn role(name: &str, verbs: &[&str], resources: &[&str]) -> Doc {
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| Doc::from(text))
            .collect::<Vec<_>>()
    };
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "verbs": (texts(verbs)), "resources": (texts(resources)) }]
    })
}

/// A binding of a role to a user.
#[must_use]
pub fn role_binding(name: &str, role: &str, user: &str) -> Doc {
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user }]
    })
}

/// The same object with a label.
#[must_use]
pub fn labeled(object: &Doc, key: &str, value: &str) -> Doc {
    let pointer = format!("/metadata/labels/{}", key.replace('/', "~1"));
    object.set(&pointer, value)
}

/// The same object with finalizers.
#[must_use]
pub fn held(object: &Doc, finalizers: &[&str]) -> Doc {
    let finalizers: Vec<Doc> = finalizers.iter().map(|&name| name.into()).collect();
    object.set("/metadata/finalizers", finalizers)
}

/// An event about a pod of a namespace.
#[must_use]
pub fn event(name: &str, namespace: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name },
        "involvedObject": { "kind": "Pod", "namespace": namespace, "name": "p" },
        "reason": "Tested", "type": "Normal"
    })
}
