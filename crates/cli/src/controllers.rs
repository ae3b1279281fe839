//! `windlass controllers`: the controllers on any cluster, beside or instead of its own.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use windlass_controllers::{
    catalog::{self, Settings},
    certificates::SigningAuthority,
    pod_gc,
};
use windlass_core::Gvr;
use windlass_runtime::{BuildError, ConcurrencyFlags, Flags};

use tokio::runtime::Builder;

use crate::commands::explain_config;

/// The name of the Lease, of the user agent and of events.
const NAME: &str = "windlass-controllers";

const PODS: Gvr = Gvr::constant("", "v1", "pods");

/// Threads at most. Controllers wait for the API server most of the time; what they do in between
/// is over sooner than another thread is woken for it.
const THREADS_LIMIT: usize = 4;

/// Options of `controllers`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    concurrency: ConcurrencyFlags,
    /// The certificate authority that is published in every namespace, as PEM.
    #[arg(long, env = "WINDLASS_ROOT_CA_FILE", value_name = "FILE")]
    root_ca_file: Option<PathBuf>,
    /// The certificate of the authority that signs requests for certificates, as PEM.
    #[arg(
        long,
        env = "WINDLASS_CLUSTER_SIGNING_CERT_FILE",
        value_name = "FILE",
        requires = "cluster_signing_key_file"
    )]
    cluster_signing_cert_file: Option<PathBuf>,
    /// The key of that authority, as PKCS #8 in PEM.
    #[arg(
        long,
        env = "WINDLASS_CLUSTER_SIGNING_KEY_FILE",
        value_name = "FILE",
        requires = "cluster_signing_cert_file"
    )]
    cluster_signing_key_file: Option<PathBuf>,
    /// Pods that have ended and are kept; 0 for all.
    #[arg(
        long,
        env = "WINDLASS_TERMINATED_POD_GC_THRESHOLD",
        value_name = "NUMBER",
        default_value_t = pod_gc::TERMINATED_LIMIT
    )]
    terminated_pod_gc_threshold: usize,
}

impl Arguments {
    /// The authority that signs requests for certificates, if there is one.
    fn authority(&self) -> anyhow::Result<Option<SigningAuthority>> {
        let files = (
            &self.cluster_signing_cert_file,
            &self.cluster_signing_key_file,
        );
        let (Some(certificate_file), Some(key_file)) = files else {
            return Ok(None);
        };
        let read = |file: &PathBuf| {
            std::fs::read_to_string(file).with_context(|| file.display().to_string())
        };
        let authority = SigningAuthority::from_pem(&read(certificate_file)?, &read(key_file)?);
        let names = format!("{} and {}", certificate_file.display(), key_file.display());
        authority.context(names).map(Some)
    }
}

/// Runs controllers until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let chosen = catalog::select(&arguments.flags.controllers)?;
    let mut settings = Settings::default();
    let concurrency = &arguments.concurrency;
    settings.replicaset.workers = concurrency.concurrent_replicaset_syncs;
    settings.deployment.workers = concurrency.concurrent_deployment_syncs;
    settings.daemonset.workers = concurrency.concurrent_daemonset_syncs;
    settings.statefulset.workers = concurrency.concurrent_statefulset_syncs;
    settings.job.workers = concurrency.concurrent_job_syncs;
    settings.cronjob.workers = concurrency.concurrent_cron_job_syncs;
    settings.ttl_after_finished.workers = concurrency.concurrent_ttl_after_finished_syncs;
    settings.endpoints.workers = concurrency.concurrent_endpoint_syncs;
    settings.endpointslice.workers = concurrency.concurrent_service_endpoint_syncs;
    settings.endpointslice_mirroring.workers =
        concurrency.mirroring_concurrent_service_endpoint_syncs;
    settings.garbage_collector.workers = concurrency.concurrent_gc_syncs;
    settings.namespace.workers = concurrency.concurrent_namespace_syncs;
    settings.claims.workers = concurrency.concurrent_resource_claim_syncs;
    settings.resourcequota.workers = concurrency.concurrent_resource_quota_syncs;
    if let Some(file) = &arguments.root_ca_file {
        let root_ca = std::fs::read_to_string(file);
        settings.root_ca.root_ca = root_ca.with_context(|| file.display().to_string())?;
    }
    settings.pod_gc.terminated_limit = arguments.terminated_pod_gc_threshold;
    settings.certificates.authority = arguments.authority()?;
    let mut runtime = match threads() {
        // The only thread there is wakes nobody.
        1 => Builder::new_current_thread(),
        threads => {
            let mut runtime = Builder::new_multi_thread();
            runtime.worker_threads(threads);
            runtime
        }
    };
    runtime.enable_all().build()?.block_on(async {
        let builder = arguments.flags.builder(NAME).await.map_err(explain)?;
        let builder = builder.prune(PODS, catalog::prune_pods(&chosen));
        let manager = builder.build()?;
        for entry in chosen {
            entry.add_to(&manager, &settings);
        }
        Ok(manager.run().await?)
    })
}

/// A quarter of the processors, and one at least: the API server is the better use for the others
/// where it runs beside.
fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / 4).clamp(1, THREADS_LIMIT)
}

fn explain(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Config(error) => explain_config(error),
        error => error.into(),
    }
}
