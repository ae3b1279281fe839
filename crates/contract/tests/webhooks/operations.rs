//! The requests that webhooks see of each operation.

use windlass_contract::objects::{config_map, pod, service};
use windlass_contract::{Edit, Reply, Scope, Webhook, cases};
use windlass_core::{Doc, doc};

use super::support::{configured, hook, rule, start};

cases![
    create_is_reviewed,
    update_is_reviewed,
    patch_is_reviewed_as_an_update,
    apply_is_reviewed_as_what_it_does,
    delete_is_reviewed,
    delete_of_many_is_reviewed_one_by_one,
    delete_can_be_denied,
    patch_of_a_delete_fails_the_request,
    update_of_an_absent_object_is_not_reviewed,
    duplicate_create_is_reviewed_and_refused,
    binding_is_reviewed,
    eviction_is_reviewed_and_the_deletion_is_not,
    token_request_is_reviewed,
    access_review_is_reviewed,
    user_is_told,
    service_has_its_address_when_validated,
    cluster_scoped_objects_are_reviewed,
    unchanged_update_is_reviewed,
];

async fn reviewing(t: &Scope, resources: &[&str]) -> Webhook {
    let webhook = start(|_| Reply::allow()).await;
    let hook = hook(t, &webhook, "v").set("/rules", doc!([(rule(resources))]));
    let hook = match resources.contains(&"configmaps") {
        true => hook,
        false => hook.set("/objectSelector", doc!({})),
    };
    configured(t, "Validating", &webhook, &[hook]).await;
    webhook
}

fn only(webhook: &Webhook) -> Doc {
    let requests = webhook.requests("/v");
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests[0].clone()
}

async fn create_is_reviewed(t: &Scope) {
    let webhook = reviewing(t, &["configmaps"]).await;
    t.made(
        "configmaps?fieldManager=me&fieldValidation=Warn",
        &config_map("a"),
    )
    .await;
    let request = only(&webhook);
    assert_eq!(request.at("/operation"), "CREATE");
    assert_eq!(
        *request.at("/kind"),
        doc!({ "group": "", "version": "v1", "kind": "ConfigMap" })
    );
    assert_eq!(
        *request.at("/resource"),
        doc!({ "group": "", "version": "v1", "resource": "configmaps" })
    );
    assert_eq!(request.at("/requestKind"), request.at("/kind"));
    assert_eq!(request.at("/requestResource"), request.at("/resource"));
    assert_eq!(request.at("/name"), "a");
    assert_eq!(request.at("/namespace"), t.namespace());
    assert_eq!(request.at("/object/kind"), "ConfigMap");
    assert_eq!(*request.at("/oldObject"), Doc::NULL);
    assert_eq!(*request.at("/dryRun"), false);
    assert_eq!(
        *request.at("/options"),
        doc!({
            "apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "fieldManager": "me",
            "fieldValidation": "Warn"
        })
    );
}

async fn update_is_reviewed(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    let changed = config_map("a").set("/data/key", "other");
    t.update("configmaps/a", &changed).await.is(200);
    let request = only(&webhook);
    assert_eq!(request.at("/operation"), "UPDATE");
    assert_eq!(request.at("/object/data/key"), "other");
    assert_eq!(request.at("/oldObject/data/key"), "value");
    assert_eq!(request.at("/options/kind"), "UpdateOptions");
    assert_eq!(
        request.at("/object/metadata/uid"),
        request.at("/oldObject/metadata/uid")
    );
}

