//! Who may do what: anonymous calls, tokens, impersonation and roles.

use http::Method;
use windlass_contract::objects::{config_map, lease, node, pod, role, role_binding};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    nobody_may_not_read,
    nobody_may_not_write,
    nobody_may_look_at_health_and_version,
    nobody_may_not_see_discovery,
    nobody_learns_nothing_about_pages,
    unknown_token_is_refused,
    user_without_roles_is_refused,
    refusal_names_the_object,
    refusal_names_the_subresource,
    refusal_at_cluster_scope,
    refusal_of_a_page,
    user_may_see_discovery,
    role_allows_its_verbs,
    role_allows_nothing_in_other_namespaces,
    role_for_one_name,
    role_for_a_subresource,
    role_with_a_star,
    cluster_role_bound_in_a_namespace,
    cluster_role_binding_allows_everywhere,
    group_binding,
    service_account_binding,
    removed_binding_removes_the_right,
    update_that_creates_needs_create,
    watch_and_list_are_separate_verbs,
    collection_deletion_is_a_verb,
    role_that_grants_more_than_its_author_has_is_refused,
    binding_that_grants_more_than_its_author_has_is_refused,
    impersonation_needs_a_right,
    group_without_a_user_is_refused,
    masters_may_do_everything,
    self_access_review,
    self_access_review_of_a_page,
    access_review_of_another_user,
    access_review_without_attributes_is_refused,
    local_access_review_stays_in_its_namespace,
    rules_review_lists_rules,
    reviews_cannot_be_read,
];

fn list_message(user: &str, namespace: &str) -> String {
    format!(
        "pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\" in \
         the namespace \"{namespace}\""
    )
}

/// A user that no other case knows.
fn user(t: &Scope) -> String {
    t.unique("ann")
}

async fn allow(t: &Scope, verbs: &[&str], resources: &[&str]) -> Scope {
    let user = user(t);
    t.made("roles", &role("r", verbs, resources)).await;
    t.made("rolebindings", &role_binding("r", "r", &user)).await;
    until_known(t, &user, verbs[0], resources[0]).await;
    t.as_user(&user)
}

/// The real server learns of bindings a moment after they are written.
async fn until_known(t: &Scope, user: &str, verb: &str, resource: &str) {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = doc!({ "spec": { "user": user, "resourceAttributes": {
        "namespace": (t.namespace()), "verb": verb, "resource": resource,
        "subresource": subresource
    } } });
    until(t, &review, true).await;
}

async fn until(t: &Scope, review: &Doc, expected: bool) {
    for _ in 0..1000 {
        let answer = t.create("subjectaccessreviews", review).await.is(201);
        if answer.at("/status/allowed") == &Doc::from(expected) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the server did not come to see that the answer to {review} is {expected}");
}

async fn nobody_may_not_read(t: &Scope) {
    let nobody = t.as_nobody();
    let message = list_message("system:anonymous", t.namespace());
    nobody
        .get("pods")
        .await
        .fails(403, "Forbidden")
        .says(&message)
        .is_about("", "pods", "");
    for path in [
        "secrets/a",
        "nodes",
        "roles",
        "/api/v1/secrets",
        "pods?watch=true",
    ] {
        nobody.get(path).await.fails(403, "Forbidden");
    }
}

async fn nobody_may_not_write(t: &Scope) {
    t.made("configmaps", &config_map("a")).await;
    let nobody = t.as_nobody();
    nobody
        .create("configmaps", &config_map("b"))
        .await
        .fails(403, "Forbidden");
    nobody
        .update("configmaps/a", &config_map("a"))
        .await
        .fails(403, "Forbidden");
    nobody
        .merge("configmaps/a", &doc!({}))
        .await
        .fails(403, "Forbidden");
    nobody.delete("configmaps/a").await.fails(403, "Forbidden");
    nobody.delete("configmaps").await.fails(403, "Forbidden");
    t.get("configmaps/a").await.is(200);
}

async fn nobody_may_look_at_health_and_version(t: &Scope) {
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(t.as_nobody().get(path).await.code(), 200, "{path}");
    }
}

