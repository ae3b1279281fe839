//! A sweep of bad input over every route there is: each answer is a refusal in proper form, the
//! server goes on, and at the end the revision is where it was.

use http::Method;
use windlass_core::{Doc, doc};

use crate::support::{Answer, Api, CONFIG_MAPS, JSON_PATCH, MERGE_PATCH, config_map, request};

/// One resource or subresource of discovery.
struct Route {
    /// The path of an object that may not exist, with its subresource.
    object: String,
    /// The path of the collection; absent for a subresource.
    collection: Option<String>,
    verbs: Vec<String>,
}

impl Route {
    fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }
}

/// Everything that discovery lists.
async fn routes(api: &Api) -> Vec<Route> {
    let mut bases = vec!["/api/v1".to_owned()];
    let groups = api.get("/apis").await.expect(200);
    for group in groups.body.at("/groups").items() {
        for version in group.at("/versions").items() {
            bases.push(format!("/apis/{}", version.str_at("/groupVersion")));
        }
    }
    let mut routes = Vec::new();
    for base in bases {
        let list = api.get(&base).await.expect(200);
        let rows = list.body.at("/resources").items();
        routes.extend(rows.iter().map(|row| route(&base, row)));
    }
    assert!(routes.len() > 100, "{}", routes.len());
    routes
}

fn route(base: &str, row: &Doc) -> Route {
    let place = match *row.at("/namespaced") == true {
        true => "/namespaces/default",
        false => "",
    };
    let (resource, subresource) = match row.str_at("/name").split_once('/') {
        Some((resource, subresource)) => (resource, format!("/{subresource}")),
        None => (row.str_at("/name"), String::new()),
    };
    let collection = format!("{base}{place}/{resource}");
    let verbs = row.at("/verbs").items().iter();
    Route {
        object: format!("{collection}/absent{subresource}"),
        collection: subresource.is_empty().then_some(collection),
        verbs: verbs
            .filter_map(|verb| verb.as_str().map(str::to_owned))
            .collect(),
    }
}

/// The revision of the whole store.
async fn revision(api: &Api) -> u64 {
    api.get(CONFIG_MAPS).await.expect(200).revision()
}

/// A refusal as clients read it.
#[track_caller]
fn check_refusal(answer: &Answer, what: &str) {
    let (code, body) = (answer.code.as_u16(), &answer.body);
    assert!((400..500).contains(&code), "{what}: {}", answer.text);
    assert_eq!(body.str_at("/kind"), "Status", "{what}: {}", answer.text);
    assert_eq!(body.str_at("/apiVersion"), "v1", "{what}");
    assert_eq!(body.str_at("/status"), "Failure", "{what}");
    assert_eq!(*body.at("/code"), i64::from(code), "{what}");
    assert!(!body.str_at("/message").is_empty(), "{what}");
    assert!(
        !body.str_at("/reason").is_empty(),
        "{what}: {}",
        answer.text
    );
}

/// Bodies that are no object of any kind.
fn malformed(media_type: &str) -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = match media_type {
        "application/yaml" => vec![
            b"a: [".to_vec(),
            b"a: &a [*a]".to_vec(),
            b"\t- x: {".to_vec(),
            b"- 1\n- 2".to_vec(),
        ],
        "application/vnd.kubernetes.protobuf" => vec![
            b"k8s\0".to_vec(),
            b"k8s\0\xff\xff\xff\xff\xff\xff".to_vec(),
            b"k8s\0\x0a\x7f".to_vec(),
            b"{}".to_vec(),
        ],
        _ => vec![
            b"{".to_vec(),
            b"[]".to_vec(),
            b"[1,2".to_vec(),
            b"nul".to_vec(),
            b"\"\\ud800\"".to_vec(),
            b"{\"metadata\":[]}".to_vec(),
            b"{\"metadata\":{\"labels\":5}}".to_vec(),
            b"{\"metadata\":{\"name\":\"a\"}}{\"metadata\":{}}".to_vec(),
            b"{\"kind\":7}".to_vec(),
            b"{\"kind\":\"Nothing\",\"apiVersion\":\"nowhere/v1\"}".to_vec(),
        ],
    };
    bodies.extend([b"".to_vec(), b"\xff\xfe\x00".to_vec(), b"\0".repeat(64)]);
    bodies
}

