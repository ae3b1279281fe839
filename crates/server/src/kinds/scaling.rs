//! Autoscalers, and what bounds the load on the server. They are stored; nothing here scales.

use windlass_core::{Doc, doc};

use super::fields::{Fields, edit};
use crate::registry::Hooks;

/// Hooks of horizontal pod autoscalers.
#[derive(Debug)]
pub(crate) struct Autoscalers;

/// Hooks of flow schemas.
#[derive(Debug)]
pub(crate) struct FlowSchemas;

/// Hooks of priority levels.
#[derive(Debug)]
pub(crate) struct PriorityLevels;

/// The share of its requested CPU at which a pod counts as busy, in percent.
const CPU_UTILIZATION: i64 = 80;
/// The order of flow schemas that do not say.
const PRECEDENCE: i64 = 1000;

impl Hooks for Autoscalers {
    fn default(&self, scaler: Doc) -> Doc {
        edit(&scaler, |scaler| {
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
}

fn default_metrics() -> Doc {
    let target = doc!({ "type": "Utilization", "averageUtilization": CPU_UTILIZATION });
    doc!([{ "type": "Resource", "resource": { "name": "cpu", "target": target } }])
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

impl Hooks for FlowSchemas {
    fn default(&self, schema: Doc) -> Doc {
        edit(&schema, |schema| {
            schema.inside("spec", |spec| {
                edit(spec, |spec| {
                    default_number(spec, "matchingPrecedence", PRECEDENCE)
                })
            });
        })
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        crate::rest::put(new, "/metadata", old.at("/metadata"))
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }
}

impl Hooks for PriorityLevels {
    fn default(&self, level: Doc) -> Doc {
        edit(&level, |level| {
            level.inside("spec", |spec| {
                edit(spec, |spec| {
                    for (sort, shares) in [("limited", 30), ("exempt", 0)] {
                        spec.inside(sort, |limits| {
                            edit(limits, |limits| {
                                limits.default("nominalConcurrencyShares", shares);
                                limits.default("lendablePercent", 0);
                                limits.inside("limitResponse", default_response);
                            })
                        });
                    }
                })
            });
        })
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        FlowSchemas.prepare_status(new, old)
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        FlowSchemas.status_resets()
    }
}

fn default_response(response: &Doc) -> Doc {
    edit(response, |response| {
        response.inside("queuing", |queuing| {
            edit(queuing, |queuing| {
                default_number(queuing, "handSize", 8);
                default_number(queuing, "queues", 64);
                default_number(queuing, "queueLengthLimit", 50);
            })
        });
    })
}

/// Sets a number that is absent or zero.
fn default_number(fields: &mut Fields, key: &str, value: i64) {
    if fields.get(key).and_then(Doc::as_i64).unwrap_or(0) == 0 {
        fields.set(key, value);
    }
}
