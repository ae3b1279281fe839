//! Autoscalers in their two versions, of which one is stored.

use windlass_contract::{Edit, Scope, cases, managers, updater};
use windlass_core::{Doc, doc};

cases![
    version_1_has_its_default_target,
    version_1_is_seen_as_version_2,
    what_version_1_has_no_field_for_is_in_annotations,
    status_of_version_2_is_seen_in_version_1,
    patch_of_version_1_keeps_what_it_cannot_see,
    annotations_that_stand_for_fields_are_not_kept,
    spoiled_annotations_are_ignored,
    manager_of_version_1_owns_fields_of_version_1,
    both_versions_are_watched,
    both_versions_are_rows_of_one_table,
    bounds_of_replicas_are_checked,
    metrics_are_checked,
    policies_are_checked,
];

const V1: &str = "/apis/autoscaling/v1/namespaces";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

fn old_path(t: &Scope, name: &str) -> String {
    format!("{V1}/{}/horizontalpodautoscalers{name}", t.namespace())
}

fn old(name: &str) -> Doc {
    doc!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            "maxReplicas": 3
        }
    })
}

fn new(name: &str, metrics: Doc) -> Doc {
    old(name)
        .set("/apiVersion", "autoscaling/v2")
        .set("/spec/metrics", metrics)
}

fn cpu(utilization: i64) -> Doc {
    let target = doc!({ "type": "Utilization", "averageUtilization": utilization });
    doc!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

fn memory() -> Doc {
    let target = doc!({ "type": "AverageValue", "averageValue": "1Gi" });
    doc!({ "type": "Resource", "resource": { "name": "memory", "target": target } })
}

fn annotation<'a>(scaler: &'a Doc, key: &str) -> &'a str {
    let found = scaler.at("/metadata/annotations").get(key);
    found.and_then(Doc::as_str).unwrap_or_default()
}

async fn version_1_has_its_default_target(t: &Scope) {
    let made = t.made(&old_path(t, ""), &old("a")).await;
    assert_eq!(*made.at("/apiVersion"), "autoscaling/v1");
    let spec = doc!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
        "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 80
    });
    assert_eq!(*made.at("/spec"), spec);
    let status = doc!({ "currentReplicas": 0, "desiredReplicas": 0 });
    assert_eq!(*made.at("/status"), status);
}

async fn version_1_is_seen_as_version_2(t: &Scope) {
    let object = old("a").set("/spec/targetCPUUtilizationPercentage", 55);
    t.made(&old_path(t, ""), &object).await;
    let seen = t.get("horizontalpodautoscalers/a").await.is(200);
    assert_eq!(*seen.at("/spec/metrics"), doc!([(cpu(55))]));
    assert_eq!(
        *seen.at("/status"),
        doc!({ "desiredReplicas": 0, "currentMetrics": null })
    );
}

async fn what_version_1_has_no_field_for_is_in_annotations(t: &Scope) {
    let policy = doc!([{ "type": "Pods", "value": 1, "periodSeconds": 60 }]);
    let object = new("a", doc!([(cpu(60)), (memory())])).set(
        "/spec/behavior",
        doc!({ "scaleDown": { "policies": policy } }),
    );
    t.made("horizontalpodautoscalers", &object).await;
    let seen = t.get(&old_path(t, "/a")).await.is(200);
    assert_eq!(*seen.at("/spec/targetCPUUtilizationPercentage"), 60);
    let memory = r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]"#;
    assert_eq!(annotation(&seen, METRICS), memory);
    let behavior = concat!(
        r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":["#,
        r#"{"Type":"Pods","Value":4,"PeriodSeconds":15},"#,
        r#"{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null},"#,
        r#""ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":["#,
        r#"{"Type":"Pods","Value":1,"PeriodSeconds":60}],"Tolerance":null}}"#
    );
    let key = "autoscaling.alpha.kubernetes.io/behavior";
    assert_eq!(annotation(&seen, key), behavior);
}

