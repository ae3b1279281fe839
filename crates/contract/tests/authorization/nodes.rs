//! Nodes: what they read, and what they write.

use super::matrix::{Row, Table, row};

const STORAGE: &str = "/apis/storage.k8s.io/v1";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// A request of `CN=joe, O=dev`, whose key nobody has.
const DEV: &str = super::signing::DEV;

/// A request of the node `{ns}-n`.
fn node(name: &str, request: &str, code: u16) -> Row {
    row(name, "as:system:node:{ns}-n", request, code).header("impersonate-group", "system:nodes")
}

fn pod(name: &str, node: &str, more: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"nodeName":"{{ns}}-{node}",
            "containers":[{{"name":"c","image":"i"}}]{more}}}}}"#
    )
}

fn claim(name: &str, volume: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"accessModes":["ReadWriteOnce"],
            "volumeName":"{{ns}}-{volume}","storageClassName":"",
            "resources":{{"requests":{{"storage":"1Gi"}}}}}}}}"#
    )
}

fn volume(name: &str, claim: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{{ns}}-{name}"}},"spec":{{"accessModes":["ReadWriteOnce"],
            "capacity":{{"storage":"1Gi"}},"claimRef":{{"namespace":"{{ns}}","name":"{claim}"}},
            "csi":{{"driver":"d.io","volumeHandle":"h",
                "nodeStageSecretRef":{{"namespace":"{{ns}}","name":"stage-{claim}"}}}}}}}}"#
    )
}

