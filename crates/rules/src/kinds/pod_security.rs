//! With which rights and in which namespaces of its node a pod runs.

use std::collections::HashSet;

use windlass_core::Doc;

use super::pod_spec::one_of;
use crate::field::{FieldErrors, FieldPath};

const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL_BYTES_LIMIT: usize = 253;
const SYSCTL_RULE: &str = "must have at most 253 characters and match regex \
     ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const PROFILE_BYTES_LIMIT: usize = 4095;
/// The fields of a container's security context as messages show them: upstream's own names, in
/// its order.
const CONTEXT_FIELDS: [(&str, &str); 12] = [
    ("Capabilities", "capabilities"),
    ("Privileged", "privileged"),
    ("SELinuxOptions", "seLinuxOptions"),
    ("WindowsOptions", "windowsOptions"),
    ("RunAsUser", "runAsUser"),
    ("RunAsGroup", "runAsGroup"),
    ("RunAsNonRoot", "runAsNonRoot"),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
    ("ProcMount", "procMount"),
    ("SeccompProfile", "seccompProfile"),
    ("AppArmorProfile", "appArmorProfile"),
];

/// Finds what is wrong with the security context of a pod.
pub(super) fn validate_pod(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let (context, path) = (spec.at("/securityContext"), path.child("securityContext"));
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        validate_id(context.get(key), &path.child(key), errors);
    }
    let groups = context.at("/supplementalGroups").items();
    for (index, group) in groups.iter().enumerate() {
        let path = path.child("supplementalGroups").index(index);
        validate_id(Some(group), &path, errors);
    }
    if is_true(spec, "shareProcessNamespace") && is_true(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.child("shareProcessNamespace"), true, detail);
    }
    validate_sysctls(spec, &path.child("sysctls"), errors);
    policy(
        context,
        "fsGroupChangePolicy",
        &["Always", "OnRootMismatch"],
        &path,
        errors,
    );
    validate_seccomp(context, &path, errors);
    validate_app_armor(context, &path, errors);
    policy(
        context,
        "supplementalGroupsPolicy",
        &["Merge", "Strict"],
        &path,
        errors,
    );
    policy(
        context,
        "seLinuxChangePolicy",
        &["Recursive"],
        &path,
        errors,
    );
}

/// Finds what is wrong with the security context of a container.
pub(super) fn validate_container(
    container: &Doc,
    spec: &Doc,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let (context, path) = (
        container.at("/securityContext"),
        path.child("securityContext"),
    );
    for key in ["runAsUser", "runAsGroup"] {
        validate_id(context.get(key), &path.child(key), errors);
    }
    policy(
        context,
        "procMount",
        &["Default", "Unmasked"],
        &path,
        errors,
    );
    let is_host_user = spec.at("/hostUsers").as_bool() != Some(false);
    if is_host_user && context.str_at("/procMount") == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.invalid(&path.child("procMount"), "Unmasked", detail);
    }
    validate_seccomp(context, &path, errors);
    validate_escalation(context, &path, errors);
    validate_app_armor(context, &path, errors);
}

/// A container that may do everything already cannot be kept from gaining rights.
fn validate_escalation(context: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if context.at("/allowPrivilegeEscalation").as_bool() != Some(false) {
        return;
    }
    let mut refuse = |what: &str| {
        let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        errors.invalid_shown(path, show_context(context), detail);
    };
    if is_true(context, "privileged") {
        refuse("`privileged` to true");
    }
    let added = context.at("/capabilities/add").items();
    if added.iter().any(|name| *name == "CAP_SYS_ADMIN") {
        refuse("`capabilities.Add` CAP_SYS_ADMIN");
    }
}

fn show_context(context: &Doc) -> String {
    let fields = CONTEXT_FIELDS.map(|(shown, key)| {
        let value = context.get(key).cloned().unwrap_or_default();
        let value = match key {
            "capabilities" if !value.is_null() => format!(
                "{{\"Add\":{},\"Drop\":{}}}",
                value.at("/add"),
                value.at("/drop")
            ),
            _ => value.to_string(),
        };
        format!("\"{shown}\":{value}")
    });
    format!("{{{}}}", fields.join(","))
}

fn is_true(object: &Doc, key: &str) -> bool {
    object.get(key).and_then(Doc::as_bool) == Some(true)
}

/// Finds a policy that is none of a fixed set, and there.
fn policy(object: &Doc, key: &str, known: &[&str], path: &FieldPath, errors: &mut FieldErrors) {
    match object.get(key).and_then(Doc::as_str) {
        Some("") => errors.not_supported(&path.child(key), "", known),
        _ => one_of(object, key, known, path, errors),
    }
}

fn validate_id(id: Option<&Doc>, path: &FieldPath, errors: &mut FieldErrors) {
    if let Some(id) = id.and_then(Doc::as_i64)
        && !(0..=i64::from(i32::MAX)).contains(&id)
    {
        let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
        errors.invalid(path, id, detail);
    }
}

