//! What is wrong with pods, in which words, and in which order.

use windlass_contract::objects::{deployment, pod, replica_set};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc, names};

cases![
    node_affinity_needs_terms,
    expressions_about_nodes_are_checked,
    numbers_to_compare_nodes_with_are_texts_of_labels,
    fields_of_nodes_are_their_names,
    wishes_about_nodes_are_weighed,
    node_selector_is_made_of_labels,
    tolerations_are_checked,
    tolerations_with_seconds_are_about_execution,
    annotations_that_others_act_on_are_checked,
    annotations_of_templates_are_checked,
    rollback_of_a_deployment_is_a_number,
    faults_are_listed_in_one_order,
    faults_of_a_workload_are_listed_in_one_order,
    template_of_a_wrong_selector_is_not_looked_at,
    names_of_hosts_are_checked,
    name_servers_are_checked,
    gates_are_checked,
    gated_pod_has_no_node,
    pods_do_not_begin_with_ephemeral_containers,
    grace_below_zero_is_a_second,
    security_of_pods_is_checked,
    security_of_containers_is_checked,
    users_of_its_own_need_namespaces_of_its_own,
    space_around_images_is_for_templates_alone,
    templates_have_no_ephemeral_containers,
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The first thing that is wrong with a name, for each sort of name.
fn no_key(text: &str) -> String {
    format!(
        "Invalid value: {:?}: {}",
        text,
        names::qualified_name(text)[0]
    )
}

fn no_value(text: &str) -> String {
    format!("Invalid value: {:?}: {}", text, names::label_value(text)[0])
}

fn no_label(text: &str) -> String {
    format!(
        "Invalid value: {:?}: {}",
        text,
        names::dns1123_label(text)[0]
    )
}

fn no_subdomain(text: &str) -> String {
    format!(
        "Invalid value: {:?}: {}",
        text,
        names::dns1123_subdomain(text)[0]
    )
}

/// Demands that a pod is refused for exactly these faults, in this order, each a field and the
/// words about it; the message lists them as the causes do.
async fn refused(t: &Scope, given: &Doc, faults: &[(&str, &str)]) {
    let refusal = t.create("pods", given).await.fails(422, "Invalid");
    demand("Pod \"a\"", &refusal, faults);
}

#[track_caller]
fn demand(what: &str, refusal: &windlass_contract::Refusal, faults: &[(&str, &str)]) {
    let causes = refusal.causes().iter();
    let causes: Vec<(&str, &str)> = causes
        .map(|cause| (cause.str_at("/field"), cause.str_at("/message")))
        .collect();
    assert_eq!(causes, faults);
    let listed: Vec<String> = faults
        .iter()
        .map(|(field, words)| format!("{field}: {words}"))
        .collect();
    let listed = match &listed[..] {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let message = refusal.status().str_at("/message");
    assert_eq!(message, format!("{what} is invalid: {listed}"));
}

/// Demands that each of some values of a field has one fault.
async fn each_refused(t: &Scope, rows: &[(&str, Doc, &str, &str)]) {
    for (pointer, value, field, words) in rows {
        let given = pod("a").set(pointer, value.clone());
        refused(t, &given, &[(field, words)]).await;
    }
}

fn on_nodes(expressions: Doc, fields: Doc) -> Doc {
    let term = doc!({ "matchExpressions": expressions, "matchFields": fields });
    let required = doc!({ "nodeSelectorTerms": [term] });
    pod("a").set(&format!("/spec/affinity/nodeAffinity/{REQUIRED}"), required)
}

async fn node_affinity_needs_terms(t: &Scope) {
    let field = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
    let words = "Required value: must have at least one node selector term";
    for required in [doc!({}), doc!({ "nodeSelectorTerms": [] })] {
        let pointer = format!("/spec/affinity/nodeAffinity/{REQUIRED}");
        let given = pod("a").set(&pointer, required);
        refused(t, &given, &[(&field, words)]).await;
    }
    t.made("pods", &on_nodes(doc!([]), doc!([]))).await;
}

async fn expressions_about_nodes_are_checked(t: &Scope) {
    let given = on_nodes(
        doc!([
            { "key": "a", "operator": "In" },
            { "key": "b", "operator": "Exists", "values": ["x"] },
            { "key": "c", "operator": "Gt" },
            { "key": "d", "operator": "Lt", "values": ["1", "2"] },
            { "key": "e", "operator": "Near" },
            { "key": "not a key", "operator": "DoesNotExist" },
            { "key": "g", "operator": "NotIn", "values": ["x", "not a value"] },
        ]),
        doc!([]),
    );
    let at = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions");
    let single = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'";
    let faults = [
        (
            "[0].values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned(),
        ),
        (
            "[1].values",
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                .to_owned(),
        ),
        ("[2].values", single.to_owned()),
        ("[3].values", single.to_owned()),
        (
            "[4].operator",
            "Invalid value: \"Near\": not a valid selector operator".to_owned(),
        ),
        ("[5].key", no_key("not a key")),
        ("[6].values[1]", no_value("not a value")),
    ];
    let faults = faults.map(|(end, words)| (format!("{at}{end}"), words));
    let faults: Vec<_> = faults.iter().map(|(at, words)| (&**at, &**words)).collect();
    refused(t, &given, &faults).await;
}

async fn numbers_to_compare_nodes_with_are_texts_of_labels(t: &Scope) {
    let with = |value: &str| {
        on_nodes(
            doc!([{ "key": "a", "operator": "Gt", "values": [value] }]),
            doc!([]),
        )
    };
    for value in ["x", "99999999999999999999999"] {
        t.create("pods?dryRun=All", &with(value)).await.is(201);
    }
    let field = format!(
        "spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]"
    );
    refused(t, &with("-1"), &[(&field, &no_value("-1"))]).await;
}

async fn fields_of_nodes_are_their_names(t: &Scope) {
    let name = "metadata.name";
    let given = on_nodes(
        doc!([]),
        doc!([
            { "key": name, "operator": "In", "values": ["one"] },
            { "key": name, "operator": "NotIn", "values": ["one", "two"] },
            { "key": name, "operator": "Exists" },
            { "key": "metadata.labels", "operator": "In", "values": ["x"] },
            { "key": name, "operator": "In", "values": ["Not A Node"] },
        ]),
    );
    let at = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields");
    let faults = [
        (
            "[1].values",
            "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node \
             field selector"
                .to_owned(),
        ),
        (
            "[2].operator",
            "Invalid value: \"Exists\": not a valid selector operator".to_owned(),
        ),
        (
            "[3].key",
            "Invalid value: \"metadata.labels\": not a valid field selector key".to_owned(),
        ),
        ("[4].values[0]", no_subdomain("Not A Node")),
    ];
    let faults = faults.map(|(end, words)| (format!("{at}{end}"), words));
    let faults: Vec<_> = faults.iter().map(|(at, words)| (&**at, &**words)).collect();
    refused(t, &given, &faults).await;
}

async fn wishes_about_nodes_are_weighed(t: &Scope) {
    let wishes = doc!([
        { "weight": 0, "preference": {} },
        { "weight": 101, "preference": { "matchExpressions": [{ "key": "a", "operator": "In" }] } },
        { "weight": 100, "preference": { "matchExpressions": [
            { "key": "a", "operator": "In", "values": ["not a value"] }
        ] } },
    ]);
    let given = pod("a").set(&format!("/spec/affinity/nodeAffinity/{PREFERRED}"), wishes);
    let at = format!("spec.affinity.nodeAffinity.{PREFERRED}");
    refused(
        t,
        &given,
        &[
            (
                &format!("{at}[0].weight"),
                "Invalid value: 0: must be in the range 1-100",
            ),
            (
                &format!("{at}[1].weight"),
                "Invalid value: 101: must be in the range 1-100",
            ),
            (
                &format!("{at}[1].preference.matchExpressions[0].values"),
                "Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ],
    )
    .await;
}

async fn node_selector_is_made_of_labels(t: &Scope) {
    let at = "spec.nodeSelector";
    let given = pod("a").set("/spec/nodeSelector", doc!({ "not a key": "not a value" }));
    let faults = [(at, &*no_key("not a key")), (at, &*no_value("not a value"))];
    refused(t, &given, &faults).await;
}

async fn tolerations_are_checked(t: &Scope) {
    let tolerations = doc!([
        { "key": "a", "operator": "Near" },
        { "operator": "Equal", "value": "x" },
        { "key": "not a key", "operator": "Exists" },
        { "key": "a", "operator": "Exists", "value": "x" },
        { "key": "a", "value": "not a value" },
        { "key": "a", "effect": "Never" },
        { "key": "a", "operator": "Gt", "value": "5" },
        {},
        { "operator": "Exists" },
    ]);
    let given = pod("a").set("/spec/tolerations", tolerations);
    let all = "operator must be Exists when `key` is empty, which means \"match all values and \
               all keys\"";
    let faults = [
        (
            "[0].operator",
            "Unsupported value: \"Near\": supported values: \"Equal\", \"Exists\"".to_owned(),
        ),
        ("[1].operator", format!("Invalid value: \"Equal\": {all}")),
        ("[2].key", no_key("not a key")),
        (
            "[3].operator",
            "Invalid value: \"x\": value must be empty when `operator` is 'Exists'".to_owned(),
        ),
        ("[4].operator", no_value("not a value")),
        (
            "[5].effect",
            "Unsupported value: \"Never\": supported values: \"NoSchedule\", \
             \"PreferNoSchedule\", \"NoExecute\""
                .to_owned(),
        ),
        (
            "[6].operator",
            "Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\""
                .to_owned(),
        ),
        ("[7].operator", format!("Invalid value: \"\": {all}")),
    ];
    let faults = faults.map(|(end, words)| (format!("spec.tolerations{end}"), words));
    let faults: Vec<_> = faults.iter().map(|(at, words)| (&**at, &**words)).collect();
    refused(t, &given, &faults).await;
}

async fn tolerations_with_seconds_are_about_execution(t: &Scope) {
    let tolerations = doc!([
        { "key": "a", "operator": "Exists", "tolerationSeconds": 5 },
        { "key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoSchedule" },
        { "key": "a", "operator": "Exists", "tolerationSeconds": -5, "effect": "NoExecute" },
    ]);
    let given = pod("a").set("/spec/tolerations", tolerations);
    let words = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    refused(
        t,
        &given,
        &[
            (
                "spec.tolerations[0].effect",
                &format!("Invalid value: \"\": {words}"),
            ),
            (
                "spec.tolerations[1].effect",
                &format!("Invalid value: \"NoSchedule\": {words}"),
            ),
        ],
    )
    .await;
}

/// Annotations, the field that a refusal names under those of the object, and its words.
fn annotations() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    vec![
        (
            "controller.kubernetes.io/pod-deletion-cost",
            "+1",
            "[controller.kubernetes.io/pod-deletion-cost]",
            "Invalid value: \"+1\": must be a 32bit integer",
        ),
        (
            "scheduler.alpha.kubernetes.io/tolerations",
            "[{\"key\":\"a\",\"operator\":\"Near\"}]",
            ".scheduler.alpha.kubernetes.io/tolerations[0].operator",
            "Unsupported value: \"Near\": supported values: \"Equal\", \"Exists\"",
        ),
        (
            "seccomp.security.alpha.kubernetes.io/pod",
            "x",
            ".seccomp.security.alpha.kubernetes.io/pod",
            "Invalid value: \"x\": must be a valid seccomp profile",
        ),
        (
            "container.seccomp.security.alpha.kubernetes.io/main",
            "localhost//x",
            ".container.seccomp.security.alpha.kubernetes.io/main",
            "Invalid value: \"/x\": must be a relative path",
        ),
        (
            "container.apparmor.security.beta.kubernetes.io/main",
            "x",
            "[container.apparmor.security.beta.kubernetes.io/main]",
            "Invalid value: \"x\": invalid AppArmor profile name: \"x\"",
        ),
        (
            "container.apparmor.security.beta.kubernetes.io/other",
            "runtime/default",
            "[container.apparmor.security.beta.kubernetes.io/other]",
            "Invalid value: \"other\": container not found",
        ),
    ]
}

async fn annotations_that_others_act_on_are_checked(t: &Scope) {
    for (key, value, field, words) in annotations() {
        let given = pod("a").set("/metadata/annotations", doc!({ key: value }));
        let field = format!("metadata.annotations{field}");
        refused(t, &given, &[(&field, words)]).await;
    }
}

async fn annotations_of_templates_are_checked(t: &Scope) {
    for (key, value, field, words) in annotations() {
        let given = replica_set("a").set("/spec/replicas", 0);
        let given = given.set("/spec/template/metadata/annotations", doc!({ key: value }));
        let refusal = t.create("replicasets", &given).await.fails(422, "Invalid");
        let field = format!("spec.template.annotations{field}");
        demand("ReplicaSet.apps \"a\"", &refusal, &[(&field, words)]);
    }
    let given = deployment("a").set("/spec/replicas", 0);
    let given = given.set("/spec/template/metadata/annotations", doc!({ "a b": "x" }));
    let given = given.set("/spec/template/metadata/labels/y", "not a value");
    let refusal = t.create("deployments", &given).await.fails(422, "Invalid");
    let faults = [
        ("spec.template.labels", &*no_value("not a value")),
        ("spec.template.annotations", &*no_key("a b")),
    ];
    demand("Deployment.apps \"a\"", &refusal, &faults);
}

async fn rollback_of_a_deployment_is_a_number(t: &Scope) {
    let key = "deprecated.deployment.rollback.to";
    let with = |value: &str| {
        let given = deployment("a").set("/spec/replicas", 0);
        given.set("/metadata/annotations", doc!({ key: value }))
    };
    for (value, why) in [
        ("soon", "invalid syntax"),
        (" 5", "invalid syntax"),
        ("99999999999999999999", "value out of range"),
    ] {
        let words = format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: failed to parse \
             annotation[{key}]={value} as int64: strconv.ParseInt: parsing {value:?}: {why}"
        );
        let answer = t.create("deployments", &with(value)).await;
        answer.fails(400, "BadRequest").says(&words);
    }
    let refusal = t.create("deployments", &with("-5")).await;
    let words = "Invalid value: -5: must be greater than or equal to 0";
    demand(
        "Deployment.apps \"a\"",
        &refusal.fails(422, "Invalid"),
        &[("spec.rollback.version", words)],
    );
    t.made("deployments", &with("5")).await;
}

async fn faults_are_listed_in_one_order(t: &Scope) {
    let spec = doc!({
        "containers": [{ "name": "main" }],
        "initContainers": [{ "name": "first" }],
        "volumes": [{ "name": "Not" }],
        "resourceClaims": [{ "name": "x", "resourceClaimName": "Not" }],
        "restartPolicy": "Sometimes",
        "dnsPolicy": "Never",
        "nodeSelector": { "a": "not a value" },
        "securityContext": { "fsGroup": (-1) },
        "affinity": {
            "podAffinity": { (REQUIRED): [{ "topologyKey": "x", "namespaces": ["Not"] }] },
            "nodeAffinity": { (REQUIRED): {} },
        },
        "dnsConfig": { "options": [{}] },
        "readinessGates": [{ "conditionType": "not a key" }],
        "topologySpreadConstraints": [
            { "maxSkew": 0, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule" }
        ],
        "nodeName": "Not",
        "activeDeadlineSeconds": 0,
        "hostname": "Not",
        "subdomain": "Not",
        "tolerations": [{ "key": "a", "effect": "Never" }],
        "hostAliases": [{ "ip": "1.2.3.4", "hostnames": ["Not"] }],
        "os": { "name": "x" },
    });
    let given = pod("a")
        .set("/spec", spec)
        .set("/metadata/annotations", doc!({ "not a key": "x" }));
    let refusal = t.create("pods", &given).await.fails(422, "Invalid");
    let fields: Vec<_> = refusal
        .causes()
        .iter()
        .map(|it| it.str_at("/field"))
        .collect();
    let affinity = "spec.affinity";
    assert_eq!(
        fields,
        [
            "metadata.annotations",
            "spec.volumes[0].name",
            "spec.resourceClaims[0].resourceClaimName",
            "spec.containers[0].image",
            "spec.initContainers[0].image",
            "spec.restartPolicy",
            "spec.dnsPolicy",
            "spec.nodeSelector",
            "spec.securityContext.fsGroup",
            &format!("{affinity}.nodeAffinity.{REQUIRED}.nodeSelectorTerms"),
            &format!("{affinity}.podAffinity.{REQUIRED}[0].namespace"),
            "spec.dnsConfig.options[0]",
            "spec.readinessGates[0].conditionType",
            "spec.topologySpreadConstraints[0].maxSkew",
            "spec.nodeName",
            "spec.activeDeadlineSeconds",
            "spec.hostname",
            "spec.subdomain",
            "spec.tolerations[0].effect",
            "spec.hostAliases[0].hostnames[0]",
            "spec.os",
        ]
    );
}

async fn faults_of_a_workload_are_listed_in_one_order(t: &Scope) {
    let with = |object: Doc| {
        object
            .set("/spec/replicas", -1)
            .set("/spec/minReadySeconds", -2)
            .set("/spec/selector/matchLabels/app", "other")
            .set("/spec/template/spec/containers/0/image", "")
    };
    let orders = [
        (
            "deployments",
            with(deployment("a")).set("/spec/revisionHistoryLimit", -3),
            vec![
                "spec.replicas",
                "spec.template.metadata.labels",
                "spec.template.spec.containers[0].image",
                "spec.minReadySeconds",
                "spec.revisionHistoryLimit",
            ],
        ),
        (
            "replicasets",
            with(replica_set("a")),
            vec![
                "spec.replicas",
                "spec.minReadySeconds",
                "spec.template.metadata.labels",
                "spec.template.spec.containers[0].image",
            ],
        ),
    ];
    for (plural, given, order) in orders {
        let refusal = t.create(plural, &given).await.fails(422, "Invalid");
        let fields = refusal.causes().iter().map(|it| it.str_at("/field"));
        assert_eq!(fields.collect::<Vec<_>>(), order);
    }
}

async fn template_of_a_wrong_selector_is_not_looked_at(t: &Scope) {
    let with = |object: Doc| {
        object
            .set("/spec/selector/matchLabels/app", "not a value")
            .set("/spec/template/spec/containers/0/image", "")
    };
    let shown =
        "Invalid value: {\"matchLabels\":{\"app\":\"not a value\"}}: invalid label selector";
    let value = no_value("not a value");
    for (plural, kind, given) in [
        ("deployments", "Deployment", with(deployment("a"))),
        ("replicasets", "ReplicaSet", with(replica_set("a"))),
    ] {
        let refusal = t.create(plural, &given).await.fails(422, "Invalid");
        let faults = [
            ("spec.selector.matchLabels", &*value),
            ("spec.selector", shown),
        ];
        demand(&format!("{kind}.apps \"a\""), &refusal, &faults);
    }
}

async fn names_of_hosts_are_checked(t: &Scope) {
    let forbidden = "Forbidden: may not be specified when";
    for (spec, field, words) in [
        (doc!({ "hostname": "A.b" }), "hostname", no_label("A.b")),
        (doc!({ "subdomain": "a_b" }), "subdomain", no_label("a_b")),
        (
            doc!({ "hostnameOverride": "a_b" }),
            "hostnameOverride",
            no_subdomain("a_b"),
        ),
        (
            doc!({ "hostnameOverride": "a", "setHostnameAsFQDN": true }),
            "hostnameOverride",
            format!("{forbidden} setHostnameAsFQDN is true"),
        ),
        (
            doc!({ "hostnameOverride": "a", "hostNetwork": true }),
            "hostnameOverride",
            format!("{forbidden} hostNetwork is true"),
        ),
        (
            doc!({ "hostnameOverride": ("a".repeat(65)) }),
            "hostnameOverride",
            "Too long: may not be more than 64 bytes".to_owned(),
        ),
        (
            doc!({ "hostAliases": [{ "ip": "x" }] }),
            "hostAliases[0].ip",
            "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                .to_owned(),
        ),
        (
            doc!({ "hostAliases": [{ "ip": "1.2.3.04" }] }),
            "hostAliases[0].ip",
            "Invalid value: \"1.2.3.04\": must not have leading 0s".to_owned(),
        ),
        (
            doc!({ "hostAliases": [{ "ip": "::ffff:1.2.3.4" }] }),
            "hostAliases[0].ip",
            "Invalid value: \"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address".to_owned(),
        ),
    ] {
        let containers = pod("a").at("/spec/containers").clone();
        let given = pod("a").set("/spec", spec.set("/containers", containers));
        refused(t, &given, &[(&format!("spec.{field}"), &words)]).await;
    }
}

async fn name_servers_are_checked(t: &Scope) {
    let config = |config: Doc| pod("a").set("/spec/dnsConfig", config);
    let none = pod("a").set("/spec/dnsPolicy", "None");
    let words = "Required value: must provide `dnsConfig` when `dnsPolicy` is None";
    refused(t, &none, &[("spec.dnsConfig", words)]).await;
    let words = "Required value: must provide at least one DNS nameserver when `dnsPolicy` is None";
    let given = none.set("/spec/dnsConfig", doc!({}));
    refused(t, &given, &[("spec.dnsConfig.nameservers", words)]).await;
    let given = config(doc!({ "nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"] }));
    let words = "Invalid value: [\"1.1.1.1\",\"2.2.2.2\",\"3.3.3.3\",\"4.4.4.4\"]: must not have \
                 more than 3 nameservers";
    refused(t, &given, &[("spec.dnsConfig.nameservers", words)]).await;
    let given = config(doc!({ "searches": ["_a.b_c", ".", "x.", "Not"] }));
    let words = "Invalid value: \"Not\": a lowercase RFC 1123 subdomain must consist of lower case \
                 alphanumeric characters, '_', '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
    refused(t, &given, &[("spec.dnsConfig.searches[3]", words)]).await;
    let words = "Required value: must not be empty";
    let given = config(doc!({ "options": [{ "name": "a" }, { "value": "b" }] }));
    refused(t, &given, &[("spec.dnsConfig.options[1]", words)]).await;
}

async fn gates_are_checked(t: &Scope) {
    let gates = doc!([{ "name": "x" }, { "name": "not a key" }, { "name": "x" }]);
    let given = pod("a").set("/spec/schedulingGates", gates);
    let faults = [
        ("spec.schedulingGates[1]", &*no_key("not a key")),
        ("spec.schedulingGates[2]", "Duplicate value: \"x\""),
    ];
    refused(t, &given, &faults).await;
    let gates = doc!([{ "conditionType": "not a key" }]);
    let given = pod("a").set("/spec/readinessGates", gates);
    let faults = [(
        "spec.readinessGates[0].conditionType",
        &*no_key("not a key"),
    )];
    refused(t, &given, &faults).await;
}

async fn gated_pod_has_no_node(t: &Scope) {
    let given = pod("a").set("/spec/schedulingGates", doc!([{ "name": "x" }]));
    let given = given.set("/spec/nodeName", "one");
    let words = "Forbidden: cannot be set until all schedulingGates have been cleared";
    refused(t, &given, &[("spec.nodeName", words)]).await;
}

async fn pods_do_not_begin_with_ephemeral_containers(t: &Scope) {
    let containers = doc!([{ "name": "x", "image": "registry.example/app:1" }]);
    let given = pod("a").set("/spec/ephemeralContainers", containers);
    let words = "Forbidden: cannot be set on create";
    refused(t, &given, &[("spec.ephemeralContainers", words)]).await;
}

async fn grace_below_zero_is_a_second(t: &Scope) {
    let field = "/spec/terminationGracePeriodSeconds";
    let made = t.made("pods", &pod("a").set(field, -5)).await;
    assert_eq!(made.at(field), &Doc::from(1));
    let template = "/spec/template/spec/terminationGracePeriodSeconds";
    let given = replica_set("a").set("/spec/replicas", 0).set(template, -5);
    let made = t.made("replicasets", &given).await;
    assert_eq!(made.at(template), &Doc::from(-5));
}

async fn security_of_pods_is_checked(t: &Scope) {
    let id = "Invalid value: -1: must be between 0 and 2147483647, inclusive";
    let types = "supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\"";
    let types = format!("Unsupported value: \"x\": {types}");
    let rows = [
        ("runAsUser", doc!(-1), "runAsUser", id),
        ("runAsGroup", doc!(-1), "runAsGroup", id),
        ("fsGroup", doc!(-1), "fsGroup", id),
        (
            "supplementalGroups",
            doc!([1, (-1)]),
            "supplementalGroups[1]",
            id,
        ),
        (
            "fsGroupChangePolicy",
            doc!("x"),
            "fsGroupChangePolicy",
            "Unsupported value: \"x\": supported values: \"Always\", \"OnRootMismatch\"",
        ),
        (
            "supplementalGroupsPolicy",
            doc!("x"),
            "supplementalGroupsPolicy",
            "Unsupported value: \"x\": supported values: \"Merge\", \"Strict\"",
        ),
        (
            "seccompProfile",
            doc!({ "type": "x" }),
            "seccompProfile.type",
            &types,
        ),
        (
            "seccompProfile",
            doc!({ "type": "Localhost" }),
            "seccompProfile.localhostProfile",
            "Required value: must be set when seccomp type is Localhost",
        ),
        (
            "seccompProfile",
            doc!({ "type": "Localhost", "localhostProfile": "../x" }),
            "seccompProfile.localhostProfile",
            "Invalid value: \"../x\": must not contain '..'",
        ),
        (
            "seccompProfile",
            doc!({ "type": "Unconfined", "localhostProfile": "x" }),
            "seccompProfile.localhostProfile",
            "Invalid value: {\"Type\":\"Unconfined\",\"LocalhostProfile\":\"x\"}: can only be set \
             when seccomp type is Localhost",
        ),
        (
            "appArmorProfile",
            doc!({ "type": "x" }),
            "appArmorProfile.type",
            &types,
        ),
        (
            "sysctls",
            doc!([{ "name": "a", "value": "1" }, { "name": "a", "value": "1" }]),
            "sysctls[1].name",
            "Duplicate value: \"a\"",
        ),
        (
            "sysctls",
            doc!([{ "name": "A b", "value": "1" }]),
            "sysctls[0].name",
            "Invalid value: \"A b\": must have at most 253 characters and match regex \
             ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
        ),
    ];
    for (key, value, field, words) in rows {
        let given = pod("a").set(&format!("/spec/securityContext/{key}"), value);
        let field = format!("spec.securityContext.{field}");
        refused(t, &given, &[(&field, words)]).await;
    }
}

async fn security_of_containers_is_checked(t: &Scope) {
    let nulls = |fields: &[&str]| {
        let fields: Vec<_> = fields
            .iter()
            .map(|field| format!("\"{field}\":null"))
            .collect();
        fields.join(",")
    };
    let shown = format!(
        "{{\"Capabilities\":null,\"Privileged\":true,{},\"AllowPrivilegeEscalation\":false,{}}}",
        nulls(&[
            "SELinuxOptions",
            "WindowsOptions",
            "RunAsUser",
            "RunAsGroup",
            "RunAsNonRoot",
            "ReadOnlyRootFilesystem",
        ]),
        nulls(&["ProcMount", "SeccompProfile", "AppArmorProfile"]),
    );
    let both = format!(
        "Invalid value: {shown}: cannot set `allowPrivilegeEscalation` to false and `privileged` \
         to true"
    );
    let at = "spec.containers[0].securityContext";
    let pointer = "/spec/containers/0/securityContext";
    let rows = [
        (
            pointer,
            doc!({ "runAsUser": (-1) }),
            format!("{at}.runAsUser"),
            "Invalid value: -1: must be between 0 and 2147483647, inclusive".to_owned(),
        ),
        (
            pointer,
            doc!({ "procMount": "x" }),
            format!("{at}.procMount"),
            "Unsupported value: \"x\": supported values: \"Default\", \"Unmasked\"".to_owned(),
        ),
        (
            pointer,
            doc!({ "procMount": "Unmasked" }),
            format!("{at}.procMount"),
            "Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`".to_owned(),
        ),
        (
            pointer,
            doc!({ "privileged": true, "allowPrivilegeEscalation": false }),
            at.to_owned(),
            both,
        ),
    ];
    for (pointer, value, field, words) in rows {
        each_refused(t, &[(pointer, value, &field, &words)]).await;
    }
}

async fn users_of_its_own_need_namespaces_of_its_own(t: &Scope) {
    let given = pod("a")
        .set("/spec/hostUsers", false)
        .set("/spec/hostNetwork", true)
        .set("/spec/hostPID", true)
        .set("/spec/hostIPC", true);
    let words = "Forbidden: when `hostUsers` is false";
    let faults = ["spec.hostNetwork", "spec.HostPID", "spec.HostIPC"].map(|at| (at, words));
    refused(t, &given, &faults).await;
    let given = pod("a")
        .set("/spec/shareProcessNamespace", true)
        .set("/spec/hostPID", true);
    let words = "Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled";
    let field = "spec.securityContext.shareProcessNamespace";
    refused(t, &given, &[(field, words)]).await;
}

async fn space_around_images_is_for_templates_alone(t: &Scope) {
    let given = pod("a").set("/spec/containers/0/image", " x ");
    let words = "Invalid value: \" x \": must not have leading or trailing whitespace";
    refused(t, &given, &[("spec.containers[0].image", words)]).await;
    let given = replica_set("a")
        .set("/spec/replicas", 0)
        .set("/spec/template/spec/containers/0/image", " x ");
    t.made("replicasets", &given).await;
}

async fn templates_have_no_ephemeral_containers(t: &Scope) {
    let containers = doc!([{ "name": "x", "image": "registry.example/app:1" }]);
    let given = deployment("a").set("/spec/template/spec/ephemeralContainers", containers);
    let refusal = t.create("deployments", &given).await.fails(422, "Invalid");
    let words = "Forbidden: ephemeral containers not allowed in pod template";
    let field = "spec.template.spec.ephemeralContainers";
    demand("Deployment.apps \"a\"", &refusal, &[(field, words)]);
}
