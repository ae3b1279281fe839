//! Deployments, replica sets, stateful sets, daemon sets and replication controllers.

use std::num::IntErrorKind;

use windlass_core::{Doc, Env, IntOrString, doc};

use super::{pod_spec, workload};
use crate::edit::{cut, put};
use crate::edit::{edit, not_negative, path_of};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

const COUNTS: &[&str] = &[
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "observedGeneration",
];

/// Where an old client asks for an earlier revision of a deployment.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

/// Where a daemon set counts its templates.
const TEMPLATE_GENERATION: &str = "/metadata/annotations/deprecated.daemonset.template.generation";

/// What is wrong with an annotation of a deployment that upstream reads as a number, in the words
/// of its reader.
fn unreadable_rollback(deployment: &Doc) -> Option<String> {
    let text = deployment.meta().annotation(ROLLBACK).unwrap_or_default();
    let error = text.parse::<i64>().err()?;
    let why = match error.kind() {
        IntErrorKind::Empty => return None,
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    let shown = windlass_core::quote(text);
    Some(format!(
        "failed to parse annotation[{ROLLBACK}]={text} as int64: strconv.ParseInt: parsing \
         {shown}: {why}"
    ))
}

/// Hooks of deployments.
#[derive(Debug)]
pub struct Deployments;

/// Hooks of replica sets.
#[derive(Debug)]
pub struct ReplicaSets;

/// Hooks of stateful sets.
#[derive(Debug)]
pub struct StatefulSets;

/// Hooks of daemon sets.
#[derive(Debug)]
pub struct DaemonSets;

/// Hooks of replication controllers.
#[derive(Debug)]
pub struct ReplicationControllers;

impl Hooks for Deployments {
    fn unreadable(&self, object: &Doc) -> Option<String> {
        unreadable_rollback(object)
    }

    fn default(&self, object: Doc) -> Doc {
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("replicas", 1);
                    spec.default("revisionHistoryLimit", 10);
                    spec.default("progressDeadlineSeconds", 600);
                    spec.default("strategy", Doc::empty_object());
                    spec.inside("strategy", default_strategy);
                    pod_spec::default_template(spec);
                })
            });
        })
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        match old.at("/metadata/labels") {
            labels if labels.is_null() => cut(new, "/metadata/labels"),
            labels => put(new, "/metadata/labels", labels),
        }
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata", "labels"]]
    }

    fn warnings(&self, object: &Doc) -> Vec<String> {
        let messages = windlass_core::names::dns1123_label(object.meta().name());
        // An object with a revision has its name already, and keeps it.
        if messages.is_empty() || !object.meta().resource_version().is_empty() {
            return Vec::new();
        }
        let messages = messages.join(" ");
        vec![format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in \
             surprising behavior; a DNS label is recommended: [{messages}]"
        )]
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        not_negative(object, "/spec/replicas", errors);
        workload::validate_pods(object, "Deployment", errors);
        validate_strategy(object.at("/spec/strategy"), errors);
        not_negative(object, "/spec/minReadySeconds", errors);
        not_negative(object, "/spec/revisionHistoryLimit", errors);
        let revision = object.meta().annotation(ROLLBACK).unwrap_or_default();
        if let Ok(revision) = revision.parse::<i64>()
            && revision < 0
        {
            let path = FieldPath::new("spec").child("rollback").child("version");
            errors.invalid(&path, revision, "must be greater than or equal to 0");
        }
        let path = FieldPath::new("spec").child("progressDeadlineSeconds");
        let deadline = object.at("/spec/progressDeadlineSeconds");
        let ready = object.at("/spec/minReadySeconds").as_i64().unwrap_or(0);
        if let Some(seconds) = deadline.as_i64() {
            if seconds < 0 {
                errors.invalid(&path, seconds, "must be greater than or equal to 0");
            }
            if seconds <= ready {
                errors.invalid(&path, seconds, "must be greater than minReadySeconds");
            }
        }
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        workload::selector_is_immutable(new, old, errors);
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let bounds = [
            ("updatedReplicas", "replicas"),
            ("readyReplicas", "replicas"),
            ("availableReplicas", "replicas"),
            ("availableReplicas", "readyReplicas"),
        ];
        let counts = [
            COUNTS,
            &[
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
        ];
        workload::validate_counts(new, &counts.concat(), &bounds, errors);
        let count = |object: &Doc| object.at("/status/collisionCount").as_i64();
        if let Some(before) = count(old)
            && count(new).is_none_or(|after| after < before)
        {
            let path = FieldPath::new("status").child("collisionCount");
            errors.invalid(&path, count(new), "cannot be decremented");
        }
    }
}

