//! Resource quotas: their own validity, and what they do to others.
//!
//! No controller counts here: each case says itself what is used.

use tokio::task::JoinSet;
use windlass_contract::objects::{config_map, deployment, pod, secret};
use windlass_contract::{Edit, Scope, cases};
use windlass_core::{Doc, doc};

cases![
    second_claim_is_refused,
    devices_of_a_class_are_limited,
    alternatives_count_by_their_worst,
    short_names_count_objects,
    long_names_count_objects,
    pods_are_limited_by_what_they_ask_for,
    all_that_is_exceeded_is_told,
    containers_must_say_what_is_limited,
    node_ports_and_balancers_are_limited,
    service_that_becomes_more_is_charged,
    storage_is_limited_by_class,
    trial_is_refused_and_not_charged,
    invalid_object_is_not_charged,
    what_is_charged_is_used,
    quota_without_status_limits_nothing,
    quota_without_usage_refuses,
    full_quota_refuses_a_name_that_is_taken,
    scope_leaves_other_pods_alone,
    priority_class_is_a_scope,
    refusal_by_one_quota_charges_no_other,
    racing_creates_share_what_is_left,
    unknown_names_are_refused,
    negative_amounts_are_refused,
    parts_of_objects_are_refused,
    status_is_checked_too,
    scopes_must_fit_what_is_limited,
    scopes_must_not_conflict,
    scopes_are_immutable,
    scope_selectors_are_checked,
];

fn quota(name: &str, spec: Doc) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": name }, "spec": spec
    })
}

/// A quota that counts.
async fn limit(t: &Scope, name: &str, spec: Doc, used: Doc) {
    t.made("resourcequotas", &quota(name, spec.clone())).await;
    let status = doc!({ "status": { "hard": (spec.at("/hard")), "used": used } });
    let path = format!("resourcequotas/{name}/status");
    t.merge(&path, &status).await.is(200);
}

/// A quota that counts, and with one limit more, by which that is seen: the real server takes a
/// moment. It has seen by then what was written before.
async fn limited(t: &Scope, hard: Doc, used: Doc) {
    let hard = hard.set("/count~1podtemplates", "0");
    let used = used.set("/count~1podtemplates", "0");
    limit(t, "q", doc!({ "hard": hard }), used).await;
    let template = doc!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "sign" },
        "template": { "spec": (pod("a").at("/spec")) }
    });
    for _ in 0..1000 {
        let answer = t.create("podtemplates?dryRun=All", &template).await;
        if answer.code() == 403 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the server did not come to see the quota");
}

/// Demands that an object is refused for a reason.
async fn forbidden(t: &Scope, resource: &str, object: &Doc, why: &str) {
    let named = match resource {
        "resourceclaims" => "resourceclaims.resource.k8s.io".to_owned(),
        "deployments" => "deployments.apps".to_owned(),
        other => other.split(['/', '?']).next().unwrap_or(other).to_owned(),
    };
    let name = object.meta().name();
    t.create(resource, object)
        .await
        .fails(403, "Forbidden")
        .says(&format!("{named} \"{name}\" is forbidden: {why}"));
}

async fn used(t: &Scope, name: &str) -> String {
    let quota = t.get("resourcequotas/q").await.is(200);
    let used = quota.at("/status/used").get(name);
    used.and_then(Doc::as_str).unwrap_or_default().to_owned()
}

fn claim(name: &str, requests: Doc) -> Doc {
    doc!({ "metadata": { "name": name }, "spec": { "devices": { "requests": requests } } })
}

fn gpus(name: &str, exactly: &Doc) -> Doc {
    let exactly = exactly.set("/deviceClassName", "gpu");
    claim(name, doc!([{ "name": "gpus", "exactly": exactly }]))
}

const CLAIMS: &str = "count/resourceclaims.resource.k8s.io";
const GPUS: &str = "gpu.deviceclass.resource.k8s.io/devices";

async fn second_claim_is_refused(t: &Scope) {
    limited(t, doc!({ CLAIMS: "1" }), doc!({ CLAIMS: "0" })).await;
    t.made("resourceclaims", &gpus("a", &doc!({}))).await;
    let why =
        format!("exceeded quota: q, requested: {CLAIMS}=1, used: {CLAIMS}=1, limited: {CLAIMS}=1");
    forbidden(t, "resourceclaims", &gpus("b", &doc!({})), &why).await;
}

