//! Bindings to roles, held or not, there or not.

use super::matrix::{Row, Table, row};

const RBAC: &str = "rbac.authorization.k8s.io";

fn binding(name: &str, kind: &str, role: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"roleRef":{{"kind":"{kind}","name":"{role}"}},
            "subjects":[{{"kind":"User","name":"{{ns}}-somebody"}}]}}"#
    )
}

fn write(more: &str) -> String {
    format!(
        r#"[{{"verbs":["get","create","update","patch"],"apiGroups":["{RBAC}"],
            "resources":["rolebindings","clusterrolebindings"]}},
            {{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}}{more}]"#
    )
}

fn may_bind(resources: &str, names: &str) -> String {
    write(&format!(
        r#",{{"verbs":["bind"],"apiGroups":["{RBAC}"],"resources":[{resources}],
            "resourceNames":[{names}]}}"#
    ))
}

pub(crate) fn table() -> Table {
    let held = r#"[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]"#;
    let strong = r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#;
    let role =
        |name: &str, rules: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"rules":{rules}}}"#);
    Table::default()
        .cluster_user("plain", &write(""))
        .cluster_user("binder", &may_bind(r#""roles","clusterroles""#, ""))
        .cluster_user("role-binder", &may_bind(r#""roles""#, ""))
        .cluster_user(
            "named",
            &may_bind(r#""roles","clusterroles""#, r#""absent","{ns}-strong""#),
        )
        .cluster_user(
            "escalator",
            &write(&format!(
                r#",{{"verbs":["escalate"],"apiGroups":["{RBAC}"],"resources":["*"]}}"#
            )),
        )
        .user("local", &may_bind(r#""roles","clusterroles""#, ""))
        .with("roles", &role("held", held))
        .with("roles", &role("strong", strong))
        .with("clusterroles", &role("{ns}-held", held))
        .with("clusterroles", &role("{ns}-strong", strong))
        .with("rolebindings", &binding("to-strong", "Role", "strong"))
        .with("rolebindings", &binding("to-held", "Role", "held"))
        .with("rolebindings", &binding("to-absent", "Role", "absent"))
        .with(
            "clusterrolebindings",
            &binding("{ns}-to-strong", "ClusterRole", "{ns}-strong"),
        )
        .rows(creates())
        .rows(changes())
}

/// A new binding, as a trial.
fn bind(name: &str, who: &str, to: (&str, &str), code: u16) -> Row {
    row(name, who, "POST rolebindings?dryRun=All", code).body(binding("trial", to.0, to.1))
}

/// A new binding for the cluster, as a trial.
fn bind_all(name: &str, who: &str, to: (&str, &str), code: u16) -> Row {
    let body = binding("{ns}-trial", to.0, to.1);
    row(name, who, "POST clusterrolebindings?dryRun=All", code).body(body)
}

fn creates() -> Vec<Row> {
    let held = ("Role", "held");
    let strong = ("Role", "strong");
    let absent = ("Role", "absent");
    let (all_held, all_strong) = (("ClusterRole", "{ns}-held"), ("ClusterRole", "{ns}-strong"));
    let all_absent = ("ClusterRole", "{ns}-absent");
    vec![
        bind("role that is held", "plain", held, 201),
        bind("role that is not held", "plain", strong, 403)
            .says("rolebindings.rbac.authorization.k8s.io \"trial\" is forbidden: user")
            .says(
                "is attempting to grant RBAC permissions not currently held:\n\
                   {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}",
            ),
        bind("role that is absent", "plain", absent, 404)
            .says("rolebindings.rbac.authorization.k8s.io \"absent\" not found"),
        bind("role of the cluster that is held", "plain", all_held, 201),
        bind(
            "role of the cluster that is not held",
            "plain",
            all_strong,
            403,
        ),
        bind(
            "role of the cluster that is absent",
            "plain",
            all_absent,
            404,
        )
        .says("rolebindings.rbac.authorization.k8s.io \"{ns}-absent\" not found"),
        bind(
            "role that is not held, by one who may bind",
            "binder",
            strong,
            201,
        ),
        bind(
            "role that is absent, by one who may bind",
            "binder",
            absent,
            201,
        ),
        bind(
            "role of the cluster, by one who may bind",
            "binder",
            all_strong,
            201,
        ),
        bind(
            "absent role of the cluster, by one who may bind",
            "binder",
            all_absent,
            201,
        ),
        bind("role by one who may bind roles", "role-binder", strong, 201),
        bind(
            "role of the cluster by one who may bind roles",
            "role-binder",
            all_strong,
            403,
        ),
        bind(
            "absent role of the cluster by one who may bind roles",
            "role-binder",
            all_absent,
            404,
        ),
        bind("role by its name", "named", absent, 201),
        bind("role by another name", "named", strong, 403),
        bind("role of the cluster by its name", "named", all_strong, 201),
        bind(
            "absent role by another name",
            "named",
            ("Role", "lost"),
            404,
        ),
        bind("escalate is not bind", "escalator", strong, 403),
        bind(
            "escalate is not bind for what is absent",
            "escalator",
            absent,
            404,
        ),
        bind("bind in the namespace", "local", all_strong, 201),
        bind("administrators", "admin", absent, 201),
        bind("kind that is no role", "binder", ("Pod", "a"), 500),
        bind("no name, by one who may bind", "binder", ("Role", ""), 422),
        bind_all("for the cluster, role that is held", "plain", all_held, 201),
        bind_all(
            "for the cluster, role that is not held",
            "plain",
            all_strong,
            403,
        ),
        bind_all(
            "for the cluster, role that is absent",
            "plain",
            all_absent,
            404,
        ),
        bind_all(
            "for the cluster, by one who may bind",
            "binder",
            all_strong,
            201,
        ),
        bind_all(
            "for the cluster, absent, by one who may bind",
            "binder",
            all_absent,
            201,
        ),
        bind_all("for the cluster, by its name", "named", all_strong, 201),
        bind_all(
            "for the cluster, by one who may bind in a namespace",
            "local",
            all_strong,
            403,
        )
        .says("cannot create resource \"clusterrolebindings\""),
        bind_all(
            "for the cluster, to a role of a namespace",
            "binder",
            held,
            422,
        ),
        bind("without a right to write bindings", "stranger", held, 403)
            .says("cannot create resource \"rolebindings\""),
    ]
}

fn changes() -> Vec<Row> {
    let to = |name: &str| format!("PATCH rolebindings/{name}?dryRun=All");
    let label = r#"{"metadata":{"labels":{"x":"z"}}}"#;
    let finalizer = r#"{"metadata":{"finalizers":["x.io/y"]}}"#;
    let subjects = r#"{"subjects":[{"kind":"User","name":"{ns}-plain"}]}"#;
    let other = r#"{"roleRef":{"name":"held"}}"#;
    let cluster = "PATCH clusterrolebindings/{ns}-to-strong?dryRun=All";
    vec![
        row(
            "subjects of a binding that is held",
            "plain",
            &to("to-held"),
            200,
        )
        .body(subjects),
        row(
            "subjects of a binding that is not held",
            "plain",
            &to("to-strong"),
            403,
        )
        .body(subjects),
        row(
            "subjects of a binding to nothing",
            "plain",
            &to("to-absent"),
            404,
        )
        .body(subjects),
        row(
            "label of a binding that is not held",
            "plain",
            &to("to-strong"),
            403,
        )
        .body(label),
        row(
            "label of a binding to nothing",
            "plain",
            &to("to-absent"),
            404,
        )
        .body(label),
        row(
            "finalizer of a binding that is not held",
            "plain",
            &to("to-strong"),
            200,
        )
        .body(finalizer),
        row(
            "finalizer of a binding to nothing",
            "plain",
            &to("to-absent"),
            200,
        )
        .body(finalizer),
        row(
            "nothing of a binding that is not held",
            "plain",
            &to("to-strong"),
            200,
        )
        .body("{}"),
        row(
            "subjects by one who may bind",
            "binder",
            &to("to-strong"),
            200,
        )
        .body(subjects),
        row(
            "subjects by one who may bind what is absent",
            "binder",
            &to("to-absent"),
            200,
        )
        .body(subjects),
        row(
            "another role by one who may bind",
            "binder",
            &to("to-strong"),
            422,
        )
        .body(other)
        .says("cannot change roleRef"),
        row("another role that is held", "plain", &to("to-strong"), 422).body(other),
        row(
            "another role that is not held",
            "plain",
            &to("to-held"),
            403,
        )
        .body(r#"{"roleRef":{"name":"strong"}}"#),
        row("subjects for the cluster", "plain", cluster, 403).body(subjects),
        row(
            "subjects for the cluster by one who may bind",
            "binder",
            cluster,
            200,
        )
        .body(subjects),
        row("finalizer for the cluster", "plain", cluster, 200).body(finalizer),
    ]
}
