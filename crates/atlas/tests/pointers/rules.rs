//! The literals that are JSON pointers, and the types that each may start from.
//!
//! These tables name no files, so that code can move.

use windlass_atlas::{Atlas, Type};

use crate::literals::Literal;

/// Calls whose arguments are URLs, files or plain text. A literal that starts with `/` is a pointer
/// anywhere else.
const TEXT_CALLS: &[&str] = &[
    "ask",
    "concat!",
    "contains",
    "create",
    "delete",
    "ends_with",
    "get",
    "get_as",
    "in",
    "mentions",
    "old_path",
    "path",
    "post",
    "push_str",
    "read_to_string",
    "request",
    "rsplit_once",
    "schema_of",
    "spawn",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "vec!",
    "watch",
];

/// A literal behind one of these is a URL: `(PATCH, "/pods/one")`.
const HTTP_METHODS: &[&str] = &["DELETE", "GET", "PATCH", "POST", "PUT"];

/// The first segments of URLs and files.
const URL_ROOTS: &[&str] = &[
    ".well-known",
    "API",
    "api",
    "apis",
    "bin",
    "clusterroles",
    "debug",
    "dev",
    "etc",
    "healthz",
    "livez",
    "logs",
    "metrics",
    "namespaces",
    "no",
    "nowhere",
    "openapi",
    "openid",
    "proc",
    "readyz",
    "registry",
    "tmp",
    "usr",
    "var",
    "version",
    "v",
    "windlass",
];

/// Variables that hold objects of a few types wherever they occur. Their pointers start at these
/// types; `*` stands for the beginning of a name.
const VARIABLES: &[(&str, &[&str])] = &[
    ("binding", &["Binding", "ClusterRoleBinding", "RoleBinding"]),
    ("budget", &["PodDisruptionBudget"]),
    (
        "claim",
        &[
            "ObjectReference",
            "PersistentVolumeClaim",
            "PodResourceClaim",
            "ResourceClaim",
        ],
    ),
    ("condition", &["*Condition"]),
    (
        "constraint",
        &["DeviceConstraint", "TopologySpreadConstraint"],
    ),
    (
        "container",
        &["Container", "ContainerStatus", "EphemeralContainer"],
    ),
    ("crd", &["CustomResourceDefinition"]),
    ("cron_job", &["CronJob"]),
    ("deployment", &["Deployment"]),
    ("job", &["Job"]),
    ("lease", &["Lease"]),
    ("namespace", &["Namespace"]),
    ("node", &["CSINode", "Node", "ObjectReference"]),
    ("pod", &["ObjectReference", "Pod", "PodSpec"]),
    ("quota", &["ResourceQuota"]),
    (
        "review",
        &[
            "SelfSubjectReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
            "TokenReview",
        ],
    ),
    ("scaler", &["HorizontalPodAutoscaler"]),
    ("service", &["APIService", "Service", "ServiceReference"]),
    (
        "set",
        &["CounterSet", "DaemonSet", "ReplicaSet", "StatefulSet"],
    ),
    ("slice", &["EndpointSlice", "ResourceSlice"]),
    ("spec", &["*Spec", "Container", "JSONSchemaProps"]),
    ("status", &["*Status", "APIResource"]),
    ("subject", &["Subject"]),
    ("taint", &["Taint"]),
    (
        "template",
        &["*Spec", "PodTemplate", "ResourceClaimTemplate"],
    ),
    ("toleration", &["Toleration"]),
    ("volume", &["PersistentVolume", "Volume"]),
];

/// A kind of document that has no built-in type, and the pointers into it that we use. A pointer
/// below one of these is allowed too.
struct Untyped {
    document: &'static str,
    pointers: &'static [&'static str],
}