async fn devices_of_a_class_are_limited(t: &Scope) {
    limited(t, doc!({ GPUS: "3" }), doc!({ GPUS: "0" })).await;
    t.made("resourceclaims", &gpus("a", &doc!({ "count": 2 })))
        .await;
    assert_eq!(used(t, GPUS).await, "2");
    let why = format!("exceeded quota: q, requested: {GPUS}=2, used: {GPUS}=2, limited: {GPUS}=3");
    forbidden(t, "resourceclaims", &gpus("b", &doc!({ "count": 2 })), &why).await;
    let why = format!("exceeded quota: q, requested: {GPUS}=32, used: {GPUS}=2, limited: {GPUS}=3");
    let all = gpus("b", &doc!({ "allocationMode": "All" }));
    forbidden(t, "resourceclaims", &all, &why).await;
    let other = claim(
        "c",
        doc!([{ "name": "n", "exactly": { "deviceClassName": "nic" } }]),
    );
    t.made("resourceclaims", &other).await;
}

async fn alternatives_count_by_their_worst(t: &Scope) {
    limited(t, doc!({ GPUS: "5" }), doc!({ GPUS: "0" })).await;
    let alternatives = doc!([{ "name": "some", "firstAvailable": [
        { "name": "three", "deviceClassName": "gpu", "count": 3 },
        { "name": "two", "deviceClassName": "gpu", "count": 2 }
    ] }]);
    t.made("resourceclaims", &claim("a", alternatives)).await;
    assert_eq!(used(t, GPUS).await, "3");
}

fn volume_claim(name: &str, class: &str, storage: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": storage } }
        }
    })
}

fn service(name: &str, sort: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "type": sort, "selector": { "app": "web" }, "ports": [{ "port": 80 }] }
    })
}

async fn short_names_count_objects(t: &Scope) {
    let controller = doc!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "a" },
        "spec": { "replicas": 0 }
    });
    let controller = controller.set(
        "/spec/template",
        doc!({ "metadata": { "labels": { "app": "web" } }, "spec": (pod("a").at("/spec")) }),
    );
    let objects = [
        ("configmaps", config_map("a")),
        ("secrets", secret("a")),
        ("services", service("a", "ClusterIP")),
        ("pods", pod("a")),
        ("persistentvolumeclaims", volume_claim("a", "c", "1Gi")),
        ("replicationcontrollers", controller),
        ("resourcequotas", quota("a", doc!({}))),
    ];
    let (mut hard, mut in_use) = (doc!({}), doc!({}));
    for (name, _) in &objects {
        hard = hard.set(&format!("/{name}"), "7");
        in_use = in_use.set(&format!("/{name}"), "7");
    }
    limited(t, hard, in_use).await;
    for (name, object) in &objects {
        let why =
            format!("exceeded quota: q, requested: {name}=1, used: {name}=7, limited: {name}=7");
        forbidden(t, name, object, &why).await;
    }
}

async fn long_names_count_objects(t: &Scope) {
    let (deployments, maps) = ("count/deployments.apps", "count/configmaps");
    let hard = doc!({ deployments: "1", maps: "1" });
    limited(t, hard, doc!({ deployments: "0", maps: "1" })).await;
    t.made("deployments", &deployment("a")).await;
    let full = |name: &str| {
        format!("exceeded quota: q, requested: {name}=1, used: {name}=1, limited: {name}=1")
    };
    forbidden(t, "deployments", &deployment("b"), &full(deployments)).await;
    forbidden(t, "configmaps", &config_map("a"), &full(maps)).await;
}

fn with_resources(name: &str, resources: Doc) -> Doc {
    pod(name).set("/spec/containers/0/resources", resources)
}

async fn pods_are_limited_by_what_they_ask_for(t: &Scope) {
    let hard = doc!({ "pods": "9", "requests.cpu": "1", "limits.memory": "2Gi" });
    let in_use = doc!({ "pods": "0", "requests.cpu": "0", "limits.memory": "0" });
    limited(t, hard, in_use).await;
    let asks = |cpu: &str| doc!({ "requests": { "cpu": cpu, "memory": "1Gi" }, "limits": { "memory": "1Gi" } });
    t.made("pods", &with_resources("a", asks("600m"))).await;
    let why = "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: \
               requests.cpu=1";
    forbidden(t, "pods", &with_resources("b", asks("500m")), why).await;
    t.made("pods", &with_resources("b", asks("400m"))).await;
    assert_eq!(used(t, "pods").await, "2");
    assert_eq!(used(t, "requests.cpu").await, "1");
    assert_eq!(used(t, "limits.memory").await, "2Gi");
}

