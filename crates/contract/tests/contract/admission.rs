//! What is filled in or refused because of other objects: priorities, tolerations, namespaces.

use windlass_contract::objects::{node, pod};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    pod_without_a_class_has_priority_zero,
    class_gives_the_priority,
    class_gives_the_preemption_policy,
    missing_class_is_refused,
    missing_class_of_a_generated_name_is_refused,
    system_class_gives_its_priority,
    other_number_than_that_of_the_class_is_refused,
    same_number_as_that_of_the_class_is_fine,
    other_policy_than_that_of_the_class_is_refused,
    priority_is_kept_by_an_update_without_it,
    class_value_cannot_change,
    class_policy_cannot_change,
    class_policy_must_be_known,
    system_names_of_classes_are_reserved,
    high_class_values_are_reserved,
    pod_tolerates_lost_nodes_for_five_minutes,
    toleration_of_everything_is_enough,
    own_toleration_of_unready_nodes_counts,
    toleration_of_another_effect_does_not_count,
    toleration_without_effect_counts,
    new_node_is_not_ready,
    new_node_that_says_so_is_not_ready_once,
    missing_namespace_comes_before_validity,
    templates_get_no_tolerations,
];

fn class(name: &str, value: i64) -> Doc {
    doc!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": name }, "value": value
    })
}

/// The name of a class that is there.
async fn made_class(t: &Scope, value: i64) -> String {
    let name = t.unique("class");
    t.made("priorityclasses", &class(&name, value)).await;
    name
}

/// A pod of a class. The real server learns of a class a moment after it is made.
async fn made_pod(t: &Scope, object: &Doc) -> Doc {
    loop {
        let answer = t.create("pods", object).await;
        let is_late = answer.code() == 403 && answer.text().contains("no PriorityClass");
        if !is_late {
            return answer.is(201);
        }
    }
}

async fn pod_without_a_class_has_priority_zero(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    assert_eq!(made.at("/spec/priority"), 0);
    assert_eq!(made.at("/spec/preemptionPolicy"), "PreemptLowerPriority");
    assert_eq!(made.at("/spec/priorityClassName"), &Doc::NULL);
}

async fn class_gives_the_priority(t: &Scope) {
    let name = made_class(t, 1000).await;
    let object = pod("a").set("/spec/priorityClassName", name.as_str());
    let made = made_pod(t, &object).await;
    assert_eq!(made.at("/spec/priority"), 1000);
    assert_eq!(made.at("/spec/priorityClassName"), &Doc::from(name));
}

async fn class_gives_the_preemption_policy(t: &Scope) {
    let name = t.unique("class");
    let object = class(&name, 5).set("/preemptionPolicy", "Never");
    t.made("priorityclasses", &object).await;
    let object = pod("a").set("/spec/priorityClassName", name);
    let made = made_pod(t, &object).await;
    assert_eq!(made.at("/spec/preemptionPolicy"), "Never");
}

async fn missing_class_is_refused(t: &Scope) {
    let object = pod("a").set("/spec/priorityClassName", "nope");
    t.create("pods", &object)
        .await
        .fails(403, "Forbidden")
        .says("pods \"a\" is forbidden: no PriorityClass with name nope was found")
        .is_about("", "pods", "a");
}

async fn missing_class_of_a_generated_name_is_refused(t: &Scope) {
    let object = pod("a")
        .set("/metadata", doc!({ "generateName": "gen-" }))
        .set("/spec/priorityClassName", "nope");
    t.create("pods", &object)
        .await
        .fails(403, "Forbidden")
        .says("pods \"gen-\" is forbidden: no PriorityClass with name nope was found");
}

async fn system_class_gives_its_priority(t: &Scope) {
    let object = pod("a").set("/spec/priorityClassName", "system-cluster-critical");
    let made = t.made("pods", &object).await;
    assert_eq!(made.at("/spec/priority"), 2_000_000_000);
}

async fn other_number_than_that_of_the_class_is_refused(t: &Scope) {
    t.create("pods", &pod("a").set("/spec/priority", 5))
        .await
        .fails(403, "Forbidden")
        .says(
            "pods \"a\" is forbidden: the integer value of priority (5) must not be provided in \
             pod spec; priority admission controller computed 0 from the given PriorityClass name",
        );
}

async fn same_number_as_that_of_the_class_is_fine(t: &Scope) {
    t.made("pods", &pod("a").set("/spec/priority", 0)).await;
}

