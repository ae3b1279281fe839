//! Those whom a binding names.

use super::matrix::{Table, row};

fn binding(name: &str, subject: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"roleRef":{{"kind":"Role","name":"reader"}},
            "subjects":[{subject}]}}"#
    )
}

pub(crate) fn table() -> Table {
    let rules = r#"[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}]"#;
    Table::default()
        .with("roles", &format!(r#"{{"metadata":{{"name":"reader"}},"rules":{rules}}}"#))
        .with("serviceaccounts", r#"{"metadata":{"name":"bot"}}"#)
        .with("serviceaccounts", r#"{"metadata":{"name":"other"}}"#)
        .with("rolebindings", &binding("u", r#"{"kind":"User","name":"{ns}-ann"}"#))
        .with("rolebindings", &binding("g", r#"{"kind":"Group","name":"{ns}-team"}"#))
        .with("rolebindings", &binding("s", r#"{"kind":"ServiceAccount","name":"bot"}"#))
        .with("rolebindings", &binding("n",
            r#"{"kind":"User","name":"system:serviceaccount:{ns}-z:far"}"#))
        .with("rolebindings", &binding("m",
            r#"{"kind":"Group","name":"system:serviceaccounts:{ns}-y"}"#))
        .with("rolebindings", &binding("none", ""))
        .with("rolebindings", r#"{"metadata":{"name":"gone"},
            "roleRef":{"kind":"Role","name":"gone"},
            "subjects":[{"kind":"User","name":"{ns}-gone"}]}"#)
        .with("rolebindings", r#"{"metadata":{"name":"gone-too"},
            "roleRef":{"kind":"ClusterRole","name":"{ns}-gone"},
            "subjects":[{"kind":"User","name":"{ns}-gone-too"}]}"#)
        .cluster_user("wide", rules)
        .rows([
            row("user", "ann", "GET configmaps", 200),
            row("user of another case", "Ann", "GET configmaps", 403),
            row("user in another namespace", "ann", "GET /api/v1/namespaces/default/configmaps", 403),
            row("user in all namespaces", "ann", "GET /api/v1/configmaps", 403),
            row("user with a role for the cluster", "wide", "GET /api/v1/configmaps", 200),
            row("user with a role for the cluster in a namespace", "wide", "GET configmaps", 200),
            row("user named as the group", "team", "GET configmaps", 403),
            row("member of the group", "stranger", "GET configmaps", 200)
                .header("impersonate-group", "{ns}-team"),
            row("member of the group and of another", "stranger", "GET configmaps", 200)
                .header("impersonate-group", "x").header("impersonate-group", "{ns}-team"),
            row("member of a group named as the user", "stranger", "GET configmaps", 403)
                .header("impersonate-group", "{ns}-ann"),
            row("service account by token", "sa:bot", "GET configmaps", 200),
            row("another service account by token", "sa:other", "GET configmaps", 403)
                .says("User \"system:serviceaccount:{ns}:other\" cannot list"),
            row("service account by name", "as:system:serviceaccount:{ns}:bot",
                "GET configmaps", 200),
            row("another service account by name", "as:system:serviceaccount:{ns}:other",
                "GET configmaps", 403),
            row("service account of another namespace", "as:system:serviceaccount:default:bot",
                "GET configmaps", 403),
            row("service account bound as a user", "as:system:serviceaccount:{ns}-z:far",
                "GET configmaps", 200),
            row("service account bound by its namespace", "as:system:serviceaccount:{ns}-y:any",
                "GET configmaps", 200),
            row("service account bound by its namespace, with other groups",
                "as:system:serviceaccount:{ns}-y:any", "GET configmaps", 403)
                .header("impersonate-group", "x"),
            row("role that is absent", "gone", "GET configmaps", 403)
                .says("in the namespace \"{ns}\": RBAC: role.rbac.authorization.k8s.io \"gone\" not found"),
            row("role for the cluster that is absent", "gone-too", "GET configmaps", 403)
                .says(": RBAC: clusterrole.rbac.authorization.k8s.io \"{ns}-gone\" not found"),
            row("nobody is not a member of everybody", "nobody", "GET configmaps", 403),
            row("administrators need no role", "stranger", "GET configmaps", 200)
                .header("impersonate-group", "system:masters"),
            row("token that is none", "nobody", "GET configmaps", 401)
                .header("authorization", "Bearer none"),
            row("token that is none, for a public page", "nobody", "GET /healthz", 401)
                .header("authorization", "Bearer none"),
        ])
}
