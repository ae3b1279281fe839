//! Horizontal pod autoscalers: stored as version 2, shown as either version. Nothing here scales.
//!
//! Version 1 knows the utilization of the CPU alone. What else version 2 has goes through
//! annotations of version 1, in upstream's spelling, and so survives a client that knows no more
//! than version 1.

mod old;
mod rules;

use windlass_core::{Doc, doc};

use crate::edit::edit;
use crate::field::FieldErrors;
use crate::hooks::{Conversion, Hooks};

/// Hooks of autoscalers of version 2.
#[derive(Debug)]
pub struct Autoscalers;

/// Hooks of autoscalers of version 1.
#[derive(Debug)]
pub struct OldAutoscalers;

/// The way between the two versions.
pub const CONVERSION: Conversion = Conversion {
    api_version: "autoscaling/v2",
    to_storage: old::to_new,
    from_storage: old::from_new,
};

/// The share of its requested CPU at which a pod counts as busy, in percent.
const CPU_UTILIZATION: i64 = 80;

/// An autoscaler of either version in version 2.
#[must_use]
pub fn in_version_2(scaler: &Doc) -> Doc {
    match *scaler.at("/apiVersion") == "autoscaling/v1" {
        true => old::to_new(scaler),
        false => scaler.clone(),
    }
}

impl Hooks for Autoscalers {
    fn default(&self, scaler: Doc) -> Doc {
        edit(&old::without_annotations(scaler), |scaler| {
            scaler.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("minReplicas", 1);
                    if spec.get("metrics").is_none_or(|all| all.items().is_empty()) {
                        spec.set("metrics", default_metrics());
                    }
                    spec.inside("behavior", default_behavior);
                })
            });
        })
    }

    fn validate(&self, scaler: &Doc, errors: &mut FieldErrors) {
        rules::validate(scaler, errors);
    }

    fn validate_status(&self, new: &Doc, _: &Doc, errors: &mut FieldErrors) {
        rules::validate_status(new, errors);
    }
}

impl Hooks for OldAutoscalers {
    /// What an object says is seen after a way to version 2 and back, as upstream's clients do.
    fn default(&self, scaler: Doc) -> Doc {
        let scaler = edit(&scaler, |scaler| {
            scaler.inside("spec", |spec| {
                edit(spec, |spec| spec.default("minReplicas", 1))
            });
        });
        old::from_new(&old::to_new(&scaler))
    }

    fn validate(&self, scaler: &Doc, errors: &mut FieldErrors) {
        rules::validate(&old::to_new(scaler), errors);
    }

    fn validate_status(&self, new: &Doc, _: &Doc, errors: &mut FieldErrors) {
        rules::validate_status(new, errors);
    }
}

fn default_metrics() -> Doc {
    doc!([(cpu_metric(&CPU_UTILIZATION.into()))])
}

/// The metric that version 1 has a field for.
fn cpu_metric(utilization: &Doc) -> Doc {
    let target = doc!({ "type": "Utilization", "averageUtilization": utilization });
    doc!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

fn default_behavior(behavior: &Doc) -> Doc {
    edit(behavior, |behavior| {
        let up = doc!([
            { "type": "Pods", "value": 4, "periodSeconds": 15 },
            { "type": "Percent", "value": 100, "periodSeconds": 15 }
        ]);
        let down = doc!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]);
        for (direction, policies, window) in [("scaleUp", up, Some(0)), ("scaleDown", down, None)] {
            behavior.default(direction, Doc::empty_object());
            behavior.inside(direction, |rules| {
                edit(rules, |rules| {
                    rules.default("selectPolicy", "Max");
                    rules.default("policies", policies);
                    if let Some(window) = window {
                        rules.default("stabilizationWindowSeconds", window);
                    }
                })
            });
        }
    })
}
