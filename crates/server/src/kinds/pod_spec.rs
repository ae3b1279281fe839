//! Defaults and validation of pod specs, in pods and in templates alike.
//!
//! Templates of deployments and of replica sets must get the same defaults, or their comparison
//! fails and deployments roll for ever.

use std::cell::RefCell;

use windlass_core::{Doc, IntOrString, Memo, Quantity, names};

use super::fields::{Fields, edit};
use crate::field::{FieldErrors, FieldPath};

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Where a volume can come from, in the order in which upstream looks.
const VOLUME_SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "downwardAPI",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "portworxVolume",
    "csi",
    "ephemeral",
    "image",
];
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

/// Finds what is wrong with a pod spec.
pub(super) fn validate_spec(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if spec.as_object().is_none() {
        return errors.required(&path.child("containers"), "");
    }
    let volumes = validate_volumes(spec.at("/volumes"), &path.child("volumes"), errors);
    if spec.at("/containers").items().is_empty() {
        errors.required(&path.child("containers"), "");
    }
    let mut seen = Vec::new();
    for list in CONTAINER_LISTS {
        let items = spec.get(list).map(Doc::items).unwrap_or_default();
        for (index, container) in items.iter().enumerate() {
            let path = path.child(list).index(index);
            let name = container.str_at("/name");
            if seen.contains(&name) && !name.is_empty() {
                errors.duplicate(&path.child("name"), name);
            }
            seen.push(name);
            validate_container(container, &volumes, &path, errors);
        }
    }
    validate_scalars(spec, path, errors);
    super::pod_terms::validate_affinity(spec, path, errors);
    super::pod_terms::validate_spread(spec, path, errors);
    validate_claims(spec, path, errors);
}

/// Finds what is wrong with the single values of a pod spec.
fn validate_scalars(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    one_of(spec, "restartPolicy", RESTART_POLICIES, path, errors);
    one_of(spec, "dnsPolicy", DNS_POLICIES, path, errors);
    for key in ["terminationGracePeriodSeconds"] {
        if let Some(value) = spec
            .get(key)
            .and_then(Doc::as_i64)
            .filter(|value| *value < 0)
        {
            errors.invalid(
                &path.child(key),
                value,
                "must be greater than or equal to 0",
            );
        }
    }
    if let Some(value) = spec.get("activeDeadlineSeconds").and_then(Doc::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&value)
    {
        let detail = format!("must be between 1 and {}, inclusive", i32::MAX);
        errors.invalid(&path.child("activeDeadlineSeconds"), value, detail);
    }
    for (key, check) in [
        (
            "serviceAccountName",
            names::dns1123_subdomain as fn(&str) -> Vec<String>,
        ),
        ("nodeName", names::dns1123_subdomain),
    ] {
        let value = spec.get(key).and_then(Doc::as_str).unwrap_or_default();
        if !value.is_empty() {
            errors.invalid_each(&path.child(key), value, check(value));
        }
    }
    crate::rest::validate_labels(
        &path.child("nodeSelector"),
        spec.at("/nodeSelector"),
        errors,
    );
}

/// Finds what is wrong with the template of a workload whose pods restart by a policy.
pub(super) fn validate_template(template: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if VALID.with_borrow(|known| known.get(template)).is_some() {
        return;
    }
    let mut found = FieldErrors::default();
    let labels = path.child("metadata").child("labels");
    crate::rest::validate_labels(&labels, template.at("/metadata/labels"), &mut found);
    super::pod_annotations::validate(template, &path.child("annotations"), &mut found);
    validate_spec(template.at("/spec"), &path.child("spec"), &mut found);
    if found.is_empty() {
        VALID.with_borrow_mut(|known| known.put(template.clone(), ()));
    }
    errors.append(found);
}

fn validate_volumes<'a>(
    volumes: &'a Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for (index, volume) in volumes.items().iter().enumerate() {
        validate_source(volume, &path.index(index), errors);
        let path = path.index(index).child("name");
        match volume.str_at("/name") {
            "" => errors.required(&path, ""),
            name if seen.contains(&name) => errors.duplicate(&path, name),
            name => {
                errors.invalid_each(&path, name, names::dns1123_label(name));
                seen.push(name);
            }
        }
    }
    seen
}

/// Finds a volume that comes from several places.
fn validate_source(volume: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let given = |source: &&&str| volume.get(source).is_some_and(|found| !found.is_null());
    for source in VOLUME_SOURCES.iter().filter(given).skip(1) {
        let detail = "may not specify more than 1 volume type";
        errors.forbidden(&path.child(source), detail);
    }
}

