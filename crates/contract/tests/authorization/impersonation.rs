//! Impersonation of every sort.

use super::matrix::{Row, Table, row};

const REVIEW: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const BODY: &str = "{}";

fn rules(rules: &[(&str, &str, &str, &str)]) -> String {
    let rule = |(verbs, group, resource, names): &(&str, &str, &str, &str)| {
        let names = match *names {
            "" => String::new(),
            names => format!("\"{names}\""),
        };
        format!(
            r#"{{"verbs":["{verbs}"],"apiGroups":["{group}"],"resources":["{resource}"],
                "resourceNames":[{names}]}}"#
        )
    };
    format!("[{}]", rules.iter().map(rule).collect::<Vec<_>>().join(","))
}

/// The administrator asks who they are as somebody else.
fn who(name: &str, user: &str) -> Row {
    row(name, "admin", REVIEW, 201)
        .body(BODY)
        .header("impersonate-user", user)
}

fn groups(row: Row, groups: &str) -> Row {
    let list: Vec<windlass_core::Doc> = groups.split(' ').map(Into::into).collect();
    row.has("/status/userInfo/groups", list)
}

pub(crate) fn table() -> Table {
    const AUTH: &str = "authentication.k8s.io";
    Table::default()
        .account("none", &rules(&[]))
        .account("all", &rules(&[("*", "*", "*", "")]))
        .account("users", &rules(&[("impersonate", "", "users", "")]))
        .account("ann", &rules(&[("impersonate", "", "users", "ann")]))
        .account(
            "groups",
            &rules(&[
                ("impersonate", "", "users", ""),
                ("impersonate", "", "groups", "team"),
            ]),
        )
        .account(
            "accounts",
            &rules(&[("impersonate", "", "serviceaccounts", "")]),
        )
        .account(
            "extras",
            &rules(&[
                ("impersonate", "", "users", ""),
                ("impersonate", AUTH, "userextras/scopes", "view"),
            ]),
        )
        .account(
            "all-extras",
            &rules(&[
                ("impersonate", "", "users", ""),
                ("impersonate", AUTH, "userextras", ""),
            ]),
        )
        .account(
            "uids",
            &rules(&[
                ("impersonate", "", "users", ""),
                ("impersonate", AUTH, "uids", "42"),
            ]),
        )
        .account(
            "info",
            &rules(&[
                ("impersonate:user-info", AUTH, "users", "ann"),
                (
                    "impersonate-on:user-info:create",
                    AUTH,
                    "selfsubjectreviews",
                    "",
                ),
            ]),
        )
        .account(
            "info-only",
            &rules(&[("impersonate:user-info", AUTH, "users", "")]),
        )
        .account(
            "info-on",
            &rules(&[(
                "impersonate-on:user-info:create",
                AUTH,
                "selfsubjectreviews",
                "",
            )]),
        )
        .account(
            "info-groups",
            &rules(&[
                ("impersonate:user-info", AUTH, "users", ""),
                ("impersonate:user-info", AUTH, "groups", ""),
                (
                    "impersonate-on:user-info:create",
                    AUTH,
                    "selfsubjectreviews",
                    "",
                ),
            ]),
        )
        .account(
            "sa-mode",
            &rules(&[
                ("impersonate:serviceaccount", AUTH, "serviceaccounts", ""),
                (
                    "impersonate-on:serviceaccount:create",
                    AUTH,
                    "selfsubjectreviews",
                    "",
                ),
            ]),
        )
        .account(
            "node-mode",
            &rules(&[
                ("impersonate:arbitrary-node", AUTH, "nodes", "n1"),
                (
                    "impersonate-on:arbitrary-node:create",
                    AUTH,
                    "selfsubjectreviews",
                    "",
                ),
            ]),
        )
        .rows(identities())
        .rows(incomplete())
        .rows(rights())
        .rows(constrained())
        .rows(odd_values())
}

