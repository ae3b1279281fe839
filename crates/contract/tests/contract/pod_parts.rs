//! Resize, ephemeral containers and evictions under disruption budgets.

use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    a_resize_changes_amounts_alone,
    a_resize_is_of_processors_and_memory,
    a_resize_keeps_amounts_and_containers,
    a_resize_keeps_the_class_of_the_pod,
    a_resize_fits_on_the_node,
    an_ephemeral_container_stays,
    a_budget_that_was_not_looked_at_says_when_to_come_again,
    a_budget_without_room_says_what_it_needs,
    an_eviction_is_noted_in_the_budget,
    two_budgets_are_one_too_many,
    a_pending_pod_is_evicted_without_a_budget,
    an_unready_pod_costs_nothing,
    a_dry_run_evicts_nothing,
];

fn amounts(cpu: &str, memory: &str) -> Doc {
    doc!({ "cpu": cpu, "memory": memory })
}

fn sized() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [
            {
                "name": "a", "image": "b",
                "resources": {
                    "requests": (amounts("1", "1Gi")), "limits": (amounts("2", "2Gi"))
                }
            },
            { "name": "c", "image": "b", "resources": { "requests": { "cpu": "1" } } }
        ] }
    })
}

/// A patch of the first container.
fn first(container: &Doc) -> Doc {
    let container = container.set("/name", "a");
    doc!({ "spec": { "containers": [container] } })
}

async fn resize(t: &Scope, container: Doc) -> windlass_contract::Answer {
    t.strategic("pods/a/resize", &first(&container)).await
}

async fn a_resize_changes_amounts_alone(t: &Scope) {
    let made = t.made("pods", &sized()).await;
    assert_eq!(*made.at("/metadata/generation"), 1);
    let change = doc!({ "image": "other", "resources": { "requests": { "cpu": "1500m" } } });
    let found = resize(t, change).await.is(200);
    assert_eq!(found.str_at("/spec/containers/0/image"), "b");
    let cpu = found.str_at("/spec/containers/0/resources/requests/cpu");
    assert_eq!(cpu, "1500m");
    assert_eq!(*found.at("/metadata/generation"), 2);
    let main = first(&doc!({ "resources": { "requests": { "cpu": "1700m" } } }));
    t.strategic("pods/a", &main).await.fails(422, "Invalid");
}

async fn a_resize_is_of_processors_and_memory(t: &Scope) {
    t.made("pods", &sized()).await;
    let why = "Pod \"a\" is invalid: spec: Forbidden: only cpu and memory resources are mutable";
    let gpu = doc!({ "nvidia.com/gpu": "1" });
    for change in [
        doc!({ "resources": { "requests": (gpu.clone()), "limits": gpu } }),
        doc!({ "resources": { "requests": { "ephemeral-storage": "1" } } }),
        doc!({ "resizePolicy": [{ "resourceName": "cpu", "restartPolicy": "RestartContainer" }] }),
    ] {
        resize(t, change).await.fails(422, "Invalid").says(why);
    }
}

async fn a_resize_keeps_amounts_and_containers(t: &Scope) {
    t.made("pods", &sized()).await;
    let change = doc!({ "resources": { "limits": { "memory": null } } });
    resize(t, change).await.fails(422, "Invalid").says(
        "Pod \"a\" is invalid: spec.containers[0].resources.limits: Forbidden: resource limits \
         cannot be removed",
    );
    let more = doc!({ "spec": { "containers": [{ "name": "new", "image": "x" }] } });
    let refused = t.strategic("pods/a/resize", &more).await;
    refused.fails(422, "Invalid").says(
        "Pod \"a\" is invalid: spec.containers: Forbidden: containers may not be added or removed \
         on resize",
    );
    let order = doc!({ "spec": {
        "$setElementOrder/containers": [{ "name": "c" }, { "name": "a" }]
    } });
    let refused = t.strategic("pods/a/resize", &order).await;
    refused.fails(422, "Invalid").says(
        "Pod \"a\" is invalid: [spec.containers[0].name: Forbidden: containers may not be renamed \
         or reordered on resize, spec.containers[1].name: Forbidden: containers may not be renamed \
         or reordered on resize]",
    );
}

