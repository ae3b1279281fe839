//! Defaults and validation of pod specs, in pods and in templates alike.
//!
//! Templates of deployments and of replica sets must get the same defaults, or their comparison
//! fails and deployments roll for ever.

use std::cell::RefCell;
use std::collections::HashSet;

use windlass_core::{Doc, IntOrString, Memo, names};

use super::{
    pod_annotations, pod_containers, pod_network, pod_nodes, pod_security, pod_terms, pod_volumes,
};
use crate::edit::{Fields, edit};
use crate::field::{FieldErrors, FieldPath};

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const SYSTEMS: &[&str] = &["linux", "windows"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
/// The mode of files in volumes that do not say: 0644.
const FILE_MODE: i64 = 0o644;
/// Templates that a thread remembers.
const TEMPLATES_LIMIT: usize = 4096;

thread_local! {
    /// The specs of templates with their defaults, by what they were before: a workload is written
    /// again and again, and its template seldom changes.
    static DEFAULTED: RefCell<Memo<Doc, Doc>> = RefCell::new(Memo::new(TEMPLATES_LIMIT));
    /// Templates that are valid.
    static VALID: RefCell<Memo<Doc, ()>> = RefCell::new(Memo::new(TEMPLATES_LIMIT));
}

/// A pod spec with its defaults.
pub(super) fn default_spec(spec: &Doc) -> Doc {
    edit(spec, |spec| {
        spec.default("restartPolicy", "Always");
        spec.default("dnsPolicy", "ClusterFirst");
        spec.default("terminationGracePeriodSeconds", 30);
        spec.default("securityContext", Doc::empty_object());
        spec.default("schedulerName", "default-scheduler");
        // Both names of the account are served; the old one follows the new one.
        if spec.has("serviceAccountName") {
            let account = spec.text("serviceAccountName").to_owned();
            spec.set("serviceAccount", account);
        } else if spec.has("serviceAccount") {
            let account = spec.text("serviceAccount").to_owned();
            spec.set("serviceAccountName", account);
        }
        for list in CONTAINER_LISTS {
            spec.each(list, default_container);
        }
        spec.each("volumes", default_volume);
    })
}

/// The template of a workload with its defaults.
pub(super) fn default_template(spec: &mut Fields) {
    spec.inside("template", |template| {
        edit(template, |template| {
            template.inside("spec", known_default_spec);
        })
    });
}

/// The spec of a template with its defaults, worked out only if it is new.
fn known_default_spec(spec: &Doc) -> Doc {
    if let Some(known) = DEFAULTED.with_borrow(|known| known.get(spec)) {
        return known;
    }
    let defaulted = default_spec(spec);
    DEFAULTED.with_borrow_mut(|known| known.put(spec.clone(), defaulted.clone()));
    defaulted
}

fn default_container(container: &Doc) -> Doc {
    edit(container, |container| {
        let policy = if is_latest(container.text("image")) {
            "Always"
        } else {
            "IfNotPresent"
        };
        container.default("imagePullPolicy", policy);
        container.default("terminationMessagePath", "/dev/termination-log");
        container.default("terminationMessagePolicy", "File");
        container.default("resources", Doc::empty_object());
        container.each("ports", |port| {
            edit(port, |port| port.default("protocol", "TCP"))
        });
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            container.inside(probe, default_probe);
        }
        container.inside("lifecycle", |lifecycle| {
            edit(lifecycle, |lifecycle| {
                for moment in ["postStart", "preStop"] {
                    lifecycle.inside(moment, |hook| edit(hook, default_http_get));
                }
            })
        });
        container.each("env", |variable| {
            edit(variable, |variable| {
                variable.inside("valueFrom", |source| {
                    edit(source, |source| {
                        source.inside("fieldRef", |field| {
                            edit(field, |field| field.default("apiVersion", "v1"))
                        });
                    })
                });
            })
        });
    })
}

fn default_probe(probe: &Doc) -> Doc {
    edit(probe, |probe| {
        for (key, value) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            if probe.get(key).and_then(Doc::as_i64).unwrap_or(0) == 0 {
                probe.set(key, value);
            }
        }
        default_http_get(probe);
        probe.inside("grpc", |grpc| {
            edit(grpc, |grpc| {
                if !grpc.has("service") {
                    grpc.set("service", "");
                }
            })
        });
    })
}

