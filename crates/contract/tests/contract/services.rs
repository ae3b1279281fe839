//! The addresses and ports of services.

use windlass_contract::objects::service;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::doc;

cases![
    addresses_differ,
    address_outlives_a_change_of_type,
    node_port_goes_with_its_type,
    external_name_has_no_address,
    load_balancer_has_node_ports,
    session_affinity_has_a_timeout,
    unknown_type_is_refused,
    taken_address_is_refused,
    address_outside_of_the_range_is_refused,
];

async fn addresses_differ(t: &Scope) {
    let first = t.made("services", &service("a")).await;
    let second = t.made("services", &service("b")).await;
    assert_ne!(first.at("/spec/clusterIP"), second.at("/spec/clusterIP"));
}

async fn address_outlives_a_change_of_type(t: &Scope) {
    let made = t.made("services", &service("a")).await;
    let patched = t
        .merge("services/a", &doc!({ "spec": { "type": "NodePort" } }))
        .await
        .is(200);
    assert_eq!(patched.at("/spec/clusterIP"), made.at("/spec/clusterIP"));
    assert!(!patched.at("/spec/ports/0/nodePort").is_null());
}

async fn node_port_goes_with_its_type(t: &Scope) {
    t.made("services", &service("a").set("/spec/type", "NodePort"))
        .await;
    let patched = t
        .merge("services/a", &doc!({ "spec": { "type": "ClusterIP" } }))
        .await
        .is(200);
    assert!(patched.at("/spec/ports/0/nodePort").is_null());
    assert!(patched.at("/spec/externalTrafficPolicy").is_null());
}

async fn external_name_has_no_address(t: &Scope) {
    t.made("services", &service("a")).await;
    let patch = doc!({ "spec": { "type": "ExternalName", "externalName": "db.example.com" } });
    let patched = t.merge("services/a", &patch).await.is(200);
    for field in [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "internalTrafficPolicy",
    ] {
        assert!(patched.at("/spec").get(field).is_none(), "{field}");
    }
}

async fn load_balancer_has_node_ports(t: &Scope) {
    let made = t
        .made("services", &service("a").set("/spec/type", "LoadBalancer"))
        .await;
    assert_eq!(made.at("/spec/allocateLoadBalancerNodePorts"), true);
    assert!(!made.at("/spec/ports/0/nodePort").is_null());
}

async fn session_affinity_has_a_timeout(t: &Scope) {
    let made = t
        .made(
            "services",
            &service("a").set("/spec/sessionAffinity", "ClientIP"),
        )
        .await;
    let timeout = made.at("/spec/sessionAffinityConfig/clientIP/timeoutSeconds");
    assert_eq!(timeout, 10_800);
}

async fn unknown_type_is_refused(t: &Scope) {
    let answer = t
        .create("services", &service("a").set("/spec/type", "Odd"))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "Service \"a\" is invalid: spec.type: Unsupported value: \"Odd\": supported values: \
             \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
        )
        .because("FieldValueNotSupported", "spec.type");
}

async fn taken_address_is_refused(t: &Scope) {
    let first = t.made("services", &service("a")).await;
    let second = service("b").set("/spec/clusterIP", first.at("/spec/clusterIP"));
    let answer = t.create("services", &second).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.clusterIPs")
        .mentions("provided IP is already allocated");
}

async fn address_outside_of_the_range_is_refused(t: &Scope) {
    let answer = t
        .create(
            "services",
            &service("a").set("/spec/clusterIP", "192.0.2.1"),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.clusterIPs");
}
