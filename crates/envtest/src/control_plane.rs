//! The servers, and the order in which they start and stop.

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::{
    assets::{Assets, AssetsError},
    directory::Directory,
    flags, kubeconfig,
    options::Options,
    pki::{self, Authority, PkiError},
    port::ReservedPort,
    probe::{Probe, ProbeError, Response},
    report,
    supervisor::Supervised,
    wait::Deadline,
};

/// What answers 200 only when the server is ready to be used. The server creates its namespaces
/// after it calls itself ready.
const READY_PATHS: [&str; 5] = [
    "/readyz",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/kube-node-lease",
    "/api/v1/namespaces/kube-public",
    "/api/v1/namespaces/kube-system",
];

/// Without it a pod in this namespace is refused, so a controller manager that makes it is ready
/// only when it did.
const SERVICE_ACCOUNT_PATH: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// A running control plane. Dropping it kills its servers and removes its directory.
///
/// Fields drop in the order of their declaration: clients of a server before the server, and the
/// directory last.
#[derive(Debug)]
pub struct ControlPlane {
    controller_manager: Option<Supervised>,
    /// `None` while it is stopped.
    apiserver: Option<Supervised>,
    etcd: Supervised,
    port: ReservedPort,
    controller_manager_port: ReservedPort,
    authority: Authority,
    /// Asks as the administrator.
    probe: Probe,
    kubeconfig: PathBuf,
    /// Numbers the files of further users.
    users: AtomicU32,
    assets: Assets,
    options: Options,
    started_in: Duration,
    /// From the first exec to the first 200 on `/readyz`.
    ready_in: Duration,
    directory: Directory,
}

/// The process ids of the servers themselves, for measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pids {
    /// etcd.
    pub etcd: u32,
    /// kube-apiserver, unless it is stopped.
    pub apiserver: Option<u32>,
    /// kube-controller-manager, if there is one.
    pub controller_manager: Option<u32>,
}

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A binary is missing.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// A key or certificate could not be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The client that asks for readiness could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// A directory, port or process could not be had.
    #[error("cannot start the control plane")]
    Io(#[from] io::Error),
    /// A server ended instead of becoming ready.
    #[error("{server} ended; the end of its log:\n{log}")]
    Exited {
        /// The name of the server.
        server: &'static str,
        /// The last lines it logged.
        log: String,
    },
    /// A server was not ready in time.
    #[error("{server} was not ready after {limit:?}: {reason}; the end of its log:\n{log}")]
    Timeout {
        /// The name of the server.
        server: &'static str,
        /// The deadline that passed.
        limit: Duration,
        /// What was still missing.
        reason: String,
        /// The last lines it logged.
        log: String,
    },
}

