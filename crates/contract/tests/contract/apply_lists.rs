//! Server-side apply in lists and maps: by key, by value, as a whole.

use windlass_contract::objects::deployment;
use windlass_contract::{Edit, Scope, cases, managers};
use windlass_core::{Doc, doc};

cases![
    containers_are_told_apart_by_name,
    containers_of_two_managers_stand_side_by_side,
    field_inside_a_container_has_its_own_owner,
    container_that_is_no_longer_applied_goes,
    container_with_fields_of_others_stays,
    variables_are_told_apart_by_name,
    variable_that_is_no_longer_applied_goes,
    order_of_the_configuration_counts,
    ports_are_told_apart_by_number_and_protocol,
    protocol_of_a_port_is_defaulted_in_its_key,
    same_container_twice_is_refused,
    container_without_its_key_is_refused,
    text_among_containers_is_refused,
    map_for_a_list_is_refused,
    finalizers_are_a_set,
    finalizer_that_is_no_longer_applied_goes,
    same_finalizer_twice_is_refused,
    tolerations_are_one_value,
    selector_is_one_value,
    node_selector_is_one_value,
    labels_merge_by_key,
    owners_are_told_apart_by_uid,
    replicas_are_handed_over,
    replicas_given_up_are_defaulted_again,
    equal_quantities_are_no_change,
    empty_map_is_owned,
    null_is_owned_and_removes,
    volume_source_of_another_manager_is_refused,
    strategy_keeps_the_defaults_of_its_type,
    wrong_type_in_a_set_is_refused,
];

fn pod_spec(spec: Doc) -> Doc {
    let config = deployment("a").set("/spec", doc!({}));
    config.set("/spec/template", doc!({ "spec": spec }))
}

/// A whole deployment with a pod spec.
fn whole(spec: Doc) -> Doc {
    deployment("a").set("/spec/template/spec", spec)
}

fn containers(containers: Doc) -> Doc {
    doc!({ "containers": containers })
}

fn main() -> Doc {
    doc!({ "name": "main", "image": "main:1" })
}

async fn apply(t: &Scope, manager: &str, config: &Doc) -> Doc {
    t.applied(manager, "deployments/a", config).await
}

fn names(deployment: &Doc, pointer: &str) -> Vec<String> {
    let items = deployment.at(pointer).items().iter();
    items.map(|item| item.str_at("/name").to_owned()).collect()
}

const CONTAINERS: &str = "/spec/template/spec/containers";

async fn containers_are_told_apart_by_name(t: &Scope) {
    let made = apply(t, "one", &whole(containers(doc!([(main())])))).await;
    let owned = managers(&made)
        .at("/0/fieldsV1/f:spec/f:template/f:spec")
        .clone();
    let expected = doc!({
        "f:containers": { "k:{\"name\":\"main\"}": { ".": {}, "f:image": {}, "f:name": {} } }
    });
    assert_eq!(owned, expected);
}

async fn containers_of_two_managers_stand_side_by_side(t: &Scope) {
    apply(t, "one", &whole(containers(doc!([(main())])))).await;
    let config = pod_spec(containers(doc!([{ "name": "side", "image": "side:1" }])));
    let both = apply(t, "two", &config).await;
    assert_eq!(names(&both, CONTAINERS), ["main", "side"]);
}

async fn field_inside_a_container_has_its_own_owner(t: &Scope) {
    apply(t, "one", &whole(containers(doc!([(main())])))).await;
    let config = pod_spec(containers(doc!([{ "name": "main", "workingDir": "/tmp" }])));
    let changed = apply(t, "two", &config).await;
    let owned = managers(&changed);
    assert_eq!(
        owned.at("/1/fieldsV1/f:spec/f:template/f:spec/f:containers"),
        &doc!({ "k:{\"name\":\"main\"}": { ".": {}, "f:name": {}, "f:workingDir": {} } })
    );
    assert_eq!(
        changed.at(CONTAINERS).item(0).map(|it| it.str_at("/image")),
        Some("main:1")
    );
}

