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
    address_outside_of_the_range_is_named,
    address_of_a_deleted_service_is_free,
    address_comes_back_with_the_type,
    headless_service_keeps_none,
    node_ports_differ,
    taken_node_port_is_refused,
    node_port_outside_of_the_range_is_refused,
    node_port_of_a_deleted_service_is_free,
    node_port_can_be_moved,
    two_protocols_of_one_port_share_a_node_port,
    new_port_gets_a_node_port_of_its_own,
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

async fn address_outside_of_the_range_is_named(t: &Scope) {
    let object = service("a").set("/spec/clusterIP", "192.0.2.1");
    let answer = t.create("services", &object).await;
    answer.fails(422, "Invalid").mentions(
        "failed to allocate IP 192.0.2.1: the provided network does not match the current range",
    );
}

async fn address_of_a_deleted_service_is_free(t: &Scope) {
    let first = t.made("services", &service("a")).await;
    t.delete("services/a").await.is(200);
    let second = service("b").set("/spec/clusterIP", first.at("/spec/clusterIP"));
    let second = t.made("services", &second).await;
    assert_eq!(second.at("/spec/clusterIP"), first.at("/spec/clusterIP"));
    assert_eq!(second.at("/spec/clusterIPs/0"), first.at("/spec/clusterIP"));
}

async fn address_comes_back_with_the_type(t: &Scope) {
    let object = service("a")
        .set("/spec/type", "ExternalName")
        .set("/spec/externalName", "db.example.com");
    let made = t.made("services", &object).await;
    assert!(made.at("/spec/clusterIP").is_null());
    let patch = doc!({ "spec": { "type": "ClusterIP", "externalName": null } });
    let patched = t.merge("services/a", &patch).await.is(200);
    assert!(!patched.at("/spec/clusterIP").is_null());
    assert_eq!(
        patched.at("/spec/clusterIPs/0"),
        patched.at("/spec/clusterIP")
    );
}

async fn headless_service_keeps_none(t: &Scope) {
    let object = service("a").set("/spec/clusterIP", "None");
    let made = t.made("services", &object).await;
    assert_eq!(made.at("/spec/clusterIP"), "None");
    assert_eq!(made.at("/spec/clusterIPs/0"), "None");
}

async fn node_ports_differ(t: &Scope) {
    let kind = |name: &str| service(name).set("/spec/type", "NodePort");
    let first = t.made("services", &kind("a")).await;
    let second = t.made("services", &kind("b")).await;
    let port = "/spec/ports/0/nodePort";
    assert_ne!(first.at(port), second.at(port));
    let number = first.at(port).as_i64().unwrap_or(0);
    assert!((30_000..=32_767).contains(&number), "{number}");
}

async fn taken_node_port_is_refused(t: &Scope) {
    let kind = |name: &str| service(name).set("/spec/type", "NodePort");
    let first = t.made("services", &kind("a")).await;
    let port = "/spec/ports/0/nodePort";
    let second = kind("b").set(port, first.at(port));
    let number = first.at(port);
    let answer = t.create("services", &second).await;
    answer
        .fails(422, "Invalid")
        .says(&format!(
            "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: {number}: provided \
             port is already allocated"
        ))
        .because("FieldValueInvalid", "spec.ports[0].nodePort");
}

async fn node_port_outside_of_the_range_is_refused(t: &Scope) {
    let object = service("a")
        .set("/spec/type", "NodePort")
        .set("/spec/ports/0/nodePort", 8080);
    let answer = t.create("services", &object).await;
    answer.fails(422, "Invalid").says(
        "Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 8080: provided port is \
         not in the valid range. The range of valid ports is 30000-32767",
    );
}

async fn node_port_of_a_deleted_service_is_free(t: &Scope) {
    let kind = |name: &str| service(name).set("/spec/type", "NodePort");
    let first = t.made("services", &kind("a")).await;
    t.delete("services/a").await.is(200);
    let port = "/spec/ports/0/nodePort";
    let second = t
        .made("services", &kind("b").set(port, first.at(port)))
        .await;
    assert_eq!(second.at(port), first.at(port));
}

async fn node_port_can_be_moved(t: &Scope) {
    let kind = |name: &str| service(name).set("/spec/type", "NodePort");
    let port = "/spec/ports/0/nodePort";
    let first = t.made("services", &kind("a")).await;
    let other = t.made("services", &kind("b")).await;
    let answer = t
        .update("services/b", &other.set(port, first.at(port)))
        .await;
    answer
        .fails(422, "Invalid")
        .mentions("provided port is already allocated");
    t.delete("services/a").await.is(200);
    let moved = t
        .update("services/b", &other.set(port, first.at(port)))
        .await
        .is(200);
    assert_eq!(moved.at(port), first.at(port));
}

async fn two_protocols_of_one_port_share_a_node_port(t: &Scope) {
    let ports = doc!([
        { "name": "dns", "port": 53, "protocol": "UDP" },
        { "name": "dns-tcp", "port": 53, "protocol": "TCP" },
        { "name": "web", "port": 80 }
    ]);
    let object = service("a")
        .set("/spec/type", "NodePort")
        .set("/spec/ports", ports);
    let made = t.made("services", &object).await;
    let port = |index: usize| made.at(&format!("/spec/ports/{index}/nodePort"));
    assert_eq!(port(0), port(1));
    assert_ne!(port(0), port(2));
}

async fn new_port_gets_a_node_port_of_its_own(t: &Scope) {
    let object = service("a")
        .set("/spec/type", "NodePort")
        .set("/spec/ports", doc!([{ "name": "web", "port": 80 }]));
    let made = t.made("services", &object).await;
    let ports = doc!({ "spec": { "ports": [
        { "name": "web", "port": 80, "protocol": "TCP" },
        { "name": "more", "port": 81, "protocol": "TCP" }
    ] } });
    let patched = t.merge("services/a", &ports).await.is(200);
    let port = "/spec/ports/0/nodePort";
    assert_eq!(patched.at(port), made.at(port));
    assert!(patched.at("/spec/ports/1/nodePort").as_i64().is_some());
    assert_ne!(patched.at("/spec/ports/1/nodePort"), made.at(port));
}
