//! Answers in protobuf. That every kind has its form there is for `kinds`.

use http::Method;
use windlass_atlas::{ObjectEncoder, ProtobufEncoder};
use windlass_contract::objects::{config_map, deployment, pod};
use windlass_contract::{Answer, Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    an_object_is_sent_in_protobuf,
    a_created_object_is_sent_in_protobuf,
    an_updated_object_is_sent_in_protobuf,
    a_patched_object_is_sent_in_protobuf,
    an_applied_object_is_sent_in_protobuf,
    a_deletion_is_answered_in_protobuf,
    a_lingering_object_is_sent_in_protobuf,
    a_deleted_collection_is_sent_in_protobuf,
    a_subresource_is_sent_in_protobuf,
    a_scale_is_sent_in_protobuf,
    a_review_is_sent_in_protobuf,
    an_object_sent_in_protobuf_is_answered_in_protobuf,
    quality_chooses_the_encoding,
    json_before_protobuf_is_json,
    an_exact_type_comes_before_a_wildcard,
    wildcards_are_json,
    only_the_first_accept_header_counts,
    letters_of_a_media_type_keep_their_case,
    an_unknown_stream_is_passed_over,
    nothing_acceptable_names_the_media_types,
    nothing_is_made_whose_answer_is_not_acceptable,
    an_empty_list_is_sent_in_protobuf,
    a_list_of_pages_is_sent_in_protobuf,
    a_long_list_is_sent_in_protobuf,
    metadata_is_sent_in_protobuf,
    a_list_of_metadata_is_sent_in_protobuf,
    a_table_has_no_protobuf,
    metadata_of_one_object_is_no_list,
    metadata_of_a_list_is_no_object,
    a_refusal_is_sent_in_protobuf,
    a_refusal_is_sent_in_yaml,
    a_refusal_passes_over_transforms,
    a_refusal_that_nobody_accepts_is_json_for_people,
    a_forbidden_request_is_refused_in_protobuf,
    an_unauthenticated_request_is_refused_in_protobuf,
    an_invalid_object_is_refused_in_protobuf,
    a_watch_is_sent_in_protobuf,
    a_list_and_a_watch_in_protobuf_follow_what_json_shows,
    a_watch_of_a_stream_is_sent_in_protobuf,
    a_watch_of_metadata_is_sent_in_protobuf,
    a_watch_ends_its_initial_events_in_protobuf,
    a_watch_that_is_too_old_ends_in_protobuf,
    a_watch_in_yaml_is_refused,
    a_watch_of_a_table_in_protobuf_is_refused,
    discovery_is_sent_in_protobuf,
    discovery_is_sent_in_yaml,
    aggregated_discovery_is_sent_in_protobuf,
    pretty_does_not_matter_to_protobuf,
];

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
const ACCEPTED: &str = "only the following media types are accepted: application/json, \
     application/yaml, application/vnd.kubernetes.protobuf";
const STREAMED: &str = "only the following media types are accepted: \
     application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Demands that the bytes of an object are those that this workspace writes, whichever server sent
/// them. The order of managed fields is that of the server.
pub(crate) fn is_written_as_here(object: &Doc, bytes: &[u8]) {
    let mut written = Vec::new();
    let encoded = ObjectEncoder::new().write(object, &mut written);
    encoded.unwrap_or_else(|error| panic!("{error}: {object}"));
    assert_eq!(written.len(), bytes.len(), "{object}");
    if object.at("/metadata/managedFields").is_null() {
        assert!(written == bytes, "{object}");
    }
}

fn accepting(t: &Scope, accept: &str) -> Scope {
    t.with_header("accept", accept)
}

fn media_type(answer: &Answer) -> &str {
    answer.header("content-type")
}

/// Demands a refusal in protobuf.
#[track_caller]
fn is_refused(answer: &Answer, code: u16, reason: &str) -> Doc {
    let status = answer.is_protobuf(code);
    assert_eq!(status.at("/kind"), "Status");
    assert_eq!(status.at("/apiVersion"), "v1");
    assert_eq!(status.at("/status"), "Failure");
    assert_eq!(status.at("/reason"), reason);
    assert_eq!(status.at("/code"), &Doc::from(i64::from(code)));
    status
}