impl ControlPlane {
    /// Starts the servers and returns when they are ready.
    ///
    /// # Errors
    ///
    /// When a binary is missing, or a server ends or is not ready in time; the error then holds
    /// the end of its log.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let deadline = Deadline::after(options.deadline);
        let assets = Assets::find()?;
        let directory = Directory::new()?;
        let port = ReservedPort::new()?;
        let authority = Authority::new()?;
        let probe = write_secrets(&directory, &port, &authority)?;
        let before = deadline.elapsed();
        let etcd = start_etcd(&assets, &directory, options, &deadline)?;
        let mut this = Self {
            controller_manager: None,
            apiserver: None,
            etcd,
            port,
            controller_manager_port: ReservedPort::new()?,
            authority,
            probe,
            kubeconfig: directory.file("admin.kubeconfig"),
            users: AtomicU32::new(0),
            assets,
            options: options.clone(),
            started_in: Duration::ZERO,
            ready_in: Duration::ZERO,
            directory,
        };
        this.ready_in = this.start_apiserver(&deadline)?.saturating_sub(before);
        if options.has_controller_manager() {
            this.start_controller_manager(&deadline)?;
        }
        this.started_in = deadline.elapsed();
        Ok(this)
    }

    /// Where the server listens: `https://127.0.0.1:PORT`, the same across restarts.
    #[must_use]
    pub fn url(&self) -> String {
        self.port.url()
    }

    /// The configuration of an administrator, a member of `system:masters`.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes a configuration for a user who may do what RBAC grants to that name.
    ///
    /// # Errors
    ///
    /// When the certificate cannot be made or written.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf, PkiError> {
        let identity = self.authority.client(user, None)?;
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        kubeconfig::write(
            &self.directory,
            &format!("user-{number}"),
            &self.url(),
            &identity,
        )
    }

    /// The path of a kubeconfig for a service account. It may do what RBAC grants to the account.
    ///
    /// # Errors
    ///
    /// When there is no such account, or the file cannot be written.
    pub fn kubeconfig_for_account(&self, namespace: &str, account: &str) -> io::Result<PathBuf> {
        let output = self
            .kubectl()
            .args(["create", "token", "--namespace", namespace, account])
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
        }
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        kubeconfig::write_token(
            &self.directory,
            &format!("user-{number}"),
            &self.url(),
            String::from_utf8_lossy(&output.stdout).trim(),
        )
    }

    /// A kubectl of the same version, as the administrator.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.assets.kubectl());
        command.env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Gets a path of the server as the administrator.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or does not answer properly. A status such as 404 is an
    /// answer.
    pub fn get(&self, path: &str) -> Result<Response, ProbeError> {
        self.probe.get(self.port.number(), path)
    }

    /// The binaries that run.
    #[must_use]
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// The directory with the data, keys and logs; it goes away with the control plane.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process ids of the servers.
    #[must_use]
    pub fn pids(&self) -> Pids {
        Pids {
            etcd: self.etcd.pid(),
            apiserver: self.apiserver.as_ref().map(Supervised::pid),
            controller_manager: self.controller_manager.as_ref().map(Supervised::pid),
        }
    }

    /// How long the start took, until everything was ready.
    #[must_use]
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// How long it took from the start of the first process to the first 200 on `/readyz`: without
    /// the making of keys before and without the first namespaces, which come after.
    #[must_use]
    pub fn ready_in(&self) -> Duration {
        self.ready_in
    }

    /// Kills kube-apiserver, as a crash would: connections break, nothing is said.
    pub fn stop_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Starts kube-apiserver anew on the same port and data, and returns when it is ready. It is
    /// killed first if it runs.
    ///
    /// # Errors
    ///
    /// When it ends or is not ready in time.
    pub fn restart_apiserver(&mut self) -> Result<(), StartError> {
        self.stop_apiserver();
        self.start_apiserver(&Deadline::after(self.options.deadline))
            .map(drop)
    }

    /// Returns when on the clock of the deadline the server called itself ready for the first time.
    fn start_apiserver(&mut self, deadline: &Deadline) -> Result<Duration, StartError> {
        let flags = flags::apiserver(&self.directory, self.port.number(), &self.options);
        let mut server = spawn(&self.assets.apiserver(), &flags, &self.directory)?;
        let mut ready = None;
        for path in READY_PATHS {
            wait(&mut server, "kube-apiserver", deadline, || {
                answers(self.get(path))
            })?;
            ready.get_or_insert_with(|| deadline.elapsed());
        }
        self.apiserver = Some(server);
        Ok(ready.unwrap_or_default())
    }

    fn start_controller_manager(&mut self, deadline: &Deadline) -> Result<(), StartError> {
        const NAME: &str = "kube-controller-manager";
        let binary = self.assets.controller_manager()?;
        let identity = self
            .authority
            .client("system:kube-controller-manager", None)?;
        let kubeconfig = kubeconfig::write(
            &self.directory,
            "controller-manager",
            &self.url(),
            &identity,
        )?;
        let port = self.controller_manager_port.number();
        let flags = flags::controller_manager(&self.directory, port, &kubeconfig, &self.options);
        let mut server = spawn(&binary, &flags, &self.directory)?;
        wait(&mut server, NAME, deadline, || {
            answers(self.probe.get(port, "/healthz"))
        })?;
        if self.options.has_service_accounts() {
            wait(&mut server, NAME, deadline, || {
                answers(self.get(SERVICE_ACCOUNT_PATH))
            })?;
        }
        self.controller_manager = Some(server);
        Ok(())
    }
}

/// Writes what the servers and the administrator need, and returns a client for the latter.
fn write_secrets(
    directory: &Directory,
    port: &ReservedPort,
    authority: &Authority,
) -> Result<Probe, StartError> {
    authority.write(&directory.file("ca.crt"))?;
    authority
        .server()?
        .write(&directory.file("server.crt"), &directory.file("server.key"))?;
    pki::write_signing_keys(
        &directory.file("service-account.key"),
        &directory.file("service-account.pub"),
    )?;
    let admin = authority.client("admin", Some("system:masters"))?;
    kubeconfig::write(directory, "admin", &port.url(), &admin)?;
    Ok(Probe::new(authority, &admin)?)
}

/// Starts etcd and waits until it accepts connections, so that a failure names etcd itself.
fn start_etcd(
    assets: &Assets,
    directory: &Directory,
    options: &Options,
    deadline: &Deadline,
) -> Result<Supervised, StartError> {
    let socket = directory.file("etcd.sock");
    let mut server = spawn(&assets.etcd(), &flags::etcd(directory, options), directory)?;
    wait(&mut server, "etcd", deadline, || {
        UnixStream::connect(&socket)
            .map(drop)
            .map_err(|error| error.to_string())
    })?;
    Ok(server)
}

fn spawn(program: &Path, flags: &[String], directory: &Directory) -> io::Result<Supervised> {
    Supervised::spawn(program, flags, directory.path())
}

/// Waits until `is_ready` says yes, the server ends, or the deadline passes.
fn wait(
    server: &mut Supervised,
    name: &'static str,
    deadline: &Deadline,
    mut is_ready: impl FnMut() -> Result<(), String>,
) -> Result<(), StartError> {
    loop {
        let Err(reason) = is_ready() else {
            return Ok(());
        };
        if server.has_exited()? {
            return Err(StartError::Exited {
                server: name,
                log: server.log_tail(),
            });
        }
        if !deadline.rest() {
            let (limit, log) = (deadline.limit(), server.log_tail());
            return Err(StartError::Timeout {
                server: name,
                limit,
                reason,
                log,
            });
        }
    }
}

fn answers(response: Result<Response, ProbeError>) -> Result<(), String> {
    match response {
        Ok(Response { status: 200, .. }) => Ok(()),
        Ok(Response { status, body }) => Err(format!("status {status}, {body}")),
        Err(error) => Err(report::chain(&error)),
    }
}
