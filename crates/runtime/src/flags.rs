//! The flags of a controller process, in upstream's words.

mod duration;
mod identity;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use windlass_client::{Config, Encoding, Lookup, RateLimit};
use windlass_core::{Env, Key};

use crate::{
    ALWAYS_ALLOWED_PATHS, BuildError, ElectionOptions, LoggingFormat, Manager, ManagerBuilder,
    Shutdown, logs,
};
pub use duration::{DurationError, parse_duration};
use identity::hostname;

/// The flags that [`Manager::from_flags`] reads. Each is also an environment variable.
///
/// A program with flags of its own flattens this into them.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(disable_version_flag = true)]
pub struct Flags {
    /// Path to a kubeconfig. Without it: KUBECONFIG, the service account of the pod, ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Who may work, when several copies run.
    #[command(flatten)]
    pub election: ElectionFlags,

    /// Address for /metrics and /debug/windlass; ":PORT" for all of the machine, "0" for none.
    #[arg(
        long,
        env = "WINDLASS_METRICS_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub metrics_bind_address: BindAddress,

    /// Address for /healthz, /livez and /readyz; "0" for none.
    #[arg(
        long,
        env = "WINDLASS_HEALTH_PROBE_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0"
    )]
    pub health_probe_bind_address: BindAddress,

    /// Paths that everybody may read; "PATH*" for all that begin so. For others the API server is
    /// asked: TokenReview, SubjectAccessReview.
    #[arg(
        long,
        env = "WINDLASS_AUTHORIZATION_ALWAYS_ALLOW_PATHS",
        value_name = "PATHS",
        value_delimiter = ',',
        default_values = ALWAYS_ALLOWED_PATHS
    )]
    pub authorization_always_allow_paths: Vec<String>,

    /// Requests per second.
    #[arg(
        long,
        env = "WINDLASS_KUBE_API_QPS",
        value_name = "NUMBER",
        default_value_t = 20.0
    )]
    pub kube_api_qps: f64,

    /// Requests at once.
    #[arg(
        long,
        env = "WINDLASS_KUBE_API_BURST",
        value_name = "NUMBER",
        default_value_t = 30
    )]
    pub kube_api_burst: u32,

    /// How objects of built-in kinds are written: as protobuf or as application/json.
    #[arg(
        long,
        env = "WINDLASS_KUBE_API_CONTENT_TYPE",
        value_name = "TYPE",
        default_value_t = Encoding::Protobuf
    )]
    pub kube_api_content_type: Encoding,

    /// Controllers to run: "*" for all, "name" for one, "-name" for all but one.
    #[arg(
        long,
        env = "WINDLASS_CONTROLLERS",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,

    /// How often controllers look at every object again; lengthened at random by up to as much.
    #[arg(long, env = "WINDLASS_MIN_RESYNC_PERIOD", value_parser = parse_duration, value_name = "DURATION", default_value = "12h")]
    pub min_resync_period: Duration,

    /// How much to log: 0 to 10.
    #[arg(
        short = 'v',
        long = "v",
        env = "WINDLASS_V",
        value_name = "LEVEL",
        default_value_t = 0
    )]
    pub verbosity: u8,

    /// Format of the logs: text on a terminal, else JSON, unless said here.
    #[arg(long, env = "WINDLASS_LOGGING_FORMAT", value_name = "FORMAT")]
    pub logging_format: Option<LoggingFormat>,
}

/// Who may work, when several copies run.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ElectionFlags {
    /// Work only while holding a lease.
    #[arg(long, env = "WINDLASS_LEADER_ELECT", value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub leader_elect: bool,

    /// How long others wait after the last sign of life of the leader.
    #[arg(long, env = "WINDLASS_LEADER_ELECT_LEASE_DURATION", value_parser = parse_duration, value_name = "DURATION", default_value = "15s")]
    pub leader_elect_lease_duration: Duration,

    /// How long the leader tries to renew before it gives up.
    #[arg(long, env = "WINDLASS_LEADER_ELECT_RENEW_DEADLINE", value_parser = parse_duration, value_name = "DURATION", default_value = "10s")]
    pub leader_elect_renew_deadline: Duration,

    /// How long to wait between two attempts.
    #[arg(long, env = "WINDLASS_LEADER_ELECT_RETRY_PERIOD", value_parser = parse_duration, value_name = "DURATION", default_value = "2s")]
    pub leader_elect_retry_period: Duration,

    /// Name of the lease; that of the program by default.
    #[arg(long, env = "WINDLASS_LEADER_ELECT_RESOURCE_NAME", value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,

    /// Namespace of the lease; that of the configuration by default.
    #[arg(
        long,
        env = "WINDLASS_LEADER_ELECT_RESOURCE_NAMESPACE",
        value_name = "NAMESPACE"
    )]
    pub leader_elect_resource_namespace: Option<String>,
}

