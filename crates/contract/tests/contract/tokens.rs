//! Service account tokens and the reviews of who somebody is.

use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

cases![
    token_is_issued,
    token_proves_its_service_account,
    token_ends_with_its_service_account,
    token_review_knows_a_token,
    token_review_refuses_a_forgery,
    short_token_is_refused,
    token_of_a_missing_account_is_not_found,
    token_with_other_audiences_is_no_credential,
    self_review_names_the_user,
    changed_token_is_refused,
    the_issuer_tells_its_keys,
];

async fn issued(t: &Scope) -> Doc {
    t.made("serviceaccounts", &doc!({ "metadata": { "name": "bot" } }))
        .await;
    t.create("serviceaccounts/bot/token", &doc!({ "spec": {} }))
        .await
        .is(201)
}

async fn token_is_issued(t: &Scope) {
    let request = issued(t).await;
    assert_eq!(request.at("/kind"), "TokenRequest");
    assert_eq!(request.at("/spec/expirationSeconds"), 3600);
    assert_eq!(request.at("/spec/audiences").items().len(), 1);
    assert_eq!(request.str_at("/status/token").split('.').count(), 3);
    assert!(request.str_at("/status/expirationTimestamp").ends_with('Z'));
}

async fn token_proves_its_service_account(t: &Scope) {
    let request = issued(t).await;
    let bot = t.with_token(request.str_at("/status/token"));
    let message = format!(
        "pods is forbidden: User \"system:serviceaccount:{0}:bot\" cannot list resource \"pods\" \
         in API group \"\" in the namespace \"{0}\"",
        t.namespace()
    );
    bot.get("pods").await.fails(403, "Forbidden").says(&message);
}

async fn token_ends_with_its_service_account(t: &Scope) {
    t.made("serviceaccounts", &doc!({ "metadata": { "name": "bot" } }))
        .await;
    // The real server remembers for a while what it thought of a token, and learns of the
    // deletion a moment later, so each try needs a token that it has not seen.
    let mut tokens = Vec::new();
    for _ in 0..50 {
        let request = t
            .create("serviceaccounts/bot/token", &doc!({ "spec": {} }))
            .await
            .is(201);
        tokens.push(request.str_at("/status/token").to_owned());
    }
    t.with_token(&tokens.remove(0)).get("/api").await.is(200);
    t.delete("serviceaccounts/bot").await.is(200);
    for token in tokens {
        let answer = t.with_token(&token).get("/api").await;
        if answer.code() == 401 {
            return;
        }
    }
    panic!("the tokens outlive their service account");
}

async fn token_review_knows_a_token(t: &Scope) {
    let request = issued(t).await;
    let review = doc!({ "spec": { "token": (request.at("/status/token")) } });
    let review = t.create("tokenreviews", &review).await.is(201);
    assert_eq!(review.at("/status/authenticated"), true);
    let name = format!("system:serviceaccount:{}:bot", t.namespace());
    assert_eq!(review.at("/status/user/username"), name.as_str());
    let of_namespace = format!("system:serviceaccounts:{}", t.namespace());
    let groups = doc!([
        "system:serviceaccounts",
        of_namespace,
        "system:authenticated"
    ]);
    assert_eq!(review.at("/status/user/groups"), &groups);
    assert_eq!(
        review.at("/status/audiences"),
        request.at("/spec/audiences")
    );
}

async fn token_review_refuses_a_forgery(t: &Scope) {
    let review = doc!({ "spec": { "token": "forged" } });
    let review = t.create("tokenreviews", &review).await.is(201);
    assert!(review.at("/status/authenticated").is_null());
    assert!(!review.str_at("/status/error").is_empty());
}

async fn short_token_is_refused(t: &Scope) {
    t.made("serviceaccounts", &doc!({ "metadata": { "name": "bot" } }))
        .await;
    let request = doc!({ "spec": { "expirationSeconds": 5 } });
    let answer = t.create("serviceaccounts/bot/token", &request).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.expirationSeconds")
        .mentions("may not specify a duration less than 10 minutes");
}

async fn token_of_a_missing_account_is_not_found(t: &Scope) {
    let answer = t
        .create("serviceaccounts/none/token", &doc!({ "spec": {} }))
        .await;
    answer
        .fails(404, "NotFound")
        .says("serviceaccounts \"none\" not found");
}

async fn token_with_other_audiences_is_no_credential(t: &Scope) {
    t.made("serviceaccounts", &doc!({ "metadata": { "name": "bot" } }))
        .await;
    let request = doc!({ "spec": { "audiences": ["elsewhere"] } });
    let request = t
        .create("serviceaccounts/bot/token", &request)
        .await
        .is(201);
    assert_eq!(request.at("/spec/audiences"), &doc!(["elsewhere"]));
    let bot = t.with_token(request.str_at("/status/token"));
    bot.get("/api").await.fails(401, "Unauthorized");
}

async fn self_review_names_the_user(t: &Scope) {
    let ann = t.as_user("ann").with_header("impersonate-group", "writers");
    let review = ann.create("selfsubjectreviews", &doc!({})).await.is(201);
    assert_eq!(review.at("/status/userInfo/username"), "ann");
    assert_eq!(
        review.at("/status/userInfo/groups"),
        &doc!(["writers", "system:authenticated"])
    );
}

async fn changed_token_is_refused(t: &Scope) {
    let request = issued(t).await;
    let token = request.str_at("/status/token");
    let (body, signature) = token.rsplit_once('.').expect("three parts");
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{body}.{first}{}", &signature[1..]);
    t.with_token(&forged)
        .get("/api")
        .await
        .fails(401, "Unauthorized");
}

async fn the_issuer_tells_its_keys(t: &Scope) {
    let answer = t.get("/.well-known/openid-configuration").await;
    let about = answer.is(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "public, max-age=3600");
    assert!(
        about
            .str_at("/issuer")
            .starts_with("https://kubernetes.default.svc")
    );
    assert!(about.str_at("/jwks_uri").ends_with("/openid/v1/jwks"));
    assert_eq!(*about.at("/response_types_supported"), doc!(["id_token"]));
    assert_eq!(*about.at("/subject_types_supported"), doc!(["public"]));
    let answer = t.get("/openid/v1/jwks").await;
    let keys = answer.is(200);
    assert_eq!(answer.header("content-type"), "application/jwk-set+json");
    let key = keys.at("/keys/0");
    assert_eq!(key.str_at("/use"), "sig");
    assert_eq!(
        key.at("/alg"),
        about.at("/id_token_signing_alg_values_supported/0")
    );
    assert_eq!(key.str_at("/kid").len(), 43, "a SHA-256 in base64");
    let refused = t.as_nobody().get("/openid/v1/jwks").await;
    refused.fails(403, "Forbidden");
}
