//! What is wrong with services, budgets, secrets, namespaces, and what is said about pods.

use windlass_contract::objects::{
    daemon_set, deployment, namespace, pod, secret, service, stateful_set,
};
use windlass_contract::{Edit, Refusal, Scope, cases};
use windlass_core::{Doc, doc, names};

cases![
    services_are_checked,
    ports_of_services_are_checked,
    balancing_is_given_up_with_its_type,
    addresses_outside_are_checked,
    budgets_are_checked,
    budget_has_one_bound,
    secrets_have_what_their_type_needs,
    finalizers_of_namespaces_are_checked,
    statuses_of_pods_are_checked,
    ephemeral_containers_come_by_their_own_path,
    strategy_that_is_no_percentage_counts_as_zero,
    stateful_sets_are_checked,
    daemon_sets_are_checked,
    mirrors_are_made_as_such,
];

#[track_caller]
fn demand(refusal: &Refusal, faults: &[(&str, &str)]) {
    let causes: Vec<_> = refusal
        .causes()
        .iter()
        .map(|cause| (cause.str_at("/field"), cause.str_at("/message")))
        .collect();
    assert_eq!(causes, faults);
}

async fn refused(t: &Scope, plural: &str, given: &Doc, faults: &[(&str, &str)]) {
    demand(&t.create(plural, given).await.fails(422, "Invalid"), faults);
}

const BALANCED: &str = "Forbidden: may only be used when `type` is 'LoadBalancer'";

async fn services_are_checked(t: &Scope) {
    let policies = "Unsupported value: \"x\": supported values: \"Cluster\", \"Local\"";
    for (fields, field, words) in [
        (
            doc!({ "internalTrafficPolicy": "x" }),
            "internalTrafficPolicy",
            policies,
        ),
        (
            doc!({ "type": "NodePort", "externalTrafficPolicy": "x" }),
            "externalTrafficPolicy",
            policies,
        ),
        (
            doc!({ "externalTrafficPolicy": "Local" }),
            "externalTrafficPolicy",
            "Invalid value: \"Local\": may only be set for externally-accessible services",
        ),
        (
            doc!({ "ipFamilyPolicy": "x" }),
            "ipFamilyPolicy",
            "Unsupported value: \"x\": supported values: \"PreferDualStack\", \
             \"RequireDualStack\", \"SingleStack\"",
        ),
        (
            doc!({ "trafficDistribution": "x" }),
            "trafficDistribution",
            "Unsupported value: \"x\": supported values: \"PreferClose\", \"PreferSameZone\", \
             \"PreferSameNode\"",
        ),
        (
            doc!({ "type": "NodePort", "clusterIP": "None" }),
            "clusterIPs[0]",
            "Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            doc!({ "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 86401 } } }),
            "sessionAffinityConfig.clientIP.timeoutSeconds",
            "Invalid value: 86401: must be greater than 0 and less than 86400",
        ),
        (
            doc!({ "healthCheckNodePort": 30000 }),
            "healthCheckNodePort",
            "Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and \
             `externalTrafficPolicy` is 'Local'",
        ),
        (
            doc!({ "allocateLoadBalancerNodePorts": true }),
            "allocateLoadBalancerNodePorts",
            BALANCED,
        ),
        (
            doc!({ "loadBalancerClass": "a/b" }),
            "loadBalancerClass",
            BALANCED,
        ),
        (
            doc!({ "clusterIP": "x" }),
            "clusterIPs[0]",
            "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            doc!({ "type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/33"] }),
            "LoadBalancerSourceRanges[0]",
            "Invalid value: \"10.0.0.0/33\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or \
             2001:db8::/64)",
        ),
    ] {
        let spec = fields.set("/ports", doc!([{ "port": 80 }]));
        let given = service("a").set("/spec", spec);
        refused(t, "services", &given, &[(&format!("spec.{field}"), words)]).await;
    }
}

async fn ports_of_services_are_checked(t: &Scope) {
    let ports = doc!([
        { "name": "a", "port": 80, "nodePort": 30000 },
        { "name": "b", "port": 80 },
        { "name": "c", "port": 81, "appProtocol": "a b" },
    ]);
    let protocol = format!(
        "Invalid value: \"a b\": {}",
        names::qualified_name("a b")[0]
    );
    let faults = [
        ("spec.ports[2].appProtocol", &*protocol),
        (
            "spec.ports[0].nodePort",
            "Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            "spec.ports[1]",
            "Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\
             \"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
        ),
    ];
    let given = service("a").set("/spec/ports", ports);
    refused(t, "services", &given, &faults).await;
    let given = service("a").set("/spec/ports", doc!([{ "port": 80, "targetPort": 0 }]));
    let made = t.made("services", &given).await;
    assert_eq!(made.at("/spec/ports/0/targetPort"), &Doc::from(80));
}

