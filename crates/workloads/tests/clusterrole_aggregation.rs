//! ClusterRoles that gather the rules of others.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may fail as the test itself"
)]

use std::time::Duration;

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc};
use windlass_testing::Cluster;
use windlass_workloads::clusterrole_aggregation::{self, NAME, Options};

const ROLES: Gvr = Gvr::constant("rbac.authorization.k8s.io", "v1", "clusterroles");

async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.run_with("aggregation", |manager| {
        clusterrole_aggregation::add_to(manager, &Options::default());
    });
    cluster
}

fn role(name: &str, label: &str, rules: Vec<Doc>) -> Doc {
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name, "labels": { "to": label } }, "rules": rules
    })
}

fn aggregate(name: &str, labels: &[&str]) -> Doc {
    let selector = |label: &&str| doc!({ "matchLabels": { "to": (*label) } });
    let selectors: Vec<Doc> = labels.iter().map(selector).collect();
    doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name },
        "aggregationRule": { "clusterRoleSelectors": selectors }
    })
}

fn rule(resource: &str) -> Doc {
    doc!({ "apiGroups": [""], "resources": [resource], "verbs": ["get"] })
}

async fn rules(cluster: &Cluster, name: &str) -> Vec<String> {
    let role = cluster.find(&ROLES, name).await.unwrap();
    let rules = role.at("/rules").items().iter();
    rules
        .map(|rule| rule.str_at("/resources/0").to_owned())
        .collect()
}

async fn until(cluster: &Cluster, name: &str, expected: &[&str]) {
    cluster
        .until(async |cluster| rules(cluster, name).await == expected)
        .await;
    cluster.pass(Duration::from_secs(5)).await;
    assert_eq!(rules(cluster, name).await, expected);
}

/// R1
#[tokio::test(start_paused = true)]
async fn rules_of_a_selected_role_appear() {
    let cluster = cluster().await;
    cluster.create_doc(&aggregate("all", &["all"])).await;
    cluster
        .create_doc(&role("a", "all", vec![rule("pods")]))
        .await;
    until(&cluster, "all", &["pods"]).await;
    let all = cluster.find(&ROLES, "all").await.unwrap();
    let managers = all.at("/metadata/managedFields").items().iter();
    let ours =
        managers.filter(|it| it.str_at("/manager") == NAME && it.str_at("/operation") == "Apply");
    assert_eq!(ours.count(), 1, "{all}");
}

/// R2
#[tokio::test(start_paused = true)]
async fn rules_vanish_with_the_label_or_the_role() {
    let cluster = cluster().await;
    cluster.create_doc(&aggregate("all", &["all"])).await;
    let a = cluster
        .create_doc(&role("a", "all", vec![rule("pods")]))
        .await;
    let b = cluster
        .create_doc(&role("b", "all", vec![rule("nodes")]))
        .await;
    until(&cluster, "all", &["pods", "nodes"]).await;
    let unlabelled = doc!({ "metadata": { "labels": { "to": null } } });
    cluster.patch(&a, unlabelled).await;
    until(&cluster, "all", &["nodes"]).await;
    cluster.delete(&b, Propagation::Background).await;
    until(&cluster, "all", &[]).await;
}

/// R3
#[tokio::test(start_paused = true)]
async fn an_edit_is_overwritten() {
    let cluster = cluster().await;
    let all = cluster.create_doc(&aggregate("all", &["all"])).await;
    cluster
        .create_doc(&role("a", "all", vec![rule("pods")]))
        .await;
    until(&cluster, "all", &["pods"]).await;
    cluster
        .patch(&all, doc!({ "rules": [(rule("secrets"))] }))
        .await;
    until(&cluster, "all", &["pods"]).await;
}

/// R4
#[tokio::test(start_paused = true)]
async fn equal_rules_come_once_by_selector_and_name() {
    let cluster = cluster().await;
    cluster
        .create_doc(&role("z", "one", vec![rule("pods"), rule("nodes")]))
        .await;
    cluster
        .create_doc(&role("b", "two", vec![rule("secrets")]))
        .await;
    cluster
        .create_doc(&role("a", "two", vec![rule("pods"), rule("events")]))
        .await;
    cluster.create_doc(&aggregate("all", &["one", "two"])).await;
    until(&cluster, "all", &["pods", "nodes", "events", "secrets"]).await;
}

/// R5
#[tokio::test(start_paused = true)]
async fn aggregates_of_aggregates_converge() {
    let cluster = cluster().await;
    cluster.create_doc(&aggregate("top", &["middle"])).await;
    let middle = aggregate("middle", &["leaf"]);
    let middle = middle
        .with("/metadata/labels", doc!({ "to": "middle" }))
        .unwrap();
    cluster.create_doc(&middle).await;
    cluster
        .create_doc(&role("a", "leaf", vec![rule("pods")]))
        .await;
    until(&cluster, "top", &["pods"]).await;
}

/// R6
#[tokio::test(start_paused = true)]
async fn rules_that_were_never_applied_stay() {
    let cluster = cluster().await;
    let own = aggregate("all", &["all"])
        .with("/rules", vec![rule("secrets")])
        .unwrap();
    cluster.create_doc(&own).await;
    cluster.pass(Duration::from_secs(5)).await;
    until(&cluster, "all", &["secrets"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_role_that_selects_itself_does_not_gather_its_own_rules() {
    let cluster = cluster().await;
    let own = aggregate("all", &["all"]);
    let own = own.with("/metadata/labels", doc!({ "to": "all" })).unwrap();
    cluster.create_doc(&own).await;
    cluster
        .create_doc(&role("a", "all", vec![rule("pods")]))
        .await;
    until(&cluster, "all", &["pods"]).await;
}

/// The roles of every cluster: `admin` has what `edit` has, which has what `view` has.
#[tokio::test(start_paused = true)]
async fn the_first_roles_are_filled() {
    let cluster = cluster().await;
    let has = async |name: &str, resource: &str| {
        let role = cluster.find(&ROLES, name).await.unwrap();
        let mut rules = role.at("/rules").items().iter();
        rules.any(|rule| {
            let resources = rule.at("/resources").items();
            resources.iter().any(|it| it.as_str() == Some(resource))
        })
    };
    cluster.until(async |_| has("admin", "pods").await).await;
    assert!(has("view", "pods").await);
}