const UNTYPED: &[Untyped] = &[
    Untyped {
        document: "admission reviews: admission.k8s.io is no served API",
        pointers: &["/request", "/response"],
    },
    Untyped {
        document: "audit events: audit.k8s.io is no served API",
        pointers: &[
            "/auditID",
            "/impersonatedUser",
            "/objectRef",
            "/requestObject",
            "/requestURI",
            "/responseObject",
            "/responseStatus",
            "/stage",
            "/stageTimestamp",
        ],
    },
    Untyped {
        document: "claims and header of a JSON web token",
        pointers: &["/alg", "/aud", "/exp", "/iss", "/jti", "/nbf"],
    },
    Untyped {
        document: "continue tokens of lists",
        pointers: &["/rv"],
    },
    Untyped {
        document: "custom kinds of tests and examples",
        pointers: &[
            "/balance",
            "/spec/a",
            "/spec/amount",
            "/spec/b",
            "/spec/color",
            "/spec/deploymentName",
            "/spec/empty",
            "/spec/field0",
            "/spec/field3",
            "/spec/half",
            "/spec/inner",
            "/spec/keep",
            "/spec/nested",
            "/spec/object",
            "/spec/open",
            "/spec/size",
            "/spec/value",
            "/text",
            "/users",
        ],
    },
    Untyped {
        document: "data of ConfigMaps that webhooks of tests write, and paths of those webhooks",
        pointers: &[
            "/absent",
            "/b",
            "/c",
            "/cpu",
            "/e",
            "/first",
            "/m",
            "/marker",
            "/nonsense",
            "/second",
        ],
    },
    Untyped {
        document: "directives of strategic merge patches",
        pointers: &["/$patch", "/metadata/$deleteFromPrimitiveList~1finalizers"],
    },
    Untyped {
        document: "documents of the JSON patch and YAML tests",
        pointers: &["/a", "/foo", "/l/x", "/s/0/k", "/spec/more", "/spec/text"],
    },
    Untyped {
        document: "field sets of managedFields",
        pointers: &[
            "/f:data",
            "/f:labelSelector",
            "/f:matchLabelKeys",
            "/f:type",
            "/f:{key}",
        ],
    },
    Untyped {
        document: "fields that a server must refuse or drop",
        pointers: &[
            "/color",
            "/metadata/color",
            "/metadata/size",
            "/metadata/xx",
            "/spec/notYetKnown",
            "/spec/template/spec/containers/0/color",
            "/spec/unheardOf",
        ],
    },
    Untyped {
        document: "faults that were injected, and reports of `windlass test`",
        pointers: &["/events", "/fault", "/seen", "/why"],
    },
    Untyped {
        document: "identity provider and keys of service account tokens",
        pointers: &[
            "/id_token_signing_alg_values_supported",
            "/issuer",
            "/jwks_uri",
            "/keys",
            "/kid",
            "/response_types_supported",
            "/subject_types_supported",
            "/use",
        ],
    },
    Untyped {
        document: "keys of a map that is read on its own",
        pointers: &["/count~1podtemplates"],
    },
    Untyped {
        document: "kubeconfig files, and the program's own lock and log lines",
        pointers: &["/current-context", "/kubeconfig", "/msg", "/pid"],
    },
    Untyped {
        document: "OpenAPI documents",
        pointers: &[
            "/components/schemas",
            "/consumes",
            "/definitions",
            "/in",
            "/info",
            "/operationId",
            "/paths",
            "/produces",
            "/requestBody",
            "/responses",
            "/schemes",
            "/security",
            "/securityDefinitions",
            "/swagger",
            "/tags",
            "/x-kubernetes-action",
            "/x-kubernetes-group-version-kind",
            "/x-kubernetes-patch-merge-key",
            "/x-kubernetes-patch-strategy",
            "/x-kubernetes-selectable-fields",
        ],
    },
    Untyped {
        document: "the answer of /version",
        pointers: &["/gitCommit", "/gitVersion", "/major", "/minor"],
    },
];

/// Returns true if the literal is a JSON pointer into an object.
pub(crate) fn is_pointer(literal: &Literal) -> bool {
    let Some(rest) = literal.text.strip_prefix('/') else {
        return false;
    };
    let first = rest.split(['/', '?']).next().unwrap_or(rest);
    let has_call = |names: &[&str]| {
        let mut nearest = literal.calls.iter().take(2);
        nearest.any(|call| names.contains(&call.as_str()))
    };
    let is_url = literal
        .before
        .as_ref()
        .is_some_and(|name| HTTP_METHODS.contains(&name.as_str()));
    let is_value =
        literal.calls.first().is_some_and(|call| call == "doc!") && !literal.is_patch_path;
    !(!is_segment(first)
        || is_value
        || is_url
        || has_call(TEXT_CALLS)
        || URL_ROOTS.contains(&first))
}

/// Field names have letters, map keys also `.`, `-` and `~1`, placeholders `{}`; text has more.
fn is_segment(first: &str) -> bool {
    let is_part = |one: char| one.is_ascii_alphanumeric() || ".-~:${}_".contains(one);
    first.contains(|one: char| one.is_ascii_alphanumeric() || one == '{')
        && first.chars().all(is_part)
}

/// The documents without a type, with the pointers of each.
pub(crate) fn untyped() -> impl Iterator<Item = (&'static str, &'static str)> {
    UNTYPED
        .iter()
        .flat_map(|one| one.pointers.iter().map(|pointer| (one.document, *pointer)))
}

/// The types at which a pointer may start: those of the variable, or all.
pub(crate) fn start_types(variable: Option<&str>) -> Vec<&'static Type> {
    let known = VARIABLES.iter().find(|(name, _)| Some(*name) == variable);
    let types = Atlas::types().iter();
    match known {
        Some((_, names)) => types
            .filter(|of| names.iter().any(|name| is_named(of, name)))
            .collect(),
        None => types.collect(),
    }
}

fn is_named(of: &Type, pattern: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => of.name().ends_with(end),
        None => of.name() == pattern,
    }
}

#[test]
fn every_variable_names_types_that_exist() {
    for (variable, names) in VARIABLES {
        for name in *names {
            assert!(
                Atlas::types().iter().any(|of| is_named(of, name)),
                "VARIABLES: {variable}: there is no type {name}"
            );
        }
    }
}
