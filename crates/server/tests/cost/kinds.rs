//! JSON bodies of other kinds, with as many items as fit of each of their lists.

use crate::shapes::filled_to;
use crate::support::{Case, LIST_BYTES};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const LIMITS: &str = "/api/v1/namespaces/default/limitranges";
const NODES: &str = "/api/v1/nodes";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const RESOURCE_SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn cases() -> Vec<Case> {
    let mut all = others();
    all.extend(definitions());
    all
}

fn others() -> Vec<Case> {
    let list = |name, path: &str, open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        let open = format!(r#"{{"metadata":{{"name":"a"}},{open}"#);
        Case::create(
            name,
            path,
            filled_to(LIST_BYTES, &open, part, &format!("{close}}}")),
        )
    };
    let template = r#""template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    vec![
        list(
            "service ports",
            SERVICES,
            r#""spec":{"ports":["#,
            &|n| format!(r#"{{"name":"p{n}","port":{}}}"#, n % 65535 + 1),
            "]}",
        ),
        list(
            "service ports, all alike",
            SERVICES,
            r#""spec":{"ports":["#,
            &|_| r#"{"name":"p","port":1}"#.to_owned(),
            "]}",
        ),
        list(
            "service addresses",
            SERVICES,
            r#""spec":{"ports":[{"port":1}],"externalIPs":["#,
            &|n| format!(r#""10.{}.{}.{}""#, n >> 16 & 255, n >> 8 & 255, n & 255),
            "]}",
        ),
        list(
            "cluster addresses",
            SERVICES,
            r#""spec":{"ports":[{"port":1}],"clusterIPs":["#,
            &|n| format!(r#""10.{}.{}.{}""#, n >> 16 & 255, n >> 8 & 255, n & 255),
            "]}",
        ),
        list(
            "source ranges",
            SERVICES,
            r#""spec":{"type":"LoadBalancer","ports":[{"port":1}],"loadBalancerSourceRanges":["#,
            &|n| format!(r#""10.{}.{}.0/24""#, n >> 8 & 255, n & 255),
            "]}",
        ),
        list(
            "selector",
            SERVICES,
            r#""spec":{"ports":[{"port":1}],"selector":{"#,
            &|n| format!(r#""{n}":"""#),
            "}}",
        ),
        list(
            "rules",
            ROLES,
            r#""rules":["#,
            &|n| format!(r#"{{"verbs":["get"],"apiGroups":[""],"resources":["r{n}"]}}"#),
            "]",
        ),
        list(
            "verbs",
            ROLES,
            r#""rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["#,
            &|n| format!(r#""v{n}""#),
            "]}]",
        ),
        list(
            "match expressions",
            DEPLOYMENTS,
            &format!(r#""spec":{{{template},"selector":{{"matchExpressions":["#),
            &|n| format!(r#"{{"key":"k{n}","operator":"Exists"}}"#),
            "]}}",
        ),
        list(
            "values of an expression",
            DEPLOYMENTS,
            &format!(
                r#""spec":{{{template},"selector":{{"matchExpressions":[{{"key":"a","operator":"In","values":["#
            ),
            &|n| format!(r#""v{n}""#),
            "]}]}}",
        ),
        list(
            "slice endpoints",
            SLICES,
            r#""addressType":"IPv4","endpoints":["#,
            &|n| format!(r#"{{"addresses":["10.0.{}.{}"]}}"#, n >> 8 & 255, n & 255),
            "]",
        ),
        list(
            "slice ports",
            SLICES,
            r#""addressType":"IPv4","endpoints":[],"ports":["#,
            &|n| format!(r#"{{"name":"p{n}","port":1}}"#),
            "]",
        ),
        list(
            "endpoints",
            ENDPOINTS,
            r#""subsets":["#,
            &|n| {
                format!(
                    r#"{{"addresses":[{{"ip":"10.0.{}.{}"}}],"ports":[{{"port":1}}]}}"#,
                    n >> 8 & 255,
                    n & 255
                )
            },
            "]",
        ),
        list(
            "policy peers",
            POLICIES,
            r#""spec":{"podSelector":{},"ingress":[{"from":["#,
            &|_| r#"{"podSelector":{}}"#.to_owned(),
            "]}]}",
        ),
        list(
            "ingress rules",
            INGRESSES,
            r#""spec":{"rules":["#,
            &|n| format!(r#"{{"host":"h{n}.example"}}"#),
            "]}",
        ),
        list(
            "quota",
            QUOTAS,
            r#""spec":{"hard":{"#,
            &|n| format!(r#""e.com/{n}":"1""#),
            "}}",
        ),
        list(
            "scopes",
            QUOTAS,
            r#""spec":{"scopes":["#,
            &|_| r#""BestEffort""#.to_owned(),
            "]}",
        ),
        list(
            "limits",
            LIMITS,
            r#""spec":{"limits":["#,
            &|_| r#"{"type":"Container"}"#.to_owned(),
            "]}",
        ),
        list(
            "maximum of a limit",
            LIMITS,
            r#""spec":{"limits":[{"type":"Container","max":{"#,
            &|n| format!(r#""e.com/{n}":"1""#),
            "}}]}",
        ),
        list(
            "taints",
            NODES,
            r#""spec":{"taints":["#,
            &|n| format!(r#"{{"key":"k{n}","effect":"NoSchedule"}}"#),
            "]}",
        ),
        list(
            "taints, all alike",
            NODES,
            r#""spec":{"taints":["#,
            &|_| r#"{"key":"k","effect":"NoSchedule"}"#.to_owned(),
            "]}",
        ),
        list(
            "addresses of a node",
            NODES,
            r#""spec":{"podCIDRs":["#,
            &|n| format!(r#""10.{}.{}.0/24""#, n >> 8 & 255, n & 255),
            "]}",
        ),
        list(
            "webhooks",
            HOOKS,
            r#""webhooks":["#,
            &|n| {
                format!(
                    r#"{{"name":"w{n}.a.b","clientConfig":{{"url":"https://a/"}},"sideEffects":"None","admissionReviewVersions":["v1"]}}"#
                )
            },
            "]",
        ),
        list(
            "usages",
            REQUESTS,
            r#""spec":{"signerName":"a.b/c","request":"","usages":["#,
            &|n| format!(r#""u{n}""#),
            "]}",
        ),
        list(
            "usages, all alike",
            REQUESTS,
            r#""spec":{"signerName":"a.b/c","request":"","usages":["#,
            &|_| r#""client auth""#.to_owned(),
            "]}",
        ),
        list(
            "device requests",
            CLAIMS,
            r#""spec":{"devices":{"requests":["#,
            &|n| format!(r#"{{"name":"r{n}","exactly":{{"deviceClassName":"c"}}}}"#),
            "]}}",
        ),
        list(
            "device constraints",
            CLAIMS,
            r#""spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}],"constraints":[{"matchAttribute":"a/b","requests":["#,
            &|n| format!(r#""r{n}""#),
            "]}]}}",
        ),
        list(
            "devices",
            RESOURCE_SLICES,
            r#""spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":["#,
            &|n| format!(r#"{{"name":"d{n}"}}"#),
            "]}",
        ),
        list(
            "metrics of a scaler",
            SCALERS,
            r#""spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"},"metrics":["#,
            &|_| {
                r#"{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}"#.to_owned()
            },
            "]}",
        ),
        list(
            "secrets of an account",
            ACCOUNTS,
            r#""secrets":["#,
            &|n| format!(r#"{{"name":"s{n}"}}"#),
            "]",
        ),
    ]
}

fn definitions() -> Vec<Case> {
    let make = |name, open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        let head = r#"{"metadata":{"name":"as.b.c"},"spec":{"group":"b.c","scope":"Namespaced","names":{"plural":"as","kind":"A"}"#;
        Case::create(
            name,
            DEFINITIONS,
            filled_to(
                LIST_BYTES,
                &format!("{head}{open}"),
                part,
                &format!("{close}}}}}"),
            ),
        )
    };
    let version = r#","versions":[{"name":"v1","served":true,"storage":true"#;
    let schema =
        |rest: &str| format!(r#"{version},"schema":{{"openAPIV3Schema":{{"type":"object",{rest}"#);
    vec![
        make(
            "definition with properties",
            &schema(r#""properties":{"#),
            &|n| format!(r#""p{n}":{{"type":"string"}}"#),
            "}}}}]",
        ),
        make(
            "definition with bad properties",
            &schema(r#""properties":{"#),
            &|n| format!(r#""p{n}":{{}}"#),
            "}}}}]",
        ),
        make(
            "definition with required",
            &schema(r#""required":["#),
            &|n| format!(r#""p{n}""#),
            "]}}}]",
        ),
        make(
            "definition with required of properties",
            &schema(
                r#""properties":{"a":{"type":"object","properties":{"p1":{"type":"string"}},"required":["#,
            ),
            &|n| format!(r#""p{n}""#),
            "]}}}}}]",
        ),
        make(
            "definition with choices",
            &schema(r#""properties":{"a":{"type":"string","enum":["#),
            &|n| format!(r#""{n}""#),
            "]}}}}}]",
        ),
        make(
            "definition with list keys",
            &schema(
                r#""properties":{"a":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["#,
            ),
            &|n| format!(r#""{n}""#),
            "]}}}}}]",
        ),
        make(
            "definition with all of",
            &schema(r#""allOf":["#),
            &|n| format!(r#"{{"required":["p{n}"]}}"#),
            "]}}}]",
        ),
        make(
            "definition with all of many properties",
            &schema(r#""allOf":["#),
            &|n| format!(r#"{{"properties":{{"p{n}":{{"type":"string"}}}}}}"#),
            "]}}}]",
        ),
        make(
            "definition with rules",
            &schema(r#""x-kubernetes-validations":["#),
            &|n| format!(r#"{{"rule":"self.a == {n}"}}"#),
            "]}}}]",
        ),
        make(
            "definition with versions",
            r#","versions":["#,
            &|n| format!(r#"{{"name":"v{n}","served":true,"storage":false}}"#),
            "]",
        ),
        make(
            "definition with columns",
            &format!(r#"{version},"additionalPrinterColumns":["#),
            &|n| format!(r#"{{"name":"c{n}","type":"string","jsonPath":".a"}}"#),
            "]}]",
        ),
        make(
            "definition with selectable fields",
            &format!(r#"{version},"selectableFields":["#),
            &|n| format!(r#"{{"jsonPath":".a{n}"}}"#),
            "]}]",
        ),
        make(
            "definition with short names",
            r#","x":{"y":["#,
            &|n| format!(r#""{n}""#),
            "]}",
        ),
    ]
}
