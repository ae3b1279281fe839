//! The cluster of one run: in memory, on a free port of loopback, gone with the run.

use std::path::PathBuf;

use anyhow::Context as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_client::{DiscoveryClient, Patch, RestClient, RestOptions, Transport, WriteOptions};
use windlass_controllers::catalog;
use windlass_core::{Doc, Env};
use windlass_faults::{FaultPlan, FaultRule};
use windlass_server::{
    Certificates, Listening, RunningControllers, Server, ServerOptions, User, kubeconfig,
};

use super::{Arguments, objects};
use crate::commands::{Manifest, read_manifests};
use crate::stand_in;
use crate::up::{self, Controllers};

/// The field manager of what is applied before the command starts.
const MANAGER: &str = "windlass";

/// Devices of each node.
const DEVICES: usize = 8;

/// The cluster of one run.
pub(super) struct TestCluster {
    pub(super) client: RestClient,
    pub(super) plan: FaultPlan,
    pub(super) controllers: Option<Controllers>,
    /// The objects from before the command.
    pub(super) first_objects: Vec<Doc>,
    directory: Directory,
    has_own_clusters: bool,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn make(env: &Env) -> anyhow::Result<Self> {
        let name = format!("windlass-test-{:016x}", env.random_u64());
        let path = std::env::temp_dir().join(name);
        windlass_server::make_directory(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Whatever stays is in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl TestCluster {
    /// Starts a cluster and applies the objects that were asked for.
    pub(super) async fn start(
        arguments: &Arguments,
        rules: Vec<FaultRule>,
    ) -> anyhow::Result<Self> {
        let chosen = catalog::select_embedded(&arguments.controllers)?;
        let (env, plan) = (Env::real(), FaultPlan::new(rules));
        let certificates = tokio::task::spawn_blocking({
            let env = env.clone();
            move || Certificates::in_memory(&[], &env)
        });
        let server = Server::open(options(&env, &chosen, &plan)).await?;
        let certificates = certificates.await??;
        let address = ([127, 0, 0, 1], 0).into();
        let listening = windlass_server::serve(server.clone(), address, &certificates, &[]).await?;
        let directory = Directory::make(&env)?;
        let url = format!("https://{}", listening.address());
        let text = kubeconfig(&url, &certificates, server.admin_token());
        windlass_server::write_private_file(&directory.0.join("kubeconfig"), text.as_bytes())?;
        stand_in::write_assets(&directory.0.join("assets"), false)?;
        let controllers = match chosen.is_empty() {
            true => None,
            false => {
                let (nodes, signer) = (arguments.nodes, &certificates.signer);
                let settings = up::embedded_settings(nodes, DEVICES, &server, signer);
                Some(Controllers::start(&server, &env, &chosen, &settings)?)
            }
        };
        let transport = Transport::new(server.doc_service(User::admin()));
        let (stop, serving) = serve_in_background(server, listening);
        let mut cluster = Self {
            client: RestClient::new(transport, RestOptions::default()),
            plan,
            controllers,
            first_objects: Vec::new(),
            directory,
            has_own_clusters: arguments.own_clusters,
            stop,
            serving,
        };
        cluster.apply(&read(&arguments.crds)?).await?;
        cluster.apply(&read(&arguments.apply)?).await?;
        if arguments.explore || arguments.report.is_some() {
            cluster.first_objects = objects::all(&cluster.client).await?;
        }
        Ok(cluster)
    }

    /// The variables by which the command finds the cluster.
    pub(super) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut variables = vec![
            ("KUBECONFIG", self.directory.0.join("kubeconfig")),
            ("KUBEBUILDER_ASSETS", self.directory.0.join("assets")),
        ];
        if !self.has_own_clusters {
            variables.push(("USE_EXISTING_CLUSTER", "true".into()));
        }
        variables
    }

    /// Ends the cluster.
    pub(super) async fn stop(self) {
        if let Some(controllers) = self.controllers {
            controllers.stop().await;
        }
        drop(self.stop);
        // A server that panicked has ended as well.
        let _ = self.serving.await;
    }

    async fn apply(&self, manifests: &[Manifest]) -> anyhow::Result<()> {
        if manifests.is_empty() {
            return Ok(());
        }
        let discovery = DiscoveryClient::new(self.client.clone());
        let options = WriteOptions {
            is_forced: true,
            ..WriteOptions::manager(MANAGER)
        };
        for manifest in manifests {
            let object = &manifest.object;
            let kind = object
                .gvk()
                .context("apiVersion and kind must both be set")?;
            let applied = async {
                let resource = discovery.resource_of(&kind).await?;
                let api = windlass_client::DynamicClient::new(self.client.clone())
                    .resource(resource.gvr.clone());
                let api = match (resource.is_namespaced, object.meta().namespace()) {
                    (false, _) => api,
                    (true, "") => api.namespaced("default"),
                    (true, namespace) => api.namespaced(namespace),
                };
                let patch = Patch::Apply(object.clone());
                api.patch(object.meta().name(), &patch, &options).await?;
                anyhow::Ok(())
            };
            applied.await.with_context(|| manifest.source.clone())?;
        }
        Ok(())
    }
}

fn options(env: &Env, chosen: &[&catalog::Entry], plan: &FaultPlan) -> ServerOptions {
    let mut options = ServerOptions::memory(env.clone());
    options.admission = up::admission(chosen);
    if !chosen.is_empty() {
        options.controllers = RunningControllers::of(chosen.iter().map(|entry| entry.name));
    }
    options.resource_metrics = catalog::has_pretend_nodes(chosen);
    options.faults = Some(plan.clone());
    options
}

/// Answers requests until the sender is dropped.
fn serve_in_background(
    server: Server,
    listening: Listening,
) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let maintenance = tokio::spawn(async move { server.maintain().await });
        let ended = async {
            // The end of the sender is a sign as good as its word.
            let _ = stopped.await;
        };
        listening.run(ended).await;
        maintenance.abort();
    });
    (stop, serving)
}

fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    match files.is_empty() {
        true => Ok(Vec::new()),
        false => read_manifests(files),
    }
}