async fn all_that_is_exceeded_is_told(t: &Scope) {
    let hard = doc!({ "cpu": "1", "memory": "1Gi", "requests.example.com/gpu": "1", "pods": "5" });
    let in_use =
        doc!({ "cpu": "0", "memory": "1Mi", "requests.example.com/gpu": "0", "pods": "0" });
    limited(t, hard, in_use).await;
    let resources = doc!({
        "requests": { "cpu": "2", "memory": "1Gi", "example.com/gpu": "2" },
        "limits": { "example.com/gpu": "2" }
    });
    let why = "exceeded quota: q, requested: cpu=2,memory=1Gi,requests.example.com/gpu=2, used: \
               cpu=0,memory=1Mi,requests.example.com/gpu=0, limited: \
               cpu=1,memory=1Gi,requests.example.com/gpu=1";
    forbidden(t, "pods", &with_resources("a", resources), why).await;
}

async fn containers_must_say_what_is_limited(t: &Scope) {
    let hard = doc!({ "requests.cpu": "1", "limits.memory": "1Gi" });
    let in_use = doc!({ "requests.cpu": "0", "limits.memory": "0" });
    limited(t, hard, in_use).await;
    let side = doc!([{ "name": "first", "image": "first:1" }]);
    let object = pod("a").set("/spec/initContainers", side);
    let why = "failed quota: q: must specify limits.memory for: first,main; requests.cpu for: \
               first,main";
    forbidden(t, "pods", &object, why).await;
}

async fn node_ports_and_balancers_are_limited(t: &Scope) {
    let hard = doc!({ "services.nodeports": "1", "services.loadbalancers": "0" });
    let in_use = doc!({ "services.nodeports": "0", "services.loadbalancers": "0" });
    limited(t, hard, in_use).await;
    let why = "exceeded quota: q, requested: services.loadbalancers=1, used: \
               services.loadbalancers=0, limited: services.loadbalancers=0";
    forbidden(t, "services", &service("a", "LoadBalancer"), why).await;
    t.made("services", &service("a", "NodePort")).await;
    let why = "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, \
               limited: services.nodeports=1";
    forbidden(t, "services", &service("b", "NodePort"), why).await;
    t.made("services", &service("b", "ClusterIP")).await;
}

async fn service_that_becomes_more_is_charged(t: &Scope) {
    let hard = doc!({ "services": "2", "services.nodeports": "1" });
    limited(
        t,
        hard,
        doc!({ "services": "0", "services.nodeports": "0" }),
    )
    .await;
    t.made("services", &service("a", "ClusterIP")).await;
    t.made("services", &service("b", "ClusterIP")).await;
    let ports = doc!({ "spec": { "type": "NodePort" } });
    t.merge("services/a", &ports).await.is(200);
    assert_eq!(used(t, "services").await, "2");
    assert_eq!(used(t, "services.nodeports").await, "1");
    t.merge("services/b", &ports)
        .await
        .fails(403, "Forbidden")
        .says(
            "services \"b\" is forbidden: exceeded quota: q, requested: services.nodeports=1, \
             used: services.nodeports=1, limited: services.nodeports=1",
        );
}

async fn storage_is_limited_by_class(t: &Scope) {
    let gold = "gold.storageclass.storage.k8s.io/requests.storage";
    let hard = doc!({ gold: "1Gi", "requests.storage": "5Gi" });
    limited(t, hard, doc!({ gold: "0", "requests.storage": "0" })).await;
    let why =
        format!("exceeded quota: q, requested: {gold}=2Gi, used: {gold}=0, limited: {gold}=1Gi");
    let large = volume_claim("a", "gold", "2Gi");
    forbidden(t, "persistentvolumeclaims", &large, &why).await;
    let other = volume_claim("a", "silver", "2Gi");
    t.made("persistentvolumeclaims", &other).await;
    assert_eq!(used(t, "requests.storage").await, "2Gi");
    assert_eq!(used(t, gold).await, "0");
}

