//! Requests of nodes that are approved by themselves.

use std::time::Duration;

use windlass_core::{condition, doc};

use crate::world::{KUBELET_CLIENT, World, has, is_issued, request};

const USAGES: [&str; 2] = ["digital signature", "client auth"];
const SOON: Duration = Duration::from_secs(60);

/// K1: the administrator of the cluster may do everything, so also this.
#[tokio::test(start_paused = true)]
async fn a_node_gets_its_client_certificate() {
    let world = World::new().await;
    let asked = request("system:node:n1", &["system:nodes"], &[]);
    world.ask(KUBELET_CLIENT, &USAGES, &asked).await;
    let approved = world.until(|it| has(it, "Approved")).await;
    let condition = condition(&approved, "Approved").unwrap();
    assert_eq!(condition.reason, "AutoApproved");
    assert_eq!(
        condition.message,
        "Auto approving kubelet client certificate after SubjectAccessReview."
    );
    let issued = world.certificate().await;
    issued.read(|it| {
        assert_eq!(
            it.subject().to_string(),
            "CN=system:node:n1, O=system:nodes"
        );
        assert_eq!(it.issuer().to_string(), "CN=test-ca");
        let usage = it.extended_key_usage().unwrap().unwrap();
        assert!(usage.value.client_auth && !usage.value.server_auth && !usage.value.code_signing);
        let usage = it.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.digital_signature());
        assert!(!usage.value.key_encipherment());
        let basic = it.basic_constraints().unwrap().unwrap();
        assert!(basic.critical && !basic.value.ca);
    });
}

/// K2: a node that bootstraps has to be allowed to.
#[tokio::test(start_paused = true)]
async fn a_request_is_approved_once_its_author_may_ask_for_it() {
    let world = World::new().await;
    let bind = async |role: &str| {
        let name = role.replace(':', "-");
        let binding = doc!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bootstrap"
            }]
        });
        world.cluster.create_doc(&binding).await;
    };
    bind("system:node-bootstrapper").await;
    let asked = request("system:node:n1", &["system:nodes"], &[]);
    world
        .ask_as("bootstrap", KUBELET_CLIENT, &USAGES, &asked)
        .await;
    world.pass(SOON).await;
    let found = world.find().await.unwrap();
    assert_eq!(found.str_at("/spec/username"), "bootstrap");
    assert!(found.at("/status/conditions").items().is_empty(), "{found}");
    bind("system:certificates.k8s.io:certificatesigningrequests:nodeclient").await;
    world.until(|it| has(it, "Approved")).await;
    world.certificate().await;
}

/// K3
#[tokio::test(start_paused = true)]
async fn other_requests_wait_for_a_person() {
    let cases = [
        (
            request("system:node:n1", &["system:nodes"], &["n1"]),
            &USAGES[..],
        ),
        (
            request("system:node:n1", &["system:masters"], &[]),
            &USAGES[..],
        ),
        (request("n1", &["system:nodes"], &[]), &USAGES[..]),
        (
            request("system:node:n1", &["system:nodes"], &[]),
            &["client auth"][..],
        ),
    ];
    for (asked, usages) in cases {
        let world = World::new().await;
        world.ask(KUBELET_CLIENT, usages, &asked).await;
        world.pass(SOON).await;
        let found = world.find().await.unwrap();
        assert!(found.at("/status/conditions").items().is_empty(), "{found}");
    }
}

/// Serving certificates of nodes are never approved by themselves.
#[tokio::test(start_paused = true)]
async fn serving_certificates_wait_for_a_person() {
    let world = World::new().await;
    let asked = request("system:node:n1", &["system:nodes"], &["n1"]);
    let usages = ["digital signature", "server auth"];
    world
        .ask("kubernetes.io/kubelet-serving", &usages, &asked)
        .await;
    world.pass(SOON).await;
    let found = world.find().await.unwrap();
    assert!(found.at("/status/conditions").items().is_empty());
    assert!(!is_issued(&found));
    assert_eq!(found.at("/status/certificate"), &doc!(null));
}