pub(crate) fn table() -> Table {
    let uses = r#","serviceAccountName":"bot","imagePullSecrets":[{"name":"pull"}],"volumes":[
        {"name":"a","secret":{"secretName":"s"}},{"name":"b","configMap":{"name":"c"}},
        {"name":"d","persistentVolumeClaim":{"claimName":"p"}},
        {"name":"e","projected":{"sources":[{"secret":{"name":"joint"}}]}}]"#;
    let far = r#","serviceAccountName":"other","volumes":[
        {"name":"a","secret":{"secretName":"t"}},{"name":"b","configMap":{"name":"d"}},
        {"name":"d","persistentVolumeClaim":{"claimName":"q"}}]"#;
    let mut table = Table::default()
        .with("nodes", r#"{"metadata":{"name":"{ns}-n"}}"#)
        .with("nodes", r#"{"metadata":{"name":"{ns}-other"}}"#);
    for name in ["s", "t", "pull", "joint", "stage-p", "stage-q", "loose"] {
        table = table.with("secrets", &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#));
    }
    for name in ["c", "d"] {
        table = table.with(
            "configmaps",
            &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#),
        );
    }
    for name in ["bot", "other"] {
        table = table.with(
            "serviceaccounts",
            &format!(r#"{{"metadata":{{"name":"{name}"}}}}"#),
        );
    }
    table
        .with("persistentvolumes", &volume("v", "p"))
        .with("persistentvolumes", &volume("w", "q"))
        .with("persistentvolumeclaims", &claim("p", "v"))
        .with("persistentvolumeclaims", &claim("q", "w"))
        .with("pods", &pod("far", "other", far))
        .with("pods", &pod("own", "n", uses))
        .known(
            ("system:node:{ns}-n", "system:nodes"),
            "get",
            "secrets",
            "s",
        )
        .known(
            ("system:node:{ns}-other", "system:nodes"),
            "get",
            "secrets",
            "t",
        )
        .known(
            ("system:node:{ns}-n", "system:nodes"),
            "get",
            "secrets",
            "stage-p",
        )
        .rows(reads())
        .rows(own_objects())
        .rows(labels())
        .rows(pods())
        .rows(tokens())
        .rows(other_kinds())
        .rows(identities())
}

fn reads() -> Vec<Row> {
    let unrelated = "no relationship found between node '{ns}-n' and this object";
    vec![
        node("secret of its pod", "GET secrets/s", 200),
        node("secret to pull its pod", "GET secrets/pull", 200),
        node("secret in a joint volume", "GET secrets/joint", 200),
        node("secret of a volume of its pod", "GET secrets/stage-p", 200),
        node(
            "secret of a volume of another pod",
            "GET secrets/stage-q",
            403,
        ),
        node("secret of another pod", "GET secrets/t", 403).says(unrelated),
        node("secret of no pod", "GET secrets/loose", 403).says(unrelated),
        node("absent secret", "GET secrets/absent", 403).says(unrelated),
        node("all secrets", "GET secrets", 403).says("No Object name found"),
        node("all secrets everywhere", "GET /api/v1/secrets", 403)
            .says("can only read namespaced object of this type"),
        node(
            "list of a secret of its pod",
            "GET secrets?fieldSelector=metadata.name%3Ds",
            200,
        ),
        node(
            "list of a secret of another pod",
            "GET secrets?fieldSelector=metadata.name%3Dt",
            403,
        ),
        node(
            "watch of a secret of its pod",
            "GET secrets?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Ds",
            200,
        ),
        node("new secret", "POST secrets", 403)
            .body(r#"{"metadata":{"name":"x"}}"#)
            .says("can only read resources of this type"),
        node("patch of a secret of its pod", "PATCH secrets/s", 403).body("{}"),
        node("deletion of a secret of its pod", "DELETE secrets/s", 403),
        node("configmap of its pod", "GET configmaps/c", 200),
        node("configmap of another pod", "GET configmaps/d", 403).says(unrelated),
        node("claim of its pod", "GET persistentvolumeclaims/p", 200),
        node("claim of another pod", "GET persistentvolumeclaims/q", 403),
        node("all claims", "GET persistentvolumeclaims", 403)
            .says("can only get individual resources of this type"),
        node("new claim", "POST persistentvolumeclaims", 403).body(claim("x", "y")),
        node(
            "patch of a claim of its pod",
            "PATCH persistentvolumeclaims/p",
            403,
        )
        .body("{}"),
        node(
            "status of a claim of its pod",
            "PATCH persistentvolumeclaims/p/status?dryRun=All",
            200,
        )
        .body(r#"{"status":{"conditions":[{"type":"x","status":"True"}]}}"#),
        node(
            "label of a claim by its status",
            "PATCH persistentvolumeclaims/p/status?dryRun=All",
            403,
        )
        .body(r#"{"metadata":{"labels":{"x":"y"}}}"#)
        .says("is not allowed to update fields other than status.quantity and"),
        node(
            "status of a claim of another pod",
            "PATCH persistentvolumeclaims/q/status",
            403,
        )
        .body("{}"),
        node("volume of its pod", "GET persistentvolumes/{ns}-v", 200),
        node("volume of another pod", "GET persistentvolumes/{ns}-w", 403),
        node("all volumes", "GET persistentvolumes", 403),
        node("service account of its pod", "GET serviceaccounts/bot", 200),
        node(
            "service account of another pod",
            "GET serviceaccounts/other",
            403,
        ),
        node("all service accounts", "GET serviceaccounts", 403)
            .says("can only create tokens for individual service accounts"),
    ]
}

fn own_objects() -> Vec<Row> {
    let own = "PATCH nodes/{ns}-n?dryRun=All";
    vec![
        node("itself", "GET nodes/{ns}-n", 200),
        node("another node", "GET nodes/{ns}-other", 403)
            .says("node '{ns}-n' cannot read '{ns}-other', only its own Node object"),
        node("all nodes", "GET nodes", 403)
            .says("node '{ns}-n' cannot read all nodes, only its own Node object"),
        node(
            "list of itself",
            "GET nodes?fieldSelector=metadata.name%3D{ns}-n",
            200,
        ),
        node(
            "list of another",
            "GET nodes?fieldSelector=metadata.name%3D{ns}-other",
            403,
        ),
        node("part of itself", "GET nodes/{ns}-n/status", 403),
        node("itself once more", "POST nodes", 409).body(r#"{"metadata":{"name":"{ns}-n"}}"#),
        node("a new node", "POST nodes?dryRun=All", 403)
            .body(r#"{"metadata":{"name":"{ns}-new"}}"#)
            .says("node \"{ns}-n\" is not allowed to modify node \"{ns}-new\""),
        node("patch of nothing", own, 200).body("{}"),
        node("own taints", own, 403)
            .body(r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}"#)
            .says("node \"{ns}-n\" is not allowed to modify taints"),
        node("own owners", own, 403)
            .body(
                r#"{"metadata":{"ownerReferences":[
            {"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]}}"#,
            )
            .says("is not allowed to modify ownerReferences"),
        node("own annotations", own, 200).body(r#"{"metadata":{"annotations":{"a":"b"}}}"#),
        node("own status", "PATCH nodes/{ns}-n/status?dryRun=All", 200)
            .body(r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#),
        node(
            "own taints by the status",
            "PATCH nodes/{ns}-n/status?dryRun=All",
            403,
        )
        .body(r#"{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}"#),
        node("patch of another node", "PATCH nodes/{ns}-other", 403)
            .body("{}")
            .says("is not allowed to modify node \"{ns}-other\""),
        node(
            "status of another node",
            "PATCH nodes/{ns}-other/status",
            403,
        )
        .body("{}"),
        node("deletion of itself", "DELETE nodes/{ns}-n?dryRun=All", 403),
        node(
            "own lease that is absent",
            &format!("GET {LEASES}/{{ns}}-n"),
            404,
        ),
        node(
            "lease of another",
            &format!("GET {LEASES}/{{ns}}-other"),
            403,
        )
        .says("can only access node lease with the same name as the requesting node"),
        node("all leases", &format!("GET {LEASES}"), 403)
            .says("can only get, create, update, patch, or delete a node lease"),
        node("new lease", &format!("POST {LEASES}?dryRun=All"), 201)
            .body(r#"{"metadata":{"name":"{ns}-n"}}"#),
        node(
            "new lease of another",
            &format!("POST {LEASES}?dryRun=All"),
            403,
        )
        .body(r#"{"metadata":{"name":"{ns}-other"}}"#),
        node("lease in another namespace", "GET leases/{ns}-n", 403)
            .says("can only access leases in the \"kube-node-lease\" system namespace"),
        node(
            "own storage node that is absent",
            &format!("GET {STORAGE}/csinodes/{{ns}}-n"),
            404,
        ),
        node(
            "storage node of another",
            &format!("GET {STORAGE}/csinodes/{{ns}}-other"),
            403,
        ),
        node("all storage nodes", &format!("GET {STORAGE}/csinodes"), 403),
        node(
            "new storage node of another",
            &format!("POST {STORAGE}/csinodes?dryRun=All"),
            403,
        )
        .body(r#"{"metadata":{"name":"{ns}-other"},"spec":{"drivers":[]}}"#)
        .says("can only access CSINode with the same name as the requesting node"),
        node(
            "new storage node",
            &format!("POST {STORAGE}/csinodes?dryRun=All"),
            201,
        )
        .body(r#"{"metadata":{"name":"{ns}-n"},"spec":{"drivers":[]}}"#),
    ]
}

fn labels() -> Vec<Row> {
    let label = |name: &str, key: &str, code: u16| {
        let body = format!(r#"{{"metadata":{{"labels":{{"{key}":"x"}}}}}}"#);
        node(name, "PATCH nodes/{ns}-n?dryRun=All", code).body(body)
    };
    vec![
        label("label of its own", "a", 200),
        label("label of a domain", "acme.io/a", 200),
        label("label of the node", "node.kubernetes.io/a", 200),
        label(
            "label below that of the node",
            "x.node.kubernetes.io/a",
            200,
        ),
        label("label of the kubelet", "kubelet.kubernetes.io/a", 200),
        label("well-known label", "kubernetes.io/hostname", 200),
        label("zone", "topology.kubernetes.io/zone", 200),
        label("restricted label", "node-restriction.kubernetes.io/a", 403)
            .says("is not allowed to modify labels: node-restriction.kubernetes.io/a"),
        label(
            "label below the restricted ones",
            "x.node-restriction.kubernetes.io/a",
            403,
        ),
        label("role", "node-role.kubernetes.io/master", 403),
        label("label of the project", "kubernetes.io/a", 403),
        label("label of the short domain", "k8s.io/a", 403),
        label("label below the short domain", "x.k8s.io/a", 403),
        label("label of a domain that ends alike", "xkubernetes.io/a", 200),
    ]
}

fn pods() -> Vec<Row> {
    let mirror = |node: &str, owners: &str| {
        format!(
            r#"{{"metadata":{{"name":"m","annotations":{{"kubernetes.io/config.mirror":"x"}},
                "ownerReferences":[{owners}]}},"spec":{{"nodeName":"{{ns}}-{node}",
                "containers":[{{"name":"c","image":"i"}}]}}}}"#
        )
    };
    let owner = |name: &str, more: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"Node","name":"{{ns}}-{name}","uid":"x"{more}}}"#)
    };
    let create = "POST pods?dryRun=All";
    vec![
        node("its pod", "GET pods/own", 200),
        node("another pod", "GET pods/far", 403),
        node("all pods", "GET pods", 403)
            .says("can only list/watch pods with spec.nodeName field selector"),
        node(
            "its pods",
            "GET pods?fieldSelector=spec.nodeName%3D{ns}-n",
            200,
        ),
        node(
            "its pods everywhere",
            "GET /api/v1/pods?fieldSelector=spec.nodeName%3D{ns}-n",
            200,
        ),
        node(
            "watch of its pods",
            "GET pods?watch=true&timeoutSeconds=1&fieldSelector=spec.nodeName%3D{ns}-n",
            200,
        ),
        node(
            "pods of another",
            "GET pods?fieldSelector=spec.nodeName%3D{ns}-other",
            403,
        ),
        node(
            "pods not on another",
            "GET pods?fieldSelector=spec.nodeName%21%3D{ns}-other",
            403,
        ),
        node(
            "list of its pod",
            "GET pods?fieldSelector=metadata.name%3Down",
            200,
        ),
        node(
            "list of another pod",
            "GET pods?fieldSelector=metadata.name%3Dfar",
            403,
        ),
        node("log of its pod", "GET pods/own/log", 403),
        node("exec in its pod", "POST pods/own/exec", 403),
        node("patch of its pod", "PATCH pods/own", 403).body("{}"),
        node("status of its pod", "PATCH pods/own/status?dryRun=All", 200)
            .body(r#"{"status":{"phase":"Running"}}"#),
        node(
            "labels by the status of its pod",
            "PATCH pods/own/status?dryRun=All",
            403,
        )
        .body(r#"{"metadata":{"labels":{"x":"y"}}}"#)
        .says("node \"{ns}-n\" cannot update labels through pod status"),
        node("status of another pod", "PATCH pods/far/status", 403)
            .body("{}")
            .says("can only update pod status for pods with spec.nodeName set to itself"),
        node("deletion of its pod", "DELETE pods/own?dryRun=All", 200),
        node("deletion of another pod", "DELETE pods/far?dryRun=All", 403)
            .says("node \"{ns}-n\" can only delete pods with spec.nodeName set to itself"),
        node("deletion of an absent pod", "DELETE pods/absent", 404),
        node("deletion of all pods", "DELETE pods?dryRun=All", 403),
        node(
            "eviction of its pod",
            "POST pods/own/eviction?dryRun=All",
            201,
        )
        .body(r#"{"metadata":{"name":"own"}}"#),
        node(
            "eviction of another pod",
            "POST pods/far/eviction?dryRun=All",
            403,
        )
        .body(r#"{"metadata":{"name":"far"}}"#)
        .says("node {ns}-n can only evict pods with spec.nodeName set to itself"),
        node("binding of a pod", "POST pods/own/binding", 403)
            .body(r#"{"metadata":{"name":"own"},"target":{"name":"{ns}-n"}}"#),
        node("new pod", create, 403)
            .body(pod("x", "n", ""))
            .says("pod does not have \"kubernetes.io/config.mirror\" annotation"),
        node("mirror pod on another node", create, 403)
            .body(mirror("other", ""))
            .says("can only create pods with spec.nodeName set to itself"),
        node("mirror pod without an owner", create, 403)
            .body(mirror("n", ""))
            .says("can only create pods with an owner reference set to itself"),
        node("mirror pod of another", create, 403).body(mirror("n", &owner("other", ""))),
        node("mirror pod without a controller", create, 403)
            .body(mirror("n", &owner("n", "")))
            .says("can only create pods with a controller owner reference set to itself"),
        node("mirror pod that blocks", create, 403)
            .body(mirror(
                "n",
                &owner("n", r#","controller":true,"blockOwnerDeletion":true"#),
            ))
            .says("must not set blockOwnerDeletion on an owner reference"),
        node("mirror pod of a node of another life", create, 403)
            .body(mirror("n", &owner("n", r#","controller":true"#)))
            .says("node {ns}-n UID mismatch: expected x got"),
    ]
}

fn tokens() -> Vec<Row> {
    let token = |name: &str, account: &str, bound: &str| {
        node(name, &format!("POST serviceaccounts/{account}/token"), 403)
            .body(format!(r#"{{"spec":{{{bound}}}}}"#))
    };
    vec![
        token("token without a pod", "bot", "").says("node requested token not bound to a pod"),
        token("token of another pod's account", "other", "").says("no relationship found"),
        token(
            "token for a secret",
            "bot",
            r#""boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s","uid":"x"}"#,
        )
        .says("node requested token not bound to a pod"),
        token(
            "token without the identity of the pod",
            "bot",
            r#""boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"own"}"#,
        )
        .says("node requested token with a pod binding without a uid"),
        token(
            "token with another identity of the pod",
            "bot",
            r#""boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"own","uid":"x"}"#,
        )
        .says("the UID in the bound object reference (x) does not match the UID in record"),
    ]
}

fn other_kinds() -> Vec<Row> {
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let request = |signer: &str| {
        format!(
            r#"{{"metadata":{{"name":"{{ns}}-r"}},"spec":{{"request":"{DEV}",
                "signerName":"{signer}","usages":["client auth"]}}}}"#
        )
    };
    vec![
        node("services", "GET services", 200),
        node("services everywhere", "GET /api/v1/services", 200),
        node("new service", "POST services", 403).body("{}"),
        node("endpoints that are absent", "GET endpoints/x", 404),
        node("all endpoints", "GET endpoints", 403),
        node("drivers", &format!("GET {STORAGE}/csidrivers"), 200),
        node(
            "classes of storage",
            &format!("GET {STORAGE}/storageclasses"),
            403,
        ),
        node(
            "classes of runtimes",
            "GET /apis/node.k8s.io/v1/runtimeclasses",
            200,
        ),
        node(
            "attachment that is absent",
            &format!("GET {STORAGE}/volumeattachments/x"),
            403,
        ),
        node(
            "all attachments",
            &format!("GET {STORAGE}/volumeattachments"),
            403,
        ),
        node("slices", &format!("GET {slices}"), 403)
            .says("can only list/watch/deletecollection resourceslices with nodeName"),
        node(
            "its slices",
            &format!("GET {slices}?fieldSelector=spec.nodeName%3D{{ns}}-n"),
            200,
        ),
        node(
            "slices of another",
            &format!("GET {slices}?fieldSelector=spec.nodeName%3D{{ns}}-other"),
            403,
        ),
        node(
            "new slice of another",
            &format!("POST {slices}?dryRun=All"),
            403,
        )
        .body(
            r#"{"metadata":{"name":"{ns}-s"},"spec":{"driver":"d.io","nodeName":"{ns}-other",
                "pool":{"name":"p","generation":1,"resourceSliceCount":1}}}"#,
        )
        .says("can only create ResourceSlice with the same NodeName as the requesting node"),
        node("requests for certificates", &format!("GET {REQUESTS}"), 200),
        node(
            "request for its own certificate in another name",
            &format!("POST {REQUESTS}?dryRun=All"),
            403,
        )
        .body(request("kubernetes.io/kube-apiserver-client-kubelet"))
        .says("can only create a node CSR with CN=system:node:{ns}-n"),
        node(
            "request for a certificate of another signer",
            &format!("POST {REQUESTS}?dryRun=All"),
            201,
        )
        .body(request("acme.io/a")),
        node(
            "approval of a request",
            &format!("PATCH {REQUESTS}/x/approval"),
            403,
        )
        .body("{}"),
        node("namespaces", "GET namespaces", 403),
        node("deployments", "GET deployments", 403),
        node("roles", "GET roles", 403),
        node("events", "GET events", 403),
        node("review of another", "POST subjectaccessreviews", 201)
            .body(r#"{"spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods"}}}"#),
        node("review of itself", "POST selfsubjectaccessreviews", 201)
            .body(
                r#"{"spec":{"resourceAttributes":{"namespace":"{ns}","verb":"get",
                "resource":"secrets","name":"s"}}}"#,
            )
            .has("/status/allowed", true),
        node(
            "review of what it may not",
            "POST selfsubjectaccessreviews",
            201,
        )
        .body(
            r#"{"spec":{"resourceAttributes":{"namespace":"{ns}","verb":"get",
                "resource":"secrets","name":"t"}}}"#,
        )
        .has("/status/allowed", false)
        .has(
            "/status/reason",
            "no relationship found between node '{ns}-n' and this object",
        ),
        node("its rules", "POST selfsubjectrulesreviews", 201)
            .body(r#"{"spec":{"namespace":"{ns}"}}"#)
            .has("/status/incomplete", true)
            .has(
                "/status/evaluationError",
                "node authorizer does not support user rule resolution",
            ),
    ]
}

fn identities() -> Vec<Row> {
    let get = "GET nodes/{ns}-n";
    vec![
        row("node without the group", "as:system:node:{ns}-n", get, 403)
            .header("impersonate-group", "x"),
        row("group without the name of a node", "stranger", get, 403)
            .header("impersonate-group", "system:nodes"),
        row("node without a name", "as:system:node:", get, 403)
            .header("impersonate-group", "system:nodes")
            .says("unknown node for user \"system:node:\""),
        row(
            "node that does not exist",
            "as:system:node:{ns}-none",
            "GET nodes/{ns}-none",
            404,
        )
        .header("impersonate-group", "system:nodes"),
        row(
            "node among administrators",
            "as:system:node:{ns}-n",
            "GET secrets/t",
            200,
        )
        .header("impersonate-group", "system:nodes")
        .header("impersonate-group", "system:masters"),
        row(
            "node among administrators still writes only itself",
            "as:system:node:{ns}-n",
            "PATCH nodes/{ns}-other?dryRun=All",
            403,
        )
        .body("{}")
        .header("impersonate-group", "system:nodes")
        .header("impersonate-group", "system:masters"),
    ]
}