const ONE: &str = "configmaps";
const FULL: &str =
    "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1";

async fn trial_is_refused_and_not_charged(t: &Scope) {
    limited(t, doc!({ ONE: "1" }), doc!({ ONE: "0" })).await;
    t.create("configmaps?dryRun=All", &config_map("a"))
        .await
        .is(201);
    assert_eq!(used(t, ONE).await, "0");
    t.made("configmaps", &config_map("a")).await;
    forbidden(t, "configmaps?dryRun=All", &config_map("b"), FULL).await;
}

async fn invalid_object_is_not_charged(t: &Scope) {
    limited(t, doc!({ ONE: "1" }), doc!({ ONE: "0" })).await;
    let invalid = config_map("a").set("/data", doc!({ "not a key": "" }));
    t.create("configmaps", &invalid).await.fails(422, "Invalid");
    assert_eq!(used(t, ONE).await, "0");
}

async fn what_is_charged_is_used(t: &Scope) {
    limited(t, doc!({ ONE: "9" }), doc!({ ONE: "0" })).await;
    for number in 1..=3 {
        let map = config_map(&format!("map-{number}"));
        t.made("configmaps", &map).await;
        assert_eq!(used(t, ONE).await, number.to_string());
    }
    let neighbour = t.neighbour().await;
    neighbour.made("configmaps", &config_map("a")).await;
    assert_eq!(used(t, ONE).await, "3");
}

async fn quota_without_status_limits_nothing(t: &Scope) {
    limited(t, doc!({}), doc!({})).await;
    let idle = quota("idle", doc!({ "hard": { ONE: "0" } }));
    t.made("resourcequotas", &idle).await;
    t.made("configmaps", &config_map("a")).await;
}

async fn quota_without_usage_refuses(t: &Scope) {
    limited(
        t,
        doc!({ "secrets": "1", "pods": "1" }),
        doc!({ "secrets": "0" }),
    )
    .await;
    t.made("secrets", &secret("a")).await;
    let why = "status unknown for quota: q, resources: pods";
    forbidden(t, "pods", &pod("a"), why).await;
}

async fn full_quota_refuses_a_name_that_is_taken(t: &Scope) {
    limited(t, doc!({ ONE: "1" }), doc!({ ONE: "0" })).await;
    t.made("configmaps", &config_map("a")).await;
    forbidden(t, "configmaps", &config_map("a"), FULL).await;
}

async fn scope_leaves_other_pods_alone(t: &Scope) {
    let spec = doc!({ "hard": { "pods": "0" }, "scopes": ["Terminating"] });
    limit(t, "jobs", spec, doc!({ "pods": "0" })).await;
    limited(t, doc!({}), doc!({})).await;
    t.made("pods", &pod("a")).await;
    let job = pod("b").set("/spec/activeDeadlineSeconds", 5);
    let why = "exceeded quota: jobs, requested: pods=1, used: pods=0, limited: pods=0";
    forbidden(t, "pods", &job, why).await;
}

async fn priority_class_is_a_scope(t: &Scope) {
    let class = t.unique("high");
    let object = doc!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": (class.as_str()) }, "value": 5
    });
    t.made("priorityclasses", &object).await;
    let choice = doc!({
        "scopeName": "PriorityClass", "operator": "In", "values": [(class.as_str())]
    });
    let spec = doc!({
        "hard": { "pods": "0" }, "scopeSelector": { "matchExpressions": [choice] }
    });
    limit(t, "high", spec, doc!({ "pods": "0" })).await;
    limited(t, doc!({}), doc!({})).await;
    t.made("pods", &pod("a")).await;
    let high = pod("b").set("/spec/priorityClassName", class.as_str());
    let why = "exceeded quota: high, requested: pods=1, used: pods=0, limited: pods=0";
    forbidden(t, "pods", &high, why).await;
}

async fn refusal_by_one_quota_charges_no_other(t: &Scope) {
    let spec = doc!({ "hard": { ONE: "0" } });
    limit(t, "z", spec, doc!({ ONE: "0" })).await;
    limited(t, doc!({ ONE: "5" }), doc!({ ONE: "0" })).await;
    let why =
        "exceeded quota: z, requested: configmaps=1, used: configmaps=0, limited: configmaps=0";
    forbidden(t, "configmaps", &config_map("a"), why).await;
    assert_eq!(used(t, ONE).await, "0");
}