#[tokio::test]
async fn malformed_bodies_to_every_route_change_nothing() {
    let api = Api::new().await;
    let before = revision(&api).await;
    let mut checked = 0;
    for route in routes(&api).await {
        let mut targets = Vec::new();
        if route.allows("create") {
            let path = route.collection.as_ref().unwrap_or(&route.object);
            targets.push((Method::POST, path.clone()));
        }
        if route.allows("update") {
            targets.push((Method::PUT, route.object.clone()));
        }
        for (method, path) in targets {
            for media_type in [
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ] {
                for body in malformed(media_type) {
                    let what = format!("{method} {path} {media_type} {body:?}");
                    let sent = request(method.clone(), &path, media_type, body);
                    check_refusal(&api.send(sent).await, &what);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 2000, "{checked}");
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn malformed_patches_to_every_route_change_nothing() {
    let api = Api::new().await;
    let before = revision(&api).await;
    let media_types = [
        JSON_PATCH,
        MERGE_PATCH,
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/nonsense",
    ];
    for route in routes(&api).await {
        if !route.allows("patch") {
            continue;
        }
        for media_type in media_types {
            for body in ["", "{", "7", "[{\"op\":\"frobnicate\"}]", "\u{0}", "a: ["] {
                let path = format!("{}?fieldManager=x", route.object);
                let what = format!("PATCH {path} {media_type} {body:?}");
                check_refusal(&api.patch(&path, media_type, body).await, &what);
            }
        }
    }
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_on_every_route() {
    let api = Api::new().await;
    let before = revision(&api).await;
    let body = bytes::Bytes::from(vec![b' '; (3 << 20) + 1]);
    for route in routes(&api).await {
        let path = route.collection.as_ref().unwrap_or(&route.object);
        let writes = [
            ("create", Method::POST, path, "application/json"),
            ("update", Method::PUT, &route.object, "application/json"),
            ("patch", Method::PATCH, &route.object, MERGE_PATCH),
            ("delete", Method::DELETE, &route.object, "application/json"),
        ];
        for (verb, method, path, media_type) in writes {
            if !route.allows(verb) {
                continue;
            }
            let sent = request(method, path, media_type, body.clone());
            let message = api.send(sent).await.refused(413, "RequestEntityTooLarge");
            let limit = if verb == "delete" { 64 << 10 } else { 3 << 20 };
            let expected = format!("Request entity too large: limit is {limit}");
            assert_eq!(message, expected);
        }
    }
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn ten_thousand_operations_are_too_many_by_one() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let before = revision(&api).await;
    let path = format!("{CONFIG_MAPS}/a");
    let operations = |count: usize| {
        let one = r#"{"op":"test","path":"/data/a","value":"b"}"#;
        format!("[{}]", vec![one; count].join(","))
    };
    let answer = api.patch(&path, JSON_PATCH, &operations(10_001)).await;
    let message = answer.refused(413, "RequestEntityTooLarge");
    assert!(message.contains("10000"), "{message}");
    api.patch(&path, JSON_PATCH, &operations(10_000))
        .await
        .expect(200);
    // Copies of copies grow without end.
    let mut copies = vec![r#"{"op":"add","path":"/data/x","value":"0123456789abcdef"}"#.to_owned()];
    for step in 0..40 {
        copies.push(format!(
            r#"{{"op":"copy","from":"/data","path":"/data/y{step}"}}"#
        ));
    }
    let answer = api
        .patch(&path, JSON_PATCH, &format!("[{}]", copies.join(",")))
        .await;
    check_refusal(&answer, "copies of copies");
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn forged_continue_tokens_are_refused_on_every_list() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    let api = Api::new().await;
    let before = revision(&api).await;
    let forged = |token: &Doc| BASE64.encode(token.to_json());
    let tokens = [
        "x".to_owned(),
        "%00".to_owned(),
        "a".repeat(8192),
        BASE64.encode("not json"),
        forged(&doc!({})),
        forged(&doc!({ "v": "meta.k8s.io/v2", "rv": 1, "start": "a" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": 0, "start": "a" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": (-5), "start": "a" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": 1, "start": "" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": 1, "start": "../../secrets/x" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": 1, "start": "a/../b" })),
        forged(&doc!({ "v": "meta.k8s.io/v1", "rv": "1", "start": 7 })),
    ];
    for route in routes(&api).await {
        // What is not stored has no pages, and cannot be watched.
        let is_stored = route.allows("list") && route.allows("watch");
        let Some(collection) = route.collection.as_ref().filter(|_| is_stored) else {
            continue;
        };
        for token in &tokens {
            let path = format!("{collection}?limit=1&continue={token}");
            check_refusal(&api.get(&path).await, &path);
        }
        // A token of a state that does not exist yet.
        let token = doc!({ "v": "meta.k8s.io/v1", "rv": 999_999_999, "start": "a" });
        let path = format!("{collection}?limit=1&continue={}", forged(&token));
        assert!(!api.get(&path).await.code.is_success(), "{path}");
    }
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn tricks_with_paths_lead_nowhere() {
    let api = Api::new().await;
    let secret = doc!({ "metadata": { "name": "a" }, "data": { "k": "djEyMzQ1Njc4" } });
    api.post("/api/v1/namespaces/kube-system/secrets", &secret)
        .await
        .expect(201);
    let before = revision(&api).await;
    let tricks = [
        "/api/v1/namespaces/default/secrets/../../kube-system/secrets/a",
        "/api/v1/namespaces/default%2F..%2Fkube-system/secrets/a",
        "/api/v1/namespaces/default/secrets/..%2F..%2Fkube-system%2Fsecrets%2Fa",
        "/api/v1/namespaces/default/secrets/%2e%2e",
        "/api/v1/namespaces/default/configmaps/..%2Fsecrets%2Fa",
        "/api/v1/namespaces/kube-system%2Fsecrets/configmaps",
        "/api/v1/namespaces/%00/secrets",
        "/api/v1/namespaces/default/secrets/a%00",
        "/api/v1/namespaces/default/secrets/%ff",
        "/api/v1/namespaces/default/secrets/%zz",
        "//api/v1/secrets",
        "/api//v1/secrets",
        "/api/v1//secrets",
        "/api/v1/namespaces//secrets/a",
        "/api/v1/./secrets",
        "/API/v1/secrets",
        "/api/V1/secrets",
        "/api/v1/secrets;a=b",
        "/api/v1/namespaces/kube-system/secrets/a;x",
        "/api/v1/namespaces/kube-system/secrets/a/b/c/d/e/f/g/h/i/j/k/l/m",
        "/apis//v1/pods",
        "/apis/apps/v1/namespaces/default/deployments/a/../b",
        "/api/v1/proxy/namespaces/kube-system/secrets/a",
    ];
    for path in tricks {
        for method in [
            Method::GET,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::POST,
        ] {
            let sent = request(method.clone(), path, "application/json", "{}");
            let answer = api.send(sent).await;
            let what = format!("{method} {path}: {}", answer.text);
            assert!(answer.code.is_client_error(), "{what}");
            assert!(!answer.text.contains("djEyMzQ1Njc4"), "{what}");
        }
    }
    assert_eq!(revision(&api).await, before, "nothing was written");
}

#[tokio::test]
async fn strangers_are_refused_on_every_route() {
    let api = Api::new().await;
    let before = revision(&api).await;
    let stranger = api.asked_by_nobody();
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    let mut paths: Vec<String> = ["/", "/api", "/apis", "/api/v1", "/apis/apps", "/metrics"]
        .into_iter()
        .chain(["/openapi/v2", "/openapi/v3", "/nowhere", "/debug/pprof"])
        .map(str::to_owned)
        .collect();
    for route in routes(&api).await {
        paths.extend(route.collection.iter().cloned());
        paths.extend(route.collection.map(|path| format!("{path}?watch=1")));
        paths.push(route.object);
    }
    for path in paths {
        for method in &methods {
            let what = format!("{method} {path}");
            let sent = || request(method.clone(), &path, "application/json", "{}");
            let answer = stranger.send(sent()).await;
            check_refusal(&answer, &what);
            assert_eq!(answer.code, 403, "{what}");
            let mut forged = sent();
            let token = "Bearer eyJhbGciOiJub25lIn0.e30.";
            forged
                .headers_mut()
                .insert("authorization", token.parse().unwrap());
            let answer = stranger.send(forged).await;
            check_refusal(&answer, &what);
            assert_eq!(answer.code, 401, "{what}");
        }
    }
    assert_eq!(revision(&api).await, before, "nothing was written");
}