fn default_strategy(strategy: &Doc) -> Doc {
    edit(strategy, |strategy| {
        strategy.default("type", "RollingUpdate");
        if strategy.text("type") != "RollingUpdate" {
            return;
        }
        strategy.default("rollingUpdate", Doc::empty_object());
        strategy.inside("rollingUpdate", |rolling| {
            edit(rolling, |rolling| {
                rolling.default("maxUnavailable", "25%");
                rolling.default("maxSurge", "25%");
            })
        });
    })
}

fn validate_strategy(strategy: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec").child("strategy");
    let rolling = strategy.at("/rollingUpdate");
    match strategy.str_at("/type") {
        "Recreate" => {
            if !rolling.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&path.child("rollingUpdate"), detail);
            }
        }
        "RollingUpdate" => validate_rolling(rolling, &path.child("rollingUpdate"), errors),
        "" => {}
        sort => {
            let shown = show_strategy(sort);
            errors.not_supported_raw(&path, shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// A strategy as messages show it, of a type that nobody knows.
fn show_strategy(sort: &str) -> String {
    let sort = windlass_core::quote(sort);
    format!("{{\"Type\":{sort},\"RollingUpdate\":null}}")
}

fn validate_daemon_strategy(strategy: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec").child("updateStrategy");
    match strategy.str_at("/type") {
        "" | "OnDelete" => {}
        "RollingUpdate" => {
            let (rolling, path) = (strategy.at("/rollingUpdate"), path.child("rollingUpdate"));
            for key in ["maxUnavailable", "maxSurge"] {
                int_or_percent(rolling, key, &path, errors);
            }
            if is_zero(rolling, "maxUnavailable") && is_zero(rolling, "maxSurge") {
                let detail = "cannot be 0 when maxSurge is 0";
                errors.required(&path.child("maxUnavailable"), detail);
            }
        }
        sort => {
            let shown = show_strategy(sort);
            errors.not_supported_raw(&path, shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

/// Whether a field is nothing of what there is; what is no percentage counts for nothing.
fn is_zero(object: &Doc, key: &str) -> bool {
    let value = object.get(key).and_then(pod_spec::int_or_percent);
    value.is_some_and(|value| value.scaled_up(100).unwrap_or(0) == 0)
}

fn validate_rolling(rolling: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let unavailable = int_or_percent(rolling, "maxUnavailable", path, errors);
    int_or_percent(rolling, "maxSurge", path, errors);
    if is_zero(rolling, "maxUnavailable") && is_zero(rolling, "maxSurge") {
        let value = rolling.at("/maxUnavailable");
        errors.invalid(
            &path.child("maxUnavailable"),
            value,
            "may not be 0 when `maxSurge` is 0",
        );
    }
    if unavailable.as_ref().is_some_and(is_above_all) {
        let value = rolling.at("/maxUnavailable");
        errors.invalid(
            &path.child("maxUnavailable"),
            value,
            "must not be greater than 100%",
        );
    }
}

/// Whether a value is a percentage of more than there is.
pub(super) fn is_above_all(value: &IntOrString) -> bool {
    match value {
        IntOrString::String(_) => value.scaled_up(100).is_ok_and(|scaled| scaled > 100),
        IntOrString::Int(_) => false,
    }
}

/// A number or a percentage in a field, unless it is absent or wrong.
pub(super) fn int_or_percent(
    object: &Doc,
    key: &str,
    path: &FieldPath,
    errors: &mut FieldErrors,
) -> Option<IntOrString> {
    let value = object.get(key)?;
    let parsed = pod_spec::int_or_percent(value);
    let scaled = parsed.as_ref().map(|parsed| parsed.scaled_up(100));
    let is_signed = value
        .as_str()
        .is_some_and(|text| text.starts_with(['-', '+']));
    match scaled {
        Some(Ok(scaled)) if scaled < 0 && !is_signed => {
            errors.invalid(
                &path.child(key),
                value,
                "must be greater than or equal to 0",
            );
        }
        Some(Ok(_)) if !is_signed => return parsed,
        _ => {
            let detail = "a valid percent string must be a numeric string followed by an ending \
                          '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.invalid(&path.child(key), value, detail);
        }
    }
    None
}

impl Hooks for ReplicaSets {
    fn initial_status(&self) -> Doc {
        doc!({ "replicas": 0 })
    }

    fn default(&self, object: Doc) -> Doc {
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("replicas", 1);
                    pod_spec::default_template(spec);
                })
            });
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        // Upstream speaks of deployments here too.
        workload::validate(object, "Deployment", errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        workload::selector_is_immutable(new, old, errors);
    }

    fn validate_status(&self, new: &Doc, _old: &Doc, errors: &mut FieldErrors) {
        let counts = [
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ];
        let bounds = [
            ("fullyLabeledReplicas", "replicas"),
            ("readyReplicas", "replicas"),
            ("availableReplicas", "replicas"),
            ("availableReplicas", "readyReplicas"),
        ];
        workload::validate_counts(new, &counts, &bounds, errors);
    }
}

impl Hooks for ReplicationControllers {
    fn initial_status(&self) -> Doc {
        doc!({ "replicas": 0 })
    }

    fn default(&self, object: Doc) -> Doc {
        let labels = object.at("/spec/template/metadata/labels").clone();
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("replicas", 1);
                    pod_spec::default_template(spec);
                    if !spec.has("selector") && !labels.is_null() {
                        spec.set("selector", labels.clone());
                    }
                })
            });
            object.inside("metadata", |metadata| {
                edit(metadata, |metadata| {
                    if !metadata.has("labels") && !labels.is_null() {
                        metadata.set("labels", labels.clone());
                    }
                })
            });
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        // The plain map of labels is checked as the structured selector it stands for.
        let structured = doc!({ "matchLabels": (object.at("/spec/selector")) });
        let as_set = put(object.clone(), "/spec/selector", structured);
        workload::validate(&as_set, "ReplicationController", errors);
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        ReplicaSets.validate_status(new, old, errors);
    }
}

