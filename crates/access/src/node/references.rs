//! The objects that pods and volumes refer to.

use windlass_core::Doc;

/// A sort of object that a node may have to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Secret,
    ConfigMap,
    Claim,
    Volume,
    ResourceClaim,
    ServiceAccount,
    Pod,
    Slice,
    Attachment,
}

const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";
/// The names of secrets in a volume of a pod.
const VOLUME_SECRETS: &[&str] = &[
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/secret/secretName",
    "/storageos/secretRef/name",
];
/// References to secrets in a persistent volume that the node needs.
const PERSISTENT_SECRETS: &[&str] = &[
    "/spec/cephfs/secretRef",
    "/spec/cinder/secretRef",
    "/spec/csi/nodeExpandSecretRef",
    "/spec/csi/nodePublishSecretRef",
    "/spec/csi/nodeStageSecretRef",
    "/spec/flexVolume/secretRef",
    "/spec/iscsi/secretRef",
    "/spec/rbd/secretRef",
    "/spec/scaleIO/secretRef",
    "/spec/storageos/secretRef",
];

/// Returns true if a pod refers to an object of its namespace. A mirror pod refers to nothing: the
/// node wrote it itself.
pub(super) fn pod_refers_to(pod: &Doc, what: Reference, name: &str) -> bool {
    if !pod.at(MIRROR).is_null() {
        return false;
    }
    match what {
        Reference::ServiceAccount => pod.str_at("/spec/serviceAccountName") == name,
        Reference::Claim => claims(pod).iter().any(|claim| claim == name),
        Reference::ResourceClaim => has_resource_claim(pod, name),
        Reference::Secret => {
            let mut pulls = pod.at("/spec/imagePullSecrets").items().iter();
            pulls.any(|pull| pull.str_at("/name") == name)
                || in_containers(pod, ["/secretKeyRef/name", "/secretRef/name"], name)
                || in_volumes(pod, VOLUME_SECRETS, "/secret/name", name)
        }
        Reference::ConfigMap => {
            in_containers(pod, ["/configMapKeyRef/name", "/configMapRef/name"], name)
                || in_volumes(pod, &["/configMap/name"], "/configMap/name", name)
        }
        Reference::Volume | Reference::Pod | Reference::Slice | Reference::Attachment => false,
    }
}

/// Looks at the variables of all containers, given one by one and as a whole.
fn in_containers(pod: &Doc, [one, whole]: [&str; 2], name: &str) -> bool {
    let lists = [
        "/spec/initContainers",
        "/spec/containers",
        "/spec/ephemeralContainers",
    ];
    let mut containers = lists.iter().flat_map(|list| pod.at(list).items());
    containers.any(|container| {
        let mut single = container.at("/env").items().iter();
        let mut wholes = container.at("/envFrom").items().iter();
        single.any(|variable| variable.at("/valueFrom").str_at(one) == name)
            || wholes.any(|source| source.str_at(whole) == name)
    })
}

fn in_volumes(pod: &Doc, direct: &[&str], projected: &str, name: &str) -> bool {
    pod.at("/spec/volumes").items().iter().any(|volume| {
        let mut sources = volume.at("/projected/sources").items().iter();
        direct.iter().any(|pointer| volume.str_at(pointer) == name)
            || sources.any(|source| source.str_at(projected) == name)
    })
}

fn has_resource_claim(pod: &Doc, name: &str) -> bool {
    let statuses = pod.at("/status/resourceClaimStatuses").items();
    let extended = pod.str_at("/status/extendedResourceClaimStatus/resourceClaimName");
    let mut claims = pod.at("/spec/resourceClaims").items().iter();
    extended == name
        || claims.any(|claim| {
            let made = statuses
                .iter()
                .find(|status| status.at("/name") == claim.at("/name"));
            claim.str_at("/resourceClaimName") == name
                || made.is_some_and(|made| made.str_at("/resourceClaimName") == name)
        })
}

