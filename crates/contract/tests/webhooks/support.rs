//! Webhooks that are configured for one namespace, and in force.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Received, Reply, Scope, Webhook};
use windlass_core::{Doc, doc};

/// Requests after which a configuration must be in force.
const ATTEMPTS: usize = 2000;
const MARKER: &str = "webhook-marker";

/// A webhook that both servers can reach.
pub(crate) async fn start(answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Webhook {
    Webhook::start(move |call| match call.path.as_str() {
        "/marker" => Reply::deny("marked"),
        _ => answer(call),
    })
    .await
}

/// A rule for all operations on some resources of all groups and versions.
pub(crate) fn rule(resources: &[&str]) -> Doc {
    let resources: Vec<Doc> = resources.iter().map(|it| Doc::from(*it)).collect();
    doc!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources
    })
}

/// A webhook of a configuration: for config maps of the namespace of the case.
pub(crate) fn hook(t: &Scope, webhook: &Webhook, name: &str) -> Doc {
    let path = format!("/{name}");
    doc!({
        "name": (format!("{name}.example.com")),
        "clientConfig": (webhook.client_config(&path)),
        "rules": [(rule(&["configmaps"]))],
        "namespaceSelector": (in_namespace(t)),
        "objectSelector": { "matchExpressions": [{ "key": MARKER, "operator": "DoesNotExist" }] },
        "sideEffects": "None", "admissionReviewVersions": ["v1"]
    })
}

/// The namespace of the case.
pub(crate) fn in_namespace(t: &Scope) -> Doc {
    doc!({ "matchLabels": { "kubernetes.io/metadata.name": (t.namespace()) } })
}

/// A configuration of webhooks, `Mutating` or `Validating`.
pub(crate) fn configuration(sort: &str, name: &str, hooks: &[Doc]) -> Doc {
    doc!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": (format!("{sort}WebhookConfiguration")),
        "metadata": { "name": name }, "webhooks": (hooks.to_vec())
    })
}

pub(crate) fn configurations(sort: &str) -> String {
    let plural = format!("{}webhookconfigurations", sort.to_lowercase());
    format!("/apis/admissionregistration.k8s.io/v1/{plural}")
}

/// Configures webhooks, and waits until they are in force. Gives the path of the configuration.
pub(crate) async fn configured(t: &Scope, sort: &str, webhook: &Webhook, hooks: &[Doc]) -> String {
    named(t, sort, "a", webhook, hooks).await
}

/// As [`configured`], for one of several configurations.
pub(crate) async fn named(
    t: &Scope,
    sort: &str,
    name: &str,
    webhook: &Webhook,
    hooks: &[Doc],
) -> String {
    let name = t.unique(name);
    let mut hooks = hooks.to_vec();
    let marker = hook(t, webhook, "marker").set(
        "/objectSelector",
        doc!({ "matchLabels": { (MARKER): (&name) } }),
    );
    hooks.push(marker);
    let path = configurations(sort);
    t.made(&path, &configuration(sort, &name, &hooks)).await;
    in_force(t, &name).await;
    format!("{path}/{name}")
}

/// Stores a configuration past validation, as older servers have accepted it, and waits until it is
/// in force.
pub(crate) async fn stored(t: &Scope, sort: &str, webhook: &Webhook, hooks: &[Doc]) {
    let name = t.unique("stored");
    let mut hooks = hooks.to_vec();
    let marker = hook(t, webhook, "marker").set(
        "/objectSelector",
        doc!({ "matchLabels": { (MARKER): (&name) } }),
    );
    hooks.push(marker);
    let path = configurations(sort);
    let plural = path.rsplit('/').next().expect("a plural");
    let key = format!("/registry/{plural}/{name}");
    let object = configuration(sort, &name, &hooks).set("/metadata/uid", name.as_str());
    let object = object.set("/metadata/creationTimestamp", "2026-01-01T00:00:00Z");
    t.stored(&key, &format!("{path}/{name}"), &object).await;
    in_force(t, &name).await;
}

/// Waits until a configuration is in force.
async fn in_force(t: &Scope, name: &str) {
    let mut marked = config_map("marked");
    marked = marked.set("/metadata/labels", doc!({ (MARKER): name }));
    for _ in 0..ATTEMPTS {
        let answer = t.create("configmaps?dryRun=All", &marked).await;
        if answer.text().contains("denied the request: marked") {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the configuration {name} is not in force");
}

/// A validating webhook for config maps of the namespace, in force.
pub(crate) async fn validating(
    t: &Scope,
    answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
) -> Webhook {
    let webhook = start(answer).await;
    configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    webhook
}

/// A mutating webhook for config maps of the namespace, in force.
pub(crate) async fn mutating(
    t: &Scope,
    answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
) -> Webhook {
    let webhook = start(answer).await;
    configured(t, "Mutating", &webhook, &[hook(t, &webhook, "m")]).await;
    webhook
}

/// A patch that adds a key to a config map.
pub(crate) fn adds(key: &str) -> Doc {
    doc!([{ "op": "add", "path": (format!("/data/{key}")), "value": "added" }])
}