impl Hooks for StatefulSets {
    fn initial_status(&self) -> Doc {
        doc!({ "replicas": 0, "availableReplicas": 0 })
    }

    fn default(&self, object: Doc) -> Doc {
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("replicas", 1);
                    spec.default("revisionHistoryLimit", 10);
                    spec.default("podManagementPolicy", "OrderedReady");
                    spec.default("updateStrategy", Doc::empty_object());
                    spec.inside("updateStrategy", |strategy| {
                        edit(strategy, |strategy| {
                            strategy.default("type", "RollingUpdate");
                            if strategy.text("type") == "RollingUpdate" {
                                strategy.default("rollingUpdate", Doc::empty_object());
                                strategy.inside("rollingUpdate", |rolling| {
                                    edit(rolling, |rolling| rolling.default("partition", 0))
                                });
                            }
                        })
                    });
                    let retain = doc!({ "whenDeleted": "Retain", "whenScaled": "Retain" });
                    spec.default("persistentVolumeClaimRetentionPolicy", retain);
                    spec.each("volumeClaimTemplates", default_claim_template);
                    pod_spec::default_template(spec);
                })
            });
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (object.at("/spec"), FieldPath::new("spec"));
        let policy = spec.str_at("/podManagementPolicy");
        if !matches!(policy, "" | "OrderedReady" | "Parallel") {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.invalid(&path.child("podManagementPolicy"), policy, detail);
        }
        let strategy = spec.str_at("/updateStrategy/type");
        if !matches!(strategy, "" | "RollingUpdate" | "OnDelete") {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let shown = show_strategy(strategy);
            errors.invalid_shown(&path.child("updateStrategy"), shown, detail);
        }
        not_negative(object, "/spec/replicas", errors);
        not_negative(object, "/spec/minReadySeconds", errors);
        workload::validate_pods(object, "StatefulSet", errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        const MUTABLE: &[&str] = &[
            "minReadySeconds",
            "ordinals",
            "persistentVolumeClaimRetentionPolicy",
            "replicas",
            "revisionHistoryLimit",
            "template",
            "updateStrategy",
        ];
        let frozen = |object: &Doc| {
            edit(object.at("/spec"), |spec| {
                MUTABLE.iter().for_each(|key| spec.remove(key))
            })
        };
        if frozen(new) != frozen(old) {
            let detail = "updates to statefulset spec for fields other than 'replicas', \
                          'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                          'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
                          forbidden";
            errors.forbidden(&path_of("/spec"), detail);
        }
    }
}

