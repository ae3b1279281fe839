//! RuntimeClasses: their rules, and their effect on pods.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    a_pod_of_an_unknown_class_is_refused,
    a_pod_gets_the_overhead_of_its_class,
    a_pod_gets_the_nodes_of_its_class,
    overhead_comes_from_a_class_alone,
    tolerations_of_a_class_are_merged,
    a_class_is_checked,
    the_handler_of_a_class_stays,
];

const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

fn class(name: &str) -> Doc {
    doc!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": name },
        "handler": "h"
    })
}

fn pod(class: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "runtimeClassName": class, "containers": [{ "name": "a", "image": "a" }] }
    })
}

async fn a_pod_of_an_unknown_class_is_refused(t: &Scope) {
    let refused = t.create("pods", &pod("nope")).await;
    refused
        .fails(403, "Forbidden")
        .says("pods \"a\" is forbidden: pod rejected: RuntimeClass \"nope\" not found");
}

async fn a_pod_gets_the_overhead_of_its_class(t: &Scope) {
    let name = t.unique("c");
    let fixed = doc!({ "podFixed": { "cpu": "250m", "memory": "120Mi" } });
    t.made(CLASSES, &class(&name).set("/overhead", fixed)).await;
    let made = t.made("pods?dryRun=All", &pod(&name)).await;
    let overhead = made.at("/spec/overhead");
    assert_eq!(*overhead, doc!({ "cpu": "250m", "memory": "120Mi" }));
    let same = doc!({ "cpu": "0.25", "memory": "120Mi" });
    let same = pod(&name).set("/spec/overhead", same);
    t.create("pods?dryRun=All", &same).await.is(201);
    let other = pod(&name).set("/spec/overhead", doc!({ "cpu": "1" }));
    t.create("pods", &other).await.fails(403, "Forbidden").says(
        "pods \"a\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's \
         defined Overhead",
    );
    t.delete(&format!("{CLASSES}/{name}")).await.is(200);
}

async fn a_pod_gets_the_nodes_of_its_class(t: &Scope) {
    let name = t.unique("c");
    let scheduling = doc!({
        "nodeSelector": { "sandbox": "yes" },
        "tolerations": [{ "key": "sandbox", "operator": "Exists", "effect": "NoSchedule" }]
    });
    t.made(CLASSES, &class(&name).set("/scheduling", scheduling))
        .await;
    let selecting = pod(&name).set("/spec/nodeSelector", doc!({ "disk": "ssd" }));
    let made = t.made("pods?dryRun=All", &selecting).await;
    let selector = made.at("/spec/nodeSelector");
    assert_eq!(*selector, doc!({ "disk": "ssd", "sandbox": "yes" }));
    let tolerations = made.at("/spec/tolerations").items();
    assert!(
        tolerations
            .iter()
            .any(|one| one.str_at("/key") == "sandbox")
    );
    let other = pod(&name).set("/spec/nodeSelector", doc!({ "sandbox": "no" }));
    t.create("pods", &other).await.fails(403, "Forbidden").says(
        "pods \"a\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; \
         pod.spec.nodeSelector[sandbox] = no",
    );
    t.delete(&format!("{CLASSES}/{name}")).await.is(200);
}

async fn overhead_comes_from_a_class_alone(t: &Scope) {
    let name = t.unique("c");
    t.made(CLASSES, &class(&name)).await;
    let plain = pod(&name).cut("/spec/runtimeClassName");
    for pod in [plain, pod(&name)] {
        let pod = pod.set("/spec/overhead", doc!({ "cpu": "1" }));
        t.create("pods", &pod).await.fails(403, "Forbidden").says(
            "pods \"a\" is forbidden: pod rejected: Pod Overhead set without corresponding \
             RuntimeClass defined Overhead",
        );
    }
    t.delete(&format!("{CLASSES}/{name}")).await.is(200);
}

async fn tolerations_of_a_class_are_merged(t: &Scope) {
    let name = t.unique("c");
    let scheduling = doc!({ "tolerations": [
        { "key": "a", "operator": "Exists" }, { "key": "b", "operator": "Equal", "value": "1" }
    ] });
    t.made(CLASSES, &class(&name).set("/scheduling", scheduling))
        .await;
    let given = doc!([
        { "key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule" },
        { "key": "b", "operator": "Equal", "value": "1" },
        { "key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 }
    ]);
    let made = t
        .made(
            "pods?dryRun=All",
            &pod(&name).set("/spec/tolerations", given),
        )
        .await;
    let keys = made.at("/spec/tolerations").items().iter();
    let keys: Vec<&str> = keys.map(|one| one.str_at("/key")).collect();
    assert_eq!(
        keys,
        [
            "b",
            "c",
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
            "a"
        ]
    );
    t.delete(&format!("{CLASSES}/{name}")).await.is(200);
}

async fn a_class_is_checked(t: &Scope) {
    let name = t.unique("c");
    let prefix = format!("RuntimeClass.node.k8s.io {name:?} is invalid: ");
    let refused = t.create(CLASSES, &class(&name).cut("/handler")).await;
    let refused = refused.fails(422, "Invalid");
    refused.says(&format!("{prefix}handler: Required value"));
    let odd = class(&name).set("/handler", "A_");
    let refused = t.create(CLASSES, &odd).await.fails(422, "Invalid");
    refused.says(&format!(
        "{prefix}handler: Invalid value: \"A_\": a lowercase RFC 1123 label must consist of lower \
         case alphanumeric characters or '-', and must start and end with an alphanumeric \
         character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ));
    let twice = doc!({ "tolerations": [
        { "key": "a", "operator": "Exists" }, { "key": "a", "operator": "Exists" }
    ] });
    let twice = class(&name).set("/scheduling", twice);
    let refused = t.create(CLASSES, &twice).await.fails(422, "Invalid");
    refused.mentions("scheduling.tolerations[1]: Duplicate value: ");
}

async fn the_handler_of_a_class_stays(t: &Scope) {
    let name = t.unique("c");
    t.made(CLASSES, &class(&name)).await;
    let path = format!("{CLASSES}/{name}");
    let refused = t.merge(&path, &doc!({ "handler": "other" })).await;
    let message = format!(
        "RuntimeClass.node.k8s.io {name:?} is invalid: handler: Invalid value: \"other\": field is \
         immutable"
    );
    refused.fails(422, "Invalid").says(&message);
    t.delete(&path).await.is(200);
}
