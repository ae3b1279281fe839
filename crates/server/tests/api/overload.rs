//! Watches without end.

use windlass_core::doc;
use windlass_server::User;

use crate::support::{Api, CONFIG_MAPS};

/// The server's limit for one user.
const USER_WATCHES_LIMIT: usize = 10_000;

#[tokio::test]
async fn watches_of_one_user_are_capped_and_others_go_on() {
    let api = Api::new().await;
    let binding = doc!({
        "metadata": { "name": "everybody" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"
        }]
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    api.post(path, &binding).await.expect(201);
    let mallory = api.asked_by(User::new("mallory", &[]));
    let watch = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=600");
    let mut open = Vec::new();
    for _ in 0..USER_WATCHES_LIMIT {
        open.push(mallory.watch(&watch).await);
    }
    let message = mallory.get(&watch).await.refused(429, "TooManyRequests");
    assert_eq!(message, "Too many requests, please try again later.");
    let page = api.get("/metrics").await.expect(200).text;
    let row = format!("windlass_watches {USER_WATCHES_LIMIT}\n");
    assert!(page.contains(&row), "{page}");
    assert!(
        page.contains("windlass_watches_refused_total 1\n"),
        "{page}"
    );
    let mut other = api.asked_by(User::new("jane", &[])).watch(&watch).await;
    api.post(CONFIG_MAPS, &doc!({ "metadata": { "name": "a" } }))
        .await
        .expect(201);
    assert_eq!(other.short().await, "ADDED a");
    open.pop();
    mallory.watch(&watch).await;
    drop(open);
    let page = api.get("/metrics").await.expect(200).text;
    assert!(page.contains("windlass_watches 1\n"), "{page}");
}
