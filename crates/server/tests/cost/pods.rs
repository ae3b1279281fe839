//! JSON bodies of pods.

use crate::shapes::filled_to;
use crate::support::{Case, LIST_BYTES, PODS};

/// A pod with many items of a list, between the start of a spec and its end.
fn pod(name: &'static str, open: &str, part: &dyn Fn(usize) -> String, close: &str) -> Case {
    let open = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{{open}"#);
    Case::create(
        name,
        PODS,
        filled_to(LIST_BYTES, &open, part, &format!("{close}}}}}")),
    )
}

pub(crate) fn cases() -> Vec<Case> {
    let one = r#""containers":[{"name":"c","image":"i""#;
    let in_one = |rest: &str| format!("{one},{rest}");
    let after = |rest: &str| format!("{one}}}],{rest}");
    let expression = |n: usize| format!(r#"{{"key":"{n}","operator":"Exists"}}"#);
    let selector = r#""labelSelector":{"matchLabels":{"a":"b"}},"topologyKey":"k""#;
    vec![
        pod(
            "containers",
            r#""containers":["#,
            &|n| format!(r#"{{"name":"{n}","image":"i"}}"#),
            "]",
        ),
        pod(
            "containers, all alike",
            r#""containers":["#,
            &|_| r#"{"name":"c","image":"i"}"#.to_owned(),
            "]",
        ),
        pod(
            "empty containers",
            r#""containers":["#,
            &|_| "{}".to_owned(),
            "]",
        ),
        pod(
            "init containers",
            &after(r#""initContainers":["#),
            &|n| format!(r#"{{"name":"{n}","image":"i"}}"#),
            "]",
        ),
        pod(
            "ports",
            &in_one(r#""ports":["#),
            &|n| format!(r#"{{"containerPort":{}}}"#, n % 65535 + 1),
            "]}]",
        ),
        pod(
            "ports with names",
            &in_one(r#""ports":["#),
            &|n| {
                format!(
                    r#"{{"name":"p{n}","containerPort":1,"hostPort":{}}}"#,
                    n % 65535 + 1
                )
            },
            "]}]",
        ),
        pod(
            "env",
            &in_one(r#""env":["#),
            &|n| format!(r#"{{"name":"E{n}"}}"#),
            "]}]",
        ),
        pod(
            "env, all alike",
            &in_one(r#""env":["#),
            &|_| r#"{"name":"E"}"#.to_owned(),
            "]}]",
        ),
        pod(
            "env from field",
            &in_one(r#""env":["#),
            &|n| {
                format!(
                    r#"{{"name":"E{n}","valueFrom":{{"fieldRef":{{"fieldPath":"metadata.name"}}}}}}"#
                )
            },
            "]}]",
        ),
        pod(
            "mounts of no volume",
            &in_one(r#""volumeMounts":["#),
            &|n| format!(r#"{{"name":"v","mountPath":"/{n}"}}"#),
            "]}]",
        ),
        pod(
            "volumes",
            &after(r#""volumes":["#),
            &|n| format!(r#"{{"name":"v{n}","emptyDir":{{}}}}"#),
            "]",
        ),
        pod(
            "empty volumes",
            &after(r#""volumes":["#),
            &|_| "{}".to_owned(),
            "]",
        ),
        pod(
            "projected sources",
            &after(r#""volumes":[{"name":"v","projected":{"sources":["#),
            &|n| format!(r#"{{"configMap":{{"name":"c","items":[{{"key":"k","path":"{n}"}}]}}}}"#),
            "]}}]",
        ),
        pod(
            "volume items",
            &after(r#""volumes":[{"name":"v","configMap":{"name":"c","items":["#),
            &|n| format!(r#"{{"key":"k","path":"{n}"}}"#),
            "]}}]",
        ),
        pod(
            "tolerations",
            &after(r#""tolerations":["#),
            &|n| format!(r#"{{"key":"{n}","operator":"Exists"}}"#),
            "]",
        ),
        pod(
            "topology spread",
            &after(r#""topologySpreadConstraints":["#),
            &|n| {
                format!(
                    r#"{{"maxSkew":1,"topologyKey":"k{n}","whenUnsatisfiable":"DoNotSchedule"}}"#
                )
            },
            "]",
        ),
        pod(
            "label keys of a spread",
            &after(
                r#""topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"b"}},"matchLabelKeys":["#,
            ),
            &|n| format!(r#""k{n}""#),
            "]}]",
        ),
        pod(
            "node affinity",
            &after(
                r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":["#,
            ),
            &expression,
            "]}]}}}",
        ),
        pod(
            "pod affinity",
            &after(
                r#""affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":["#,
            ),
            &|_| format!("{{{selector}}}"),
            "]}}",
        ),
        pod(
            "label keys of affinity",
            &after(&format!(
                r#""affinity":{{"podAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{{selector},"matchLabelKeys":["#
            )),
            &|n| format!(r#""k{n}""#),
            "]}]}}",
        ),
        pod(
            "node selector",
            &after(r#""nodeSelector":{"#),
            &|n| format!(r#""{n}":"""#),
            "}",
        ),
        pod(
            "resources",
            &in_one(r#""resources":{"requests":{"#),
            &|n| format!(r#""e.com/{n}":"1""#),
            "}}}]",
        ),
        pod(
            "limits that are odd",
            &in_one(r#""resources":{"limits":{"#),
            &|n| format!(r#""e.com/{n}":0.5"#),
            "}}}]",
        ),
        pod(
            "one quantity of many digits",
            &in_one(r#""resources":{"limits":{"cpu":""#),
            &|n| {
                if n == 0 {
                    "1".repeat(LIST_BYTES - 200)
                } else {
                    "1".repeat(LIST_BYTES)
                }
            },
            r#""}}}]"#,
        ),
        pod(
            "resource claims",
            &after(r#""resourceClaims":["#),
            &|n| format!(r#"{{"name":"r{n}","resourceClaimName":"c"}}"#),
            "]",
        ),
        pod(
            "uses of claims",
            &in_one(r#""resources":{"claims":["#),
            &|n| format!(r#"{{"name":"r{n}"}}"#),
            "]}}]",
        ),
        pod(
            "resize policies",
            &in_one(r#""resizePolicy":["#),
            &|_| r#"{"resourceName":"cpu","restartPolicy":"NotRequired"}"#.to_owned(),
            "]}]",
        ),
        pod(
            "host aliases",
            &after(r#""hostAliases":["#),
            &|n| format!(r#"{{"ip":"1.2.3.4","hostnames":["h{n}"]}}"#),
            "]",
        ),
        pod(
            "sysctls",
            &after(r#""securityContext":{"sysctls":["#),
            &|n| format!(r#"{{"name":"a.b{n}","value":"1"}}"#),
            "]}",
        ),
        pod(
            "supplemental groups",
            &after(r#""securityContext":{"supplementalGroups":["#),
            &|n| n.to_string(),
            "]}",
        ),
        pod(
            "gates",
            &after(r#""schedulingGates":["#),
            &|n| format!(r#"{{"name":"a/{n}"}}"#),
            "]",
        ),
        pod(
            "readiness gates",
            &after(r#""readinessGates":["#),
            &|n| format!(r#"{{"conditionType":"a/{n}"}}"#),
            "]",
        ),
        pod(
            "pull secrets",
            &after(r#""imagePullSecrets":["#),
            &|n| format!(r#"{{"name":"s{n}"}}"#),
            "]",
        ),
        pod(
            "arguments",
            &in_one(r#""args":["#),
            &|n| format!(r#""{n}""#),
            "]}]",
        ),
        pod(
            "capabilities",
            &in_one(r#""securityContext":{"capabilities":{"add":["#),
            &|n| format!(r#""C{n}""#),
            "]}}}]",
        ),
        pod(
            "devices",
            &in_one(r#""volumeDevices":["#),
            &|n| format!(r#"{{"name":"v{n}","devicePath":"/d{n}"}}"#),
            "]}]",
        ),
        pod(
            "headers of a probe",
            &in_one(r#""livenessProbe":{"httpGet":{"port":1,"httpHeaders":["#),
            &|n| format!(r#"{{"name":"h{n}","value":""}}"#),
            "]}}}]",
        ),
        pod(
            "unknown in containers",
            &in_one(""),
            &|n| format!(r#""{n}":0"#),
            "}]",
        ),
    ]
}
