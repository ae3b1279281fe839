//! Requests that are too large.

use http::Method;
use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    body_above_three_mebibytes_is_refused,
    config_map_above_one_mebibyte_is_refused,
    secret_above_one_mebibyte_is_refused,
    ten_thousand_and_one_patch_operations_are_refused,
    ten_thousand_patch_operations_are_allowed,
    long_field_manager_is_refused,
];

async fn body_above_three_mebibytes_is_refused(t: &Scope) {
    for method in [Method::POST, Method::PUT] {
        let path = if method == Method::POST {
            "configmaps"
        } else {
            "configmaps/a"
        };
        let body = vec![b' '; (3 << 20) + 1];
        let answer = t
            .send(t.request(method, path).body("application/json", body))
            .await;
        answer
            .fails(413, "RequestEntityTooLarge")
            .says("Request entity too large: limit is 3145728");
    }
}

async fn config_map_above_one_mebibyte_is_refused(t: &Scope) {
    let object = config_map("a").set("/data/key", "x".repeat((1 << 20) + 1));
    let answer = t.create("configmaps", &object).await;
    answer
        .fails(422, "Invalid")
        .says("ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes")
        .because("FieldValueTooLong", "[]");
}

async fn secret_above_one_mebibyte_is_refused(t: &Scope) {
    let value = "x".repeat((1 << 20) + 1);
    let object = doc!({ "metadata": { "name": "a" }, "stringData": { "key": value } });
    let answer = t.create("secrets", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueTooLong", "data");
}

fn operations(count: usize) -> Doc {
    vec![doc!({ "op": "test", "path": "/metadata/name", "value": "a" }); count].into()
}

async fn ten_thousand_and_one_patch_operations_are_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let answer = t.edit("configmaps/a", &operations(10_001)).await;
    answer.fails(413, "RequestEntityTooLarge").says(
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got \
         10001",
    );
}

async fn ten_thousand_patch_operations_are_allowed(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    t.edit("configmaps/a", &operations(10_000)).await.is(200);
}

async fn long_field_manager_is_refused(t: &Scope) {
    let path = |length: usize| format!("configmaps?fieldManager={}", "m".repeat(length));
    t.create(&path(129), &config_map("a"))
        .await
        .fails(422, "Invalid")
        .says(
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more \
             than 128 bytes",
        )
        .because("FieldValueTooLong", "fieldManager");
    t.create(&path(128), &config_map("a")).await.is(201);
}
