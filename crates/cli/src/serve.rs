//! The server of `up` and `server`: opened, listening, and announced by a kubeconfig.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use windlass_controllers::node;
use windlass_core::Env;
use windlass_server::{
    Admission, Certificates, Identity, Listening, RunningControllers, ServeError, Server,
    ServerError, ServerOptions, kubeconfig, serve,
};
use windlass_store::OpenError;

use crate::access::AccessArguments;
use crate::audit::AuditArguments;
use crate::commands;
use crate::held::Held;
use crate::merge;

/// Options of the server.
#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// Where objects, keys and certificates are kept.
    #[arg(
        long,
        env = "WINDLASS_DATA",
        value_name = "DIR",
        default_value = ".windlass"
    )]
    pub(crate) data: PathBuf,
    /// Keep objects in memory only; the directory holds no more than the kubeconfig.
    #[arg(long)]
    memory: bool,
    /// Where the kubeconfig is written [default: kubeconfig in the data directory].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Also put the cluster into your own kubeconfig, and make it the current context.
    #[arg(long)]
    merge: bool,
    /// The address to listen on; port 0 is any free one.
    #[arg(
        long,
        env = "WINDLASS_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:0"
    )]
    listen: SocketAddr,
    /// Further host names under which the server is reached.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Listen on an address that other machines reach.
    #[arg(long)]
    allow_remote: bool,
    /// What a write waits for.
    #[arg(
        long,
        env = "WINDLASS_DURABILITY",
        value_enum,
        default_value_t = Durability::Full
    )]
    durability: Durability,
    /// Bytes of objects and history that may be stored; beyond, objects can only be deleted.
    #[arg(
        long,
        env = "WINDLASS_QUOTA_BACKEND_BYTES",
        value_name = "BYTES",
        default_value_t = 8 << 30
    )]
    quota_backend_bytes: u64,
    /// Encrypt Secrets on the disk with the first key in this file; all keys in it decrypt. A key
    /// is 32 random bytes in base64, one on each line.
    #[arg(long, env = "WINDLASS_ENCRYPTION_KEY", value_name = "FILE")]
    encryption_key: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArguments,
    #[command(flatten)]
    audit: AuditArguments,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Durability {
    /// The disk has it.
    Full,
    /// Nothing: the last writes are lost when the process dies.
    None,
}

/// A server that is ready to answer.
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) env: Env,
    pub(crate) url: String,
    pub(crate) kubeconfig: PathBuf,
    /// The certificate authority of the server, with its key.
    pub(crate) signer: Identity,
    listening: Listening,
    /// Nobody else uses the directory as long as this is held.
    _held: Held,
}

impl ServeArguments {
    /// Opens the server and starts to listen.
    pub(crate) async fn open(
        &self,
        admission: Admission,
        controllers: RunningControllers,
    ) -> anyhow::Result<Serving> {
        let is_local = self.listen.ip().is_loopback();
        anyhow::ensure!(
            is_local || self.allow_remote,
            "{} can be reached from other machines; say --allow-remote if that is meant",
            self.listen
        );
        let env = Env::real();
        windlass_server::make_directory(&self.data)
            .with_context(|| format!("cannot use data directory {}", self.data.display()))?;
        let mut held = Held::take(&self.data)?;
        let mut options = self.options(&env, admission)?;
        let client_authorities = self.access.client_authorities()?;
        let prepared = options.prepare();
        prepared.map_err(|error| self.explain_open(error))?;
        let mut hosts = self.hosts.clone();
        hosts.push(self.listen.ip().to_string());
        // Keys are made while the store reads its data.
        let certificates = tokio::task::spawn_blocking({
            let (data, hosts, env) = (self.data.clone(), hosts.clone(), env.clone());
            let is_kept = !self.memory;
            move || match is_kept {
                true => Certificates::in_directory(&data, &hosts, &env),
                false => Certificates::in_memory(&hosts, &env),
            }
        });
        options.resource_metrics = controllers.runs(node::NAME);
        options.controllers = controllers;
        let server = Server::open(options).await;
        let server = server.map_err(|error| self.explain_open(error))?;
        let mut certificates = certificates.await??;
        certificates.client_authorities = client_authorities;
        let listening = serve(server.clone(), self.listen, &certificates, &hosts).await;
        let listening = listening.map_err(explain_serve)?;
        let url = format!("https://{}", listening.address());
        let path = self.kubeconfig.clone();
        let path = path.unwrap_or_else(|| self.data.join("kubeconfig"));
        let text = kubeconfig(&url, &certificates, server.admin_token());
        match windlass_server::write_private_file_at_start(&path, text.as_bytes()) {
            // What is stored can be read all the same.
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                tracing::error!(%error, "the kubeconfig {} is not up to date", path.display());
            }
            written => written.with_context(|| format!("cannot write {}", path.display()))?,
        }
        if self.merge {
            merge::into_own(&text)?;
        }
        held.sign(&url, &path)?;
        Ok(Serving {
            server,
            env,
            url,
            kubeconfig: path,
            signer: certificates.signer.clone(),
            listening,
            _held: held,
        })
    }

    /// What somebody can do about data that cannot be opened.
    fn explain_open(&self, error: ServerError) -> anyhow::Error {
        let hint = match &error {
            ServerError::Store(OpenError::Newer { .. }) => format!(
                "data directory {} was written by a newer windlass; use that one, or choose \
                 another directory with --data",
                self.data.display()
            ),
            ServerError::Audit { .. } => {
                "choose another file with --audit-log-path, or \"-\" for the standard output".into()
            }
            _ => format!("data directory {} cannot be used", self.data.display()),
        };
        anyhow::Error::new(error).context(hint)
    }

    fn options(&self, env: &Env, admission: Admission) -> anyhow::Result<ServerOptions> {
        let mut options = match self.memory {
            true => ServerOptions::memory(env.clone()),
            false => ServerOptions::directory(env.clone(), &self.data),
        };
        options.durability = match self.durability {
            Durability::Full => windlass_store::Durability::Full,
            Durability::None => windlass_store::Durability::None,
        };
        options.quota_bytes = Some(self.quota_backend_bytes);
        let keys = self.encryption_key.as_deref().map(commands::read_keys);
        options.encryption = keys.transpose()?;
        options.audit = self.audit.options()?;
        options.admission = admission;
        self.access.apply(&mut options)?;
        Ok(options)
    }
}

/// What somebody can do about an address that cannot be listened on.
fn explain_serve(error: ServeError) -> anyhow::Error {
    let is_taken = matches!(
        &error,
        ServeError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse
    );
    let error = anyhow::Error::new(error);
    match is_taken {
        true => error.context(
            "the port is taken; choose another with --listen, or leave it out for any free one",
        ),
        false => error,
    }
}

impl Serving {
    /// Says where the server is and how to reach it.
    pub(crate) fn announce(&self, hints: &str) {
        let (url, path) = (&self.url, self.kubeconfig.display());
        // The server is of use even if nobody reads about it.
        let text = format!("serving {url}\nkubeconfig {path}\n{hints}");
        let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    }

    /// Answers requests until `stop` is ready.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let server = self.server.clone();
        let maintenance = tokio::spawn(async move { server.maintain().await });
        let stop = async move {
            stop.await;
            maintenance.abort();
        };
        self.listening.run(stop).await;
    }

    /// How the kubeconfig is named to the commands of this program, which find the usual one.
    pub(crate) fn flag(&self) -> String {
        match self.kubeconfig == Path::new(".windlass/kubeconfig") {
            true => String::new(),
            false => format!(" --kubeconfig {}", self.kubeconfig.display()),
        }
    }
}
