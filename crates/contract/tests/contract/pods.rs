//! What only pods do: binding, eviction and graceful deletion.

use windlass_contract::objects::{held, labeled, pod};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    binding_assigns_a_node,
    binding_through_the_collection_assigns_a_node,
    bound_pod_cannot_be_bound_again,
    binding_of_another_name_is_refused,
    binding_of_a_missing_pod_is_not_found,
    binding_of_a_deleted_pod_is_a_conflict,
    binding_of_a_gated_pod_is_refused,
    binding_adds_annotations,
    gated_pod_says_so,
    unbound_pod_is_deleted_at_once,
    finished_pod_is_deleted_at_once,
    bound_pod_is_deleted_gracefully,
    grace_period_of_the_request_wins,
    grace_period_in_the_query_counts,
    grace_period_can_only_shrink,
    grace_period_zero_removes_at_once,
    negative_grace_period_is_one_second,
    grace_period_of_the_spec_is_the_default,
    finalizer_outlasts_the_grace_period,
    eviction_deletes_a_pod,
    eviction_of_another_name_is_refused,
    eviction_of_a_missing_pod_is_not_found,
    eviction_honours_its_delete_options,
    eviction_honours_preconditions,
    eviction_refuses_wrong_delete_options,
    budget_without_room_refuses_an_eviction,
    budget_does_not_guard_a_finished_pod,
    log_of_an_unbound_pod_is_empty,
];

fn bound(name: &str) -> Doc {
    pod(name).set("/spec/nodeName", "n")
}

fn binding(name: &str, node: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node }
    })
}

fn eviction(name: &str) -> Doc {
    doc!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } })
}

async fn set_phase(t: &Scope, name: &str, phase: &str) {
    let status = doc!({ "status": { "phase": phase } });
    t.merge(&format!("pods/{name}/status"), &status)
        .await
        .is(200);
}

async fn binding_assigns_a_node(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let status = t.create("pods/a/binding", &binding("a", "n")).await.is(201);
    assert_eq!(
        (status.str_at("/kind"), status.str_at("/status")),
        ("Status", "Success")
    );
    let bound = t.get("pods/a").await.is(200);
    assert_eq!(bound.at("/spec/nodeName"), "n");
    assert_eq!(bound.at("/status/conditions/0/type"), "PodScheduled");
    assert_eq!(bound.at("/status/conditions/0/status"), "True");
    assert_eq!(bound.at("/metadata/generation"), 1);
}

async fn binding_through_the_collection_assigns_a_node(t: &Scope) {
    t.made("pods", &pod("a")).await;
    t.create("bindings", &binding("a", "n")).await.is(201);
    assert_eq!(t.get("pods/a").await.is(200).at("/spec/nodeName"), "n");
}

async fn bound_pod_cannot_be_bound_again(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let answer = t.create("pods/a/binding", &binding("a", "other")).await;
    answer.fails(409, "Conflict").says(
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \
         \"n\"",
    );
}

async fn binding_of_another_name_is_refused(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let answer = t.create("pods/a/binding", &binding("b", "n")).await;
    answer
        .fails(400, "BadRequest")
        .says("name in URL does not match name in Binding object");
}

async fn binding_of_a_missing_pod_is_not_found(t: &Scope) {
    let answer = t.create("pods/a/binding", &binding("a", "n")).await;
    answer.fails(404, "NotFound").says("pods \"a\" not found");
}

async fn binding_of_a_deleted_pod_is_a_conflict(t: &Scope) {
    t.made("pods", &held(&pod("a"), &["example.com/a"])).await;
    t.delete("pods/a").await.is(200);
    let answer = t.create("pods/a/binding", &binding("a", "n")).await;
    answer.fails(409, "Conflict").says(
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is being deleted, cannot be \
         assigned to a host",
    );
}

async fn binding_of_a_gated_pod_is_refused(t: &Scope) {
    let gated = pod("a").set("/spec/schedulingGates", doc!([{ "name": "example.com/g" }]));
    t.made("pods", &gated).await;
    let answer = t.create("pods/a/binding", &binding("a", "n")).await;
    answer.fails(409, "Conflict").says(
        "Operation cannot be fulfilled on pods/binding \"a\": pod a has non-empty \
         .spec.schedulingGates",
    );
}

