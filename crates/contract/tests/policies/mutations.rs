//! Mutating policies: apply configurations, JSON patches, errors, order, reinvocation.

use windlass_contract::managers;
use windlass_contract::objects::{config_map, deployment};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

use crate::support::{
    MUTATION_BINDINGS, MUTATIONS, apply_configuration, constraints, in_force, json_patch, mutating,
    mutation_binding, rule, settle_mutations,
};

cases![
    configuration_is_applied,
    configuration_merges_lists_by_their_keys,
    update_is_mutated,
    mutation_sees_the_one_before,
    added_fields_have_no_owner,
    result_is_defaulted,
    json_patch_is_applied,
    json_patch_with_a_test_that_fails_is_not_applied,
    json_patch_that_does_not_fit_is_refused,
    atomic_list_is_refused,
    unknown_field_is_refused,
    wrong_type_name_is_refused,
    evaluation_error_is_refused,
    evaluation_error_is_ignored,
    condition_that_is_false_skips_the_mutation,
    missing_params_are_refused,
    params_are_seen,
    variables_are_seen,
    reinvoked_policy_runs_twice,
    policy_that_is_not_reinvoked_runs_once,
    optional_fields_are_left_out,
];

const LABEL: &str = "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}";

async fn configuration_is_applied(t: &Scope) {
    in_force(t, &mutating(t, "a", vec![apply_configuration(LABEL)])).await;
    let object = config_map("x").set("/metadata/labels", doc!({ "own": "1" }));
    let made = t.made("configmaps", &object).await;
    assert_eq!(
        made.at("/metadata/labels"),
        &doc!({ "added": "yes", "own": "1" })
    );
}

fn about_deployments(t: &Scope, mutations: Vec<Doc>) -> Doc {
    let rules = vec![rule("apps", "v1", "deployments", &["CREATE", "UPDATE"])];
    mutating(t, "a", mutations).set("/spec/matchConstraints", constraints(t, rules))
}

async fn configuration_merges_lists_by_their_keys(t: &Scope) {
    let expression = "Object{spec: Object.spec{replicas: object.spec.replicas + 1, template: \
                      Object.spec.template{spec: Object.spec.template.spec{containers: \
                      [Object.spec.template.spec.containers{name: 'added', image: 'b'}]}}}}";
    in_force(
        t,
        &about_deployments(t, vec![apply_configuration(expression)]),
    )
    .await;
    let made = t
        .made("deployments", &deployment("x").set("/spec/replicas", 2))
        .await;
    assert_eq!(made.at("/spec/replicas"), 3);
    let containers = made.at("/spec/template/spec/containers").items();
    assert_eq!(containers.len(), 2);
    assert_eq!(containers[1].at("/name"), "added");
    assert_eq!(containers[1].at("/imagePullPolicy"), "Always");
}

async fn update_is_mutated(t: &Scope) {
    t.made("configmaps", &config_map("x")).await;
    let expression = "Object{metadata: Object.metadata{labels: {'old': oldObject.metadata.name}}}";
    let policy = mutating(t, "a", vec![apply_configuration(expression)]);
    let policy = policy.set(
        "/spec/matchConstraints/resourceRules/0/operations",
        doc!(["UPDATE"]),
    );
    in_force(t, &policy).await;
    let changed = t
        .merge("configmaps/x", &doc!({ "data": { "a": "b" } }))
        .await
        .is(200);
    assert_eq!(changed.at("/metadata/labels/old"), "x");
}

async fn mutation_sees_the_one_before(t: &Scope) {
    let second =
        "Object{metadata: Object.metadata{labels: {'second': object.metadata.labels.added}}}";
    let mutations = vec![apply_configuration(LABEL), apply_configuration(second)];
    in_force(t, &mutating(t, "a", mutations)).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/second"), "yes");
}

async fn added_fields_have_no_owner(t: &Scope) {
    in_force(t, &mutating(t, "a", vec![apply_configuration(LABEL)])).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/added"), "yes");
    assert!(!managers(&made).to_string().contains("added"));
}

async fn result_is_defaulted(t: &Scope) {
    let expression = "[JSONPatch{op: 'add', path: '/spec/template/spec/initContainers', value: \
                      [{'name': 'init', 'image': 'i'}]}]";
    in_force(t, &about_deployments(t, vec![json_patch(expression)])).await;
    let made = t.made("deployments", &deployment("x")).await;
    let added = made.at("/spec/template/spec/initContainers/0");
    assert_eq!(added.at("/terminationMessagePolicy"), "File");
}