async fn status_of_version_2_is_seen_in_version_1(t: &Scope) {
    t.made("horizontalpodautoscalers", &new("a", doc!([(cpu(60))])))
        .await;
    let status = doc!({
        "currentReplicas": 1, "desiredReplicas": 2,
        "conditions": [{
            "type": "AbleToScale", "status": "True", "message": "1 < 2",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }],
        "currentMetrics": [{
            "type": "Resource",
            "resource": { "name": "cpu", "current": { "averageUtilization": 30, "averageValue": "3m" } }
        }]
    });
    let patch = doc!({ "status": status });
    t.merge("horizontalpodautoscalers/a/status", &patch)
        .await
        .is(200);
    let seen = t.get(&old_path(t, "/a/status")).await.is(200);
    let expected = doc!({
        "currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 30
    });
    assert_eq!(*seen.at("/status"), expected);
    let conditions = concat!(
        r#"[{"type":"AbleToScale","status":"True","#,
        r#""lastTransitionTime":"2026-01-01T00:00:00Z","message":"1 \u003c 2"}]"#
    );
    let key = "autoscaling.alpha.kubernetes.io/conditions";
    assert_eq!(annotation(&seen, key), conditions);
    let metrics = concat!(
        r#"[{"type":"Resource","resource":{"name":"cpu","#,
        r#""currentAverageUtilization":30,"currentAverageValue":"3m"}}]"#
    );
    let key = "autoscaling.alpha.kubernetes.io/current-metrics";
    assert_eq!(annotation(&seen, key), metrics);
}

async fn patch_of_version_1_keeps_what_it_cannot_see(t: &Scope) {
    let object = new("a", doc!([(cpu(60)), (memory())]));
    t.made("horizontalpodautoscalers", &object).await;
    let patch = doc!({ "spec": { "targetCPUUtilizationPercentage": 44 } });
    let old = t.merge(&old_path(t, "/a"), &patch).await.is(200);
    assert_eq!(*old.at("/spec/targetCPUUtilizationPercentage"), 44);
    let seen = t.get("horizontalpodautoscalers/a").await.is(200);
    // The metric that version 1 has a field for comes last.
    assert_eq!(*seen.at("/spec/metrics"), doc!([(memory()), (cpu(44))]));
}

async fn annotations_that_stand_for_fields_are_not_kept(t: &Scope) {
    let annotations = doc!({ METRICS: "[]", "mine": "1" });
    let object = new("a", doc!([(cpu(60))])).set("/metadata/annotations", annotations);
    let made = t.made("horizontalpodautoscalers", &object).await;
    assert_eq!(*made.at("/metadata/annotations"), doc!({ "mine": "1" }));
}

async fn spoiled_annotations_are_ignored(t: &Scope) {
    let object = old("a").set("/metadata/annotations", doc!({ METRICS: "{" }));
    let made = t.made(&old_path(t, ""), &object).await;
    assert_eq!(*made.at("/spec/targetCPUUtilizationPercentage"), 80);
    assert!(made.at("/metadata/annotations").is_null(), "{made}");
}

async fn manager_of_version_1_owns_fields_of_version_1(t: &Scope) {
    let path = format!("{}?fieldManager=me", old_path(t, ""));
    let made = t.made(&path, &old("a")).await;
    let fields = doc!({ "f:spec": {
        "f:maxReplicas": {}, "f:minReplicas": {}, "f:targetCPUUtilizationPercentage": {},
        "f:scaleTargetRef": {}
    } });
    assert_eq!(
        managers(&made),
        doc!([(updater("me", "autoscaling/v1", fields))])
    );
}

