//! The audit log, field by field as `audit.k8s.io/v1` has them.

use std::path::Path;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use windlass_core::{Doc, Env, doc};
use windlass_server::{AuditOptions, AuditPolicy, Server, ServerOptions, User};

use crate::support::{Api, CONFIG_MAPS, config_map, request};

/// A server whose audit log is this file.
async fn audited(path: &Path) -> Api {
    let mut options = ServerOptions::memory(Env::seeded(1));
    options.audit = Some(AuditOptions::new(path));
    Api::of(Server::open(options).await.unwrap(), User::admin())
}

/// Closes the server and reads the events about a path.
fn events(api: &Api, path: &Path, about: &str) -> Vec<Doc> {
    api.server.close();
    let text = std::fs::read_to_string(path).unwrap();
    let events = text
        .lines()
        .map(|line| Doc::parse(line.as_bytes()).unwrap());
    events
        .filter(|event| event.str_at("/requestURI").starts_with(about))
        .collect()
}

fn stages(events: &[Doc]) -> Vec<&str> {
    events.iter().map(|event| event.str_at("/stage")).collect()
}

#[tokio::test]
async fn a_creation_is_told_in_every_field_of_upstream() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    let mut create = request(
        Method::POST,
        CONFIG_MAPS,
        "application/json",
        config_map("a").to_json(),
    );
    let headers = create.headers_mut();
    headers.insert("audit-id", "my-own-id".parse().unwrap());
    headers.insert("user-agent", "test/1".parse().unwrap());
    headers.insert("x-forwarded-for", "10.0.0.1, 10.0.0.2".parse().unwrap());
    let answer = api.send(create).await;
    answer.expect(201);
    let events = events(&api, &path, CONFIG_MAPS);
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let now = events[1].str_at("/stageTimestamp").to_owned();
    let user = doc!({
        "username": "windlass-admin", "groups": ["system:masters", "system:authenticated"]
    });
    let expected = doc!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
        "auditID": "my-own-id", "stage": "ResponseComplete",
        "requestURI": CONFIG_MAPS, "verb": "create",
        "user": user,
        "sourceIPs": ["10.0.0.1", "10.0.0.2"], "userAgent": "test/1",
        "objectRef": {
            "resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"
        },
        "responseStatus": { "metadata": {}, "code": 201 },
        "requestReceivedTimestamp": (now.as_str()), "stageTimestamp": (now.as_str()),
        "annotations": {
            "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""
        }
    });
    assert_eq!(events[1], expected, "{}", events[1]);
    // What is not known yet is not in the first event.
    for field in ["/responseStatus", "/annotations", "/objectRef/name"] {
        assert!(events[0].at(field).is_null(), "{field}: {}", events[0]);
    }
}

#[tokio::test]
async fn the_id_of_an_event_is_that_of_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    let answer = api.get("/version").await;
    let id = answer.headers["audit-id"].to_str().unwrap().to_owned();
    let events = events(&api, &path, "/version");
    assert_eq!(events.len(), 2);
    for event in &events {
        assert_eq!(event.str_at("/auditID"), id);
        assert_eq!(event.str_at("/verb"), "get");
        assert!(event.at("/objectRef").is_null(), "{event}");
    }
}

#[tokio::test]
async fn refusals_say_why_and_impersonation_says_who() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    let secret = "/api/v1/namespaces/default/secrets/a";
    let mut get = request(Method::GET, secret, "", Bytes::new());
    let headers = get.headers_mut();
    headers.insert("impersonate-user", "jane".parse().unwrap());
    api.send(get).await.refused(403, "Forbidden");
    let events = events(&api, &path, secret);
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    assert!(events[0].at("/impersonatedUser").is_null(), "{}", events[0]);
    let event = &events[1];
    assert_eq!(event.str_at("/impersonatedUser/username"), "jane");
    assert_ne!(event.str_at("/user/username"), "jane");
    assert_eq!(event.at("/responseStatus/code").as_u64(), Some(403));
    assert_eq!(event.str_at("/responseStatus/reason"), "Forbidden");
    let message = event.str_at("/responseStatus/message");
    assert!(message.contains("User \"jane\" cannot get"), "{message}");
    let decision = event
        .at("/annotations")
        .get("authorization.k8s.io/decision");
    assert_eq!(decision, Some(&"forbid".into()));
}

