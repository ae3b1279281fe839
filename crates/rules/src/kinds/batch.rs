//! Jobs and cron jobs.

use windlass_core::{Doc, Env, Object, doc};

use super::pod_spec;
use crate::edit::put;
use crate::edit::{Fields, edit, not_negative};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of jobs.
#[derive(Debug)]
pub struct Jobs;

/// Hooks of cron jobs.
#[derive(Debug)]
pub struct CronJobs;

/// A cron job's name, with what is added to make those of its jobs, must stay within 63 bytes.
const CRON_NAME_BYTES_MAX: usize = 52;

fn default_job_spec(spec: &mut Fields) {
    if !spec.has("completions") && !spec.has("parallelism") {
        spec.set("completions", 1);
    }
    if !spec.has("parallelism") {
        spec.set("parallelism", 1);
    }
    let limit = if spec.has("backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    spec.default("backoffLimit", limit);
    spec.default("completionMode", "NonIndexed");
    spec.default("suspend", false);
    let policy = if spec.has("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    spec.default("podReplacementPolicy", policy);
    spec.default("manualSelector", false);
    spec.inside("podFailurePolicy", |policy| {
        edit(policy, default_failure_policy)
    });
    pod_spec::default_template(spec);
}

/// A pattern of a pod's condition means one that is true.
fn default_failure_policy(policy: &mut Fields) {
    policy.each("rules", |rule| {
        edit(rule, |rule| {
            rule.each("onPodConditions", |pattern| {
                edit(pattern, |pattern| pattern.default("status", "True"))
            });
        })
    });
}

impl Hooks for Jobs {
    fn default(&self, object: Doc) -> Doc {
        edit(&object, |object| {
            object.inside("spec", |spec| edit(spec, default_job_spec))
        })
    }

    fn prepare_create(&self, object: Doc, _env: &Env) -> Doc {
        if *object.at("/spec/manualSelector") == true {
            return object;
        }
        let (uid, name) = (
            object.meta().uid_str().to_owned(),
            object.meta().name().to_owned(),
        );
        let labels = object
            .at("/spec/template/metadata/labels")
            .as_object()
            .cloned();
        let labels = labels
            .unwrap_or_else(Object::empty)
            .with("batch.kubernetes.io/controller-uid", uid.as_str().into())
            .with("batch.kubernetes.io/job-name", name.as_str().into())
            .with("controller-uid", uid.as_str().into())
            .with("job-name", name.as_str().into());
        let object = match object.at("/metadata/labels") {
            known if known.is_null() => put(object.clone(), "/metadata/labels", labels.clone()),
            _ => object,
        };
        let object = put(object, "/spec/template/metadata/labels", labels);
        let selector = doc!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
        put(object, "/spec/selector", selector)
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        for key in [
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        ] {
            not_negative(object, &format!("/spec/{key}"), errors);
        }
        validate_job_template(object.at("/spec/template"), &FieldPath::new("spec"), errors);
        let path = FieldPath::new("spec");
        let modes = ["NonIndexed", "Indexed"];
        pod_spec::one_of(object.at("/spec"), "completionMode", &modes, &path, errors);
    }

    fn delete_warnings(&self) -> Vec<String> {
        let text = "child pods are preserved by default when jobs are deleted; set \
                    propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                    suppress this warning";
        vec![text.to_owned()]
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        let keys = [
            "selector",
            "completionMode",
            "podFailurePolicy",
            "successPolicy",
            "managedBy",
            "backoffLimitPerIndex",
        ];
        for key in keys {
            let pointer = format!("/spec/{key}");
            errors.immutable(&path.child(key), new.at(&pointer), old.at(&pointer));
        }
        // An indexed job grows and shrinks as a whole.
        let is_elastic = new.str_at("/spec/completionMode") == "Indexed"
            && new.at("/spec/completions") == new.at("/spec/parallelism");
        if !is_elastic {
            let (new, old) = (new.at("/spec/completions"), old.at("/spec/completions"));
            errors.immutable(&path.child("completions"), new, old);
        }
        let is_idle = *old.at("/spec/suspend") == true && old.at("/status/startTime").is_null();
        if !is_idle {
            let (new, old) = (new.at("/spec/template"), old.at("/spec/template"));
            errors.immutable(&path.child("template"), new, old);
        }
    }
}

fn validate_job_template(template: &Doc, spec: &FieldPath, errors: &mut FieldErrors) {
    let path = spec.child("template");
    pod_spec::validate_template(template, &path, errors);
    let policy = template.str_at("/spec/restartPolicy");
    let path = path.child("spec").child("restartPolicy");
    match policy {
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.required(&path, "valid values: \"OnFailure\", \"Never\""),
        other => errors.not_supported(&path, other, &["OnFailure", "Never"]),
    }
}

impl Hooks for CronJobs {
    fn default(&self, object: Doc) -> Doc {
        edit(&object, |object| {
            object.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.default("concurrencyPolicy", "Allow");
                    spec.default("suspend", false);
                    spec.default("successfulJobsHistoryLimit", 3);
                    spec.default("failedJobsHistoryLimit", 1);
                    spec.inside("jobTemplate", |template| {
                        edit(template, |template| {
                            template.inside("spec", |spec| edit(spec, pod_spec::default_template));
                        })
                    });
                })
            });
        })
    }

    fn validate(&self, object: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        let schedule = object.str_at("/spec/schedule");
        if schedule.is_empty() {
            errors.required(&path.child("schedule"), "");
        } else if !is_schedule(schedule) {
            let found = schedule.split_whitespace().count();
            let detail = format!("expected exactly 5 fields, found {found}: [{schedule}]");
            errors.invalid(&path.child("schedule"), schedule, detail);
        }
        if object.meta().name().len() > CRON_NAME_BYTES_MAX {
            let detail = format!("must be no more than {CRON_NAME_BYTES_MAX} characters");
            errors.invalid(
                &FieldPath::new("metadata").child("name"),
                object.meta().name(),
                detail,
            );
        }
        let policies = ["Allow", "Forbid", "Replace"];
        pod_spec::one_of(
            object.at("/spec"),
            "concurrencyPolicy",
            &policies,
            &path,
            errors,
        );
        let template = object.at("/spec/jobTemplate/spec/template");
        let path = path.child("jobTemplate").child("spec");
        validate_job_template(template, &path, errors);
    }
}

/// Whether a text can be a schedule: five fields, or one of the known words.
fn is_schedule(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if text.starts_with('@') {
        return WORDS.contains(&text) || text.starts_with("@every ");
    }
    let is_field = |field: &str| {
        field
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"*/,-?".contains(&b))
    };
    text.split_whitespace().count() == 5 && text.split_whitespace().all(is_field)
}
