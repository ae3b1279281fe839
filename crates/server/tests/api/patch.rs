//! JSON patch and merge patch.

use windlass_core::doc;

use crate::support::{Api, CONFIG_MAPS, JSON_PATCH, MERGE_PATCH, config_map};

async fn with_one() -> (Api, String) {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    (api, format!("{CONFIG_MAPS}/a"))
}

#[tokio::test]
async fn a_merge_patch_sets_and_removes() {
    let (api, path) = with_one().await;
    let patched = api
        .merge(&path, &doc!({ "data": { "a": null, "b": "c" } }))
        .await
        .expect(200);
    assert_eq!(*patched.body.at("/data"), doc!({ "b": "c" }));
}

#[tokio::test]
async fn a_json_patch_runs_its_operations_in_order() {
    let (api, path) = with_one().await;
    let patch = r#"[{"op":"test","path":"/data/a","value":"b"},
                    {"op":"add","path":"/data/x","value":"y"},
                    {"op":"remove","path":"/data/a"}]"#;
    let patched = api.patch(&path, JSON_PATCH, patch).await.expect(200);
    assert_eq!(*patched.body.at("/data"), doc!({ "x": "y" }));
}

#[tokio::test]
async fn a_json_patch_that_fails_changes_nothing() {
    let (api, path) = with_one().await;
    for patch in [
        r#"[{"op":"add","path":"/data/x","value":"y"},{"op":"test","path":"/data/a","value":"no"}]"#,
        r#"[{"op":"remove","path":"/data/none"}]"#,
        r#"[{"op":"dance","path":"/data"}]"#,
    ] {
        let message = api
            .patch(&path, JSON_PATCH, patch)
            .await
            .refused(422, "Invalid");
        assert_eq!(
            message,
            "the server rejected our request due to an error in our request"
        );
    }
    let got = api.get(&path).await.expect(200);
    assert_eq!(*got.body.at("/data"), doc!({ "a": "b" }));
}

#[tokio::test]
async fn malformed_patches_are_bad_requests() {
    let (api, path) = with_one().await;
    api.patch(&path, JSON_PATCH, "{")
        .await
        .refused(400, "BadRequest");
    api.patch(&path, JSON_PATCH, "{}")
        .await
        .refused(400, "BadRequest");
    api.patch(&path, MERGE_PATCH, "[]")
        .await
        .refused(400, "BadRequest");
    api.patch(&path, MERGE_PATCH, "")
        .await
        .refused(400, "BadRequest");
}

#[tokio::test]
async fn a_patch_may_not_change_what_names_the_object() {
    let (api, path) = with_one().await;
    api.merge(&path, &doc!({ "metadata": { "name": "b" } }))
        .await
        .refused(400, "BadRequest");
    api.merge(&path, &doc!({ "metadata": { "namespace": "b" } }))
        .await
        .refused(400, "BadRequest");
    api.merge(&path, &doc!({ "metadata": { "uid": "b" } }))
        .await
        .refused(422, "Invalid");
    api.merge(&path, &doc!({ "kind": "Secret" }))
        .await
        .refused(422, "Invalid");
}

#[tokio::test]
async fn a_revision_in_a_patch_is_a_condition() {
    let (api, path) = with_one().await;
    let wrong = doc!({ "metadata": { "resourceVersion": "1" }, "data": { "x": "y" } });
    api.merge(&path, &wrong).await.refused(409, "Conflict");
    let revision = api
        .get(&path)
        .await
        .str_at("/metadata/resourceVersion")
        .to_owned();
    let right = doc!({ "metadata": { "resourceVersion": revision }, "data": { "x": "y" } });
    api.merge(&path, &right).await.expect(200);
}

#[tokio::test]
async fn an_absent_object_cannot_be_patched() {
    let api = Api::new().await;
    api.merge(&format!("{CONFIG_MAPS}/a"), &doc!({}))
        .await
        .refused(404, "NotFound");
}

#[tokio::test]
async fn other_patch_types_are_not_taken() {
    let (api, path) = with_one().await;
    api.patch(&path, "application/json", "{}")
        .await
        .refused(415, "UnsupportedMediaType");
    api.patch(&format!("{path}?force=true"), MERGE_PATCH, "{}")
        .await
        .refused(422, "Invalid");
}

#[tokio::test]
async fn a_json_patch_has_a_limit_of_operations() {
    let (api, path) = with_one().await;
    let operation = r#"{"op":"test","path":"/data/a","value":"b"}"#;
    let many = |count: usize| format!("[{}]", vec![operation; count].join(","));
    api.patch(&path, JSON_PATCH, &many(10_000))
        .await
        .expect(200);
    api.patch(&path, JSON_PATCH, &many(10_001))
        .await
        .refused(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_dry_run_patch_changes_nothing() {
    let (api, path) = with_one().await;
    let answer = api
        .merge(
            &format!("{path}?dryRun=All"),
            &doc!({ "data": { "x": "y" } }),
        )
        .await;
    assert_eq!(answer.expect(200).str_at("/data/x"), "y");
    assert!(api.get(&path).await.body.at("/data/x").is_null());
}
