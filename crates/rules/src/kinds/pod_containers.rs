//! What is wrong with the containers of a pod.

use std::collections::{BTreeSet, HashSet};

use windlass_core::{Doc, names};

use super::pod_spec::one_of;
use super::{device, pod_env, pod_probes, pod_resources, pod_security};
use crate::field::{FieldErrors, FieldPath};

const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const MESSAGE_POLICIES: &[&str] = &["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const RECURSIONS: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// What the checks of one container need of its pod.
#[derive(Clone, Copy)]
struct Pod<'a> {
    spec: &'a Doc,
    /// The names of volumes that are fine.
    volumes: &'a HashSet<&'a str>,
    /// The names of its claims.
    claims: &'a BTreeSet<&'a str>,
}

/// Finds what is wrong with all containers of a pod, and between them.
pub(super) fn validate(
    spec: &Doc,
    volumes: &HashSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let claims = spec.at("/resourceClaims").items().iter();
    let claims = claims.map(|claim| claim.str_at("/name")).collect();
    let pod = Pod {
        spec,
        volumes,
        claims: &claims,
    };
    let mut seen = HashSet::new();
    if spec.at("/containers").items().is_empty() {
        errors.required(&path.child("containers"), "");
    }
    for (index, container) in spec.at("/containers").items().iter().enumerate() {
        // More errors are not told, so that more containers need not be looked at.
        if errors.is_full() {
            return;
        }
        let path = path.child("containers").index(index);
        validate_common(container, pod, &path, errors);
        find_duplicate(container, &mut seen, &path, errors);
        pod_probes::validate(container, spec, &path, errors);
        one_of(container, "restartPolicy", RESTART_POLICIES, &path, errors);
    }
    let containers = spec.at("/containers").items();
    find_host_port_conflicts(containers, &path.child("containers"), errors);
    for (index, container) in spec.at("/initContainers").items().iter().enumerate() {
        if errors.is_full() {
            return;
        }
        let list = path.child("initContainers");
        let path = list.index(index);
        validate_common(container, pod, &path, errors);
        one_of(container, "restartPolicy", RESTART_POLICIES, &path, errors);
        find_duplicate(container, &mut seen, &path, errors);
        find_host_port_conflicts(std::slice::from_ref(container), &list, errors);
        match container.str_at("/restartPolicy") {
            "Always" => pod_probes::validate(container, spec, &path, errors),
            _ => pod_probes::refuse(container, &path, errors),
        }
    }
    for (index, container) in spec.at("/ephemeralContainers").items().iter().enumerate() {
        let path = path.child("ephemeralContainers").index(index);
        validate_common(container, pod, &path, errors);
        validate_image_ends(container, &path, errors);
        find_duplicate(container, &mut seen, &path, errors);
    }
    validate_host_ports(spec, path, errors);
}

/// Finds images with space around their names, which templates may have.
pub(super) fn validate_images(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for list in ["containers", "initContainers"] {
        let containers = spec.get(list).map(Doc::items).unwrap_or_default();
        for (index, container) in containers.iter().enumerate() {
            validate_image_ends(container, &path.child(list).index(index), errors);
        }
    }
}

fn validate_image_ends(container: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let image = container.str_at("/image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&path.child("image"), image, detail);
    }
}

fn find_duplicate<'a>(
    container: &'a Doc,
    seen: &mut HashSet<&'a str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let name = container.str_at("/name");
    if seen.contains(&name) && !name.is_empty() {
        errors.duplicate(&path.child("name"), name);
    }
    seen.insert(name);
}

fn validate_common(container: &Doc, pod: Pod<'_>, path: &FieldPath, errors: &mut FieldErrors) {
    match container.str_at("/name") {
        "" => errors.required(&path.child("name"), ""),
        name => errors.invalid_each(&path.child("name"), name, names::dns1123_label(name)),
    }
    if container.str_at("/image").is_empty() {
        errors.required(&path.child("image"), "");
    }
    one_of(
        container,
        "terminationMessagePolicy",
        MESSAGE_POLICIES,
        path,
        errors,
    );
    validate_ports(container.at("/ports"), &path.child("ports"), errors);
    pod_env::validate(container, path, errors);
    validate_mounts(container, pod.volumes, path, errors);
    validate_devices(container, pod.volumes, path, errors);
    one_of(container, "imagePullPolicy", PULL_POLICIES, path, errors);
    let resources = path.child("resources");
    pod_resources::validate(container.at("/resources"), &resources, errors);
    device::validate_uses(container, pod.claims, &resources.child("claims"), errors);
    pod_resources::validate_resizing(container, pod.spec, path, errors);
    pod_security::validate_container(container, pod.spec, path, errors);
}