/// How many objects the built-in controllers work on at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ConcurrencyFlags {
    /// ReplicaSets at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_REPLICASET_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_replicaset_syncs: usize,

    /// Deployments at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_DEPLOYMENT_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_deployment_syncs: usize,

    /// DaemonSets at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_DAEMONSET_SYNCS",
        value_name = "NUMBER",
        default_value_t = 2
    )]
    pub concurrent_daemonset_syncs: usize,

    /// StatefulSets at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_STATEFULSET_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_statefulset_syncs: usize,

    /// Jobs at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_JOB_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_job_syncs: usize,

    /// CronJobs at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_CRON_JOB_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_cron_job_syncs: usize,

    /// Jobs that have finished and are looked at, at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_TTL_AFTER_FINISHED_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_ttl_after_finished_syncs: usize,

    /// Services whose Endpoints are kept, at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_ENDPOINT_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_endpoint_syncs: usize,

    /// Services whose EndpointSlices are kept, at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_SERVICE_ENDPOINT_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_service_endpoint_syncs: usize,

    /// Endpoints that are mirrored to EndpointSlices, at the same time.
    #[arg(
        long,
        env = "WINDLASS_MIRRORING_CONCURRENT_SERVICE_ENDPOINT_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub mirroring_concurrent_service_endpoint_syncs: usize,

    /// ResourceClaims at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_RESOURCE_CLAIM_SYNCS",
        value_name = "NUMBER",
        default_value_t = 50
    )]
    pub concurrent_resource_claim_syncs: usize,

    /// ResourceQuotas at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_RESOURCE_QUOTA_SYNCS",
        value_name = "NUMBER",
        default_value_t = 5
    )]
    pub concurrent_resource_quota_syncs: usize,

    /// Namespaces at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_NAMESPACE_SYNCS",
        value_name = "NUMBER",
        default_value_t = 10
    )]
    pub concurrent_namespace_syncs: usize,

    /// Objects that the garbage collector looks at, at the same time.
    #[arg(
        long,
        env = "WINDLASS_CONCURRENT_GC_SYNCS",
        value_name = "NUMBER",
        default_value_t = 20
    )]
    pub concurrent_gc_syncs: usize,
}

/// An address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindAddress(pub Option<SocketAddr>);

impl std::str::FromStr for BindAddress {
    type Err = std::net::AddrParseError;

    /// `:8080` is every address of the machine; `0` and nothing are none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" | "0" => Ok(Self(None)),
            _ if text.starts_with(':') => Ok(Self(Some(format!("[::]{text}").parse()?))),
            _ => Ok(Self(Some(text.parse()?))),
        }
    }
}

impl Flags {
    /// Reads the flags of this process. Help and mistakes are printed, and end the process.
    #[must_use]
    pub fn from_process(name: &str) -> Self {
        let command = Self::command().bin_name(name.to_owned());
        let matches = command.get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Whether a controller is to run, as `--controllers` says: by name first, else by `*`.
    #[must_use]
    pub fn is_enabled(&self, controller: &str) -> bool {
        let said = |word: &str| match word.strip_prefix('-') {
            Some(name) if name == controller => Some(false),
            None if word == controller => Some(true),
            _ => None,
        };
        let by_name = self.controllers.iter().find_map(|word| said(word));
        by_name.unwrap_or_else(|| self.controllers.iter().any(|word| word == "*"))
    }

    /// Starts the logs, finds the configuration and sets up a manager that ends on a signal.
    ///
    /// # Errors
    /// When there is no configuration, or the flags contradict each other.
    pub async fn builder(&self, name: &str) -> Result<ManagerBuilder, BuildError> {
        logs::start(self.verbosity, self.logging_format);
        let env = Env::real();
        let lookup = Lookup {
            flag: self.kubeconfig.clone(),
            ..Lookup::from_process()
        };
        let limit = RateLimit {
            qps: self.kube_api_qps,
            burst: self.kube_api_burst,
        };
        let config = Config::find(&lookup)
            .await?
            .rate_limit(Some(limit))
            .encoding(self.kube_api_content_type)
            .user_agent(name);
        let mut builder = Manager::builder(name)
            .config(&config)
            .await?
            .env(env.clone())
            .resync(self.min_resync_period)
            .shutdown(Shutdown::on_signals().map_err(BuildError::Signals)?);
        if self.election.leader_elect {
            builder = builder.election(self.election.options(
                name,
                config.default_namespace(),
                &env,
            ));
        }
        builder = builder.always_allow_paths(self.authorization_always_allow_paths.clone());
        if let BindAddress(Some(address)) = self.metrics_bind_address {
            builder = builder.metrics_address(address);
        }
        if let BindAddress(Some(address)) = self.health_probe_bind_address {
            builder = builder.health_address(address);
        }
        Ok(builder)
    }
}

impl ElectionFlags {
    fn options(&self, name: &str, namespace: &str, env: &Env) -> ElectionOptions {
        let namespace = self
            .leader_elect_resource_namespace
            .as_deref()
            .unwrap_or(namespace);
        let name = self.leader_elect_resource_name.as_deref().unwrap_or(name);
        let identity = format!("{}_{}", hostname(), env.uid());
        ElectionOptions {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            ..ElectionOptions::new(Key::new(namespace, name), identity)
        }
    }
}

impl Manager {
    /// A manager as the flags of this process say: kubeconfig, signals, health, metrics, logs and
    /// leader election.
    ///
    /// # Errors
    /// When there is no configuration, or the flags contradict each other.
    pub async fn from_flags(name: &str) -> Result<Self, BuildError> {
        Flags::from_process(name).builder(name).await?.build()
    }
}

#[cfg(test)]
mod tests;
