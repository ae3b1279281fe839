//! Answers of webhooks: what clients see of a denial, of warnings, and of answers that are wrong.

use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Reply, Scope, cases};
use windlass_core::{Doc, doc};

use super::support::{configured, hook, mutating, start, validating};

cases![
    allowed_request_is_stored,
    denial_has_the_message_of_the_webhook,
    denials_are_passed_on,
    details_of_a_denial_are_passed_on,
    mutating_webhook_denies,
    denied_object_is_not_stored,
    warnings_of_an_allowed_request_reach_the_client,
    warnings_of_a_denied_request_reach_the_client,
    repeated_warnings_come_once,
    wrong_answers_fail_the_request,
    wrong_answers_of_a_mutating_webhook_fail_the_request,
    wrong_answers_are_ignored_by_policy,
    old_reviews_are_not_checked,
    first_known_review_version_is_used,
    answers_with_error_codes_fail_the_request,
    patch_that_is_no_patch_fails_the_request,
    empty_patch_changes_nothing,
];

async fn allowed_request_is_stored(t: &Scope) {
    let webhook = validating(t, |_| Reply::allow()).await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn denial_has_the_message_of_the_webhook(t: &Scope) {
    validating(t, |_| Reply::deny("no way")).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(400, "");
    refusal.says("admission webhook \"v.example.com\" denied the request: no way");
}

async fn denials_are_passed_on(t: &Scope) {
    let webhook = start(|call| {
        let status = call.request().at("/object/data/status");
        let status = Doc::parse(status.as_str().unwrap_or("{}").as_bytes()).expect("JSON");
        Reply::Response(doc!({ "allowed": false, "status": status }))
    })
    .await;
    configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    let denied = "admission webhook \"v.example.com\" denied the request";
    for (status, code, reason, end) in [
        (doc!({}), 400, "", " without explanation"),
        (doc!({ "code": 418 }), 418, "", " without explanation"),
        (doc!({ "code": 200 }), 400, "", " without explanation"),
        (doc!({ "reason": "Because" }), 400, "Because", ": Because"),
        (
            doc!({ "message": "m", "reason": "R", "code": 422 }),
            422,
            "R",
            ": m",
        ),
        (doc!({ "message": "m", "code": 399 }), 400, "", ": m"),
        (
            doc!({ "message": "m", "status": "Success" }),
            400,
            "",
            ": m",
        ),
        (doc!({ "message": "m", "code": 503 }), 503, "", ": m"),
    ] {
        let object = config_map("a").set("/data", doc!({ "status": (status.to_string()) }));
        let refusal = t.create("configmaps", &object).await.fails(code, reason);
        refusal.says(&format!("{denied}{end}"));
    }
}

async fn details_of_a_denial_are_passed_on(t: &Scope) {
    let details = doc!({
        "name": "x", "kind": "y", "retryAfterSeconds": 7,
        "causes": [{ "reason": "FieldValueInvalid", "message": "bad", "field": "data.a" }]
    });
    let sent = details.clone();
    validating(t, move |_| {
        let status = doc!({ "message": "m", "details": (&sent) });
        Reply::Response(doc!({ "allowed": false, "status": status }))
    })
    .await;
    let answer = t.create("configmaps", &config_map("a")).await;
    assert_eq!(*answer.is(400).at("/details"), details);
    assert_eq!(answer.header("retry-after"), "7");
}

async fn mutating_webhook_denies(t: &Scope) {
    mutating(t, |_| Reply::deny("not like this")).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(400, "");
    refusal.says("admission webhook \"m.example.com\" denied the request: not like this");
}

async fn denied_object_is_not_stored(t: &Scope) {
    validating(t, |_| Reply::deny("no")).await;
    t.create("configmaps", &config_map("a")).await.is(400);
    t.get("configmaps/a").await.fails(404, "NotFound");
}

async fn warnings_of_an_allowed_request_reach_the_client(t: &Scope) {
    validating(t, |_| {
        Reply::Response(doc!({ "allowed": true, "warnings": ["one", "with \"quotes\""] }))
    })
    .await;
    let answer = t.create("configmaps", &config_map("a")).await;
    answer.is(201);
    assert_eq!(
        answer.headers("warning"),
        ["299 - \"one\"", "299 - \"with \\\"quotes\\\"\""]
    );
}

async fn warnings_of_a_denied_request_reach_the_client(t: &Scope) {
    validating(t, |_| {
        Reply::Response(doc!({ "allowed": false, "warnings": ["careful"] }))
    })
    .await;
    let answer = t.create("configmaps", &config_map("a")).await;
    answer.is(400);
    assert_eq!(answer.headers("warning"), ["299 - \"careful\""]);
}

async fn repeated_warnings_come_once(t: &Scope) {
    let webhook =
        start(|_| Reply::Response(doc!({ "allowed": true, "warnings": ["w", "w"] }))).await;
    let hooks = ["v", "w"].map(|name| hook(t, &webhook, name));
    configured(t, "Validating", &webhook, &hooks).await;
    let answer = t.create("configmaps", &config_map("a")).await;
    answer.is(201);
    assert_eq!(answer.headers("warning"), ["299 - \"w\""]);
}

/// Answers that are wrong, by the name of the config map, and what is said about them.
const WRONG: [(&str, &str); 8] = [
    ("absent", "webhook response was absent"),
    ("uid", "expected response.uid="),
    (
        "kind",
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    ),
    ("patch", "may not return response.patch"),
    ("type", "may not return response.patchType"),
    (
        "untyped",
        "webhook returned response.patch but not response.patchType",
    ),
    (
        "patchless",
        "webhook returned response.patchType but not response.patch",
    ),
    ("text", "couldn't get version/kind; json parse error"),
];

fn wrong(name: &str, uid: &Doc) -> Reply {
    let review = |response: Doc| {
        let review = doc!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response
        });
        Reply::Raw(200, review.to_string())
    };
    match name {
        "absent" => Reply::Raw(200, "{}".to_owned()),
        "uid" => review(doc!({ "uid": "another", "allowed": true })),
        "kind" => Reply::Raw(
            200,
            doc!({ "response": { "uid": uid, "allowed": true } }).to_string(),
        ),
        "patch" | "untyped" => review(doc!({ "uid": uid, "allowed": true, "patch": "W10=" })),
        "type" | "patchless" => {
            review(doc!({ "uid": uid, "allowed": true, "patchType": "JSONPatch" }))
        }
        _ => Reply::Raw(200, "not JSON".to_owned()),
    }
}

