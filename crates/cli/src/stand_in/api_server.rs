//! The stand-in for `kube-apiserver`: the API server of this program, with the flags, files and
//! log lines of the original.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use windlass_controllers::catalog;
use windlass_core::Env;
use windlass_server::{
    Admission, Certificates, FaultPlan, Identity, Listening, RunningControllers, ServeError,
    Server, ServerOptions, TokenOptions,
};
use windlass_store::Durability;

use super::etcd_http::{self, DataPlace};
use super::flags::{CommandLine, Dialect, Effect, Flag, GivenFlags, help};
use super::klog::KlogFormat;
use crate::access::AccessArguments;
use crate::audit::AuditArguments;
use crate::up::{self, Controllers};

const FLAGS: &str = include_str!("kube_apiserver_flags.txt");

/// The variable that names the controllers to run beside the server; none if absent, because tests
/// that were written for envtest rely on their absence.
const CONTROLLERS_VARIABLE: &str = "WINDLASS_CONTROLLERS";
/// The variable with rules of faults, separated by semicolons.
pub(crate) const FAULTS_VARIABLE: &str = "WINDLASS_FAULTS";

/// The directory inside that of etcd where the objects are.
const DATA_NAME: &str = "windlass";

/// The time in which etcd has to answer, and the pause between two questions.
const ETCD_TIMEOUT: Duration = Duration::from_secs(20);
const ETCD_PERIOD: Duration = Duration::from_millis(50);

/// Upstream's default port.
const PORT: u16 = 6443;

/// Nodes, if controllers run at all.
const NODES: usize = 3;

/// The flags that `windlass server` has under the same names.
#[derive(Debug, Parser)]
struct SharedFlags {
    #[command(flatten)]
    access: AccessArguments,
    #[command(flatten)]
    audit: AuditArguments,
}

/// Runs until a signal comes.
pub(super) fn run(words: &[String]) -> ExitCode {
    let table = Flag::table(FLAGS);
    let given = match CommandLine::read("kube-apiserver", &table, Dialect::Pflag, words) {
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
        Ok(CommandLine::Help) => {
            println!(
                "Usage:\n  kube-apiserver [flags]\n\nFlags:\n\n{}",
                help(&table)
            );
            return ExitCode::SUCCESS;
        }
        Ok(CommandLine::Version) => {
            println!("Kubernetes v1.36.4");
            return ExitCode::SUCCESS;
        }
        Ok(CommandLine::Run(given)) => given,
    };
    let env = Env::real();
    log(&env, &given);
    match start(&env, &table, &given) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", KlogFormat::new(env).failure(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// Starts the log. From `-v 4` on, it tells more, as that of the original.
fn log(env: &Env, given: &GivenFlags) {
    let verbosity: u32 = given.last("v").and_then(|v| v.parse().ok()).unwrap_or(0);
    let level = if verbosity >= 4 { "debug" } else { "info" };
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(format!("{level},h2=error")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .event_format(KlogFormat::new(env.clone()))
        .with_writer(std::io::stderr)
        .init();
}

fn start(env: &Env, table: &[Flag], given: &GivenFlags) -> anyhow::Result<()> {
    check(given)?;
    let shared = shared_flags(given)?;
    for name in given.with_effect(table, Effect::Ignored) {
        if !is_shared(name) {
            tracing::warn!("the flag --{name} is accepted, and has no effect here");
        }
    }
    let modes = given.list("authorization-mode");
    if !modes.iter().any(|mode| mode == "RBAC") {
        tracing::warn!("authorization is by RBAC, whatever --authorization-mode says");
    }
    up::runtime()?.block_on(serve(env, given, &shared))
}

/// The refusals of upstream that a caller is likely to meet, in its words.
fn check(given: &GivenFlags) -> anyhow::Result<()> {
    let mut errors = Vec::new();
    let mut require = |is_fine: bool, error: &str| {
        if !is_fine {
            errors.push(error.to_owned());
        }
    };
    let has = |name: &str| given.last(name).is_some_and(|value| !value.is_empty());
    require(has("etcd-servers"), "--etcd-servers must be specified");
    let port: Option<i64> = given.last("secure-port").and_then(|port| port.parse().ok());
    let port = port.unwrap_or(PORT.into());
    let range = format!(
        "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
    );
    require((1..=65_535).contains(&port), &range);
    require(
        has("service-account-issuer"),
        "service-account-issuer is a required flag",
    );
    require(
        has("service-account-key-file") || has("service-account-signing-endpoint"),
        "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set",
    );
    require(
        has("service-account-signing-key-file") && has("service-account-issuer"),
        "--service-account-signing-key-file and --service-account-issuer are required flags",
    );
    match errors.as_slice() {
        [] => Ok(()),
        [one] => anyhow::bail!("{one}"),
        many => anyhow::bail!("[{}]", many.join(", ")),
    }
}

/// Returns true if `windlass server` has a flag of this name.
fn is_shared(name: &str) -> bool {
    let command = SharedFlags::command();
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_long() == Some(name))
}

/// The flags that `windlass server` has under the same names, read as there.
fn shared_flags(given: &GivenFlags) -> anyhow::Result<SharedFlags> {
    let command = SharedFlags::command();
    let mut words = vec!["kube-apiserver".to_owned()];
    for name in command.get_arguments().filter_map(clap::Arg::get_long) {
        let value = match name {
            // The second network of a cluster with two address families is not served.
            "service-cluster-ip-range" => given.list(name).into_iter().next(),
            "enable-admission-plugins" | "disable-admission-plugins" => {
                Some(given.list(name).join(","))
            }
            _ => given.last(name).map(str::to_owned),
        };
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            words.push(format!("--{name}={value}"));
        }
    }
    Ok(SharedFlags::try_parse_from(words)?)
}

