//! Reviews say what a request would be told.

use super::matrix::{Row, Table, row};

const SELF: &str = "POST selfsubjectaccessreviews";
const SUBJECT: &str = "POST subjectaccessreviews";
const LOCAL: &str = "POST localsubjectaccessreviews";

fn attributes(verb: &str, resource: &str, more: &str) -> String {
    format!(
        r#"{{"resourceAttributes":{{"namespace":"{{ns}}","verb":"{verb}",
            "resource":"{resource}"{more}}}}}"#
    )
}

fn ask(name: &str, who: &str, attributes: &str, allowed: bool) -> Row {
    row(name, who, SELF, 201)
        .body(format!(r#"{{"spec":{attributes}}}"#))
        .has("/status/allowed", allowed)
}

/// The administrator asks about a user.
fn about(name: &str, user: &str, attributes: &str, allowed: bool) -> Row {
    let inner = attributes.trim_start_matches('{');
    row(name, "admin", SUBJECT, 201)
        .body(format!(r#"{{"spec":{{{user},{inner}}}"#))
        .has("/status/allowed", allowed)
}

pub(crate) fn table() -> Table {
    let rules = r#"[{"verbs":["get"],"apiGroups":[""],"resources":["pods","pods/log"]},
        {"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]}]"#;
    Table::default()
        .user("reader", rules)
        .cluster_user(
            "pages",
            r#"[{"verbs":["get"],"nonResourceURLs":["/metrics"]}]"#,
        )
        .with(
            "rolebindings",
            r#"{"metadata":{"name":"team"},
            "roleRef":{"kind":"Role","name":"reader"},
            "subjects":[{"kind":"Group","name":"{ns}-team"}]}"#,
        )
        .rows(about_self())
        .rows(about_others())
        .rows(refused())
}

fn about_self() -> Vec<Row> {
    let page =
        |path: &str| format!(r#"{{"nonResourceAttributes":{{"path":"{path}","verb":"get"}}}}"#);
    vec![
        ask("right that is held", "reader", &attributes("get", "pods", ""), true)
            .has("/status/reason",
                "RBAC: allowed by RoleBinding \"reader/{ns}\" of Role \"reader\" to User \"{ns}-reader\""),
        ask("right that is not held", "reader", &attributes("list", "pods", ""), false),
        ask("all verbs", "reader", &attributes("*", "pods", ""), false),
        ask("subresource", "reader", &attributes("get", "pods", r#","subresource":"log""#), true),
        ask("another subresource", "reader",
            &attributes("get", "pods", r#","subresource":"exec""#), false),
        ask("name", "reader", &attributes("get", "secrets", r#","name":"a""#), true),
        ask("another name", "reader", &attributes("get", "secrets", r#","name":"b""#), false),
        ask("no name", "reader", &attributes("get", "secrets", ""), false),
        ask("another group", "reader", &attributes("get", "pods", r#","group":"apps""#), false),
        ask("another namespace", "reader",
            r#"{"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}"#, false),
        ask("all namespaces", "reader",
            r#"{"resourceAttributes":{"verb":"get","resource":"pods"}}"#, false),
        ask("page", "pages", &page("/metrics"), true),
        ask("another page", "pages", &page("/logs"), false),
        ask("administrator", "admin", &attributes("get", "pods", ""), true),
        ask("member of the group", "stranger", &attributes("get", "pods", ""), true)
            .header("impersonate-group", "{ns}-team"),
    ]
}

fn about_others() -> Vec<Row> {
    let get = attributes("get", "pods", "");
    vec![
        about("user", r#""user":"{ns}-reader""#, &get, true),
        about("another user", r#""user":"{ns}-stranger""#, &get, false),
        about("group", r#""groups":["{ns}-team"]"#, &get, true),
        about(
            "user in the group",
            r#""user":"x","groups":["y","{ns}-team"]"#,
            &get,
            true,
        ),
        about(
            "user in administrators",
            r#""user":"x","groups":["system:masters"]"#,
            &get,
            true,
        ),
        about(
            "user said to be an administrator",
            r#""user":"system:masters""#,
            &get,
            false,
        ),
        about(
            "user with extras",
            r#""user":"{ns}-reader","extra":{"a":["b"]}"#,
            &get,
            true,
        ),
    ]
}

fn refused() -> Vec<Row> {
    let get = attributes("get", "pods", "");
    let inner = get.trim_start_matches('{').to_owned();
    vec![
        row("user who asks about others", "reader", SUBJECT, 403)
            .body(format!(r#"{{"spec":{{"user":"x",{inner}}}"#)),
        row("nobody who asks about themselves", "nobody", SELF, 403)
            .body(format!(r#"{{"spec":{get}}}"#)),
        row("review about nobody", "admin", SUBJECT, 422).body(format!(r#"{{"spec":{get}}}"#)),
        row("review about nothing", "admin", SELF, 422).body(r#"{"spec":{}}"#),
        row("review about a page and a resource", "admin", SELF, 422).body(format!(
            r#"{{"spec":{{"nonResourceAttributes":{{"path":"/"}},{inner}}}"#
        )),
        row("local review of its namespace", "admin", LOCAL, 201)
            .body(format!(
                r#"{{"metadata":{{"namespace":"{{ns}}"}},"spec":{{"user":"{{ns}}-reader",{inner}}}"#
            ))
            .has("/status/allowed", true),
        row("local review of another namespace", "admin", LOCAL, 422).body(
            r#"{"metadata":{"namespace":"{ns}"},"spec":{"user":"x","resourceAttributes":
                {"namespace":"other","verb":"get","resource":"pods"}}}"#,
        ),
        row(
            "rules of a user",
            "reader",
            "POST selfsubjectrulesreviews",
            201,
        )
        .body(r#"{"spec":{"namespace":"{ns}"}}"#)
        .has("/status/incomplete", false),
        row(
            "rules of nobody",
            "nobody",
            "POST selfsubjectrulesreviews",
            403,
        )
        .body(r#"{"spec":{"namespace":"{ns}"}}"#),
        row("token review by a user", "reader", "POST tokenreviews", 403)
            .body(r#"{"spec":{"token":"x"}}"#),
        row(
            "token review of a bad token",
            "admin",
            "POST tokenreviews",
            201,
        )
        .body(r#"{"spec":{"token":"x"}}"#)
        .has("/status/error", "invalid bearer token"),
        row(
            "review of oneself by a user",
            "reader",
            "POST selfsubjectreviews",
            201,
        )
        .body("{}")
        .has("/status/userInfo/username", "{ns}-reader"),
    ]
}