async fn an_object_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("pods", &pod("a")).await;
    let answer = accepting(t, PROTOBUF).get("pods/a").await;
    assert_eq!(answer.is_protobuf(200), made);
    assert!(answer.bytes().starts_with(b"k8s\0"));
    assert!(answer.bytes().ends_with(&[0x1a, 0, 0x22, 0]));
    is_written_as_here(&made, answer.bytes());
}

async fn a_created_object_is_sent_in_protobuf(t: &Scope) {
    let made = accepting(t, PROTOBUF)
        .create("configmaps", &config_map("a"))
        .await;
    assert_eq!(made.is_protobuf(201), t.get("configmaps/a").await.is(200));
}

async fn an_updated_object_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let changed = made.set("/data/key", "other");
    let answer = accepting(t, PROTOBUF)
        .update("configmaps/a", &changed)
        .await;
    let updated = answer.is_protobuf(200);
    assert_eq!(updated.at("/data/key"), "other");
    assert_eq!(updated, t.get("configmaps/a").await.is(200));
}

async fn a_patched_object_is_sent_in_protobuf(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let patch = doc!({ "data": { "key": "other" } });
    let answer = accepting(t, PROTOBUF).merge("configmaps/a", &patch).await;
    assert_eq!(answer.is_protobuf(200), t.get("configmaps/a").await.is(200));
}

async fn an_applied_object_is_sent_in_protobuf(t: &Scope) {
    let object = doc!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "b" }
    });
    let answer = accepting(t, PROTOBUF)
        .apply("me", "configmaps/a", &object)
        .await;
    assert_eq!(answer.is_protobuf(201), t.get("configmaps/a").await.is(200));
}

async fn a_deletion_is_answered_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let status = accepting(t, PROTOBUF)
        .delete("configmaps/a")
        .await
        .is_protobuf(200);
    assert_eq!(status.at("/status"), "Success");
    assert_eq!(status.at("/details/uid"), made.at("/metadata/uid"));
}

async fn a_lingering_object_is_sent_in_protobuf(t: &Scope) {
    let held = config_map("a").set("/metadata/finalizers", doc!(["example.com/hold"]));
    t.made("configmaps", &held).await;
    let left = accepting(t, PROTOBUF)
        .delete("configmaps/a")
        .await
        .is_protobuf(200);
    assert_eq!(left, t.get("configmaps/a").await.is(200));
    let release = doc!({ "metadata": { "finalizers": null } });
    t.merge("configmaps/a", &release).await.is(200);
}

async fn a_deleted_collection_is_sent_in_protobuf(t: &Scope) {
    t.made("secrets", &doc!({ "metadata": { "name": "a" } }))
        .await;
    let list = accepting(t, PROTOBUF)
        .delete("secrets")
        .await
        .is_protobuf(200);
    assert_eq!(list.at("/kind"), "SecretList");
    assert_eq!(list.at("/items/0/metadata/name"), "a");
}

async fn a_subresource_is_sent_in_protobuf(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let answer = accepting(t, PROTOBUF).get("pods/a/status").await;
    assert_eq!(answer.is_protobuf(200), t.get("pods/a").await.is(200));
}

async fn a_scale_is_sent_in_protobuf(t: &Scope) {
    t.made("deployments", &deployment("a")).await;
    let scale = t.get("deployments/a/scale").await.is(200);
    let answer = accepting(t, PROTOBUF).get("deployments/a/scale").await;
    assert_eq!(answer.is_protobuf(200), scale);
    is_written_as_here(&scale, answer.bytes());
}

async fn a_review_is_sent_in_protobuf(t: &Scope) {
    let review = doc!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } });
    let answer = accepting(t, PROTOBUF)
        .create("selfsubjectaccessreviews", &review)
        .await;
    assert_eq!(answer.is_protobuf(201).at("/status/allowed"), true);
}

