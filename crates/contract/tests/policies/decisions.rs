//! Decisions: codes, reasons, messages, actions.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{
    BINDINGS, POLICIES, binding, denying, settle, validating, validation, warnings,
};

cases![
    denial_is_invalid,
    reasons_have_their_codes,
    first_denial_is_the_answer,
    warnings_tell_every_validation,
    warned_object_is_stored,
    audited_object_is_stored,
    policy_without_binding_has_no_effect,
    deleted_binding_frees_requests,
    update_and_delete_are_validated,
    generated_name_is_named_in_the_denial,
    dry_run_is_denied,
    patch_and_apply_are_denied,
    errors_deny,
    errors_are_ignored,
    budget_runs_out,
    messages_fall_back,
    annotation_errors_deny,
];

async fn denial_is_invalid(t: &Scope) {
    let policy = validating(t, "a", vec![validation("object.data.k == 'v'")]);
    denying(t, &policy).await;
    let object = config_map("x").set("/data", doc!({ "k": "w" }));
    let name = policy.meta().name();
    let why = format!(
        "ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: failed \
         expression: object.data.k == 'v'"
    );
    let refusal = t
        .create("configmaps", &object)
        .await
        .fails(422, "Invalid")
        .says(&format!("configmaps \"x\" is forbidden: {why}"))
        .is_about("", "configmaps", "x");
    assert_eq!(refusal.causes(), [doc!({ "message": why })]);
    let object = config_map("x").set("/data", doc!({ "k": "v" }));
    t.made("configmaps", &object).await;
}

async fn reasons_have_their_codes(t: &Scope) {
    let rows = [
        ("Forbidden", 403),
        ("Invalid", 422),
        ("RequestEntityTooLarge", 413),
    ];
    let validations = rows.map(|(reason, _)| {
        doc!({
            "expression": (format!("object.metadata.name != '{}'", reason.to_lowercase())),
            "reason": reason, "message": " no "
        })
    });
    let policy = validating(t, "a", validations.to_vec());
    denying(t, &policy).await;
    for (reason, code) in rows {
        let answer = t
            .create("configmaps", &config_map(&reason.to_lowercase()))
            .await;
        answer.fails(code, reason).mentions("denied request: no");
    }
}

async fn first_denial_is_the_answer(t: &Scope) {
    let validations = ["1 == 1", "1 == 2", "1 == 3"].map(validation).to_vec();
    let policy = validating(t, "a", validations);
    denying(t, &policy).await;
    let refusal = t
        .create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    assert_eq!(
        refusal.mentions("failed expression: 1 == 2").causes().len(),
        1
    );
}

async fn warnings_tell_every_validation(t: &Scope) {
    let validations = vec![
        validation("1 == 2"),
        validation("object.metadata.name == 'x'"),
        doc!({ "expression": "false", "message": "fixed" }),
        doc!({ "expression": "false", "messageExpression": "'made of ' + object.metadata.name" }),
        validation("object.nothing == 1"),
    ];
    let policy = validating(t, "a", validations);
    let found = warnings(t, &policy, &config_map("x")).await;
    let wanted = [
        "failed expression: 1 == 2",
        "fixed",
        "made of x",
        "expression 'object.nothing == 1' resulted in error: no such key: nothing",
    ];
    assert_eq!(found, wanted);
}

async fn warned_object_is_stored(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    assert_eq!(warnings(t, &policy, &config_map("x")).await.len(), 1);
    t.get("configmaps/x").await.is(200);
}

async fn audited_object_is_stored(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    t.made(POLICIES, &policy).await;
    t.made(BINDINGS, &binding(&policy, &["Audit"])).await;
    settle(t).await;
    let answer = t.create("configmaps", &config_map("x")).await;
    answer.is(201);
    assert!(answer.headers("warning").is_empty());
}

async fn policy_without_binding_has_no_effect(t: &Scope) {
    let policy = validating(t, "a", vec![validation("false")]);
    let made = t.made(POLICIES, &policy).await;
    assert_eq!(made.at("/spec/failurePolicy"), "Fail");
    assert_eq!(made.at("/metadata/generation"), 1);
    settle(t).await;
    t.made("configmaps", &config_map("x")).await;
}

