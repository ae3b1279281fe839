//! Fields that nobody knows, and fields that come twice.

use http::Method;
use windlass_contract::objects::{config_map, deployment};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    unknown_field_is_dropped_with_a_warning,
    ignored_unknown_field_is_dropped_in_silence,
    strict_unknown_field_is_refused,
    nested_unknown_field_is_named_in_full,
    duplicate_field_is_a_warning,
    strict_duplicate_field_is_refused,
    duplicate_key_of_yaml_is_a_warning,
    strict_duplicate_key_of_yaml_is_refused,
    ignored_duplicate_key_of_yaml_is_overwritten_in_silence,
    duplicate_key_of_applied_yaml_is_a_warning,
    strict_accepts_what_is_known,
    unknown_value_is_refused,
    update_warns_too,
    strict_update_is_refused,
    merge_patch_warns_too,
    strict_merge_patch_is_refused,
    field_names_are_case_sensitive,
    metadata_is_checked_too,
    complaints_stand_in_the_order_of_the_body,
];

fn unknown() -> Doc {
    config_map("a").set("/color", "green")
}

async fn unknown_field_is_dropped_with_a_warning(t: &Scope) {
    for query in ["", "?fieldValidation=Warn"] {
        let answer = t.create(&format!("configmaps{query}"), &unknown()).await;
        assert_eq!(
            answer.headers("warning"),
            ["299 - \"unknown field \\\"color\\\"\""]
        );
        assert!(answer.is(201).at("/color").is_null());
        t.delete("configmaps/a").await.is(200);
    }
}

async fn ignored_unknown_field_is_dropped_in_silence(t: &Scope) {
    let answer = t
        .create("configmaps?fieldValidation=Ignore", &unknown())
        .await;
    assert!(answer.headers("warning").is_empty());
    assert!(answer.is(201).at("/color").is_null());
}

async fn strict_unknown_field_is_refused(t: &Scope) {
    let answer = t
        .create("configmaps?fieldValidation=Strict", &unknown())
        .await;
    answer.fails(400, "BadRequest").says(
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         unknown field \"color\"",
    );
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn nested_unknown_field_is_named_in_full(t: &Scope) {
    let object = deployment("a")
        .set("/spec/template/spec/containers/0/color", "green")
        .set("/spec/size", 1);
    let answer = t
        .create("deployments?fieldValidation=Strict", &object)
        .await;
    answer
        .fails(400, "BadRequest")
        .mentions("strict decoding error: ")
        .mentions("unknown field \"spec.size\"")
        .mentions("unknown field \"spec.template.spec.containers[0].color\"");
}

async fn send_twice(t: &Scope, query: &str) -> windlass_contract::Answer {
    let body = r#"{"metadata":{"name":"a"},"data":{"key":"1","key":"2"}}"#;
    let request = t.request(Method::POST, &format!("configmaps{query}"));
    t.send(request.body("application/json", body)).await
}

async fn duplicate_field_is_a_warning(t: &Scope) {
    let answer = send_twice(t, "").await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"duplicate field \\\"data.key\\\"\""]
    );
    assert_eq!(answer.is(201).at("/data/key"), "2");
}

async fn strict_duplicate_field_is_refused(t: &Scope) {
    let refusal = send_twice(t, "?fieldValidation=Strict")
        .await
        .fails(400, "BadRequest");
    refusal.mentions("strict decoding error: duplicate field \"data.key\"");
}

async fn strict_accepts_what_is_known(t: &Scope) {
    let answer = t
        .create("deployments?fieldValidation=Strict", &deployment("a"))
        .await;
    assert!(answer.headers("warning").is_empty());
    answer.is(201);
}

async fn unknown_value_is_refused(t: &Scope) {
    let answer = t
        .create("configmaps?fieldValidation=Maybe", &config_map("a"))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \
             \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        )
        .because("FieldValueNotSupported", "fieldValidation");
}

async fn update_warns_too(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.update("configmaps/a", &unknown()).await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unknown field \\\"color\\\"\""]
    );
    assert!(answer.is(200).at("/color").is_null());
}

async fn strict_update_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .update("configmaps/a?fieldValidation=Strict", &unknown())
        .await;
    answer
        .fails(400, "BadRequest")
        .mentions("strict decoding error: unknown field \"color\"");
}