async fn json_patch_is_applied(t: &Scope) {
    let expression = "[JSONPatch{op: 'test', path: '/metadata/name', value: 'x'}, \
                      JSONPatch{op: 'add', path: '/metadata/labels', value: {}}, \
                      JSONPatch{op: 'add', path: '/metadata/labels/' + \
                      jsonpatch.escapeKey('example.com/a'), value: 'b'}, \
                      JSONPatch{op: 'move', from: '/data/key', path: '/data/moved'}]";
    in_force(t, &mutating(t, "a", vec![json_patch(expression)])).await;
    let object = config_map("x").set("/data", doc!({ "key": "v" }));
    let made = t.made("configmaps", &object).await;
    assert_eq!(made.at("/metadata/labels"), &doc!({ "example.com/a": "b" }));
    assert_eq!(made.at("/data"), &doc!({ "moved": "v" }));
}

async fn json_patch_with_a_test_that_fails_is_not_applied(t: &Scope) {
    let expression = "[JSONPatch{op: 'test', path: '/metadata/name', value: 'other'}, \
                      JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]";
    in_force(t, &mutating(t, "a", vec![json_patch(expression)])).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert!(made.at("/metadata/labels").is_null());
}

fn denial(policy: &Doc, why: &str) -> String {
    let name = policy.meta().name();
    format!("policy '{name}' with binding '{name}' denied request: {why}")
}

async fn json_patch_that_does_not_fit_is_refused(t: &Scope) {
    let expression = "[JSONPatch{op: 'remove', path: '/metadata/labels/absent'}]";
    let policy = mutating(t, "a", vec![json_patch(expression)]);
    in_force(t, &policy).await;
    t.create("configmaps", &config_map("x"))
        .await
        .fails(403, "Invalid")
        .mentions(&denial(&policy, "JSON Patch: "));
}

async fn atomic_list_is_refused(t: &Scope) {
    let expression = "Object{spec: Object.spec{template: Object.spec.template{spec: \
                      Object.spec.template.spec{containers: \
                      [Object.spec.template.spec.containers{name: 'c', command: ['a']}]}}}}";
    let policy = about_deployments(t, vec![apply_configuration(expression)]);
    in_force(t, &policy).await;
    let why = denial(
        &policy,
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or \
         structs: .spec.template.spec.containers[0].command",
    );
    let refusal = t
        .create("deployments", &deployment("x"))
        .await
        .fails(403, "Invalid");
    let refusal = refusal.says(&why).is_about("apps", "deployments", "x");
    assert_eq!(refusal.causes(), [doc!({ "message": why })]);
}

async fn unknown_field_is_refused(t: &Scope) {
    let expression = "Object{spec: Object.spec{nothing: 1}}";
    let policy = about_deployments(t, vec![apply_configuration(expression)]);
    in_force(t, &policy).await;
    let why = "error applying patch: failed to convert patch object to typed object: \
               .spec.nothing: field not declared in schema";
    let answer = t.create("deployments", &deployment("x")).await;
    answer.fails(403, "Invalid").says(&denial(&policy, why));
}

async fn wrong_type_name_is_refused(t: &Scope) {
    let expression = "Object{metadata: Object.spec{labels: {'a': 'b'}}}";
    let policy = mutating(t, "a", vec![apply_configuration(expression)]);
    in_force(t, &policy).await;
    let why = "type mismatch: unexpected type name \"Object.spec\", expected \"Object.metadata\", \
               which matches field name path from root Object type";
    let answer = t.create("configmaps", &config_map("x")).await;
    answer.fails(403, "Invalid").says(&denial(&policy, why));
}

const BROKEN: &str = "Object{metadata: Object.metadata{labels: {'a': string(object.nothing)}}}";

async fn evaluation_error_is_refused(t: &Scope) {
    let mutations = vec![apply_configuration(BROKEN), apply_configuration(BROKEN)];
    let policy = mutating(t, "a", mutations);
    in_force(t, &policy).await;
    let why = format!("expression '{BROKEN}' resulted in error: no such key: nothing");
    let refusal = t
        .create("configmaps", &config_map("x"))
        .await
        .fails(403, "Invalid");
    let refusal = refusal.says(&denial(&policy, &why));
    assert_eq!(refusal.causes().len(), 2, "every error is a cause");
}