async fn an_object_sent_in_protobuf_is_answered_in_protobuf(t: &Scope) {
    let object = doc!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "b" }
    });
    let mut body = Vec::new();
    assert!(ProtobufEncoder::new().write(&object, &mut body));
    let request = t.request(Method::POST, "configmaps").body(PROTOBUF, body);
    let made = accepting(t, PROTOBUF).send(request).await.is_protobuf(201);
    assert_eq!(made.at("/data/a"), "b");
}

async fn quality_chooses_the_encoding(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let accept = "application/vnd.kubernetes.protobuf;q=0.5, application/json";
    let answer = accepting(t, accept).get("configmaps/a").await;
    assert_eq!(media_type(&answer), "application/json");
    let accept = "application/json;q=0.5, application/vnd.kubernetes.protobuf;q=0.9";
    let answer = accepting(t, accept).get("configmaps/a").await;
    assert_eq!(media_type(&answer), PROTOBUF);
}

async fn json_before_protobuf_is_json(t: &Scope) {
    let accept = "application/json,application/vnd.kubernetes.protobuf";
    let answer = accepting(t, accept).get("configmaps").await;
    assert_eq!(media_type(&answer), "application/json");
}

async fn an_exact_type_comes_before_a_wildcard(t: &Scope) {
    for accept in [
        "*/*, application/vnd.kubernetes.protobuf",
        "*/*, application/vnd.kubernetes.protobuf;q=0.1",
        "application/*, application/vnd.kubernetes.protobuf",
    ] {
        let answer = accepting(t, accept).get("configmaps").await;
        assert_eq!(media_type(&answer), PROTOBUF, "{accept}");
    }
    let accept = "application/vnd.kubernetes.protobuf;q=0.1, */*";
    let answer = accepting(t, accept).get("configmaps").await;
    assert_eq!(media_type(&answer), "application/json");
}

async fn wildcards_are_json(t: &Scope) {
    let answer = accepting(t, "*/*").get("configmaps").await;
    answer.is(200);
    assert_eq!(media_type(&answer), "application/json");
    for accept in ["application/*", "*"] {
        let answer = accepting(t, accept).get("configmaps").await;
        answer.fails(406, "NotAcceptable");
    }
    let answer = accepting(t, "application/*, application/yaml;q=0.1, */*");
    let answer = answer.get("configmaps").await;
    assert_eq!(
        (answer.code(), media_type(&answer)),
        (200, "application/yaml")
    );
}

async fn only_the_first_accept_header_counts(t: &Scope) {
    let t = t.with_header_bytes("accept", PROTOBUF.as_bytes());
    let t = t.with_header_bytes("accept", b"application/json");
    assert_eq!(media_type(&t.get("configmaps").await), PROTOBUF);
}

async fn letters_of_a_media_type_keep_their_case(t: &Scope) {
    let answer = accepting(t, "Application/JSON").get("configmaps").await;
    answer.fails(406, "NotAcceptable");
}

async fn an_unknown_stream_is_passed_over(t: &Scope) {
    let accept = "application/vnd.kubernetes.protobuf;stream=other, application/json";
    let answer = accepting(t, accept).get("configmaps").await;
    assert_eq!(media_type(&answer), "application/json");
    let accept = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
    let answer = accepting(t, accept).get("configmaps").await;
    assert_eq!(media_type(&answer), PROTOBUF);
}

async fn nothing_acceptable_names_the_media_types(t: &Scope) {
    let answer = accepting(t, "text/html").get("configmaps").await;
    answer.fails(406, "NotAcceptable").says(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf, application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch",
    );
    t.made("configmaps", &config_map("a")).await;
    let answer = accepting(t, "text/html").get("configmaps/a").await;
    answer.fails(406, "NotAcceptable").says(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );
    let accept = "application/json;as=Thing;g=meta.k8s.io;v=v1";
    let answer = accepting(t, accept).get("configmaps/a").await;
    answer.fails(406, "NotAcceptable").says(ACCEPTED);
}

