//! Custom resources as objects: defaults, pruning, status, scale, generation, tables.

use windlass_contract::{Edit, Scope, cases, names};
use windlass_core::{Doc, doc};

use super::support::{GROUP, widget, widget_path};

cases![
    defaults_are_filled_in,
    defaults_inside_of_defaults_are_filled_in,
    defaults_of_list_items_are_filled_in,
    null_takes_the_default,
    null_without_a_default_is_dropped,
    null_of_a_nullable_field_stays,
    unknown_fields_are_dropped_with_a_warning,
    unknown_fields_are_refused_when_strict,
    unknown_fields_are_dropped_silently_when_ignored,
    unknown_fields_inside_of_open_objects_stay,
    known_fields_of_half_open_objects_are_pruned,
    metadata_of_inner_objects_is_pruned,
    int_or_string_may_be_either,
    wrong_metadata_is_refused,
    status_is_dropped_on_creation,
    status_write_changes_nothing_else,
    main_write_does_not_change_the_status,
    generation_counts_the_spec,
    generation_does_not_count_metadata,
    update_needs_a_revision,
    update_of_a_missing_object_is_not_found,
    strategic_patch_is_not_taken,
    json_patch_is_taken,
    apply_is_taken,
    apply_merges_lists_by_their_keys,
    scale_reads_and_writes_the_paths,
    scale_with_a_selector,
    columns_are_those_of_the_definition,
    selectable_field_selects,
    other_fields_are_not_selectable,
    watch_follows_a_selectable_field,
    list_has_the_kind_of_the_definition,
    name_must_be_a_subdomain,
    delete_answers_with_a_status,
    delete_collection_empties_the_namespace,
    plain_finalizer_warns,
    dry_run_stores_nothing,
    partial_metadata_is_served,
    a_watch_selects_by_a_field,
    metadata_alone_is_streamed_from_the_start,
];

async fn made(t: &Scope, spec: Doc) -> (String, Doc) {
    let path = widget_path(t).await;
    let object = t.made(&path, &widget("a", &spec)).await;
    (format!("{path}/a"), object)
}

async fn defaults_are_filled_in(t: &Scope) {
    let (_, object) = made(t, doc!({ "color": "red" })).await;
    let expected =
        doc!({ "color": "red", "replicas": 1, "max": 100, "nested": { "a": "x", "b": "y" } });
    assert_eq!(*object.at("/spec"), expected);
    assert_eq!(object.at("/metadata/generation"), 1);
}

async fn defaults_inside_of_defaults_are_filled_in(t: &Scope) {
    let (_, object) = made(t, doc!({ "color": "red", "nested": {} })).await;
    assert_eq!(*object.at("/spec/nested"), doc!({ "b": "y" }));
}

async fn defaults_of_list_items_are_filled_in(t: &Scope) {
    let (_, object) = made(
        t,
        doc!({ "color": "red", "ports": [{ "name": "a" }, { "name": "b", "port": 1 }] }),
    )
    .await;
    let ports = doc!([{ "name": "a", "port": 80 }, { "name": "b", "port": 1 }]);
    assert_eq!(*object.at("/spec/ports"), ports);
}

async fn null_takes_the_default(t: &Scope) {
    let (_, object) = made(t, doc!({ "color": "red", "replicas": (Doc::NULL) })).await;
    assert_eq!(object.at("/spec/replicas"), 1);
}

async fn null_without_a_default_is_dropped(t: &Scope) {
    let (_, object) = made(t, doc!({ "color": "red", "name": (Doc::NULL) })).await;
    assert!(object.at("/spec").get("name").is_none());
}

async fn null_of_a_nullable_field_stays(t: &Scope) {
    let (_, object) = made(t, doc!({ "color": "red", "maybe": (Doc::NULL) })).await;
    assert!(object.at("/spec").get("maybe").is_some_and(Doc::is_null));
}

async fn unknown_fields_are_dropped_with_a_warning(t: &Scope) {
    let path = widget_path(t).await;
    let answer = t
        .create(&path, &widget("a", &doc!({ "color": "red", "zz": 1 })))
        .await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unknown field \\\"spec.zz\\\"\""]
    );
    assert!(answer.is(201).at("/spec").get("zz").is_none());
}