async fn binding_adds_annotations(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let binding = binding("a", "n").set("/metadata/annotations/x", "y");
    t.create("pods/a/binding", &binding).await.is(201);
    assert_eq!(
        t.get("pods/a").await.is(200).at("/metadata/annotations/x"),
        "y"
    );
}

async fn gated_pod_says_so(t: &Scope) {
    let gated = pod("a").set("/spec/schedulingGates", doc!([{ "name": "example.com/g" }]));
    let made = t.made("pods", &gated).await;
    let condition = made.at("/status/conditions/0");
    assert_eq!(condition.at("/type"), "PodScheduled");
    assert_eq!(condition.at("/status"), "False");
    assert_eq!(condition.at("/reason"), "SchedulingGated");
}

async fn unbound_pod_is_deleted_at_once(t: &Scope) {
    t.made("pods", &pod("a")).await;
    t.delete_with("pods/a", &doc!({ "gracePeriodSeconds": 30 }))
        .await
        .is(200);
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn finished_pod_is_deleted_at_once(t: &Scope) {
    for phase in ["Succeeded", "Failed"] {
        t.made("pods", &bound("a")).await;
        set_phase(t, "a", phase).await;
        t.delete("pods/a").await.is(200);
        t.get("pods/a").await.fails(404, "NotFound");
    }
}

async fn bound_pod_is_deleted_gracefully(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let deleted = t.delete("pods/a").await.is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 30);
    assert_eq!(deleted.at("/metadata/generation"), 2);
    let made = deleted.str_at("/metadata/creationTimestamp");
    assert!(deleted.str_at("/metadata/deletionTimestamp") > made);
    assert_eq!(t.get("pods/a").await.is(200), deleted);
}

async fn grace_period_of_the_request_wins(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let deleted = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": 7 }))
        .await
        .is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 7);
}

async fn grace_period_in_the_query_counts(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let deleted = t.delete("pods/a?gracePeriodSeconds=7").await.is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 7);
}

async fn grace_period_can_only_shrink(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let first = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": 20 }))
        .await
        .is(200);
    let longer = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": 25 }))
        .await
        .is(200);
    assert_eq!(longer, first);
    let shorter = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": 5 }))
        .await
        .is(200);
    assert_eq!(shorter.at("/metadata/deletionGracePeriodSeconds"), 5);
    assert_eq!(shorter.at("/metadata/generation"), 2);
    let time = |doc: &Doc| doc.str_at("/metadata/deletionTimestamp").to_owned();
    assert!(time(&shorter) < time(&first));
}

async fn grace_period_zero_removes_at_once(t: &Scope) {
    t.made("pods", &bound("a")).await;
    t.delete("pods/a").await.is(200);
    t.delete_with("pods/a", &doc!({ "gracePeriodSeconds": 0 }))
        .await
        .is(200);
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn negative_grace_period_is_one_second(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let deleted = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": (-5) }))
        .await
        .is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 1);
}

async fn grace_period_of_the_spec_is_the_default(t: &Scope) {
    t.made(
        "pods",
        &bound("a").set("/spec/terminationGracePeriodSeconds", 12),
    )
    .await;
    let deleted = t.delete("pods/a").await.is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 12);
}

