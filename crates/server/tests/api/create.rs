//! Create.

use http::{HeaderValue, Method};
use windlass_core::{Env, doc};
use windlass_server::{Server, ServerOptions, User};

use crate::support::{Answer, Api, CONFIG_MAPS, PODS, config_map, pod, request};

#[tokio::test]
async fn a_new_object_gets_what_only_the_server_sets() {
    let api = Api::new().await;
    let created = api.post(PODS, &pod("a")).await.expect(201);
    assert_eq!(created.str_at("/kind"), "Pod");
    assert_eq!(created.str_at("/apiVersion"), "v1");
    assert_eq!(created.str_at("/metadata/namespace"), "default");
    assert_eq!(created.str_at("/metadata/uid").len(), 36);
    assert_eq!(*created.body.at("/metadata/generation"), 1);
    assert!(!created.str_at("/metadata/creationTimestamp").is_empty());
    assert!(created.revision() > 0);
    assert_eq!(created.str_at("/status/phase"), "Pending");
    let got = api.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(got.body, created.body);
}

#[tokio::test]
async fn system_metadata_from_the_client_is_dropped() {
    let api = Api::new().await;
    let object = doc!({
        "metadata": {
            "name": "a", "uid": "mine", "generation": 7, "selfLink": "x",
            "creationTimestamp": "2001-01-01T00:00:00Z",
            "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5
        }
    });
    let created = api.post(CONFIG_MAPS, &object).await.expect(201);
    assert_ne!(created.str_at("/metadata/uid"), "mine");
    assert_ne!(
        created.str_at("/metadata/creationTimestamp"),
        "2001-01-01T00:00:00Z"
    );
    for absent in [
        "generation",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        assert!(
            created.body.at("/metadata").get(absent).is_none(),
            "{absent}"
        );
    }
}

#[tokio::test]
async fn a_generated_name_has_the_base_and_five_characters() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "generateName": "web-" } });
    let created = api.post(CONFIG_MAPS, &object).await.expect(201);
    let name = created.str_at("/metadata/name");
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_eq!(created.str_at("/metadata/generateName"), "web-");
}

/// Begins where the server began before: what is random repeats itself.
async fn restarted(directory: &std::path::Path) -> Server {
    let options = ServerOptions::directory(Env::seeded(1), directory);
    Server::open(options).await.unwrap()
}

/// Lets the server make a name. That the request has an id already, the server need not make one.
async fn generated(server: &Server) -> Answer {
    let object = doc!({ "metadata": { "generateName": "web-" } });
    let mut asked = request(
        Method::POST,
        CONFIG_MAPS,
        "application/json",
        object.to_json(),
    );
    let id = HeaderValue::from_static("00000000-0000-4000-8000-000000000000");
    asked.headers_mut().insert("audit-id", id);
    Api::of(server.clone(), User::admin()).send(asked).await
}

#[tokio::test]
async fn a_generated_name_that_is_taken_is_made_again_up_to_eight_times() {
    let directory = tempfile::tempdir().unwrap();
    // The first start makes the objects that every server has.
    restarted(directory.path()).await.close();
    let mut names = Vec::new();
    let server = restarted(directory.path()).await;
    for _ in 0..7 {
        let created = generated(&server).await.expect(201);
        names.push(created.str_at("/metadata/name").to_owned());
    }
    server.close();
    drop(server);

    let server = restarted(directory.path()).await;
    let eighth = generated(&server).await.expect(201);
    assert!(!names.contains(&eighth.str_at("/metadata/name").to_owned()));
    server.close();
    drop(server);

    // Now all of the first eight are taken.
    let server = restarted(directory.path()).await;
    let refused = generated(&server).await;
    let name = eighth.str_at("/metadata/name");
    assert_eq!(
        refused.refused(409, "AlreadyExists"),
        format!(
            "configmaps \"{name}\" already exists, the server was not able to generate a unique \
             name for the object"
        )
    );
    generated(&server).await.expect(201);
}

#[tokio::test]
async fn a_name_can_be_taken_once() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let answer = api.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(
        *answer.body.at("/details"),
        doc!({ "name": "a", "kind": "configmaps" })
    );
    assert_eq!(
        answer.refused(409, "AlreadyExists"),
        "configmaps \"a\" already exists"
    );
}