async fn unknown_fields_are_refused_when_strict(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget(
        "a",
        &doc!({ "color": "red", "zz": 1, "ports": [{ "name": "a", "yy": 1 }] }),
    );
    let object = object.set("/metadata/xx", 1);
    let answer = t
        .create(&format!("{path}?fieldValidation=Strict"), &object)
        .await;
    answer.fails(400, "BadRequest").says(
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \
         \"metadata.xx\", unknown field \"spec.ports[0].yy\", unknown field \"spec.zz\"",
    );
}

async fn unknown_fields_are_dropped_silently_when_ignored(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget("a", &doc!({ "color": "red", "zz": 1 }));
    let answer = t
        .create(&format!("{path}?fieldValidation=Ignore"), &object)
        .await;
    assert!(answer.headers("warning").is_empty());
    assert!(answer.is(201).at("/spec").get("zz").is_none());
}

async fn unknown_fields_inside_of_open_objects_stay(t: &Scope) {
    let open = doc!({ "x": { "y": [1, { "z": "a" }] } });
    let (_, object) = made(t, doc!({ "color": "red", "open": (open.clone()) })).await;
    assert_eq!(*object.at("/spec/open"), open);
}

async fn known_fields_of_half_open_objects_are_pruned(t: &Scope) {
    let half = doc!({ "unknown": 1, "known": { "x": "a", "y": "b" } });
    let (_, object) = made(t, doc!({ "color": "red", "half": half })).await;
    assert_eq!(
        *object.at("/spec/half"),
        doc!({ "unknown": 1, "known": { "x": "a" } })
    );
}

async fn metadata_of_inner_objects_is_pruned(t: &Scope) {
    let path = widget_path(t).await;
    let inner =
        doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x", "zz": 1 }, "a": 1 });
    let answer = t
        .create(
            &path,
            &widget("a", &doc!({ "color": "red", "inner": inner })),
        )
        .await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unknown field \\\"spec.inner.metadata.zz\\\"\""]
    );
    let expected = doc!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" }, "a": 1 });
    assert_eq!(*answer.is(201).at("/spec/inner"), expected);
}

async fn int_or_string_may_be_either(t: &Scope) {
    let path = widget_path(t).await;
    for (name, value) in [("a", Doc::from("5%")), ("b", Doc::from(5))] {
        let object = t
            .made(
                &path,
                &widget(name, &doc!({ "color": "red", "amount": (value.clone()) })),
            )
            .await;
        assert_eq!(*object.at("/spec/amount"), value);
    }
}

async fn wrong_metadata_is_refused(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget("a", &doc!({ "color": "red" })).set("/metadata/labels", doc!({ "a": 5 }));
    t.create(&path, &object).await.fails(400, "BadRequest").says(
        "Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field \
         ObjectMeta.labels of type string",
    );
}

async fn status_is_dropped_on_creation(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget("a", &doc!({ "color": "red" })).set("/status", doc!({ "phase": "A" }));
    let object = t.made(&path, &object).await;
    assert!(object.get("status").is_none());
}

async fn status_write_changes_nothing_else(t: &Scope) {
    let (path, object) = made(t, doc!({ "color": "red" })).await;
    let changed = object
        .set("/status", doc!({ "phase": "A" }))
        .set("/spec/color", "blue")
        .set("/metadata/labels", doc!({ "a": "b" }));
    let changed = t.update(&format!("{path}/status"), &changed).await.is(200);
    assert_eq!(*changed.at("/status"), doc!({ "phase": "A" }));
    assert_eq!(changed.at("/spec/color"), "red");
    assert!(changed.at("/metadata/labels").is_null());
    assert_eq!(changed.at("/metadata/generation"), 1);
}

async fn main_write_does_not_change_the_status(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    t.merge(
        &format!("{path}/status"),
        &doc!({ "status": { "phase": "A" } }),
    )
    .await
    .is(200);
    let changed = t
        .merge(
            &path,
            &doc!({ "status": { "phase": "B" }, "spec": { "color": "blue" } }),
        )
        .await
        .is(200);
    assert_eq!(*changed.at("/status"), doc!({ "phase": "A" }));
    assert_eq!(changed.at("/spec/color"), "blue");
}

