//! Version 1 of autoscalers, made of version 2 and the other way round.

use windlass_atlas::{Atlas, canonical};
use windlass_core::{Doc, Gvk, Kind, Object, Str, doc};

use super::{CPU_UTILIZATION, cpu_metric};
use crate::edit::edit;

const OLD: Gvk = Gvk::constant("autoscaling", "v1", "HorizontalPodAutoscaler");
const NEW: Gvk = Gvk::constant("autoscaling", "v2", "HorizontalPodAutoscaler");

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What stands in annotations for fields that version 1 has not.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The kinds of metrics, with the fields that hold them.
const SORTS: [&str; 5] = [
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
];

/// Whether a metric is what is wanted, or what was measured.
#[derive(Clone, Copy)]
enum Side {
    Target,
    Current,
}

impl Side {
    /// The field of version 2 that holds the values.
    fn field(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Current => "current",
        }
    }

    /// A field of version 1, which has the side in its name.
    fn named(self, rest: &str) -> String {
        format!("{}{rest}", self.field())
    }
}

/// An object without the annotations that stand for fields.
pub(super) fn without_annotations(scaler: Doc) -> Doc {
    let annotations = scaler.at("/metadata/annotations");
    if !ANNOTATIONS.iter().any(|key| annotations.get(key).is_some()) {
        return scaler;
    }
    with_annotations(&scaler, &[])
}

/// An object whose annotations that stand for fields are these.
fn with_annotations(scaler: &Doc, fresh: &[(&str, String)]) -> Doc {
    edit(scaler, |scaler| {
        scaler.inside("metadata", |metadata| {
            let known = metadata.at("/annotations").as_object().cloned();
            let mut all = known.unwrap_or_else(Object::empty);
            for key in ANNOTATIONS {
                all = all.without(key);
            }
            for (key, text) in fresh {
                all = all.with(key, text.as_str().into());
            }
            edit(metadata, |metadata| match all.is_empty() {
                true => metadata.remove("annotations"),
                false => metadata.set("annotations", all),
            })
        });
    })
}

