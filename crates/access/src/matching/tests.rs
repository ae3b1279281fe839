use windlass_core::doc;

use super::*;

fn target<'a>(resource: &'a str, subresource: &'a str) -> MatchTarget<'a> {
    MatchTarget {
        operation: OperationType::Create,
        group: "",
        version: "v1",
        resource,
        subresource,
        name: "a",
        is_namespaced: true,
    }
}

fn rule(resource: &str) -> Rule {
    Rule::new(&doc!({
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]
    }))
}

#[test]
fn resources_and_subresources_match_by_name_or_wildcard() {
    for (pattern, resource, sub, wanted) in [
        ("pods", "pods", "", true),
        ("pods", "pods", "exec", false),
        ("pods/*", "pods", "", true),
        ("pods/*", "pods", "exec", true),
        ("pods/exec", "pods", "exec", true),
        ("pods/exec", "pods", "", false),
        ("*", "pods", "", true),
        ("*", "pods", "status", false),
        ("*/scale", "deployments", "scale", true),
        ("*/scale", "deployments", "", false),
        ("*/*", "deployments", "status", true),
        ("*/*", "deployments", "", true),
        ("pods", "services", "", false),
    ] {
        let found = rule(pattern).matches(&target(resource, sub));
        assert_eq!(found, wanted, "{pattern} {resource} {sub}");
    }
}

#[test]
fn operations_groups_versions_scopes_and_names_must_all_match() {
    let of = |key: &str, value: Doc| {
        let base = doc!({
            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods"]
        });
        Rule::new(&base.with(&format!("/{key}"), value).unwrap())
    };
    let pod = target("pods", "");
    for (key, value, wanted) in [
        ("operations", doc!(["CREATE"]), true),
        ("operations", doc!(["UPDATE", "DELETE"]), false),
        ("apiGroups", doc!([""]), true),
        ("apiGroups", doc!(["apps"]), false),
        ("apiVersions", doc!(["v2"]), false),
        ("scope", doc!("Namespaced"), true),
        ("scope", doc!("Cluster"), false),
        ("scope", doc!("*"), true),
        ("resourceNames", doc!(["a"]), true),
        ("resourceNames", doc!(["b"]), false),
    ] {
        assert_eq!(
            of(key, value.clone()).matches(&pod),
            wanted,
            "{key} {value}"
        );
    }
}

#[test]
fn another_version_matches_only_where_equivalent_ones_count() {
    let webhook = |policy: &str| {
        Matcher::of_webhook(&doc!({
            "matchPolicy": policy,
            "rules": [{
                "operations": ["*"], "apiGroups": [""], "apiVersions": ["v2"], "resources": ["pods"]
            }]
        }))
    };
    let requested = target("pods", "");
    let other = MatchTarget {
        version: "v2",
        ..requested
    };
    let both = [requested, other];
    assert_eq!(webhook("Equivalent").resource(&both), Some(1));
    assert_eq!(webhook("Exact").resource(&both), None);
    assert!(webhook("Equivalent").may_match(&requested));
    assert!(!webhook("Exact").may_match(&requested));
}

#[test]
fn excluded_resources_win_and_a_binding_without_rules_takes_everything() {
    let all = doc!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]
    });
    let pods = all.with("/resources", doc!(["pods"])).unwrap();
    let policy =
        Matcher::of_policy(&doc!({ "resourceRules": [all], "excludeResourceRules": [pods] }));
    assert_eq!(policy.resource(&[target("pods", "")]), None);
    assert_eq!(policy.resource(&[target("services", "")]), Some(0));
    let binding = Matcher::of_binding(&Doc::NULL);
    assert_eq!(binding.resource(&[target("services", "status")]), Some(0));
    assert!(binding.may_match(&target("services", "")));
    assert!(!Matcher::of_policy(&Doc::NULL).may_match(&target("services", "")));
}