async fn balancing_is_given_up_with_its_type(t: &Scope) {
    let given = service("a")
        .set("/spec/type", "LoadBalancer")
        .set("/spec/loadBalancerClass", "example.com/x");
    t.made("services", &given).await;
    let patch = doc!({ "spec": { "type": "ClusterIP" } });
    let changed = t.merge("services/a", &patch).await.is(200);
    for key in [
        "allocateLoadBalancerNodePorts",
        "loadBalancerClass",
        "externalTrafficPolicy",
    ] {
        assert!(changed.at("/spec").get(key).is_none(), "{key}");
    }
}

async fn addresses_outside_are_checked(t: &Scope) {
    let given = service("a").set("/spec/externalIPs", doc!(["x", "127.0.0.1", "1.2.3.4"]));
    let faults = [
        (
            "spec.externalIPs[0]",
            "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            "spec.externalIPs[1]",
            "Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
             ::1/128)",
        ),
    ];
    refused(t, "services", &given, &faults).await;
    let name = format!(
        "Invalid value: \"Not\": {}",
        names::dns1123_subdomain("Not")[0]
    );
    let given = service("a")
        .set("/spec/type", "ExternalName")
        .set("/spec/externalName", "Not");
    refused(t, "services", &given, &[("spec.externalName", &name)]).await;
}

fn budget(spec: Doc) -> Doc {
    doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "a" }, "spec": spec,
    })
}

async fn budgets_are_checked(t: &Scope) {
    let percent = "a valid percent string must be a numeric string followed by an ending '%' \
                   (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    for (spec, field, words) in [
        (
            doc!({ "minAvailable": (-1) }),
            "minAvailable",
            "Invalid value: -1: must be greater than or equal to 0".to_owned(),
        ),
        (
            doc!({ "maxUnavailable": "150%" }),
            "maxUnavailable",
            "Invalid value: \"150%\": must not be greater than 100%".to_owned(),
        ),
        (
            doc!({ "minAvailable": "x" }),
            "minAvailable",
            format!("Invalid value: \"x\": {percent}"),
        ),
        (
            doc!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } }),
            "selector.matchExpressions[0].values",
            "Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned(),
        ),
        (
            doc!({ "unhealthyPodEvictionPolicy": "x" }),
            "unhealthyPodEvictionPolicy",
            "Unsupported value: \"x\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\""
                .to_owned(),
        ),
    ] {
        let field = format!("spec.{field}");
        refused(
            t,
            "poddisruptionbudgets",
            &budget(spec),
            &[(&field, &words)],
        )
        .await;
    }
}

async fn budget_has_one_bound(t: &Scope) {
    let given = budget(doc!({
        "minAvailable": 1, "maxUnavailable": "5%",
        "selector": { "matchLabels": { "a": "b" } },
    }));
    let words = "Invalid value: {\"MinAvailable\":1,\"Selector\":{\"matchLabels\":{\"a\":\"b\"}},\
                 \"MaxUnavailable\":\"5%\",\"UnhealthyPodEvictionPolicy\":null}: minAvailable and \
                 maxUnavailable cannot be both set";
    refused(t, "poddisruptionbudgets", &given, &[("spec", words)]).await;
}

async fn secrets_have_what_their_type_needs(t: &Scope) {
    let of = |sort: &str| secret("a").set("/type", sort);
    let faults = [
        ("data[username]", "Required value"),
        ("data[password]", "Required value"),
    ];
    refused(t, "secrets", &of("kubernetes.io/basic-auth"), &faults).await;
    let field = "metadata.annotations[kubernetes.io/service-account.name]";
    let given = of("kubernetes.io/service-account-token");
    refused(t, "secrets", &given, &[(field, "Required value")]).await;
}

async fn finalizers_of_namespaces_are_checked(t: &Scope) {
    let given = namespace(&t.unique("x")).set("/spec/finalizers", doc!(["x"]));
    let words = "Invalid value: \"x\": name is neither a standard finalizer name nor is it fully \
                 qualified";
    refused(t, "namespaces", &given, &[("spec.finalizers", words)]).await;
}

async fn statuses_of_pods_are_checked(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let sort = format!(
        "Invalid value: \"a b\": {}",
        names::qualified_name("a b")[0]
    );
    let node = format!(
        "Invalid value: \"Not\": {}",
        names::dns1123_subdomain("Not")[0]
    );
    for (status, field, words) in [
        (
            doc!({ "conditions": [{ "type": "a b", "status": "True" }] }),
            "conditions[0].Type",
            &*sort,
        ),
        (
            doc!({ "nominatedNodeName": "Not" }),
            "nominatedNodeName",
            &*node,
        ),
        (
            doc!({ "podIP": "x", "podIPs": [{ "ip": "x" }] }),
            "podIPs[0]",
            "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            doc!({ "podIP": "1.2.3.4", "podIPs": [{ "ip": "1.2.3.4" }, { "ip": "1.2.3.5" }] }),
            "podIPs",
            "Invalid value: [{\"IP\":\"1.2.3.4\"},{\"IP\":\"1.2.3.5\"}]: may specify no more than \
             one IP for each IP family",
        ),
        (
            doc!({ "hostIP": "1.2.3.4", "hostIPs": [{ "ip": "1.2.3.5" }] }),
            "hostIPs[0].ip",
            "Invalid value: \"1.2.3.5\": must be equal to `hostIP`",
        ),
    ] {
        let answer = t.merge("pods/a/status", &doc!({ "status": status })).await;
        let field = format!("status.{field}");
        demand(&answer.fails(422, "Invalid"), &[(&field, words)]);
    }
    let both = doc!({ "podIP": "1.2.3.4", "podIPs": [{ "ip": "1.2.3.4" }, { "ip": "fd00::1" }] });
    t.merge("pods/a/status", &doc!({ "status": both }))
        .await
        .is(200);
}

