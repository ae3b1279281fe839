//! Strategic merge patch.

use windlass_contract::objects::{config_map, deployment, service};
use windlass_contract::{Edit, Scope, cases, revision};
use windlass_core::{Doc, doc};

cases![
    containers_merge_by_name,
    new_container_comes_first,
    container_is_deleted_by_its_name,
    variables_merge_by_name,
    variable_is_deleted_by_its_name,
    arguments_are_replaced,
    ports_merge_by_number,
    port_is_deleted_by_its_number,
    volume_source_is_exchanged_with_retained_keys,
    volume_is_replaced_as_a_whole,
    list_is_replaced_as_a_whole,
    tolerations_are_replaced,
    order_of_containers_is_set,
    order_of_containers_with_a_new_one_is_set,
    null_deletes_a_key,
    null_deletes_a_map,
    map_is_replaced,
    map_is_emptied,
    finalizers_merge_by_value,
    finalizers_are_deleted_by_value,
    strategy_is_exchanged_with_retained_keys,
    retained_keys_must_hold_the_patch,
    owners_merge_by_uid,
    owner_is_deleted_by_uid,
    conditions_merge_by_type,
    condition_is_deleted_by_its_type,
    service_ports_merge_by_number,
    scale_is_patched,
    null_lets_the_default_return,
    empty_patch_is_no_write,
    kind_in_the_patch_is_ignored,
    other_name_is_refused,
    stale_revision_is_a_conflict,
    item_without_its_key_is_refused,
    unknown_directive_is_refused,
    wrong_type_is_refused,
    text_for_a_list_is_refused,
    unknown_field_is_refused_in_strict_mode,
    unknown_field_is_warned_about,
    list_is_no_patch,
    broken_patch_is_refused,
    dry_run_keeps_nothing,
    missing_object_is_not_found,
    whole_object_is_replaced,
];

const CONTAINERS: &str = "/spec/template/spec/containers";

fn original() -> Doc {
    let containers = doc!([
        {
            "name": "a", "image": "a:1", "args": ["x"],
            "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
            "ports": [{ "containerPort": 80 }, { "containerPort": 90 }]
        },
        { "name": "b", "image": "b:1" },
        { "name": "c", "image": "c:1" }
    ]);
    deployment("a")
        .set("/metadata/labels", doc!({ "a": "1", "b": "2" }))
        .set("/metadata/finalizers", doc!(["x.y/a", "x.y/b"]))
        .set(CONTAINERS, containers)
        .set(
            "/spec/template/spec/volumes",
            doc!([{ "name": "v", "emptyDir": {} }, { "name": "w", "configMap": { "name": "c" } }]),
        )
        .set(
            "/spec/template/spec/tolerations",
            doc!([{ "key": "t", "operator": "Exists" }]),
        )
}

/// The original after a patch.
async fn patched(t: &Scope, patch: Doc) -> Doc {
    t.made("deployments", &original()).await;
    t.strategic("deployments/a", &patch).await.is(200)
}

/// The original after a patch of its pod spec.
async fn with_spec(t: &Scope, spec: Doc) -> Doc {
    patched(t, doc!({ "spec": { "template": { "spec": spec } } })).await
}

async fn with_container(t: &Scope, container: Doc) -> Doc {
    with_spec(t, doc!({ "containers": [container] })).await
}

fn names(list: &Doc) -> Vec<&str> {
    let items = list.items().iter();
    items.map(|item| item.str_at("/name")).collect()
}

fn first<'a>(deployment: &'a Doc, pointer: &str) -> &'a Doc {
    deployment.at(&format!("{CONTAINERS}/0{pointer}"))
}

async fn containers_merge_by_name(t: &Scope) {
    let found = with_container(t, doc!({ "name": "b", "image": "b:2" })).await;
    assert_eq!(names(found.at(CONTAINERS)), ["a", "b", "c"]);
    assert_eq!(found.at(&format!("{CONTAINERS}/1/image")), "b:2");
}

async fn new_container_comes_first(t: &Scope) {
    let found = with_container(t, doc!({ "name": "n", "image": "n:1" })).await;
    assert_eq!(names(found.at(CONTAINERS)), ["n", "a", "b", "c"]);
}

async fn container_is_deleted_by_its_name(t: &Scope) {
    let found = with_container(t, doc!({ "name": "b", "$patch": "delete" })).await;
    assert_eq!(names(found.at(CONTAINERS)), ["a", "c"]);
}

