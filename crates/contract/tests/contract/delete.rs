//! Deleting single objects.

use windlass_contract::objects::{
    config_map, deployment, held, job, pod, replica_set, service, template,
};
use windlass_contract::{Edit, Scope, cases, number, revision};
use windlass_core::{Doc, doc};

cases![
    deleted_object_is_gone,
    deletion_answers_with_a_status,
    deletion_of_a_pod_answers_with_the_pod,
    deletion_of_a_service_answers_with_the_service,
    deletion_of_a_deployment_names_its_group,
    missing_object_is_not_found,
    uid_precondition_that_fails_is_a_conflict,
    revision_precondition_that_fails_is_a_conflict,
    preconditions_that_hold_let_the_deletion_happen,
    finalizer_holds_an_object,
    object_goes_with_its_last_finalizer,
    object_stays_until_its_last_finalizer,
    finalizers_cannot_be_added_while_deleting,
    other_changes_are_allowed_while_deleting,
    second_deletion_changes_nothing,
    foreground_leaves_its_finalizer,
    orphan_leaves_its_finalizer,
    background_leaves_no_finalizer,
    background_removes_the_foreground_finalizer,
    orphan_dependents_true_orphans,
    propagation_policy_in_the_query_counts,
    body_wins_over_the_query,
    unknown_policy_is_refused,
    policy_and_orphan_dependents_exclude_each_other,
    job_is_orphaned_by_default,
    replication_controller_is_orphaned_by_default,
    replica_set_is_not_orphaned_by_default,
    generation_grows_when_deletion_begins,
    recreated_object_has_another_uid,
    broken_options_are_refused,
    deletion_is_an_event_with_a_new_revision,
    held_deletion_is_a_change_then_an_end,
    delete_options_as_a_typed_body_are_read,
];

fn finalizers(object: &Doc) -> &Doc {
    object.at("/metadata/finalizers")
}

async fn deleted_object_is_gone(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.delete("configmaps/a").await.is(200);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn deletion_answers_with_a_status(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let uid = made.str_at("/metadata/uid");
    let expected = doc!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": "a", "kind": "configmaps", "uid": uid }
    });
    assert_eq!(t.delete("configmaps/a").await.is(200), expected);
}

async fn deletion_of_a_pod_answers_with_the_pod(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let deleted = t.delete("pods/a").await.is(200);
    assert_eq!(deleted.at("/kind"), "Pod");
    assert_eq!(deleted.at("/metadata/uid"), made.at("/metadata/uid"));
    t.get("pods/a").await.fails(404, "NotFound");
}

async fn deletion_of_a_service_answers_with_the_service(t: &Scope) {
    t.made("services", &service("a")).await;
    assert_eq!(t.delete("services/a").await.is(200).at("/kind"), "Service");
}

async fn deletion_of_a_deployment_names_its_group(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let status = t.delete("deployments/a").await.is(200);
    assert_eq!(status.at("/details/group"), "apps");
    assert_eq!(status.at("/details/kind"), "deployments");
}

async fn missing_object_is_not_found(t: &Scope) {
    let answer = t.delete("deployments/a").await;
    answer
        .fails(404, "NotFound")
        .says("deployments.apps \"a\" not found")
        .is_about("apps", "deployments", "a");
}

async fn uid_precondition_that_fails_is_a_conflict(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "preconditions": { "uid": "other" } });
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) \
         does not match the UID in record ({}). The object might have been deleted and then \
         recreated",
        made.str_at("/metadata/uid")
    );
    t.delete_with("configmaps/a", &options)
        .await
        .fails(409, "Conflict")
        .says(&message);
    assert_eq!(t.get("configmaps/a").await.is(200), made);
}

async fn revision_precondition_that_fails_is_a_conflict(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "preconditions": { "resourceVersion": "1" } });
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the \
         precondition (1) does not match the ResourceVersion in record ({}). The object might \
         have been modified",
        revision(&made)
    );
    t.delete_with("configmaps/a", &options)
        .await
        .fails(409, "Conflict")
        .says(&message);
}

