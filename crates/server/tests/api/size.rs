//! The limit on the size of stored objects.

use windlass_core::{Doc, doc};

use crate::support::{Api, CONFIG_MAPS, config_map};

const TOO_LARGE: &str = "etcdserver: request is too large";
const MIB: usize = 1 << 20;

/// The path of a custom kind whose objects may hold anything.
async fn custom(api: &Api) -> &'static str {
    let any = doc!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = crate::custom::definition(any);
    api.post(crate::custom::DEFINITIONS, &definition)
        .await
        .expect(201);
    "/apis/example.com/v1/namespaces/default/gadgets"
}

fn gadget(bytes: usize) -> Doc {
    doc!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "a" },
        "spec": { "text": ("x".repeat(bytes)) }
    })
}

#[tokio::test]
async fn objects_above_the_limit_of_etcd_are_refused_however_they_are_written() {
    let api = Api::new().await;
    let path = custom(&api).await;
    let refused = api.post(path, &gadget(2 * MIB)).await.refused(500, "");
    assert_eq!(refused, TOO_LARGE);
    api.post(path, &gadget(MIB)).await.expect(201);
    let one = format!("{path}/a");
    let more = doc!({ "spec": { "more": ("y".repeat(MIB)) } });
    assert_eq!(api.merge(&one, &more).await.refused(500, ""), TOO_LARGE);
    let more = doc!([{ "op": "copy", "from": "/spec/text", "path": "/spec/more" }]);
    let patch = "application/json-patch+json";
    let refused = api.patch(&one, patch, &more.to_string()).await;
    assert_eq!(refused.refused(500, ""), TOO_LARGE);
    let found = api.get(&one).await.expect(200);
    let revised = |bytes| {
        let revision = found.str_at("/metadata/resourceVersion");
        let revised = gadget(bytes).with("/metadata/resourceVersion", revision);
        revised.unwrap()
    };
    let refused = api.put(&one, &revised(2 * MIB)).await.refused(500, "");
    assert_eq!(refused, TOO_LARGE);
    let apply = format!("{one}?fieldManager=m&force=true");
    let body = gadget(2 * MIB).to_string();
    let refused = api.patch(&apply, "application/apply-patch+yaml", &body);
    assert_eq!(refused.await.refused(500, ""), TOO_LARGE);
    // Nothing of that was stored. What is not to be stored may have any size.
    let now = api.get(&one).await.expect(200);
    assert_eq!(now.revision(), found.revision());
    let dry = format!("{one}?dryRun=All");
    api.put(&dry, &revised(2 * MIB)).await.expect(200);
    api.put(&one, &revised(MIB + MIB / 4)).await.expect(200);
}

#[tokio::test]
async fn an_object_that_fits_without_its_managed_fields_loses_them() {
    let api = Api::new().await;
    api.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    // Keys of the same length as the rest: with the fields that say who set them they are too much.
    let keys = (0..4000).map(|number| (format!("{number:0>240}"), Doc::from("v")));
    let data: Doc = keys.collect::<windlass_core::Object>().into();
    let one = format!("{CONFIG_MAPS}/a");
    let changed = api.merge(&one, &doc!({ "data": data })).await.expect(200);
    assert!(changed.body.at("/metadata/managedFields").is_null());
    assert_eq!(changed.body.at("/data").as_object().unwrap().len(), 4001);
}

/// Text with which an object is too large.
fn bulk() -> String {
    "x".repeat(2 * MIB)
}

#[tokio::test]
async fn a_binding_does_not_store_a_pod_that_is_too_large() {
    let api = Api::new().await;
    let container = doc!({
        "name": "c", "image": "i", "env": [{ "name": "A", "value": (bulk()) }]
    });
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "a", "namespace": "default", "uid": "u" },
        "spec": { "containers": [container] }
    });
    api.server.import(&pod).await.unwrap();
    let binding = doc!({ "metadata": { "name": "a" }, "target": { "name": "n" } });
    let path = "/api/v1/namespaces/default/pods/a";
    let refused = api.post(&format!("{path}/binding"), &binding).await;
    assert_eq!(refused.refused(500, ""), TOO_LARGE);
    assert!(api.get(path).await.body.at("/spec/nodeName").is_null());
}

#[tokio::test]
async fn a_charge_does_not_store_a_quota_that_is_too_large() {
    let api = Api::new().await;
    let quota = doc!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {
            "name": "q", "namespace": "default", "uid": "u", "annotations": { "a": (bulk()) }
        },
        "spec": { "hard": { "configmaps": "9" } },
        "status": { "hard": { "configmaps": "9" }, "used": { "configmaps": "1" } }
    });
    api.server.import(&quota).await.unwrap();
    let refused = api.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(refused.refused(500, ""), TOO_LARGE);
    api.get(&format!("{CONFIG_MAPS}/a"))
        .await
        .refused(404, "NotFound");
    let quota = "/api/v1/namespaces/default/resourcequotas/q";
    let quota = api.get(quota).await.expect(200);
    assert_eq!(*quota.body.at("/status/used/configmaps"), "1");
}

#[tokio::test]
async fn an_eviction_does_not_store_a_budget_that_is_too_large() {
    let api = Api::new().await;
    let pod = doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "namespace": "default", "uid": "u", "labels": { "app": "a" }
        },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
        "status": { "phase": "Running" }
    });
    let budget = doc!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {
            "name": "b", "namespace": "default", "uid": "v", "annotations": { "a": (bulk()) }
        },
        "spec": { "selector": { "matchLabels": { "app": "a" } } },
        "status": { "disruptionsAllowed": 1 }
    });
    api.server.import(&pod).await.unwrap();
    api.server.import(&budget).await.unwrap();
    let path = "/api/v1/namespaces/default/pods/a";
    let eviction = doc!({ "metadata": { "name": "a" } });
    let refused = api.post(&format!("{path}/eviction"), &eviction).await;
    assert_eq!(refused.refused(500, ""), TOO_LARGE);
    api.get(path).await.expect(200);
}

#[tokio::test]
async fn a_definition_that_is_too_large_gets_no_status_and_stops_no_other() {
    let api = Api::new().await;
    let any = doc!({ "type": "object", "description": (bulk()) });
    let large = crate::custom::definition(any);
    let large = large.with("/metadata/name", "widgets.example.com").unwrap();
    let names = doc!({
        "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"
    });
    let large = large.with("/spec/names", names).unwrap();
    let large = large.with("/metadata/uid", "u").unwrap();
    api.server.import(&large).await.unwrap();
    let gadgets = custom(&api).await;
    api.post(gadgets, &gadget(1)).await.expect(201);
    let path = format!("{}/widgets.example.com", crate::custom::DEFINITIONS);
    let found = api.get(&path).await.expect(200);
    assert!(found.body.at("/status/conditions").is_null());
}
