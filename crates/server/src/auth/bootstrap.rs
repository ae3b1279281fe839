//! The roles and bindings that exist from the first start.

use windlass_core::{Doc, doc};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Resources that the users of a namespace work with, besides secrets and access rights.
const CONTENTS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "bindings",
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    (
        "autoscaling",
        &[
            "horizontalpodautoscalers",
            "horizontalpodautoscalers/status",
        ],
    ),
    (
        "batch",
        &["cronjobs", "cronjobs/status", "jobs", "jobs/status"],
    ),
    ("discovery.k8s.io", &["endpointslices"]),
    (
        "networking.k8s.io",
        &["ingresses", "ingresses/status", "networkpolicies"],
    ),
    (
        "policy",
        &["poddisruptionbudgets", "poddisruptionbudgets/status"],
    ),
    (
        "resource.k8s.io",
        &[
            "resourceclaims",
            "resourceclaims/status",
            "resourceclaimtemplates",
        ],
    ),
];

/// Every role and binding, with the plural it is stored under.
pub(crate) fn objects() -> Vec<(&'static str, Doc)> {
    let mut objects = vec![
        role(
            "cluster-admin",
            vec![rule(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])],
        ),
        role(
            "admin",
            [contents(WRITE), edit_extras(), access_rights()].concat(),
        ),
        role("edit", [contents(WRITE), edit_extras()].concat()),
        role(
            "view",
            [contents(READ), vec![rule(READ, &[""], &["namespaces"])]].concat(),
        ),
        role("system:discovery", vec![paths(&["get"], DISCOVERY_PATHS)]),
        role(
            "system:public-info-viewer",
            vec![paths(&["get"], PUBLIC_PATHS)],
        ),
        role("system:basic-user", basic_user()),
        role(
            "system:kube-controller-manager",
            vec![rule(&["*"], &["*"], &["*"])],
        ),
        role("system:kube-scheduler", scheduler()),
    ];
    objects.extend([
        binding("cluster-admin", &[("Group", "system:masters")]),
        binding("system:discovery", &[("Group", "system:authenticated")]),
        binding("system:basic-user", &[("Group", "system:authenticated")]),
        binding(
            "system:public-info-viewer",
            &[
                ("Group", "system:authenticated"),
                ("Group", "system:unauthenticated"),
            ],
        ),
        binding(
            "system:kube-controller-manager",
            &[("User", "system:kube-controller-manager")],
        ),
        binding(
            "system:kube-scheduler",
            &[("User", "system:kube-scheduler")],
        ),
    ]);
    objects
}

const PUBLIC_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const DISCOVERY_PATHS: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

fn contents(verbs: &[&str]) -> Vec<Doc> {
    CONTENTS
        .iter()
        .map(|(group, resources)| rule(verbs, &[group], resources))
        .collect()
}

fn edit_extras() -> Vec<Doc> {
    vec![
        rule(WRITE, &[""], &["secrets"]),
        rule(
            &["create"],
            &[""],
            &["pods/eviction", "serviceaccounts/token"],
        ),
        rule(&["impersonate"], &[""], &["serviceaccounts"]),
        rule(WRITE, &["coordination.k8s.io"], &["leases"]),
        rule(READ, &[""], &["namespaces"]),
    ]
}

fn access_rights() -> Vec<Doc> {
    vec![
        rule(
            WRITE,
            &["rbac.authorization.k8s.io"],
            &["rolebindings", "roles"],
        ),
        rule(
            &["create"],
            &["authorization.k8s.io"],
            &["localsubjectaccessreviews"],
        ),
    ]
}

fn basic_user() -> Vec<Doc> {
    let reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
    vec![
        rule(&["create"], &["authorization.k8s.io"], &reviews),
        rule(
            &["create"],
            &["authentication.k8s.io"],
            &["selfsubjectreviews"],
        ),
    ]
}

fn scheduler() -> Vec<Doc> {
    vec![
        rule(READ, &["*"], &["*"]),
        rule(&["create"], &[""], &["bindings", "pods/binding"]),
        rule(&["patch", "update"], &[""], &["pods/status"]),
        rule(&["delete"], &[""], &["pods"]),
        rule(
            &["patch", "update"],
            &["resource.k8s.io"],
            &["resourceclaims", "resourceclaims/status"],
        ),
        rule(
            &["create", "patch", "update"],
            &["", "events.k8s.io"],
            &["events"],
        ),
        rule(
            &["create", "get", "update"],
            &["coordination.k8s.io"],
            &["leases"],
        ),
    ]
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Doc {
    doc!({ "verbs": (list(verbs)), "apiGroups": (list(groups)), "resources": (list(resources)) })
}

fn paths(verbs: &[&str], paths: &[&str]) -> Doc {
    doc!({ "verbs": (list(verbs)), "nonResourceURLs": (list(paths)) })
}

fn list(texts: &[&str]) -> Doc {
    texts
        .iter()
        .map(|&text| Doc::from(text))
        .collect::<Vec<_>>()
        .into()
}

fn metadata(name: &str) -> Doc {
    doc!({
        "name": name,
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" }
    })
}

fn role(name: &str, rules: Vec<Doc>) -> (&'static str, Doc) {
    let role = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": (metadata(name)), "rules": rules
    });
    ("clusterroles", role)
}

fn binding(role: &str, subjects: &[(&str, &str)]) -> (&'static str, Doc) {
    let subject = |(kind, name): &(&str, &str)| doc!({ "apiGroup": "rbac.authorization.k8s.io", "kind": *kind, "name": *name });
    let subjects: Vec<Doc> = subjects.iter().map(subject).collect();
    let binding = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": (metadata(role)), "subjects": subjects,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role }
    });
    ("clusterrolebindings", binding)
}
