//! Policies that count in the namespace of one case, and how to wait until they do.

use windlass_contract::objects::secret;
use windlass_contract::{Edit, Scope};
use windlass_core::{Doc, doc};

pub(crate) const POLICIES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub(crate) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
pub(crate) const MUTATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
pub(crate) const MUTATION_BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// A rule about all operations on one resource.
pub(crate) fn rule(group: &str, version: &str, resource: &str, operations: &[&str]) -> Doc {
    let operations: Vec<Doc> = operations.iter().map(|it| Doc::from(*it)).collect();
    doc!({
        "apiGroups": [group], "apiVersions": [version], "resources": [resource],
        "operations": (Doc::from(operations))
    })
}

/// Match constraints for resources in the namespace of a case.
pub(crate) fn constraints(t: &Scope, rules: Vec<Doc>) -> Doc {
    doc!({
        "resourceRules": (Doc::from(rules)),
        "namespaceSelector": {
            "matchLabels": { "kubernetes.io/metadata.name": (t.namespace()) }
        }
    })
}

fn policy(kind: &str, name: &str, spec: Doc) -> Doc {
    doc!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": { "name": name }, "spec": spec
    })
}

/// A policy about config maps in the namespace of a case.
pub(crate) fn validating(t: &Scope, name: &str, validations: Vec<Doc>) -> Doc {
    let rules = vec![rule(
        "",
        "v1",
        "configmaps",
        &["CREATE", "UPDATE", "DELETE"],
    )];
    let spec = doc!({
        "matchConstraints": (constraints(t, rules)), "validations": (Doc::from(validations))
    });
    policy("ValidatingAdmissionPolicy", &t.unique(name), spec)
}

/// A binding of a policy, under its name.
pub(crate) fn binding(policy: &Doc, actions: &[&str]) -> Doc {
    let name = policy.meta().name();
    let actions: Vec<Doc> = actions.iter().map(|it| Doc::from(*it)).collect();
    doc!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": (Doc::from(actions)) }
    })
}

/// A mutating policy about config maps in the namespace of a case.
pub(crate) fn mutating(t: &Scope, name: &str, mutations: Vec<Doc>) -> Doc {
    let rules = vec![rule("", "v1", "configmaps", &["CREATE", "UPDATE"])];
    let spec = doc!({
        "matchConstraints": (constraints(t, rules)), "mutations": (Doc::from(mutations)),
        "reinvocationPolicy": "Never"
    });
    policy("MutatingAdmissionPolicy", &t.unique(name), spec)
}

pub(crate) fn apply_configuration(expression: &str) -> Doc {
    doc!({
        "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression }
    })
}

pub(crate) fn json_patch(expression: &str) -> Doc {
    doc!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

pub(crate) fn mutation_binding(policy: &Doc) -> Doc {
    let name = policy.meta().name();
    doc!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": name }, "spec": { "policyName": name }
    })
}

pub(crate) fn validation(expression: &str) -> Doc {
    doc!({ "expression": expression })
}

/// Waits until the server evaluates all validating policies and bindings that were made before. The
/// real server learns of them a second later, all at once.
pub(crate) async fn settle(t: &Scope) {
    let object = secret("probe-validating");
    let number = probe_number(t).await;
    let probe = validating(t, &format!("probe-{number}"), vec![validation("false")])
        .set("/spec/matchConstraints", probed(t, "probe-validating"));
    t.made(POLICIES, &probe).await;
    t.made(BINDINGS, &binding(&probe, &["Deny"])).await;
    loop {
        let answer = t.create("secrets?dryRun=All", &object).await;
        if answer.code() == 422 && answer.text().contains(probe.meta().name()) {
            break;
        }
    }
    let path = format!("{BINDINGS}/{}", probe.meta().name());
    t.delete(&path).await.is(200);
}

/// Constraints for a secret of one name, which no policy of a case is about.
fn probed(t: &Scope, name: &str) -> Doc {
    let rule = rule("", "v1", "secrets", &["CREATE"]).set("/resourceNames", doc!([name]));
    constraints(t, vec![rule])
}

/// A number that no probe of the namespace has: probes are made one after the other.
async fn probe_number(t: &Scope) -> usize {
    let all = t.get(POLICIES).await.is(200);
    let prefix = t.unique("probe");
    let all = all.at("/items").items().iter();
    all.filter(|policy| policy.meta().name().starts_with(&prefix))
        .count()
}

/// The same for mutating policies.
pub(crate) async fn settle_mutations(t: &Scope) {
    let object = secret("probe-mutating");
    let patch = "Object{metadata: Object.metadata{labels: {'probed': 'yes'}}}";
    let probe = mutating(t, "probe-mutating", vec![apply_configuration(patch)])
        .set("/spec/matchConstraints", probed(t, "probe-mutating"));
    t.made(MUTATIONS, &probe).await;
    t.made(MUTATION_BINDINGS, &mutation_binding(&probe)).await;
    loop {
        let answer = t.create("secrets?dryRun=All", &object).await;
        if answer.code() == 201 && answer.text().contains("probed") {
            break;
        }
    }
    let path = format!("{MUTATION_BINDINGS}/{}", probe.meta().name());
    t.delete(&path).await.is(200);
}

/// Makes a policy that denies, and waits until it counts.
pub(crate) async fn denying(t: &Scope, policy: &Doc) {
    t.made(POLICIES, policy).await;
    t.made(BINDINGS, &binding(policy, &["Deny"])).await;
    settle(t).await;
}

/// Makes a mutating policy, and waits until it counts.
pub(crate) async fn in_force(t: &Scope, policy: &Doc) {
    t.made(MUTATIONS, policy).await;
    t.made(MUTATION_BINDINGS, &mutation_binding(policy)).await;
    settle_mutations(t).await;
}

/// The messages that validations which only warn give for a new config map.
pub(crate) async fn warnings(t: &Scope, policy: &Doc, object: &Doc) -> Vec<String> {
    t.made(POLICIES, policy).await;
    t.made(BINDINGS, &binding(policy, &["Warn"])).await;
    settle(t).await;
    let answer = t.create("configmaps", object).await;
    answer.is(201);
    let name = policy.meta().name();
    let prefix = format!(
        "299 - \"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
    );
    let warnings = answer.headers("warning").into_iter();
    let warnings = warnings.map(|warning| {
        let message = warning.strip_prefix(&prefix);
        let message = message.unwrap_or_else(|| panic!("{warning} is not of the policy"));
        let message = message.strip_suffix('"').unwrap_or(message);
        message.replace("\\\"", "\"")
    });
    warnings.collect()
}
