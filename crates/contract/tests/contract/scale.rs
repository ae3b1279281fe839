//! The scale subresource.

use windlass_contract::objects::{daemon_set, deployment, replica_set, stateful_set};
use windlass_contract::{Edit, Scope, cases, managers};
use windlass_core::{Doc, doc};

cases![
    scale_has_replicas_and_selector,
    scale_update_sets_the_replicas,
    scale_patch_sets_the_replicas,
    scale_json_patch_sets_the_replicas,
    scale_with_a_stale_revision_is_a_conflict,
    scale_with_the_right_revision_is_fine,
    scale_with_another_uid_is_a_conflict,
    scale_of_another_name_is_refused,
    negative_scale_is_refused,
    scale_of_a_missing_object_is_not_found,
    scale_cannot_be_created_or_deleted,
    scale_of_a_stateful_set,
    scale_shows_the_status,
    daemon_set_has_no_scale,
    writing_the_same_number_keeps_the_managers_of_other_fields,
    scale_has_a_table_of_its_own,
];

async fn scale_has_replicas_and_selector(t: &Scope) {
    let made = t.made("deployments", &deployment("a")).await;
    let meta = made.at("/metadata");
    let expected = doc!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "a", "namespace": (t.namespace()), "uid": (meta.at("/uid")),
            "resourceVersion": (meta.at("/resourceVersion")),
            "creationTimestamp": (meta.at("/creationTimestamp"))
        },
        "spec": { "replicas": 1 },
        "status": { "replicas": 0, "selector": "app=web" }
    });
    assert_eq!(t.get("deployments/a/scale").await.is(200), expected);
}

async fn scale_update_sets_the_replicas(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = doc!({ "metadata": { "name": "a" }, "spec": { "replicas": 3 } });
    let scaled = t.update("deployments/a/scale", &scale).await.is(200);
    assert_eq!(scaled.at("/kind"), "Scale");
    assert_eq!(scaled.at("/spec/replicas"), 3);
    let object = t.get("deployments/a").await.is(200);
    assert_eq!(object.at("/spec/replicas"), 3);
    assert_eq!(object.at("/metadata/generation"), 2);
    assert_eq!(
        object.at("/metadata/resourceVersion"),
        scaled.at("/metadata/resourceVersion")
    );
}

async fn scale_patch_sets_the_replicas(t: &Scope) {
    t.made("replicasets", &replica_set("a")).await;
    let patch = doc!({ "spec": { "replicas": 4 } });
    assert_eq!(
        t.merge("replicasets/a/scale", &patch)
            .await
            .is(200)
            .at("/spec/replicas"),
        4
    );
    assert_eq!(t.get("replicasets/a").await.is(200).at("/spec/replicas"), 4);
}

async fn scale_json_patch_sets_the_replicas(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let patch = doc!([{ "op": "replace", "path": "/spec/replicas", "value": 0 }]);
    t.edit("deployments/a/scale", &patch).await.is(200);
    assert_eq!(t.get("deployments/a").await.is(200).at("/spec/replicas"), 0);
}

async fn scale_with_a_stale_revision_is_a_conflict(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = t.get("deployments/a/scale").await.is(200);
    t.merge("deployments/a", &doc!({ "spec": { "paused": true } }))
        .await
        .is(200);
    let stale = scale.set("/spec/replicas", 3);
    t.update("deployments/a/scale", &stale).await.fails(409, "Conflict").says(
        "Operation cannot be fulfilled on deployments.apps \"a\": the object has been modified; \
         please apply your changes to the latest version and try again",
    );
}

async fn scale_with_the_right_revision_is_fine(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = t.get("deployments/a/scale").await.is(200);
    t.update("deployments/a/scale", &scale.set("/spec/replicas", 3))
        .await
        .is(200);
}

async fn scale_with_another_uid_is_a_conflict(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = doc!({ "metadata": { "name": "a", "uid": "other" }, "spec": { "replicas": 3 } });
    let answer = t.update("deployments/a/scale", &scale).await;
    answer
        .fails(409, "Conflict")
        .mentions("Precondition failed: UID in precondition: other");
}

async fn scale_of_another_name_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = doc!({ "metadata": { "name": "b" }, "spec": { "replicas": 3 } });
    t.update("deployments/a/scale", &scale)
        .await
        .fails(400, "BadRequest");
}

async fn negative_scale_is_refused(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = doc!({ "metadata": { "name": "a" }, "spec": { "replicas": (-3) } });
    t.update("deployments/a/scale", &scale)
        .await
        .fails(422, "Invalid")
        .says(
            "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -3: must be \
             greater than or equal to 0",
        )
        .is_about("autoscaling", "Scale", "a")
        .because("FieldValueInvalid", "spec.replicas");
}

async fn scale_of_a_missing_object_is_not_found(t: &Scope) {
    let scale = doc!({ "metadata": { "name": "a" }, "spec": { "replicas": 3 } });
    t.get("deployments/a/scale").await.fails(404, "NotFound");
    t.update("deployments/a/scale", &scale)
        .await
        .fails(404, "NotFound");
}

async fn scale_cannot_be_created_or_deleted(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.delete("deployments/a/scale")
        .await
        .fails(405, "MethodNotAllowed");
    t.create("deployments/a/scale", &doc!({}))
        .await
        .fails(405, "MethodNotAllowed");
}

async fn scale_of_a_stateful_set(t: &Scope) {
    t.made("statefulsets", &stateful_set("a")).await;
    let scaled = t
        .merge("statefulsets/a/scale", &doc!({ "spec": { "replicas": 2 } }))
        .await;
    assert_eq!(scaled.is(200).at("/status/selector"), "app=web");
    assert_eq!(
        t.get("statefulsets/a").await.is(200).at("/spec/replicas"),
        2
    );
}

async fn scale_shows_the_status(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    t.merge(
        "deployments/a/status",
        &doc!({ "status": { "replicas": 6 } }),
    )
    .await
    .is(200);
    assert_eq!(
        t.get("deployments/a/scale")
            .await
            .is(200)
            .at("/status/replicas"),
        6
    );
}

async fn daemon_set_has_no_scale(t: &Scope) {
    t.made("daemonsets", &daemon_set("a")).await;
    t.get("daemonsets/a/scale").await.fails(404, "NotFound");
}

async fn writing_the_same_number_keeps_the_managers_of_other_fields(t: &Scope) {
    let object = deployment("a").set("/spec/replicas", 0);
    t.made("deployments?fieldManager=maker", &object).await;
    let patch = doc!({ "spec": { "replicas": 0 } });
    t.merge("deployments/a/scale?fieldManager=scaler", &patch)
        .await
        .is(200);
    let patch = doc!({ "metadata": { "labels": { "x": "y" } } });
    let object = t
        .merge("deployments/a?fieldManager=other", &patch)
        .await
        .is(200);
    let entries = managers(&object);
    let is_maker = |entry: &&Doc| *entry.at("/manager") == "maker";
    let maker = entries.items().iter().find(is_maker).expect("the maker");
    assert!(
        maker.at("/fieldsV1/f:spec").get("f:template").is_some(),
        "{entries}"
    );
    assert_eq!(entries.items().len(), 2, "{entries}");
}

async fn scale_has_a_table_of_its_own(t: &Scope) {
    t.made("deployments", &deployment("a").set("/spec/replicas", 0))
        .await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let t = t.with_header("accept", accept);
    let table = t.get("deployments/a/scale").await.is(200);
    let cells = table.at("/rows/0/cells").items();
    assert_eq!(Doc::from(cells[..3].to_vec()), doc!(["a", 0, 0]));
}
