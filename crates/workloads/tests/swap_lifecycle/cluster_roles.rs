//! Aggregated ClusterRoles.

use windlass_client::Propagation;
use windlass_core::{Doc, Gvr, doc};
use windlass_workloads::clusterrole_aggregation;

use crate::scene::{Picture, Scene, end_alike, scripts};

const ROLES: Gvr = Gvr::constant("rbac.authorization.k8s.io", "v1", "clusterroles");

impl Scene {
    /// A role with rules about these resources.
    async fn role(&self, name: &str, resources: &[&str]) -> Doc {
        let rule = |resource: &&str| doc!({ "apiGroups": [""], "resources": [(*resource)], "verbs": ["get"] });
        let rules: Vec<Doc> = resources.iter().map(rule).collect();
        self.create_outside(doc!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name, "labels": { "to": (&self.name) } }, "rules": rules
        }))
        .await
    }

    async fn aggregate(&self, name: &str, labels: &[&str]) -> Doc {
        let selectors = labels.iter();
        let selectors = selectors.map(|label| doc!({ "matchLabels": { "to": (*label) } }));
        let selectors: Vec<Doc> = selectors.collect();
        self.create_outside(doc!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name }, "aggregationRule": { "clusterRoleSelectors": selectors }
        }))
        .await
    }

    async fn until_rules(&self, name: &str, count: usize) {
        self.until("the rules are there", async || {
            let role = self.find_outside(&ROLES, name).await.unwrap();
            role.at("/rules").items().len() == count
        })
        .await;
    }
}

scripts! {
    gathers_rules |scene| {
        scene.aggregate("all", &[&scene.name]).await;
        scene.role("a", &["pods", "nodes"]).await;
        scene.role("b", &["secrets"]).await;
        scene.until_rules("all", 3).await;
    }
    gathers_rules_that_were_there |scene| {
        scene.role("b", &["pods", "nodes"]).await;
        scene.role("a", &["secrets"]).await;
        scene.aggregate("all", &[&scene.name]).await;
        scene.until_rules("all", 3).await;
    }
    gathers_equal_rules_once |scene| {
        scene.role("a", &["pods", "nodes"]).await;
        scene.role("b", &["nodes", "pods", "events"]).await;
        scene.aggregate("all", &[&scene.name]).await;
        scene.until_rules("all", 3).await;
    }
    loses_the_rules_of_a_deleted_role |scene| {
        scene.aggregate("all", &[&scene.name]).await;
        let a = scene.role("a", &["pods"]).await;
        scene.role("b", &["nodes"]).await;
        scene.until_rules("all", 2).await;
        scene.cluster.delete(&a, Propagation::Background).await;
        scene.until_rules("all", 1).await;
    }
    loses_the_rules_of_an_unlabelled_role |scene| {
        scene.aggregate("all", &[&scene.name]).await;
        let a = scene.role("a", &["pods"]).await;
        scene.until_rules("all", 1).await;
        let patch = doc!({ "metadata": { "labels": { "to": null } } });
        scene.cluster.patch(&a, patch).await;
        scene.until_rules("all", 0).await;
    }
    overwrites_an_edit |scene| {
        let all = scene.aggregate("all", &[&scene.name]).await;
        scene.role("a", &["pods", "nodes"]).await;
        scene.until_rules("all", 2).await;
        scene.cluster.patch(&all, doc!({ "rules": [] })).await;
        scene.until_rules("all", 2).await;
    }
    follows_an_edit_of_a_role |scene| {
        scene.aggregate("all", &[&scene.name]).await;
        let a = scene.role("a", &["pods"]).await;
        scene.until_rules("all", 1).await;
        let rule = |name: &str| doc!({ "apiGroups": ["x"], "resources": [name], "verbs": ["*"] });
        let rules = doc!({ "rules": [(rule("a")), (rule("b"))] });
        scene.cluster.patch(&a, rules).await;
        scene.until_rules("all", 2).await;
    }
    gathers_by_several_selectors |scene| {
        let other = format!("{}-other", scene.name);
        scene.aggregate("all", &[&other, &scene.name]).await;
        scene.role("a", &["pods"]).await;
        let b = scene.role("b", &["nodes"]).await;
        let patch = doc!({ "metadata": { "labels": { "to": other } } });
        scene.cluster.patch(&b, patch).await;
        scene.until_rules("all", 2).await;
        scene.until("the second selector's come first", async || {
            let all = scene.find_outside(&ROLES, "all").await.unwrap();
            all.str_at("/rules/0/resources/0") == "nodes"
        }).await;
    }
    keeps_rules_that_it_never_applied |scene| {
        let rule = doc!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] });
        scene.create_outside(doc!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "all" }, "rules": [rule],
            "aggregationRule": { "clusterRoleSelectors": [
                { "matchLabels": { "to": (&scene.name) } }
            ] }
        })).await;
    }
}

#[tokio::test]
async fn cluster_roles_end_alike_with_their_controller_and_with_ours() {
    let picture = Picture {
        namespaced: vec![],
        cluster: vec![ROLES],
        ignored: &["generation"],
    };
    end_alike(
        SCRIPTS,
        picture,
        &[clusterrole_aggregation::NAME],
        |manager| {
            clusterrole_aggregation::add_to(manager, &clusterrole_aggregation::Options::default());
        },
    )
    .await;
}