fn default_http_get(handler: &mut Fields) {
    handler.inside("httpGet", |get| {
        edit(get, |get| {
            get.default("path", "/");
            get.default("scheme", "HTTP");
        })
    });
}

fn default_volume(volume: &Doc) -> Doc {
    let has_source = volume
        .as_object()
        .is_some_and(|volume| volume.keys().iter().any(|key| *key != "name"));
    edit(volume, |volume| {
        if !has_source {
            volume.set("emptyDir", Doc::empty_object());
        }
        for source in ["secret", "configMap", "downwardAPI", "projected"] {
            volume.inside(source, |source| {
                edit(source, |source| source.default("defaultMode", FILE_MODE))
            });
        }
        volume.inside("hostPath", |path| {
            edit(path, |path| {
                if !path.has("type") {
                    path.set("type", "");
                }
            })
        });
        volume.inside("downwardAPI", |source| {
            edit(source, |source| source.each("items", default_file))
        });
        volume.inside("projected", |projected| {
            edit(projected, |projected| {
                projected.each("sources", default_projection)
            })
        });
    })
}

fn default_projection(source: &Doc) -> Doc {
    edit(source, |source| {
        source.inside("serviceAccountToken", |token| {
            edit(token, |token| token.default("expirationSeconds", 3600))
        });
        source.inside("downwardAPI", |inner| {
            edit(inner, |inner| inner.each("items", default_file))
        });
    })
}

fn default_file(item: &Doc) -> Doc {
    edit(item, |item| {
        item.inside("fieldRef", |field| {
            edit(field, |field| field.default("apiVersion", "v1"))
        });
    })
}

/// Whether an image is named without a tag or digest, or with the tag that moves.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Finds what is wrong with a pod spec, in the order in which upstream tells of it.
pub(super) fn validate_spec(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if spec.as_object().is_none() {
        return errors.required(&path.child("containers"), "");
    }
    let volumes = pod_volumes::validate(spec.at("/volumes"), &path.child("volumes"), errors);
    validate_claims(spec, path, errors);
    pod_containers::validate(spec, &volumes, path, errors);
    one_of(spec, "restartPolicy", RESTART_POLICIES, path, errors);
    one_of(spec, "dnsPolicy", DNS_POLICIES, path, errors);
    let selector = path.child("nodeSelector");
    crate::labels::labels(&selector, spec.at("/nodeSelector"), errors);
    pod_security::validate_pod(spec, path, errors);
    pod_nodes::validate_affinity(spec, path, errors);
    pod_terms::validate_affinity(spec, path, errors);
    pod_network::validate_dns(spec, path, errors);
    validate_gates(spec, path, errors);
    pod_terms::validate_spread(spec, path, errors);
    pod_security::validate_users(spec, path, errors);
    pod_network::validate_host_name(spec, path, errors);
    validate_scalars(spec, path, errors);
    pod_nodes::validate_tolerations(spec.at("/tolerations"), &path.child("tolerations"), errors);
    pod_network::validate_aliases(spec, path, errors);
    validate_names(
        spec,
        &["priorityClassName", "runtimeClassName"],
        path,
        errors,
    );
    validate_system(spec, path, errors);
}

/// Finds what is wrong with names and times of a pod.
fn validate_scalars(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    validate_names(spec, &["serviceAccountName", "nodeName"], path, errors);
    if let Some(value) = spec.get("activeDeadlineSeconds").and_then(Doc::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&value)
    {
        let detail = format!("must be between 1 and {}, inclusive", i32::MAX);
        errors.invalid(&path.child("activeDeadlineSeconds"), value, detail);
    }
    for key in ["hostname", "subdomain"] {
        let name = spec.get(key).and_then(Doc::as_str).unwrap_or_default();
        if !name.is_empty() {
            errors.invalid_each(&path.child(key), name, names::dns1123_label(name));
        }
    }
}

/// Finds names of other objects that no object can have.
fn validate_names(spec: &Doc, keys: &[&str], path: &FieldPath, errors: &mut FieldErrors) {
    for key in keys {
        let name = spec.get(key).and_then(Doc::as_str).unwrap_or_default();
        if !name.is_empty() {
            errors.invalid_each(&path.child(key), name, names::dns1123_subdomain(name));
        }
    }
}

