//! Content types, the forms of answers, and their headers.

use http::Method;
use windlass_contract::objects::{config_map, pod};
use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

cases![
    json_is_the_default,
    yaml_is_read,
    yaml_is_written,
    unknown_body_type_is_refused,
    unknown_answer_type_is_refused,
    first_acceptable_type_wins,
    object_as_metadata,
    list_as_metadata,
    metadata_of_one_object_is_not_a_list,
    list_as_table,
    object_as_table,
    table_with_objects,
    table_of_a_review_is_refused,
    watch_as_metadata,
    watch_as_table,
    pretty_answer_is_indented,
    audit_id_is_echoed,
    audit_id_is_made,
    answers_may_not_be_cached,
    export_is_gone,
];

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn json_is_the_default(t: &Scope) {
    let answer = t.create("configmaps", &config_map("a")).await;
    assert_eq!(answer.header("content-type"), "application/json");
    answer.is(201);
    let any = t.with_header("accept", "*/*").get("configmaps/a").await;
    assert_eq!(any.header("content-type"), "application/json");
}

async fn yaml_is_read(t: &Scope) {
    let body = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  key: value\n";
    let request = t
        .request(Method::POST, "configmaps")
        .body("application/yaml", body);
    assert_eq!(t.send(request).await.is(201).at("/data/key"), "value");
}

async fn yaml_is_written(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let answer = t
        .with_header("accept", "application/yaml")
        .get("configmaps/a")
        .await;
    assert_eq!(answer.header("content-type"), "application/yaml");
    assert_eq!(Doc::parse_yaml(answer.text()).expect("YAML"), [made]);
}

async fn unknown_body_type_is_refused(t: &Scope) {
    let body = config_map("a").to_json();
    let request = t
        .request(Method::POST, "configmaps")
        .body("text/plain", body);
    t.send(request).await.fails(415, "UnsupportedMediaType");
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn unknown_answer_type_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .with_header("accept", "text/plain")
        .get("configmaps/a")
        .await;
    answer.fails(406, "NotAcceptable");
}

async fn first_acceptable_type_wins(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let accept = "text/html, application/yaml, application/json";
    let answer = t.with_header("accept", accept).get("configmaps/a").await;
    assert_eq!(answer.header("content-type"), "application/yaml");
}

async fn object_as_metadata(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let metadata = t
        .with_header("accept", METADATA)
        .get("configmaps/a")
        .await
        .is(200);
    let expected = doc!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": (made.at("/metadata"))
    });
    assert_eq!(metadata, expected);
}

async fn list_as_metadata(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let list = t
        .with_header("accept", METADATA_LIST)
        .get("configmaps")
        .await
        .is(200);
    assert_eq!(list.at("/kind"), "PartialObjectMetadataList");
    assert_eq!(list.at("/apiVersion"), "meta.k8s.io/v1");
    assert_eq!(list.at("/items/0/kind"), "PartialObjectMetadata");
    assert_eq!(list.at("/items/0/metadata"), made.at("/metadata"));
    assert!(list.at("/items/0/data").is_null());
    assert!(!list.str_at("/metadata/resourceVersion").is_empty());
}

async fn metadata_of_one_object_is_not_a_list(t: &Scope) {
    let answer = t.with_header("accept", METADATA).get("configmaps").await;
    answer.fails(406, "NotAcceptable");
}

async fn list_as_table(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let table = t
        .with_header("accept", TABLE)
        .get("configmaps")
        .await
        .is(200);
    assert_eq!(
        (table.str_at("/kind"), table.str_at("/apiVersion")),
        ("Table", "meta.k8s.io/v1")
    );
    let columns: Vec<_> = table
        .at("/columnDefinitions")
        .items()
        .iter()
        .map(|doc| doc.str_at("/name"))
        .collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    assert_eq!(table.at("/columnDefinitions/0/format"), "name");
    assert_eq!(table.at("/rows/0/cells/0"), "a");
    assert_eq!(table.at("/rows/0/cells/1"), 1);
    assert_eq!(table.at("/rows/0/object/kind"), "PartialObjectMetadata");
}

async fn object_as_table(t: &Scope) {
    t.made("pods", &pod("a")).await;
    let table = t.with_header("accept", TABLE).get("pods/a").await.is(200);
    let columns: Vec<_> = table
        .at("/columnDefinitions")
        .items()
        .iter()
        .map(|doc| doc.str_at("/name"))
        .collect();
    let expected = [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
        "IP",
        "Node",
        "Nominated Node",
        "Readiness Gates",
    ];
    assert_eq!(columns, expected);
    let cells = table.at("/rows/0/cells").items();
    assert_eq!(cells[..3], [doc!("a"), doc!("0/1"), doc!("Pending")]);
}

async fn table_with_objects(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let table = t.with_header("accept", TABLE);
    let with = table.get("configmaps?includeObject=Object").await.is(200);
    assert_eq!(with.at("/rows/0/object/data/key"), "value");
    let without = table.get("configmaps?includeObject=None").await.is(200);
    assert!(without.at("/rows/0/object").is_null());
}

async fn table_of_a_review_is_refused(t: &Scope) {
    let review = doc!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } });
    let answer = t
        .with_header("accept", TABLE)
        .create("selfsubjectaccessreviews", &review)
        .await;
    answer.fails(406, "NotAcceptable");
}

async fn watch_as_metadata(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let mut watch = t
        .with_header("accept", METADATA)
        .watch("configmaps", "")
        .await;
    let added = watch.expect("ADDED", "a").await;
    assert_eq!(added.at("/kind"), "PartialObjectMetadata");
    assert_eq!(added.at("/metadata"), made.at("/metadata"));
}

async fn watch_as_table(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let mut watch = t.with_header("accept", TABLE).watch("configmaps", "").await;
    let event = watch.next().await;
    assert_eq!(event.sort, "ADDED");
    assert_eq!(event.object.at("/kind"), "Table");
    assert_eq!(event.object.at("/rows/0/cells/0"), "a");
}

async fn pretty_answer_is_indented(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let pretty = t.get("configmaps/a?pretty=true").await;
    assert!(pretty.text().starts_with("{\n  \""), "{}", pretty.text());
    assert_eq!(pretty.is(200), t.get("configmaps/a").await.is(200));
    assert!(!t.get("configmaps/a").await.text().trim_end().contains('\n'));
}

async fn audit_id_is_echoed(t: &Scope) {
    let answer = t.with_header("audit-id", "mine-1").get("configmaps").await;
    assert_eq!(answer.header("audit-id"), "mine-1");
}

async fn audit_id_is_made(t: &Scope) {
    assert_eq!(t.get("configmaps").await.header("audit-id").len(), 36);
    assert_eq!(t.get("configmaps/none").await.header("audit-id").len(), 36);
}

async fn answers_may_not_be_cached(t: &Scope) {
    assert_eq!(
        t.get("configmaps").await.header("cache-control"),
        "no-cache, private"
    );
}

async fn export_is_gone(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.get("configmaps/a?export=true").await;
    answer
        .fails(400, "BadRequest")
        .says("the export parameter, deprecated since v1.14, is no longer supported");
}
