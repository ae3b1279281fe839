//! ServiceCIDRs, IPAddresses, and the addresses that services get because of them.

use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

cases![
    the_default_network_is_there_and_ready,
    an_address_is_named_by_an_ip_in_canonical_form,
    an_address_has_a_parent_that_stays,
    a_service_cidr_has_canonical_networks,
    the_networks_of_a_service_cidr_stay,
    services_get_addresses_of_another_network,
    an_address_that_is_noted_is_taken,
    tables_show_networks_and_parents,
];

const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";

fn address(name: &str) -> Doc {
    doc!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": { "name": name },
        "spec": { "parentRef": { "resource": "services", "name": "a", "namespace": "default" } }
    })
}

fn network(name: &str, cidrs: &Doc) -> Doc {
    doc!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": { "name": name },
        "spec": { "cidrs": (cidrs.clone()) }
    })
}

fn service(name: &str, address: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "clusterIP": address, "ports": [{ "port": 80 }] }
    })
}

async fn the_default_network_is_there_and_ready(t: &Scope) {
    let network = t.get(&format!("{NETWORKS}/kubernetes")).await.is(200);
    assert_eq!(network.at("/spec/cidrs").items().len(), 1);
    let ready = network.at("/status/conditions/0");
    assert_eq!(ready.str_at("/type"), "Ready");
    assert_eq!(ready.str_at("/status"), "True");
    assert_eq!(ready.str_at("/reason"), "");
    let message = "Kubernetes default Service CIDR is ready";
    assert_eq!(ready.str_at("/message"), message);
    assert!(!ready.str_at("/lastTransitionTime").is_empty());
}

async fn an_address_is_named_by_an_ip_in_canonical_form(t: &Scope) {
    let expected = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    for (name, why) in [
        ("abc", expected),
        ("1.2.3", expected),
        ("010.0.0.1", "must not have leading 0s"),
        ("2001:DB8::1", "must be in canonical form (\"2001:db8::1\")"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
    ] {
        let refusal = t.create(ADDRESSES, &address(name)).await;
        let message = format!(
            "IPAddress.networking.k8s.io {name:?} is invalid: metadata.name: Invalid value: \
             {name:?}: {why}"
        );
        refusal.fails(422, "Invalid").says(&message);
    }
    for name in ["203.0.113.1", "2001:db8::7"] {
        let dry = format!("{ADDRESSES}?dryRun=All");
        t.create(&dry, &address(name)).await.is(201);
    }
}

async fn an_address_has_a_parent_that_stays(t: &Scope) {
    let without = |spec: Doc| {
        doc!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
            "metadata": { "name": "203.0.113.9" }, "spec": spec
        })
    };
    let prefix = "IPAddress.networking.k8s.io \"203.0.113.9\" is invalid: ";
    let refused = t.create(ADDRESSES, &without(doc!({}))).await;
    let refused = refused.fails(422, "Invalid");
    refused.says(&format!("{prefix}spec.parentRef: Required value"));
    let refused = t
        .create(ADDRESSES, &without(doc!({ "parentRef": {} })))
        .await;
    let refused = refused.fails(422, "Invalid");
    refused.says(&format!(
        "{prefix}[spec.parentRef.resource: Required value, spec.parentRef.name: Required value]"
    ));
    let odd = doc!({ "parentRef": { "resource": "a/b", "name": "..", "namespace": "%" } });
    let refused = t
        .create(ADDRESSES, &without(odd))
        .await
        .fails(422, "Invalid");
    refused.says(&format!(
        "{prefix}[spec.parentRef.resource: Invalid value: \"a/b\": may not contain '/', \
         spec.parentRef.name: Invalid value: \"..\": may not be '..', \
         spec.parentRef.namespace: Invalid value: \"%\": may not contain '%']"
    ));
    t.made(ADDRESSES, &address("203.0.113.2")).await;
    let other = doc!({ "spec": { "parentRef": { "name": "b" } } });
    let refused = t.merge(&format!("{ADDRESSES}/203.0.113.2"), &other).await;
    refused.fails(422, "Invalid").says(
        "IPAddress.networking.k8s.io \"203.0.113.2\" is invalid: spec.parentRef: Invalid value: \
         {\"Group\":\"\",\"Resource\":\"services\",\"Namespace\":\"default\",\"Name\":\"b\"}: \
         field is immutable",
    );
    t.delete(&format!("{ADDRESSES}/203.0.113.2")).await.is(200);
}

