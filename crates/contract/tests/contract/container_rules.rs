//! What is wrong with containers and volumes of pods, and in which words.

use windlass_contract::objects::pod;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc, names};

cases![
    probes_are_checked,
    probes_of_containers_that_end_are_refused,
    hooks_are_checked,
    sources_of_variables_are_checked,
    sources_of_environments_are_checked,
    mounts_are_checked,
    ports_are_checked,
    ports_of_the_node_are_taken_once,
    resources_are_checked,
    resizing_is_checked,
    volumes_are_checked,
    files_of_volumes_are_checked,
    volume_with_a_fault_cannot_be_mounted,
    claims_are_checked,
];

/// Demands that a pod is refused for exactly these faults, each a field below another one and the
/// words about it.
async fn refused(t: &Scope, given: &Doc, at: &str, faults: &[(&str, &str)]) {
    let refusal = t.create("pods", given).await.fails(422, "Invalid");
    let causes: Vec<_> = refusal
        .causes()
        .iter()
        .map(|cause| (cause.str_at("/field"), cause.str_at("/message")))
        .collect();
    let faults: Vec<_> = faults
        .iter()
        .map(|(field, words)| (format!("{at}{field}"), *words))
        .collect();
    let faults: Vec<_> = faults.iter().map(|(at, words)| (&**at, *words)).collect();
    assert_eq!(causes, faults);
}

fn with(field: &str, value: Doc) -> Doc {
    pod("a").set(&format!("/spec/containers/0/{field}"), value)
}

const MAIN: &str = "spec.containers[0]";

async fn probes_are_checked(t: &Scope) {
    let get = doc!({ "port": 80 });
    for (probe, faults) in [
        (
            doc!({}),
            vec![("", "Required value: must specify a handler type")],
        ),
        (
            doc!({ "httpGet": (&get), "exec": { "command": ["x"] } }),
            vec![(
                ".httpGet",
                "Forbidden: may not specify more than 1 handler type",
            )],
        ),
        (
            doc!({ "httpGet": { "port": 0 } }),
            vec![(
                ".httpGet.port",
                "Invalid value: 0: must be between 1 and 65535, inclusive",
            )],
        ),
        (
            doc!({ "httpGet": { "port": 80, "scheme": "x" } }),
            vec![(
                ".httpGet.scheme",
                "Unsupported value: \"x\": supported values: \"HTTP\", \"HTTPS\"",
            )],
        ),
        (
            doc!({ "httpGet": { "port": 80, "httpHeaders": [{ "name": "a b", "value": "x" }] } }),
            vec![(
                ".httpGet.httpHeaders",
                "Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric \
                 characters or '-' (e.g. 'X-Header-Name', regex used for validation is \
                 '[-A-Za-z0-9]+')",
            )],
        ),
        (
            doc!({ "exec": {} }),
            vec![(".exec.command", "Required value")],
        ),
        (
            doc!({ "httpGet": (&get), "periodSeconds": (-1), "successThreshold": 2 }),
            vec![
                (
                    ".periodSeconds",
                    "Invalid value: -1: must be greater than or equal to 0",
                ),
                (".successThreshold", "Invalid value: 2: must be 1"),
            ],
        ),
        (
            doc!({ "httpGet": (&get), "terminationGracePeriodSeconds": 0 }),
            vec![(
                ".terminationGracePeriodSeconds",
                "Invalid value: 0: must be greater than 0",
            )],
        ),
    ] {
        for key in ["livenessProbe", "startupProbe"] {
            let given = with(key, probe.clone());
            refused(t, &given, &format!("{MAIN}.{key}"), &faults).await;
        }
    }
    let given = with(
        "readinessProbe",
        doc!({ "httpGet": (&get), "successThreshold": 2, "terminationGracePeriodSeconds": 5 }),
    );
    let words = "Invalid value: 5: must not be set for readinessProbes";
    let field = ".readinessProbe.terminationGracePeriodSeconds";
    refused(t, &given, MAIN, &[(field, words)]).await;
}

async fn probes_of_containers_that_end_are_refused(t: &Scope) {
    let first = |policy: Option<&str>| {
        let probe = doc!({ "tcpSocket": { "port": 80 } });
        let first = doc!({ "name": "first", "image": "x:1", "readinessProbe": probe });
        let first = match policy {
            Some(policy) => first.set("/restartPolicy", policy),
            None => first,
        };
        pod("a").set("/spec/initContainers", doc!([first]))
    };
    let words = "Forbidden: may not be set for init containers without restartPolicy=Always";
    let at = "spec.initContainers[0]";
    refused(t, &first(None), at, &[(".readinessProbe", words)]).await;
    t.made("pods", &first(Some("Always"))).await;
    let policy = "Unsupported value: \"x\": supported values: \"Always\", \"Never\", \"OnFailure\"";
    let faults = [(".restartPolicy", policy), (".readinessProbe", words)];
    refused(t, &first(Some("x")), at, &faults).await;
}