async fn finalizer_outlasts_the_grace_period(t: &Scope) {
    t.made("pods", &held(&bound("a"), &["example.com/a"])).await;
    let deleted = t
        .delete_with("pods/a", &doc!({ "gracePeriodSeconds": 0 }))
        .await
        .is(200);
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 0);
    t.get("pods/a").await.is(200);
    t.merge("pods/a", &doc!({ "metadata": { "finalizers": null } }))
        .await
        .is(200);
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn eviction_deletes_a_pod(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let status = t.create("pods/a/eviction", &eviction("a")).await.is(201);
    assert_eq!(status.at("/status"), "Success");
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn eviction_of_another_name_is_refused(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let answer = t.create("pods/a/eviction", &eviction("b")).await;
    answer
        .fails(400, "BadRequest")
        .says("name in URL does not match name in Eviction object");
}

async fn eviction_of_a_missing_pod_is_not_found(t: &Scope) {
    let answer = t.create("pods/a/eviction", &eviction("a")).await;
    answer.fails(404, "NotFound").says("pods \"a\" not found");
}

async fn eviction_honours_its_delete_options(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let eviction = eviction("a").set("/deleteOptions/gracePeriodSeconds", 9);
    t.create("pods/a/eviction", &eviction).await.is(201);
    let evicted = t.get("pods/a").await.is(200);
    assert_eq!(evicted.at("/metadata/deletionGracePeriodSeconds"), 9);
}

async fn eviction_honours_preconditions(t: &Scope) {
    let made = t.made("pods", &bound("a")).await;
    let old = made.meta().resource_version().to_owned();
    set_phase(t, "a", "Succeeded").await;
    let stale = eviction("a").set("/deleteOptions/preconditions/resourceVersion", &*old);
    t.create("pods/a/eviction", &stale)
        .await
        .fails(409, "Conflict")
        .mentions("The object might have been modified");
    let kept = t.get("pods/a").await.is(200);
    assert!(kept.at("/metadata/deletionTimestamp").is_null());
    let newest = kept.meta().resource_version().to_owned();
    let right = eviction("a")
        .set("/deleteOptions/preconditions/resourceVersion", &*newest)
        .set("/deleteOptions/preconditions/uid", made.meta().uid_str());
    t.create("pods/a/eviction", &right).await.is(201);
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn eviction_refuses_wrong_delete_options(t: &Scope) {
    t.made("pods", &bound("a")).await;
    let policy = eviction("a").set("/deleteOptions/propagationPolicy", "Sometimes");
    t.create("pods/a/eviction", &policy)
        .await
        .fails(422, "Invalid")
        .mentions("propagationPolicy: Unsupported value: \"Sometimes\"");
    let option = "/deleteOptions/ignoreStoreReadErrorWithClusterBreakingPotential";
    t.create("pods/a/eviction", &eviction("a").set(option, true))
        .await
        .fails(422, "Invalid")
        .mentions("can not be set for pod eviction, try after removing the option");
    let kept = t.get("pods/a").await.is(200);
    assert!(kept.at("/metadata/deletionTimestamp").is_null());
}

/// A budget for `app=web` that has never been looked at by its controller.
async fn make_budget(t: &Scope) {
    let budget = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } }
    });
    t.made("poddisruptionbudgets", &budget).await;
    let status = doc!({ "status": {
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1
    } });
    t.merge("poddisruptionbudgets/b/status", &status)
        .await
        .is(200);
}

async fn budget_without_room_refuses_an_eviction(t: &Scope) {
    make_budget(t).await;
    t.made("pods", &labeled(&bound("a"), "app", "web")).await;
    let ready = doc!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }]
    } });
    t.merge("pods/a/status", &ready).await.is(200);
    let answer = t.create("pods/a/eviction", &eviction("a")).await;
    answer
        .fails(429, "TooManyRequests")
        .says("Cannot evict pod as it would violate the pod's disruption budget.")
        .because("DisruptionBudget", "");
    assert!(
        t.get("pods/a")
            .await
            .is(200)
            .at("/metadata/deletionTimestamp")
            .is_null()
    );
}

async fn budget_does_not_guard_a_finished_pod(t: &Scope) {
    make_budget(t).await;
    t.made("pods", &labeled(&bound("a"), "app", "web")).await;
    set_phase(t, "a", "Succeeded").await;
    t.create("pods/a/eviction", &eviction("a")).await.is(201);
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn log_of_an_unbound_pod_is_empty(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let answer = t.get("pods/a/log").await;
    assert_eq!((answer.code(), answer.text()), (204, ""));
    t.get("pods/b/log").await.fails(404, "NotFound");
}