/// The names of the volume claims of a pod. One that is made for it is called after both.
pub(super) fn claims(pod: &Doc) -> Vec<String> {
    if !pod.at(MIRROR).is_null() {
        return Vec::new();
    }
    let volumes = pod.at("/spec/volumes").items().iter();
    volumes
        .filter_map(|volume| {
            if !volume.at("/persistentVolumeClaim").is_null() {
                return Some(volume.str_at("/persistentVolumeClaim/claimName").to_owned());
            }
            let is_own = !volume.at("/ephemeral").is_null();
            is_own.then(|| format!("{}-{}", pod.meta().name(), volume.str_at("/name")))
        })
        .collect()
}

/// The secrets that a persistent volume needs on the node, by namespace and name.
pub(super) fn volume_secrets(volume: &Doc) -> Vec<(String, String)> {
    let claim = volume.str_at("/spec/claimRef/namespace");
    let placed = |namespace: &str, name: &str| {
        let namespace = if namespace.is_empty() {
            claim
        } else {
            namespace
        };
        (namespace.to_owned(), name.to_owned())
    };
    let references = PERSISTENT_SECRETS.iter().map(|pointer| volume.at(pointer));
    let mut found: Vec<(String, String)> = references
        .filter(|reference| !reference.is_null())
        .map(|reference| placed(reference.str_at("/namespace"), reference.str_at("/name")))
        .collect();
    let azure = volume.at("/spec/azureFile");
    if !azure.is_null() {
        found.push(placed(
            azure.str_at("/secretNamespace"),
            azure.str_at("/secretName"),
        ));
    }
    found
}

/// The resource of an object that a pod refers to, if there is any.
pub(crate) fn referenced_resource(pod: &Doc) -> Option<&'static str> {
    if !pod.str_at("/spec/serviceAccountName").is_empty() {
        return Some("serviceaccounts");
    }
    let pulls = pod.at("/spec/imagePullSecrets").items();
    if !pulls.is_empty() || has_variables(pod, ["secretKeyRef", "secretRef"]) {
        return Some("secrets");
    }
    if has_variables(pod, ["configMapKeyRef", "configMapRef"]) {
        return Some("configmaps");
    }
    if !pod.at("/spec/resourceClaims").items().is_empty() {
        return Some("resourceclaims");
    }
    let volumes = pod.at("/spec/volumes").items().iter();
    volumes.filter_map(volume_resource).next()
}

fn has_variables(pod: &Doc, [one, whole]: [&str; 2]) -> bool {
    let lists = [
        "/spec/initContainers",
        "/spec/containers",
        "/spec/ephemeralContainers",
    ];
    let mut containers = lists.iter().flat_map(|list| pod.at(list).items());
    containers.any(|container| {
        let mut single = container.at("/env").items().iter();
        let mut wholes = container.at("/envFrom").items().iter();
        single.any(|variable| variable.at("/valueFrom").get(one).is_some())
            || wholes.any(|source| source.get(whole).is_some())
    })
}

fn volume_resource(volume: &Doc) -> Option<&'static str> {
    const DIRECT: &[(&str, &str)] = &[
        ("configMap", "configmaps"),
        ("secret", "secrets"),
        ("csi", "csidrivers (via CSI volumes)"),
        ("glusterfs", "endpoints (via glusterFS volumes)"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        (
            "ephemeral",
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        ("azureFile", "secrets"),
    ];
    const PROJECTED: &[(&str, &str)] = &[
        ("configMap", "configmaps"),
        ("secret", "secrets"),
        (
            "serviceAccountToken",
            "serviceaccounts (via projected volumes)",
        ),
        ("clusterTrustBundle", "clustertrustbundles"),
        ("podCertificate", "podcertificates"),
    ];
    let named = |source: &Doc, known: &[(&str, &'static str)]| {
        let mut known = known.iter();
        let found = known.find(|(key, _)| source.get(key).is_some());
        found.map(|(_, resource)| *resource)
    };
    let has_secret = VOLUME_SECRETS
        .iter()
        .any(|pointer| !volume.str_at(pointer).is_empty());
    if has_secret {
        return Some("secrets");
    }
    let mut sources = volume.at("/projected/sources").items().iter();
    named(volume, DIRECT).or_else(|| sources.find_map(|source| named(source, PROJECTED)))
}