async fn nothing_is_made_whose_answer_is_not_acceptable(t: &Scope) {
    let answer = accepting(t, "text/html")
        .create("configmaps", &config_map("a"))
        .await;
    answer.fails(406, "NotAcceptable");
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn an_empty_list_is_sent_in_protobuf(t: &Scope) {
    let list = accepting(t, PROTOBUF).get("pods").await.is_protobuf(200);
    assert_eq!(list.at("/kind"), "PodList");
    assert_eq!(list.at("/apiVersion"), "v1");
    assert!(list.at("/items").items().is_empty());
    assert!(!list.str_at("/metadata/resourceVersion").is_empty());
}

async fn a_list_of_pages_is_sent_in_protobuf(t: &Scope) {
    for name in ["a", "b", "c"] {
        t.made("pods", &pod(name)).await;
    }
    let protobuf = accepting(t, PROTOBUF);
    let first = protobuf.get("pods?limit=2").await.is_protobuf(200);
    assert_eq!(first.at("/items").items().len(), 2);
    assert_eq!(first.at("/metadata/remainingItemCount"), 1);
    let next = first.str_at("/metadata/continue");
    let last = protobuf.get(&format!("pods?limit=2&continue={next}")).await;
    assert_eq!(last.is_protobuf(200).at("/items/0/metadata/name"), "c");
}

async fn a_long_list_is_sent_in_protobuf(t: &Scope) {
    let text = "x".repeat(60_000);
    for at in 0..8 {
        let object = config_map(&format!("c{at}")).set("/data/key", text.as_str());
        t.made("configmaps", &object).await;
    }
    let list = accepting(t, PROTOBUF).get("configmaps").await;
    assert!(list.bytes().len() > 480_000);
    assert_eq!(
        list.is_protobuf(200).at("/items"),
        t.get("configmaps").await.is(200).at("/items")
    );
}

async fn metadata_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let answer = accepting(t, METADATA).get("configmaps/a").await;
    let metadata = answer.is_protobuf(200);
    assert_eq!(metadata.at("/kind"), "PartialObjectMetadata");
    assert_eq!(metadata.at("/apiVersion"), "meta.k8s.io/v1");
    assert_eq!(metadata.at("/metadata"), made.at("/metadata"));
}

async fn a_list_of_metadata_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let list = accepting(t, METADATA_LIST)
        .get("configmaps")
        .await
        .is_protobuf(200);
    assert_eq!(list.at("/kind"), "PartialObjectMetadataList");
    assert_eq!(list.at("/apiVersion"), "meta.k8s.io/v1");
    assert_eq!(list.at("/items/0/metadata"), made.at("/metadata"));
}