async fn check_wrong(t: &Scope, names: &[&str], hook: &str) {
    for name in names {
        let (_, said) = WRONG
            .iter()
            .find(|(known, _)| known == name)
            .expect("known");
        let refusal = t.create("configmaps", &config_map(name)).await;
        let refusal = refusal.fails(500, "InternalError");
        let failed = format!("failed calling webhook \"{hook}.example.com\": ");
        refusal.mentions(&failed).mentions(said);
        t.get(&format!("configmaps/{name}")).await.is(404);
    }
}

async fn wrong_answers_fail_the_request(t: &Scope) {
    validating(t, |call| {
        let request = call.request();
        wrong(request.str_at("/name"), request.at("/uid"))
    })
    .await;
    check_wrong(t, &["absent", "uid", "kind", "patch", "type", "text"], "v").await;
}

async fn wrong_answers_of_a_mutating_webhook_fail_the_request(t: &Scope) {
    mutating(t, |call| {
        let request = call.request();
        wrong(request.str_at("/name"), request.at("/uid"))
    })
    .await;
    check_wrong(
        t,
        &["absent", "uid", "kind", "untyped", "patchless", "text"],
        "m",
    )
    .await;
}

async fn wrong_answers_are_ignored_by_policy(t: &Scope) {
    let webhook = start(|call| {
        let request = call.request();
        wrong(request.str_at("/name"), request.at("/uid"))
    })
    .await;
    let lenient = hook(t, &webhook, "v").set("/failurePolicy", "Ignore");
    configured(t, "Validating", &webhook, &[lenient]).await;
    for name in ["absent", "uid", "kind", "patch", "type", "text"] {
        t.made("configmaps", &config_map(name)).await;
    }
    assert_eq!(webhook.requests("/v").len(), 6);
}

async fn old_reviews_are_not_checked(t: &Scope) {
    let webhook = start(|_| {
        let review = doc!({ "response": { "uid": "another", "allowed": true, "patch": "W10=" } });
        Reply::Raw(200, review.to_string())
    })
    .await;
    let versions = doc!(["v1beta1"]);
    let old = hook(t, &webhook, "m").set("/admissionReviewVersions", versions);
    configured(t, "Mutating", &webhook, &[old]).await;
    t.made("configmaps", &config_map("a")).await;
    let calls = webhook.received();
    let call = calls.iter().find(|call| call.path == "/m").expect("a call");
    assert_eq!(call.review.at("/apiVersion"), "admission.k8s.io/v1beta1");
}

async fn first_known_review_version_is_used(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let versions = doc!(["v9", "v1", "v1beta1"]);
    let hook = hook(t, &webhook, "v").set("/admissionReviewVersions", versions);
    configured(t, "Validating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
    let calls = webhook.received();
    let call = calls.iter().find(|call| call.path == "/v").expect("a call");
    assert_eq!(call.review.at("/apiVersion"), "admission.k8s.io/v1");
}

async fn answers_with_error_codes_fail_the_request(t: &Scope) {
    validating(t, |call| {
        let code = call.request().str_at("/object/data/code");
        Reply::Raw(code.parse().expect("a code"), "oops".to_owned())
    })
    .await;
    for (code, said) in [
        (
            "400",
            "the server rejected our request for an unknown reason",
        ),
        (
            "401",
            "the server has asked for the client to provide credentials",
        ),
        ("404", "the server could not find the requested resource"),
        ("409", "the server reported a conflict"),
        (
            "422",
            "the server rejected our request due to an error in our request",
        ),
        (
            "500",
            "an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
        (
            "503",
            "the server is currently unable to handle the request",
        ),
    ] {
        let object = config_map("a").set("/data", doc!({ "code": code }));
        let refusal = t.create("configmaps", &object).await;
        let refusal = refusal.fails(500, "InternalError");
        refusal.says(&format!(
            "Internal error occurred: failed calling webhook \"v.example.com\": failed to call \
             webhook: {said}"
        ));
    }
}

async fn patch_that_is_no_patch_fails_the_request(t: &Scope) {
    mutating(t, |_| {
        Reply::Response(doc!({ "allowed": true, "patchType": "JSONPatch", "patch": "e30=" }))
    })
    .await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    refusal.mentions("received undecodable patch in webhook response: ");
}

async fn empty_patch_changes_nothing(t: &Scope) {
    mutating(t, |_| Reply::patch(&doc!([]))).await;
    let object = t.made("configmaps", &config_map("a")).await;
    assert_eq!(*object.at("/data"), doc!({ "key": "value" }));
}
