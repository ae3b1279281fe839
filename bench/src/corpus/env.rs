//! The environment variables of the two containers, and the managed fields that go with them.

use super::template::fill;

/// Where a variable's value comes from.
enum Source {
    Literal(&'static str),
    Field(&'static str),
    Secret(&'static str),
}

use Source::{Field, Literal, Secret};

/// One container's variables.
pub(super) struct Env(&'static [(&'static str, Source)]);

/// The variables of the application container.
pub(super) const APP: Env = Env(&[
    ("POD_NAME", Field("metadata.name")),
    ("HTTP_HOST", Literal("0.0.0.0")),
    ("POD_IP", Field("status.podIP")),
    ("<APP>_DB_PASSWORD", Secret("password")),
    ("<APP>_TIMEOUT", Literal("30s")),
    ("<APP>_DB_HOST", Literal("<app>-db.<namespace>.svc")),
    ("<APP>_DB_PORT", Literal("5432")),
    ("<APP>_DB_NAME", Literal("<app>")),
    ("<APP>_DB_POOL", Literal("16")),
    (
        "<APP>_CACHE_URL",
        Literal("redis://<app>-cache.<namespace>:6379/0"),
    ),
    (
        "<APP>_QUEUE_URL",
        Literal("amqp://queue.messaging:5672/<app>"),
    ),
    ("<APP>_FEATURES", Literal("fast-path,retries,audit")),
    ("<APP>_REGION", Literal("eu-central-1")),
    ("LOG_LEVEL", Literal("info")),
    ("LOG_FORMAT", Literal("json")),
    ("HTTP_PORT", Literal("8080")),
    ("METRICS_PORT", Literal("9090")),
    ("OTEL_SERVICE_NAME", Literal("<app>")),
    (
        "OTEL_ENDPOINT",
        Literal("http://collector.observability:4317"),
    ),
    ("GOMEMLIMIT", Literal("<gomemlimit>")),
]);

/// The variables of the side container.
pub(super) const PROXY: Env = Env(&[
    ("PROXY_STATS", Literal("off")),
    ("PROXY_ZONE", Literal("a")),
    ("POD_IP", Field("status.podIP")),
    ("HOST_IP", Field("status.hostIP")),
    ("PROXY_RETRIES", Literal("3")),
    ("PROXY_CLUSTER", Literal("<app>.<namespace>")),
    ("PROXY_UPSTREAM", Literal("127.0.0.1:8080")),
    ("PROXY_PORT", Literal("15000")),
    ("PROXY_CONTROL", Literal("control.mesh.svc:15012")),
    ("LOG_LEVEL", Literal("warning")),
    ("PROXY_THREADS", Literal("2")),
    ("PROXY_DRAIN", Literal("25")),
    ("PROXY_MTLS", Literal("STRICT")),
    ("PROXY_CERT_DIR", Literal("/tmp/certs")),
    ("PROXY_DOMAIN", Literal("cluster.local")),
    ("PROXY_SAMPLING", Literal("0.01")),
    ("PROXY_TIMEOUT", Literal("5s")),
    ("PROXY_IDLE", Literal("3600s")),
    ("PROXY_LIMIT", Literal("1024")),
    ("PROXY_REVISION", Literal("stable")),
]);

impl Env {
    /// The items of `env`, without the brackets.
    pub(super) fn items(&self, values: &[(&str, &str)]) -> String {
        let items: Vec<String> = self.0.iter().map(item).collect();
        fill(&items.join(","), values)
    }

    /// The members that follow `".":{}` in the managed fields of `env`.
    pub(super) fn fields(&self, values: &[(&str, &str)]) -> String {
        let mut fields: Vec<String> = self.0.iter().map(field).collect();
        fields.sort_unstable();
        fill(&fields.concat(), values)
    }
}

fn item((name, source): &(&str, Source)) -> String {
    match source {
        Literal(value) => format!(r#"{{"name":"{name}","value":"{value}"}}"#),
        Field(path) => format!(
            r#"{{"name":"{name}","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"{path}"}}}}}}"#
        ),
        Secret(key) => format!(
            r#"{{"name":"{name}","valueFrom":{{"secretKeyRef":{{"name":"<app>-secrets","key":"{key}"}}}}}}"#
        ),
    }
}

fn field((name, source): &(&str, Source)) -> String {
    let value = match source {
        Literal(_) => r#""f:value":{}"#,
        Field(_) => r#""f:valueFrom":{".":{},"f:fieldRef":{}}"#,
        Secret(_) => r#""f:valueFrom":{".":{},"f:secretKeyRef":{}}"#,
    };
    format!(r#","k:{{\"name\":\"{name}\"}}":{{".":{{}},"f:name":{{}},{value}}}"#)
}