#[tokio::test]
async fn a_name_that_is_being_deleted_is_still_taken() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "name": "a", "finalizers": ["a.b/c"] } });
    api.post(CONFIG_MAPS, &object).await.expect(201);
    api.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let message = api
        .post(CONFIG_MAPS, &object)
        .await
        .refused(409, "AlreadyExists");
    assert_eq!(
        message,
        "object is being deleted: configmaps \"a\" already exists"
    );
}

#[tokio::test]
async fn a_revision_may_not_be_set_on_a_new_object() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "name": "a", "resourceVersion": "5" } });
    let message = api.post(CONFIG_MAPS, &object).await.refused(500, "");
    assert_eq!(
        message,
        "resourceVersion should not be set on objects to be created"
    );
}

#[tokio::test]
async fn the_namespace_of_path_and_body_must_agree() {
    let api = Api::new().await;
    let object = doc!({ "metadata": { "name": "a", "namespace": "other" } });
    let message = api
        .post(CONFIG_MAPS, &object)
        .await
        .refused(400, "BadRequest");
    assert!(
        message.contains("does not match the namespace sent on the request"),
        "{message}"
    );
}

#[tokio::test]
async fn a_missing_namespace_is_not_found() {
    let api = Api::new().await;
    let path = "/api/v1/namespaces/nowhere/configmaps";
    let message = api
        .post(path, &config_map("a"))
        .await
        .refused(404, "NotFound");
    assert_eq!(message, "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_ends() {
    let api = Api::new().await;
    let namespace = doc!({ "metadata": { "name": "ns" } });
    api.post("/api/v1/namespaces", &namespace).await.expect(201);
    api.delete("/api/v1/namespaces/ns").await.expect(200);
    let answer = api
        .post("/api/v1/namespaces/ns/configmaps", &config_map("a"))
        .await;
    assert_eq!(
        answer.str_at("/details/causes/0/reason"),
        "NamespaceTerminating"
    );
    assert_eq!(
        answer.str_at("/details/causes/0/field"),
        "metadata.namespace"
    );
    let message = answer.refused(403, "Forbidden");
    assert!(
        message.ends_with("because it is being terminated"),
        "{message}"
    );
}

#[tokio::test]
async fn names_are_checked_in_upstreams_words() {
    let api = Api::new().await;
    let answer = api.post(CONFIG_MAPS, &config_map("A_b")).await;
    assert_eq!(answer.str_at("/details/kind"), "ConfigMap");
    assert_eq!(
        answer.str_at("/details/causes/0/reason"),
        "FieldValueInvalid"
    );
    assert_eq!(answer.str_at("/details/causes/0/field"), "metadata.name");
    let message = answer.refused(422, "Invalid");
    assert!(message.starts_with("ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain"));
    let message = api
        .post(CONFIG_MAPS, &doc!({}))
        .await
        .refused(422, "Invalid");
    assert!(message.contains("metadata.name: Required value: name or generateName is required"));
}

#[tokio::test]
async fn metadata_is_checked_field_by_field() {
    let api = Api::new().await;
    let cases = [
        (doc!({ "labels": { "a b": "c" } }), "metadata.labels"),
        (doc!({ "labels": { "a": "-" } }), "metadata.labels"),
        (
            doc!({ "annotations": { "a b": "c" } }),
            "metadata.annotations",
        ),
        (doc!({ "finalizers": ["plain"] }), "metadata.finalizers[0]"),
        (
            doc!({ "finalizers": ["orphan", "foregroundDeletion"] }),
            "metadata.finalizers",
        ),
        (
            doc!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "a" }] }),
            "metadata.ownerReferences.uid",
        ),
        (
            doc!({ "ownerReferences": [
                { "apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true },
                { "apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": true }
            ] }),
            "metadata.ownerReferences",
        ),
    ];
    for (metadata, field) in cases {
        let object = doc!({ "metadata": (metadata.with("/name", "a").unwrap()) });
        let answer = api.post(CONFIG_MAPS, &object).await;
        assert_eq!(
            answer.str_at("/details/causes/0/field"),
            field,
            "{}",
            answer.text
        );
        answer.refused(422, "Invalid");
    }
}

