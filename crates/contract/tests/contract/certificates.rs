//! Requests for certificates, which nobody signs in these cases.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    request_says_who_asks,
    request_cannot_say_who_asks,
    request_never_changes,
    approval_is_dated,
    approval_changes_nothing_but_conditions,
    approval_may_change_metadata,
    text_may_stand_before_a_request,
    request_without_usages_is_refused,
    request_for_a_short_time_is_refused,
    legacy_signer_is_refused,
    what_is_no_request_is_refused,
    table_says_how_far_a_request_has_come,
];

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// A request of `CN=joe`, whose key nobody has.
const REQUEST: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISU1IQUNBUUF3RGpFTU1Bb0dBMVVF",
    "QXd3RGFtOWxNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFL3FZdGc3WHQxODBYSnFW",
    "UVgxQ2RPbEdUbXVhN2ZvU1oya2EvKzBXa0RjM0ZHY2JTbGt6N0NhT2RDaVl1CjZRVGxzQVlxbUQ5QTd2",
    "OXBmajhqdm51NW1LQUFNQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUNJQnlxK1pFdDVQa28KdXdEeWxZb21n",
    "ZS9ZcmJGNmpscnNXY0l1MDlzbjh3TThBaUVBd0s4NnFSdzJMR0ZoVm15OWdDSjlUTDBzcDZyKwpTQm4x",
    "a1BoODU3SWpyU3c9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
);

fn request(t: &Scope) -> Doc {
    doc!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": (t.unique("a")) },
        "spec": {
            "request": REQUEST, "signerName": "example.com/none", "usages": ["client auth"],
            "expirationSeconds": 3600
        }
    })
}

fn path(t: &Scope, sub: &str) -> String {
    format!("{REQUESTS}/{}{sub}", t.unique("a"))
}

fn as_joe(t: &Scope) -> Scope {
    t.as_user("joe")
        .with_header("impersonate-group", "system:masters")
        .with_header("impersonate-extra-team", "red")
}

async fn request_says_who_asks(t: &Scope) {
    let made = as_joe(t).made(REQUESTS, &request(t)).await;
    assert_eq!(*made.at("/spec/username"), "joe");
    let groups = doc!(["system:masters", "system:authenticated"]);
    assert_eq!(*made.at("/spec/groups"), groups);
    assert_eq!(*made.at("/spec/extra"), doc!({ "team": ["red"] }));
    assert_eq!(*made.at("/status"), Doc::empty_object());
}

async fn request_cannot_say_who_asks(t: &Scope) {
    let status = doc!({ "conditions": [{ "type": "Approved", "status": "True" }] });
    let object = request(t)
        .set("/spec/username", "somebody")
        .set("/spec/uid", "1")
        .set("/status", status);
    let made = as_joe(t).made(REQUESTS, &object).await;
    assert_eq!(*made.at("/spec/username"), "joe");
    assert!(made.at("/spec/uid").is_null());
    assert_eq!(*made.at("/status"), Doc::empty_object());
}

async fn request_never_changes(t: &Scope) {
    let made = t.made(REQUESTS, &request(t)).await;
    let patch = doc!({ "spec": { "signerName": "example.com/other" } });
    let patched = t.merge(&path(t, ""), &patch).await.is(200);
    assert_eq!(patched.at("/spec"), made.at("/spec"));
}

fn approved() -> Doc {
    doc!([{ "type": "Approved", "status": "True", "reason": "Fine" }])
}

async fn approval_is_dated(t: &Scope) {
    let made = t.made(REQUESTS, &request(t)).await;
    let object = made.set("/status/conditions", approved());
    let object = t.update(&path(t, "/approval"), &object).await.is(200);
    let condition = object.at("/status/conditions/0");
    assert!(
        !condition.str_at("/lastTransitionTime").is_empty(),
        "{object}"
    );
    assert!(!condition.str_at("/lastUpdateTime").is_empty(), "{object}");
}

async fn approval_changes_nothing_but_conditions(t: &Scope) {
    let made = t.made(REQUESTS, &request(t)).await;
    let object = made
        .set("/status/conditions", approved())
        .set("/spec/signerName", "example.com/other");
    let object = t.update(&path(t, "/approval"), &object).await.is(200);
    assert_eq!(*object.at("/spec/signerName"), "example.com/none");
}

async fn approval_may_change_metadata(t: &Scope) {
    t.made(REQUESTS, &request(t)).await;
    let patch = doc!({
        "metadata": { "annotations": { "a": "b" }, "labels": { "c": "d" } },
        "status": { "conditions": (approved()) }
    });
    let object = t.merge(&path(t, "/approval"), &patch).await.is(200);
    assert_eq!(*object.at("/metadata/annotations"), doc!({ "a": "b" }));
    assert_eq!(*object.at("/metadata/labels"), doc!({ "c": "d" }));
    assert_eq!(*object.at("/status/conditions/0/type"), "Approved");
    // Whoever signs sends the decision along, and it stays as it was.
    let other = object.set("/status/conditions/0/message", "another");
    let signed = t.update(&path(t, "/status"), &other).await.is(200);
    assert_eq!(
        signed.at("/status/conditions/0"),
        object.at("/status/conditions/0")
    );
}

async fn text_may_stand_before_a_request(t: &Scope) {
    // "hello\n", in base64 without padding, goes before the PEM block.
    let object = request(t).set("/spec/request", format!("aGVsbG8K{REQUEST}"));
    t.create(REQUESTS, &object).await.is(201);
}

async fn request_without_usages_is_refused(t: &Scope) {
    let object = request(t).cut("/spec/usages");
    let refusal = t.create(REQUESTS, &object).await.fails(422, "Invalid");
    refusal.because("FieldValueRequired", "spec.usages");
    let object = request(t).set("/spec/usages", doc!(["fly", "any", "any"]));
    let refusal = t.create(REQUESTS, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueNotSupported", "spec.usages[0]")
        .because("FieldValueDuplicate", "spec.usages[2]");
}

async fn request_for_a_short_time_is_refused(t: &Scope) {
    let object = request(t).set("/spec/expirationSeconds", 599);
    let refusal = t.create(REQUESTS, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.expirationSeconds")
        .mentions("may not specify a duration less than 600 seconds (10 minutes)");
}

async fn legacy_signer_is_refused(t: &Scope) {
    let object = request(t).set("/spec/signerName", "kubernetes.io/legacy-unknown");
    let refusal = t.create(REQUESTS, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.signerName")
        .mentions("the legacy signerName is not allowed via this API version");
}

async fn what_is_no_request_is_refused(t: &Scope) {
    let object = request(t).set("/spec/request", "bm9uc2Vuc2U=");
    let refusal = t.create(REQUESTS, &object).await.fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.request")
        .mentions("PEM block type must be CERTIFICATE REQUEST");
}

async fn table_says_how_far_a_request_has_come(t: &Scope) {
    let made = as_joe(t).made(REQUESTS, &request(t)).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = t.with_header("accept", accept);
    let cells = |table: &Doc| Doc::from(table.at("/rows/0/cells").items()[2..].to_vec());
    let found = table.get(&path(t, "")).await.is(200);
    let pending = doc!(["example.com/none", "joe", "60m", "Pending"]);
    assert_eq!(cells(&found), pending);
    let object = made.set("/status/conditions", approved());
    t.update(&path(t, "/approval"), &object).await.is(200);
    let found = table.get(&path(t, "")).await.is(200);
    assert_eq!(*found.at("/rows/0/cells/5"), "Approved");
}
