//! Pods run as a service account and find its token where clients look for it.

use windlass_core::{Doc, doc, names};

use super::Request;
use super::plugin::Admit;
use windlass_rules::edit::edit;
use windlass_rules::status::Status;

const DEFAULT: &str = "default";
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";
const ENFORCE: &str = "/metadata/annotations/kubernetes.io~1enforce-mountable-secrets";
/// Where clients in a pod look for their credentials.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
/// A token that lives a little longer than the hour after which it is renewed.
const TOKEN_SECONDS: i64 = 3607;
/// The mode of files in volumes: 0644.
const FILE_MODE: i64 = 0o644;
/// Gives pods an account and its token.
pub(super) struct ServiceAccount;

impl Admit for ServiceAccount {
    fn create(&self, request: &Request<'_>, pod: Doc) -> Result<Doc, Status> {
        admit(request, pod)
    }
}

fn admit(request: &Request<'_>, pod: Doc) -> Result<Doc, Status> {
    if !request.rules.service_accounts {
        return Ok(pod);
    }
    if !pod.at(MIRROR).is_null() {
        check_mirror(request, &pod)?;
        return Ok(pod);
    }
    let pod = edit(&pod, |pod| {
        pod.inside("spec", |spec| {
            edit(spec, |spec| {
                spec.default("serviceAccountName", DEFAULT);
                let name = spec.text("serviceAccountName").to_owned();
                spec.set("serviceAccount", name);
            })
        });
    });
    let name = pod.str_at("/spec/serviceAccountName");
    let Some(account) = find(request, name) else {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
            request.namespace
        );
        return Err(request.forbid(&pod, &why));
    };
    let pod = match mounts_token(&account, &pod) {
        true => with_token(request, &pod),
        false => pod,
    };
    let pod = with_pull_secrets(&pod, &account);
    if is_true(account.str_at(ENFORCE)) {
        check_secrets(&account, &pod).map_err(|why| request.forbid(&pod, &why))?;
    }
    Ok(pod)
}

/// Returns true if a new pod runs as the default account, which is not there.
pub(super) fn lacks_default(request: &Request<'_>, pod: &Doc) -> bool {
    let names = ["/spec/serviceAccountName", "/spec/serviceAccount"];
    let mut names = names.into_iter().map(|pointer| pod.str_at(pointer));
    let is_default = names.all(|name| matches!(name, "" | DEFAULT));
    let is_needed = request.rules.service_accounts && pod.at(MIRROR).is_null() && is_default;
    is_needed && find(request, DEFAULT).is_none()
}

fn find(request: &Request<'_>, name: &str) -> Option<Doc> {
    let namespace = request.namespace;
    request.objects.find("", "serviceaccounts", namespace, name)
}

/// A pod that stands for one that a node runs on its own has no account.
fn check_mirror(request: &Request<'_>, pod: &Doc) -> Result<(), Status> {
    if !pod.str_at("/spec/serviceAccountName").is_empty() {
        let why = "a mirror pod may not reference service accounts";
        return Err(request.forbid(pod, why));
    }
    if !secrets_of(pod).is_empty() {
        return Err(request.forbid(pod, "a mirror pod may not reference secrets"));
    }
    let volumes = pod.at("/spec/volumes").items().iter();
    let mut sources = volumes.flat_map(|volume| volume.at("/projected/sources").items());
    if sources.any(|source| !source.at("/serviceAccountToken").is_null()) {
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        return Err(request.forbid(pod, why));
    }
    Ok(())
}

/// The wish of the pod goes before that of the account.
fn mounts_token(account: &Doc, pod: &Doc) -> bool {
    let wish = pod.at("/spec/automountServiceAccountToken").as_bool();
    let wish = wish.or_else(|| account.at("/automountServiceAccountToken").as_bool());
    wish.unwrap_or(true)
}

