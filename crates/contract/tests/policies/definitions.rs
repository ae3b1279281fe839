//! Policies that are refused when they are written.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{
    BINDINGS, MUTATIONS, POLICIES, apply_configuration, binding, json_patch, mutating, validating,
    validation,
};

cases![
    wrong_policies_are_refused,
    wrong_expressions_are_refused,
    wrong_mutating_policies_are_refused,
    defaults_are_filled_in,
    update_is_validated,
    status_is_written_apart,
    parameters_need_a_reader,
];

async fn wrong_policies_are_refused(t: &Scope) {
    let sound = validating(t, "a", vec![validation("true")]);
    let rules = "/spec/matchConstraints/resourceRules";
    let rows = [
        (sound.cut("/spec/matchConstraints"), "spec.matchConstraints: Required value"),
        (sound.cut(rules), "spec.matchConstraints.resourceRules: Required value"),
        (
            sound.cut("/spec/validations"),
            "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]",
        ),
        (
            sound.set("/spec/failurePolicy", "Panic"),
            "spec.failurePolicy: Unsupported value: \"Panic\": supported values: \"Fail\", \"Ignore\"",
        ),
        (
            sound.set("/spec/matchConstraints/matchPolicy", "Fuzzy"),
            "spec.matchConstraints.matchPolicy: Unsupported value: \"Fuzzy\": supported values: \"Equivalent\", \"Exact\"",
        ),
        (
            sound.set(&format!("{rules}/0/operations"), doc!(["*", "CREATE"])),
            "spec.matchConstraints.resourceRules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
        ),
        (
            sound.set(&format!("{rules}/0/resourceNames"), doc!(["a", "a"])),
            "spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: \"a\"",
        ),
        (
            sound.set(&format!("{rules}/0/resources"), doc!(["*/*", "pods"])),
            "if '*/*' is present, must not specify other resources",
        ),
        (
            sound.set("/spec/paramKind", doc!({ "kind": "A" })),
            "spec.paramKind.apiVersion: Required value",
        ),
        (
            sound.set("/spec/paramKind", doc!({ "apiVersion": "a/b/c", "kind": "A" })),
            "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
        ),
        (
            sound.set("/spec/paramKind", doc!({ "apiVersion": "v1" })),
            "spec.paramKind.kind: Required value",
        ),
        (
            sound.set("/spec/validations/0/reason", "Bad"),
            "spec.validations[0].reason: Unsupported value: \"Bad\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
        ),
        (
            sound.set("/spec/validations/0/message", "a\nb"),
            "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            sound.set("/spec/validations/0/message", " "),
            "spec.validations[0].message: Invalid value: \" \": must be non-empty if specified",
        ),
        (
            sound.set("/spec/validations/0/messageExpression", " "),
            "spec.validations[0].messageExpression: Invalid value: \" \": must be non-empty if specified",
        ),
        (
            sound.set("/spec/variables", doc!([{ "name": "if", "expression": "1" }])),
            "spec.variables[0].name: Invalid value: \"if\": must be a valid CEL identifier",
        ),
        (
            sound.set("/spec/variables", doc!([{ "name": "a", "expression": " " }])),
            "spec.variables[0].expression: Required value: expression is not specified",
        ),
        (
            sound.set("/spec/matchConditions", doc!([{ "name": "a", "expression": " " }])),
            "spec.matchConditions[0].expression: Required value",
        ),
        (
            sound.set("/spec/matchConditions", doc!([{ "expression": "true" }])),
            "spec.matchConditions[0].name: Required value",
        ),
        (
            sound.set(
                "/spec/auditAnnotations",
                doc!([{ "key": "a", "valueExpression": "'a'" }, { "key": "a", "valueExpression": "'b'" }]),
            ),
            "spec.auditAnnotations[1].key: Duplicate value: \"a\"",
        ),
        (
            sound.set("/spec/auditAnnotations", doc!([{ "key": "a b", "valueExpression": "'a'" }])),
            "spec.auditAnnotations[0].key: Invalid value: ",
        ),
        (
            sound.set("/spec/auditAnnotations", doc!([{ "key": "a", "valueExpression": " " }])),
            "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
        ),
    ];
    for (object, message) in rows {
        let answer = t.create(POLICIES, &object).await;
        answer.fails(422, "Invalid").mentions(message);
    }
}

