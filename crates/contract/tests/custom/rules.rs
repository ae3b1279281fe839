//! Rules in the expression language.

use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{GROUP, definition, demand, install, own_group, widget, widget_path};

cases![
    broken_rule_says_its_message,
    broken_rule_without_a_message_says_the_rule,
    message_expression_and_reason_and_path,
    required_reason_without_a_message,
    several_broken_rules,
    transition_rule_does_not_apply_to_creation,
    transition_rule_refuses_a_change,
    transition_rule_allows_no_change,
    rule_on_a_value_shows_the_value,
    evaluation_error_names_the_rule,
    unchanged_invalid_value_is_tolerated,
    changed_invalid_value_is_not_tolerated,
    optional_old_self_is_absent_on_creation,
    rules_of_list_items_follow_their_keys,
    libraries_are_there,
    status_rules_see_the_whole_object,
];

async fn refuse(t: &Scope, spec: Doc, errors: &[&str]) {
    let path = widget_path(t).await;
    let answer = t.create(&path, &widget("a", &spec)).await;
    demand(answer.fails(422, "Invalid"), errors);
}

async fn broken_rule_says_its_message(t: &Scope) {
    let spec = doc!({ "color": "red", "replicas": 5, "max": 2 });
    refuse(t, spec, &["spec: Invalid value: too many"]).await;
}

async fn broken_rule_without_a_message_says_the_rule(t: &Scope) {
    let spec = doc!({ "color": "black" });
    refuse(
        t,
        spec,
        &["spec: Invalid value: failed rule: self.color != 'black'"],
    )
    .await;
}

async fn message_expression_and_reason_and_path(t: &Scope) {
    let path = widget_path(t).await;
    let answer = t
        .create(&path, &widget("a", &doc!({ "color": "red", "num": 0.5 })))
        .await;
    let refusal = answer
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec.num");
    demand(refusal, &["spec.num: Forbidden: num is low for red"]);
}

async fn required_reason_without_a_message(t: &Scope) {
    let spec = doc!({ "color": "red", "mode": "c" });
    let error =
        "spec.mode: Required value: failed rule: !has(self.mode) || self.mode in ['a', 'b']";
    refuse(t, spec, &[error]).await;
}

async fn several_broken_rules(t: &Scope) {
    let spec = doc!({ "color": "black", "replicas": 5, "max": 2 });
    let errors = [
        "spec: Invalid value: too many",
        "spec: Invalid value: failed rule: self.color != 'black'",
    ];
    refuse(t, spec, &errors).await;
}

async fn transition_rule_does_not_apply_to_creation(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red", "fixed": "x" })))
        .await;
}

async fn transition_rule_refuses_a_change(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red", "fixed": "x" })))
        .await;
    let answer = t
        .merge(&format!("{path}/a"), &doc!({ "spec": { "fixed": "y" } }))
        .await;
    demand(
        answer.fails(422, "Invalid"),
        &["spec.fixed: Invalid value: \"y\": fixed is immutable"],
    );
}

async fn transition_rule_allows_no_change(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red", "fixed": "x" })))
        .await;
    t.merge(&format!("{path}/a"), &doc!({ "spec": { "color": "blue" } }))
        .await
        .is(200);
    t.merge(
        &format!("{path}/a"),
        &doc!({ "spec": { "fixed": (Doc::NULL) } }),
    )
    .await
    .is(200);
}

/// Installs a definition whose spec has a schema, and gives the path and a maker of objects.
async fn custom(t: &Scope, spec: &Doc) -> (String, impl Fn(Doc) -> Doc + use<>) {
    let group = own_group(t);
    install(t, &definition(&group, "gadgets", "Gadget", spec)).await;
    let path = format!("/apis/{group}/v1/namespaces/{}/gadgets", t.namespace());
    let make = move |spec: Doc| doc!({ "apiVersion": (format!("{group}/v1")), "kind": "Gadget", "metadata": { "name": "a" }, "spec": spec });
    (path, make)
}

async fn rule_on_a_value_shows_the_value(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": {
            "n": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self % 2 == 0", "message": "n is odd" }] }
        }
    });
    let (path, make) = custom(t, &schema).await;
    let answer = t.create(&path, &make(doc!({ "n": 3 }))).await;
    answer
        .fails(422, "Invalid")
        .mentions("spec.n: Invalid value: 3: n is odd");
}

async fn evaluation_error_names_the_rule(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": { "a": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "10 / self.a > 1" }]
    });
    let (path, make) = custom(t, &schema).await;
    let answer = t.create(&path, &make(doc!({ "a": 0 }))).await;
    answer.fails(422, "Invalid").mentions(
        "spec: Invalid value: \"object\": division by zero evaluating rule: 10 / self.a > 1",
    );
    let answer = t.create(&path, &make(doc!({}))).await;
    answer.fails(422, "Invalid").mentions(
        "spec: Invalid value: \"object\": no such key: a evaluating rule: 10 / self.a > 1",
    );
}

/// An object that its schema, changed meanwhile, would refuse.
async fn outlived(t: &Scope) -> String {
    let schema = doc!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } }
    });
    let (path, make) = custom(t, &schema).await;
    t.made(&path, &make(doc!({ "a": "OLD", "b": "x" }))).await;
    let name = format!("gadgets.{}", own_group(t));
    let patch = doc!([{
        "op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/pattern",
        "value": "^[a-z]+$"
    }]);
    t.edit(&format!("{}/{name}", super::support::DEFINITIONS), &patch)
        .await
        .is(200);
    // A server may need a moment to use the new schema.
    let probe = make(doc!({ "a": "NEW" }))
        .with("/metadata/name", "probe")
        .expect("an object");
    for _ in 0..20_000 {
        if t.create(&format!("{path}?dryRun=All"), &probe).await.code() == 422 {
            return path;
        }
    }
    panic!("the new schema is not used");
}