#[tokio::test]
async fn annotations_have_a_limit() {
    let api = Api::new().await;
    let long = "x".repeat(256 * 1024);
    let object = doc!({ "metadata": { "name": "a", "annotations": { "k": long } } });
    let answer = api.post(CONFIG_MAPS, &object).await;
    assert_eq!(
        answer.str_at("/details/causes/0/reason"),
        "FieldValueTooLong"
    );
    answer.refused(422, "Invalid");
}

#[tokio::test]
async fn an_owner_that_is_named_twice_counts_once_and_warns() {
    let api = Api::new().await;
    let owner = doc!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1" });
    let object = doc!({ "metadata": { "name": "a", "ownerReferences": [(&owner), (&owner)] } });
    let created = api.post(CONFIG_MAPS, &object).await.expect(201);
    assert_eq!(
        created.body.at("/metadata/ownerReferences").items().len(),
        1
    );
    assert!(
        created
            .headers
            .get("warning")
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("299 - ")
    );
}

#[tokio::test]
async fn a_dry_run_stores_nothing_and_has_no_revision() {
    let api = Api::new().await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let answer = api.post(&path, &config_map("a")).await.expect(201);
    assert_eq!(answer.str_at("/metadata/resourceVersion"), "");
    api.get(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(404, "NotFound");
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.post(&path, &config_map("a"))
        .await
        .refused(409, "AlreadyExists");
    api.post(&format!("{CONFIG_MAPS}?dryRun=No"), &config_map("b"))
        .await
        .refused(422, "Invalid");
}

#[tokio::test]
async fn repeated_keys_are_refused_warned_of_or_ignored() {
    let api = Api::new().await;
    let body =
        |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"1","a":"2"}}}}"#);
    let post = |validation: &str, name: &str| {
        let path = format!("{CONFIG_MAPS}?fieldValidation={validation}");
        let (api, body) = (api.clone(), body(name));
        async move { api.post_text(&path, "application/json", &body).await }
    };
    let message = post("Strict", "a").await.refused(400, "BadRequest");
    assert!(
        message.ends_with("strict decoding error: duplicate field \"data.a\""),
        "{message}"
    );
    let warned = post("Warn", "b").await.expect(201);
    assert_eq!(
        warned.headers.get("warning").unwrap(),
        "299 - \"duplicate field \\\"data.a\\\"\""
    );
    assert_eq!(warned.str_at("/data/a"), "2");
    assert!(
        post("Ignore", "c")
            .await
            .expect(201)
            .headers
            .get("warning")
            .is_none()
    );
    post("Maybe", "d").await.refused(422, "Invalid");
}

#[tokio::test]
async fn yaml_bodies_are_read() {
    let api = Api::new().await;
    let yaml = "metadata:\n  name: a\ndata:\n  k: v\n";
    let created = api
        .post_text(CONFIG_MAPS, "application/yaml", yaml)
        .await
        .expect(201);
    assert_eq!(created.str_at("/data/k"), "v");
}

#[tokio::test]
async fn another_kind_or_version_in_the_body_is_refused() {
    let api = Api::new().await;
    for object in [
        doc!({ "kind": "Secret", "metadata": { "name": "a" } }),
        doc!({ "apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": { "name": "a" } }),
    ] {
        let message = api
            .post(CONFIG_MAPS, &object)
            .await
            .refused(400, "BadRequest");
        assert!(
            message.contains("cannot be handled as a ConfigMap"),
            "{message}"
        );
    }
}

/// A class that nobody acts on would be trusted.
#[tokio::test]
async fn an_object_that_nothing_acts_on_is_created_with_a_warning() {
    let api = Api::new().await;
    let service = doc!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.example.com" },
        "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "insecureSkipTLSVerify": true,
            "service": { "namespace": "default", "name": "elsewhere" }
        }
    });
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let made = api.post(path, &service).await.expect(201);
    assert_eq!(
        made.headers["warning"],
        "299 - \"APIService \\\"v1.example.com\\\" is stored and has no effect: requests are not \
         passed on to other API servers yet\""
    );
}