fn identities() -> Vec<Row> {
    let name = "/status/userInfo/username";
    vec![
        groups(who("user", "ann").has(name, "ann"), "system:authenticated"),
        groups(
            who("user with a group", "ann").header("impersonate-group", "team"),
            "team system:authenticated",
        ),
        groups(
            who("user with groups in their order", "ann")
                .header("impersonate-group", "z")
                .header("impersonate-group", "a"),
            "z a system:authenticated",
        ),
        groups(
            who("user with a group twice", "ann")
                .header("impersonate-group", "a")
                .header("impersonate-group", "a"),
            "a a system:authenticated",
        ),
        groups(
            who("user known already", "ann")
                .header("impersonate-group", "system:authenticated")
                .header("impersonate-group", "b"),
            "system:authenticated b",
        ),
        row("user said to be unknown", "admin", REVIEW, 403)
            .body(BODY)
            .header("impersonate-user", "ann")
            .header("impersonate-group", "system:unauthenticated")
            .says("User \"ann\" cannot create"),
        row("anonymous", "admin", REVIEW, 403)
            .body(BODY)
            .header("impersonate-user", "system:anonymous")
            .says("User \"system:anonymous\" cannot create"),
        row("anonymous in a group", "admin", REVIEW, 403)
            .body(BODY)
            .header("impersonate-user", "system:anonymous")
            .header("impersonate-group", "a"),
        row("anonymous for a public page", "admin", "GET /healthz", 200)
            .header("impersonate-user", "system:anonymous"),
        groups(
            who("anonymous said to be known", "system:anonymous")
                .header("impersonate-group", "system:authenticated"),
            "system:authenticated system:unauthenticated",
        ),
        groups(
            who("service account", "system:serviceaccount:x:y"),
            "system:serviceaccounts system:serviceaccounts:x system:authenticated",
        ),
        groups(
            who("service account with a group", "system:serviceaccount:x:y")
                .header("impersonate-group", "team"),
            "team system:authenticated",
        ),
        groups(
            who("service account without a name", "system:serviceaccount:x:"),
            "system:authenticated",
        ),
        groups(
            who(
                "service account without a namespace",
                "system:serviceaccount::y",
            ),
            "system:authenticated",
        ),
        groups(
            who(
                "service account with three parts",
                "system:serviceaccount:x:y:z",
            ),
            "system:authenticated",
        ),
        groups(
            who(
                "service account of a bad namespace",
                "system:serviceaccount:X:y",
            ),
            "system:authenticated",
        ),
        groups(
            who("service account of a bad name", "system:serviceaccount:x:Y"),
            "system:authenticated",
        ),
        groups(
            who(
                "service account of a dotted name",
                "system:serviceaccount:x:y.z",
            ),
            "system:serviceaccounts system:serviceaccounts:x system:authenticated",
        ),
        groups(
            by("node", "all", "system:node:n1", 201),
            "system:nodes system:authenticated",
        ),
        groups(
            who("node with a bad name", "system:node:N1"),
            "system:authenticated",
        ),
        groups(
            who("node without a name", "system:node:"),
            "system:authenticated",
        ),
        groups(
            who("node with groups", "system:node:n1").header("impersonate-group", "g"),
            "g system:authenticated",
        ),
        groups(
            who("administrators", "ann").header("impersonate-group", "system:masters"),
            "system:masters system:authenticated",
        ),
        who("uid", "ann")
            .header("impersonate-uid", "42")
            .has("/status/userInfo/uid", "42"),
        who("first of two uids", "ann")
            .header("impersonate-uid", "1")
            .header("impersonate-uid", "2")
            .has("/status/userInfo/uid", "1"),
        who("first of two users", "ann")
            .header("impersonate-user", "bob")
            .has(name, "ann"),
        who("extra", "ann")
            .header("impersonate-extra-scopes", "view")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "scopes": ["view"] }),
            ),
        who("extra with two values", "ann")
            .header("impersonate-extra-scopes", "b")
            .header("impersonate-extra-scopes", "a")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "scopes": ["b", "a"] }),
            ),
        who("extra with an escaped key", "ann")
            .header("impersonate-extra-acme.com%2Fproject", "p")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "acme.com/project": ["p"] }),
            ),
        who("extra with a key in capitals", "ann")
            .header("Impersonate-Extra-SCOPES", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "scopes": ["x"] }),
            ),
        who("extra with an escaped capital", "ann")
            .header("impersonate-extra-%41b", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "Ab": ["x"] }),
            ),
        who("extra with a bad escape", "ann")
            .header("impersonate-extra-a%zz%2F", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "a%zz%2f": ["x"] }),
            ),
        who("extra with an open escape", "ann")
            .header("impersonate-extra-a%2", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "a%2": ["x"] }),
            ),
        who("extra with a plus", "ann")
            .header("impersonate-extra-a+b", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "a+b": ["x"] }),
            ),
        who("extra without a value", "ann")
            .header("impersonate-extra-a", "")
            .has("/status/userInfo/extra", windlass_core::doc!({ "a": [""] })),
        groups(
            who("empty group", "ann").header("impersonate-group", ""),
            " system:authenticated",
        ),
    ]
}