async fn wrong_expressions_are_refused(t: &Scope) {
    let rows = [
        ("object.spec.flag", "must evaluate to bool but got dyn"),
        ("1", "must evaluate to bool but got int"),
        ("[true]", "must evaluate to bool but got list(bool)"),
        ("{'a': 1}", "must evaluate to bool but got map(string, int)"),
        ("null", "must evaluate to bool but got null_type"),
        (
            "object.?a",
            "must evaluate to bool but got optional_type(dyn)",
        ),
        (
            "timestamp('2026-01-01T00:00:00Z')",
            "must evaluate to bool but got google.protobuf.Timestamp",
        ),
        (
            "authorizer",
            "must evaluate to bool but got kubernetes.authorization.Authorizer",
        ),
        (
            "nothing == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')\n | nothing == 1\n | ^",
        ),
        (
            "params == null",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')",
        ),
        (
            "variables.a == 1",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')",
        ),
        ("request.uid == ''", "undefined field 'uid'"),
        ("request.object == null", "undefined field 'object'"),
        (
            "namespaceObject.metadata.ownerReferences == []",
            "undefined field 'ownerReferences'",
        ),
        (
            "request.operation == 1",
            "found no matching overload for '_==_' applied to '(string, int)'",
        ),
        (
            "authorizer.check('get').allowed()",
            "found no matching overload for 'check'",
        ),
        (
            "Object{} == Object{}",
            "undeclared reference to 'Object' (in container '')",
        ),
        (
            "cel.bind(a, 1, a == 1)",
            "undeclared reference to 'cel' (in container '')",
        ),
        (
            "object.a ==",
            "Syntax error: mismatched input '<EOF>' expecting ",
        ),
        (
            "object.in == 1",
            "Syntax error: no viable alternative at input '.in'",
        ),
        ("if == 1", "reserved identifier: if"),
    ];
    for (expression, message) in rows {
        let policy = validating(t, "a", vec![validation(expression)]);
        let refusal = t.create(POLICIES, &policy).await.fails(422, "Invalid");
        let refusal = refusal.because("FieldValueInvalid", "spec.validations[0].expression");
        refusal.mentions(message);
    }
    let sound = validating(t, "a", vec![validation("true")]);
    let rows = [
        (
            "/spec/validations/0/messageExpression",
            doc!("1"),
            "must evaluate to string but got int",
        ),
        (
            "/spec/validations/0/messageExpression",
            doc!("authorizer.path('/').check('get').reason()"),
            "undeclared reference to 'authorizer' (in container '')",
        ),
        (
            "/spec/auditAnnotations",
            doc!([{ "key": "a", "valueExpression": "1" }]),
            "must evaluate to one of [string null_type] but got int",
        ),
        (
            "/spec/matchConditions",
            doc!([{ "name": "a", "expression": "1" }]),
            "must evaluate to bool but got int",
        ),
        (
            "/spec/variables",
            doc!([{ "name": "a", "expression": "variables.b" }, { "name": "b", "expression": "1" }]),
            "spec.variables[0].expression: Invalid value: \"variables.b\": compilation failed: ERROR: <input>:1:10: undefined field 'b'",
        ),
    ];
    for (pointer, value, message) in rows {
        let answer = t.create(POLICIES, &sound.set(pointer, value)).await;
        answer.fails(422, "Invalid").mentions(message);
    }
}