async fn preconditions_that_hold_let_the_deletion_happen(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "preconditions": {
        "uid": (made.at("/metadata/uid")),
        "resourceVersion": (made.at("/metadata/resourceVersion"))
    } });
    t.delete_with("configmaps/a", &options).await.is(200);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn finalizer_holds_an_object(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/hold"]))
        .await;
    let deleted = t.delete("configmaps/a").await.is(200);
    assert_eq!(deleted.at("/kind"), "ConfigMap");
    assert!(deleted.str_at("/metadata/deletionTimestamp").ends_with('Z'));
    assert_eq!(deleted.at("/metadata/deletionGracePeriodSeconds"), 0);
    assert_eq!(t.get("configmaps/a").await.is(200), deleted);
}

async fn object_goes_with_its_last_finalizer(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/hold"]))
        .await;
    let deleted = t.delete("configmaps/a").await.is(200);
    let released = deleted.cut("/metadata/finalizers");
    t.update("configmaps/a", &released).await.is(200);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn object_stays_until_its_last_finalizer(t: &Scope) {
    let both = ["example.com/a", "example.com/b"];
    t.made("configmaps", &held(&config_map("a"), &both)).await;
    t.delete("configmaps/a").await.is(200);
    let keep = doc!({ "metadata": { "finalizers": ["example.com/b"] } });
    t.merge("configmaps/a", &keep).await.is(200);
    let kept = t.get("configmaps/a").await.is(200);
    assert_eq!(finalizers(&kept), &doc!(["example.com/b"]));
    t.merge(
        "configmaps/a",
        &doc!({ "metadata": { "finalizers": null } }),
    )
    .await
    .is(200);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn finalizers_cannot_be_added_while_deleting(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    t.delete("configmaps/a").await.is(200);
    let more = doc!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"] } });
    t.merge("configmaps/a", &more)
        .await
        .fails(422, "Invalid")
        .says(
            "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be \
             added if the object is being deleted, found new finalizers \
             []string{\"example.com/b\"}",
        )
        .because("FieldValueForbidden", "metadata.finalizers");
}

async fn other_changes_are_allowed_while_deleting(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    t.delete("configmaps/a").await.is(200);
    let patched = t
        .merge("configmaps/a", &doc!({ "data": { "key": "2" } }))
        .await
        .is(200);
    assert_eq!(patched.at("/data/key"), "2");
}

async fn second_deletion_changes_nothing(t: &Scope) {
    t.made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    let first = t.delete("configmaps/a").await.is(200);
    let second = t.delete("configmaps/a").await.is(200);
    assert_eq!(second, first);
}

async fn foreground_leaves_its_finalizer(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let options = doc!({ "propagationPolicy": "Foreground" });
    let deleted = t.delete_with("deployments/a", &options).await.is(200);
    assert_eq!(finalizers(&deleted), &doc!(["foregroundDeletion"]));
    assert!(!deleted.at("/metadata/deletionTimestamp").is_null());
    t.get("deployments/a").await.is(200);
}

async fn orphan_leaves_its_finalizer(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let options = doc!({ "propagationPolicy": "Orphan" });
    let deleted = t.delete_with("replicasets/a", &options).await.is(200);
    assert_eq!(finalizers(&deleted), &doc!(["orphan"]));
}

async fn background_leaves_no_finalizer(t: &Scope) {
    t.made("jobs", &job("a")).await;
    let options = doc!({ "propagationPolicy": "Background" });
    assert_eq!(
        t.delete_with("jobs/a", &options)
            .await
            .is(200)
            .at("/status"),
        "Success"
    );
    t.get("jobs/a").await.fails(404, "NotFound");
}

async fn background_removes_the_foreground_finalizer(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "propagationPolicy": "Foreground" });
    t.delete_with("configmaps/a", &options).await.is(200);
    let options = doc!({ "propagationPolicy": "Background" });
    t.delete_with("configmaps/a", &options).await.is(200);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn orphan_dependents_true_orphans(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let deleted = t
        .delete_with("replicasets/a", &doc!({ "orphanDependents": true }))
        .await
        .is(200);
    assert_eq!(finalizers(&deleted), &doc!(["orphan"]));
}

async fn propagation_policy_in_the_query_counts(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let deleted = t
        .delete("configmaps/a?propagationPolicy=Foreground")
        .await
        .is(200);
    assert_eq!(finalizers(&deleted), &doc!(["foregroundDeletion"]));
}

async fn body_wins_over_the_query(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "propagationPolicy": "Orphan" });
    let deleted = t
        .delete_with("configmaps/a?propagationPolicy=Foreground", &options)
        .await
        .is(200);
    assert_eq!(finalizers(&deleted), &doc!(["orphan"]));
}