#[tokio::test]
async fn bad_credentials_leave_one_event_without_a_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await.asked_by_nobody();
    let mut get = request(Method::GET, "/api/v1/nodes", "", Bytes::new());
    let token = "Bearer not-a-token".parse().unwrap();
    get.headers_mut().insert("authorization", token);
    api.send(get).await.refused(401, "Unauthorized");
    let events = events(&api, &path, "/api/v1/nodes");
    assert_eq!(stages(&events), ["ResponseStarted"]);
    assert_eq!(events[0].at("/user"), &doc!({}));
    assert_eq!(events[0].at("/responseStatus/code").as_u64(), Some(401));
    assert_eq!(
        events[0].str_at("/responseStatus/message"),
        "Authentication failed, attempted: bearer"
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("not-a-token"), "a token is in the log");
}

#[tokio::test]
async fn a_watch_starts_and_completes_when_its_reader_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    let watch = format!("{CONFIG_MAPS}?watch=1");
    let response = api.respond(request(Method::GET, &watch, "", Bytes::new()));
    let mut body = response.await.into_body();
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    body.frame().await.unwrap().unwrap();
    drop(body);
    let events = events(&api, &path, &watch);
    let expected = ["RequestReceived", "ResponseStarted", "ResponseComplete"];
    assert_eq!(stages(&events), expected);
    assert_eq!(events[2].str_at("/verb"), "watch");
    assert_eq!(events[2].at("/responseStatus/code").as_u64(), Some(200));
}

#[tokio::test]
async fn a_log_that_cannot_be_written_refuses_nobody_and_is_counted() {
    let mut options = ServerOptions::memory(Env::seeded(1));
    options.audit = Some(AuditOptions::new("/dev/full"));
    let api = Api::of(Server::open(options).await.unwrap(), User::admin());
    api.get("/version").await.expect(200);
    // Everything before it is written, or was tried.
    api.server.close();
    let metrics = api.get("/metrics").await.text;
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let errors = value("apiserver_audit_error_total{plugin=\"log\"}").unwrap();
    assert!(errors >= 2, "{errors}");
    assert!(value("apiserver_audit_event_total").unwrap() >= errors);
}

#[tokio::test]
async fn a_full_file_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    std::fs::write(&path, vec![b'\n'; 1 << 20]).unwrap();
    let mut options = ServerOptions::memory(Env::seeded(1));
    let mut audit = AuditOptions::new(&path);
    audit.max_size_mb = 1;
    options.audit = Some(audit);
    let api = Api::of(Server::open(options).await.unwrap(), User::admin());
    api.get("/version").await.expect(200);
    assert_eq!(events(&api, &path, "/version").len(), 2);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

/// Nobody listens on the port, and the policy is to go on.
#[tokio::test]
async fn webhooks_leave_annotations() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    for sort in ["Mutating", "Validating"] {
        let configuration = doc!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": (format!("{sort}WebhookConfiguration")), "metadata": { "name": "c" },
            "webhooks": [{
                "name": "a.example.com", "clientConfig": { "url": "https://127.0.0.1:1/" },
                "rules": [{
                    "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                    "resources": ["configmaps"]
                }],
                "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"]
            }]
        });
        let plural = format!("{}webhookconfigurations", sort.to_lowercase());
        let collection = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        api.post(&collection, &configuration).await.expect(201);
    }
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let events = events(&api, &path, CONFIG_MAPS);
    let annotations = events[1].at("/annotations");
    let of = |key: &str| {
        annotations
            .get(key)
            .and_then(Doc::as_str)
            .unwrap_or_default()
    };
    assert_eq!(
        of("mutation.webhook.admission.k8s.io/round_0_index_0"),
        "{\"configuration\":\"c\",\"webhook\":\"a.example.com\",\"mutated\":false}"
    );
    for key in [
        "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0",
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_0",
    ] {
        assert_eq!(of(key), "a.example.com", "{annotations}");
    }
}

