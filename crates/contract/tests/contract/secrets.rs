//! Secrets and leases: the encodings of their fields.

use windlass_contract::objects::{lease, secret};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::doc;

cases![
    string_data_becomes_data,
    string_data_wins_over_data,
    bad_base64_is_refused,
    bad_key_is_refused,
    type_is_immutable,
    immutable_secret_stays_as_it_is,
    typed_secret_needs_its_keys,
    binary_data_and_data_share_their_keys,
    lease_times_have_microseconds,
    lease_time_without_microseconds_is_refused,
    null_value_is_absence,
];

async fn string_data_becomes_data(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "stringData": { "key": "value" } });
    let made = t.made("secrets", &object).await;
    assert_eq!(made.at("/data"), &doc!({ "key": "dmFsdWU=" }));
    assert!(made.at("/stringData").is_null());
}

async fn string_data_wins_over_data(t: &Scope) {
    let object = secret("a").set("/stringData/key", "other");
    assert_eq!(t.made("secrets", &object).await.at("/data/key"), "b3RoZXI=");
}

async fn bad_base64_is_refused(t: &Scope) {
    let answer = t
        .create("secrets", &secret("a").set("/data/key", "@@"))
        .await;
    answer
        .fails(400, "BadRequest")
        .mentions("illegal base64 data at input byte 0");
}

async fn bad_key_is_refused(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "data": { "a/b": "eA==" } });
    let answer = t.create("secrets", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "data[a/b]");
    let object = doc!({ "metadata": { "name": "a" }, "data": { "..": "x" } });
    let answer = t.create("configmaps", &object).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "data[..]");
}

async fn type_is_immutable(t: &Scope) {
    t.made("secrets", &secret("a")).await;
    let answer = t
        .merge("secrets/a", &doc!({ "type": "example.com/other" }))
        .await;
    answer
        .fails(422, "Invalid")
        .says(
            "Secret \"a\" is invalid: type: Invalid value: \"example.com/other\": field is \
             immutable",
        )
        .because("FieldValueInvalid", "type");
}

async fn immutable_secret_stays_as_it_is(t: &Scope) {
    t.made("secrets", &secret("a").set("/immutable", true))
        .await;
    for (patch, field) in [
        (doc!({ "data": { "key": "eA==" } }), "data"),
        (doc!({ "immutable": false }), "immutable"),
    ] {
        let refusal = t.merge("secrets/a", &patch).await.fails(422, "Invalid");
        refusal
            .because("FieldValueForbidden", field)
            .mentions("field is immutable when `immutable` is set");
    }
}

async fn typed_secret_needs_its_keys(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a" }, "type": "kubernetes.io/tls" });
    let answer = t.create("secrets", &object).await;
    answer.fails(422, "Invalid").says(
        "Secret \"a\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]",
    );
}

async fn binary_data_and_data_share_their_keys(t: &Scope) {
    let object = doc!({
        "metadata": { "name": "a" }, "data": { "key": "x" }, "binaryData": { "key": "eA==" }
    });
    let answer = t.create("configmaps", &object).await;
    answer.fails(422, "Invalid").says(
        "ConfigMap \"a\" is invalid: data[key]: Invalid value: \"key\": duplicate of key present \
         in binaryData",
    );
}

async fn lease_times_have_microseconds(t: &Scope) {
    let time = "2026-01-02T03:04:05.000600Z";
    let made = t
        .made("leases", &lease("a").set("/spec/renewTime", time))
        .await;
    assert_eq!(made.at("/spec/renewTime"), time);
}

async fn lease_time_without_microseconds_is_refused(t: &Scope) {
    let object = lease("a").set("/spec/renewTime", "2026-01-02T03:04:05.5Z");
    t.create("leases", &object)
        .await
        .fails(400, "BadRequest")
        .mentions("parsing time");
}

async fn null_value_is_absence(t: &Scope) {
    let object = doc!({ "metadata": { "name": "a", "labels": null }, "data": null });
    let made = t.made("configmaps", &object).await;
    assert!(made.get("data").is_none());
    assert!(made.at("/metadata").get("labels").is_none());
}