async fn a_service_cidr_has_canonical_networks(t: &Scope) {
    let name = t.unique("net");
    let expected = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let one = |text: &str, why: &str| {
        (
            doc!([text]),
            format!("spec.cidrs[0]: Invalid value: {text:?}: {why}"),
        )
    };
    let cases = [
        (
            doc!([]),
            "spec.cidrs: Required value: at least one CIDR required".to_owned(),
        ),
        (
            doc!(["x", "y", "z"]),
            "spec.cidrs: Invalid value: {\"CIDRs\":[\"x\",\"y\",\"z\"]}: may only hold up to 2 \
             values"
                .to_owned(),
        ),
        one("x", expected),
        one(
            "10.0.0.1/8",
            "must not have bits set beyond the prefix length",
        ),
        one(
            "010.0.0.0/8",
            "must not have leading 0s in IP or prefix length",
        ),
        one(
            "10.0.0.0/08",
            "must not have leading 0s in IP or prefix length",
        ),
        one(
            "2001:DB8::/64",
            "must be in canonical form (\"2001:db8::/64\")",
        ),
        one(
            "::ffff:1.2.3.0/120",
            "must not have an IPv4-mapped IPv6 address",
        ),
        (
            doc!(["10.0.0.0/8", "11.0.0.0/8"]),
            "spec.cidrs: Invalid value: [\"10.0.0.0/8\",\"11.0.0.0/8\"]: may specify no more than \
             one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
                .to_owned(),
        ),
    ];
    for (cidrs, why) in cases {
        let refused = t.create(NETWORKS, &network(&name, &cidrs)).await;
        let message = format!("ServiceCIDR.networking.k8s.io {name:?} is invalid: {why}");
        refused.fails(422, "Invalid").says(&message);
    }
}

async fn the_networks_of_a_service_cidr_stay(t: &Scope) {
    let name = t.unique("net");
    let path = format!("{NETWORKS}/{name}");
    let made = t
        .made(NETWORKS, &network(&name, &doc!(["198.18.0.0/28"])))
        .await;
    assert_eq!(made.at("/status/conditions"), &Doc::NULL);
    let other = doc!({ "spec": { "cidrs": ["198.18.1.0/28"] } });
    let message = format!(
        "ServiceCIDR.networking.k8s.io {name:?} is invalid: spec.cidrs[0]: Invalid value: \
         \"198.18.1.0/28\": field is immutable"
    );
    t.merge(&path, &other)
        .await
        .fails(422, "Invalid")
        .says(&message);
    let both = doc!({ "spec": { "cidrs": ["198.18.0.0/28", "2001:db8:7::/112"] } });
    t.merge(&path, &both).await.is(200);
    let fewer = doc!({ "spec": { "cidrs": ["198.18.0.0/28"] } });
    let message = format!(
        "ServiceCIDR.networking.k8s.io {name:?} is invalid: spec.cidrs: Invalid value: \
         [\"198.18.0.0/28\"]: field is immutable"
    );
    t.merge(&path, &fewer)
        .await
        .fails(422, "Invalid")
        .says(&message);
    t.delete(&path).await.is(200);
}

/// Creates a service until the server has heard of a network.
async fn serve_from(t: &Scope, name: &str, address: &str) -> Doc {
    for _ in 0..1000 {
        let answer = t.create("services", &service(name, address)).await;
        if answer.code() == 201 {
            return answer.doc();
        }
        tokio::task::yield_now().await;
    }
    panic!("no service gets {address}");
}

async fn services_get_addresses_of_another_network(t: &Scope) {
    let refused = t.create("services", &service("a", "198.19.0.5")).await;
    let why = |address: &str, why: &str| {
        format!(
            "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [{address:?}]: failed to \
             allocate IP {address}: {why}"
        )
    };
    let message = why(
        "198.19.0.5",
        "the provided network does not match the current range",
    );
    refused.fails(422, "Invalid").says(&message);
    let name = t.unique("net");
    t.made(NETWORKS, &network(&name, &doc!(["198.19.0.0/28"])))
        .await;
    serve_from(t, "b", "198.19.0.5").await;
    let refused = t.create("services", &service("a", "198.19.0.5")).await;
    let message = why("198.19.0.5", "provided IP is already allocated");
    refused.fails(422, "Invalid").says(&message);
    t.delete("services/b").await.is(200);
    t.delete(&format!("{NETWORKS}/{name}")).await.is(200);
}

async fn an_address_that_is_noted_is_taken(t: &Scope) {
    let name = t.unique("net");
    t.made(NETWORKS, &network(&name, &doc!(["198.19.1.0/28"])))
        .await;
    serve_from(t, "first", "198.19.1.4").await;
    t.made(ADDRESSES, &address("198.19.1.3")).await;
    let refused = t.create("services", &service("a", "198.19.1.3")).await;
    refused.fails(422, "Invalid").says(
        "Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"198.19.1.3\"]: failed to \
         allocate IP 198.19.1.3: provided IP is already allocated",
    );
    t.delete(&format!("{ADDRESSES}/198.19.1.3")).await.is(200);
    serve_from(t, "a", "198.19.1.3").await;
    t.delete("services/a").await.is(200);
    t.delete("services/first").await.is(200);
    t.delete(&format!("{NETWORKS}/{name}")).await.is(200);
}

async fn tables_show_networks_and_parents(t: &Scope) {
    let t = t.with_header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = t.get(&format!("{NETWORKS}/kubernetes")).await.is(200);
    let columns = table.at("/columnDefinitions").items().iter();
    let columns: Vec<&str> = columns.map(|column| column.str_at("/name")).collect();
    assert_eq!(columns, ["Name", "CIDRs", "Age"]);
    let cidrs = table.at("/rows/0/cells/1").as_str();
    assert!(cidrs.is_some_and(|cidrs| cidrs.contains('/')));
    let table = t.get(&format!("{ADDRESSES}?limit=1")).await.is(200);
    let columns = table.at("/columnDefinitions").items().iter();
    let columns: Vec<&str> = columns.map(|column| column.str_at("/name")).collect();
    assert_eq!(columns, ["Name", "ParentRef"]);
}