fn incomplete() -> Vec<Row> {
    let without = |name: &str, header: &str, value: &str| {
        row(name, "admin", REVIEW, 400)
            .body(BODY)
            .header(header, value)
    };
    vec![
        without("group without a user", "impersonate-group", "team").says(
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"team\"}, \
             Extra:map[string][]string(nil)} without impersonating a user name",
        ),
        without("uid without a user", "impersonate-uid", "42"),
        without("extra without a user", "impersonate-extra-a", "b")
            .says("Groups:[]string(nil), Extra:map[string][]string{\"a\":[]string{\"b\"}}}"),
        without("group with an empty user", "impersonate-group", "team")
            .header("impersonate-user", ""),
        without("empty group without a user", "impersonate-group", ""),
        without("empty extra without a user", "impersonate-extra-a", ""),
        without(
            "group without a user, by a public page",
            "impersonate-group",
            "team",
        ),
        row(
            "group without a user by nobody",
            "nobody",
            "GET /healthz",
            400,
        )
        .header("impersonate-group", "team"),
        row("empty user is no user", "admin", REVIEW, 201)
            .body(BODY)
            .header("impersonate-user", ""),
        row("empty uid is no uid", "admin", REVIEW, 201)
            .body(BODY)
            .header("impersonate-uid", ""),
        row("first user is empty", "admin", REVIEW, 201)
            .body(BODY)
            .header("impersonate-user", "")
            .header("impersonate-user", "ann"),
    ]
}

/// A service account of the namespace asks who it is as somebody else.
fn by(name: &str, account: &str, user: &str, code: u16) -> Row {
    let (name, account) = (format!("{name}, by {account}"), format!("sa:{account}"));
    row(&name, &account, REVIEW, code)
        .body(BODY)
        .header("impersonate-user", user)
}

fn rights() -> Vec<Row> {
    let account = "system:serviceaccount:x:y";
    let me = "User \"system:serviceaccount:{ns}:none\" cannot";
    vec![
        by("user without a right", "none", "ann", 403)
            .says(me)
            .says("impersonate-on:user-info:create resource \"selfsubjectreviews\""),
        by("service account without a right", "none", account, 403)
            .says("impersonate-on:serviceaccount:create resource \"selfsubjectreviews\""),
        by("node without a right", "none", "system:node:n1", 403)
            .says("impersonate-on:arbitrary-node:create resource \"selfsubjectreviews\""),
        row("nobody as somebody", "nobody", REVIEW, 403)
            .body(BODY)
            .header("impersonate-user", "ann"),
        row(
            "nobody as somebody, for a public page",
            "nobody",
            "GET /healthz",
            403,
        )
        .header("impersonate-user", "ann")
        .says("User \"system:anonymous\" cannot impersonate-on:user-info:get path"),
        by("any user", "users", "ann", 201).has("/status/userInfo/username", "ann"),
        by(
            "service account by the right for users",
            "users",
            account,
            403,
        ),
        by(
            "service account with three parts by the right for users",
            "users",
            "system:serviceaccount:x:y:z",
            201,
        ),
        by(
            "node by the right for users",
            "users",
            "system:node:n1",
            201,
        )
        .has(
            "/status/userInfo/groups",
            windlass_core::doc!(["system:authenticated"]),
        ),
        by(
            "anonymous by the right for users",
            "users",
            "system:anonymous",
            403,
        ),
        by("user by name", "ann", "ann", 201),
        by("another user by name", "ann", "bob", 403),
        by("group without a right", "users", "ann", 403).header("impersonate-group", "team"),
        by("uid without a right", "users", "ann", 403).header("impersonate-uid", "42"),
        by("extra without a right", "users", "ann", 403).header("impersonate-extra-scopes", "view"),
        by("group by name", "groups", "ann", 201).header("impersonate-group", "team"),
        by("another group by name", "groups", "ann", 403).header("impersonate-group", "other"),
        by("two groups of which one is held", "groups", "ann", 403)
            .header("impersonate-group", "team")
            .header("impersonate-group", "other"),
        by("administrators without a right", "groups", "ann", 403)
            .header("impersonate-group", "system:masters"),
        by("empty group without a right", "groups", "ann", 403).header("impersonate-group", ""),
        by("everybody known, without a right", "groups", "ann", 403)
            .header("impersonate-group", "system:authenticated"),
        by("service account", "accounts", account, 201),
        by(
            "user by the right for service accounts",
            "accounts",
            "ann",
            403,
        ),
        by("service account with a group", "accounts", account, 403)
            .header("impersonate-group", "team"),
        by("extra by key and value", "extras", "ann", 201)
            .header("impersonate-extra-scopes", "view"),
        by("extra by another value", "extras", "ann", 403)
            .header("impersonate-extra-scopes", "edit"),
        by("extra by another key", "extras", "ann", 403).header("impersonate-extra-other", "view"),
        by("extra by the right for extras", "all-extras", "ann", 403)
            .header("impersonate-extra-scopes", "view"),
        by("uid by its value", "uids", "ann", 201).header("impersonate-uid", "42"),
        by("another uid", "uids", "ann", 403).header("impersonate-uid", "43"),
        by("self", "none", "system:serviceaccount:{ns}:none", 403),
    ]
}

