//! The parts of a pod with paths of their own: the resize of its resources, and ephemeral
//! containers.

use windlass_core::{Doc, Object};

use crate::edit::put;
use crate::field::{FieldErrors, FieldPath};

/// The annotation of pods that a node made from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The resources that a resize may change.
const RESIZED: [&str; 2] = ["cpu", "memory"];
/// The lists of containers that a resize is about.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// A resized pod without any change but those of resources. Containers that came, went or moved
/// stay as they are sent, and validation refuses them.
pub(super) fn prepare(new: Doc, old: &Doc) -> Doc {
    let list = |pod: &Doc, key: &str| pod.at("/spec").get(key).cloned().unwrap_or_default();
    let is_moved = |key: &&str| {
        let (new, old) = (list(&new, key), list(old, key));
        names(&new) != names(&old)
    };
    if LISTS.iter().any(is_moved) {
        return new;
    }
    LISTS.iter().fold(new.clone(), |pod, key| {
        let (sent, known) = (list(&new, key), list(old, key));
        let pairs = sent.items().iter().zip(known.items());
        let merged: Vec<Doc> = pairs.map(|(sent, known)| resized(sent, known)).collect();
        match merged.is_empty() {
            true => pod,
            false => put(pod, &format!("/spec/{key}"), merged),
        }
    })
}

fn names(containers: &Doc) -> Vec<&str> {
    let containers = containers.items().iter();
    containers
        .map(|container| container.str_at("/name"))
        .collect()
}

/// A container as it was, with the resources and the policy that were sent.
fn resized(sent: &Doc, known: &Doc) -> Doc {
    let fields = known.as_object().cloned().unwrap_or_else(Object::empty);
    let take = |fields: Object, key: &str| match sent.get(key) {
        Some(value) => fields.with(key, value.clone()),
        None => fields.without(key),
    };
    take(take(fields, "resources"), "resizePolicy").into()
}

/// Finds what is wrong with a change of ephemeral containers, or with a resize if they are the same.
pub(super) fn validate(new: &Doc, old: &Doc, class: (&str, &str), errors: &mut FieldErrors) {
    let is_mirror = old.meta().annotation(MIRROR).is_some();
    let (before, after) = (
        old.at("/spec/ephemeralContainers"),
        new.at("/spec/ephemeralContainers"),
    );
    if before != after {
        if is_mirror {
            let why = "static pods do not support ephemeral containers";
            *errors = FieldErrors::default();
            return errors.forbidden(&FieldPath::new(""), why);
        }
        return validate_ephemeral(after, before, errors);
    }
    let refused = match old.str_at("/spec/os/name") {
        _ if is_mirror => Some("static pods cannot be resized"),
        "windows" => Some("windows pods cannot be resized"),
        _ => None,
    };
    if let Some(why) = refused.filter(|_| new.at("/spec") != old.at("/spec")) {
        *errors = FieldErrors::default();
        return errors.forbidden(&FieldPath::new(""), why);
    }
    validate_resize(new, old, class, errors);
}

fn validate_ephemeral(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec").child("ephemeralContainers");
    for known in old.items() {
        let name = known.str_at("/name");
        let mut found = new.items().iter();
        match found.find(|container| container.str_at("/name") == name) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.forbidden(&path, why);
            }
            Some(container) if container != known => {
                let why = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.forbidden(&path, why);
            }
            Some(_) => {}
        }
    }
}

fn validate_resize(new: &Doc, old: &Doc, class: (&str, &str), errors: &mut FieldErrors) {
    let path = FieldPath::new("spec");
    if class.0 != class.1 {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.invalid(&path, new.str_at("/status/qosClass"), why);
    }
    let mut statuses = old.at("/status/containerStatuses").items().iter();
    let running = statuses.find(|status| !status.at("/state/running").is_null());
    if running.is_some_and(|status| status.get("resources").is_none()) {
        errors.forbidden(&path, "Pod running on node without support for resize");
    }
    if !validate_order(new, old, errors) {
        return;
    }
    for key in ["initContainers", "containers"] {
        let pointer = format!("/spec/{key}");
        let pairs = new
            .at(&pointer)
            .items()
            .iter()
            .zip(old.at(&pointer).items());
        for (index, (new, old)) in pairs.enumerate() {
            validate_kept(new, old, &path.child(key).index(index), errors);
        }
    }
    validate_changes(new, old, errors);
}

/// Finds containers that came, went, moved or changed their names; returns true if there are none.
fn validate_order(new: &Doc, old: &Doc, errors: &mut FieldErrors) -> bool {
    let mut is_same = true;
    for key in LISTS {
        let path = FieldPath::new("spec").child(key);
        let pointer = format!("/spec/{key}");
        let (after, before) = (names(new.at(&pointer)), names(old.at(&pointer)));
        if after.len() != before.len() {
            is_same = false;
            errors.forbidden(
                &path,
                format!("{key} may not be added or removed on resize"),
            );
            continue;
        }
        for (index, (after, before)) in after.iter().zip(before).enumerate() {
            if *after != before {
                is_same = false;
                let why = format!("{key} may not be renamed or reordered on resize");
                errors.forbidden(&path.index(index).child("name"), why);
            }
        }
    }
    is_same
}

/// Amounts may change and may not go.
fn validate_kept(new: &Doc, old: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["requests", "limits"] {
        let amounts = |container: &Doc| {
            let list = container.at("/resources").get(key).and_then(Doc::as_object);
            list.cloned().unwrap_or_else(Object::empty)
        };
        let (after, before) = (amounts(new), amounts(old));
        if before.keys().iter().any(|name| !after.contains_key(name)) {
            let why = format!("resource {key} cannot be removed");
            errors.forbidden(&path.child("resources").child(key), why);
        }
    }
}

/// Nothing but the amounts of processors and memory changes.
fn validate_changes(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("spec");
    let pairs = |key: &str| -> Vec<(Doc, Doc)> {
        let pointer = format!("/spec/{key}");
        let new = new.at(&pointer).items().iter().cloned();
        new.zip(old.at(&pointer).items().iter().cloned()).collect()
    };
    for (new, old) in pairs("containers") {
        if fixed(&new) != fixed(&old) {
            errors.forbidden(&path, "only cpu and memory resources are mutable");
        }
    }
    for (index, (new, old)) in pairs("initContainers").iter().enumerate() {
        let path = path.child("initContainers").index(index);
        if fixed(new) != fixed(old) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(&path, why);
        }
        let is_sidecar = new.str_at("/restartPolicy") == "Always";
        let policies = new.at("/resizePolicy").items().iter();
        let mut restarts = policies.filter(|it| it.str_at("/restartPolicy") == "RestartContainer");
        if new != old && !is_sidecar && restarts.next().is_some() {
            let why = "non-sidecar init containers with a resize policy of RestartContainer cannot \
                       be resized";
            errors.forbidden(&path, why);
        }
    }
}

/// A container without its amounts of processors and memory.
fn fixed(container: &Doc) -> Doc {
    ["requests", "limits"]
        .iter()
        .fold(container.clone(), |rest, key| {
            let list = rest.at("/resources").get(key).and_then(Doc::as_object);
            let Some(list) = list.cloned() else {
                return rest;
            };
            let list = RESIZED.iter().fold(list, |list, name| list.without(name));
            let pointer = format!("/resources/{key}");
            match list.is_empty() {
                true => crate::edit::cut(rest, &pointer),
                false => put(rest, &pointer, Doc::from(list)),
            }
        })
}