async fn generation_counts_the_spec(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let changed = t
        .merge(&path, &doc!({ "spec": { "color": "blue" } }))
        .await
        .is(200);
    assert_eq!(changed.at("/metadata/generation"), 2);
}

async fn generation_does_not_count_metadata(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let changed = t
        .merge(&path, &doc!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .is(200);
    assert_eq!(changed.at("/metadata/generation"), 1);
}

async fn update_needs_a_revision(t: &Scope) {
    let (path, object) = made(t, doc!({ "color": "red" })).await;
    let answer = t
        .update(&path, &object.cut("/metadata/resourceVersion"))
        .await;
    answer.fails(422, "Invalid").says(&format!(
        "widgets.{GROUP} \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    ));
    t.update(&path, &object.set("/spec/color", "blue"))
        .await
        .is(200);
}

async fn update_of_a_missing_object_is_not_found(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget("a", &doc!({ "color": "red" })).set("/metadata/resourceVersion", "1");
    let answer = t.update(&format!("{path}/a"), &object).await;
    answer
        .fails(404, "NotFound")
        .says(&format!("widgets.{GROUP} \"a\" not found"));
}

async fn strategic_patch_is_not_taken(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let request = t.request(http::Method::PATCH, &path);
    let answer = t
        .send(request.body("application/strategic-merge-patch+json", b"{}".to_vec()))
        .await;
    answer.fails(415, "UnsupportedMediaType").says(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml",
    );
}

async fn json_patch_is_taken(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let patch = doc!([{ "op": "replace", "path": "/spec/color", "value": "blue" }]);
    assert_eq!(
        t.edit(&path, &patch).await.is(200).at("/spec/color"),
        "blue"
    );
}

async fn applied(t: &Scope, path: &str, manager: &str, object: &Doc) -> windlass_contract::Request {
    t.request(
        http::Method::PATCH,
        &format!("{path}?fieldManager={manager}"),
    )
    .body("application/apply-patch+yaml", object.to_json())
}

async fn apply_is_taken(t: &Scope) {
    let path = format!("{}/a", widget_path(t).await);
    let request = applied(t, &path, "one", &widget("a", &doc!({ "color": "red" }))).await;
    let made = t.send(request).await.is(201);
    assert_eq!(made.at("/metadata/managedFields/0/manager"), "one");
    let fields = doc!({ "f:spec": { "f:color": {} } });
    assert_eq!(*made.at("/metadata/managedFields/0/fieldsV1"), fields);
    let request = applied(t, &path, "two", &widget("a", &doc!({ "color": "blue" }))).await;
    t.send(request)
        .await
        .fails(409, "Conflict")
        .says("Apply failed with 1 conflict: conflict with \"one\": .spec.color");
}

async fn apply_merges_lists_by_their_keys(t: &Scope) {
    let path = format!("{}/a", widget_path(t).await);
    let one = widget(
        "a",
        &doc!({ "color": "red", "ports": [{ "name": "x", "port": 1 }] }),
    );
    t.send(applied(t, &path, "one", &one).await).await.is(201);
    let two = widget("a", &doc!({ "ports": [{ "name": "y", "port": 2 }] }));
    let merged = t.send(applied(t, &path, "two", &two).await).await.is(200);
    let ports = doc!([{ "name": "x", "port": 1 }, { "name": "y", "port": 2 }]);
    assert_eq!(*merged.at("/spec/ports"), ports);
    let none = widget("a", &doc!({}));
    let left = t.send(applied(t, &path, "two", &none).await).await.is(200);
    assert_eq!(*left.at("/spec/ports"), doc!([{ "name": "x", "port": 1 }]));
}

async fn scale_reads_and_writes_the_paths(t: &Scope) {
    let (path, object) = made(t, doc!({ "color": "red", "replicas": 2 })).await;
    let meta = object.at("/metadata");
    let expected = doc!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "a", "namespace": (t.namespace()), "uid": (meta.at("/uid")),
            "resourceVersion": (meta.at("/resourceVersion")), "creationTimestamp": (meta.at("/creationTimestamp"))
        },
        "spec": { "replicas": 2 }, "status": { "replicas": 0 }
    });
    assert_eq!(t.get(&format!("{path}/scale")).await.is(200), expected);
    t.merge(
        &format!("{path}/scale"),
        &doc!({ "spec": { "replicas": 4 } }),
    )
    .await
    .is(200);
    let scaled = t.get(&path).await.is(200);
    assert_eq!(scaled.at("/spec/replicas"), 4);
    assert_eq!(scaled.at("/metadata/generation"), 2);
}