async fn unchanged_invalid_value_is_tolerated(t: &Scope) {
    let path = outlived(t).await;
    t.merge(&format!("{path}/a"), &doc!({ "spec": { "b": "y" } }))
        .await
        .is(200);
}

async fn changed_invalid_value_is_not_tolerated(t: &Scope) {
    let path = outlived(t).await;
    let answer = t
        .merge(&format!("{path}/a"), &doc!({ "spec": { "a": "NEWER" } }))
        .await;
    answer
        .fails(422, "Invalid")
        .mentions("spec.a: Invalid value: \"NEWER\": spec.a in body should match '^[a-z]+$'");
}

async fn optional_old_self_is_absent_on_creation(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "x-kubernetes-validations": [{
            "rule": "!oldSelf.hasValue() ? self.n == 0 : self.n > oldSelf.value().n",
            "optionalOldSelf": true, "message": "starts at zero and grows"
        }]
    });
    let (path, make) = custom(t, &schema).await;
    let answer = t.create(&path, &make(doc!({ "n": 1 }))).await;
    answer
        .fails(422, "Invalid")
        .mentions("spec: Invalid value: starts at zero and grows");
    t.made(&path, &make(doc!({ "n": 0 }))).await;
    t.merge(&format!("{path}/a"), &doc!({ "spec": { "n": 2 } }))
        .await
        .is(200);
    let answer = t
        .merge(&format!("{path}/a"), &doc!({ "spec": { "n": 1 } }))
        .await;
    answer
        .fails(422, "Invalid")
        .mentions("spec: Invalid value: starts at zero and grows");
}

async fn rules_of_list_items_follow_their_keys(t: &Scope) {
    let schema = doc!({
        "type": "object",
        "properties": {
            "items": {
                "type": "array", "maxItems": 5,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object", "required": ["name"],
                    "properties": { "name": { "type": "string" }, "size": { "type": "integer" } },
                    "x-kubernetes-validations": [{ "rule": "self.size >= oldSelf.size", "message": "must not shrink" }]
                }
            }
        }
    });
    let (path, make) = custom(t, &schema).await;
    let items = doc!({ "items": [{ "name": "a", "size": 1 }, { "name": "b", "size": 5 }] });
    t.made(&path, &make(items)).await;
    let swapped =
        doc!({ "spec": { "items": [{ "name": "b", "size": 5 }, { "name": "a", "size": 2 }] } });
    t.merge(&format!("{path}/a"), &swapped).await.is(200);
    let shrunk =
        doc!({ "spec": { "items": [{ "name": "b", "size": 4 }, { "name": "a", "size": 2 }] } });
    let answer = t.merge(&format!("{path}/a"), &shrunk).await;
    answer
        .fails(422, "Invalid")
        .mentions("spec.items[0]: Invalid value: must not shrink");
}

async fn libraries_are_there(t: &Scope) {
    let rules = [
        "quantity(self.q).isGreaterThan(quantity('1Gi'))",
        "semver(self.v).isLessThan(semver('2.0.0'))",
        "isURL(self.u) && url(self.u).getHostname() == 'example.com'",
        "ip(self.i).family() == 4 && cidr('10.0.0.0/8').containsIP(self.i)",
        "self.l.all(x, x.startsWith('a')) && self.l.map(x, size(x)).sum() == 4 && sets.contains(self.l, ['ab'])",
        "self.t.getFullYear() == 2026 && self.d < duration('2h')",
        "self.t.getHours() == 3 && self.t.getHours('Europe/Berlin') == 4 && self.t.getHours('-02:00') == 1",
        "self.?missing.orValue('none') == 'none'",
        "self.l.transformList(i, x, x + 'z') == ['abz', 'acz']",
        "!format.dns1123Label().validate(self.l[0]).hasValue()",
        "self.l.join(',').split(',') == self.l && 'a-%s'.format([self.v]) == 'a-1.2.3'",
    ];
    let rules: Vec<Doc> = rules.iter().map(|rule| doc!({ "rule": (*rule) })).collect();
    let text = || doc!({ "type": "string", "maxLength": 30 });
    let schema = doc!({
        "type": "object",
        "x-kubernetes-validations": rules,
        "properties": {
            "q": (text()), "v": (text()), "u": (text()), "i": (text()), "missing": (text()),
            "l": { "type": "array", "maxItems": 5, "items": { "type": "string", "maxLength": 10 } },
            "t": { "type": "string", "format": "date-time" }, "d": { "type": "string", "format": "duration" }
        }
    });
    let (path, make) = custom(t, &schema).await;
    let spec = doc!({
        "q": "2Gi", "v": "1.2.3", "u": "https://example.com:8080/a", "i": "10.1.2.3", "l": ["ab", "ac"],
        "t": "2026-01-02T03:04:05Z", "d": "90m"
    });
    t.made(&path, &make(spec)).await;
}

async fn status_rules_see_the_whole_object(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red" }))).await;
    let status = doc!({ "status": { "phase": "C" } });
    let answer = t.merge(&format!("{path}/a/status"), &status).await;
    let refusal = answer.fails(422, "Invalid").is_about(GROUP, "Widget", "a");
    let error = "status.phase: Unsupported value: \"C\": supported values: \"A\", \"B\"";
    demand(refusal, &[error, super::support::UNCHECKED]);
    let answer = t
        .merge(
            &format!("{path}/a/status"),
            &doc!({ "status": { "note": "A" } }),
        )
        .await;
    let error = "status.note: Invalid value: \"A\": note in body should match '^[a-z]+$'";
    demand(answer.fails(422, "Invalid"), &[error]);
}