async fn both_versions_are_watched(t: &Scope) {
    let made = t.made(&old_path(t, ""), &old("a")).await;
    let from = format!(
        "resourceVersion={}",
        made.str_at("/metadata/resourceVersion")
    );
    let mut new_watch = t.watch("horizontalpodautoscalers", &from).await;
    let mut old_watch = t.watch(&old_path(t, ""), &from).await;
    t.merge(&old_path(t, "/a"), &doc!({ "spec": { "maxReplicas": 9 } }))
        .await
        .is(200);
    let new = new_watch.expect("MODIFIED", "a").await;
    let old = old_watch.expect("MODIFIED", "a").await;
    assert_eq!(*new.at("/apiVersion"), "autoscaling/v2");
    assert_eq!(*old.at("/apiVersion"), "autoscaling/v1");
    assert_eq!(*new.at("/spec/metrics"), doc!([(cpu(80))]));
    assert_eq!(*old.at("/spec/targetCPUUtilizationPercentage"), 80);
}

async fn both_versions_are_rows_of_one_table(t: &Scope) {
    t.made(&old_path(t, ""), &old("a")).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let t = t.with_header("accept", accept);
    let new = t.get("horizontalpodautoscalers").await.is(200);
    let old = t.get(&old_path(&t, "")).await.is(200);
    for table in [&new, &old] {
        let cells = table.at("/rows/0/cells").items();
        let expected = doc!(["a", "Deployment/d", "cpu: <unknown>/80%", "1", 3, 0]);
        assert_eq!(Doc::from(cells[..6].to_vec()), expected);
    }
}

async fn bounds_of_replicas_are_checked(t: &Scope) {
    let object = old("a")
        .set("/spec/maxReplicas", 2)
        .set("/spec/minReplicas", 5);
    let refusal = t
        .create(&old_path(t, ""), &object)
        .await
        .fails(422, "Invalid");
    refusal
        .because("FieldValueInvalid", "spec.maxReplicas")
        .mentions("must be greater than or equal to `minReplicas`");
    let object = new("a", doc!([(cpu(60))])).set("/spec/maxReplicas", 0);
    let refusal = t.create("horizontalpodautoscalers", &object).await;
    refusal
        .fails(422, "Invalid")
        .because("FieldValueRequired", "spec.maxReplicas")
        .mentions("must be set and greater than 0");
}

async fn metrics_are_checked(t: &Scope) {
    let pods =
        doc!({ "type": "Pods", "pods": { "metric": { "name": "" }, "target": { "type": "X" } } });
    let object = new("a", doc!([(cpu(0)), pods, { "type": "Resource" }]));
    let answer = t.create("horizontalpodautoscalers", &object).await;
    answer
        .fails(422, "Invalid")
        .because(
            "FieldValueInvalid",
            "spec.metrics[0].resource.target.averageUtilization",
        )
        .because("FieldValueRequired", "spec.metrics[1].pods.metric.name")
        .because("FieldValueInvalid", "spec.metrics[1].pods.target.type")
        .because(
            "FieldValueRequired",
            "spec.metrics[1].pods.target.averageValue",
        )
        .because("FieldValueRequired", "spec.metrics[2].resource");
}

async fn policies_are_checked(t: &Scope) {
    let policies = doc!([{ "type": "Z", "value": 0, "periodSeconds": 9999 }]);
    let up = doc!({ "policies": policies, "stabilizationWindowSeconds": 4000 });
    let object = new("a", doc!([(cpu(60))])).set("/spec/behavior", doc!({ "scaleUp": up }));
    let answer = t.create("horizontalpodautoscalers", &object).await;
    answer
        .fails(422, "Invalid")
        .because(
            "FieldValueInvalid",
            "spec.behavior.scaleUp.stabilizationWindowSeconds",
        )
        .because(
            "FieldValueNotSupported",
            "spec.behavior.scaleUp.policies[0].type",
        )
        .because(
            "FieldValueInvalid",
            "spec.behavior.scaleUp.policies[0].value",
        )
        .because(
            "FieldValueInvalid",
            "spec.behavior.scaleUp.policies[0].periodSeconds",
        );
}