async fn nobody_may_not_see_discovery(t: &Scope) {
    for path in [
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/openapi/v3",
        "/openapi/v2",
    ] {
        let message = format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\"");
        t.as_nobody()
            .get(path)
            .await
            .fails(403, "Forbidden")
            .says(&message);
    }
}

async fn nobody_learns_nothing_about_pages(t: &Scope) {
    for path in ["/", "/foo", "/metrics", "/healthz/foo", "/logs"] {
        let answer = t.as_nobody().get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        answer.fails(403, "Forbidden");
    }
}

async fn unknown_token_is_refused(t: &Scope) {
    for path in ["/api", "/healthz", "pods", "/foo"] {
        let answer = t.with_token("wrong").get(path).await;
        answer.fails(401, "Unauthorized").says("Unauthorized");
    }
}

async fn user_without_roles_is_refused(t: &Scope) {
    let user = user(t);
    let message = list_message(&user, t.namespace());
    t.as_user(&user)
        .get("pods")
        .await
        .fails(403, "Forbidden")
        .says(&message);
}

async fn refusal_names_the_object(t: &Scope) {
    let user = user(t);
    let message = format!(
        "deployments.apps \"a\" is forbidden: User \"{user}\" cannot get resource \"deployments\" \
         in API group \"apps\" in the namespace \"{}\"",
        t.namespace()
    );
    let refusal = t
        .as_user(&user)
        .get("deployments/a")
        .await
        .fails(403, "Forbidden");
    refusal.says(&message).is_about("apps", "deployments", "a");
}

async fn refusal_names_the_subresource(t: &Scope) {
    let user = user(t);
    let message = format!(
        "pods \"a\" is forbidden: User \"{user}\" cannot patch resource \"pods/status\" in API \
         group \"\" in the namespace \"{}\"",
        t.namespace()
    );
    let answer = t.as_user(&user).merge("pods/a/status", &doc!({})).await;
    answer.fails(403, "Forbidden").says(&message);
}

async fn refusal_at_cluster_scope(t: &Scope) {
    let user = user(t);
    let message = format!(
        "nodes is forbidden: User \"{user}\" cannot create resource \"nodes\" in API group \"\" \
         at the cluster scope"
    );
    let answer = t.as_user(&user).create("nodes", &node("n")).await;
    answer.fails(403, "Forbidden").says(&message);
    let message = format!(
        "namespaces \"{0}\" is forbidden: User \"{user}\" cannot get resource \"namespaces\" in \
         API group \"\" in the namespace \"{0}\"",
        t.namespace()
    );
    let answer = t
        .as_user(&user)
        .get(&format!("namespaces/{}", t.namespace()))
        .await;
    answer.fails(403, "Forbidden").says(&message);
}

async fn refusal_of_a_page(t: &Scope) {
    let user = user(t);
    let message = format!("forbidden: User \"{user}\" cannot get path \"/metrics\"");
    let refusal = t
        .as_user(&user)
        .get("/metrics")
        .await
        .fails(403, "Forbidden")
        .says(&message);
    assert_eq!(refusal.status().at("/details"), &doc!({}));
}

async fn user_may_see_discovery(t: &Scope) {
    for path in [
        "/api",
        "/apis",
        "/api/v1",
        "/apis/apps/v1",
        "/version",
        "/openapi/v3",
    ] {
        assert_eq!(t.as_user("ann").get(path).await.code(), 200, "{path}");
    }
}

async fn role_allows_its_verbs(t: &Scope) {
    let ann = allow(t, &["get", "list"], &["configmaps"]).await;
    t.made("configmaps", &config_map("a")).await;
    ann.get("configmaps/a").await.is(200);
    ann.get("configmaps").await.is(200);
    ann.delete("configmaps/a").await.fails(403, "Forbidden");
    ann.create("configmaps", &config_map("b"))
        .await
        .fails(403, "Forbidden");
    ann.get("secrets").await.fails(403, "Forbidden");
}

