//! Subresources that lead to nodes and pods: the answers that need no kubelet.

use http::Method;
use windlass_contract::{Scope, cases};
use windlass_core::{Doc, doc};

cases![
    a_pod_that_is_on_no_node_has_no_log_and_takes_no_stream,
    of_several_containers_one_is_named,
    a_node_that_is_gone_is_not_found,
    a_node_without_an_address_is_not_reached,
    options_of_a_log_are_checked,
    streams_take_get_and_post_alone,
    a_proxy_needs_an_address,
    a_binding_and_an_eviction_name_their_pod,
    reading_is_not_enough_for_a_stream,
];

fn pod(name: &str, containers: &[&str], node: &str) -> Doc {
    let container = |name: &&str| doc!({ "name": (*name), "image": "a" });
    let containers: Vec<Doc> = containers.iter().map(container).collect();
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "containers": containers, "nodeName": node, "terminationGracePeriodSeconds": 0
        }
    })
}

async fn a_pod_that_is_on_no_node_has_no_log_and_takes_no_stream(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    assert_eq!(t.get("pods/a/log").await.code(), 204);
    for part in ["exec", "attach", "portforward"] {
        let refused = t.get(&format!("pods/a/{part}")).await;
        let refused = refused.fails(400, "BadRequest");
        refused.says("pod a does not have a host assigned");
    }
    for part in ["log", "exec", "attach", "portforward", "proxy"] {
        let missing = t.get(&format!("pods/nope/{part}")).await;
        missing
            .fails(404, "NotFound")
            .says("pods \"nope\" not found");
    }
}

async fn of_several_containers_one_is_named(t: &Scope) {
    t.made("pods", &pod("a", &["x", "y"], "")).await;
    for part in ["log", "exec", "attach"] {
        let refused = t.get(&format!("pods/a/{part}")).await;
        refused
            .fails(400, "BadRequest")
            .says("a container name must be specified for pod a, choose one of: [x y]");
        let refused = t.get(&format!("pods/a/{part}?container=z")).await;
        refused
            .fails(400, "BadRequest")
            .says("container z is not valid for pod a");
    }
    assert_eq!(t.get("pods/a/log?container=y").await.code(), 204);
}

async fn a_node_that_is_gone_is_not_found(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "gone")).await;
    for part in ["log", "exec", "attach", "portforward"] {
        let refused = t.get(&format!("pods/a/{part}")).await;
        refused
            .fails(404, "NotFound")
            .says("pods \"gone\" not found");
    }
}

async fn a_node_without_an_address_is_not_reached(t: &Scope) {
    let name = t.unique("n");
    let node = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": (&name) } });
    t.made("nodes", &node).await;
    t.made("pods", &pod("a", &["a"], &name)).await;
    let why = "no preferred addresses found; known addresses: []";
    for part in ["log", "exec", "attach", "portforward"] {
        let refused = t.get(&format!("pods/a/{part}")).await;
        refused.fails(500, "").says(why);
    }
    let refused = t.get(&format!("/api/v1/nodes/{name}/proxy/healthz")).await;
    refused.fails(500, "").says(why);
    let missing = t.get("/api/v1/nodes/nope/proxy").await;
    missing
        .fails(404, "NotFound")
        .says("nodes \"nope\" not found");
    t.delete(&format!("/api/v1/nodes/{name}")).await.is(200);
}

async fn options_of_a_log_are_checked(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    for (query, why) in [
        (
            "tailLines=-1",
            "tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "sinceSeconds=0",
            "sinceSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "limitBytes=0&sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z",
            "[limitBytes: Invalid value: 0: must be greater than 0, []: Forbidden: at most one of \
             `sinceTime` or `sinceSeconds` may be specified]",
        ),
        ("stream=foo", "stream: Forbidden: may not be specified"),
    ] {
        let refused = t.get(&format!("pods/a/log?{query}")).await;
        let message = format!("PodLogOptions \"a\" is invalid: {why}");
        refused.fails(422, "Invalid").says(&message);
    }
    let refused = t.get("pods/a/log?tailLines=x").await;
    let refused = refused.fails(400, "BadRequest");
    refused.says("strconv.ParseInt: parsing \"x\": invalid syntax");
}

async fn streams_take_get_and_post_alone(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    for part in ["exec", "attach", "portforward"] {
        let path = format!("pods/a/{part}");
        let posted = t.send(t.request(Method::POST, &path)).await;
        posted.fails(400, "BadRequest");
        for method in [Method::PUT, Method::DELETE] {
            let refused = t.send(t.request(method, &path)).await;
            refused.fails(405, "MethodNotAllowed");
        }
    }
}

async fn a_proxy_needs_an_address(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    for path in [
        "pods/a/proxy",
        "pods/a/proxy/x/y",
        "pods/a:80/proxy/",
        "pods/http:a:x/proxy/",
    ] {
        let refused = t.get(path).await.fails(400, "BadRequest");
        refused.says("address not allowed");
    }
    for method in [Method::PUT, Method::POST, Method::DELETE] {
        let refused = t.send(t.request(method, "pods/a/proxy")).await;
        refused.fails(400, "BadRequest").says("address not allowed");
    }
    let missing = t.get("services/nope/proxy").await;
    missing
        .fails(404, "NotFound")
        .says("services \"nope\" not found");
}

async fn a_binding_and_an_eviction_name_their_pod(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    for name in ["", "b"] {
        let binding = doc!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "name": "n" }
        });
        let refused = t.create("pods/a/binding", &binding).await;
        let refused = refused.fails(400, "BadRequest");
        refused.says("name in URL does not match name in Binding object");
        let eviction = doc!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name }
        });
        let refused = t.create("pods/a/eviction", &eviction).await;
        let refused = refused.fails(400, "BadRequest");
        refused.says("name in URL does not match name in Eviction object");
    }
}

async fn reading_is_not_enough_for_a_stream(t: &Scope) {
    t.made("pods", &pod("a", &["a"], "")).await;
    let rbac = format!(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}",
        t.namespace()
    );
    let role = doc!({
        "metadata": { "name": "r" },
        "rules": [{
            "apiGroups": [""], "resources": ["pods/exec", "pods/attach"], "verbs": ["get"]
        }]
    });
    t.made(&format!("{rbac}/roles"), &role).await;
    let binding = doc!({
        "metadata": { "name": "r" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader" }]
    });
    t.made(&format!("{rbac}/rolebindings"), &binding).await;
    let reader = t.as_user("reader");
    for part in ["exec", "attach"] {
        let mut answer = reader.get(&format!("pods/a/{part}")).await;
        // The real server hears of the binding a moment later.
        for _ in 0..1000 {
            if !answer.text().contains("cannot get") {
                break;
            }
            answer = reader.get(&format!("pods/a/{part}")).await;
        }
        let refused = answer.fails(403, "Forbidden");
        refused.says("pods \"a\" is forbidden: ");
    }
}