async fn a_table_has_no_protobuf(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = accepting(t, TABLE).get("configmaps").await;
    answer.fails(406, "NotAcceptable").says(ACCEPTED);
    let either = format!("{TABLE}, application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = accepting(t, &either).get("configmaps").await.is(200);
    assert_eq!(table.at("/kind"), "Table");
}

async fn metadata_of_one_object_is_no_list(t: &Scope) {
    for (path, sort) in [
        ("configmaps", "*core.ConfigMapList"),
        ("deployments", "*apps.DeploymentList"),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "*apiextensions.CustomResourceDefinitionList",
        ),
        ("/apis/events.k8s.io/v1/events", "*core.EventList"),
        ("roles", "*rbac.RoleList"),
    ] {
        let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, */*";
        let refusal = accepting(t, accept)
            .get(path)
            .await
            .fails(406, "NotAcceptable");
        refusal.says(&format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({sort})"
        ));
    }
}

async fn metadata_of_a_list_is_no_object(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, */*";
    let answer = accepting(t, accept).get("configmaps/a").await;
    answer.fails(406, "NotAcceptable").says(
        "you requested PartialObjectMetadataList, but the requested object is not a list \
         (*core.ConfigMap)",
    );
}

async fn a_refusal_is_sent_in_protobuf(t: &Scope) {
    let answer = accepting(t, PROTOBUF).get("pods/none").await;
    let status = is_refused(&answer, 404, "NotFound");
    assert_eq!(status.at("/message"), "pods \"none\" not found");
    assert_eq!(status.at("/details/kind"), "pods");
    let in_json = t.get("pods/none").await.fails(404, "NotFound");
    assert_eq!(&status, in_json.status());
    is_written_as_here(&status, answer.bytes());
}

async fn a_refusal_is_sent_in_yaml(t: &Scope) {
    let answer = accepting(t, "application/yaml").get("pods/none").await;
    assert_eq!(
        (answer.code(), media_type(&answer)),
        (404, "application/yaml")
    );
    let status = Doc::parse_yaml(answer.text()).expect("YAML");
    assert_eq!(status[0].at("/reason"), "NotFound");
}

async fn a_refusal_passes_over_transforms(t: &Scope) {
    let accept = format!("{METADATA}, application/json");
    let answer = accepting(t, &accept).get("pods/none").await;
    answer.fails(404, "NotFound");
    let accept = format!("{METADATA}, {PROTOBUF}");
    let answer = accepting(t, &accept).get("pods/none").await;
    is_refused(&answer, 404, "NotFound");
}

async fn a_refusal_that_nobody_accepts_is_json_for_people(t: &Scope) {
    let answer = accepting(t, METADATA).get("pods/none").await;
    assert_eq!(media_type(&answer), "application/json");
    assert!(answer.text().starts_with("{\n  \""), "{}", answer.text());
    answer.fails(404, "NotFound");
}

async fn a_forbidden_request_is_refused_in_protobuf(t: &Scope) {
    let answer = accepting(t, PROTOBUF).as_user("somebody").get("pods").await;
    is_refused(&answer, 403, "Forbidden");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

async fn an_unauthenticated_request_is_refused_in_protobuf(t: &Scope) {
    let answer = accepting(t, PROTOBUF)
        .with_token("nonsense")
        .get("pods")
        .await;
    is_refused(&answer, 401, "Unauthorized");
}

async fn an_invalid_object_is_refused_in_protobuf(t: &Scope) {
    let bad = config_map("Bad Name");
    let answer = accepting(t, PROTOBUF).create("configmaps", &bad).await;
    let status = is_refused(&answer, 422, "Invalid");
    assert_eq!(status.at("/details/causes/0/field"), "metadata.name");
}

async fn a_watch_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let mut watch = accepting(t, PROTOBUF).watch("configmaps", "").await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    let patch = doc!({ "metadata": { "labels": { "x": "y" } } });
    let patched = t.merge("configmaps/a", &patch).await.is(200);
    assert_eq!(watch.expect("MODIFIED", "a").await, patched);
    t.delete("configmaps/a").await.is(200);
    watch.expect("DELETED", "a").await;
    let other = t.made("configmaps", &config_map("b")).await;
    assert_eq!(watch.expect("ADDED", "b").await, other);
}

/// What an informer does: a list, and a watch from there on, through updates and deletions.
async fn a_list_and_a_watch_in_protobuf_follow_what_json_shows(t: &Scope) {
    for name in ["a", "b"] {
        t.made("deployments", &deployment(name)).await;
    }
    let protobuf = accepting(t, PROTOBUF);
    let list = protobuf.get("deployments").await.is_protobuf(200);
    let in_json = t.get("deployments").await.is(200);
    assert_eq!(list.at("/items"), in_json.at("/items"));
    let query = format!(
        "resourceVersion={}&allowWatchBookmarks=true",
        list.str_at("/metadata/resourceVersion")
    );
    let mut watch = protobuf.watch("deployments", &query).await;
    let mut shown = t.watch("deployments", &query).await;
    let patch = doc!({ "spec": { "replicas": 3 } });
    t.merge("deployments/a", &patch).await.is(200);
    let status = doc!({ "status": { "observedGeneration": 2, "replicas": 3 } });
    t.merge("deployments/a/status", &status).await.is(200);
    let options = doc!({ "propagationPolicy": "Background" });
    t.delete_with("deployments/b", &options).await.is(200);
    t.made("deployments", &deployment("c")).await;
    for (sort, name) in [
        ("MODIFIED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
        ("ADDED", "c"),
    ] {
        let seen = watch.expect(sort, name).await;
        assert_eq!(seen, shown.expect(sort, name).await);
    }
}

async fn a_watch_of_a_stream_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let accept = "application/vnd.kubernetes.protobuf;stream=watch";
    let mut watch = accepting(t, accept).watch("configmaps", "").await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
}

async fn a_watch_of_metadata_is_sent_in_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let mut watch = accepting(t, METADATA).watch("configmaps", "").await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(added.at("/kind"), "PartialObjectMetadata");
    assert_eq!(added.at("/metadata"), made.at("/metadata"));
}