async fn evaluation_error_is_ignored(t: &Scope) {
    let mutations = vec![apply_configuration(BROKEN), apply_configuration(LABEL)];
    let policy = mutating(t, "a", mutations).set("/spec/failurePolicy", "Ignore");
    in_force(t, &policy).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/added"), "yes");
}

async fn condition_that_is_false_skips_the_mutation(t: &Scope) {
    let conditions = doc!([{ "name": "named", "expression": "object.metadata.name == 'x'" }]);
    let policy = mutating(t, "a", vec![apply_configuration(LABEL)]);
    in_force(t, &policy.set("/spec/matchConditions", conditions)).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/added"), "yes");
    let made = t.made("configmaps", &config_map("y")).await;
    assert!(made.at("/metadata/labels").is_null());
}

async fn with_params(t: &Scope, expression: &str) -> Doc {
    let kind = doc!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let rules = vec![rule("apps", "v1", "deployments", &["CREATE"])];
    let policy = mutating(t, "a", vec![apply_configuration(expression)])
        .set("/spec/matchConstraints", constraints(t, rules))
        .set("/spec/paramKind", kind);
    t.made(MUTATIONS, &policy).await;
    let reference = doc!({ "name": "params", "parameterNotFoundAction": "Deny" });
    let binding = mutation_binding(&policy).set("/spec/paramRef", reference);
    t.made(MUTATION_BINDINGS, &binding).await;
    settle_mutations(t).await;
    policy
}

async fn missing_params_are_refused(t: &Scope) {
    let policy = with_params(t, "Object{}").await;
    let why = "failed to configure binding: no params found for policy binding with `Deny` \
               parameterNotFoundAction";
    let answer = t.create("deployments", &deployment("x")).await;
    answer.fails(403, "Forbidden").says(&denial(&policy, why));
}

async fn params_are_seen(t: &Scope) {
    t.made(
        "configmaps",
        &config_map("params").set("/data", doc!({ "replicas": "7" })),
    )
    .await;
    with_params(
        t,
        "Object{spec: Object.spec{replicas: int(params.data.replicas)}}",
    )
    .await;
    let made = t.made("deployments", &deployment("x")).await;
    assert_eq!(made.at("/spec/replicas"), 7);
}

async fn variables_are_seen(t: &Scope) {
    let expression = "Object{metadata: Object.metadata{labels: {'v': variables.twice}}}";
    let variables = doc!([
        { "name": "name", "expression": "object.metadata.name" },
        { "name": "twice", "expression": "variables.name + variables.name" }
    ]);
    let policy = mutating(t, "a", vec![apply_configuration(expression)]);
    in_force(t, &policy.set("/spec/variables", variables)).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/v"), "xx");
}

/// Counts how often it runs.
const COUNT: &str = "Object{metadata: Object.metadata{labels: {'runs': \
                     object.?metadata.?labels.?runs.orValue('') + 'i'}}}";

async fn reinvoked_policy_runs_twice(t: &Scope) {
    let policy = mutating(t, "a", vec![apply_configuration(COUNT)]);
    in_force(t, &policy.set("/spec/reinvocationPolicy", "IfNeeded")).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/runs"), "ii");
}

async fn policy_that_is_not_reinvoked_runs_once(t: &Scope) {
    in_force(t, &mutating(t, "a", vec![apply_configuration(COUNT)])).await;
    let made = t.made("configmaps", &config_map("x")).await;
    assert_eq!(made.at("/metadata/labels/runs"), "i");
}

async fn optional_fields_are_left_out(t: &Scope) {
    let expression = "Object{?immutable: optional.none(), metadata: Object.metadata{labels: \
                      {?'absent': object.?data.?absent, ?'there': object.?data.?key}}}";
    in_force(t, &mutating(t, "a", vec![apply_configuration(expression)])).await;
    let made = t
        .made(
            "configmaps",
            &config_map("x").set("/data", doc!({ "key": "v" })),
        )
        .await;
    assert_eq!(made.at("/metadata/labels"), &doc!({ "there": "v" }));
    assert!(made.at("/immutable").is_null());
}