async fn a_resize_keeps_the_class_of_the_pod(t: &Scope) {
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "a", "image": "b" }] }
    });
    t.made("pods", &pod).await;
    let change = doc!({ "resources": { "requests": { "cpu": "1" } } });
    resize(t, change).await.fails(422, "Invalid").says(
        "Pod \"a\" is invalid: spec: Invalid value: \"BestEffort\": Pod QOS Class may not change \
         as a result of resizing",
    );
}

async fn a_resize_fits_on_the_node(t: &Scope) {
    let name = t.unique("n");
    let pod = sized().set("/spec/nodeName", name.as_str());
    t.made("pods", &pod).await;
    let larger =
        |cpu: &str| doc!({ "resources": { "limits": { "cpu": "9" }, "requests": { "cpu": cpu } } });
    let refused = resize(t, larger("3")).await.fails(403, "Forbidden");
    refused.says(&format!("pods \"a\" is forbidden: node {name:?} not found"));
    let node = doc!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": (&name) },
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi" } }
    });
    t.made("nodes", &node).await;
    let mut answer = resize(t, larger("4")).await;
    for _ in 0..1000 {
        if !answer.text().contains("not found") {
            break;
        }
        answer = resize(t, larger("4")).await;
    }
    answer
        .fails(403, "Forbidden")
        .says(
            "pods \"a\" is forbidden: node didn't have enough allocatable resources: cpu, \
             requested: 5000, allocatable: 4000",
        )
        .because("NodeCapacity", "");
    resize(t, larger("3")).await.is(200);
    t.delete(&format!("/api/v1/nodes/{name}")).await.is(200);
}

async fn an_ephemeral_container_stays(t: &Scope) {
    t.made("pods", &sized()).await;
    let path = "pods/a/ephemeralcontainers";
    let debug = doc!({ "spec": { "ephemeralContainers": [{ "name": "debug", "image": "d" }] } });
    let found = t.strategic(path, &debug).await.is(200);
    assert_eq!(*found.at("/metadata/generation"), 2);
    let without = found.cut("/spec/ephemeralContainers");
    let refused = t.update(path, &without).await.fails(422, "Invalid");
    refused
        .because("FieldValueForbidden", "spec.ephemeralContainers")
        .mentions("existing ephemeral containers \"debug\" may not be removed");
    let other = found.set("/spec/ephemeralContainers/0/image", "e");
    let refused = t.update(path, &other).await.fails(422, "Invalid");
    refused.mentions("existing ephemeral containers \"debug\" may not be changed");
}

fn web() -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "a", "labels": { "app": "web" } },
        "spec": {
            "nodeName": "n", "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "a", "image": "b" }]
        }
    })
}

/// A pod that runs, ready or not, and a budget with a status.
async fn guarded(t: &Scope, ready: &str, status: &Doc) {
    t.made("pods", &web()).await;
    let running = doc!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }]
    } });
    t.merge("pods/a/status", &running).await.is(200);
    budget(t, "b", status).await;
}

async fn budget(t: &Scope, name: &str, status: &Doc) {
    let budget = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } }
    });
    t.made("poddisruptionbudgets", &budget).await;
    let path = format!("poddisruptionbudgets/{name}/status");
    t.merge(&path, &doc!({ "status": (status.clone()) }))
        .await
        .is(200);
}

fn status(allowed: i64, healthy: i64, desired: i64) -> Doc {
    doc!({
        "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy,
        "desiredHealthy": desired, "expectedPods": 2
    })
}

fn eviction() -> Doc {
    doc!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" } })
}

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