async fn ephemeral_containers_come_by_their_own_path(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let containers = doc!([{
        "name": "x", "image": "registry.example/app:1", "terminationMessagePolicy": "File",
    }]);
    let patch = doc!({ "spec": { "ephemeralContainers": containers } });
    t.merge("pods/a", &patch)
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec");
    t.merge("pods/a/ephemeralcontainers", &patch).await.is(200);
    let labels = doc!({ "metadata": { "labels": { "x": "y" } } });
    t.merge("pods/a", &labels).await.is(200);
}

async fn strategy_that_is_no_percentage_counts_as_zero(t: &Scope) {
    let rolling = doc!({ "maxUnavailable": "0", "maxSurge": 0 });
    let given = deployment("a").set("/spec/strategy/rollingUpdate", rolling);
    let field = "spec.strategy.rollingUpdate.maxUnavailable";
    let faults = [
        (
            field,
            "Invalid value: \"0\": a valid percent string must be a numeric string followed by an \
             ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
        (
            field,
            "Invalid value: \"0\": may not be 0 when `maxSurge` is 0",
        ),
    ];
    refused(t, "deployments", &given, &faults).await;
}

async fn stateful_sets_are_checked(t: &Scope) {
    let value = format!("Invalid value: \"a b\": {}", names::label_value("a b")[0]);
    for (pointer, given, faults) in [
        (
            "/spec/podManagementPolicy",
            doc!("x"),
            vec![(
                "spec.podManagementPolicy",
                "Invalid value: \"x\": must be 'OrderedReady' or 'Parallel'",
            )],
        ),
        (
            "/spec/updateStrategy",
            doc!({ "type": "x" }),
            vec![(
                "spec.updateStrategy",
                "Invalid value: {\"Type\":\"x\",\"RollingUpdate\":null}: must be 'RollingUpdate' \
                 or 'OnDelete'",
            )],
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            doc!(5),
            vec![(
                "spec.template.spec.activeDeadlineSeconds",
                "Forbidden: activeDeadlineSeconds in StatefulSet is not Supported",
            )],
        ),
        (
            "/spec/selector/matchLabels/app",
            doc!("a b"),
            vec![
                ("spec.selector.matchLabels", &*value),
                (
                    "spec.selector",
                    "Invalid value: {\"matchLabels\":{\"app\":\"a b\"}}",
                ),
            ],
        ),
    ] {
        let given = stateful_set("a").set(pointer, given);
        refused(t, "statefulsets", &given, &faults).await;
    }
}

async fn daemon_sets_are_checked(t: &Scope) {
    let value = format!("Invalid value: \"a b\": {}", names::label_value("a b")[0]);
    for (pointer, given, faults) in [
        (
            "/spec/updateStrategy",
            doc!({ "type": "x" }),
            vec![(
                "spec.updateStrategy",
                "Unsupported value: {\"Type\":\"x\",\"RollingUpdate\":null}: supported values: \
                 \"RollingUpdate\", \"OnDelete\"",
            )],
        ),
        (
            "/spec/updateStrategy",
            doc!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0 } }),
            vec![(
                "spec.updateStrategy.rollingUpdate.maxUnavailable",
                "Required value: cannot be 0 when maxSurge is 0",
            )],
        ),
        (
            "/spec/template/spec/activeDeadlineSeconds",
            doc!(5),
            vec![(
                "spec.template.spec.activeDeadlineSeconds",
                "Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
            )],
        ),
        (
            "/spec/selector/matchLabels/app",
            doc!("a b"),
            vec![("spec.selector.matchLabels", &*value)],
        ),
        (
            "/spec/selector",
            Doc::NULL,
            vec![(
                "spec.template.metadata.labels",
                "Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
            )],
        ),
    ] {
        let given = daemon_set("a").set(pointer, given);
        refused(t, "daemonsets", &given, &faults).await;
    }
}

async fn mirrors_are_made_as_such(t: &Scope) {
    t.made("pods", &pod("a").set("/spec/nodeName", "one")).await;
    let mark = |value: &str| doc!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": value } } });
    let refusal = t.merge("pods/a", &mark("x")).await.fails(422, "Invalid");
    let field = "metadata.annotations[kubernetes.io/config.mirror]";
    demand(
        &refusal,
        &[(field, "Forbidden: may not add mirror pod annotation")],
    );
}