async fn role_allows_nothing_in_other_namespaces(t: &Scope) {
    let ann = allow(t, &["list"], &["configmaps"]).await;
    ann.in_namespace("default")
        .get("configmaps")
        .await
        .fails(403, "Forbidden");
    ann.get("/api/v1/configmaps").await.fails(403, "Forbidden");
}

async fn role_for_one_name(t: &Scope) {
    let user = user(t);
    let named = role("r", &["get", "list", "watch"], &["configmaps"]);
    let named = named.set("/rules/0/resourceNames", doc!(["a"]));
    t.made("roles", &named).await;
    t.made("rolebindings", &role_binding("r", "r", &user)).await;
    let review = doc!({ "spec": { "user": (&user), "resourceAttributes": {
        "namespace": (t.namespace()), "verb": "get", "resource": "configmaps", "name": "a"
    } } });
    until(t, &review, true).await;
    t.made("configmaps", &config_map("a")).await;
    let ann = t.as_user(&user);
    ann.get("configmaps/a").await.is(200);
    ann.get("configmaps/b").await.fails(403, "Forbidden");
    ann.get("configmaps").await.fails(403, "Forbidden");
    ann.get("configmaps?fieldSelector=metadata.name%3Da")
        .await
        .is(200);
}

async fn role_for_a_subresource(t: &Scope) {
    let ann = allow(t, &["patch"], &["pods/status"]).await;
    t.made("pods", &pod("a")).await;
    ann.merge("pods/a/status", &doc!({ "status": { "phase": "Running" } }))
        .await
        .is(200);
    ann.merge("pods/a", &doc!({})).await.fails(403, "Forbidden");
}

async fn role_with_a_star(t: &Scope) {
    let ann = allow(t, &["*"], &["*"]).await;
    ann.create("configmaps", &config_map("a")).await.is(201);
    ann.get("pods").await.is(200);
    ann.get("deployments").await.fails(403, "Forbidden");
}

async fn cluster_role_bound_in_a_namespace(t: &Scope) {
    let (user, name) = (user(t), t.unique("r"));
    let reader = role(&name, &["list"], &["pods", "nodes"]).set("/kind", "ClusterRole");
    t.made("clusterroles", &reader).await;
    let binding = role_binding("r", &name, &user).set("/roleRef/kind", "ClusterRole");
    t.made("rolebindings", &binding).await;
    until_known(t, &user, "list", "pods").await;
    let ann = t.as_user(&user);
    ann.get("pods").await.is(200);
    ann.get("secrets").await.fails(403, "Forbidden");
    ann.get("nodes").await.fails(403, "Forbidden");
}

async fn cluster_role_binding_allows_everywhere(t: &Scope) {
    let (user, name) = (user(t), t.unique("b"));
    let binding = doc!({
        "metadata": { "name": (&name) },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"
        },
        "subjects": [{
            "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": (&user)
        }]
    });
    t.made("clusterrolebindings", &binding).await;
    until_known(t, &user, "list", "secrets").await;
    let ann = t.as_user(&user);
    ann.get("/api/v1/secrets?limit=1").await.is(200);
    ann.get("nodes?limit=1").await.is(200);
    assert_eq!(ann.get("/metrics").await.code(), 200);
}

async fn group_binding(t: &Scope) {
    let group = t.unique("writers");
    t.made("roles", &role("r", &["list"], &["pods"])).await;
    let binding = role_binding("r", "r", &group).set("/subjects/0/kind", "Group");
    t.made("rolebindings", &binding).await;
    let review = doc!({ "spec": { "groups": [(&group)], "resourceAttributes": {
        "namespace": (t.namespace()), "verb": "list", "resource": "pods"
    } } });
    until(t, &review, true).await;
    let ann = t.as_user(&user(t));
    ann.with_header("impersonate-group", &group)
        .get("pods")
        .await
        .is(200);
    ann.get("pods").await.fails(403, "Forbidden");
}

async fn service_account_binding(t: &Scope) {
    t.made("roles", &role("r", &["list"], &["pods"])).await;
    let subject = doc!({ "kind": "ServiceAccount", "name": "bot", "namespace": (t.namespace()) });
    let binding = role_binding("r", "r", "x").set("/subjects/0", subject);
    t.made("rolebindings", &binding).await;
    let name = format!("system:serviceaccount:{}:bot", t.namespace());
    until_known(t, &name, "list", "pods").await;
    t.as_user(&name).get("pods").await.is(200);
}