async fn patch_is_reviewed_as_an_update(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    let patch = doc!({ "data": { "key": "other" } });
    t.merge("configmaps/a?fieldManager=me", &patch)
        .await
        .is(200);
    let request = only(&webhook);
    assert_eq!(request.at("/operation"), "UPDATE");
    assert_eq!(
        *request.at("/options"),
        doc!({ "apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "fieldManager": "me" })
    );
}

async fn apply_is_reviewed_as_what_it_does(t: &Scope) {
    let webhook = reviewing(t, &["configmaps"]).await;
    t.applied("me", "configmaps/a", &config_map("a")).await;
    t.applied(
        "me",
        "configmaps/a",
        &config_map("a").set("/data/key", "other"),
    )
    .await;
    let requests = webhook.requests("/v");
    let seen: Vec<&str> = requests.iter().map(|it| it.str_at("/operation")).collect();
    assert_eq!(seen, ["CREATE", "UPDATE"]);
}

async fn delete_is_reviewed(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    let options = doc!({ "propagationPolicy": "Background" });
    t.delete_with("configmaps/a", &options).await.is(200);
    let request = only(&webhook);
    assert_eq!(request.at("/operation"), "DELETE");
    assert_eq!(request.at("/name"), "a");
    assert_eq!(*request.at("/object"), Doc::NULL);
    assert_eq!(request.at("/oldObject/data/key"), "value");
    assert_eq!(request.at("/options/kind"), "DeleteOptions");
    assert_eq!(request.at("/options/propagationPolicy"), "Background");
}

async fn delete_of_many_is_reviewed_one_by_one(t: &Scope) {
    for name in ["a", "b", "c"] {
        t.made("configmaps", &config_map(name)).await;
    }
    let webhook = reviewing(t, &["configmaps"]).await;
    t.delete("configmaps").await.is(200);
    let requests = webhook.requests("/v");
    let mut names: Vec<&str> = requests
        .iter()
        .map(|it| it.str_at("/oldObject/metadata/name"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(
        requests.iter().all(|it| it.get("name").is_none()),
        "{requests:?}"
    );
}

async fn delete_can_be_denied(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = start(|_| Reply::deny("keep it")).await;
    configured(t, "Validating", &webhook, &[hook(t, &webhook, "v")]).await;
    let refusal = t.delete("configmaps/a").await.fails(400, "");
    refusal.says("admission webhook \"v.example.com\" denied the request: keep it");
    t.get("configmaps/a").await.is(200);
}

async fn patch_of_a_delete_fails_the_request(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = start(|_| Reply::patch(&super::support::adds("new"))).await;
    let hook = hook(t, &webhook, "m").set("/failurePolicy", "Ignore");
    configured(t, "Mutating", &webhook, &[hook]).await;
    let refusal = t.delete("configmaps/a").await.fails(500, "InternalError");
    refusal.says(
        "Internal error occurred: admission webhook \"m.example.com\" attempted to modify the \
         object, which is not supported for this operation",
    );
    t.get("configmaps/a").await.is(200);
}

async fn update_of_an_absent_object_is_not_reviewed(t: &Scope) {
    let webhook = reviewing(t, &["configmaps"]).await;
    t.update("configmaps/a", &config_map("a")).await.is(404);
    t.delete("configmaps/a").await.is(404);
    assert_eq!(webhook.requests("/v").len(), 0);
}

async fn duplicate_create_is_reviewed_and_refused(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    let refusal = t.create("configmaps", &config_map("a")).await;
    refusal.fails(409, "AlreadyExists");
    assert_eq!(webhook.requests("/v").len(), 1);
}

async fn binding_is_reviewed(t: &Scope) {
    t.made("pods", &pod("p")).await;
    let webhook = reviewing(t, &["pods/binding"]).await;
    let binding = doc!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n" }
    });
    t.create("pods/p/binding", &binding).await.is(201);
    let request = only(&webhook);
    assert_eq!(request.at("/operation"), "CREATE");
    assert_eq!(request.at("/kind/kind"), "Binding");
    assert_eq!(request.at("/subResource"), "binding");
    assert_eq!(request.at("/object/target/name"), "n");
    assert_eq!(request.at("/name"), "p");
}

async fn eviction_is_reviewed_and_the_deletion_is_not(t: &Scope) {
    t.made("pods", &pod("p")).await;
    let webhook = reviewing(t, &["pods/eviction", "pods"]).await;
    let eviction =
        doc!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "p" } });
    t.create("pods/p/eviction", &eviction).await.is(201);
    let request = only(&webhook);
    assert_eq!(request.at("/kind/kind"), "Eviction");
    assert_eq!(request.at("/operation"), "CREATE");
    assert_eq!(request.at("/name"), "p");
}

async fn token_request_is_reviewed(t: &Scope) {
    let account =
        doc!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "s" } });
    t.made("serviceaccounts", &account).await;
    let webhook = reviewing(t, &["serviceaccounts/token"]).await;
    let wanted = doc!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": 700 }
    });
    t.create("serviceaccounts/s/token", &wanted).await.is(201);
    let request = only(&webhook);
    assert_eq!(request.at("/kind/kind"), "TokenRequest");
    assert_eq!(request.at("/object/spec/expirationSeconds"), 700);
}

async fn access_review_is_reviewed(t: &Scope) {
    let webhook = reviewing(t, &["localsubjectaccessreviews"]).await;
    let review = doc!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
        "metadata": { "namespace": (t.namespace()) },
        "spec": {
            "user": "ann",
            "resourceAttributes": {
                "verb": "get", "resource": "pods", "namespace": (t.namespace())
            }
        }
    });
    let path = "/apis/authorization.k8s.io/v1/namespaces/NS/localsubjectaccessreviews";
    t.create(&path.replace("NS", t.namespace()), &review)
        .await
        .is(201);
    assert_eq!(only(&webhook).at("/kind/kind"), "LocalSubjectAccessReview");
}

async fn user_is_told(t: &Scope) {
    let role = windlass_contract::objects::role("r", &["create"], &["configmaps"]);
    t.made("roles", &role).await;
    let binding = windlass_contract::objects::role_binding("r", "r", "ann");
    t.made("rolebindings", &binding).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    let ann = t.as_user("ann").with_header("impersonate-group", "staff");
    ann.made("configmaps", &config_map("a")).await;
    let request = only(&webhook);
    assert_eq!(request.at("/userInfo/username"), "ann");
    assert_eq!(
        *request.at("/userInfo/groups"),
        doc!(["staff", "system:authenticated"])
    );
}

async fn service_has_its_address_when_validated(t: &Scope) {
    let webhook = reviewing(t, &["services"]).await;
    let made = t.made("services", &service("a")).await;
    assert_eq!(
        only(&webhook).at("/object/spec/clusterIP"),
        made.at("/spec/clusterIP")
    );
}

async fn cluster_scoped_objects_are_reviewed(t: &Scope) {
    let webhook = start(|_| Reply::allow()).await;
    let label = t.unique("label");
    let hook = hook(t, &webhook, "v")
        .set("/rules", doc!([(rule(&["priorityclasses"]))]))
        .set(
            "/objectSelector",
            doc!({ "matchLabels": { "case": (&label) } }),
        );
    configured(t, "Validating", &webhook, &[hook]).await;
    let class = doc!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": (t.unique("c")), "labels": { "case": (&label) } }, "value": 7
    });
    t.made("/apis/scheduling.k8s.io/v1/priorityclasses", &class)
        .await;
    let request = only(&webhook);
    assert_eq!(request.str_at("/name"), t.unique("c"));
    assert!(request.get("namespace").is_none());
}

async fn unchanged_update_is_reviewed(t: &Scope) {
    let made = t.made("configmaps", &config_map("a")).await;
    let webhook = reviewing(t, &["configmaps"]).await;
    t.update("configmaps/a", &made).await.is(200);
    assert_eq!(only(&webhook).at("/operation"), "UPDATE");
}