async fn wrong_mutating_policies_are_refused(t: &Scope) {
    let sound = mutating(t, "a", vec![apply_configuration("Object{}")]);
    let mutation = |mutation: Doc| sound.set("/spec/mutations", Doc::from(vec![mutation]));
    let rows = [
        (
            sound.set(
                "/spec/matchConstraints/resourceRules/0/operations",
                doc!(["DELETE"]),
            ),
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
        ),
        (
            sound.cut("/spec/mutations"),
            "spec.mutations: Required value: mutations must contain at least one item",
        ),
        (
            sound.cut("/spec/reinvocationPolicy"),
            "spec.reinvocationPolicy: Required value",
        ),
        (
            sound.set("/spec/reinvocationPolicy", "Often"),
            "spec.reinvocationPolicy: Unsupported value: \"Often\": supported values: \"IfNeeded\", \"Never\"",
        ),
        (
            mutation(doc!({ "patchType": "Magic" })),
            "spec.mutations[0].patchType: Unsupported value: \"Magic\": supported values: \"ApplyConfiguration\", \"JSONPatch\"",
        ),
        (
            mutation(doc!({ "patchType": "JSONPatch" })),
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            mutation(
                json_patch("[]").set("/applyConfiguration", doc!({ "expression": "Object{}" })),
            ),
            "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
        ),
        (
            mutation(apply_configuration(" ")),
            "spec.mutations[0].applyConfiguration.expression: Required value",
        ),
        (
            mutation(apply_configuration("1")),
            "must evaluate to Object but got int",
        ),
        (
            mutation(apply_configuration("Object.spec{}")),
            "must evaluate to Object but got Object.spec",
        ),
        (
            mutation(json_patch("1")),
            "must evaluate to list(JSONPatch) but got int",
        ),
        (
            mutation(json_patch("[JSONPatch{op: 1}]")),
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (
            mutation(apply_configuration("Thing{}")),
            "undeclared reference to 'Thing' (in container '')",
        ),
    ];
    for (object, message) in rows {
        let answer = t.create(MUTATIONS, &object).await;
        answer.fails(422, "Invalid").mentions(message);
    }
}

async fn defaults_are_filled_in(t: &Scope) {
    let policy = validating(t, "a", vec![validation("true")]);
    let policy = policy.cut("/spec/matchConstraints/namespaceSelector");
    let made = t.made(POLICIES, &policy).await;
    let spec = made.at("/spec");
    assert_eq!(spec.at("/failurePolicy"), "Fail");
    assert_eq!(spec.at("/matchConstraints/matchPolicy"), "Equivalent");
    assert_eq!(spec.at("/matchConstraints/namespaceSelector"), &doc!({}));
    assert_eq!(spec.at("/matchConstraints/objectSelector"), &doc!({}));
    assert_eq!(spec.at("/matchConstraints/resourceRules/0/scope"), "*");
    let made = t
        .made(
            MUTATIONS,
            &mutating(t, "a", vec![apply_configuration("Object{}")]),
        )
        .await;
    assert_eq!(made.at("/spec/failurePolicy"), "Fail");
    assert_eq!(made.at("/spec/matchConstraints/matchPolicy"), "Equivalent");
}

async fn update_is_validated(t: &Scope) {
    let policy = validating(t, "a", vec![validation("true")]);
    let made = t.made(POLICIES, &policy).await;
    let path = format!("{POLICIES}/{}", policy.meta().name());
    let wrong = made.set("/spec/validations/0/expression", "1");
    t.update(&path, &wrong)
        .await
        .fails(422, "Invalid")
        .mentions("must evaluate to bool but got int");
    let other = made.set("/spec/validations/0/expression", "false");
    let updated = t.update(&path, &other).await.is(200);
    assert_eq!(updated.at("/metadata/generation"), 2);
}

/// A user who may write policies and bindings, and nothing else.
async fn author(t: &Scope) -> Scope {
    let role = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": (t.unique("author")) },
        "rules": [{
            "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]
        }]
    });
    t.made("clusterroles", &role).await;
    let bound = doc!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": (t.unique("author")) },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": (t.unique("author"))
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": (t.unique("jane"))
        }]
    });
    t.made("clusterrolebindings", &bound).await;
    t.as_user(&t.unique("jane"))
}

async fn parameters_need_a_reader(t: &Scope) {
    let jane = author(t).await;
    let policy = validating(t, "a", vec![validation("true")]);
    // The real server learns of the role a moment later.
    while jane.create(POLICIES, &policy).await.code() == 403 {}
    let other = validating(t, "b", vec![validation("true")]).set(
        "/spec/paramKind",
        doc!({ "apiVersion": "v1", "kind": "Secret" }),
    );
    let who = format!("&{{{}  [system:authenticated] map[]}}", t.unique("jane"));
    let why = format!(
        "spec.paramKind: Forbidden: user {who} must have \"get\" permission on all objects of the \
         referenced paramKind (kind=Secret, apiVersion=v1)"
    );
    jane.create(POLICIES, &other)
        .await
        .fails(422, "Invalid")
        .mentions(&why);
    t.made(POLICIES, &other).await;
    let reference = doc!({ "name": "s", "parameterNotFoundAction": "Deny" });
    let binding = binding(&other, &["Deny"]).set("/spec/paramRef", reference);
    let why = format!(
        "spec.paramRef: Forbidden: user {who} does not have \"get\" permission on the object \
         referenced by paramRef"
    );
    jane.create(BINDINGS, &binding)
        .await
        .fails(422, "Invalid")
        .mentions(&why);
}

async fn status_is_written_apart(t: &Scope) {
    let policy = validating(t, "a", vec![validation("true")]);
    t.made(POLICIES, &policy).await;
    let path = format!("{POLICIES}/{}/status", policy.meta().name());
    let status = |warnings: Doc| doc!({ "status": { "observedGeneration": 1, "typeChecking": { "expressionWarnings": warnings } } });
    let warnings = doc!([{ "fieldRef": "spec.validations[0].expression", "warning": "w" }]);
    let made = t.merge(&path, &status(warnings)).await.is(200);
    assert_eq!(
        made.at("/status/typeChecking/expressionWarnings/0/warning"),
        "w"
    );
    assert_eq!(made.at("/metadata/generation"), 1);
    let wrong = doc!([{ "fieldRef": " ", "warning": "w" }]);
    t.merge(&path, &status(wrong))
        .await
        .fails(422, "Invalid")
        .mentions("status.typeChecking.expressionWarnings[0].fieldRef: Required value");
}
