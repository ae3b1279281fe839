//! The way to a cluster: which one, as whom, in which namespace.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_client::{
    ApiResource, Cause, Config, ConfigError, DiscoveryClient, DiscoveryError, DynamicApi,
    DynamicClient, Error, Lookup, RestClient,
};
use windlass_core::{Doc, Gvk};

/// The kubeconfig that `windlass up` writes when told nothing else.
const LOCAL_KUBECONFIG: &str = ".windlass/kubeconfig";

/// Which cluster, and where in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// The kubeconfig [default: $KUBECONFIG, else .windlass/kubeconfig here, else ~/.kube/config].
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// The namespace [default: that of the context].
    #[arg(short, long, value_name = "NAME", global = true)]
    namespace: Option<String>,
}

/// A cluster that can be asked.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: RestClient,
    pub(crate) discovery: DiscoveryClient,
    pub(crate) namespace: String,
    /// Whether somebody asked for this namespace.
    is_namespace_chosen: bool,
    server: String,
}

impl Connection {
    /// Opens the cluster.
    pub(crate) async fn open(&self) -> anyhow::Result<Session> {
        let config = self.config().await?;
        let namespace = self
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace().to_owned());
        // A person waits at the other end: nobody types faster than any limit.
        let config = config.rate_limit(None);
        let server = config.server();
        let client = RestClient::connect(&config).await?;
        Ok(Session {
            discovery: DiscoveryClient::new(client.clone()),
            client,
            namespace,
            is_namespace_chosen: self.namespace.is_some(),
            server,
        })
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let mut lookup = Lookup::from_process();
        lookup.context.clone_from(&self.context);
        lookup.flag.clone_from(&self.kubeconfig);
        let local = Path::new(LOCAL_KUBECONFIG);
        if lookup.flag.is_none() && lookup.environment.is_none() && local.exists() {
            lookup.flag = Some(local.to_owned());
        }
        Config::find(&lookup).await.map_err(explain_config)
    }
}

/// A configuration that is missing, in the words of somebody who may have no cluster yet.
pub(crate) fn explain_config(error: ConfigError) -> anyhow::Error {
    let is_missing = matches!(error, ConfigError::NotFound { .. });
    let error = anyhow::Error::new(error);
    match is_missing {
        true => error.context(
            "there is no cluster to talk to; start one with `windlass up`, or name a file with \
             --kubeconfig",
        ),
        false => error,
    }
}

impl Session {
    /// The verbs of a resource, in one namespace or in all.
    pub(crate) fn api(&self, resource: &ApiResource, is_in_all: bool) -> DynamicApi {
        let api = DynamicClient::new(self.client.clone()).resource(resource.gvr.clone());
        match resource.is_namespaced && !is_in_all {
            true => api.namespaced(&self.namespace),
            false => api,
        }
    }

    /// What a user means by the name of a resource.
    pub(crate) async fn resource(&self, name: &str) -> anyhow::Result<ApiResource> {
        match self.discovery.resolve(name).await {
            Err(DiscoveryError::Request(error)) => Err(self.explain(error)),
            found => Ok(found?),
        }
    }

    /// The resource that holds an object, and the verbs where the object lives.
    pub(crate) async fn api_of(&self, object: &Doc) -> anyhow::Result<(ApiResource, DynamicApi)> {
        let kind = object
            .gvk()
            .context("apiVersion and kind must both be set")?;
        let resource = self.resource_of(&kind).await?;
        let written = object.meta().namespace();
        anyhow::ensure!(
            written.is_empty() || !self.is_namespace_chosen || written == self.namespace,
            "the object is of namespace {written}, but --namespace is {}",
            self.namespace
        );
        let api = self.api(&resource, false);
        let api = match written {
            namespace if resource.is_namespaced && !namespace.is_empty() => {
                api.namespaced(namespace)
            }
            _ => api,
        };
        Ok((resource, api))
    }

    async fn resource_of(&self, kind: &Gvk) -> anyhow::Result<ApiResource> {
        match self.discovery.resource_of(kind).await {
            Err(DiscoveryError::Request(error)) => Err(self.explain(error)),
            Err(_) => anyhow::bail!(
                "no matches for kind {:?} in version {:?}; if it is a custom resource, apply its \
                 CustomResourceDefinition first",
                kind.kind(),
                kind.group_version().to_string()
            ),
            Ok(found) => Ok(found),
        }
    }

    /// An error in the words of somebody who typed a command.
    pub(crate) fn explain(&self, error: Error) -> anyhow::Error {
        match error.cause() {
            Cause::Status(status) => {
                let hint = match error.is_forbidden() {
                    true => "; use another user with --context or --kubeconfig, or grant the right",
                    false => "",
                };
                let (reason, message) = (&status.reason, &status.message);
                anyhow::anyhow!("Error from server ({reason}): {message}{hint}")
            }
            Cause::Connection(_) => anyhow::Error::new(error).context(format!(
                "the server {} cannot be reached; is it running?",
                self.server
            )),
            _ => error.into(),
        }
    }
}