async fn merge_patch_warns_too(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.merge("configmaps/a", &doc!({ "color": "green" })).await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unknown field \\\"color\\\"\""]
    );
    assert!(answer.is(200).at("/color").is_null());
}

async fn strict_merge_patch_is_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t
        .merge(
            "configmaps/a?fieldValidation=Strict",
            &doc!({ "color": "green" }),
        )
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "patch")
        .mentions("strict decoding error: unknown field \"color\"");
}

async fn field_names_are_case_sensitive(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "Data": { "key": "1" } });
    let answer = t.create("configmaps", &object).await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"unknown field \\\"Data\\\"\""]
    );
    assert!(answer.is(201).at("/data").is_null());
}

async fn metadata_is_checked_too(t: &Scope) {
    let object = config_map("a").set("/metadata/color", "green");
    let answer = t.create("configmaps?fieldValidation=Strict", &object).await;
    answer
        .fails(400, "BadRequest")
        .mentions("unknown field \"metadata.color\"");
}

/// Keys that come twice: inside of each other, and beside a field that nobody knows.
const TWICE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    x: b\n  \
                     labels:\n    x: c\n    x: d\ncolor: green\n";

async fn create_twice(t: &Scope, validation: &str) -> windlass_contract::Answer {
    let request = t.request(
        Method::POST,
        &format!("configmaps?fieldValidation={validation}"),
    );
    t.send(request.body("application/yaml", TWICE)).await
}

async fn duplicate_key_of_yaml_is_a_warning(t: &Scope) {
    let answer = create_twice(t, "Warn").await;
    assert_eq!(
        answer.headers("warning"),
        [
            "299 - \"line 9: key \\\"x\\\" already set in map\"",
            "299 - \"line 8: key \\\"labels\\\" already set in map\"",
            "299 - \"unknown field \\\"color\\\"\""
        ]
    );
    assert_eq!(answer.is(201).at("/metadata/labels/x"), "d");
}

async fn strict_duplicate_key_of_yaml_is_refused(t: &Scope) {
    let answer = create_twice(t, "Strict").await;
    answer.fails(400, "BadRequest").says(
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: yaml: \
         unmarshal errors:\n  line 9: key \"x\" already set in map\n  line 8: key \"labels\" already \
         set in map, unknown field \"color\"",
    );
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn ignored_duplicate_key_of_yaml_is_overwritten_in_silence(t: &Scope) {
    let answer = create_twice(t, "Ignore").await;
    assert!(answer.headers("warning").is_empty());
    assert_eq!(answer.is(201).at("/metadata/labels/x"), "d");
}

async fn duplicate_key_of_applied_yaml_is_a_warning(t: &Scope) {
    let body =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: \"1\"\n  k: \"2\"\n";
    let path = "configmaps/a?fieldManager=me&fieldValidation=Warn";
    let request = t.request(Method::PATCH, path);
    let request = request.body("application/apply-patch+yaml", body);
    let answer = t.send(request).await;
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"line 7: key \\\"k\\\" already set in map\""]
    );
    assert_eq!(answer.is(201).at("/data/k"), "2");
}

async fn complaints_stand_in_the_order_of_the_body(t: &Scope) {
    let send = async |resource: &str, body: &str| {
        let path = format!("{resource}?fieldValidation=Strict");
        let request = t.request(http::Method::POST, &path);
        let request = request.body("application/json", body.as_bytes().to_vec());
        t.send(request).await.fails(400, "BadRequest")
    };
    let body = r#"{"zeta":1,"metadata":{"name":"z","zeb":1,"alpha":2},"alpha":2,
        "data":{"a":"1","a":"2"},"zeta":3}"#;
    send("configmaps", body).await.says(
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         unknown field \"zeta\", unknown field \"metadata.zeb\", unknown field \
         \"metadata.alpha\", unknown field \"alpha\", duplicate field \"data.a\"",
    );
    let body = r#"{"spec":{"zz":1,"containers":[{"name":"a","image":"b","yy":1,"aa":2},
        {"xx":1,"name":"c","image":"d"}],"bb":2},"metadata":{"name":"z","qq":1}}"#;
    send("pods", body).await.says(
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \
         \"spec.zz\", unknown field \"spec.containers[0].yy\", unknown field \
         \"spec.containers[0].aa\", unknown field \"spec.containers[1].xx\", unknown field \
         \"spec.bb\", unknown field \"metadata.qq\"",
    );
}
