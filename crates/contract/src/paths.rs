//! Where the kinds are served.

/// A resource and the path of its group and version.
type Place = (&'static str, &'static str);

const NAMESPACED: &[Place] = &[
    ("bindings", "/api/v1"),
    ("configmaps", "/api/v1"),
    ("endpoints", "/api/v1"),
    ("events", "/api/v1"),
    ("limitranges", "/api/v1"),
    ("persistentvolumeclaims", "/api/v1"),
    ("pods", "/api/v1"),
    ("podtemplates", "/api/v1"),
    ("replicationcontrollers", "/api/v1"),
    ("resourcequotas", "/api/v1"),
    ("secrets", "/api/v1"),
    ("serviceaccounts", "/api/v1"),
    ("services", "/api/v1"),
    ("controllerrevisions", "/apis/apps/v1"),
    ("daemonsets", "/apis/apps/v1"),
    ("deployments", "/apis/apps/v1"),
    ("replicasets", "/apis/apps/v1"),
    ("statefulsets", "/apis/apps/v1"),
    ("localsubjectaccessreviews", "/apis/authorization.k8s.io/v1"),
    ("horizontalpodautoscalers", "/apis/autoscaling/v2"),
    ("cronjobs", "/apis/batch/v1"),
    ("jobs", "/apis/batch/v1"),
    ("leases", "/apis/coordination.k8s.io/v1"),
    ("endpointslices", "/apis/discovery.k8s.io/v1"),
    ("ingresses", "/apis/networking.k8s.io/v1"),
    ("networkpolicies", "/apis/networking.k8s.io/v1"),
    ("poddisruptionbudgets", "/apis/policy/v1"),
    ("rolebindings", "/apis/rbac.authorization.k8s.io/v1"),
    ("roles", "/apis/rbac.authorization.k8s.io/v1"),
    ("resourceclaims", "/apis/resource.k8s.io/v1"),
    ("resourceclaimtemplates", "/apis/resource.k8s.io/v1"),
];

const CLUSTER: &[Place] = &[
    ("namespaces", "/api/v1"),
    ("nodes", "/api/v1"),
    ("persistentvolumes", "/api/v1"),
    ("selfsubjectreviews", "/apis/authentication.k8s.io/v1"),
    ("tokenreviews", "/apis/authentication.k8s.io/v1"),
    ("selfsubjectaccessreviews", "/apis/authorization.k8s.io/v1"),
    ("selfsubjectrulesreviews", "/apis/authorization.k8s.io/v1"),
    ("subjectaccessreviews", "/apis/authorization.k8s.io/v1"),
    ("clusterrolebindings", "/apis/rbac.authorization.k8s.io/v1"),
    ("clusterroles", "/apis/rbac.authorization.k8s.io/v1"),
    ("deviceclasses", "/apis/resource.k8s.io/v1"),
    ("resourceslices", "/apis/resource.k8s.io/v1"),
    ("priorityclasses", "/apis/scheduling.k8s.io/v1"),
    ("storageclasses", "/apis/storage.k8s.io/v1"),
];

/// The path for `RESOURCE[/NAME[/SUBRESOURCE]][?QUERY]` in a namespace, or the text itself if it
/// is a path already.
pub(crate) fn full(short: &str, namespace: &str) -> String {
    if short.starts_with('/') {
        return short.to_owned();
    }
    let resource = short.split(['/', '?']).next().unwrap_or_default();
    let find = |places: &[Place]| {
        let found = places.iter().find(|(name, _)| *name == resource);
        found.map(|&(_, root)| root)
    };
    match (find(NAMESPACED), find(CLUSTER)) {
        (Some(root), _) => format!("{root}/namespaces/{namespace}/{short}"),
        (_, Some(root)) => format!("{root}/{short}"),
        _ => panic!("{resource} is in neither table"),
    }
}
