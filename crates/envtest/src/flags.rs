//! The command lines of the three servers.

use std::path::Path;

use crate::{directory::Directory, options::Options};

/// Addresses for services. Nothing routes them; the server only hands them out.
const SERVICE_RANGE: &str = "10.0.0.0/24";

/// An advertised address has to be a host and a port. Nobody uses this one: a store of one member
/// never connects to itself, and its only client is told the socket.
const ADVERTISED: &str = "http://127.0.0.1:1";

/// etcd speaks over sockets in the directory, so that it needs no ports and nobody else reaches it.
pub(crate) fn etcd(directory: &Directory, options: &Options) -> Vec<String> {
    let client = socket_url(&directory.file("etcd.sock"));
    let peer = socket_url(&directory.file("etcd-peer.sock"));
    let mut flags = vec![
        path_flag("--data-dir", &directory.file("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={ADVERTISED}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={ADVERTISED}"),
        format!("--initial-cluster=default={ADVERTISED}"),
        "--log-level=warn".to_owned(),
    ];
    if !options.is_durable {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

pub(crate) fn apiserver(directory: &Directory, port: u16, options: &Options) -> Vec<String> {
    let mut flags = serving(directory, port);
    flags.extend([
        format!(
            "--etcd-servers={}",
            socket_url(&directory.file("etcd.sock"))
        ),
        path_flag("--client-ca-file", &directory.file("ca.crt")),
        path_flag(
            "--service-account-key-file",
            &directory.file("service-account.pub"),
        ),
        path_flag(
            "--service-account-signing-key-file",
            &directory.file("service-account.key"),
        ),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        // An endpoint of the service `kubernetes` may not be a loopback address, and this server
        // has no other.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
    ]);
    if !options.has_service_accounts() {
        flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    flags.extend(options.apiserver_flags.iter().cloned());
    flags
}

pub(crate) fn controller_manager(
    directory: &Directory,
    port: u16,
    kubeconfig: &Path,
    options: &Options,
) -> Vec<String> {
    let mut flags = serving(directory, port);
    flags.extend([
        path_flag("--kubeconfig", kubeconfig),
        path_flag("--authentication-kubeconfig", kubeconfig),
        path_flag("--authorization-kubeconfig", kubeconfig),
        path_flag("--root-ca-file", &directory.file("ca.crt")),
        path_flag(
            "--service-account-private-key-file",
            &directory.file("service-account.key"),
        ),
        "--use-service-account-credentials=true".to_owned(),
        // There is one, and an election only delays it.
        "--leader-elect=false".to_owned(),
        format!("--controllers={}", options.controllers.join(",")),
    ]);
    flags.extend(options.controller_manager_flags.iter().cloned());
    flags
}

/// How a server listens: on loopback, on a port that is reserved for it.
fn serving(directory: &Directory, port: u16) -> Vec<String> {
    vec![
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--permit-port-sharing=true".to_owned(),
        path_flag("--tls-cert-file", &directory.file("server.crt")),
        path_flag("--tls-private-key-file", &directory.file("server.key")),
    ]
}

fn path_flag(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

fn socket_url(path: &Path) -> String {
    format!("unix://{}", path.display())
}