async fn other_policy_than_that_of_the_class_is_refused(t: &Scope) {
    t.create("pods", &pod("a").set("/spec/preemptionPolicy", "Never"))
        .await
        .fails(403, "Forbidden")
        .says(
            "pods \"a\" is forbidden: the string value of PreemptionPolicy (Never) must not be \
             provided in pod spec; priority admission controller computed PreemptLowerPriority \
             from the given PriorityClass name",
        );
}

async fn priority_is_kept_by_an_update_without_it(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let object = made
        .cut("/spec/priority")
        .cut("/spec/preemptionPolicy")
        .cut("/spec/tolerations");
    let put = t.update("pods/a", &object).await.is(200);
    assert_eq!(put.at("/spec"), made.at("/spec"));
}

async fn class_value_cannot_change(t: &Scope) {
    let name = made_class(t, 1).await;
    t.merge(&format!("priorityclasses/{name}"), &doc!({ "value": 2 }))
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "value");
}

async fn class_policy_cannot_change(t: &Scope) {
    let name = made_class(t, 1).await;
    let patch = doc!({ "preemptionPolicy": "Never" });
    t.merge(&format!("priorityclasses/{name}"), &patch)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "preemptionPolicy");
}

async fn class_policy_must_be_known(t: &Scope) {
    let object = class(&t.unique("class"), 1).set("/preemptionPolicy", "Wish");
    t.create("priorityclasses", &object)
        .await
        .fails(422, "Invalid")
        .because("FieldValueNotSupported", "preemptionPolicy");
}

async fn system_names_of_classes_are_reserved(t: &Scope) {
    t.create("priorityclasses", &class("system-foo", 1))
        .await
        .fails(422, "Invalid")
        .says(
            "PriorityClass.scheduling.k8s.io \"system-foo\" is invalid: metadata.name: Forbidden: \
             priority class names with 'system-' prefix are reserved for system use only. error: \
             system-foo is not a known system priority class",
        );
}

async fn high_class_values_are_reserved(t: &Scope) {
    t.create("priorityclasses", &class(&t.unique("class"), 1_000_000_001))
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "value");
}

fn toleration(key: &str, seconds: i64) -> Doc {
    doc!({
        "key": (format!("node.kubernetes.io/{key}")), "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": seconds
    })
}

async fn tolerations(t: &Scope, own: Doc) -> Doc {
    let made = t
        .made("pods", &pod("a").set("/spec/tolerations", own))
        .await;
    made.at("/spec/tolerations").clone()
}

async fn pod_tolerates_lost_nodes_for_five_minutes(t: &Scope) {
    let found = tolerations(t, Doc::NULL).await;
    let expected = doc!([
        (toleration("not-ready", 300)),
        (toleration("unreachable", 300))
    ]);
    assert_eq!(found, expected);
}

async fn toleration_of_everything_is_enough(t: &Scope) {
    let own = doc!([{ "operator": "Exists" }]);
    assert_eq!(tolerations(t, own.clone()).await, own);
}

async fn own_toleration_of_unready_nodes_counts(t: &Scope) {
    let found = tolerations(t, doc!([(toleration("not-ready", 5))])).await;
    let expected = doc!([
        (toleration("not-ready", 5)),
        (toleration("unreachable", 300))
    ]);
    assert_eq!(found, expected);
}

async fn toleration_of_another_effect_does_not_count(t: &Scope) {
    let own = doc!([{
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule"
    }]);
    assert_eq!(tolerations(t, own).await.items().len(), 3);
}

async fn toleration_without_effect_counts(t: &Scope) {
    let own = doc!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists" }]);
    assert_eq!(tolerations(t, own).await.items().len(), 2);
}

async fn new_node_is_not_ready(t: &Scope) {
    let made = t.made("nodes", &node(&t.unique("n"))).await;
    let expected = doc!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
    assert_eq!(made.at("/spec/taints"), &expected);
}

async fn new_node_that_says_so_is_not_ready_once(t: &Scope) {
    let taints = doc!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
    let object = node(&t.unique("n")).set("/spec/taints", taints.clone());
    let made = t.made("nodes", &object).await;
    assert_eq!(made.at("/spec/taints"), &taints);
}

async fn missing_namespace_comes_before_validity(t: &Scope) {
    let missing = t.in_namespace(&t.unique("missing"));
    let invalid = pod("a").set("/spec", doc!({}));
    missing
        .create("pods", &invalid)
        .await
        .fails(404, "NotFound")
        .is_about("", "namespaces", missing.namespace());
}

async fn templates_get_no_tolerations(t: &Scope) {
    let object = windlass_contract::objects::deployment("a");
    let made = t.made("deployments", &object).await;
    assert_eq!(made.at("/spec/template/spec/tolerations"), &Doc::NULL);
}