/// Version 1 of an object of version 2.
pub(super) fn from_new(scaler: &Doc) -> Doc {
    let (spec, status) = (scaler.at("/spec"), scaler.at("/status"));
    let metrics = spec.at("/metrics").items();
    let cpu = metrics.iter().find(|metric| is_cpu_utilization(metric));
    let utilization = cpu.map(|cpu| cpu.at("/resource/target/averageUtilization").clone());
    let measured = status.at("/currentMetrics").items();
    let is_cpu =
        |metric: &&Doc| *metric.at("/type") == "Resource" && *metric.at("/resource/name") == "cpu";
    let measured_cpu = measured
        .iter()
        .filter(is_cpu)
        .map(|metric| metric.at("/resource/current/averageUtilization"))
        .rfind(|value| !value.is_null());
    let spec = keep(spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let spec = with(spec, "targetCPUUtilizationPercentage", utilization);
    let kept = [
        "observedGeneration",
        "lastScaleTime",
        "currentReplicas",
        "desiredReplicas",
    ];
    let old_status = keep(status, &kept);
    let old_status = with(
        old_status,
        "currentCPUUtilizationPercentage",
        measured_cpu.cloned(),
    );
    let old = edit(&with_annotations(scaler, &annotations(scaler)), |old| {
        old.set("apiVersion", OLD.api_version());
        old.set("spec", spec);
        old.set("status", old_status);
    });
    Atlas::kind(&OLD).map_or_else(|| old.clone(), |kind| canonical(kind, &old))
}

fn is_cpu_utilization(metric: &Doc) -> bool {
    *metric.at("/type") == "Resource"
        && *metric.at("/resource/name") == "cpu"
        && !metric.at("/resource/target/averageUtilization").is_null()
}

/// What version 1 has no field for.
fn annotations(scaler: &Doc) -> Vec<(&'static str, String)> {
    let list = |parts: Vec<String>| escaped(&format!("[{}]", parts.join(",")));
    let mut fresh = Vec::new();
    let metrics = scaler.at("/spec/metrics").items().iter();
    let others = metrics.filter(|metric| !is_cpu_utilization(metric));
    let others: Vec<String> = others
        .map(|metric| old_metric(metric, Side::Target))
        .collect();
    if !others.is_empty() {
        fresh.push((METRICS, list(others)));
    }
    let measured = scaler.at("/status/currentMetrics").items().iter();
    let measured: Vec<String> = measured.map(|one| old_metric(one, Side::Current)).collect();
    if !measured.is_empty() {
        fresh.push((CURRENT_METRICS, list(measured)));
    }
    let behavior = scaler.at("/spec/behavior");
    if !behavior.is_null() {
        fresh.push((BEHAVIOR, escaped(&old_behavior(behavior))));
    }
    let conditions = scaler.at("/status/conditions").items();
    if !conditions.is_empty() {
        fresh.push((CONDITIONS, list(conditions.iter().map(condition).collect())));
    }
    fresh
}

/// Text in which nothing can be taken for a tag, as Go writes it.
fn escaped(text: &str) -> String {
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// The text of an object whose fields have an order.
fn text(fields: &[(&str, Option<String>)]) -> String {
    let present = fields.iter().filter_map(|(key, value)| {
        let value = value.as_ref()?;
        Some(format!("\"{key}\":{value}"))
    });
    format!("{{{}}}", present.collect::<Vec<_>>().join(","))
}

fn json(value: &Doc) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// A value, or what Go writes for none.
fn json_or(value: &Doc, absent: &str) -> Option<String> {
    Some(json(value).unwrap_or_else(|| absent.to_owned()))
}

/// A metric as version 1 spells it.
fn old_metric(metric: &Doc, side: Side) -> String {
    let mut fields = vec![("type", json_or(metric.at("/type"), "\"\""))];
    for sort in SORTS {
        if let Some(body) = metric.get(sort).filter(|body| !body.is_null()) {
            fields.push((sort, Some(old_body(sort, body, side))));
        }
    }
    text(&fields)
}

fn old_body(sort: &str, body: &Doc, side: Side) -> String {
    let values = body.get(side.field()).unwrap_or(&Doc::NULL);
    let (value, average) = (values.at("/value"), values.at("/averageValue"));
    let utilization = values.at("/averageUtilization");
    let name = json_or(body.at("/metric/name"), "\"\"");
    let selector = Some(body.at("/metric/selector")).filter(|one| !one.is_null());
    let selector = selector.map(old_selector);
    let (value_key, average_key) = (side.named("Value"), side.named("AverageValue"));
    let utilization_key = side.named("AverageUtilization");
    // What was measured is always there in version 1.
    let measured = |value: &Doc| match side {
        Side::Target => json(value),
        Side::Current => json_or(value, "\"0\""),
    };
    match sort {
        "object" => text(&[
            ("target", Some(old_reference(body.at("/describedObject")))),
            ("metricName", name),
            (&value_key, json_or(value, "\"0\"")),
            ("selector", selector),
            ("averageValue", json(average)),
        ]),
        "pods" => text(&[
            ("metricName", name),
            (&average_key, json_or(average, "\"0\"")),
            ("selector", selector),
        ]),
        "external" => text(&[
            ("metricName", name),
            ("metricSelector", selector),
            (&value_key, measured(value)),
            (&average_key, json(average)),
        ]),
        _ => text(&[
            ("name", json_or(body.at("/name"), "\"\"")),
            (&utilization_key, json(utilization)),
            (&average_key, measured(average)),
            ("container", json(body.at("/container"))),
        ]),
    }
}

fn old_reference(reference: &Doc) -> String {
    text(&[
        ("kind", json_or(reference.at("/kind"), "\"\"")),
        ("name", json_or(reference.at("/name"), "\"\"")),
        ("apiVersion", json(reference.at("/apiVersion"))),
    ])
}

fn old_selector(selector: &Doc) -> String {
    text(&[
        ("matchLabels", json(selector.at("/matchLabels"))),
        ("matchExpressions", json(selector.at("/matchExpressions"))),
    ])
}

fn condition(condition: &Doc) -> String {
    text(&[
        ("type", json_or(condition.at("/type"), "\"\"")),
        ("status", json_or(condition.at("/status"), "\"\"")),
        (
            "lastTransitionTime",
            json_or(condition.at("/lastTransitionTime"), "null"),
        ),
        ("reason", json(condition.at("/reason"))),
        ("message", json(condition.at("/message"))),
    ])
}

/// The behavior as upstream's servers spell it among themselves.
fn old_behavior(behavior: &Doc) -> String {
    let direction = |rules: &Doc| match rules.is_null() {
        true => Some("null".to_owned()),
        false => Some(old_rules(rules)),
    };
    text(&[
        ("ScaleUp", direction(behavior.at("/scaleUp"))),
        ("ScaleDown", direction(behavior.at("/scaleDown"))),
    ])
}

fn old_rules(rules: &Doc) -> String {
    let policy = |policy: &Doc| {
        text(&[
            ("Type", json_or(policy.at("/type"), "\"\"")),
            ("Value", json_or(policy.at("/value"), "0")),
            ("PeriodSeconds", json_or(policy.at("/periodSeconds"), "0")),
        ])
    };
    let policies = rules.at("/policies");
    let listed: Vec<String> = policies.items().iter().map(policy).collect();
    let listed = match policies.is_null() {
        true => "null".to_owned(),
        false => format!("[{}]", listed.join(",")),
    };
    text(&[
        (
            "StabilizationWindowSeconds",
            json_or(rules.at("/stabilizationWindowSeconds"), "null"),
        ),
        ("SelectPolicy", json_or(rules.at("/selectPolicy"), "null")),
        ("Policies", Some(listed)),
        ("Tolerance", json_or(rules.at("/tolerance"), "null")),
    ])
}

/// Version 2 of an object of version 1.
pub(super) fn to_new(scaler: &Doc) -> Doc {
    let annotation = |key: &str| {
        let text = scaler.at("/metadata/annotations").get(key)?.as_str()?;
        Doc::parse(text.as_bytes()).ok()
    };
    let list = |key: &str| annotation(key).filter(|doc| matches!(doc.kind(), Kind::Array(_)));
    let (spec, status) = (scaler.at("/spec"), scaler.at("/status"));
    let mut metrics: Vec<Doc> = Vec::new();
    if let Some(others) = list(METRICS) {
        metrics.extend(
            others
                .items()
                .iter()
                .map(|one| new_metric(one, Side::Target)),
        );
    }
    let utilization = spec.at("/targetCPUUtilizationPercentage");
    if !utilization.is_null() {
        metrics.push(cpu_metric(utilization));
    } else if metrics.is_empty() {
        metrics.push(cpu_metric(&CPU_UTILIZATION.into()));
    }
    let new_spec = keep(spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let new_spec = with(new_spec, "metrics", Some(metrics.into()));
    let behavior = annotation(BEHAVIOR).map(|behavior| new_behavior(&behavior));
    let behavior = behavior.filter(|behavior| *behavior != Doc::empty_object());
    let new_spec = with(new_spec, "behavior", behavior);
    let measured = match list(CURRENT_METRICS) {
        Some(all) => {
            let all = all.items().iter();
            Some(
                all.map(|one| new_metric(one, Side::Current))
                    .collect::<Vec<_>>()
                    .into(),
            )
        }
        None => new_cpu_status(status.at("/currentCPUUtilizationPercentage")),
    };
    let kept = [
        "observedGeneration",
        "lastScaleTime",
        "currentReplicas",
        "desiredReplicas",
    ];
    let new_status = with(keep(status, &kept), "currentMetrics", measured);
    let new_status = with(new_status, "conditions", list(CONDITIONS));
    let new = edit(&without_annotations(scaler.clone()), |new| {
        new.set("apiVersion", NEW.api_version());
        new.set("spec", new_spec);
        new.set("status", new_status);
    });
    Atlas::kind(&NEW).map_or_else(|| new.clone(), |kind| canonical(kind, &new))
}

fn new_cpu_status(utilization: &Doc) -> Option<Doc> {
    let current = doc!({ "averageUtilization": utilization });
    let metric = doc!({ "type": "Resource", "resource": { "name": "cpu", "current": current } });
    (!utilization.is_null()).then(|| doc!([metric]))
}

/// A metric as version 2 has it.
fn new_metric(metric: &Doc, side: Side) -> Doc {
    let mut fields: Vec<(Str, Doc)> = vec![("type".into(), metric.at("/type").clone())];
    for sort in SORTS {
        if let Some(body) = metric.get(sort).filter(|body| !body.is_null()) {
            fields.push((sort.into(), new_body(sort, body, side)));
        }
    }
    Object::new(fields).into()
}

fn new_body(sort: &str, body: &Doc, side: Side) -> Doc {
    let at = |key: &str| body.get(key).cloned().filter(|value| !value.is_null());
    let average = match sort {
        "object" => at("averageValue"),
        _ => at(&side.named("AverageValue")),
    };
    let utilization = at(&side.named("AverageUtilization"));
    let is_zero = |value: &Doc| *value == "0";
    // Version 1 cannot leave the value of an object out.
    let is_average_of_object = sort == "object" && average.is_some() && is_target(side);
    let value = at(&side.named("Value")).filter(|value| !is_average_of_object || !is_zero(value));
    let form = match sort {
        "pods" => "AverageValue",
        "object" if average.is_none() => "Value",
        "external" if value.is_some() => "Value",
        "resource" | "containerResource" if utilization.is_some() => "Utilization",
        _ => "AverageValue",
    };
    let values = Doc::empty_object();
    let values = with(values, "type", is_target(side).then(|| form.into()));
    let values = with(values, "value", value);
    let values = with(values, "averageValue", average);
    let values = with(values, "averageUtilization", utilization);
    let new = with(Doc::empty_object(), side.field(), Some(values));
    if matches!(sort, "resource" | "containerResource") {
        return with(with(new, "name", at("name")), "container", at("container"));
    }
    let selector = if sort == "external" {
        at("metricSelector")
    } else {
        at("selector")
    };
    let metric = with(Doc::empty_object(), "name", at("metricName"));
    let new = with(new, "metric", Some(with(metric, "selector", selector)));
    with(
        new,
        "describedObject",
        at("target").filter(|_| sort == "object"),
    )
}

fn is_target(side: Side) -> bool {
    matches!(side, Side::Target)
}

fn new_behavior(behavior: &Doc) -> Doc {
    let mut new = Doc::empty_object();
    for (old, key) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let rules = behavior.get(old).filter(|rules| !rules.is_null());
        new = with(new, key, rules.map(new_rules));
    }
    new
}

fn new_rules(rules: &Doc) -> Doc {
    let renamed = |object: &Doc, names: &[(&str, &str)]| {
        let pairs = names.iter().map(|(old, new)| (object.get(old), new));
        pairs.fold(Doc::empty_object(), |all, (value, new)| {
            with(all, new, value.cloned().filter(|value| !value.is_null()))
        })
    };
    let policy = |policy: &Doc| {
        let names = [
            ("Type", "type"),
            ("Value", "value"),
            ("PeriodSeconds", "periodSeconds"),
        ];
        renamed(policy, &names)
    };
    let names = [
        ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
        ("SelectPolicy", "selectPolicy"),
        ("Tolerance", "tolerance"),
    ];
    let policies = rules.get("Policies").filter(|policies| !policies.is_null());
    let policies = policies.map(|all| all.items().iter().map(policy).collect::<Vec<_>>().into());
    with(renamed(rules, &names), "policies", policies)
}

/// An object with some of the fields of another.
fn keep(object: &Doc, keys: &[&str]) -> Doc {
    let fields = keys.iter().filter_map(|key| {
        let value = object.get(key).filter(|value| !value.is_null())?;
        Some((Str::new(key), value.clone()))
    });
    Object::new(fields.collect()).into()
}

/// An object with a field, if there is a value for it.
fn with(object: Doc, key: &str, value: Option<Doc>) -> Doc {
    match (object.as_object(), value) {
        (Some(fields), Some(value)) => fields.with(key, value).into(),
        _ => object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_scaler() -> Doc {
        doc!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "a", "annotations": { "mine": "1" } },
            "spec": {
                "scaleTargetRef": { "kind": "Deployment", "name": "d", "apiVersion": "apps/v1" },
                "minReplicas": 1, "maxReplicas": 5,
                "metrics": [
                    { "type": "External", "external": {
                        "metric": { "name": "q", "selector": { "matchLabels": { "a": "b" } } },
                        "target": { "type": "AverageValue", "averageValue": "30" } } },
                    { "type": "Object", "object": {
                        "describedObject": { "kind": "Ingress", "name": "i" },
                        "metric": { "name": "rps" },
                        "target": { "type": "AverageValue", "averageValue": "2k" } } },
                    { "type": "Pods", "pods": {
                        "metric": { "name": "p" },
                        "target": { "type": "AverageValue", "averageValue": "1" } } },
                    { "type": "ContainerResource", "containerResource": {
                        "name": "memory", "container": "c",
                        "target": { "type": "AverageValue", "averageValue": "1Gi" } } },
                    { "type": "Resource", "resource": {
                        "name": "cpu",
                        "target": { "type": "Utilization", "averageUtilization": 50 } } }
                ],
                "behavior": { "scaleDown": {
                    "selectPolicy": "Max", "stabilizationWindowSeconds": 60,
                    "policies": [{ "type": "Pods", "value": 1, "periodSeconds": 15 }] } }
            },
            "status": {
                "currentReplicas": 2, "desiredReplicas": 3,
                "conditions": [{
                    "type": "AbleToScale", "status": "True", "message": "<fine>",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"
                }],
                "currentMetrics": [{ "type": "Resource", "resource": {
                    "name": "cpu", "current": { "averageUtilization": 40, "averageValue": "4m" } } }]
            }
        })
    }

    #[test]
    fn version_1_and_back_loses_nothing() {
        let new = new_scaler();
        let old = from_new(&new);
        assert_eq!(*old.at("/spec/targetCPUUtilizationPercentage"), 50);
        assert_eq!(*old.at("/status/currentCPUUtilizationPercentage"), 40);
        let annotations = old.at("/metadata/annotations");
        assert_eq!(annotations.get("mine"), Some(&"1".into()));
        let conditions = annotations.get(CONDITIONS).expect("conditions");
        assert_eq!(
            *conditions,
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","message":"\u003cfine\u003e"}]"#
        );
        assert_eq!(
            to_new(&old),
            canonical(Atlas::kind(&NEW).expect("a kind"), &new)
        );
    }

    #[test]
    fn version_1_without_a_target_means_the_default() {
        let old = doc!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "a", "annotations": { "autoscaling.alpha.kubernetes.io/metrics": "{" } },
            "spec": { "maxReplicas": 3 }
        });
        let new = to_new(&old);
        let target = new.at("/spec/metrics/0/resource/target/averageUtilization");
        assert_eq!(*target, CPU_UTILIZATION);
        assert!(new.at("/metadata/annotations").is_null());
    }
}