async fn hooks_are_checked(t: &Scope) {
    let given = with(
        "lifecycle",
        doc!({ "postStart": {}, "preStop": { "sleep": { "seconds": 31 } } }),
    );
    let faults = [
        (".postStart", "Required value: must specify a handler type"),
        (
            ".preStop.sleep",
            "Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds \
             (30)",
        ),
    ];
    refused(t, &given, &format!("{MAIN}.lifecycle"), &faults).await;
}

async fn sources_of_variables_are_checked(t: &Scope) {
    let one_of = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                  `secretKeyRef` or `fileKeyRef`";
    let field = |path: &str| doc!({ "fieldRef": { "fieldPath": path } });
    let name = names::dns1123_subdomain("Not")[0].clone();
    let fields = "supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \
                  \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \
                  \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"";
    let rows = [
        (doc!({}), "", format!("Invalid value: \"\": {one_of}")),
        (
            field(""),
            ".fieldRef.fieldPath",
            "Required value".to_owned(),
        ),
        (
            field("spec.x"),
            ".fieldRef.fieldPath",
            "Invalid value: \"spec.x\": error converting fieldPath: field label not supported: \
             spec.x"
                .to_owned(),
        ),
        (
            field("metadata.labels"),
            ".fieldRef.fieldPath",
            format!("Unsupported value: \"metadata.labels\": {fields}"),
        ),
        (
            field("metadata.labels['a b']"),
            ".fieldRef",
            format!(
                "Invalid value: \"a b\": {}",
                names::qualified_name("a b")[0]
            ),
        ),
        (
            doc!({ "secretKeyRef": { "name": "Not", "key": "x" } }),
            ".secretKeyRef.name",
            format!("Invalid value: \"Not\": {name}"),
        ),
        (
            doc!({ "configMapKeyRef": { "name": "x", "key": "" } }),
            ".configMapKeyRef.key",
            "Required value".to_owned(),
        ),
        (
            doc!({ "resourceFieldRef": { "resource": "limits.cpu", "divisor": "3" } }),
            ".resourceFieldRef.divisor",
            "Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the \
             cpu resource"
                .to_owned(),
        ),
        (
            doc!({ "fieldRef": { "fieldPath": "status.podIP" },
                "secretKeyRef": { "name": "x", "key": "x" } }),
            "",
            "Invalid value: \"\": may not have more than one field specified at a time".to_owned(),
        ),
    ];
    for (source, field, words) in rows {
        let given = with("env", doc!([{ "name": "A", "valueFrom": source }]));
        let at = format!("{MAIN}.env[0].valueFrom");
        refused(t, &given, &at, &[(field, &words)]).await;
    }
}

async fn sources_of_environments_are_checked(t: &Scope) {
    let given = with(
        "envFrom",
        doc!([
            {},
            { "prefix": "a=", "configMapRef": { "name": "x" } },
            { "configMapRef": { "name": "" } },
            { "secretRef": { "name": "x" }, "configMapRef": { "name": "y" } },
        ]),
    );
    let faults = [
        (
            "",
            "Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
        ),
        (
            "[1].prefix",
            "Invalid value: \"a=\": a valid environment variable name must consist only of \
             printable ASCII characters other than '='",
        ),
        ("[2].configMapRef.name", "Required value"),
        (
            "",
            "Invalid value: \"\": may not have more than one field specified at a time",
        ),
    ];
    refused(t, &given, &format!("{MAIN}.envFrom"), &faults).await;
}

async fn mounts_are_checked(t: &Scope) {
    let mounts = doc!([
        { "mountPath": "/a" },
        { "name": "v", "mountPath": "/b", "subPath": "/x" },
        { "name": "v", "mountPath": "/c", "subPath": "a", "subPathExpr": "b" },
        { "name": "v", "mountPath": "/d", "mountPropagation": "x" },
        { "name": "v", "mountPath": "/e", "mountPropagation": "Bidirectional" },
        { "name": "v", "mountPath": "/f", "recursiveReadOnly": "Enabled" },
        { "name": "v", "mountPath": "/f" },
    ]);
    let given = with("volumeMounts", mounts).set("/spec/volumes", doc!([{ "name": "v" }]));
    let faults = [
        ("[0].name", "Required value"),
        ("[0].name", "Not found: \"\""),
        (".subPath", "Invalid value: \"/x\": must be a relative path"),
        (
            "[2].subPathExpr",
            "Invalid value: \"b\": subPathExpr and subPath are mutually exclusive",
        ),
        (
            ".mountPropagation",
            "Unsupported value: \"x\": supported values: \"Bidirectional\", \"HostToContainer\", \
             \"None\"",
        ),
        (
            ".mountPropagation",
            "Forbidden: Bidirectional mount propagation is available only to privileged containers",
        ),
        (
            ".recursiveReadOnly",
            "Forbidden: may only be specified when readOnly is true",
        ),
        ("[6].mountPath", "Invalid value: \"/f\": must be unique"),
    ];
    refused(t, &given, &format!("{MAIN}.volumeMounts"), &faults).await;
}

