//! Rights for parts of objects.

use super::matrix::{Table, row};

const POD: &str = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
const DEPLOYMENT: &str = r#"{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"x":"y"}},
    "template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;
const SCALE: &str = r#"{"spec":{"replicas":2}}"#;

fn rules(group: &str, resources: &str) -> String {
    format!(r#"[{{"verbs":["*"],"apiGroups":["{group}"],"resources":[{resources}]}}]"#)
}

pub(crate) fn table() -> Table {
    Table::default()
        .with("pods", POD)
        .with("deployments", DEPLOYMENT)
        .with("serviceaccounts", r#"{"metadata":{"name":"bot"}}"#)
        .user("pods", &rules("", r#""pods""#))
        .user("status", &rules("", r#""pods/status""#))
        .user("pods-star", &rules("", r#""pods/*""#))
        .user("star-status", &rules("*", r#""*/status""#))
        .user("star", &rules("*", r#""*""#))
        .user("star-star", &rules("*", r#""*/*""#))
        .user("scale", &rules("apps", r#""deployments/scale""#))
        .user("star-scale", &rules("apps", r#""*/scale""#))
        .user("eviction", &rules("", r#""pods/eviction""#))
        .user("binding", &rules("", r#""pods/binding""#))
        .user("bindings", &rules("", r#""bindings""#))
        .user("token", &rules("", r#""serviceaccounts/token""#))
        .rows([
            row("object by its right", "pods", "GET pods/a", 200),
            row(
                "status by the right for the object",
                "pods",
                "GET pods/a/status",
                403,
            )
            .says("cannot get resource \"pods/status\" in API group \"\""),
            row(
                "patch of a status by the right for the object",
                "pods",
                "PATCH pods/a/status",
                403,
            )
            .body("{}"),
            row(
                "log by the right for the object",
                "pods",
                "GET pods/a/log",
                403,
            ),
            row(
                "exec by the right for the object",
                "pods",
                "POST pods/a/exec",
                403,
            ),
            row(
                "exec by get and the right for the object",
                "pods",
                "GET pods/a/exec",
                403,
            ),
            row(
                "proxy by the right for the object",
                "pods",
                "GET pods/a/proxy/x/y",
                403,
            ),
            row("status by its right", "status", "GET pods/a/status", 200),
            row(
                "patch of a status by its right",
                "status",
                "PATCH pods/a/status",
                200,
            )
            .body("{}"),
            row(
                "object by the right for its status",
                "status",
                "GET pods/a",
                403,
            ),
            row(
                "list by the right for the status",
                "status",
                "GET pods",
                403,
            ),
            row(
                "pods/* is no pattern",
                "pods-star",
                "GET pods/a/status",
                403,
            ),
            row(
                "pods/* is no pattern for pods",
                "pods-star",
                "GET pods/a",
                403,
            ),
            row(
                "*/status allows a status",
                "star-status",
                "GET pods/a/status",
                200,
            ),
            row(
                "*/status allows a status of another group",
                "star-status",
                "GET deployments/a/status",
                200,
            ),
            row(
                "*/status allows no scale",
                "star-status",
                "GET deployments/a/scale",
                403,
            ),
            row(
                "*/status allows no object",
                "star-status",
                "GET pods/a",
                403,
            ),
            row("a star allows a status", "star", "GET pods/a/status", 200),
            row(
                "a star allows a scale",
                "star",
                "GET deployments/a/scale",
                200,
            ),
            row("*/* is no pattern", "star-star", "GET pods/a/status", 403),
            row(
                "scale by its right",
                "scale",
                "GET deployments/a/scale",
                200,
            ),
            row(
                "patch of a scale by its right",
                "scale",
                "PATCH deployments/a/scale",
                200,
            )
            .body(SCALE),
            row(
                "replicas by the right for the scale",
                "scale",
                "PATCH deployments/a",
                403,
            )
            .body(SCALE),
            row(
                "scale of an absent object",
                "scale",
                "GET deployments/z/scale",
                404,
            ),
            row(
                "scale of another resource",
                "scale",
                "GET replicasets/z/scale",
                403,
            ),
            row(
                "*/scale allows a scale",
                "star-scale",
                "GET deployments/a/scale",
                200,
            ),
            row(
                "*/scale allows another scale",
                "star-scale",
                "GET statefulsets/z/scale",
                404,
            ),
            row(
                "*/scale of another group",
                "star-scale",
                "GET replicationcontrollers/z/scale",
                403,
            ),
            row(
                "eviction by its right",
                "eviction",
                "POST pods/a/eviction?dryRun=All",
                201,
            )
            .body(r#"{"metadata":{"name":"a"}}"#),
            row(
                "deletion by the right to evict",
                "eviction",
                "DELETE pods/a?dryRun=All",
                403,
            ),
            row(
                "eviction by the right for pods",
                "pods",
                "POST pods/a/eviction?dryRun=All",
                403,
            )
            .body(r#"{"metadata":{"name":"a"}}"#),
            row(
                "binding by its right",
                "binding",
                "POST pods/a/binding?dryRun=All",
                201,
            )
            .body(r#"{"metadata":{"name":"a"},"target":{"name":"n"}}"#),
            row(
                "binding by the right for bindings",
                "bindings",
                "POST pods/a/binding",
                403,
            )
            .body(r#"{"metadata":{"name":"a"},"target":{"name":"n"}}"#),
            row(
                "binding of its own by the right for parts",
                "binding",
                "POST bindings",
                403,
            )
            .body(r#"{"metadata":{"name":"a"},"target":{"name":"n"}}"#),
            row(
                "token by its right",
                "token",
                "POST serviceaccounts/bot/token",
                201,
            )
            .body(r#"{"spec":{}}"#),
            row(
                "token by the right for a star in another group",
                "scale",
                "POST serviceaccounts/bot/token",
                403,
            )
            .body(r#"{"spec":{}}"#),
            row(
                "account by the right for its token",
                "token",
                "GET serviceaccounts/bot",
                403,
            ),
        ])
}
