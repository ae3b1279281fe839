//! `windlass up`: a server and its controllers. `windlass server`: the server alone.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::task::JoinHandle;
use windlass_client::{RestOptions, Transport};
use windlass_controllers::catalog::{self, Settings};
use windlass_controllers::{
    certificates::SigningAuthority, node, service_account, service_account_tokens::TokenSource,
};
use windlass_core::{Doc, Env, Key};
use windlass_runtime::{Manager, ManagerHandle, Shutdown};
use windlass_server::{Admission, Identity, RunningControllers, Server, User};

use crate::background;
use crate::demo;
use crate::serve::{self, Serving};
use crate::shutdown::Signals;

/// Sets and Deployments that are worked on at the same time: their writes wait for the disk
/// together. There is no network between them and the server that many could overrun.
const WORKERS: usize = 20;

/// Options of `up`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    serve: serve::ServeArguments,
    /// Controllers to run: "*" for all, "name" for one, "-name" for all but one.
    #[arg(
        long,
        env = "WINDLASS_CONTROLLERS",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    controllers: Vec<String>,
    /// How many nodes there are. No container runs on them.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    nodes: usize,
    /// How many devices each node has, for ResourceClaims.
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    devices: usize,
    /// Apply a Deployment and pods that ask for devices, and show what becomes of them.
    #[arg(long)]
    demo: bool,
    /// Go to the background once it serves; `windlass down` ends it.
    #[arg(long)]
    detach: bool,
}

impl Arguments {
    /// What is logged unless the environment says otherwise. Lines between those of a live picture
    /// would spoil it.
    pub(crate) fn log_level(&self) -> &'static str {
        let is_live = self.demo && std::io::stdout().is_terminal();
        if is_live { "error" } else { "info" }
    }
}

/// Runs a server and its controllers until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let chosen = catalog::select_embedded(&arguments.controllers)?;
    if arguments.detach {
        return background::detach(&arguments.serve.data);
    }
    runtime()?.block_on(async {
        let signals = Signals::listen()?;
        let serving = arguments
            .serve
            .open(admission(&chosen), running(&chosen))
            .await?;
        let Arguments { nodes, devices, .. } = *arguments;
        let settings = embedded_settings(nodes, devices, &serving.server, &serving.signer);
        let controllers = Controllers::start(&serving.server, &serving.env, &chosen, &settings)?;
        serving.announce(&match arguments.demo {
            // It has its own, for when there is something to see.
            true => String::new(),
            false => hints(&serving),
        });
        let demo = arguments.demo.then(|| {
            let has_nodes = chosen.iter().any(|entry| entry.name == node::NAME);
            demo::start(&serving, if has_nodes { arguments.nodes } else { 0 })
        });
        let stop = async move {
            signals.requested().await;
            if let Some(demo) = demo {
                demo.abort();
            }
            // Controllers first: they would take the end of the server for a failure.
            controllers.stop().await;
        };
        serving.run(stop).await;
        Ok(())
    })
}

/// Runs a server alone until a signal comes.
pub(crate) fn run_server(arguments: &serve::ServeArguments) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let signals = Signals::listen()?;
        let serving = arguments
            .open(Admission::default(), RunningControllers::default())
            .await?;
        let path = serving.kubeconfig.display();
        serving.announce(&format!(
            "try: kubectl --kubeconfig {path} get namespaces\n"
        ));
        serving.run(signals.requested()).await;
        Ok(())
    })
}

/// Tasks that a busy thread polls before it looks at its sockets again. Tokio's 61 would let a
/// request lie unseen for milliseconds while another client keeps the thread busy.
const EVENT_INTERVAL: u32 = 1;

/// The runtime of a server.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()
}

/// The controllers that the server may count on.
fn running(chosen: &[&catalog::Entry]) -> RunningControllers {
    RunningControllers::of(chosen.iter().map(|entry| entry.name))
}

/// Pods get a service account where somebody makes one for each namespace; volumes and claims get
/// finalizers where somebody takes them away.
pub(crate) fn admission(chosen: &[&catalog::Entry]) -> Admission {
    let service_accounts = chosen
        .iter()
        .any(|entry| entry.name == service_account::NAME);
    Admission {
        service_accounts,
        storage_protection: catalog::protects_storage(chosen),
        ..Admission::default()
    }
}

/// The settings of controllers in the process of their server, whose authority is the signer.
pub(crate) fn embedded_settings(
    nodes: usize,
    devices: usize,
    server: &Server,
    signer: &Identity,
) -> Settings {
    let mut settings = Settings::default();
    settings.node.nodes = nodes;
    settings.driver.devices_per_node = devices;
    settings.root_ca.root_ca.clone_from(&signer.certificate);
    settings.certificates.authority = authority(signer);
    let tokens = &mut settings.service_account_tokens;
    tokens.root_ca.clone_from(&signer.certificate);
    tokens.source = Some(Arc::new(ServerTokens(server.clone())));
    // There is no other API server that would have to hear of the deletion first.
    settings.namespace.grace = Duration::ZERO;
    settings.replicaset.workers = WORKERS;
    settings.deployment.workers = WORKERS;
    settings
}

/// The authority of the server, which signs what is asked for in its API.
fn authority(signer: &Identity) -> Option<SigningAuthority> {
    let authority = SigningAuthority::from_pem(&signer.certificate, &signer.key);
    authority
        .inspect_err(|error| tracing::error!(%error, "certificates are not signed"))
        .ok()
}

/// Tokens that the server beside accepts.
struct ServerTokens(Server);

impl TokenSource for ServerTokens {
    fn sign(&self, claims: &Doc) -> Option<String> {
        self.0.sign_token(claims)
    }
}

fn hints(serving: &Serving) -> String {
    let flag = serving.flag();
    let path = serving.kubeconfig.display();
    format!(
        "try: kubectl --kubeconfig {path} create deployment web --image=nginx --replicas=3\n\
         \x20    windlass get pods -w{flag}\n\
         \x20    windlass why deployment/web{flag}\n\n"
    )
}

/// The controllers beside a server.
pub(crate) struct Controllers {
    /// Tells what the controllers did.
    pub(crate) handle: ManagerHandle,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Controllers {
    /// Starts controllers, which are users of the server like any other.
    pub(crate) fn start(
        server: &Server,
        env: &Env,
        chosen: &[&catalog::Entry],
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let user = User::new("system:kube-controller-manager", &["system:masters"]);
        let shutdown = Shutdown::new();
        let manager = Manager::builder("windlass")
            .transport(
                Transport::new(server.doc_service(user)),
                RestOptions::default(),
            )
            .env(env.clone())
            .shutdown(shutdown.clone())
            .build()?;
        for entry in chosen {
            entry.add_to(&manager, settings);
        }
        let handle = manager.handle();
        let (metrics, journal) = (handle.clone(), handle.clone());
        server.add_page("/metrics/controllers", move |_| metrics.metrics_text());
        server.add_page("/debug/windlass/why", move |parameters| {
            let key = parameters.iter().find(|(name, _)| name == "key");
            let key = key.and_then(|(_, value)| value.parse::<Key>().ok());
            key.map_or_else(String::new, |key| journal.why(&key))
        });
        let task = tokio::spawn(async move {
            if let Err(error) = manager.run().await {
                tracing::error!(%error, "the controllers ended");
            }
        });
        Ok(Self {
            handle,
            shutdown,
            task,
        })
    }

    /// Ends the controllers, within their grace period.
    pub(crate) async fn stop(self) {
        self.shutdown.trigger();
        // What it came to has been logged.
        let _ = self.task.await;
    }
}