fn validate_container(
    container: &Doc,
    volumes: &[&str],
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    match container.str_at("/name") {
        "" => errors.required(&path.child("name"), ""),
        name => errors.invalid_each(&path.child("name"), name, names::dns1123_label(name)),
    }
    let image = container.str_at("/image");
    if image.is_empty() {
        errors.required(&path.child("image"), "");
    } else if image.trim() != image {
        errors.invalid(
            &path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        );
    }
    validate_ports(container.at("/ports"), &path.child("ports"), errors);
    validate_env(container.at("/env"), &path.child("env"), errors);
    validate_mounts(
        container.at("/volumeMounts"),
        volumes,
        &path.child("volumeMounts"),
        errors,
    );
    one_of(container, "imagePullPolicy", PULL_POLICIES, path, errors);
    validate_resources(container.at("/resources"), &path.child("resources"), errors);
    one_of(
        container,
        "terminationMessagePolicy",
        &["FallbackToLogsOnError", "File"],
        path,
        errors,
    );
}

fn validate_ports(ports: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = Vec::new();
    for (index, port) in ports.items().iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at("/name");
        if !name.is_empty() {
            if seen.contains(&name) {
                errors.duplicate(&path.child("name"), name);
            }
            seen.push(name);
            port_name(name, &path.child("name"), errors);
        }
        match port.at("/containerPort").as_i64() {
            None | Some(0) => errors.required(&path.child("containerPort"), ""),
            Some(number) => port_number(number, &path.child("containerPort"), errors),
        }
        if let Some(number) = port.at("/hostPort").as_i64().filter(|number| *number != 0) {
            port_number(number, &path.child("hostPort"), errors);
        }
        match port.str_at("/protocol") {
            "" => errors.required(&path.child("protocol"), ""),
            _ => one_of(port, "protocol", PROTOCOLS, &path, errors),
        }
    }
}

/// Finds what is wrong with the number of a port.
pub(super) fn port_number(number: i64, path: &FieldPath, errors: &mut FieldErrors) {
    if !(1..=65535).contains(&number) {
        errors.invalid(path, number, "must be between 1 and 65535, inclusive");
    }
}

/// Finds what is wrong with the name of a port.
pub(super) fn port_name(name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if name.len() > 15 {
        errors.invalid(path, name, "must be no more than 15 characters");
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        let detail = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        errors.invalid(path, name, detail);
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        errors.invalid(path, name, "must contain at least one letter (a-z)");
    }
}

fn validate_env(env: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, variable) in env.items().iter().enumerate() {
        let path = path.index(index);
        let name = variable.str_at("/name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if name.contains('=') || name.contains(|c: char| !c.is_ascii() || c.is_control()) {
            let detail = "a valid environment variable name must consist only of printable ASCII \
                          characters other than '='";
            errors.invalid(&path.child("name"), name, detail);
        }
        if !variable.str_at("/value").is_empty() && !variable.at("/valueFrom").is_null() {
            errors.invalid(
                &path.child("valueFrom"),
                "",
                "may not be specified when `value` is not empty",
            );
        }
    }
}

fn validate_mounts(mounts: &Doc, volumes: &[&str], path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = Vec::new();
    for (index, mount) in mounts.items().iter().enumerate() {
        let path = path.index(index);
        let (name, place) = (mount.str_at("/name"), mount.str_at("/mountPath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if !volumes.contains(&name) {
            errors.not_found(&path.child("name"), name);
        }
        if place.is_empty() {
            errors.required(&path.child("mountPath"), "");
        } else if seen.contains(&place) {
            errors.invalid(&path.child("mountPath"), place, "must be unique");
        }
        seen.push(place);
    }
}

fn validate_resources(resources: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let limits = resources.at("/limits");
    for key in ["limits", "requests"] {
        let list = resources.get(key).and_then(Doc::as_object);
        for (name, value) in list.into_iter().flat_map(|list| list.iter()) {
            let list = path.child(key);
            let path = list.key(name);
            match quantity(value) {
                None => errors.invalid(&path, value, "must be a quantity"),
                Some(amount) if amount.is_negative() => {
                    errors.invalid(&path, value, "must be greater than or equal to 0");
                }
                Some(amount) if key == "requests" => {
                    let limit = limits.get(name).and_then(quantity);
                    if let Some(limit) = limit.filter(|limit| amount > *limit) {
                        let detail =
                            format!("must be less than or equal to {name} limit of {limit}");
                        errors.invalid(&list, value, detail);
                    }
                }
                Some(_) => {}
            }
        }
    }
}

/// A quantity, written as a text or as a number.
fn quantity(value: &Doc) -> Option<Quantity> {
    match value.as_str() {
        Some(text) => text.parse().ok(),
        None => value.to_string().parse().ok(),
    }
}

fn validate_claims(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    super::device::validate_uses(spec, path, errors);
    let path = path.child("resourceClaims");
    let mut seen = Vec::new();
    for (index, claim) in spec.at("/resourceClaims").items().iter().enumerate() {
        let path = path.index(index);
        match claim.str_at("/name") {
            "" => errors.required(&path.child("name"), ""),
            name if seen.contains(&name) => errors.duplicate(&path.child("name"), name),
            name => seen.push(name),
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = sources
            .iter()
            .filter(|key| claim.get(key).is_some())
            .count();
        if given != 1 {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.invalid(&path, claim, detail);
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
