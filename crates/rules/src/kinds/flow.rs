//! Flow schemas and priority levels: what bounds the load on upstream's server. They are stored.

use windlass_core::Doc;

use crate::edit::{Fields, edit};
use crate::hooks::Hooks;

/// Hooks of flow schemas.
#[derive(Debug)]
pub struct FlowSchemas;

/// Hooks of priority levels.
#[derive(Debug)]
pub struct PriorityLevels;

/// Who makes the first of them.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// The order of flow schemas that do not say.
const PRECEDENCE: i64 = 1000;

impl Hooks for FlowSchemas {
    fn first_manager(&self) -> &'static str {
        PRODUCER
    }

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
        crate::edit::put(new, "/metadata", old.at("/metadata"))
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn table_rank(&self, schema: &Doc) -> i64 {
        let precedence = schema.at("/spec/matchingPrecedence");
        precedence.as_i64().unwrap_or_default()
    }
}

impl Hooks for PriorityLevels {
    fn first_manager(&self) -> &'static str {
        PRODUCER
    }

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