async fn deleted_binding_frees_requests(t: &Scope) {
    let policy = validating(t, "a", vec![validation("object.metadata.name != 'x'")]);
    denying(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    let path = format!("{BINDINGS}/{}", policy.meta().name());
    t.delete(&path).await.is(200);
    settle(t).await;
    t.made("configmaps", &config_map("x")).await;
}

async fn update_and_delete_are_validated(t: &Scope) {
    let expression = "request.operation == 'CREATE' ? oldObject == null : \
                      (request.operation == 'UPDATE' ? oldObject.data != object.data : \
                      object == null && oldObject.data.key != 'kept')";
    let policy = validating(t, "a", vec![validation(expression)]);
    denying(t, &policy).await;
    let object = config_map("x").set("/data", doc!({ "key": "kept" }));
    let made = t.made("configmaps", &object).await;
    t.update(
        "configmaps/x",
        &made.set("/metadata/labels", doc!({ "a": "b" })),
    )
    .await
    .fails(422, "Invalid");
    t.delete("configmaps/x").await.fails(422, "Invalid");
    t.merge("configmaps/x", &doc!({ "data": { "key": "free" } }))
        .await
        .is(200);
    t.delete("configmaps/x").await.is(200);
}

async fn generated_name_is_named_in_the_denial(t: &Scope) {
    let validations =
        vec![doc!({ "expression": "!has(object.metadata.generateName)", "message": "m" })];
    let policy = validating(t, "a", validations);
    denying(t, &policy).await;
    let object = config_map("x")
        .cut("/metadata/name")
        .set("/metadata/generateName", "gen-");
    let refusal = t.create("configmaps", &object).await.fails(422, "Invalid");
    assert!(
        refusal
            .status()
            .str_at("/message")
            .starts_with("configmaps \"gen-")
    );
}

async fn dry_run_is_denied(t: &Scope) {
    let policy = validating(t, "a", vec![validation("!request.dryRun")]);
    denying(t, &policy).await;
    t.create("configmaps?dryRun=All", &config_map("x"))
        .await
        .fails(422, "Invalid");
    t.made("configmaps", &config_map("x")).await;
}

async fn patch_and_apply_are_denied(t: &Scope) {
    let expression = "request.operation == 'CREATE' || request.options.kind != 'UpdateOptions'";
    t.made("configmaps", &config_map("x")).await;
    let policy = validating(t, "a", vec![validation(expression)]);
    denying(t, &policy).await;
    let change = doc!({ "data": { "a": "b" } });
    t.merge("configmaps/x", &change).await.fails(422, "Invalid");
    let applied = config_map("x").set("/data", doc!({ "a": "c" }));
    t.apply("me", "configmaps/x", &applied)
        .await
        .fails(422, "Invalid");
    // An apply that makes an object is a create.
    t.apply("me", "configmaps/y", &config_map("y"))
        .await
        .is(201);
}

async fn errors_deny(t: &Scope) {
    let policy = validating(t, "a", vec![validation("object.spec.replicas > 1")]);
    denying(t, &policy).await;
    let refusal = t
        .create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    refusal.mentions(
        "denied request: expression 'object.spec.replicas > 1' resulted in error: no such key: spec",
    );
}

async fn errors_are_ignored(t: &Scope) {
    let validations = vec![
        validation("object.spec.replicas > 1"),
        validation("object.metadata.name != 'y'"),
    ];
    let policy = validating(t, "a", validations).set("/spec/failurePolicy", "Ignore");
    denying(t, &policy).await;
    t.made("configmaps", &config_map("x")).await;
    t.create("configmaps", &config_map("y"))
        .await
        .fails(422, "Invalid");
}

/// An expression that costs about half of what one evaluation may.
const HALF: &str = "lists.range(300).all(x, lists.range(300).all(y, x + y >= 0))";

async fn budget_runs_out(t: &Scope) {
    let one = format!("{HALF} && {HALF} && {HALF} && {HALF}");
    let policy = validating(t, "a", vec![validation(&one)]);
    denying(t, &policy).await;
    let refusal = t
        .create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    refusal.mentions("resulted in error: operation cancelled: actual cost limit exceeded");
    let path = format!("{POLICIES}/{}", policy.meta().name());
    let all: Vec<Doc> = (0..40).map(|_| validation(HALF)).collect();
    t.merge(
        &path,
        &doc!({ "spec": { "validations": (Doc::from(all)) } }),
    )
    .await
    .is(200);
    settle(t).await;
    let refusal = t
        .create("configmaps", &config_map("x"))
        .await
        .fails(422, "Invalid");
    refusal.mentions(
        "denied request: validation failed due to running out of cost budget, no further \
         validation rules will be run",
    );
    t.merge(&path, &doc!({ "spec": { "failurePolicy": "Ignore" } }))
        .await
        .is(200);
    settle(t).await;
    t.made("configmaps", &config_map("x")).await;
}

async fn messages_fall_back(t: &Scope) {
    let long = format!("'{}'", "m".repeat(4000));
    let rows: [(&str, &str, &str); 6] = [
        ("'a\\nb'", "fixed", "fixed"),
        ("'a\\nb'", "", "failed expression: false && 1 == 1"),
        ("'  '", "", "failed expression: false && 2 == 1"),
        ("object.nothing", " fixed too ", "fixed too"),
        ("' trimmed '", "fixed", "trimmed"),
        (&format!("{long} + {long}"), "too long", "too long"),
    ];
    let validations = rows
        .iter()
        .enumerate()
        .map(|(at, (expression, message, _))| {
            let expression = match *expression {
                "object.nothing" => "string(object.nothing)",
                expression => expression,
            };
            let number = if at == 2 { 2 } else { 1 };
            let given = doc!({
                "expression": (format!("false && {number} == 1")), "messageExpression": expression
            });
            match *message {
                "" => given,
                message => given.set("/message", message),
            }
        });
    let policy = validating(t, "a", validations.collect());
    let found = warnings(t, &policy, &config_map("x")).await;
    assert_eq!(found, rows.map(|(_, _, wanted)| wanted.to_owned()));
}

async fn annotation_errors_deny(t: &Scope) {
    let annotations = doc!([
        { "key": "fine", "valueExpression": "'name ' + object.metadata.name" },
        { "key": "none", "valueExpression": "null" },
        { "key": "asks", "valueExpression": "string(object.data.number)" }
    ]);
    let policy = validating(t, "a", Vec::new()).cut("/spec/validations");
    let policy = policy.set("/spec/auditAnnotations", annotations);
    t.made(POLICIES, &policy).await;
    // Annotations that fail deny, whatever the actions of the binding.
    t.made(BINDINGS, &binding(&policy, &["Audit"])).await;
    settle(t).await;
    let object = config_map("x").set("/data", doc!({ "number": "1" }));
    t.made("configmaps", &object).await;
    let refusal = t
        .create("configmaps", &config_map("y").set("/data", doc!({})))
        .await;
    refusal
        .fails(422, "Invalid")
        .mentions("expression 'string(object.data.number)' resulted in error: no such key: ");
}
