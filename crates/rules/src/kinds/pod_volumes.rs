//! Where the volumes of a pod come from.

use std::collections::HashSet;

use windlass_core::{Doc, Quantity, names};

use super::pod_spec::one_of;
use super::{pod_env, pod_security};
use crate::field::{FieldErrors, FieldPath};

/// For how many seconds a token in a volume is good at least, and at most.
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

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

/// Finds what is wrong with the volumes of a pod, and tells the names of those that are fine.
pub(super) fn validate<'a>(
    volumes: &'a Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    for (index, volume) in volumes.items().iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let known = errors.len();
        validate_source(volume, &path.index(index), errors);
        let path = path.index(index).child("name");
        let name = volume.str_at("/name");
        match name {
            "" => errors.required(&path, ""),
            name if seen.contains(&name) => errors.duplicate(&path, name),
            name => errors.invalid_each(&path, name, names::dns1123_label(name)),
        }
        // A volume with a fault is as good as absent to those who mount it.
        if errors.len() == known {
            seen.insert(name);
        }
    }
    seen
}

/// Finds a volume that comes from several places.
fn validate_source(volume: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let given = |source: &&&str| volume.get(source).is_some_and(|found| !found.is_null());
    let mut given = VOLUME_SOURCES.iter().filter(given);
    if let Some(source) = given.next() {
        validate_given(
            source,
            volume.get(source).unwrap_or(&Doc::NULL),
            path,
            errors,
        );
    }
    for source in given {
        let detail = "may not specify more than 1 volume type";
        errors.forbidden(&path.child(source), detail);
    }
}

/// Finds what is wrong with the one place that a volume comes from.
fn validate_given(source: &str, given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let path = path.child(source);
    match source {
        "emptyDir" => validate_empty(given, &path, errors),
        "hostPath" => validate_host_path(given, &path, errors),
        "secret" => validate_files(given, "secretName", &path, errors),
        "configMap" => validate_files(given, "name", &path, errors),
        "persistentVolumeClaim" => needs(given, "claimName", &path, errors),
        "downwardAPI" => {
            validate_mode(given, "defaultMode", &path, errors);
            for file in given.at("/items").items() {
                validate_field_file(file, &path, errors);
            }
        }
        "projected" => validate_projected(given, &path, errors),
        "gitRepo" => needs(given, "repository", &path, errors),
        "nfs" => {
            needs(given, "server", &path, errors);
            needs(given, "path", &path, errors);
            let place = given.str_at("/path");
            if !place.starts_with('/') {
                errors.invalid(&path.child("path"), place, "must be an absolute path");
            }
        }
        "csi" => {
            needs(given, "driver", &path, errors);
            let driver = given.str_at("/driver");
            if !driver.is_empty() {
                let problems = names::dns1123_subdomain(&driver.to_lowercase());
                errors.invalid_each(&path.child("driver"), driver, problems);
            }
        }
        "ephemeral" if given.at("/volumeClaimTemplate").is_null() => {
            errors.required(&path.child("volumeClaimTemplate"), "");
        }
        "image" => one_of(given, "pullPolicy", PULL_POLICIES, &path, errors),
        _ => {}
    }
}

fn needs(object: &Doc, key: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let value = object.get(key).and_then(Doc::as_str).unwrap_or_default();
    if value.is_empty() {
        errors.required(&path.child(key), "");
    }
}

fn validate_empty(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let limit = given.at("/sizeLimit").as_str().unwrap_or_default();
    if limit
        .parse::<Quantity>()
        .is_ok_and(|limit| limit.is_negative())
    {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.forbidden(&path.child("sizeLimit"), detail);
    }
}

fn validate_host_path(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let place = given.str_at("/path");
    if place.is_empty() {
        return errors.required(&path.child("path"), "");
    }
    pod_security::validate_steps(place, &path.child("path"), errors);
    one_of(given, "type", HOST_PATH_TYPES, path, errors);
}

/// Finds what is wrong with files made of the keys of another object.
fn validate_files(given: &Doc, name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    needs(given, name, path, errors);
    validate_mode(given, "defaultMode", path, errors);
    validate_items(given, path, errors);
}