async fn racing_creates_share_what_is_left(t: &Scope) {
    limited(t, doc!({ ONE: "4" }), doc!({ ONE: "0" })).await;
    let mut creates = JoinSet::new();
    for number in 0..12 {
        let (t, map) = (t.clone(), config_map(&format!("map-{number}")));
        creates.spawn(async move { t.create("configmaps", &map).await.code() });
    }
    let codes = creates.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 4);
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 8);
    assert_eq!(used(t, ONE).await, "4");
}

/// Demands that a quota is refused for reasons.
async fn invalid(t: &Scope, spec: Doc, why: &str) {
    t.create("resourcequotas", &quota("q", spec))
        .await
        .fails(422, "Invalid")
        .says(&format!("ResourceQuota \"q\" is invalid: {why}"));
}

async fn unknown_names_are_refused(t: &Scope) {
    let why = "[spec.hard[nodes]: Invalid value: \"nodes\": must be a standard resource type or \
               fully qualified, spec.hard[nodes]: Invalid value: \"nodes\": must be a standard \
               resource for quota]";
    invalid(t, doc!({ "hard": { "nodes": "1" } }), why).await;
}

async fn negative_amounts_are_refused(t: &Scope) {
    let why = "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0";
    invalid(t, doc!({ "hard": { "cpu": "-1" } }), why).await;
}

async fn parts_of_objects_are_refused(t: &Scope) {
    let why = "spec.hard[pods]: Invalid value: \"1500m\": must be an integer";
    invalid(t, doc!({ "hard": { "pods": "1500m" } }), why).await;
    t.made(
        "resourcequotas",
        &quota("q", doc!({ "hard": { "cpu": "1500m" } })),
    )
    .await;
}

async fn status_is_checked_too(t: &Scope) {
    t.made("resourcequotas", &quota("q", doc!({}))).await;
    let status = doc!({ "status": { "used": { "pods": "-1" } } });
    t.merge("resourcequotas/q/status", &status)
        .await
        .fails(422, "Invalid")
        .because("FieldValueInvalid", "status.used[pods]");
}

async fn scopes_must_fit_what_is_limited(t: &Scope) {
    let spec = doc!({ "hard": { "cpu": "1", "pods": "1" }, "scopes": ["BestEffort"] });
    let why = "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource";
    invalid(t, spec, why).await;
    let spec = doc!({ "hard": { "pods": "1" }, "scopes": ["Everything"] });
    let why = "spec.scopes: Invalid value: [\"Everything\"]: unsupported scope";
    invalid(t, spec, why).await;
}

async fn scopes_must_not_conflict(t: &Scope) {
    let spec = doc!({ "hard": { "pods": "1" }, "scopes": ["BestEffort", "NotBestEffort"] });
    let why = "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes";
    invalid(t, spec, why).await;
}

async fn scopes_are_immutable(t: &Scope) {
    let spec = doc!({ "hard": { "pods": "1" }, "scopes": ["BestEffort"] });
    t.made("resourcequotas", &quota("q", spec)).await;
    let patch = doc!({ "spec": { "scopes": ["NotBestEffort"] } });
    t.merge("resourcequotas/q", &patch)
        .await
        .fails(422, "Invalid")
        .says(
            "ResourceQuota \"q\" is invalid: spec.scopes: Invalid value: [\"NotBestEffort\"]: \
             field is immutable",
        );
    let patch = doc!({ "spec": { "hard": { "pods": "2" } } });
    t.merge("resourcequotas/q", &patch).await.is(200);
}

async fn scope_selectors_are_checked(t: &Scope) {
    let spec = |choice: Doc| doc!({ "hard": { "pods": "1" }, "scopeSelector": { "matchExpressions": [choice] } });
    let at = "spec.scopeSelector.matchExpressions";
    let choice = doc!({ "scopeName": "PriorityClass", "operator": "In" });
    let why = format!(
        "{at}.values: Required value: must be at least one value when `operator` is 'In' or \
         'NotIn' for scope selector"
    );
    invalid(t, spec(choice), &why).await;
    let choice = doc!({ "scopeName": "PriorityClass", "operator": "Like" });
    let why = format!("{at}.operator: Invalid value: \"Like\": not a valid selector operator");
    invalid(t, spec(choice), &why).await;
}