fn constrained() -> Vec<Row> {
    let account = "system:serviceaccount:x:y";
    vec![
        by("constrained user", "info", "ann", 201).has("/status/userInfo/username", "ann"),
        by("another constrained user", "info", "bob", 403),
        row(
            "constrained user who does something else",
            "sa:info",
            "GET pods",
            403,
        )
        .header("impersonate-user", "ann"),
        by(
            "constrained user without the request",
            "info-only",
            "ann",
            403,
        ),
        by(
            "request without the constrained user",
            "info-on",
            "ann",
            403,
        ),
        by("constrained user with groups", "info-groups", "ann", 201)
            .header("impersonate-group", "team"),
        by(
            "constrained user with many groups",
            "info-groups",
            "ann",
            201,
        )
        .header("impersonate-group", "a")
        .header("impersonate-group", "b")
        .header("impersonate-group", "c")
        .header("impersonate-group", "d"),
        by(
            "constrained user among administrators",
            "info-groups",
            "ann",
            403,
        )
        .header("impersonate-group", "system:masters"),
        by(
            "constrained user in the empty group",
            "info-groups",
            "ann",
            403,
        )
        .header("impersonate-group", ""),
        by(
            "constrained user with a group that is not held",
            "info",
            "ann",
            403,
        )
        .header("impersonate-group", "team"),
        by(
            "constrained user who is a service account",
            "info-groups",
            account,
            403,
        ),
        by(
            "constrained user who is a node",
            "info-groups",
            "system:node:n1",
            403,
        ),
        by("constrained service account", "sa-mode", account, 201).has(
            "/status/userInfo/groups",
            windlass_core::doc!([
                "system:serviceaccounts",
                "system:serviceaccounts:x",
                "system:authenticated"
            ]),
        ),
        by(
            "constrained service account with a group",
            "sa-mode",
            account,
            403,
        )
        .header("impersonate-group", "team"),
        by(
            "constrained service account who is a user",
            "sa-mode",
            "ann",
            403,
        ),
        by("constrained node", "node-mode", "system:node:n1", 201).has(
            "/status/userInfo/groups",
            windlass_core::doc!(["system:nodes", "system:authenticated"]),
        ),
        by(
            "another constrained node",
            "node-mode",
            "system:node:n2",
            403,
        ),
        by(
            "constrained node with a group",
            "node-mode",
            "system:node:n1",
            403,
        )
        .header("impersonate-group", "team"),
        by(
            "constrained node with a uid",
            "node-mode",
            "system:node:n1",
            403,
        )
        .header("impersonate-uid", "42"),
    ]
}

/// Values that are text, though not of the letters that headers usually have.
fn odd_values() -> Vec<Row> {
    let name = "/status/userInfo/username";
    vec![
        who("user beyond ASCII", "café").has(name, "café"),
        groups(
            who("group beyond ASCII", "ann").header("impersonate-group", "équipe"),
            "équipe system:authenticated",
        ),
        who("uid beyond ASCII", "ann")
            .header("impersonate-uid", "é")
            .has("/status/userInfo/uid", "é"),
        who("extra beyond ASCII", "ann")
            .header("impersonate-extra-a", "é")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "a": ["é"] }),
            ),
        who("extra with an escaped key beyond ASCII", "ann")
            .header("impersonate-extra-%C3%A9", "x")
            .has(
                "/status/userInfo/extra",
                windlass_core::doc!({ "é": ["x"] }),
            ),
        by("user beyond ASCII without a right", "none", "café", 403),
        row(
            "user beyond ASCII is not the administrator",
            "admin",
            "GET secrets",
            403,
        )
        .header("impersonate-user", "café")
        .says("User \"café\" cannot list"),
        row("group beyond ASCII without a user", "admin", REVIEW, 400)
            .body(BODY)
            .header("impersonate-group", "é"),
        who("user with spaces", "ann b").has(name, "ann b"),
        who("user with a tab", "ann\tb").has(name, "ann\tb"),
        who("user with a comma", "ann, bob").has(name, "ann, bob"),
        who("user with a colon", "a:b").has(name, "a:b"),
        who("user with quotes", "a\"b").has(name, "a\"b"),
        row("user with quotes in a refusal", "admin", "GET secrets", 403)
            .header("impersonate-user", "a\"<b>")
            .says("User \"a\\\"&lt;b&gt;\" cannot list"),
    ]
}