fn validate_seccomp(context: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let profile = context.at("/seccompProfile");
    if profile.is_null() {
        return;
    }
    let path = path.child("seccompProfile");
    let sort = profile.str_at("/type");
    if sort.is_empty() {
        let detail = "type is required when seccompProfile is set";
        errors.required(&path.child("type"), detail);
    }
    one_of(profile, "type", PROFILE_TYPES, &path, errors);
    let file = profile.at("/localhostProfile").as_str();
    let path = path.child("localhostProfile");
    match (sort, file) {
        ("Localhost", None) => {
            errors.required(&path, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(file)) => validate_relative(file, &path, errors),
        (_, Some(file)) => {
            let shown = format!(
                "{{\"Type\":{},\"LocalhostProfile\":{}}}",
                Doc::from(sort),
                Doc::from(file)
            );
            let detail = "can only be set when seccomp type is Localhost";
            errors.invalid_shown(&path, shown, detail);
        }
        (_, None) => {}
    }
}

fn validate_app_armor(context: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let profile = context.at("/appArmorProfile");
    if profile.is_null() {
        return;
    }
    let path = path.child("appArmorProfile");
    let name = profile.at("/localhostProfile").as_str();
    let name_path = path.child("localhostProfile");
    match (profile.str_at("/type"), name) {
        ("", _) => {
            let detail = "type is required when appArmorProfile is set";
            errors.required(&path.child("type"), detail);
        }
        ("Localhost", None | Some("")) => {
            errors.required(&name_path, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                errors.invalid(&name_path, name, "must not be padded with whitespace");
            }
            if name.len() > PROFILE_BYTES_LIMIT {
                errors.too_long(&name_path, PROFILE_BYTES_LIMIT);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.invalid(&name_path, name, detail);
        }
        _ => one_of(profile, "type", PROFILE_TYPES, &path, errors),
    }
}

fn validate_sysctls(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    let sysctls = spec.at("/securityContext/sysctls").items();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let path = path.index(index).child("name");
        let name = sysctl.str_at("/name");
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_sysctl(name) {
            errors.invalid(&path, name, SYSCTL_RULE);
        } else if seen.contains(&name) {
            errors.duplicate(&path, name);
        }
        validate_host_sysctl(spec, name, &path, errors);
        seen.insert(name);
    }
}

/// What a pod shares with its node is not for it to set.
fn validate_host_sysctl(spec: &Doc, name: &str, path: &FieldPath, errors: &mut FieldErrors) {
    let dotted = name.replace('/', ".");
    let is_of_processes = ["kernel.shm", "kernel.msg", "fs.mqueue."]
        .iter()
        .any(|start| dotted.starts_with(start))
        || dotted == "kernel.sem";
    let shared = match () {
        () if dotted.starts_with("net.") => "hostNetwork",
        () if is_of_processes => "hostIPC",
        () => return,
    };
    if is_true(spec, shared) {
        let detail = format!("may not be specified when '{shared}' is true");
        errors.invalid(path, name, detail);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let part = part.as_bytes();
        part.first().is_some_and(is_plain)
            && part.last().is_some_and(is_plain)
            && part
                .iter()
                .all(|byte| is_plain(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= SYSCTL_BYTES_LIMIT && name.split(['.', '/']).all(is_part)
}

/// Finds a path that leads out of the directory it starts in.
pub(super) fn validate_relative(file: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if file.starts_with('/') {
        errors.invalid(path, file, "must be a relative path");
    }
    validate_steps(file, path, errors);
}

/// Finds a path with a step back.
pub(super) fn validate_steps(file: &str, path: &FieldPath, errors: &mut FieldErrors) {
    if file.split('/').any(|step| step == "..") {
        errors.invalid(path, file, "must not contain '..'");
    }
}

/// Finds namespaces of the node that a pod with users of its own cannot share.
pub(super) fn validate_users(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if spec.at("/hostUsers").as_bool() != Some(false) {
        return;
    }
    // Upstream spells these two with capitals.
    for (key, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if is_true(spec, key) {
            errors.forbidden(&path.child(shown), "when `hostUsers` is false");
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = spec.get(list).map(Doc::items).unwrap_or_default();
        for (index, container) in containers.iter().enumerate() {
            if !container.at("/volumeDevices").items().is_empty() {
                let path = path.child(list).index(index).child("volumeDevices");
                errors.forbidden(&path, "when `hostUsers` is false");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn contexts_that_are_no_objects_are_passed_over() {
        for context in [
            doc!("x"),
            doc!([1]),
            doc!({ "sysctls": 1, "runAsUser": "x" }),
        ] {
            let spec = doc!({ "securityContext": context });
            let mut errors = FieldErrors::default();
            validate_pod(&spec, &FieldPath::new("spec"), &mut errors);
            assert!(errors.is_empty());
        }
    }
}
