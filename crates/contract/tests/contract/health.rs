//! Health checks by name, timeouts, the version, and the order of keys in discovery.

use http::Method;
use windlass_contract::{Scope, cases};

cases![
    a_health_check_answers_by_its_name,
    checks_are_listed_and_left_out,
    health_answers_any_method,
    the_version_is_upstreams,
    a_timeout_of_zero_is_none,
    a_timeout_that_cannot_be_read_is_refused,
    discovery_keys_stand_in_upstreams_order,
    discovery_lists_what_leads_to_nodes,
];

async fn a_health_check_answers_by_its_name(t: &Scope) {
    for path in [
        "/readyz/etcd",
        "/readyz/ping?verbose",
        "/readyz/informer-sync",
        "/readyz/shutdown",
        "/livez/ping",
        "/livez/etcd",
        "/healthz/log",
        "/healthz/poststarthook/rbac/bootstrap-roles",
    ] {
        let answer = t.get(path).await;
        assert_eq!((answer.code(), answer.text()), (200, "ok"), "{path}");
    }
    for path in [
        "/readyz/nope",
        "/readyz/poststarthook",
        "/livez/",
        "/livez/ping/",
        "/livez/shutdown",
        "/livez/informer-sync",
    ] {
        let answer = t.get(path).await;
        assert_eq!(answer.code(), 404, "{path}");
        assert_eq!(answer.text(), "404 page not found\n", "{path}");
    }
}

async fn checks_are_listed_and_left_out(t: &Scope) {
    let verbose = t.get("/livez?verbose&exclude=etcd").await;
    let lines: Vec<&str> = verbose.text().lines().collect();
    assert_eq!(
        lines[..4],
        [
            "[+]ping ok",
            "[+]log ok",
            "[+]loopback-serving-certificate ok",
            "[+]etcd excluded: ok"
        ]
    );
    assert_eq!(lines.last(), Some(&"livez check passed"));
    assert_eq!(lines.len(), 35, "{}", verbose.text());
    let unknown = t.get("/readyz?verbose=1&exclude=b&exclude=a").await;
    let warning = "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\n\
                   readyz check passed\n";
    assert!(unknown.text().ends_with(warning), "{}", unknown.text());
    assert_eq!(t.get("/readyz?exclude=nope").await.text(), "ok");
}

async fn health_answers_any_method(t: &Scope) {
    for method in [Method::POST, Method::DELETE, Method::PUT] {
        for path in ["/readyz", "/livez/ping"] {
            let answer = t.send(t.request(method.clone(), path)).await;
            assert_eq!(
                (answer.code(), answer.text()),
                (200, "ok"),
                "{method} {path}"
            );
        }
    }
}

async fn the_version_is_upstreams(t: &Scope) {
    let answer = t.get("/version").await;
    // `kubectl --match-server-version` compares this text.
    assert_eq!(answer.is(200).str_at("/gitVersion"), "v1.36.4");
    let start = "{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\": \"1\",";
    assert!(answer.text().starts_with(start), "{}", answer.text());
}

async fn a_timeout_of_zero_is_none(t: &Scope) {
    for timeout in ["0s", "0", "-5s", "1.5s", ".5s", "1m30s", "1h", "2h45m"] {
        t.get(&format!("configmaps?timeout={timeout}"))
            .await
            .is(200);
    }
}

async fn a_timeout_that_cannot_be_read_is_refused(t: &Scope) {
    for (timeout, why) in [
        ("5", "missing unit in duration \"5\""),
        ("s", "invalid duration \"s\""),
        ("abc", "invalid duration \"abc\""),
        ("-", "invalid duration \"-\""),
    ] {
        let answer = t.get(&format!("configmaps?timeout={timeout}")).await;
        let message = format!("invalid timeout specified in the request URL - time: {why}");
        answer.fails(400, "BadRequest").says(&message);
    }
    // A watch has a timeout of its own.
    let mut watch = t.watch("secrets", "timeout=abc&timeoutSeconds=1").await;
    watch.end().await;
}

async fn discovery_keys_stand_in_upstreams_order(t: &Scope) {
    let starts = [
        (
            "/api",
            "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":",
        ),
        (
            "/api/v1",
            "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"bindings\",\"singularName\":\"binding\",\"namespaced\":true,\"kind\":\"Binding\",\"verbs\":[\"create\"]}",
        ),
        (
            "/apis",
            "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{\"name\":\"apiregistration.k8s.io\",\"versions\":[{\"groupVersion\":\"apiregistration.k8s.io/v1\",\"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":",
        ),
        (
            "/apis/apps",
            "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"apps\",\"versions\":[{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}],\"preferredVersion\":{",
        ),
        (
            "/apis/apps/v1",
            "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"controllerrevisions\",\"singularName\":\"controllerrevision\",\"namespaced\":true,\"kind\":\"ControllerRevision\",\"verbs\":[",
        ),
    ];
    for (path, start) in starts {
        let answer = t.get(path).await;
        let text = answer.text();
        let shown = text.get(..start.len()).unwrap_or(text);
        assert_eq!(shown, start, "{path}");
    }
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = t.with_header("accept", accept).get("/apis").await;
    let start = "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",\
                 \"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"apiregistration.k8s.io\"},\
                 \"versions\":[{\"version\":\"v1\",\"resources\":[{\"resource\":\"apiservices\",\
                 \"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"APIService\"},\
                 \"scope\":\"Cluster\",\"singularResource\":\"apiservice\",\"verbs\":[";
    assert!(all.text().starts_with(start), "{}", &all.text()[..600]);
}

async fn discovery_lists_what_leads_to_nodes(t: &Scope) {
    let list = t.get("/api/v1").await.is(200);
    let resources = list.at("/resources").items();
    let parts = |plural: &str| -> Vec<String> {
        let prefix = format!("{plural}/");
        let names = resources.iter().map(|one| one.str_at("/name"));
        let parts = names.filter_map(|name| name.strip_prefix(&prefix));
        parts.map(str::to_owned).collect()
    };
    assert_eq!(
        parts("pods"),
        [
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status"
        ]
    );
    assert_eq!(parts("services"), ["proxy", "status"]);
    assert_eq!(parts("nodes"), ["proxy", "status"]);
    let mut found = resources.iter();
    let forward = found.find(|one| one.str_at("/name") == "pods/portforward");
    let forward = forward.expect("an entry");
    assert_eq!(forward.str_at("/kind"), "PodPortForwardOptions");
    assert_eq!(
        *forward.at("/verbs"),
        windlass_core::doc!(["create", "get"])
    );
}