async fn a_watch_ends_its_initial_events_in_protobuf(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = accepting(t, PROTOBUF).watch("configmaps", query).await;
    watch.expect("ADDED", "a").await;
    let marker = watch.bookmark().await;
    assert_eq!(marker.at("/kind"), "ConfigMap");
    assert_eq!(
        marker.at("/metadata/annotations/k8s.io~1initial-events-end"),
        "true"
    );
    assert!(!marker.str_at("/metadata/resourceVersion").is_empty());
}

async fn a_watch_that_is_too_old_ends_in_protobuf(t: &Scope) {
    let forgotten = t.forgotten().await;
    let scope = accepting(&forgotten.scope, PROTOBUF);
    let query = format!("resourceVersion={}", forgotten.revision);
    let mut watch = scope.watch("events", &query).await;
    let status = watch.error().await;
    assert_eq!(status.status().at("/code"), 410);
    watch.end().await;
}

async fn a_watch_in_yaml_is_refused(t: &Scope) {
    let yaml = accepting(t, "application/yaml")
        .get("configmaps?watch=true")
        .await;
    assert_eq!((yaml.code(), media_type(&yaml)), (406, "application/yaml"));
    let status = Doc::parse_yaml(yaml.text()).expect("YAML");
    assert_eq!(status[0].at("/message"), STREAMED);
    let accept = "application/yaml, application/json";
    let answer = accepting(t, accept).get("configmaps?watch=true").await;
    assert_eq!(answer.code(), 406);
}

async fn a_watch_of_a_table_in_protobuf_is_refused(t: &Scope) {
    let answer = accepting(t, TABLE).get("configmaps?watch=true").await;
    answer.fails(406, "NotAcceptable");
}

async fn discovery_is_sent_in_protobuf(t: &Scope) {
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/api/v1", "APIResourceList"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/v1", "APIResourceList"),
    ] {
        let answer = accepting(t, PROTOBUF).get(path).await;
        assert_eq!(
            (answer.code(), media_type(&answer)),
            (200, PROTOBUF),
            "{path}"
        );
        let text = String::from_utf8_lossy(answer.bytes()).into_owned();
        assert!(text.contains(kind), "{path}");
    }
    let resources = accepting(t, PROTOBUF).get("/apis/apps/v1").await;
    assert_eq!(
        resources.is_protobuf(200),
        t.get("/apis/apps/v1").await.is(200)
    );
}

async fn discovery_is_sent_in_yaml(t: &Scope) {
    let answer = accepting(t, "application/yaml").get("/apis/apps").await;
    assert_eq!(media_type(&answer), "application/yaml");
    let group = Doc::parse_yaml(answer.text()).expect("YAML");
    assert_eq!(group, [t.get("/apis/apps").await.is(200)]);
}

async fn aggregated_discovery_is_sent_in_protobuf(t: &Scope) {
    let parameters = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = format!("{PROTOBUF};{parameters}");
    let answer = accepting(t, &accept).get("/apis").await;
    assert_eq!(answer.code(), 200);
    assert_eq!(media_type(&answer), accept);
    let decoded = windlass_atlas::decode_protobuf(answer.bytes())
        .expect("protobuf")
        .doc;
    let groups = decoded.at("/items").items().iter();
    let mut names = groups.map(|group| group.str_at("/metadata/name"));
    assert!(names.any(|name| name == "apps"));
}

async fn pretty_does_not_matter_to_protobuf(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let answer = accepting(t, PROTOBUF).get("configmaps/a?pretty=true").await;
    assert_eq!(answer.is_protobuf(200), made);
}