/// Finds what is wrong with what a pod waits for before it is ready, or placed.
fn validate_gates(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, gate) in spec.at("/readinessGates").items().iter().enumerate() {
        let path = path
            .child("readinessGates")
            .index(index)
            .child("conditionType");
        let name = gate.str_at("/conditionType");
        errors.invalid_each(&path, name, names::qualified_name(name));
    }
    let mut seen = HashSet::new();
    for (index, gate) in spec.at("/schedulingGates").items().iter().enumerate() {
        let path = path.child("schedulingGates").index(index);
        let name = gate.str_at("/name");
        errors.invalid_each(&path, name, names::qualified_name(name));
        if seen.contains(&name) {
            errors.duplicate(&path, name);
        }
        seen.insert(name);
    }
}

/// Finds what is wrong with the operating system that a pod is made for.
fn validate_system(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let system = spec.at("/os");
    if system.is_null() {
        return;
    }
    match system.str_at("/name") {
        "" => errors.required(&path.child("os").child("name"), ""),
        name if !SYSTEMS.contains(&name) => {
            errors.not_supported(&path.child("os"), name, SYSTEMS);
        }
        _ => {}
    }
}

/// Finds what is wrong with the template of a workload whose pods restart by a policy.
pub(super) fn validate_template(template: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if VALID.with_borrow(|known| known.get(template)).is_some() {
        return;
    }
    let mut found = FieldErrors::default();
    // Upstream leaves the metadata out of these paths.
    let (labels, annotations) = (path.child("labels"), path.child("annotations"));
    crate::labels::labels(&labels, template.at("/metadata/labels"), &mut found);
    let given = template.at("/metadata/annotations");
    crate::labels::annotations(&annotations, given, &mut found);
    pod_annotations::validate(template, &annotations, &mut found);
    let (spec, path) = (template.at("/spec"), path.child("spec"));
    validate_spec(spec, &path, &mut found);
    if !spec.at("/ephemeralContainers").items().is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        found.forbidden(&path.child("ephemeralContainers"), detail);
    }
    if found.is_empty() {
        VALID.with_borrow_mut(|known| known.put(template.clone(), ()));
    }
    errors.append(found);
}

fn validate_claims(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child("resourceClaims");
    let mut seen = HashSet::new();
    for (index, claim) in spec.at("/resourceClaims").items().iter().enumerate() {
        let path = path.index(index);
        match claim.str_at("/name") {
            "" => errors.required(&path.child("name"), ""),
            name if seen.contains(&name) => errors.duplicate(&path.child("name"), name),
            name => {
                errors.invalid_each(&path.child("name"), name, names::dns1123_label(name));
                seen.insert(name);
            }
        }
        validate_claim_source(claim, &path, errors);
    }
}

/// A claim is named, or made from a template that is named.
fn validate_claim_source(claim: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let sources = ["resourceClaimName", "resourceClaimTemplateName"];
    let given = sources.map(|key| claim.get(key).and_then(Doc::as_str));
    let detail = match given {
        [Some(_), Some(_)] => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
        [None, None] => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        _ => "",
    };
    if !detail.is_empty() {
        let [by_name, by_template] = given.map(Doc::from);
        let name = Doc::from(claim.str_at("/name"));
        let shown = format!(
            "{{\"Name\":{name},\"ResourceClaimName\":{by_name},\
             \"ResourceClaimTemplateName\":{by_template}}}"
        );
        errors.invalid_shown(path, shown, detail);
    }
    for (key, name) in sources.iter().zip(given) {
        if let Some(name) = name {
            errors.invalid_each(&path.child(key), name, names::dns1123_subdomain(name));
        }
    }
}

/// Finds a value that is none of a fixed set; an empty one counts as absent.
pub(super) fn one_of(
    object: &Doc,
    key: &str,
    supported: &[&str],
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let value = object.get(key).and_then(Doc::as_str).unwrap_or_default();
    if !value.is_empty() && !supported.contains(&value) {
        errors.not_supported(&path.child(key), value, supported);
    }
}

/// A number or a percentage.
pub(super) fn int_or_percent(value: &Doc) -> Option<IntOrString> {
    value.decode::<IntOrString>().ok()
}