/// A pod whose containers all find the token.
fn with_token(request: &Request<'_>, pod: &Doc) -> Doc {
    let volumes = pod.at("/spec/volumes").items();
    let is_token = |volume: &&Doc| volume.str_at("/name").starts_with(VOLUME);
    let known = volumes.iter().find(is_token);
    let name = match known {
        Some(volume) => volume.str_at("/name").to_owned(),
        None => names::generate_name(VOLUME, request.env),
    };
    let lists = ["/spec/initContainers", "/spec/containers"];
    let mut containers = lists.iter().flat_map(|list| pod.at(list).items());
    let is_needed = containers.any(|container| !has_mount(container));
    let mount = doc!({ "name": (name.as_str()), "readOnly": true, "mountPath": MOUNT_PATH });
    edit(pod, |pod| {
        pod.inside("spec", |spec| {
            edit(spec, |spec| {
                for list in ["initContainers", "containers"] {
                    spec.each(list, |container| with_mount(container, &mount));
                }
                if known.is_none() && is_needed {
                    let mut volumes = volumes.to_vec();
                    volumes.push(token_volume(&name));
                    spec.set("volumes", volumes);
                }
            })
        });
    })
}

fn has_mount(container: &Doc) -> bool {
    let mut mounts = container.at("/volumeMounts").items().iter();
    mounts.any(|mount| mount.str_at("/mountPath") == MOUNT_PATH)
}

fn with_mount(container: &Doc, mount: &Doc) -> Doc {
    if has_mount(container) {
        return container.clone();
    }
    let mut mounts = container.at("/volumeMounts").items().to_vec();
    mounts.push(mount.clone());
    edit(container, |container| container.set("volumeMounts", mounts))
}

/// The token, the authority of the server and the namespace, as files.
fn token_volume(name: &str) -> Doc {
    let namespace = doc!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    doc!({
        "name": name,
        "projected": {
            "defaultMode": FILE_MODE,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
                { "configMap": {
                    "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }]
                } },
                { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": namespace }] } }
            ]
        }
    })
}

fn with_pull_secrets(pod: &Doc, account: &Doc) -> Doc {
    let secrets = account.at("/imagePullSecrets").items();
    if secrets.is_empty() || !pod.at("/spec/imagePullSecrets").items().is_empty() {
        return pod.clone();
    }
    edit(pod, |pod| {
        pod.inside("spec", |spec| {
            edit(spec, |spec| spec.set("imagePullSecrets", secrets.to_vec()))
        });
    })
}

/// A reference to a secret, and the words for it.
struct SecretUse<'a> {
    secret: &'a str,
    what: String,
}

/// Refuses secrets that an account which lists its secrets does not list.
fn check_secrets(account: &Doc, pod: &Doc) -> Result<(), String> {
    let (known, name) = (account.at("/secrets").items(), account.meta().name());
    for SecretUse { secret, what } in secrets_of(pod) {
        if !known.iter().any(|known| known.str_at("/name") == secret) {
            return Err(format!(
                "{what}secret.secretName=\"{secret}\" is not allowed because service account \
                 {name} does not reference that secret"
            ));
        }
    }
    let known = account.at("/imagePullSecrets").items();
    let pulls = pod.at("/spec/imagePullSecrets").items();
    for (index, pull) in pulls.iter().enumerate() {
        if !known.contains(pull) {
            let secret = pull.str_at("/name");
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service \
                 account {name} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// The secrets that volumes and containers refer to.
fn secrets_of(pod: &Doc) -> Vec<SecretUse<'_>> {
    let mut found = Vec::new();
    for volume in pod.at("/spec/volumes").items() {
        if !volume.at("/secret").is_null() {
            found.push(SecretUse {
                secret: volume.str_at("/secret/secretName"),
                what: "volume with ".to_owned(),
            });
        }
    }
    for (list, sort) in [
        ("/spec/initContainers", "init container"),
        ("/spec/containers", "container"),
    ] {
        for container in pod.at(list).items() {
            secrets_of_container(container, sort, &mut found);
        }
    }
    found
}

fn secrets_of_container<'a>(container: &'a Doc, sort: &str, found: &mut Vec<SecretUse<'a>>) {
    let name = container.str_at("/name");
    for variable in container.at("/env").items() {
        if !variable.at("/valueFrom/secretKeyRef").is_null() {
            let variable_name = variable.str_at("/name");
            found.push(SecretUse {
                secret: variable.str_at("/valueFrom/secretKeyRef/name"),
                what: format!("{sort} {name} with envVar {variable_name} referencing "),
            });
        }
    }
    for source in container.at("/envFrom").items() {
        if !source.at("/secretRef").is_null() {
            found.push(SecretUse {
                secret: source.str_at("/secretRef/name"),
                what: format!("{sort} {name} with envFrom referencing "),
            });
        }
    }
}

fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "True" | "TRUE")
}
