//! Webhooks that cannot be reached or do not answer.

use std::time::Duration;

use tokio::time::Instant;
use windlass_contract::objects::config_map;
use windlass_contract::{Edit, Reply, Scope, cases};
use windlass_core::doc;

use super::support::{configured, hook, start, stored};

cases![
    refused_connection_fails_the_request,
    refused_connection_is_ignored_by_policy,
    hanging_webhook_fails_after_its_timeout,
    hanging_webhook_is_ignored_by_policy,
    hanging_webhook_does_not_hold_others_up,
    validating_webhooks_are_called_at_once,
    unknown_authority_is_not_trusted,
    certificate_as_its_own_authority_is_trusted,
    wrong_host_name_is_not_trusted,
    missing_service_fails_the_request,
    timeout_is_told_to_the_webhook,
    dry_run_is_told_to_the_webhook,
    timeout_of_the_request_bounds_that_of_the_webhook,
    webhook_with_side_effects_refuses_dry_runs,
    double_slash_in_a_url_is_cleaned,
];

const REFUSED: &str = "https://127.0.0.1:1/x";

async fn refused_connection_fails_the_request(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/clientConfig", doc!({ "url": REFUSED }));
    configured(t, "Validating", &webhook, &[hook]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    refusal.says(
        "Internal error occurred: failed calling webhook \"v.example.com\": failed to call \
         webhook: Post \"https://127.0.0.1:1/x?timeout=10s\": dial tcp 127.0.0.1:1: connect: \
         connection refused",
    );
}

async fn refused_connection_is_ignored_by_policy(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = |name| {
        let hook = hook(t, &webhook, name).set("/clientConfig", doc!({ "url": REFUSED }));
        hook.set("/failurePolicy", "Ignore")
    };
    configured(t, "Validating", &webhook, &[hook("v")]).await;
    configured(t, "Mutating", &webhook, &[hook("m")]).await;
    t.made("configmaps", &config_map("a")).await;
}

async fn hanging_webhook_fails_after_its_timeout(t: &Scope) {
    let webhook = start(|_| Reply::Hang).await;
    let hook = hook(t, &webhook, "v").set("/timeoutSeconds", 1);
    configured(t, "Validating", &webhook, &[hook]).await;
    let begun = Instant::now();
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    assert!(begun.elapsed() < Duration::from_secs(9), "it waited longer");
    refusal.mentions("/v?timeout=1s\": context deadline exceeded");
    t.get("configmaps/a").await.is(404);
}

async fn hanging_webhook_is_ignored_by_policy(t: &Scope) {
    let webhook = start(|_| Reply::Hang).await;
    let hook = hook(t, &webhook, "m").set("/timeoutSeconds", 1);
    let hook = hook.set("/failurePolicy", "Ignore");
    configured(t, "Mutating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
}

async fn hanging_webhook_does_not_hold_others_up(t: &Scope) {
    let webhook = start(|call| match call.request().str_at("/name") {
        "slow" => Reply::Hang,
        _ => Reply::allow(),
    })
    .await;
    let hook = hook(t, &webhook, "v").set("/timeoutSeconds", 5);
    configured(t, "Validating", &webhook, &[hook]).await;
    let begun = Instant::now();
    let slow = config_map("slow");
    let slow = t.create("configmaps", &slow);
    let fast = async {
        for name in ["a", "b", "c"] {
            t.made("configmaps", &config_map(name)).await;
        }
        begun.elapsed()
    };
    let mut slow = std::pin::pin!(slow);
    let mut fast = std::pin::pin!(fast);
    let mut is_slow_done = false;
    let took = std::future::poll_fn(|cx| {
        is_slow_done = is_slow_done || slow.as_mut().poll(cx).is_ready();
        fast.as_mut().poll(cx)
    })
    .await;
    assert!(
        !is_slow_done,
        "the slow request was over first, after {took:?}"
    );
}

/// Three webhooks that each wait for the others: they come only if they are called together.
async fn validating_webhooks_are_called_at_once(t: &Scope) {
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(3));
    let webhook = start(move |_| {
        let barrier = std::sync::Arc::clone(&barrier);
        tokio::task::block_in_place(move || barrier.wait());
        Reply::allow()
    })
    .await;
    let hooks = ["u", "v", "w"].map(|name| hook(t, &webhook, name));
    configured(t, "Validating", &webhook, &hooks).await;
    t.made("configmaps", &config_map("a")).await;
}

async fn unknown_authority_is_not_trusted(t: &Scope) {
    let (webhook, other) = (
        start(|_| Reply::allow()).await,
        start(|_| Reply::allow()).await,
    );
    let hook = hook(t, &webhook, "v").set("/clientConfig/caBundle", other.bundle());
    configured(t, "Validating", &webhook, &[hook]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    refusal.mentions(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    );
}

async fn certificate_as_its_own_authority_is_trusted(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/clientConfig/caBundle", webhook.leaf_bundle());
    configured(t, "Validating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn wrong_host_name_is_not_trusted(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let url = format!("https://127.0.0.2:{}/v", webhook.port());
    let hook = hook(t, &webhook, "v").set("/clientConfig/url", url);
    configured(t, "Validating", &webhook, &[hook]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    refusal.mentions("failed calling webhook \"v.example.com\"");
}

async fn missing_service_fails_the_request(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let service = doc!({ "service": { "name": "absent", "namespace": (t.namespace()) } });
    let hook = hook(t, &webhook, "v").set("/clientConfig", service);
    configured(t, "Validating", &webhook, &[hook]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    let refusal = refusal.fails(500, "InternalError");
    let namespace = t.namespace();
    refusal.mentions(&format!(
        "Post \"https://absent.{namespace}.svc:443/?timeout=10s\": service \"absent\" not found"
    ));
}

async fn timeout_is_told_to_the_webhook(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/timeoutSeconds", 7);
    configured(t, "Validating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
    let calls = webhook.received();
    let call = calls.iter().find(|call| call.path == "/v").expect("a call");
    assert_eq!(call.query, "timeout=7s");
    let header = |name: &str| {
        call.headers
            .get(name)
            .map(|value| value.to_str().expect("text"))
    };
    assert_eq!(header("user-agent"), Some("kube-apiserver-admission"));
    assert_eq!(header("content-type"), Some("application/json"));
}

async fn dry_run_is_told_to_the_webhook(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/sideEffects", "NoneOnDryRun");
    configured(t, "Validating", &webhook, &[hook]).await;
    t.create("configmaps?dryRun=All", &config_map("a"))
        .await
        .is(201);
    let requests = webhook.requests("/v");
    assert_eq!(requests.len(), 1);
    assert_eq!(*requests[0].at("/dryRun"), true);
    assert_eq!(*requests[0].at("/options/dryRun"), doc!(["All"]));
}

async fn timeout_of_the_request_bounds_that_of_the_webhook(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/timeoutSeconds", 30);
    configured(t, "Validating", &webhook, &[hook]).await;
    t.create("configmaps?timeout=5s", &config_map("a"))
        .await
        .is(201);
    let calls = webhook.received();
    let call = calls.iter().find(|call| call.path == "/v").expect("a call");
    assert_eq!(call.query, "timeout=5s");
}

/// Only configurations of older servers can have such webhooks. No policy ignores this.
async fn webhook_with_side_effects_refuses_dry_runs(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let some = hook(t, &webhook, "v")
        .set("/sideEffects", "Some")
        .set("/failurePolicy", "Ignore");
    stored(t, "Validating", &webhook, &[some]).await;
    let refusal = t.create("configmaps?dryRun=All", &config_map("a")).await;
    let refusal = refusal.fails(400, "BadRequest");
    refusal.says("admission webhook \"v.example.com\" does not support dry run");
    assert_eq!(webhook.requests("/v").len(), 0);
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn double_slash_in_a_url_is_cleaned(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/clientConfig", webhook.client_config("//v/"));
    configured(t, "Validating", &webhook, &[hook]).await;
    t.made("configmaps", &config_map("a")).await;
    assert_eq!(webhook.requests("/v").len(), 1);
}