async fn scale_with_a_selector(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let status = doc!({ "status": { "replicas": 3, "selector": "app=web" } });
    t.merge(&format!("{path}/status"), &status).await.is(200);
    let scale = t.get(&format!("{path}/scale")).await.is(200);
    assert_eq!(
        *scale.at("/status"),
        doc!({ "replicas": 3, "selector": "app=web" })
    );
}

async fn columns_are_those_of_the_definition(t: &Scope) {
    let spec =
        doc!({ "color": "red", "ports": [{ "name": "api" }, { "name": "web", "port": 8080 }] });
    let (path, _) = made(t, spec).await;
    let table = t.with_header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = table.get(&path).await.is(200);
    let columns = table.at("/columnDefinitions").items();
    let names: Vec<&str> = columns
        .iter()
        .map(|column| column.str_at("/name"))
        .collect();
    assert_eq!(names, ["Name", "Color", "Replicas", "Ready", "Age"]);
    assert_eq!(columns[2].at("/priority"), 1);
    assert_eq!(columns[2].at("/type"), "integer");
    assert_eq!(columns[2].at("/description"), "how many");
    let cells = table.at("/rows/0/cells").items();
    assert_eq!(cells[..4], *doc!(["a", "red", 1, "8080"]).items());
}

async fn selectable_field_selects(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red" }))).await;
    t.made(&path, &widget("b", &doc!({ "color": "blue" })))
        .await;
    let found = t
        .get(&format!("{path}?fieldSelector=spec.color%3Dblue"))
        .await
        .is(200);
    assert_eq!(windlass_contract::names(&found), ["b"]);
    let found = t
        .get(&format!("{path}?fieldSelector=spec.color!%3Dblue"))
        .await
        .is(200);
    assert_eq!(windlass_contract::names(&found), ["a"]);
}

async fn other_fields_are_not_selectable(t: &Scope) {
    let path = widget_path(t).await;
    let answer = t.get(&format!("{path}?fieldSelector=spec.max%3D1")).await;
    answer
        .fails(400, "BadRequest")
        .mentions("field label not supported: spec.max");
}

async fn watch_follows_a_selectable_field(t: &Scope) {
    let path = widget_path(t).await;
    let first = t.made(&path, &widget("a", &doc!({ "color": "red" }))).await;
    let query = format!(
        "fieldSelector=spec.color%3Dblue&resourceVersion={}",
        windlass_contract::revision(&first)
    );
    let mut watch = t.watch(&path, &query).await;
    t.merge(&format!("{path}/a"), &doc!({ "spec": { "color": "blue" } }))
        .await
        .is(200);
    t.merge(&format!("{path}/a"), &doc!({ "spec": { "color": "red" } }))
        .await
        .is(200);
    let (added, deleted) = (watch.next().await, watch.next().await);
    assert_eq!(
        (added.sort.as_str(), deleted.sort.as_str()),
        ("ADDED", "DELETED")
    );
}

async fn list_has_the_kind_of_the_definition(t: &Scope) {
    let (_, _) = made(t, doc!({ "color": "red" })).await;
    let list = t.get(&widget_path(t).await).await.is(200);
    assert_eq!(list.at("/kind"), "WidgetList");
    assert_eq!(*list.at("/apiVersion"), *format!("{GROUP}/v1"));
    assert_eq!(list.at("/items/0/kind"), "Widget");
}

async fn name_must_be_a_subdomain(t: &Scope) {
    let path = widget_path(t).await;
    let answer = t
        .create(&path, &widget("A_b", &doc!({ "color": "red" })))
        .await;
    answer.fails(422, "Invalid").mentions(
        "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of",
    );
}