fn validate_items(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, item) in given.at("/items").items().iter().enumerate() {
        let path = path.child("items").index(index);
        needs(item, "key", &path, errors);
        needs(item, "path", &path, errors);
        validate_place(item.str_at("/path"), &path.child("path"), errors);
        validate_mode(item, "mode", &path, errors);
    }
}

fn validate_mode(object: &Doc, key: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if let Some(mode) = object.get(key).and_then(Doc::as_i64)
        && !(0..=0o777).contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(&path.child(key), mode, detail);
    }
}

/// Finds a path that leads out of its volume, or to where the node keeps its own files.
fn validate_place(place: &str, path: &FieldPath, errors: &mut FieldErrors) {
    pod_security::validate_relative(place, path, errors);
    if place.starts_with("..") && place != ".." && !place.starts_with("../") {
        errors.invalid(path, place, "must not start with '..'");
    }
}

/// Upstream names the source, and not the item of its list.
fn validate_field_file(file: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    needs(file, "path", path, errors);
    validate_place(file.str_at("/path"), &path.child("path"), errors);
    let (field, resource) = (file.at("/fieldRef"), file.at("/resourceFieldRef"));
    if !field.is_null() {
        pod_env::validate_field(field, pod_env::FILE_FIELDS, &path.child("fieldRef"), errors);
        if !resource.is_null() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid(path, "resource", detail);
        }
    } else if resource.is_null() {
        errors.required(path, "one of fieldRef and resourceFieldRef is required");
    } else if resource.str_at("/containerName").is_empty() {
        let path = path.child("resourceFieldRef").child("containerName");
        errors.required(&path, "");
    } else {
        pod_env::validate_resource(resource, &path.child("resourceFieldRef"), errors);
    }
    validate_mode(file, "mode", path, errors);
}

/// Finds what is wrong with a volume that several sources share.
fn validate_projected(given: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    validate_mode(given, "defaultMode", path, errors);
    let mut seen = HashSet::new();
    for (index, source) in given.at("/sources").items().iter().enumerate() {
        let item = path.child("sources").index(index);
        for key in ["secret", "configMap"] {
            let Some(part) = source.get(key).filter(|part| !part.is_null()) else {
                continue;
            };
            let name = part.str_at("/name");
            needs(part, "name", &item.child(key), errors);
            validate_items(part, &item.child(key), errors);
            take_places(part, Some(name), &mut seen, path, errors);
        }
        let fields = source.at("/downwardAPI");
        for file in fields.at("/items").items() {
            validate_field_file(file, &item.child("downwardAPI"), errors);
        }
        take_places(fields, None, &mut seen, path, errors);
        validate_token(source.at("/serviceAccountToken"), path, &item, errors);
        let parts = source
            .as_object()
            .into_iter()
            .flat_map(|parts| parts.iter());
        if parts.filter(|(_, part)| !part.is_null()).count() > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.forbidden(&item, detail);
        }
    }
}

/// Finds files that two sources would write.
fn take_places<'a>(
    part: &'a Doc,
    name: Option<&str>,
    seen: &mut HashSet<&'a str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let places = part
        .at("/items")
        .items()
        .iter()
        .map(|item| item.str_at("/path"));
    for place in places.filter(|place| !place.is_empty()) {
        if seen.contains(&place) {
            errors.invalid(path, name.unwrap_or(place), "conflicting duplicate paths");
        } else {
            seen.insert(place);
        }
    }
}

fn validate_token(token: &Doc, path: &FieldPath, item: &FieldPath, errors: &mut FieldErrors) {
    if token.is_null() {
        return;
    }
    let seconds = token.at("/expirationSeconds").as_i64().unwrap_or(0);
    let detail = match seconds {
        ..TOKEN_SECONDS_MIN => "may not specify a duration less than 10 minutes",
        TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX => "",
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    if !detail.is_empty() {
        let path = item.child("serviceAccountToken").child("expirationSeconds");
        errors.invalid(&path, seconds, detail);
    }
    match token.str_at("/path") {
        "" => errors.required(&path.child("path"), ""),
        place => validate_place(place, &path.child("path"), errors),
    }
}
