//! Custom resources: what only a look at the whole server shows.

use windlass_core::{Doc, Env, doc};
use windlass_server::{Server, ServerOptions, User};

use crate::support::Api;

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";

pub(crate) fn definition(spec: Doc) -> Doc {
    doc!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "gadgets", "kind": "Gadget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": spec }
                } }
            }]
        }
    })
}

fn plain() -> Doc {
    definition(
        doc!({ "type": "object", "properties": { "a": { "type": "string", "default": "x" } } }),
    )
}

fn gadget(name: &str) -> Doc {
    doc!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": name }, "spec": {}
    })
}

#[tokio::test]
async fn definition_is_established_when_its_creation_is_answered() {
    let api = Api::new().await;
    api.post(DEFINITIONS, &plain()).await.expect(201);
    let found = api
        .get(&format!("{DEFINITIONS}/gadgets.example.com"))
        .await
        .expect(200);
    let conditions = found.body.at("/status/conditions").items();
    let statuses: Vec<(&str, &str)> = conditions
        .iter()
        .map(|one| (one.str_at("/type"), one.str_at("/status")))
        .collect();
    assert_eq!(
        statuses,
        [("NamesAccepted", "True"), ("Established", "True")]
    );
    api.post(GADGETS, &gadget("a")).await.expect(201);
}

#[tokio::test]
async fn custom_resources_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = ServerOptions::directory(Env::seeded(1), directory.path());
    let server = Server::open(options.clone()).await.unwrap();
    let api = Api::of(server.clone(), User::admin());
    api.post(DEFINITIONS, &plain()).await.expect(201);
    let made = api.post(GADGETS, &gadget("a")).await.expect(201);
    server.close();
    drop((api, server));

    let server = Server::open(options).await.unwrap();
    let api = Api::of(server, User::admin());
    let found = api.get(&format!("{GADGETS}/a")).await.expect(200);
    assert_eq!(found.body, made.body);
    api.post(GADGETS, &gadget("b")).await.expect(201);
    let invalid = gadget("c").with("/spec/a", 5).unwrap();
    api.post(GADGETS, &invalid).await.expect(422);
}

#[tokio::test]
async fn deletion_of_a_definition_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let options = ServerOptions::directory(Env::seeded(1), directory.path());
    let server = Server::open(options.clone()).await.unwrap();
    let api = Api::of(server.clone(), User::admin());
    api.post(DEFINITIONS, &plain()).await.expect(201);
    let held = gadget("a")
        .with("/metadata/finalizers", doc!(["example.com/hold"]))
        .unwrap();
    api.post(GADGETS, &held).await.expect(201);
    api.delete(&format!("{DEFINITIONS}/gadgets.example.com"))
        .await
        .expect(200);
    server.close();
    drop((api, server));

    let api = Api::of(Server::open(options).await.unwrap(), User::admin());
    api.post(GADGETS, &gadget("b")).await.expect(403);
    let patch = doc!({ "metadata": { "finalizers": (Doc::NULL) } });
    api.merge(&format!("{GADGETS}/a"), &patch).await.expect(200);
    api.get(&format!("{DEFINITIONS}/gadgets.example.com"))
        .await
        .expect(404);
    api.get(GADGETS).await.expect(404);
}

#[tokio::test]
async fn definition_deleted_while_its_objects_are_written_leaves_nothing_behind() {
    let api = Api::new().await;
    for round in 0..20 {
        api.post(DEFINITIONS, &plain()).await.expect(201);
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let api = api.clone();
                tokio::spawn(async move {
                    let mut codes = Vec::new();
                    for number in 0..10 {
                        let object = gadget(&format!("g-{round}-{writer}-{number}"));
                        codes.push(api.post(GADGETS, &object).await.code.as_u16());
                    }
                    codes
                })
            })
            .collect();
        tokio::task::yield_now().await;
        api.delete(&format!("{DEFINITIONS}/gadgets.example.com"))
            .await
            .expect(200);
        for writer in writers {
            let codes = writer.await.unwrap();
            assert!(
                codes.iter().all(|code| [201, 403, 404].contains(code)),
                "{codes:?}"
            );
        }
        api.get(&format!("{DEFINITIONS}/gadgets.example.com"))
            .await
            .expect(404);
    }
    // What was written too late does not come back with the next definition of that name.
    api.post(DEFINITIONS, &plain()).await.expect(201);
    assert!(
        api.get(GADGETS)
            .await
            .expect(200)
            .body
            .at("/items")
            .items()
            .is_empty()
    );
}

#[tokio::test]
async fn rule_that_never_ends_is_stopped() {
    let rule = "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= 0))))";
    let spec = |limit: i64| {
        doc!({
            "type": "object",
            "properties": { "l": { "type": "array", "maxItems": limit, "items": { "type": "integer" } } },
            "x-kubernetes-validations": [{ "rule": rule }]
        })
    };
    let api = Api::new().await;
    // As it stands the rule is refused, and with a limit it is stopped when it costs too much.
    let refused = api
        .post(DEFINITIONS, &definition(spec(1_000)))
        .await
        .expect(422);
    assert!(
        refused.text.contains("estimated rule cost exceeds budget"),
        "{}",
        refused.text
    );
    api.post(DEFINITIONS, &definition(spec(25)))
        .await
        .expect(201);
    let long: Vec<Doc> = (0..25_i64).map(Doc::from).collect();
    let object = gadget("a").with("/spec", doc!({ "l": long })).unwrap();
    let stopped = api.post(GADGETS, &object).await.expect(422);
    assert!(
        stopped.text.contains("actual cost limit exceeded"),
        "{}",
        stopped.text
    );
    let short: Vec<Doc> = (0..3_i64).map(Doc::from).collect();
    let object = gadget("a").with("/spec", doc!({ "l": short })).unwrap();
    api.post(GADGETS, &object).await.expect(201);
}

#[tokio::test]
async fn schema_nested_too_deep_is_refused() {
    let mut schema = doc!({ "type": "string" });
    for _ in 0..150 {
        schema = doc!({ "type": "object", "properties": { "a": schema } });
    }
    let api = Api::new().await;
    let answer = api.post(DEFINITIONS, &definition(schema)).await;
    assert!(answer.code.is_client_error(), "{}", answer.text);
}
