//! Parameters: by name, by labels, in which namespace, and none at all.

use windlass_contract::objects::{config_map, labeled};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{BINDINGS, POLICIES, binding, settle, validating, validation};

cases![
    params_by_name,
    params_of_another_namespace,
    missing_params_are_allowed,
    missing_params_are_denied,
    all_selected_params_count,
    binding_without_params_sees_null,
    policy_without_kind_ignores_params,
    unknown_kind_denies,
    unknown_kind_is_ignored,
    namespace_of_a_cluster_kind_is_refused,
];

/// A policy with config maps as parameters, bound with a reference to them.
async fn with_params(t: &Scope, expression: &str, reference: Doc) -> Doc {
    let policy = validating(t, "a", vec![validation(expression)]);
    let kind = doc!({ "apiVersion": "v1", "kind": "ConfigMap" });
    bound(t, policy.set("/spec/paramKind", kind), reference).await
}

async fn bound(t: &Scope, policy: Doc, reference: Doc) -> Doc {
    t.made(POLICIES, &policy).await;
    let binding = binding(&policy, &["Deny"]).set("/spec/paramRef", reference);
    t.made(BINDINGS, &binding).await;
    settle(t).await;
    policy
}

fn limit(name: &str, prefix: &str) -> Doc {
    config_map(name).set("/data", doc!({ "prefix": prefix }))
}

const PREFIXED: &str =
    "!object.metadata.name.startsWith('x') || object.metadata.name.startsWith(params.data.prefix)";

async fn params_by_name(t: &Scope) {
    t.made("configmaps", &limit("limit", "x-")).await;
    let reference = doc!({ "name": "limit", "parameterNotFoundAction": "Deny" });
    let expression =
        format!("{PREFIXED} && params.kind == 'ConfigMap' && params.apiVersion == 'v1'");
    with_params(t, &expression, reference).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.create("configmaps", &config_map("x-y")).await.is(201);
}

async fn params_of_another_namespace(t: &Scope) {
    let other = t.neighbour().await;
    other.made("configmaps", &limit("limit", "x-")).await;
    let reference = doc!({
        "name": "limit", "namespace": (other.namespace()), "parameterNotFoundAction": "Deny"
    });
    with_params(t, PREFIXED, reference).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.create("configmaps", &config_map("x-y")).await.is(201);
}

async fn missing_params_are_allowed(t: &Scope) {
    let reference = doc!({ "name": "absent", "parameterNotFoundAction": "Allow" });
    with_params(t, "false", reference).await;
    t.made("configmaps", &config_map("x")).await;
}

async fn missing_params_are_denied(t: &Scope) {
    let reference = doc!({ "name": "absent", "parameterNotFoundAction": "Deny" });
    let policy = with_params(t, "true", reference).await;
    let name = policy.meta().name();
    let answer = t.create("configmaps", &config_map("x")).await;
    answer.fails(422, "Invalid").says(&format!(
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' \
         denied request: failed to configure binding: no params found for policy binding with \
         `Deny` parameterNotFoundAction"
    ));
}

async fn all_selected_params_count(t: &Scope) {
    for (name, prefix) in [("one", "x-"), ("two", "x-y"), ("three", "")] {
        t.made("configmaps", &labeled(&limit(name, prefix), "limit", "yes"))
            .await;
    }
    t.made("configmaps", &limit("other", "none")).await;
    let reference = doc!({
        "selector": { "matchLabels": { "limit": "yes" } }, "parameterNotFoundAction": "Deny"
    });
    with_params(t, PREFIXED, reference).await;
    t.create("configmaps", &config_map("x-z"))
        .await
        .fails(422, "Invalid");
    t.create("configmaps", &config_map("x-y")).await.is(201);
}

async fn binding_without_params_sees_null(t: &Scope) {
    let kind = doc!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let policy = validating(
        t,
        "a",
        vec![validation("params == null && object.metadata.name != 'x'")],
    );
    let policy = policy.set("/spec/paramKind", kind);
    t.made(POLICIES, &policy).await;
    t.made(BINDINGS, &binding(&policy, &["Deny"])).await;
    settle(t).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.create("configmaps", &config_map("y")).await.is(201);
}

async fn policy_without_kind_ignores_params(t: &Scope) {
    let policy = validating(t, "a", vec![validation("object.metadata.name != 'x'")]);
    let reference = doc!({ "name": "absent", "parameterNotFoundAction": "Deny" });
    bound(t, policy, reference).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid")
        .mentions("failed expression");
    t.create("configmaps", &config_map("y")).await.is(201);
}

fn of_unknown_kind(t: &Scope) -> Doc {
    let kind = doc!({ "apiVersion": "absent.example.com/v1", "kind": "Absent" });
    validating(t, "a", vec![validation("true")]).set("/spec/paramKind", kind)
}

async fn unknown_kind_denies(t: &Scope) {
    let reference = doc!({ "name": "absent", "parameterNotFoundAction": "Allow" });
    let policy = bound(t, of_unknown_kind(t), reference).await;
    let name = policy.meta().name();
    let answer = t.create("configmaps", &config_map("x")).await;
    answer.fails(422, "Invalid").says(&format!(
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy '{name}' denied request: failed \
         to configure policy: failed to find resource referenced by paramKind: \
         'absent.example.com/v1, Kind=Absent'"
    ));
}

async fn unknown_kind_is_ignored(t: &Scope) {
    let reference = doc!({ "name": "absent", "parameterNotFoundAction": "Allow" });
    let policy = of_unknown_kind(t).set("/spec/failurePolicy", "Ignore");
    bound(t, policy, reference).await;
    t.made("configmaps", &config_map("x")).await;
}

async fn namespace_of_a_cluster_kind_is_refused(t: &Scope) {
    let kind = doc!({ "apiVersion": "v1", "kind": "Namespace" });
    let policy = validating(t, "a", vec![validation("true")]).set("/spec/paramKind", kind);
    let reference = doc!({
        "name": "default", "namespace": "default", "parameterNotFoundAction": "Deny"
    });
    bound(t, policy, reference).await;
    t.create("configmaps", &config_map("x")).await.fails(422, "Invalid").mentions(
        "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped \
         `paramKind`",
    );
}
