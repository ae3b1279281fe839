//! Objects that change what the server does: definitions of custom resources, and roles.

use http::Method;
use windlass_core::{Doc, Object, doc};

use super::served::served;
use crate::{Outcome, parts};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CUSTOM: &str = "/apis/fuzz.example.com/v1/namespaces/default/things";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

fn definition(schema: &Doc) -> Doc {
    doc!({
        "metadata": { "name": "things.fuzz.example.com" },
        "spec": {
            "group": "fuzz.example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema } }]
        }
    })
}

/// A schema and an object: what is accepted is pruned, defaulted and valid in one step, so that
/// writing it again changes nothing; strict and lenient field validation agree on what both take.
pub fn crd_schema(data: &[u8]) -> Outcome {
    let [schema, object] = parts::<2>(data).map(Doc::parse);
    let (Ok(schema), Ok(object)) = (schema, object) else {
        return Outcome::Refused;
    };
    served(data.len(), |rig| {
        let defined = rig.write(Method::POST, DEFINITIONS, &definition(&schema));
        defined.check(false);
        if !defined.is_ok() {
            return None;
        }
        let fields = object.as_object().cloned().unwrap_or_else(Object::empty);
        let fields = fields
            .with("apiVersion", "fuzz.example.com/v1".into())
            .with("kind", "Thing".into())
            .with("metadata", doc!({ "name": "t" }));
        let object = Doc::from(fields);
        let target = |validation: &str| format!("{CUSTOM}?dryRun=All&fieldValidation={validation}");
        let strict = rig.write(Method::POST, &target("Strict"), &object);
        let lenient = rig.write(Method::POST, &target("Ignore"), &object);
        strict.check(false);
        lenient.check(false);
        if strict.is_ok() {
            let spoken = |doc: Doc| doc.without("/metadata/uid").expect("a sound pointer");
            assert_eq!(
                spoken(strict.doc()),
                spoken(lenient.doc()),
                "strict and lenient"
            );
        }
        let created = rig.write(Method::POST, CUSTOM, &object);
        created.check(false);
        assert_eq!(
            created.is_ok(),
            lenient.is_ok(),
            "dry run: {}",
            created.doc()
        );
        if !created.is_ok() {
            return Some(defined);
        }
        let target = format!("{CUSTOM}/t");
        let found = rig.get(&target).doc();
        assert_eq!(found, created.doc(), "what was created is there");
        let again = rig.write(Method::PUT, &target, &found);
        again.check(false);
        let has_rules = schema.to_string().contains("x-kubernetes-validations");
        // A rule may forbid any update.
        if !has_rules {
            assert_eq!(again.code, 200, "{}", again.doc());
        }
        if again.is_ok() {
            assert_eq!(again.doc(), found, "writing the same changes nothing");
        }
        Some(created)
    })
}

/// Rules of a role and the attributes of a request: the verdict is that of a plain reading of the
/// rules.
pub fn rbac_rules(data: &[u8]) -> Outcome {
    let [rules, attributes] = parts::<2>(data).map(Doc::parse);
    let (Ok(rules), Ok(attributes)) = (rules, attributes) else {
        return Outcome::Refused;
    };
    served(data.len(), |rig| {
        let role = doc!({ "metadata": { "name": "fuzz" }, "rules": rules });
        let made = rig.write(Method::POST, ROLES, &role);
        made.check(false);
        if !made.is_ok() {
            return None;
        }
        let binding = doc!({ "metadata": { "name": "fuzz" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fuzz" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "fuzz" }] });
        assert_eq!(rig.write(Method::POST, BINDINGS, &binding).code, 201);
        let review = doc!({ "spec": attributes });
        let review = review.with("/spec/user", "fuzz").ok()?;
        let review = review.without("/spec/groups").ok()?;
        let answer = rig.write(Method::POST, REVIEWS, &review);
        answer.check(false);
        if !answer.is_ok() {
            return None;
        }
        let (reviewed, stored) = (answer.doc(), made.doc());
        let allowed = stored.at("/rules").items();
        let allowed = allowed
            .iter()
            .any(|rule| allows(rule, reviewed.at("/spec")));
        let found = reviewed.at("/status/allowed").as_bool();
        assert_eq!(found, Some(allowed), "{}", reviewed.at("/spec"));
        Some(answer)
    })
}

fn has(rule: &Doc, field: &str, is_it: impl Fn(&str) -> bool) -> bool {
    let values = rule.get(field).map_or(&[][..], Doc::items);
    values.iter().filter_map(Doc::as_str).any(is_it)
}

fn allows(rule: &Doc, spec: &Doc) -> bool {
    if let Some(path) = spec.get("nonResourceAttributes") {
        let (verb, path) = (path.str_at("/verb"), path.str_at("/path"));
        let matches = |url: &str| {
            let is_prefix = url.ends_with('*') && path.starts_with(url.trim_end_matches('*'));
            url == "*" || url == path || is_prefix
        };
        return has(rule, "verbs", |one| one == "*" || one == verb)
            && has(rule, "nonResourceURLs", matches);
    }
    let Some(asked) = spec.get("resourceAttributes") else {
        return false;
    };
    let text = |field: &str| asked.get(field).and_then(Doc::as_str).unwrap_or("");
    let (resource, subresource, name) = (text("resource"), text("subresource"), text("name"));
    let full = if subresource.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}/{subresource}")
    };
    let any_with = format!("*/{subresource}");
    let is_named = rule
        .get("resourceNames")
        .is_none_or(|names| names.items().is_empty());
    has(rule, "verbs", |one| one == "*" || one == text("verb"))
        && has(rule, "apiGroups", |one| one == "*" || one == text("group"))
        && has(rule, "resources", |one| {
            one == "*" || one == full || (!subresource.is_empty() && one == any_with)
        })
        && (is_named || has(rule, "resourceNames", |one| one == name))
}
