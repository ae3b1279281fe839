//! Every verb is a right of its own.

use super::matrix::{Row, Table, row};

/// A verb, a request that needs it, and the code if it is allowed.
const REQUESTS: &[(&str, &str, &str, u16)] = &[
    ("get", "GET configmaps/a", "", 200),
    ("list", "GET configmaps", "", 200),
    (
        "watch",
        "GET configmaps?watch=true&timeoutSeconds=1",
        "",
        200,
    ),
    (
        "create",
        "POST configmaps?dryRun=All",
        r#"{"metadata":{"name":"b"}}"#,
        201,
    ),
    (
        "update",
        "PUT configmaps/a",
        r#"{"metadata":{"name":"a"}}"#,
        200,
    ),
    ("patch", "PATCH configmaps/a", r#"{"data":{"x":"y"}}"#, 200),
    ("delete", "DELETE configmaps/a?dryRun=All", "", 200),
    ("deletecollection", "DELETE configmaps?dryRun=All", "", 200),
];

pub(crate) fn table() -> Table {
    let mut table = Table::default().with("configmaps", r#"{"metadata":{"name":"a"}}"#);
    for (verb, ..) in REQUESTS {
        let rules =
            format!(r#"[{{"verbs":["{verb}"],"apiGroups":[""],"resources":["configmaps"]}}]"#);
        table = table.user(verb, &rules);
    }
    let star = r#"[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"]}]"#;
    let other = r#"[{"verbs":["*"],"apiGroups":["apps"],"resources":["configmaps"]}]"#;
    let groups = r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#;
    table
        .user("star", star)
        .user("other-group", other)
        .user("all-groups", groups)
        .rows(rows())
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (verb, request, body, code) in REQUESTS {
        for (held, ..) in REQUESTS {
            let code = if held == verb { *code } else { 403 };
            let name = format!("{verb} by one who may {held}");
            rows.push(row(&name, held, request, code).body(*body));
        }
        let others = [("star", *code), ("all-groups", *code), ("other-group", 403)];
        for (who, code) in others {
            let name = format!("{verb} by {who}");
            rows.push(row(&name, who, request, code).body(*body));
        }
    }
    rows
}