fn validate_ports(ports: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (index, port) in ports.items().iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at("/name");
        if !name.is_empty() {
            let known = errors.len();
            port_name(name, &path.child("name"), errors);
            if errors.len() == known && seen.contains(&name) {
                errors.duplicate(&path.child("name"), name);
            }
            seen.insert(name);
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

/// Finds ports of the node that several ports of containers would get.
fn find_host_port_conflicts(containers: &[Doc], path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index).child("ports");
        for (index, port) in container.at("/ports").items().iter().enumerate() {
            let Some(number) = port.at("/hostPort").as_i64().filter(|number| *number != 0) else {
                continue;
            };
            let (protocol, address) = (port.str_at("/protocol"), port.str_at("/hostIP"));
            let taken = format!("{protocol}/{address}/{number}");
            if seen.contains(&taken) {
                errors.duplicate(&path.index(index).child("hostPort"), taken);
            } else {
                seen.insert(taken);
            }
        }
    }
}

/// In the network of the node a port is the node's.
fn validate_host_ports(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if spec.at("/hostNetwork").as_bool() != Some(true) {
        return;
    }
    for (index, container) in spec.at("/containers").items().iter().enumerate() {
        let path = path.child("containers").index(index).child("ports");
        for (index, port) in container.at("/ports").items().iter().enumerate() {
            let number = |pointer: &str| port.at(pointer).as_i64().unwrap_or(0);
            let host = number("/hostPort");
            if host != 0 && host != number("/containerPort") {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&path.index(index).child("hostPort"), host, detail);
            }
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
    if name.contains("--") {
        errors.invalid(path, name, "must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        errors.invalid(path, name, "must not begin or end with a hyphen");
    }
}

fn validate_mounts(
    container: &Doc,
    volumes: &HashSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let list = path.child("volumeMounts");
    let devices = |key| {
        let devices = container.at("/volumeDevices").items().iter();
        devices.map(|device| device.str_at(key)).collect()
    };
    let (names, places): (HashSet<&str>, HashSet<&str>) =
        (devices("/name"), devices("/devicePath"));
    let mut seen = HashSet::new();
    for (index, mount) in container.at("/volumeMounts").items().iter().enumerate() {
        let path = list.index(index);
        let (name, place) = (mount.str_at("/name"), mount.str_at("/mountPath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !volumes.contains(&name) {
            errors.not_found(&path.child("name"), name);
        }
        if place.is_empty() {
            errors.required(&path.child("mountPath"), "");
        }
        if seen.contains(&place) {
            errors.invalid(&path.child("mountPath"), place, "must be unique");
        }
        seen.insert(place);
        if names.contains(name) {
            let detail = "must not already exist in volumeDevices";
            errors.invalid(&path.child("name"), name, detail);
        }
        if places.contains(place) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&path.child("mountPath"), place, detail);
        }
        validate_sub_paths(mount, &list, &path, errors);
        validate_propagation(mount, container, &list, errors);
    }
}

/// Upstream names the list in some of these, and the item in others.
fn validate_sub_paths(mount: &Doc, list: &FieldPath, path: &FieldPath, errors: &mut FieldErrors) {
    let (plain, expanded) = (mount.str_at("/subPath"), mount.str_at("/subPathExpr"));
    pod_security::validate_relative(plain, &list.child("subPath"), errors);
    if !plain.is_empty() && !expanded.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.invalid(&path.child("subPathExpr"), expanded, detail);
    }
    pod_security::validate_relative(expanded, &list.child("subPathExpr"), errors);
}

fn validate_propagation(mount: &Doc, container: &Doc, list: &FieldPath, errors: &mut FieldErrors) {
    one_of(mount, "mountPropagation", PROPAGATIONS, list, errors);
    let propagation = mount.str_at("/mountPropagation");
    let is_privileged = container.at("/securityContext/privileged").as_bool() == Some(true);
    if propagation == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(&list.child("mountPropagation"), detail);
    }
    one_of(mount, "recursiveReadOnly", RECURSIONS, list, errors);
    if matches!(mount.str_at("/recursiveReadOnly"), "Enabled" | "IfPossible") {
        let path = list.child("recursiveReadOnly");
        if mount.at("/readOnly").as_bool() != Some(true) {
            errors.forbidden(&path, "may only be specified when readOnly is true");
        }
        if !matches!(propagation, "" | "None") {
            let detail = "may only be specified when mountPropagation is None or not specified";
            errors.forbidden(&path, detail);
        }
    }
}

fn validate_devices(
    container: &Doc,
    volumes: &HashSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let mut seen = HashSet::new();
    for (index, device) in container.at("/volumeDevices").items().iter().enumerate() {
        let path = path.child("volumeDevices").index(index);
        let (name, place) = (device.str_at("/name"), device.str_at("/devicePath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !volumes.contains(&name) {
            errors.not_found(&path.child("name"), name);
        }
        if place.is_empty() {
            errors.required(&path.child("devicePath"), "");
        }
        if seen.contains(&place) {
            errors.invalid(&path.child("devicePath"), place, "must be unique");
        }
        if place.split('/').any(|step| step == "..") {
            let detail = "can not contain backsteps ('..')";
            errors.invalid(&path.child("devicePath"), place, detail);
        } else {
            seen.insert(place);
        }
    }
}