async fn ports_are_checked(t: &Scope) {
    let given = with(
        "ports",
        doc!([
            { "containerPort": 80, "name": "a--b" },
            { "containerPort": 81, "name": "-a" },
            { "containerPort": 82, "name": "x" },
            { "containerPort": 83, "name": "x", "protocol": "tcp" },
        ]),
    );
    let faults = [
        (
            "[0].name",
            "Invalid value: \"a--b\": must not contain consecutive hyphens",
        ),
        (
            "[1].name",
            "Invalid value: \"-a\": must not begin or end with a hyphen",
        ),
        ("[3].name", "Duplicate value: \"x\""),
        (
            "[3].protocol",
            "Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
    ];
    refused(t, &given, &format!("{MAIN}.ports"), &faults).await;
}

async fn ports_of_the_node_are_taken_once(t: &Scope) {
    let port = doc!([{ "containerPort": 80, "hostPort": 8080 }]);
    let second = doc!({ "name": "second", "image": "x:1", "ports": (&port) });
    let main = with("ports", port.clone()).at("/spec/containers/0").clone();
    let given = pod("a").set("/spec/containers", doc!([main, second]));
    let words = "Duplicate value: \"TCP//8080\"";
    let field = "spec.containers[1].ports[0].hostPort";
    refused(t, &given, "", &[(field, words)]).await;
    let given = with("ports", port).set("/spec/hostNetwork", true);
    let words = "Invalid value: 8080: must match `containerPort` when `hostNetwork` is true";
    refused(t, &given, MAIN, &[(".ports[0].hostPort", words)]).await;
}

async fn resources_are_checked(t: &Scope) {
    let device = "example.com/device";
    let standard = "Invalid value: \"pods\": must be a standard resource for containers";
    for (resources, faults) in [
        (
            doc!({ "limits": { "pods": "1" } }),
            vec![(".limits[pods]", standard), (".requests[pods]", standard)],
        ),
        (
            doc!({ "requests": { device: "1" } }),
            vec![(
                ".limits",
                "Required value: Limit must be set for non overcommitable resources",
            )],
        ),
        (
            doc!({ "requests": { device: "1" }, "limits": { device: "2" } }),
            vec![(
                ".requests",
                "Invalid value: \"1\": must be equal to example.com/device limit of 2",
            )],
        ),
        (
            doc!({ "requests": { device: "500m" }, "limits": { device: "500m" } }),
            vec![
                (
                    ".limits[example.com/device]",
                    "Invalid value: \"500m\": must be an integer",
                ),
                (
                    ".requests[example.com/device]",
                    "Invalid value: \"500m\": must be an integer",
                ),
            ],
        ),
        (
            doc!({ "limits": { "hugepages-2Mi": "4Mi" } }),
            vec![("", "Forbidden: HugePages require cpu or memory")],
        ),
        (
            doc!({ "claims": [{ "name": "x" }] }),
            vec![(
                ".claims[0]",
                "Not found: \"x\": must be one of the names in pod.spec.resourceClaims which is \
                 empty",
            )],
        ),
    ] {
        let given = with("resources", resources);
        refused(t, &given, &format!("{MAIN}.resources"), &faults).await;
    }
}

async fn resizing_is_checked(t: &Scope) {
    let given = with(
        "resizePolicy",
        doc!([{ "resourceName": "pods", "restartPolicy": "x" }]),
    );
    let faults = [
        (
            ".resizePolicy",
            "Unsupported value: \"pods\": supported values: \"cpu\", \"memory\"",
        ),
        (
            ".resizePolicy",
            "Unsupported value: \"x\": supported values: \"NotRequired\", \"RestartContainer\"",
        ),
    ];
    refused(t, &given, MAIN, &faults).await;
}

async fn volumes_are_checked(t: &Scope) {
    for (source, faults) in [
        (
            doc!({ "emptyDir": { "sizeLimit": "-1" } }),
            vec![(
                ".emptyDir.sizeLimit",
                "Forbidden: SizeLimit field must be a valid resource quantity",
            )],
        ),
        (
            doc!({ "hostPath": { "path": "" } }),
            vec![(".hostPath.path", "Required value")],
        ),
        (
            doc!({ "hostPath": { "path": "/a/../b", "type": "x" } }),
            vec![
                (
                    ".hostPath.path",
                    "Invalid value: \"/a/../b\": must not contain '..'",
                ),
                (
                    ".hostPath.type",
                    "Unsupported value: \"x\": supported values: \"\", \"BlockDevice\", \
                     \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \
                     \"FileOrCreate\", \"Socket\"",
                ),
            ],
        ),
        (
            doc!({ "persistentVolumeClaim": { "claimName": "" } }),
            vec![(".persistentVolumeClaim.claimName", "Required value")],
        ),
        (
            doc!({ "nfs": { "server": "x", "path": "a" } }),
            vec![(
                ".nfs.path",
                "Invalid value: \"a\": must be an absolute path",
            )],
        ),
        (
            doc!({ "csi": { "driver": "" } }),
            vec![(".csi.driver", "Required value")],
        ),
        (
            doc!({ "ephemeral": {} }),
            vec![(".ephemeral.volumeClaimTemplate", "Required value")],
        ),
    ] {
        let given = pod("a").set("/spec/volumes", doc!([(source.set("/name", "v"))]));
        refused(t, &given, "spec.volumes[0]", &faults).await;
    }
}

async fn files_of_volumes_are_checked(t: &Scope) {
    let mode = "must be a number between 0 and 0777 (octal), both inclusive";
    let mode = format!("Invalid value: 512: {mode}");
    let back = "Invalid value: \"../a\": must not contain '..'";
    for (source, faults) in [
        (
            doc!({ "secret": { "defaultMode": 512, "items": [{ "key": "", "path": "../a" }] } }),
            vec![
                (".secret.secretName", "Required value"),
                (".secret.defaultMode", &*mode),
                (".secret.items[0].key", "Required value"),
                (".secret.items[0].path", back),
            ],
        ),
        (
            doc!({ "configMap": { "name": "x", "items": [{ "key": "a", "path": "..a" }] } }),
            vec![(
                ".configMap.items[0].path",
                "Invalid value: \"..a\": must not start with '..'",
            )],
        ),
        (
            doc!({ "downwardAPI": { "items": [{ "path": "a" }] } }),
            vec![(
                ".downwardAPI",
                "Required value: one of fieldRef and resourceFieldRef is required",
            )],
        ),
        (
            doc!({ "projected": { "sources": [
                { "secret": { "name": "x", "items": [{ "key": "a", "path": "p" }] } },
                { "configMap": { "name": "y", "items": [{ "key": "a", "path": "p" }] } },
                { "secret": { "name": "x" }, "configMap": { "name": "y" } },
            ] } }),
            vec![
                (
                    ".projected",
                    "Invalid value: \"y\": conflicting duplicate paths",
                ),
                (
                    ".projected.sources[2]",
                    "Forbidden: may not specify more than 1 volume type per source",
                ),
            ],
        ),
    ] {
        let given = pod("a").set("/spec/volumes", doc!([(source.set("/name", "v"))]));
        refused(t, &given, "spec.volumes[0]", &faults).await;
    }
}

async fn volume_with_a_fault_cannot_be_mounted(t: &Scope) {
    let mounts = doc!([{ "name": "v", "mountPath": "/a" }]);
    let volumes = doc!([{ "name": "v", "hostPath": { "path": "" } }]);
    let given = with("volumeMounts", mounts).set("/spec/volumes", volumes);
    let faults = [
        ("spec.volumes[0].hostPath.path", "Required value"),
        (
            "spec.containers[0].volumeMounts[0].name",
            "Not found: \"v\"",
        ),
    ];
    refused(t, &given, "", &faults).await;
}

async fn claims_are_checked(t: &Scope) {
    let claims = doc!([
        { "name": "x" },
        { "name": "y", "resourceClaimName": "a", "resourceClaimTemplateName": "b" },
        { "name": "Not", "resourceClaimName": "a" },
    ]);
    let given = pod("a").set("/spec/resourceClaims", claims);
    let label = format!("Invalid value: \"Not\": {}", names::dns1123_label("Not")[0]);
    let faults = [
        (
            "[0]",
            "Invalid value: {\"Name\":\"x\",\"ResourceClaimName\":null,\
             \"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, \
             `resourceClaimTemplateName`",
        ),
        (
            "[1]",
            "Invalid value: {\"Name\":\"y\",\"ResourceClaimName\":\"a\",\
             \"ResourceClaimTemplateName\":\"b\"}: at most one of `resourceClaimName` or \
             `resourceClaimTemplateName` may be specified",
        ),
        ("[2].name", &*label),
    ];
    refused(t, &given, "spec.resourceClaims", &faults).await;
}