async fn removed_binding_removes_the_right(t: &Scope) {
    let ann = allow(t, &["list"], &["pods"]).await;
    ann.get("pods").await.is(200);
    t.delete("rolebindings/r").await.is(200);
    let review = doc!({ "spec": { "user": (user(t)), "resourceAttributes": {
        "namespace": (t.namespace()), "verb": "list", "resource": "pods"
    } } });
    until(t, &review, false).await;
    ann.get("pods").await.fails(403, "Forbidden");
}

async fn update_that_creates_needs_create(t: &Scope) {
    let user = user(t);
    let leases = role("r", &["update"], &["leases"]);
    let leases = leases.set("/rules/0/apiGroups", doc!(["coordination.k8s.io"]));
    t.made("roles", &leases).await;
    t.made("rolebindings", &role_binding("r", "r", &user)).await;
    let review = doc!({ "spec": { "user": (&user), "resourceAttributes": {
        "namespace": (t.namespace()), "verb": "update", "group": "coordination.k8s.io",
        "resource": "leases"
    } } });
    until(t, &review, true).await;
    let answer = t.as_user(&user).update("leases/a", &lease("a")).await;
    answer
        .fails(403, "Forbidden")
        .mentions("cannot create resource \"leases\"");
}

async fn watch_and_list_are_separate_verbs(t: &Scope) {
    let ann = allow(t, &["list"], &["configmaps"]).await;
    ann.get("configmaps").await.is(200);
    let answer = ann.get("configmaps?watch=true").await;
    answer
        .fails(403, "Forbidden")
        .mentions("cannot watch resource \"configmaps\"");
}

async fn collection_deletion_is_a_verb(t: &Scope) {
    let ann = allow(t, &["delete"], &["configmaps"]).await;
    t.made("configmaps", &config_map("a")).await;
    let answer = ann.delete("configmaps").await;
    answer
        .fails(403, "Forbidden")
        .mentions("cannot deletecollection resource \"configmaps\"");
    ann.delete("configmaps/a").await.is(200);
}

/// A user who may write roles and bindings, and nothing else.
async fn role_author(t: &Scope) -> (String, Scope) {
    let author = t.unique("eve");
    let rule = role("author", &["create"], &["roles", "rolebindings"]);
    let rule = rule.set("/rules/0/apiGroups", doc!(["rbac.authorization.k8s.io"]));
    t.made("roles", &rule).await;
    t.made("rolebindings", &role_binding("author", "author", &author))
        .await;
    let review = doc!({ "spec": { "user": (&author), "resourceAttributes": {
        "namespace": (t.namespace()), "verb": "create", "group": "rbac.authorization.k8s.io",
        "resource": "roles"
    } } });
    until(t, &review, true).await;
    (author.clone(), t.as_user(&author))
}

async fn role_that_grants_more_than_its_author_has_is_refused(t: &Scope) {
    let (name, author) = role_author(t).await;
    let answer = author
        .create("roles", &role("q", &["get"], &["pods"]))
        .await;
    let message = format!(
        "roles.rbac.authorization.k8s.io \"q\" is forbidden: user \"{name}\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
         currently held:\n{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}}"
    );
    answer.fails(403, "Forbidden").says(&message);
}

async fn binding_that_grants_more_than_its_author_has_is_refused(t: &Scope) {
    let (name, author) = role_author(t).await;
    t.made("roles", &role("q", &["get"], &["pods"])).await;
    let answer = author
        .create("rolebindings", &role_binding("q", "q", &name))
        .await;
    answer
        .fails(403, "Forbidden")
        .mentions("is attempting to grant RBAC permissions not currently held");
    t.get("rolebindings/q").await.fails(404, "NotFound");
}

