//! Bindings that are refused when they are written.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{
    BINDINGS, MUTATION_BINDINGS, binding, mutating, mutation_binding, rule, validating, validation,
};

cases![
    wrong_bindings_are_refused,
    wrong_mutation_bindings_are_refused
];

async fn wrong_bindings_are_refused(t: &Scope) {
    let policy = validating(t, "a", vec![validation("true")]);
    let sound = binding(&policy, &["Deny"]);
    let reference = |reference: Doc| sound.set("/spec/paramRef", reference);
    let rows = [
        (
            sound.set("/spec/validationActions", doc!(["Deny", "Warn"])),
            "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ),
        (
            sound.set("/spec/validationActions", doc!(["Deny", "Deny"])),
            "spec.validationActions[1]: Duplicate value: \"Deny\"",
        ),
        (
            sound.set("/spec/validationActions", doc!(["Refuse"])),
            "spec.validationActions[0]: Unsupported value: \"Refuse\": supported values: \"Audit\", \"Deny\", \"Warn\"",
        ),
        (
            sound.set("/spec/validationActions", doc!([])),
            "spec.validationActions: Required value: at least one validation action is required",
        ),
        (
            sound.cut("/spec/policyName"),
            "spec.policyName: Required value",
        ),
        (
            sound.set("/spec/policyName", "A_B"),
            "spec.policyName: Invalid value: \"A_B\": a lowercase RFC 1123 subdomain must consist of",
        ),
        (
            reference(doc!({ "parameterNotFoundAction": "Deny" })),
            "spec.paramRef: Required value: one of name or selector must be specified",
        ),
        (
            reference(doc!({ "name": "a" })),
            "spec.paramRef.parameterNotFoundAction: Required value",
        ),
        (
            reference(doc!({ "name": "a", "parameterNotFoundAction": "Maybe" })),
            "spec.paramRef.parameterNotFoundAction: Unsupported value: \"Maybe\": supported values: \"Deny\", \"Allow\"",
        ),
        (
            reference(doc!({ "name": "a", "selector": {}, "parameterNotFoundAction": "Deny" })),
            "[spec.paramRef.name: Forbidden: name and selector are mutually exclusive, spec.paramRef.selector: Forbidden: name and selector are mutually exclusive]",
        ),
        (
            reference(doc!({ "name": "a/b", "parameterNotFoundAction": "Deny" })),
            "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            sound.set("/spec/matchResources", doc!({ "matchPolicy": "Fuzzy" })),
            "spec.matchResources.matchPolicy: Unsupported value: \"Fuzzy\": supported values: \"Equivalent\", \"Exact\"",
        ),
    ];
    for (object, message) in rows {
        let answer = t.create(BINDINGS, &object).await;
        answer.fails(422, "Invalid").mentions(message);
    }
}

async fn wrong_mutation_bindings_are_refused(t: &Scope) {
    let policy = mutating(t, "a", Vec::new());
    let sound = mutation_binding(&policy);
    let deletes = doc!({ "resourceRules": [(rule("", "v1", "pods", &["DELETE"]))] });
    let rows = [
        (
            sound.set("/spec/matchResources", deletes),
            "spec.matchResources.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
        ),
        (
            sound.cut("/spec/policyName"),
            "spec.policyName: Required value",
        ),
    ];
    for (object, message) in rows {
        let answer = t.create(MUTATION_BINDINGS, &object).await;
        answer.fails(422, "Invalid").mentions(message);
    }
}