async fn variables_merge_by_name(t: &Scope) {
    let variables = doc!([{ "name": "B", "value": "9" }, { "name": "Z", "value": "0" }]);
    let found = with_container(t, doc!({ "name": "a", "env": variables })).await;
    let expected = doc!([
        { "name": "A", "value": "1" }, { "name": "B", "value": "9" }, { "name": "Z", "value": "0" }
    ]);
    assert_eq!(first(&found, "/env"), &expected);
}

async fn variable_is_deleted_by_its_name(t: &Scope) {
    let variables = doc!([{ "name": "A", "$patch": "delete" }]);
    let found = with_container(t, doc!({ "name": "a", "env": variables })).await;
    assert_eq!(
        first(&found, "/env"),
        &doc!([{ "name": "B", "value": "2" }])
    );
}

async fn arguments_are_replaced(t: &Scope) {
    let found = with_container(t, doc!({ "name": "a", "args": ["p", "q"] })).await;
    assert_eq!(first(&found, "/args"), &doc!(["p", "q"]));
}

async fn ports_merge_by_number(t: &Scope) {
    let ports = doc!([{ "containerPort": 90, "name": "web" }]);
    let found = with_container(t, doc!({ "name": "a", "ports": ports })).await;
    let expected = doc!([
        { "containerPort": 80, "protocol": "TCP" },
        { "containerPort": 90, "protocol": "TCP", "name": "web" }
    ]);
    assert_eq!(first(&found, "/ports"), &expected);
}

async fn port_is_deleted_by_its_number(t: &Scope) {
    let ports = doc!([{ "containerPort": 80, "$patch": "delete" }]);
    let found = with_container(t, doc!({ "name": "a", "ports": ports })).await;
    let expected = doc!([{ "containerPort": 90, "protocol": "TCP" }]);
    assert_eq!(first(&found, "/ports"), &expected);
}

async fn with_volume(t: &Scope, volumes: Doc) -> Doc {
    let found = with_spec(t, doc!({ "volumes": volumes })).await;
    found.at("/spec/template/spec/volumes").clone()
}

async fn volume_source_is_exchanged_with_retained_keys(t: &Scope) {
    let secret = doc!({ "secretName": "s" });
    let keys = doc!(["name", "secret"]);
    let volumes = doc!([{ "name": "v", "$retainKeys": keys, "secret": secret }]);
    let expected = doc!({ "name": "v", "secret": { "secretName": "s", "defaultMode": 420 } });
    assert_eq!(with_volume(t, volumes).await.item(0), Some(&expected));
}

async fn volume_is_replaced_as_a_whole(t: &Scope) {
    let volumes = doc!([
        { "$patch": "replace" },
        { "name": "only", "emptyDir": {} }
    ]);
    let expected = doc!([{ "name": "only", "emptyDir": {} }]);
    assert_eq!(with_volume(t, volumes).await, expected);
}

async fn list_is_replaced_as_a_whole(t: &Scope) {
    let spec = doc!({ "containers": [{ "$patch": "replace" }, { "name": "n", "image": "n:1" }] });
    let found = with_spec(t, spec).await;
    assert_eq!(names(found.at(CONTAINERS)), ["n"]);
}

async fn tolerations_are_replaced(t: &Scope) {
    let tolerations = doc!([{ "key": "u", "operator": "Exists" }]);
    let found = with_spec(t, doc!({ "tolerations": (&tolerations) })).await;
    assert_eq!(found.at("/spec/template/spec/tolerations"), &tolerations);
}

async fn order_of_containers_is_set(t: &Scope) {
    let spec = doc!({
        "$setElementOrder/containers": [{ "name": "c" }, { "name": "a" }, { "name": "b" }],
        "containers": [{ "name": "c", "image": "c:2" }]
    });
    let found = with_spec(t, spec).await;
    assert_eq!(names(found.at(CONTAINERS)), ["c", "a", "b"]);
    assert_eq!(first(&found, "/image"), "c:2");
}

async fn order_of_containers_with_a_new_one_is_set(t: &Scope) {
    let spec = doc!({
        "$setElementOrder/containers": [{ "name": "b" }, { "name": "z" }],
        "containers": [{ "name": "z", "image": "z:1" }]
    });
    let found = with_spec(t, spec).await;
    assert_eq!(names(found.at(CONTAINERS)), ["a", "b", "z", "c"]);
}

async fn with_metadata(t: &Scope, metadata: Doc) -> Doc {
    let found = patched(t, doc!({ "metadata": metadata })).await;
    found.at("/metadata").clone()
}

async fn null_deletes_a_key(t: &Scope) {
    let labels = doc!({ "a": null, "n": "1" });
    let found = with_metadata(t, doc!({ "labels": labels })).await;
    assert_eq!(found.at("/labels"), &doc!({ "b": "2", "n": "1" }));
}