async fn serve(env: &Env, given: &GivenFlags, shared: &SharedFlags) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let chosen = std::env::var(CONTROLLERS_VARIABLE).unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').filter(|name| !name.is_empty()).collect();
    let chosen = catalog::select_embedded(&chosen)?;
    let data = data_directory(given).await?;
    let mut options = server_options(env, given, data.as_ref())?;
    shared.access.apply(&mut options)?;
    options.audit = shared.audit.options()?;
    if !chosen.is_empty() {
        options.controllers = RunningControllers::of(chosen.iter().map(|entry| entry.name));
    }
    // Keys are made after it is known that the directory can hold a cluster.
    options.prepare()?;
    let hosts = hosts(given);
    let mut certificates = match &options.data {
        Some(directory) => Certificates::in_directory(directory, &hosts, env)?,
        None => Certificates::in_memory(&hosts, env)?,
    };
    certificates.serving = serving_identity(given, &certificates.serving)?;
    certificates.client_authorities = shared.access.client_authorities()?;
    let server = Server::open(options).await?;
    let address = address(given)?;
    let listening = windlass_server::serve(server.clone(), address, &certificates, &hosts).await;
    let listening = listening.map_err(|error| explain(address, error))?;
    tracing::info!("Serving securely on {}", listening.address());
    let controllers = match chosen.is_empty() {
        true => None,
        false => {
            let settings = up::embedded_settings(NODES, 0, &server, &certificates.signer);
            Some(Controllers::start(&server, env, &chosen, &settings)?)
        }
    };
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if let Some(controllers) = controllers {
            controllers.stop().await;
        }
    };
    answer(server, listening, stop).await;
    Ok(())
}

async fn answer(server: Server, listening: Listening, stop: impl Future<Output = ()>) {
    let maintenance = tokio::spawn(async move { server.maintain().await });
    listening.run(stop).await;
    maintenance.abort();
    tracing::info!("[graceful-termination] apiserver is exiting");
}

/// The directory of the objects, inside that of the etcd that the flags name; none if that is a
/// real etcd, which this server cannot write to.
async fn data_directory(given: &GivenFlags) -> anyhow::Result<Option<DataPlace>> {
    let url = given.list("etcd-servers").into_iter().next();
    let url = url.context("--etcd-servers must be specified")?;
    let Ok(address) = super::etcd::address(&url) else {
        tracing::warn!("objects are kept in memory: {url} is not the stand-in for etcd");
        return Ok(None);
    };
    let asking = async {
        loop {
            if let Ok(place) = etcd_http::ask(address).await {
                return place;
            }
            tokio::time::sleep(ETCD_PERIOD).await;
        }
    };
    let place = tokio::time::timeout(ETCD_TIMEOUT, asking).await;
    let place = place.with_context(|| format!("etcd at {url} does not answer"))?;
    if place.is_none() {
        tracing::warn!("objects are kept in memory: {url} is not the stand-in for etcd");
    }
    Ok(place.map(|place| DataPlace {
        directory: place.directory.join(DATA_NAME),
        ..place
    }))
}

