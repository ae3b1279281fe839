//! Rights for objects of certain names.

use super::matrix::{Table, row};

pub(crate) fn table() -> Table {
    let named = r#"[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],
        "resourceNames":["a","x"]}]"#;
    let empty = r#"[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],
        "resourceNames":[""]}]"#;
    let star = r#"[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],
        "resourceNames":["*"]}]"#;
    Table::default()
        .with("configmaps", r#"{"metadata":{"name":"a"}}"#)
        .with("configmaps", r#"{"metadata":{"name":"b"}}"#)
        .user("named", named)
        .user("empty", empty)
        .user("star", star)
        .rows([
            row("get of the name", "named", "GET configmaps/a", 200),
            row("get of another name", "named", "GET configmaps/b", 403)
                .says("configmaps \"b\" is forbidden: User \"{ns}-named\" cannot get resource"),
            row(
                "get of an absent object of the name",
                "named",
                "GET configmaps/x",
                404,
            ),
            row(
                "get of an absent object of another name",
                "named",
                "GET configmaps/y",
                403,
            ),
            row("list of all", "named", "GET configmaps", 403),
            row(
                "list of the name",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3Da",
                200,
            ),
            row(
                "list of another name",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3Db",
                403,
            ),
            row(
                "list of all but the name",
                "named",
                "GET configmaps?fieldSelector=metadata.name%21%3Da",
                403,
            ),
            row(
                "list of the name twice",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3Da,metadata.name%3Da",
                200,
            ),
            row(
                "list of the name with two signs",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3D%3Da",
                200,
            ),
            row(
                "list of the name and its namespace",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3Da,metadata.namespace%3D{ns}",
                200,
            ),
            row(
                "list of the name and labels",
                "named",
                "GET configmaps?fieldSelector=metadata.name%3Da&labelSelector=x%3Dy",
                200,
            ),
            row(
                "watch of the name",
                "named",
                "GET configmaps?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da",
                200,
            ),
            row(
                "watch of another name",
                "named",
                "GET configmaps?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Db",
                403,
            ),
            row(
                "watch of all",
                "named",
                "GET configmaps?watch=true&timeoutSeconds=1",
                403,
            ),
            row("create of the name", "named", "POST configmaps", 403)
                .body(r#"{"metadata":{"name":"x"}}"#),
            row("update of the name", "named", "PUT configmaps/a", 200)
                .body(r#"{"metadata":{"name":"a"}}"#),
            row("update of another name", "named", "PUT configmaps/b", 403)
                .body(r#"{"metadata":{"name":"b"}}"#),
            row(
                "update of the name with another in the body",
                "named",
                "PUT configmaps/a",
                400,
            )
            .body(r#"{"metadata":{"name":"b"}}"#),
            row("patch of the name", "named", "PATCH configmaps/a", 200).body("{}"),
            row("patch of another name", "named", "PATCH configmaps/b", 403).body("{}"),
            row(
                "deletion of the name",
                "named",
                "DELETE configmaps/a?dryRun=All",
                200,
            ),
            row(
                "deletion of another name",
                "named",
                "DELETE configmaps/b?dryRun=All",
                403,
            ),
            row(
                "deletion of all",
                "named",
                "DELETE configmaps?dryRun=All",
                403,
            ),
            row(
                "deletion of those of the name",
                "named",
                "DELETE configmaps?dryRun=All&fieldSelector=metadata.name%3Da",
                403,
            ),
            row(
                "subresource of the name",
                "named",
                "GET configmaps/a/status",
                403,
            ),
            row(
                "the empty name allows a list",
                "empty",
                "GET configmaps",
                200,
            ),
            row(
                "the empty name allows no get",
                "empty",
                "GET configmaps/a",
                403,
            ),
            row(
                "the empty name allows a create",
                "empty",
                "POST configmaps?dryRun=All",
                201,
            )
            .body(r#"{"metadata":{"name":"x"}}"#),
            row("a star is a name", "star", "GET configmaps/a", 403),
            row("a star allows no list", "star", "GET configmaps", 403),
        ])
}