async fn null_deletes_a_map(t: &Scope) {
    let found = with_metadata(t, doc!({ "labels": null })).await;
    assert_eq!(found.at("/labels"), &Doc::NULL);
}

async fn map_is_replaced(t: &Scope) {
    let labels = doc!({ "$patch": "replace", "q": "1" });
    let found = with_metadata(t, doc!({ "labels": labels })).await;
    assert_eq!(found.at("/labels"), &doc!({ "q": "1" }));
}

async fn map_is_emptied(t: &Scope) {
    let labels = doc!({ "$patch": "delete" });
    let found = with_metadata(t, doc!({ "labels": labels })).await;
    assert_eq!(found.at("/labels"), &Doc::NULL);
}

async fn finalizers_merge_by_value(t: &Scope) {
    let found = with_metadata(t, doc!({ "finalizers": ["x.y/c", "x.y/a"] })).await;
    assert_eq!(found.at("/finalizers").items().len(), 3);
}

async fn finalizers_are_deleted_by_value(t: &Scope) {
    let metadata = doc!({ "$deleteFromPrimitiveList/finalizers": ["x.y/a"] });
    let found = with_metadata(t, metadata).await;
    assert_eq!(found.at("/finalizers"), &doc!(["x.y/b"]));
}

async fn strategy_is_exchanged_with_retained_keys(t: &Scope) {
    let strategy = doc!({ "$retainKeys": ["type"], "type": "Recreate" });
    let found = patched(t, doc!({ "spec": { "strategy": strategy } })).await;
    assert_eq!(found.at("/spec/strategy"), &doc!({ "type": "Recreate" }));
}

async fn refused(t: &Scope, patch: Doc) -> windlass_contract::Answer {
    t.made("deployments", &original()).await;
    t.strategic("deployments/a", &patch).await
}

async fn retained_keys_must_hold_the_patch(t: &Scope) {
    let strategy = doc!({ "$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": {} });
    refused(t, doc!({ "spec": { "strategy": strategy } }))
        .await
        .fails(400, "BadRequest")
        .says("invalid patch format of retainKeys");
}

fn owner(uid: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid })
}

async fn owners_merge_by_uid(t: &Scope) {
    let one = doc!({ "ownerReferences": [(owner("u1"))] });
    with_metadata(t, one).await;
    let two = doc!({ "metadata": { "ownerReferences": [(owner("u2"))] } });
    let found = t.strategic("deployments/a", &two).await.is(200);
    assert_eq!(found.at("/metadata/ownerReferences").items().len(), 2);
}

async fn owner_is_deleted_by_uid(t: &Scope) {
    let one = doc!({ "ownerReferences": [(owner("u1"))] });
    with_metadata(t, one).await;
    let gone = doc!({ "metadata": { "ownerReferences": [{ "uid": "u1", "$patch": "delete" }] } });
    let found = t.strategic("deployments/a", &gone).await.is(200);
    assert_eq!(found.at("/metadata/ownerReferences"), &Doc::NULL);
}

async fn with_conditions(t: &Scope) -> Doc {
    t.made("deployments", &original()).await;
    let mut found = Doc::NULL;
    for sort in ["Available", "Progressing"] {
        let patch = doc!({ "status": { "conditions": [{ "type": sort, "status": "True" }] } });
        let path = "deployments/a/status";
        found = t.strategic(path, &patch).await.is(200);
    }
    found
}

async fn conditions_merge_by_type(t: &Scope) {
    let found = with_conditions(t).await;
    assert_eq!(found.at("/status/conditions").items().len(), 2);
}

async fn condition_is_deleted_by_its_type(t: &Scope) {
    with_conditions(t).await;
    let gone = doc!({ "status": { "conditions": [{ "type": "Available", "$patch": "delete" }] } });
    let found = t.strategic("deployments/a/status", &gone).await.is(200);
    assert_eq!(found.at("/status/conditions").items().len(), 1);
    assert_eq!(found.at("/status/conditions/0/type"), "Progressing");
}

async fn service_ports_merge_by_number(t: &Scope) {
    t.made("services", &service("a")).await;
    let patch = doc!({ "spec": { "ports": [{ "port": 80, "targetPort": 8080 }] } });
    let found = t.strategic("services/a", &patch).await.is(200);
    let expected = doc!([{ "port": 80, "protocol": "TCP", "targetPort": 8080 }]);
    assert_eq!(found.at("/spec/ports"), &expected);
}

async fn scale_is_patched(t: &Scope) {
    t.made("deployments", &original()).await;
    let patch = doc!({ "spec": { "replicas": 7 } });
    let path = "deployments/a/scale";
    let scale = t.strategic(path, &patch).await.is(200);
    assert_eq!(scale.at("/spec/replicas"), 7);
}

