//! Quotas: what is charged, and what is given back.

use windlass_core::doc;

use crate::support::{Api, CONFIG_MAPS, config_map};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

/// A server with a quota of which one is used.
async fn limited(name: &str, limit: &str) -> Api {
    let api = Api::new().await;
    let quota = doc!({ "metadata": { "name": "q" }, "spec": { "hard": { (name): limit } } });
    api.post(QUOTAS, &quota).await.expect(201);
    let status = doc!({ "status": { "hard": { (name): limit }, "used": { (name): "1" } } });
    api.merge(&format!("{QUOTAS}/q/status"), &status)
        .await
        .expect(200);
    api
}

async fn used(api: &Api, name: &str) -> String {
    let quota = api.get(&format!("{QUOTAS}/q")).await.expect(200);
    let used = quota.body.at("/status/used").get(name).cloned();
    used.unwrap_or_default()
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_name_that_is_taken_is_not_charged_for() {
    let api = limited("configmaps", "9").await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let before = api.get(&format!("{QUOTAS}/q")).await.expect(200);
    api.post(CONFIG_MAPS, &config_map("a"))
        .await
        .refused(409, "AlreadyExists");
    let after = api.get(&format!("{QUOTAS}/q")).await.expect(200);
    assert_eq!(before.body, after.body);
    assert_eq!(used(&api, "configmaps").await, "2");
}

#[tokio::test]
async fn of_racing_creates_of_one_name_one_is_charged_for() {
    let api = limited("configmaps", "40").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let api = api.clone();
        tasks.spawn(async move { api.post(CONFIG_MAPS, &config_map("a")).await.code.as_u16() });
    }
    let codes = tasks.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1);
    // A refund that somebody was faster than is left to whoever counts; none goes below.
    let used: usize = used(&api, "configmaps").await.parse().unwrap();
    assert!((2..=17).contains(&used), "{used}");
}

#[tokio::test]
async fn an_update_that_needs_no_more_is_not_charged_for() {
    let services = "/api/v1/namespaces/default/services";
    let api = limited("services.nodeports", "2").await;
    let service = doc!({
        "metadata": { "name": "a" },
        "spec": { "type": "NodePort", "ports": [{ "port": 80 }] },
    });
    api.post(services, &service).await.expect(201);
    assert_eq!(used(&api, "services.nodeports").await, "2");
    let path = format!("{services}/a");
    let label = doc!({ "metadata": { "labels": { "a": "b" } } });
    api.merge(&path, &label).await.expect(200);
    assert_eq!(used(&api, "services.nodeports").await, "2");
    let more = doc!({ "spec": { "ports": [
        { "name": "a", "port": 80 }, { "name": "b", "port": 81 },
    ] } });
    let message = api.merge(&path, &more).await.refused(403, "Forbidden");
    let expected = "exceeded quota: q, requested: services.nodeports=1, used: \
                    services.nodeports=2, limited: services.nodeports=2";
    assert!(message.contains(expected), "{message}");
}
