//! `windlass up`: a server, its controllers and a kubeconfig.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tokio::task::JoinHandle;
use windlass_client::{RestClient, RestOptions, Transport};
use windlass_controllers::ReplicaSetController;
use windlass_core::Env;
use windlass_server::{Certificates, Server, ServerOptions, User, kubeconfig, serve};

use crate::shutdown;

/// Options of `up` and `server`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Where objects, keys and certificates are kept.
    #[arg(long, value_name = "DIR", default_value = ".windlass")]
    data: PathBuf,
    /// Where the kubeconfig is written [default: kubeconfig in the data directory].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The address to listen on; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Further host names under which the server is reached.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Listen on an address that other machines reach.
    #[arg(long)]
    allow_remote: bool,
    /// What a write waits for.
    #[arg(long, value_enum, default_value_t = Durability::Full)]
    durability: Durability,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Durability {
    /// The disk has it.
    Full,
    /// Nothing: the last writes are lost when the process dies.
    None,
}

/// Which controllers run beside the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controllers {
    /// All that are built in.
    Built,
    /// None.
    None,
}

/// Runs until a signal comes.
pub(crate) fn run(arguments: &Arguments, controllers: Controllers) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(up(arguments, controllers))
}

async fn up(arguments: &Arguments, controllers: Controllers) -> anyhow::Result<()> {
    let is_local = arguments.listen.ip().is_loopback();
    anyhow::ensure!(
        is_local || arguments.allow_remote,
        "{} can be reached from other machines; say --allow-remote if that is meant",
        arguments.listen
    );
    let env = Env::real();
    let data = &arguments.data;
    windlass_server::make_directory(data)
        .with_context(|| format!("cannot use data directory {}", data.display()))?;
    let mut options = ServerOptions::directory(env.clone(), data);
    options.durability = match arguments.durability {
        Durability::Full => windlass_store::Durability::Full,
        Durability::None => windlass_store::Durability::None,
    };
    let mut hosts = arguments.hosts.clone();
    hosts.push(arguments.listen.ip().to_string());
    // Keys are made while the store reads its data.
    let certificates = tokio::task::spawn_blocking({
        let (data, hosts, env) = (data.clone(), hosts.clone(), env.clone());
        move || Certificates::in_directory(&data, &hosts, &env)
    });
    let server = Server::open(options).await?;
    let certificates = certificates.await??;
    let listening = serve(server.clone(), arguments.listen, &certificates, &hosts).await?;
    let url = format!("https://{}", listening.address());
    let path = arguments
        .kubeconfig
        .clone()
        .unwrap_or_else(|| data.join("kubeconfig"));
    let text = kubeconfig(&url, &certificates, server.admin_token());
    windlass_server::write_private_file(&path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    announce(&url, &path);
    let maintenance = tokio::spawn({
        let server = server.clone();
        async move { server.maintain().await }
    });
    let background = start(controllers, &server, &env);
    let stop = async move {
        shutdown::requested().await;
        // Controllers first: they would take the end of the server for a failure.
        maintenance.abort();
        background.into_iter().for_each(|task| task.abort());
    };
    listening.run(stop).await;
    Ok(())
}

fn announce(url: &str, kubeconfig: &Path) {
    let path = kubeconfig.display();
    let text = format!(
        "serving {url}\nkubeconfig {path}\ntry: kubectl --kubeconfig {path} get namespaces\n"
    );
    // The server is of use even if nobody reads about it.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Starts the controllers, each as a user of the server like any other.
fn start(controllers: Controllers, server: &Server, env: &Env) -> Vec<JoinHandle<()>> {
    if controllers == Controllers::None {
        return Vec::new();
    }
    let user = User::new("system:kube-controller-manager", &[]);
    let transport = Transport::http(server.as_user(user));
    let client = RestClient::new(transport, RestOptions::default());
    let sets = ReplicaSetController::new(client, env.clone());
    vec![tokio::spawn(async move {
        if let Err(error) = sets.run().await {
            tracing::error!(%error, "the replica set controller ended");
        }
    })]
}