async fn null_lets_the_default_return(t: &Scope) {
    let found = patched(t, doc!({ "spec": { "replicas": null } })).await;
    assert_eq!(found.at("/spec/replicas"), 1);
}

async fn empty_patch_is_no_write(t: &Scope) {
    let made = t.made("deployments", &original()).await;
    let found = t.strategic("deployments/a", &doc!({})).await.is(200);
    assert_eq!(revision(&found), revision(&made));
}

async fn kind_in_the_patch_is_ignored(t: &Scope) {
    let found = patched(t, doc!({ "kind": "Pod", "apiVersion": "v1" })).await;
    assert_eq!(found.at("/kind"), "Deployment");
    assert_eq!(found.at("/apiVersion"), "apps/v1");
}

async fn other_name_is_refused(t: &Scope) {
    refused(t, doc!({ "metadata": { "name": "z" } }))
        .await
        .fails(400, "BadRequest")
        .says("the name of the object (z) does not match the name on the URL (a)");
}

async fn stale_revision_is_a_conflict(t: &Scope) {
    refused(t, doc!({ "metadata": { "resourceVersion": "1" } }))
        .await
        .fails(409, "Conflict");
}

fn of_spec(spec: Doc) -> Doc {
    doc!({ "spec": { "template": { "spec": spec } } })
}

async fn item_without_its_key_is_refused(t: &Scope) {
    refused(t, of_spec(doc!({ "containers": [{ "image": "x" }] })))
        .await
        .fails(500, "")
        .mentions("does not contain declared merge key: name");
}

async fn unknown_directive_is_refused(t: &Scope) {
    refused(t, doc!({ "spec": { "$patch": "wish" } }))
        .await
        .fails(500, "");
}

async fn wrong_type_is_refused(t: &Scope) {
    refused(t, doc!({ "spec": { "replicas": "x" } }))
        .await
        .fails(422, "Invalid")
        .says(
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:x]]\": unrecognized \
             type: int32",
        );
}

async fn text_for_a_list_is_refused(t: &Scope) {
    refused(t, of_spec(doc!({ "containers": "x" })))
        .await
        .fails(422, "Invalid")
        .mentions("cannot restore slice from string");
}

async fn unknown_field_is_refused_in_strict_mode(t: &Scope) {
    t.made("deployments", &original()).await;
    let path = "deployments/a?fieldValidation=Strict";
    t.strategic(path, &doc!({ "spec": { "foo": 1 } }))
        .await
        .fails(422, "Invalid")
        .says(
            " \"\" is invalid: patch: Invalid value: \"map[spec:map[foo:1]]\": strict decoding \
             error: unknown field \"spec.foo\"",
        );
}

async fn unknown_field_is_warned_about(t: &Scope) {
    t.made("deployments", &original()).await;
    let answer = t
        .strategic("deployments/a", &doc!({ "spec": { "foo": 1 } }))
        .await;
    answer.is(200);
    assert_eq!(
        answer.header("warning"),
        "299 - \"unknown field \\\"spec.foo\\\"\""
    );
}

async fn list_is_no_patch(t: &Scope) {
    refused(t, doc!([1]))
        .await
        .fails(400, "BadRequest")
        .says("json: cannot unmarshal array into Go value of type map[string]interface {}");
}

async fn broken_patch_is_refused(t: &Scope) {
    t.made("deployments", &original()).await;
    let request = t.request(http::Method::PATCH, "deployments/a");
    let sort = "application/strategic-merge-patch+json";
    t.send(request.body(sort, b"{".to_vec()))
        .await
        .fails(400, "BadRequest")
        .says("unexpected end of JSON input");
}

async fn dry_run_keeps_nothing(t: &Scope) {
    let made = t.made("deployments", &original()).await;
    let path = "deployments/a?dryRun=All";
    let patch = doc!({ "spec": { "replicas": 3 } });
    let found = t.strategic(path, &patch).await.is(200);
    assert_eq!(found.at("/spec/replicas"), 3);
    assert_eq!(t.get("deployments/a").await.is(200), made);
}

async fn missing_object_is_not_found(t: &Scope) {
    t.strategic("deployments/a", &doc!({}))
        .await
        .fails(404, "NotFound")
        .says("deployments.apps \"a\" not found");
}

async fn whole_object_is_replaced(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!({ "$patch": "replace", "metadata": { "name": "a" }, "data": { "q": "1" } });
    let answer = t.strategic("configmaps/a", &patch).await;
    assert_eq!(answer.is(200).at("/data"), &doc!({ "q": "1" }));
}