async fn a_budget_that_was_not_looked_at_says_when_to_come_again(t: &Scope) {
    let unseen = status(1, 2, 1).set("/observedGeneration", 0);
    guarded(t, "True", &unseen).await;
    let answer = t.create("pods/a/eviction", &eviction()).await;
    assert_eq!(answer.header("retry-after"), "10");
    let refusal = answer.fails(429, "TooManyRequests").says(REFUSED);
    assert_eq!(
        refusal.causes()[0].str_at("/message"),
        "The disruption budget b is still being processed by the server."
    );
}

async fn a_budget_without_room_says_what_it_needs(t: &Scope) {
    guarded(t, "True", &status(0, 2, 2)).await;
    let answer = t.create("pods/a/eviction", &eviction()).await;
    assert_eq!(answer.header("retry-after"), "");
    let refusal = answer.fails(429, "TooManyRequests").says(REFUSED);
    let cause = &refusal.causes()[0];
    assert_eq!(cause.str_at("/reason"), "DisruptionBudget");
    assert_eq!(
        cause.str_at("/message"),
        "The disruption budget b needs 2 healthy pods and has 2 currently"
    );
}

async fn an_eviction_is_noted_in_the_budget(t: &Scope) {
    guarded(t, "True", &status(1, 2, 1)).await;
    let finalized = doc!({ "metadata": { "finalizers": ["example.com/keep"] } });
    t.merge("pods/a", &finalized).await.is(200);
    let done = t.create("pods/a/eviction", &eviction()).await.is(201);
    assert_eq!(done.str_at("/status"), "Success");
    let budget = t.get("poddisruptionbudgets/b").await.is(200);
    assert_eq!(*budget.at("/status/disruptionsAllowed"), 0);
    assert!(!budget.at("/status/disruptedPods/a").is_null());
    let pod = t.get("pods/a").await.is(200);
    let mut conditions = pod.at("/status/conditions").items().iter();
    let target = conditions.find(|it| it.str_at("/type") == "DisruptionTarget");
    let target = target.expect("a condition");
    assert_eq!(target.str_at("/reason"), "EvictionByEvictionAPI");
    assert_eq!(target.str_at("/message"), "Eviction API: evicting");
    let free = doc!({ "metadata": { "finalizers": null } });
    t.merge("pods/a", &free).await.is(200);
}

async fn two_budgets_are_one_too_many(t: &Scope) {
    guarded(t, "True", &status(1, 2, 1)).await;
    budget(t, "other", &status(1, 2, 1)).await;
    let refused = t.create("pods/a/eviction", &eviction()).await;
    refused.fails(500, "").says(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
         support.",
    );
}

async fn a_pending_pod_is_evicted_without_a_budget(t: &Scope) {
    budget(t, "b", &status(0, 1, 1)).await;
    t.made("pods", &web()).await;
    t.create("pods/a/eviction", &eviction()).await.is(201);
}

async fn an_unready_pod_costs_nothing(t: &Scope) {
    guarded(t, "False", &status(0, 2, 2)).await;
    t.create("pods/a/eviction", &eviction()).await.is(201);
    let budget = t.get("poddisruptionbudgets/b").await.is(200);
    assert!(budget.at("/status/disruptedPods").is_null());
}

async fn a_dry_run_evicts_nothing(t: &Scope) {
    guarded(t, "True", &status(1, 2, 1)).await;
    let path = "pods/a/eviction?dryRun=All";
    t.create(path, &eviction()).await.is(201);
    let budget = t.get("poddisruptionbudgets/b").await.is(200);
    assert_eq!(*budget.at("/status/disruptionsAllowed"), 1);
    t.get("pods/a").await.is(200);
    let full = doc!({ "status": { "disruptionsAllowed": 0, "currentHealthy": 1 } });
    t.merge("poddisruptionbudgets/b/status", &full)
        .await
        .is(200);
    t.create(path, &eviction())
        .await
        .fails(429, "TooManyRequests");
}
