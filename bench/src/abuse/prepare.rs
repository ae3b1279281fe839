//! Accounts, rights and objects, made by an administrator before anything is measured.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use windlass_bench::contest::{self, Numbers};
use windlass_core::{Doc, doc};

use super::{
    ABUSER, COLLECTION, COLLECTION_BYTES, CONFIGMAPS, OWN_CONFIGMAPS, PODS, VICTIM,
    VICTIM_CONFIGMAPS, VICTIM_COUNT, bodies,
};
use crate::server::block_on;
use crate::server::wire::{Target, Wire};

/// Entries of the abuser's pod, to which others are merged.
const POD_ENTRIES: usize = 10_000;

/// Makes everything on the server of `$KUBECONFIG`, and writes the kubeconfigs `victim`, `user`
/// and `stranger` into a directory. Prints an empty line of figures.
pub(super) fn run(directory: &str) -> anyhow::Result<()> {
    let path = std::env::var("KUBECONFIG").context("$KUBECONFIG")?;
    let admin = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let admin = Doc::parse_yaml(&admin)?;
    let cluster = admin.first().context("an empty kubeconfig")?;
    let cluster = cluster.at("/clusters/0/cluster");
    let [victim, user] = block_on(async {
        let mut wire = Target::from_file(&path)?.connect().await?;
        let victim = account(&mut wire, VICTIM, &victim_rules()).await?;
        let user = account(&mut wire, ABUSER, &abuser_rules()).await?;
        objects(&mut wire).await?;
        Ok([victim, user])
    })?;
    let directory = Path::new(directory);
    for (name, credentials) in [
        ("victim", doc!({ "token": victim })),
        ("user", doc!({ "token": user })),
        ("stranger", doc!({})),
    ] {
        let text = doc!({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{ "name": "server", "cluster": (cluster.clone()) }],
            "users": [{ "name": name, "user": credentials }]
        });
        let path = directory.join(format!("{name}.kubeconfig"));
        std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(&text.to_json()))
            .with_context(|| path.display().to_string())?;
    }
    println!("{}", contest::to_json(&Numbers::new()));
    Ok(())
}

fn victim_rules() -> Doc {
    doc!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"] }])
}

/// Reviews of their own rights are everybody's.
fn abuser_rules() -> Doc {
    let verbs = doc!([
        "get", "list", "watch", "create", "update", "patch", "delete"
    ]);
    doc!([
        { "apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": (verbs.clone()) },
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": verbs }
    ])
}

/// Makes a namespace and an account of the same name with these rights in it; returns a token.
async fn account(wire: &mut Wire, name: &str, rules: &Doc) -> anyhow::Result<String> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let namespace = doc!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    create(wire, "/api/v1/namespaces", &namespace).await?;
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    // Without its default account a namespace takes no pods. A controller may have made it.
    for account in ["default", name] {
        let body = doc!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account }
        });
        let (status, _) = wire.request("POST", &accounts, &body.to_json()).await?;
        ensure!(matches!(status, 201 | 409), "account {account}: {status}");
    }
    let of_namespace = |kind: &str| format!("/apis/{GROUP}/v1/namespaces/{name}/{kind}");
    let role = doc!({
        "apiVersion": (format!("{GROUP}/v1")), "kind": "Role", "metadata": { "name": name },
        "rules": (rules.clone())
    });
    create(wire, &of_namespace("roles"), &role).await?;
    let binding = doc!({
        "apiVersion": (format!("{GROUP}/v1")), "kind": "RoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": name }]
    });
    create(wire, &of_namespace("rolebindings"), &binding).await?;
    let request = doc!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "expirationSeconds": 7200 }
    });
    let path = format!("{accounts}/{name}/token");
    let answer = Doc::parse(&wire.call("POST", &path, &request.to_json()).await?)?;
    let token = answer.str_at("/status/token");
    ensure!(!token.is_empty(), "{path}: an empty token");
    Ok(token.to_owned())
}

async fn objects(wire: &mut Wire) -> anyhow::Result<()> {
    for index in 0..VICTIM_COUNT {
        let body = doc!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": (settings(index)) },
            "data": { "n": "0" }
        });
        create(wire, VICTIM_CONFIGMAPS, &body).await?;
    }
    for index in 0..OWN_CONFIGMAPS {
        let body = doc!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": (own(index)) }
        });
        create(wire, CONFIGMAPS, &body).await?;
    }
    let text = "x".repeat(COLLECTION_BYTES);
    for index in 0..COLLECTION {
        let name = format!("collection-{index}");
        let body = doc!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "collection": "yes" } },
            "data": { "text": (text.clone()) }
        });
        create(wire, CONFIGMAPS, &body).await?;
    }
    wire.call("POST", PODS, &bodies::pod(0..POD_ENTRIES))
        .await?;
    Ok(())
}

/// The name of the ConfigMap that a request of the victim is about.
pub(super) fn settings(request: u64) -> String {
    format!("settings-{}", request % VICTIM_COUNT)
}

/// The name of the ConfigMap that a client of the abuser has for itself.
pub(super) fn own(client: usize) -> String {
    format!("own-{}", client % OWN_CONFIGMAPS)
}

async fn create(wire: &mut Wire, path: &str, body: &Doc) -> anyhow::Result<()> {
    wire.call("POST", path, &body.to_json()).await?;
    Ok(())
}
