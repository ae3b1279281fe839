//! What is there before anybody made anything.

use windlass_contract::{Scope, cases};
use windlass_core::Doc;

cases![
    cluster_roles_are_those_of_the_policy,
    cluster_role_bindings_are_those_of_the_policy,
    roles_of_system_namespaces_are_those_of_the_policy,
    client_authority_is_published,
    day_since_when_tokens_are_tracked_is_published,
];

/// The roles and bindings of the embedded server, one line per object and rule.
const POLICY: &str = include_str!("../../../access/src/policy.txt");
const FIRST: &str = "labelSelector=kubernetes.io/bootstrapping=rbac-defaults";
/// The label of a role whose rules another one takes in.
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Lines of the policy that open an object as `is_wanted` says, with the rules that follow.
fn policy(is_wanted: impl Fn(&[&str]) -> bool) -> Vec<String> {
    let mut objects: Vec<String> = Vec::new();
    let mut is_in = false;
    for line in POLICY.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            is_in = is_wanted(&words);
            if is_in {
                objects.push(line.to_owned());
            }
        } else if is_in && let Some(object) = objects.last_mut() {
            *object += &format!("\n{line}");
        }
    }
    objects.sort();
    objects
}

fn words(list: &Doc) -> String {
    let word = |item: &Doc| match item.as_str() {
        Some("") | None => "-".to_owned(),
        Some(word) => word.to_owned(),
    };
    list.items().iter().map(word).collect::<Vec<_>>().join(",")
}

fn rule(rule: &Doc) -> String {
    let parts = [
        "verbs",
        "nonResourceURLs",
        "apiGroups",
        "resources",
        "resourceNames",
    ];
    let parts = parts.iter().filter_map(|part| rule.get(part)).map(words);
    format!("\n  {}", parts.collect::<Vec<_>>().join(" "))
}

fn role(role: &Doc) -> String {
    let (namespace, name) = (role.meta().namespace(), role.meta().name());
    let mut text = match namespace {
        "" => format!("role {name}"),
        _ => format!("role {namespace} {name}"),
    };
    let labels = role.at("/metadata/labels").as_object().expect("labels");
    for (label, _) in labels.iter() {
        if let Some(other) = label.as_str().strip_prefix(AGGREGATE) {
            text += &format!(" for {other}");
        }
    }
    // What such a role sums up to is for a controller to find, which one of the servers lacks.
    match role.get("aggregationRule") {
        Some(_) => text += &format!("\n  from {name}"),
        None => text.extend(role.at("/rules").items().iter().map(rule)),
    }
    text
}

fn binding(binding: &Doc) -> String {
    let subject = |subject: &Doc| {
        let name = subject.str_at("/name");
        match subject.str_at("/kind") {
            "User" => format!("user={name}"),
            "Group" => format!("group={name}"),
            _ => format!("account={}/{name}", subject.str_at("/namespace")),
        }
    };
    let subjects: Vec<String> = binding
        .at("/subjects")
        .items()
        .iter()
        .map(subject)
        .collect();
    let (namespace, name) = (binding.meta().namespace(), binding.meta().name());
    let role = binding.str_at("/roleRef/name");
    let text = match namespace {
        "" => {
            assert_eq!(role, name);
            format!("bind {name} {}", subjects.join(","))
        }
        _ => format!("bind {namespace} {name} {role} {}", subjects.join(",")),
    };
    text.trim_end().to_owned()
}

async fn all(t: &Scope, plural: &str, show: fn(&Doc) -> String) -> Vec<String> {
    let list = t.get(&format!("{plural}?{FIRST}")).await.is(200);
    let mut shown: Vec<String> = list.at("/items").items().iter().map(show).collect();
    shown.sort();
    shown
}

async fn cluster_roles_are_those_of_the_policy(t: &Scope) {
    let is_cluster_role = |words: &[&str]| words[0] == "role" && words.len() != 3;
    assert_eq!(all(t, "clusterroles", role).await, policy(is_cluster_role));
}

async fn cluster_role_bindings_are_those_of_the_policy(t: &Scope) {
    let is_binding = |words: &[&str]| words[0] == "bind" && words.len() < 4;
    assert_eq!(
        all(t, "clusterrolebindings", binding).await,
        policy(is_binding)
    );
}

async fn roles_of_system_namespaces_are_those_of_the_policy(t: &Scope) {
    for namespace in ["kube-system", "kube-public"] {
        let t = t.in_namespace(namespace);
        let is_role = |words: &[&str]| words[..2] == ["role", namespace] && words.len() == 3;
        assert_eq!(all(&t, "roles", role).await, policy(is_role));
        let is_binding = |words: &[&str]| words[..2] == ["bind", namespace];
        assert_eq!(all(&t, "rolebindings", binding).await, policy(is_binding));
    }
}

async fn client_authority_is_published(t: &Scope) {
    let t = t.in_namespace("kube-system");
    let map = t
        .get("configmaps/extension-apiserver-authentication")
        .await
        .is(200);
    let authority = map.str_at("/data/client-ca-file");
    assert!(
        authority.starts_with("-----BEGIN CERTIFICATE-----"),
        "{authority}"
    );
}

async fn day_since_when_tokens_are_tracked_is_published(t: &Scope) {
    let t = t.in_namespace("kube-system");
    let name = "configmaps/kube-apiserver-legacy-service-account-token-tracking";
    let map = t.get(name).await.is(200);
    let since = map.str_at("/data/since");
    assert_eq!(
        since.split('-').map(str::len).collect::<Vec<_>>(),
        [4, 2, 2],
        "{since}"
    );
}