async fn unknown_policy_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "propagationPolicy": "Sideways" });
    t.delete_with("configmaps/a", &options)
        .await
        .fails(422, "Invalid")
        .says(
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
             \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        )
        .because("FieldValueNotSupported", "propagationPolicy");
    t.get("configmaps/a").await.is(200);
}

async fn policy_and_orphan_dependents_exclude_each_other(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({ "propagationPolicy": "Orphan", "orphanDependents": true });
    t.delete_with("configmaps/a", &options)
        .await
        .fails(422, "Invalid")
        .mentions("orphanDependents and deletionPropagation cannot be both set")
        .because("FieldValueInvalid", "propagationPolicy");
}

async fn job_is_orphaned_by_default(t: &Scope) {
    t.made("jobs", &job("a")).await;
    assert_eq!(
        finalizers(&t.delete("jobs/a").await.is(200)),
        &doc!(["orphan"])
    );
}

async fn replication_controller_is_orphaned_by_default(t: &Scope) {
    let controller = doc!({
        "metadata": { "name": "a" },
        "spec": { "template": (template()) }
    });
    t.made("replicationcontrollers", &controller).await;
    let deleted = t.delete("replicationcontrollers/a").await.is(200);
    assert_eq!(finalizers(&deleted), &doc!(["orphan"]));
}

async fn replica_set_is_not_orphaned_by_default(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    assert_eq!(
        t.delete("replicasets/a").await.is(200).at("/status"),
        "Success"
    );
}

async fn generation_grows_when_deletion_begins(t: &Scope) {
    t.made("deployments", &held(&deployment("a"), &["example.com/a"]))
        .await;
    let deleted = t.delete("deployments/a").await.is(200);
    assert_eq!(deleted.at("/metadata/generation"), 2);
}

async fn recreated_object_has_another_uid(t: &Scope) {
    let first = t.made("configmaps", &config_map("a")).await;
    t.delete("configmaps/a").await.is(200);
    let second = t.made("configmaps", &config_map("a")).await;
    assert_ne!(first.at("/metadata/uid"), second.at("/metadata/uid"));
}

async fn broken_options_are_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let request = t
        .request(http::Method::DELETE, "configmaps/a")
        .body("application/json", "{");
    t.send(request).await.fails(400, "BadRequest");
    t.get("configmaps/a").await.is(200);
}

async fn deletion_is_an_event_with_a_new_revision(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let from = revision(&made);
    let mut watch = t
        .watch("configmaps", &format!("resourceVersion={from}"))
        .await;
    t.delete("configmaps/a").await.is(200);
    let deleted = watch.expect("DELETED", "a").await;
    assert_eq!(deleted.at("/data"), made.at("/data"));
    assert!(number(&deleted) > number(&made));
}

async fn held_deletion_is_a_change_then_an_end(t: &Scope) {
    let made = t
        .made("configmaps", &held(&config_map("a"), &["example.com/a"]))
        .await;
    let from = revision(&made);
    let mut watch = t
        .watch("configmaps", &format!("resourceVersion={from}"))
        .await;
    t.delete("configmaps/a").await.is(200);
    t.merge(
        "configmaps/a",
        &doc!({ "metadata": { "finalizers": null } }),
    )
    .await
    .is(200);
    let marked = watch.expect("MODIFIED", "a").await;
    assert!(!marked.at("/metadata/deletionTimestamp").is_null());
    watch.expect("DELETED", "a").await;
}

async fn delete_options_as_a_typed_body_are_read(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let options = doc!({
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"
    });
    let deleted = t.delete_with("configmaps/a", &options).await.is(200);
    assert_eq!(finalizers(&deleted), &doc!(["foregroundDeletion"]));
}