#[tokio::test]
async fn policies_annotate_what_they_find() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str =
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited(&path).await;
    let policy = doc!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "p.example.com" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["*"]
            }] },
            "validations": [
                { "expression": "true" }, { "expression": "object.metadata.name == '<b>'" }
            ],
            "auditAnnotations": [
                { "key": "name", "valueExpression": "' ' + object.metadata.name" },
                { "key": "none", "valueExpression": "null" },
                { "key": "blank", "valueExpression": "'  '" }
            ]
        }
    });
    let binding = doc!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": "b" },
        "spec": { "policyName": "p.example.com", "validationActions": ["Audit", "Warn"] }
    });
    for (path, object) in [
        (POLICIES, policy),
        (BINDINGS, binding),
        (CONFIG_MAPS, config_map("a")),
    ] {
        let create = request(Method::POST, path, "application/json", object.to_json());
        api.send(create).await.expect(201);
    }
    let page = api.get("/metrics").await.expect(200).text;
    for enforcement in ["audit", "warn"] {
        let row = format!(
            "apiserver_validating_admission_policy_check_total{{enforcement_action=\"{enforcement}\",\
             error_type=\"no_error\",policy=\"p.example.com\",policy_binding=\"b\"}} 1"
        );
        assert!(page.contains(&row), "{row}: {page}");
    }
    let events = events(&api, &path, CONFIG_MAPS);
    let annotations = events[1].at("/annotations");
    let failure = annotations.get("validation.policy.admission.k8s.io/validation_failure");
    assert_eq!(
        failure.and_then(Doc::as_str),
        Some(
            "[{\"message\":\"failed expression: object.metadata.name == '\\u003cb\\u003e'\",\
             \"policy\":\"p.example.com\",\"binding\":\"b\",\"expressionIndex\":1,\
             \"validationActions\":[\"Audit\",\"Warn\"]}]"
        )
    );
    let own = annotations.get("p.example.com/name");
    assert_eq!(own.and_then(Doc::as_str), Some("a"));
    assert!(annotations.get("p.example.com/none").is_none());
    assert!(annotations.get("p.example.com/blank").is_none());
}

/// A server whose audit log is this file, by a policy.
async fn audited_by(path: &Path, rules: &str) -> Api {
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    let mut options = ServerOptions::memory(Env::seeded(1));
    options.audit = Some(AuditOptions {
        policy: AuditPolicy::parse(&policy).unwrap(),
        ..AuditOptions::new(path)
    });
    Api::of(Server::open(options).await.unwrap(), User::admin())
}

#[tokio::test]
async fn the_level_of_a_rule_says_which_bodies_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited_by(
        &path,
        "omitStages: [RequestReceived]\nrules:\n\
         - {level: None, nonResourceURLs: [\"*\"]}\n\
         - {level: Metadata, resources: [{group: \"\", resources: [secrets]}]}\n\
         - {level: Request, verbs: [patch]}\n\
         - {level: RequestResponse, resources: [{group: \"\", resources: [configmaps]}]}\n",
    )
    .await;
    api.get("/version").await.expect(200);
    let secret = doc!({ "metadata": { "name": "s" }, "stringData": { "a": "hidden" } });
    let secrets = "/api/v1/namespaces/default/secrets";
    api.post(secrets, &secret).await.expect(201);
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let item = format!("{CONFIG_MAPS}/a");
    api.merge(&item, &doc!({ "data": { "c": "d" } }))
        .await
        .expect(200);
    api.get("/api/v1/nodes").await.expect(200);
    let all = events(&api, &path, "/");
    let shown: Vec<(&str, &str, bool, bool)> = all
        .iter()
        .map(|event| {
            (
                event.str_at("/level"),
                event.str_at("/verb"),
                !event.at("/requestObject").is_null(),
                !event.at("/responseObject").is_null(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("Metadata", "create", false, false),
            ("RequestResponse", "create", true, true),
            ("Request", "patch", true, false),
        ]
    );
    assert!(
        all.iter()
            .all(|event| event.str_at("/stage") == "ResponseComplete")
    );
    // Of a patch the patch is logged, of an object the whole of it.
    assert_eq!(all[2].at("/requestObject"), &doc!({ "data": { "c": "d" } }));
    assert_eq!(all[1].str_at("/requestObject/kind"), "ConfigMap");
    assert!(!all[1].str_at("/responseObject/metadata/uid").is_empty());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("hidden"), "a secret is in the log");
}