async fn container_that_is_no_longer_applied_goes(t: &Scope) {
    let side = doc!({ "name": "side", "image": "side:1" });
    apply(t, "one", &whole(containers(doc!([(main()), (&side)])))).await;
    let left = apply(t, "one", &whole(containers(doc!([(main())])))).await;
    assert_eq!(names(&left, CONTAINERS), ["main"]);
}

async fn container_with_fields_of_others_stays(t: &Scope) {
    let side = doc!({ "name": "side", "image": "side:1" });
    apply(t, "one", &whole(containers(doc!([(main()), (&side)])))).await;
    apply(t, "two", &pod_spec(containers(doc!([(&side)])))).await;
    let left = apply(t, "one", &whole(containers(doc!([(main())])))).await;
    assert_eq!(names(&left, CONTAINERS), ["main", "side"]);
}

fn variables(variables: Doc) -> Doc {
    pod_spec(containers(doc!([{ "name": "main", "env": variables }])))
}

async fn variables_are_told_apart_by_name(t: &Scope) {
    let own = main().set("/env", doc!([{ "name": "A", "value": "1" }]));
    apply(t, "one", &whole(containers(doc!([own])))).await;
    let changed = apply(t, "two", &variables(doc!([{ "name": "B", "value": "2" }]))).await;
    assert_eq!(names(&changed, &format!("{CONTAINERS}/0/env")), ["A", "B"]);
}

async fn variable_that_is_no_longer_applied_goes(t: &Scope) {
    apply(t, "one", &whole(containers(doc!([(main())])))).await;
    let two = doc!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]);
    apply(t, "two", &variables(two)).await;
    let left = apply(t, "two", &variables(doc!([{ "name": "B", "value": "2" }]))).await;
    assert_eq!(names(&left, &format!("{CONTAINERS}/0/env")), ["B"]);
}

async fn order_of_the_configuration_counts(t: &Scope) {
    let side = doc!({ "name": "side", "image": "side:1" });
    apply(t, "one", &whole(containers(doc!([(main()), (&side)])))).await;
    let turned = apply(t, "one", &whole(containers(doc!([(&side), (main())])))).await;
    assert_eq!(names(&turned, CONTAINERS), ["side", "main"]);
}

fn ports(ports: Doc) -> Doc {
    whole(containers(doc!([(main().set("/ports", ports))])))
}

async fn ports_are_told_apart_by_number_and_protocol(t: &Scope) {
    let two = doc!([
        { "containerPort": 80, "protocol": "TCP" },
        { "containerPort": 80, "protocol": "UDP" }
    ]);
    apply(t, "one", &ports(two)).await;
    let left = apply(
        t,
        "one",
        &ports(doc!([{ "containerPort": 80, "protocol": "UDP" }])),
    )
    .await;
    assert_eq!(
        left.at(&format!("{CONTAINERS}/0/ports")),
        &doc!([{ "containerPort": 80, "protocol": "UDP" }])
    );
}

async fn protocol_of_a_port_is_defaulted_in_its_key(t: &Scope) {
    let made = apply(t, "one", &ports(doc!([{ "containerPort": 80 }]))).await;
    let owned = managers(&made);
    let owned = owned.at("/0/fieldsV1/f:spec/f:template/f:spec/f:containers");
    let owned = owned
        .get("k:{\"name\":\"main\"}")
        .and_then(|it| it.get("f:ports"));
    let expected = doc!({
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} }
    });
    assert_eq!(owned, Some(&expected));
}

async fn refused(t: &Scope, config: &Doc, why: &str) {
    let message =
        format!("failed to create typed patch object (/a; apps/v1, Kind=Deployment): {why}");
    t.apply("one", "deployments/a", config)
        .await
        .fails(500, "")
        .says(&message);
}

async fn same_container_twice_is_refused(t: &Scope) {
    let config = pod_spec(containers(doc!([(main()), (main())])));
    let why = ".spec.template.spec.containers: duplicate entries for key [name=\"main\"]";
    refused(t, &config, why).await;
}