async fn impersonation_needs_a_right(t: &Scope) {
    t.made("serviceaccounts", &doc!({ "metadata": { "name": "bot" } }))
        .await;
    let request = t
        .create("serviceaccounts/bot/token", &doc!({ "spec": {} }))
        .await
        .is(201);
    let bot = t.with_token(request.str_at("/status/token"));
    let answer = bot.as_user("ann").get("/api").await;
    answer.fails(403, "Forbidden");
}

async fn group_without_a_user_is_refused(t: &Scope) {
    let answer = t
        .with_header("impersonate-group", "writers")
        .get("/api")
        .await;
    answer.fails(400, "BadRequest");
}

async fn masters_may_do_everything(t: &Scope) {
    let ann = t
        .as_user("ann")
        .with_header("impersonate-group", "system:masters");
    ann.create("configmaps", &config_map("a")).await.is(201);
    assert_eq!(ann.get("/metrics").await.code(), 200);
}

async fn self_access_review(t: &Scope) {
    let ann = allow(t, &["get"], &["pods"]).await;
    let review = |verb: &str| {
        doc!({ "spec": { "resourceAttributes": {
            "namespace": (t.namespace()), "verb": verb, "resource": "pods"
        } } })
    };
    let allowed = ann
        .create("selfsubjectaccessreviews", &review("get"))
        .await
        .is(201);
    assert_eq!(allowed.at("/kind"), "SelfSubjectAccessReview");
    assert_eq!(allowed.at("/status/allowed"), true);
    assert_eq!(allowed.at("/spec/resourceAttributes/verb"), "get");
    let denied = ann
        .create("selfsubjectaccessreviews", &review("delete"))
        .await
        .is(201);
    assert_eq!(denied.at("/status"), &doc!({ "allowed": false }));
}

async fn self_access_review_of_a_page(t: &Scope) {
    for (path, expected) in [("/version", true), ("/metrics", false)] {
        let review = doc!({ "spec": { "nonResourceAttributes": { "path": path, "verb": "get" } } });
        let answer = t
            .as_user("ann")
            .create("selfsubjectaccessreviews", &review)
            .await
            .is(201);
        assert_eq!(answer.at("/status/allowed"), &Doc::from(expected), "{path}");
    }
}

async fn access_review_of_another_user(t: &Scope) {
    let review = doc!({ "spec": {
        "user": "ann", "groups": ["system:masters"],
        "resourceAttributes": { "verb": "delete", "resource": "nodes" }
    } });
    let answer = t.create("subjectaccessreviews", &review).await.is(201);
    assert_eq!(answer.at("/status/allowed"), true);
    let answer = t
        .as_user("ann")
        .create("subjectaccessreviews", &review)
        .await;
    answer.fails(403, "Forbidden");
}

async fn access_review_without_attributes_is_refused(t: &Scope) {
    let answer = t
        .create("selfsubjectaccessreviews", &doc!({ "spec": {} }))
        .await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.resourceAttributes")
        .mentions("exactly one of nonResourceAttributes or resourceAttributes must be specified");
}

async fn local_access_review_stays_in_its_namespace(t: &Scope) {
    let review = doc!({ "spec": {
        "user": "ann",
        "resourceAttributes": { "namespace": "elsewhere", "verb": "get", "resource": "pods" }
    } });
    let answer = t.create("localsubjectaccessreviews", &review).await;
    answer
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "spec.resourceAttributes.namespace");
}

async fn rules_review_lists_rules(t: &Scope) {
    let ann = allow(t, &["get"], &["configmaps"]).await;
    let review = doc!({ "spec": { "namespace": (t.namespace()) } });
    let answer = ann.create("selfsubjectrulesreviews", &review).await.is(201);
    assert_eq!(answer.at("/status/incomplete"), false);
    let rule = doc!({ "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"] });
    assert!(
        answer.at("/status/resourceRules").items().contains(&rule),
        "{answer}"
    );
}

async fn reviews_cannot_be_read(t: &Scope) {
    t.get("selfsubjectaccessreviews")
        .await
        .fails(405, "MethodNotAllowed");
    let request = t.request(Method::DELETE, "subjectaccessreviews");
    t.send(request).await.fails(405, "MethodNotAllowed");
}