/// The claim that each pod of a set gets, which says what it is.
fn default_claim_template(claim: &Doc) -> Doc {
    let claim = super::storage::default_claim(claim);
    edit(&claim, |claim| {
        claim.default("apiVersion", "v1");
        claim.default("kind", "PersistentVolumeClaim");
        claim.default("status", doc!({ "phase": "Pending" }));
    })
}

/// A daemon set whose annotation counts its templates.
fn with_template_generation(set: Doc, generation: i64) -> Doc {
    put(set, TEMPLATE_GENERATION, generation.to_string())
}

fn template_generation(set: &Doc) -> i64 {
    set.str_at(TEMPLATE_GENERATION).parse().unwrap_or(0)
}

impl Hooks for DaemonSets {
    fn prepare_create(&self, set: Doc, _env: &Env) -> Doc {
        let generation = template_generation(&set).max(1);
        with_template_generation(set, generation)
    }

    fn prepare_update(&self, new: Doc, old: &Doc) -> Doc {
        let is_new = new.at("/spec/template") != old.at("/spec/template");
        let generation = template_generation(old) + i64::from(is_new);
        with_template_generation(new, generation)
    }

    fn initial_status(&self) -> Doc {
        doc!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0,
            "numberReady": 0
        })
    }

    fn default(&self, object: Doc) -> Doc {
        let generation = template_generation(&object);
        let object = with_template_generation(object, generation);
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("revisionHistoryLimit", 10);
                    spec.default("updateStrategy", Doc::empty_object());
                    spec.inside("updateStrategy", |strategy| {
                        edit(strategy, |strategy| {
                            strategy.default("type", "RollingUpdate");
                            if strategy.text("type") == "RollingUpdate" {
                                strategy.default("rollingUpdate", Doc::empty_object());
                                strategy.inside("rollingUpdate", |rolling| {
                                    edit(rolling, |rolling| {
                                        rolling.default("maxUnavailable", 1);
                                        rolling.default("maxSurge", 0);
                                    })
                                });
                            }
                        })
                    });
                    pod_spec::default_template(spec);
                })
            });
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        workload::validate_pods(object, "DaemonSet", errors);
        not_negative(object, "/spec/minReadySeconds", errors);
        validate_daemon_strategy(object.at("/spec/updateStrategy"), errors);
        not_negative(object, "/spec/revisionHistoryLimit", errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        workload::selector_is_immutable(new, old, errors);
    }
}