async fn container_without_its_key_is_refused(t: &Scope) {
    let config = pod_spec(containers(doc!([{ "image": "main:1" }])));
    // The schema has an empty name for it, which is then found to be none.
    t.apply("one", "deployments/a", &config)
        .await
        .fails(422, "Invalid")
        .because(
            "FieldValueRequired",
            "spec.template.spec.containers[0].name",
        );
}

async fn text_among_containers_is_refused(t: &Scope) {
    let config = pod_spec(containers(doc!(["main"])));
    let why = ".spec.template.spec.containers: element 0: associative list with keys may not have \
               non-map elements";
    refused(t, &config, why).await;
}

async fn map_for_a_list_is_refused(t: &Scope) {
    let config = pod_spec(containers(doc!({ "a": 1 })));
    let why = ".spec.template.spec.containers: expected list, got &{map[a:1]}";
    refused(t, &config, why).await;
}

fn finalizers(names: Doc) -> Doc {
    deployment("a").set("/metadata/finalizers", names)
}

async fn finalizers_are_a_set(t: &Scope) {
    let made = apply(t, "one", &finalizers(doc!(["a.b/c", "a.b/d"]))).await;
    assert_eq!(
        managers(&made).at("/0/fieldsV1/f:metadata"),
        &doc!({ "f:finalizers": { "v:\"a.b/c\"": {}, "v:\"a.b/d\"": {} } })
    );
}

async fn finalizer_that_is_no_longer_applied_goes(t: &Scope) {
    apply(t, "one", &finalizers(doc!(["a.b/c", "a.b/d"]))).await;
    let other = deployment("a")
        .cut("/spec")
        .set("/metadata/finalizers", doc!(["a.b/e"]));
    apply(t, "two", &other).await;
    let left = apply(t, "one", &finalizers(doc!(["a.b/d"]))).await;
    assert_eq!(left.at("/metadata/finalizers"), &doc!(["a.b/d", "a.b/e"]));
}

async fn same_finalizer_twice_is_refused(t: &Scope) {
    let why = ".metadata.finalizers: duplicate entries for key [=\"a.b/c\"]";
    refused(t, &finalizers(doc!(["a.b/c", "a.b/c"])), why).await;
}

fn tolerations(key: &str) -> Doc {
    doc!({ "tolerations": [{ "key": key, "operator": "Exists" }] })
}

async fn tolerations_are_one_value(t: &Scope) {
    let own = tolerations("one").set("/containers", doc!([(main())]));
    apply(t, "one", &whole(own)).await;
    t.apply("two", "deployments/a", &pod_spec(tolerations("two")))
        .await
        .fails(409, "Conflict")
        .says(
            "Apply failed with 1 conflict: conflict with \"one\": .spec.template.spec.tolerations",
        );
    let path = "deployments/a?force=true";
    let forced = t.applied("two", path, &pod_spec(tolerations("two"))).await;
    let left = forced.at("/spec/template/spec/tolerations");
    assert_eq!(left, &doc!([{ "key": "two", "operator": "Exists" }]));
}

async fn selector_is_one_value(t: &Scope) {
    apply(t, "one", &deployment("a")).await;
    let config = deployment("a").set(
        "/spec",
        doc!({ "selector": { "matchLabels": { "x": "y" } } }),
    );
    t.apply("two", "deployments/a", &config)
        .await
        .fails(409, "Conflict")
        .says("Apply failed with 1 conflict: conflict with \"one\": .spec.selector");
}

async fn node_selector_is_one_value(t: &Scope) {
    let own = doc!({ "containers": [(main())], "nodeSelector": { "a": "b" } });
    apply(t, "one", &whole(own)).await;
    let config = pod_spec(doc!({ "nodeSelector": { "c": "d" } }));
    t.apply("two", "deployments/a", &config)
        .await
        .fails(409, "Conflict")
        .because("FieldManagerConflict", ".spec.template.spec.nodeSelector");
}

async fn labels_merge_by_key(t: &Scope) {
    apply(
        t,
        "one",
        &deployment("a").set("/metadata/labels", doc!({ "a": "1" })),
    )
    .await;
    let config = deployment("a")
        .cut("/spec")
        .set("/metadata/labels", doc!({ "b": "2" }));
    let both = apply(t, "two", &config).await;
    assert_eq!(both.at("/metadata/labels"), &doc!({ "a": "1", "b": "2" }));
}

