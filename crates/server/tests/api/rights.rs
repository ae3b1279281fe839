//! Rights that must not leak.

use http::{HeaderValue, Method};
use windlass_core::{Doc, doc};
use windlass_server::User;

use crate::support::{Api, request};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Asks who one is, with headers of any bytes.
async fn who(api: &Api, headers: &[(&'static str, &[u8])]) -> (u16, Doc) {
    let mut request = request(Method::POST, WHO, "application/json", "{}");
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value).unwrap();
        request.headers_mut().append(*name, value);
    }
    let answer = api.send(request).await;
    (answer.code.as_u16(), answer.body)
}

#[tokio::test]
async fn an_impersonation_header_that_is_not_text_never_runs_as_its_sender() {
    let api = Api::new().await;
    let bad: &[&[u8]] = &[
        b"caf\xe9",
        b"\xff",
        b"a\xc3",
        b"\xed\xa0\x80",
        b"a\xf0\x9fb",
    ];
    for value in bad {
        for name in [
            "impersonate-user",
            "impersonate-group",
            "impersonate-uid",
            "impersonate-extra-scopes",
        ] {
            let (code, body) = who(&api, &[(name, value)]).await;
            assert_eq!(code, 400, "{name} {value:?}: {body}");
            let user: (&str, &[u8]) = ("impersonate-user", b"ann");
            let (code, body) = who(&api, &[user, (name, value)]).await;
            assert_eq!(code, 400, "a user and {name} {value:?}: {body}");
            assert_eq!(*body.at("/reason"), "BadRequest");
        }
    }
    let (code, _) = who(
        &api,
        &[
            ("impersonate-user", b"ann"),
            ("impersonate-extra-%ff", b"a"),
        ],
    )
    .await;
    assert_eq!(code, 400);
    // What is text beyond ASCII is a name like any other.
    let (code, body) = who(&api, &[("impersonate-user", "café".as_bytes())]).await;
    assert_eq!(
        (code, body.str_at("/status/userInfo/username")),
        (201, "café")
    );
}

#[tokio::test]
async fn requested_groups_replace_those_of_an_impersonated_service_account() {
    let api = Api::new().await;
    let user: (&str, &[u8]) = ("impersonate-user", b"system:serviceaccount:a:b");
    let (_, body) = who(&api, &[user, ("impersonate-group", b"team")]).await;
    let groups = doc!(["team", "system:authenticated"]);
    assert_eq!(*body.at("/status/userInfo/groups"), groups);
    let (_, body) = who(&api, &[user]).await;
    assert_eq!(body.at("/status/userInfo/groups").items().len(), 3);
}

/// 846 bytes of rules that stand for 614,656 rights: 41 seconds and 211 MiB, once.
#[tokio::test]
async fn a_role_of_many_combinations_is_refused_at_once() {
    let api = Api::new().await;
    let binding = doc!({
        "metadata": { "name": "bob" }, "roleRef": { "kind": "ClusterRole", "name": "admin" },
        "subjects": [{ "kind": "User", "name": "bob" }]
    });
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    api.post(&bindings, &binding).await.expect(201);
    let many = |prefix: &str| -> Doc {
        let values = (0..28).map(|at| Doc::from(format!("{prefix}{at}")));
        values.collect::<Vec<Doc>>().into()
    };
    let role = doc!({ "metadata": { "name": "r" }, "rules": [{
        "verbs": (many("v")), "apiGroups": (many("g")), "resources": (many("r")),
        "resourceNames": (many("n"))
    }] });
    let bob = api.asked_by(User::new("bob", &[]));
    let roles = format!("{RBAC}/namespaces/default/roles");
    let message = bob.post(&roles, &role).await.refused(403, "Forbidden");
    assert!(message.ends_with("\n... and more"), "{message}");
    assert!(message.len() < 128 << 10, "{}", message.len());
}

#[tokio::test]
async fn binding_an_absent_role_needs_bind() {
    let api = Api::new().await;
    let admin = |name: &str, rules: Doc| doc!({ "metadata": { "name": name }, "rules": rules });
    let write = doc!({
        "verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["rolebindings"]
    });
    let bind = doc!({
        "verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]
    });
    let roles = format!("{RBAC}/clusterroles");
    api.post(&roles, &admin("write", doc!([(write.clone())])))
        .await
        .expect(201);
    api.post(&roles, &admin("bind", doc!([write, bind])))
        .await
        .expect(201);
    for name in ["write", "bind"] {
        let binding = doc!({
            "metadata": { "name": name }, "roleRef": { "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "User", "name": name }]
        });
        let path = format!("{RBAC}/clusterrolebindings");
        api.post(&path, &binding).await.expect(201);
    }
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let later = doc!({
        "metadata": { "name": "later" }, "roleRef": { "kind": "Role", "name": "later" },
        "subjects": [{ "kind": "User", "name": "write" }]
    });
    let writer = api.asked_by(User::new("write", &[]));
    writer
        .post(&bindings, &later)
        .await
        .refused(404, "NotFound");
    let binder = api.asked_by(User::new("bind", &[]));
    binder.post(&bindings, &later).await.expect(201);
}