#[tokio::test]
async fn bodies_are_logged_as_upstream_logs_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let rules = "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]\n";
    let api = audited_by(&path, rules).await;
    let pod = doc!({
        "metadata": { "generateName": "p-" },
        "spec": { "containers": [{ "name": "a", "image": "b" }] }
    });
    let pods = "/api/v1/namespaces/default/pods";
    let name = api.post(pods, &pod).await.expect(201);
    let name = name.str_at("/metadata/name").to_owned();
    let item = format!("{pods}/{name}");
    let stored = api.get(&item).await.expect(200).body.clone();
    api.put(&item, &stored).await.expect(200);
    api.get(pods).await.expect(200);
    let options = doc!({ "gracePeriodSeconds": 0 });
    api.delete_with(&item, &options).await.expect(200);
    api.get(&item).await.expect(404);
    let all = events(&api, &path, pods);
    let [create, get, update, list, delete, missing] = &all[..] else {
        panic!("{} events", all.len());
    };
    // The name is not known when the request is read; defaults are.
    assert!(create.at("/objectRef/name").is_null(), "{create}");
    assert_eq!(
        create.str_at("/requestObject/spec/dnsPolicy"),
        "ClusterFirst"
    );
    assert!(create.at("/requestObject/spec/tolerations").is_null());
    assert!(get.at("/requestObject").is_null());
    let uid = stored.at("/metadata/uid");
    assert_eq!(update.at("/objectRef/uid"), uid);
    let revision = stored.at("/metadata/resourceVersion");
    assert_eq!(update.at("/objectRef/resourceVersion"), revision);
    assert_eq!(list.str_at("/responseObject/kind"), "PodList");
    let item = list.at("/responseObject/items/0");
    assert!(item.get("kind").is_none() && item.get("spec").is_some());
    assert_eq!(
        delete.at("/requestObject"),
        &doc!({
            "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal",
            "gracePeriodSeconds": 0
        })
    );
    assert_eq!(missing.str_at("/responseObject/kind"), "Status");
    assert_eq!(missing.str_at("/responseStatus/reason"), "NotFound");
}

#[tokio::test]
async fn managed_fields_are_left_out_by_a_rule_or_the_policy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let api = audited_by(
        &path,
        "omitManagedFields: true\nomitStages: [RequestReceived]\nrules:\n\
         - {level: RequestResponse, verbs: [create], omitManagedFields: false}\n\
         - {level: RequestResponse}\n",
    )
    .await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    api.get(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    api.get(CONFIG_MAPS).await.expect(200);
    let all = events(&api, &path, CONFIG_MAPS);
    let fields = |index: usize, pointer: &str| !all[index].at(pointer).is_null();
    assert!(fields(0, "/responseObject/metadata/managedFields"));
    assert!(!fields(1, "/responseObject/metadata/managedFields"));
    assert!(fields(2, "/responseObject/items/0/metadata/name"));
    assert!(!fields(2, "/responseObject/items/0/metadata/managedFields"));
}

#[tokio::test]
async fn a_policy_decides_about_requests_without_a_user_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let rules = "rules: [{level: Metadata, users: [windlass-admin]}]\n";
    let api = audited_by(&path, rules).await;
    let mut get = request(Method::GET, "/api/v1/nodes", "", Bytes::new());
    let token = "Bearer not-a-token".parse().unwrap();
    get.headers_mut().insert("authorization", token);
    api.asked_by_nobody().send(get).await.expect(401);
    api.get("/api/v1/pods").await.expect(200);
    let all = events(&api, &path, "/");
    assert_eq!(stages(&all), ["RequestReceived", "ResponseComplete"]);
    assert!(
        all.iter()
            .all(|event| event.str_at("/requestURI") == "/api/v1/pods")
    );
}