async fn owners_are_told_apart_by_uid(t: &Scope) {
    let owner = |uid: &str| doc!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid }]);
    let one = deployment("a").set("/metadata/ownerReferences", owner("u1"));
    apply(t, "one", &one).await;
    let two = deployment("a")
        .cut("/spec")
        .set("/metadata/ownerReferences", owner("u2"));
    let both = apply(t, "two", &two).await;
    assert_eq!(both.at("/metadata/ownerReferences").items().len(), 2);
    let left = apply(t, "one", &deployment("a")).await;
    assert_eq!(left.at("/metadata/ownerReferences"), &owner("u2"));
}

async fn replicas_are_handed_over(t: &Scope) {
    apply(t, "one", &deployment("a").set("/spec/replicas", 2)).await;
    let patch = doc!({ "spec": { "replicas": 5 } });
    t.merge("deployments/a?fieldManager=scaler", &patch)
        .await
        .is(200);
    let left = apply(t, "one", &deployment("a")).await;
    assert_eq!(left.at("/spec/replicas"), 5);
}

async fn replicas_given_up_are_defaulted_again(t: &Scope) {
    apply(t, "one", &deployment("a").set("/spec/replicas", 2)).await;
    let left = apply(t, "one", &deployment("a")).await;
    assert_eq!(left.at("/spec/replicas"), 1);
}

async fn equal_quantities_are_no_change(t: &Scope) {
    let limits = |cpu: &str| {
        let container = main().set("/resources", doc!({ "limits": { "cpu": cpu } }));
        whole(containers(doc!([container])))
    };
    let made = apply(t, "one", &limits("1000m")).await;
    assert_eq!(
        made.at(&format!("{CONTAINERS}/0/resources/limits/cpu")),
        "1"
    );
    assert_eq!(apply(t, "one", &limits("1000m")).await, made);
    assert_eq!(apply(t, "one", &limits("1")).await, made);
}

async fn empty_map_is_owned(t: &Scope) {
    let made = apply(
        t,
        "one",
        &deployment("a").set("/metadata/annotations", doc!({})),
    )
    .await;
    assert_eq!(
        managers(&made).at("/0/fieldsV1/f:metadata"),
        &doc!({ "f:annotations": {} })
    );
}

async fn null_is_owned_and_removes(t: &Scope) {
    let config = deployment("a").set("/spec/replicas", Doc::NULL);
    let made = apply(t, "one", &config).await;
    assert_eq!(made.at("/spec/replicas"), 1);
    let owned = managers(&made);
    assert_eq!(owned.at("/0/fieldsV1/f:spec/f:replicas"), &doc!({}));
}

async fn volume_source_of_another_manager_is_refused(t: &Scope) {
    let own = doc!({ "containers": [(main())], "volumes": [{ "name": "v", "emptyDir": {} }] });
    apply(t, "one", &whole(own)).await;
    let config = pod_spec(doc!({ "volumes": [{ "name": "v", "configMap": { "name": "x" } }] }));
    t.apply("two", "deployments/a", &config)
        .await
        .fails(422, "Invalid")
        .says(
            "Deployment.apps \"a\" is invalid: spec.template.spec.volumes[0].configMap: \
             Forbidden: may not specify more than 1 volume type",
        );
}

async fn strategy_keeps_the_defaults_of_its_type(t: &Scope) {
    let strategy = |sort: &str| deployment("a").set("/spec/strategy", doc!({ "type": sort }));
    apply(t, "one", &strategy("RollingUpdate")).await;
    t.apply("one", "deployments/a", &strategy("Recreate"))
        .await
        .fails(422, "Invalid")
        .because("FieldValueForbidden", "spec.strategy.rollingUpdate");
}

async fn wrong_type_in_a_set_is_refused(t: &Scope) {
    let why = ".metadata.finalizers: element 0: associative list without keys has an element \
               that's a map type";
    refused(t, &finalizers(doc!([{ "a": "b" }])), why).await;
}
