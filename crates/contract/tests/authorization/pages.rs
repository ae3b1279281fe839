//! Rights for paths that are no resources.

use super::matrix::{Table, row};

fn rules(verbs: &str, urls: &str) -> String {
    format!(r#"[{{"verbs":[{verbs}],"nonResourceURLs":[{urls}]}}]"#)
}

pub(crate) fn table() -> Table {
    Table::default()
        .cluster_user("metrics", &rules(r#""get""#, r#""/metrics""#))
        .cluster_user("deep", &rules(r#""get""#, r#""/healthz/*""#))
        .cluster_user("prefix", &rules(r#""get""#, r#""/met*""#))
        .cluster_user("star", &rules(r#""get""#, r#""*""#))
        .cluster_user("poster", &rules(r#""post""#, r#""*""#))
        .cluster_user("all", &rules(r#""*""#, r#""*""#))
        .cluster_user(
            "resources",
            r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#,
        )
        .rows([
            row("page by its right", "metrics", "GET /metrics", 200),
            row("page below another", "metrics", "GET /metrics/slis", 403),
            row("page by no right", "deep", "GET /metrics", 403)
                .says("forbidden: User \"{ns}-deep\" cannot get path \"/metrics\""),
            row("page below a pattern", "deep", "GET /healthz/ping", 200),
            row("page by a prefix", "prefix", "GET /metrics", 200),
            row("page beside a prefix", "prefix", "GET /logs", 403),
            row("page by a star", "star", "GET /metrics", 200),
            row("absent page by a star", "star", "GET /nothing", 404),
            row(
                "post of a page by the right to get",
                "star",
                "POST /metrics",
                403,
            )
            .says("cannot post path \"/metrics\""),
            row(
                "get of a page by the right to post",
                "poster",
                "GET /metrics",
                403,
            ),
            row("put of a page", "poster", "PUT /metrics", 403).says("cannot put path"),
            row("deletion of a page", "poster", "DELETE /metrics", 403).says("cannot delete path"),
            row("patch of a page", "poster", "PATCH /metrics", 403).says("cannot patch path"),
            row("resource by rights for all pages", "all", "GET pods", 403),
            row(
                "page by rights for all resources",
                "resources",
                "GET /metrics",
                403,
            ),
            row(
                "resource by rights for all resources",
                "resources",
                "GET pods",
                200,
            ),
            row("health for everybody", "nobody", "GET /healthz", 200),
            row("liveness for everybody", "nobody", "GET /livez", 200),
            row("readiness for everybody", "nobody", "GET /readyz", 200),
            row("version for everybody", "nobody", "GET /version", 200),
            row("discovery for nobody", "nobody", "GET /api", 403),
            row("discovery of groups for nobody", "nobody", "GET /apis", 403),
            row("description for nobody", "nobody", "GET /openapi/v2", 403),
            row("metrics for nobody", "nobody", "GET /metrics", 403)
                .says("User \"system:anonymous\" cannot get path \"/metrics\""),
            row(
                "part of the health for nobody",
                "nobody",
                "GET /healthz/ping",
                403,
            ),
            row("discovery for users", "stranger", "GET /api", 200),
            row(
                "discovery of a group for users",
                "stranger",
                "GET /apis/apps/v1",
                200,
            ),
            row("metrics for users", "stranger", "GET /metrics", 403),
            row("absent page for users", "stranger", "GET /nothing", 403),
            row("root for users", "stranger", "GET /", 403),
            row(
                "signs of a page are written for browsers",
                "stranger",
                "GET /%3Cb%3E",
                403,
            )
            .says("cannot get path \"/&lt;b&gt;\""),
        ])
}