async fn delete_answers_with_a_status(t: &Scope) {
    let (path, object) = made(t, doc!({ "color": "red" })).await;
    let deleted = t.delete(&path).await.is(200);
    assert_eq!(deleted.at("/kind"), "Status");
    let details = doc!({ "name": "a", "group": GROUP, "kind": "widgets", "uid": (object.at("/metadata/uid")) });
    assert_eq!(*deleted.at("/details"), details);
}

async fn delete_collection_empties_the_namespace(t: &Scope) {
    let path = widget_path(t).await;
    for name in ["a", "b"] {
        t.made(&path, &widget(name, &doc!({ "color": "red" })))
            .await;
    }
    t.delete(&path).await.is(200);
    assert!(t.get(&path).await.is(200).at("/items").items().is_empty());
}

async fn plain_finalizer_warns(t: &Scope) {
    let path = widget_path(t).await;
    let object = widget("a", &doc!({ "color": "red" })).set("/metadata/finalizers", doc!(["hold"]));
    let answer = t.create(&path, &object).await;
    assert_eq!(
        answer.headers("warning"),
        [
            "299 - \"metadata.finalizers: \\\"hold\\\": prefer a domain-qualified finalizer name to avoid accidental \
          conflicts with other finalizer writers\""
        ]
    );
    answer.is(201);
    t.edit(
        &format!("{path}/a"),
        &doc!([{ "op": "remove", "path": "/metadata/finalizers" }]),
    )
    .await
    .is(200);
}

async fn dry_run_stores_nothing(t: &Scope) {
    let path = widget_path(t).await;
    let tried = t
        .create(
            &format!("{path}?dryRun=All"),
            &widget("a", &doc!({ "color": "red" })),
        )
        .await
        .is(201);
    assert_eq!(tried.at("/spec/replicas"), 1);
    t.get(&format!("{path}/a")).await.fails(404, "NotFound");
}

async fn partial_metadata_is_served(t: &Scope) {
    let (path, _) = made(t, doc!({ "color": "red" })).await;
    let t = t.with_header(
        "accept",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    );
    let found = t.get(&path).await.is(200);
    assert_eq!(found.at("/kind"), "PartialObjectMetadata");
    assert!(found.get("spec").is_none());
}

async fn a_watch_selects_by_a_field(t: &Scope) {
    let path = widget_path(t).await;
    let red = widget("a", &doc!({ "color": "red" }));
    t.made(&path, &red).await;
    let mut watch = t.watch(&path, "fieldSelector=spec.color=red").await;
    watch.expect("ADDED", "a").await;
    t.made(&path, &widget("b", &doc!({ "color": "blue" })))
        .await;
    let blue = doc!({ "spec": { "color": "blue" } });
    t.merge(&format!("{path}/a"), &blue).await.is(200);
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(
        gone.str_at("/spec/color"),
        "red",
        "the last state that matched"
    );
    let red = doc!({ "spec": { "color": "red" } });
    t.merge(&format!("{path}/b"), &red).await.is(200);
    watch.expect("ADDED", "b").await;
    let found = t
        .get(&format!("{path}?fieldSelector=spec.color!=red"))
        .await
        .is(200);
    assert_eq!(names(&found), ["a"]);
    let refused = t
        .get(&format!("{path}?fieldSelector=spec.replicas=1"))
        .await;
    let refused = refused.fails(400, "BadRequest");
    refused.says("field label not supported: spec.replicas");
}

async fn metadata_alone_is_streamed_from_the_start(t: &Scope) {
    let path = widget_path(t).await;
    t.made(&path, &widget("a", &doc!({ "color": "red" }))).await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let t = t.with_header("accept", accept);
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = t.watch(&path, query).await;
    let first = watch.expect("ADDED", "a").await;
    assert_eq!(first.str_at("/kind"), "PartialObjectMetadata");
    assert!(first.get("spec").is_none());
    let end = watch.bookmark().await;
    assert_eq!(end.str_at("/kind"), "PartialObjectMetadata");
    assert_eq!(end.str_at("/apiVersion"), "meta.k8s.io/v1");
    let mark = end
        .at("/metadata/annotations")
        .get("k8s.io/initial-events-end");
    assert_eq!(mark.and_then(Doc::as_str), Some("true"));
}