fn server_options(
    env: &Env,
    given: &GivenFlags,
    data: Option<&DataPlace>,
) -> anyhow::Result<ServerOptions> {
    let mut options = match data {
        Some(place) => {
            windlass_server::make_directory(&place.directory)?;
            ServerOptions::directory(env.clone(), &place.directory)
        }
        None => ServerOptions::memory(env.clone()),
    };
    if data.is_some_and(|place| place.is_unsynced) {
        options.durability = Durability::None;
    }
    // The plug-ins that upstream has switched on unless a flag says otherwise.
    options.admission = Admission {
        service_accounts: true,
        node_taints: true,
        storage_protection: true,
        ..Admission::default()
    };
    let keys = given.all("service-account-key-file");
    let keys: anyhow::Result<Vec<String>> = keys.iter().map(|path| read(Path::new(path))).collect();
    let signing_key = given.last("service-account-signing-key-file");
    let signing_key = signing_key.map(|path| read(Path::new(path)));
    options.tokens = TokenOptions {
        issuers: given.all("service-account-issuer"),
        audiences: given.list("api-audiences"),
        signing_key: signing_key.transpose()?,
        keys: keys?,
    };
    options.faults = faults()?;
    Ok(options)
}

/// The faults of the environment; none unless the variable is there.
fn faults() -> anyhow::Result<Option<FaultPlan>> {
    let Ok(text) = std::env::var(FAULTS_VARIABLE) else {
        return Ok(None);
    };
    let rules = text
        .split(';')
        .map(str::trim)
        .filter(|rule| !rule.is_empty());
    let rules: Result<Vec<_>, _> = rules.map(str::parse).collect();
    let rules = rules.with_context(|| format!("cannot read {FAULTS_VARIABLE}"))?;
    Ok(Some(FaultPlan::new(rules)))
}

/// The address to listen on. The original listens on all unless told; here it is loopback, because
/// the stand-in serves tests.
fn address(given: &GivenFlags) -> anyhow::Result<SocketAddr> {
    let ip = given.last("bind-address").unwrap_or("127.0.0.1").trim();
    let ip: IpAddr = ip
        .parse()
        .with_context(|| format!("failed to parse IP: {ip:?}"))?;
    let port = given.last("secure-port").map(str::parse).transpose()?;
    Ok(SocketAddr::new(ip, port.unwrap_or(PORT)))
}

/// Host names under which the server is reached.
fn hosts(given: &GivenFlags) -> Vec<String> {
    ["bind-address", "advertise-address", "external-hostname"]
        .into_iter()
        .filter_map(|name| given.last(name))
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The serving certificate: that of the flags, that of the certificate directory, or the one made
/// here, which is then written to that directory.
fn serving_identity(given: &GivenFlags, made: &Identity) -> anyhow::Result<Identity> {
    let named = |name| given.last(name).map(PathBuf::from);
    if let (Some(certificate), Some(key)) = (named("tls-cert-file"), named("tls-private-key-file"))
    {
        return identity(&certificate, &key);
    }
    let directory = given.last("cert-dir").unwrap_or("/var/run/kubernetes");
    let directory = Path::new(directory);
    let (certificate, key) = (
        directory.join("apiserver.crt"),
        directory.join("apiserver.key"),
    );
    if certificate.exists() && key.exists() {
        return identity(&certificate, &key);
    }
    windlass_server::make_directory(directory)
        .with_context(|| format!("cannot use certificate directory {}", directory.display()))?;
    windlass_server::write_private_file(&certificate, made.certificate.as_bytes())?;
    windlass_server::write_private_file(&key, made.key.as_bytes())?;
    tracing::info!(
        "Generated self-signed cert ({}, {})",
        certificate.display(),
        key.display()
    );
    Ok(made.clone())
}

fn identity(certificate: &Path, key: &Path) -> anyhow::Result<Identity> {
    Ok(Identity {
        certificate: read(certificate)?,
        key: read(key)?,
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn explain(address: SocketAddr, error: ServeError) -> anyhow::Error {
    match &error {
        ServeError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            anyhow::anyhow!(
                "failed to create listener: failed to listen on {address}: listen tcp {address}: \
                 bind: address already in use"
            )
        }
        _ => error.into(),
    }
}
