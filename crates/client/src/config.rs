//! Client configuration: flags, kubeconfig files, the service account of a pod.

mod find;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};

use crate::config_error::{ConfigError, host_and_port, redact};
use crate::encoding::Encoding;
use crate::metrics::Metrics;
use crate::rest_options::RestOptions;
use crate::throttle::RateLimit;
use crate::transport::Transport;

pub use find::{ConfigSource, Lookup};

/// The configuration of a client: address, credentials and limits.
///
/// The look-up order is: the file that a flag names, the files in `KUBECONFIG` merged, the service
/// account of the pod, `~/.kube/config`.
#[derive(Clone)]
pub struct Config {
    inner: kube_client::Config,
    source: ConfigSource,
    rest: RestOptions,
}

impl Config {
    /// Finds a configuration in the default order.
    ///
    /// # Errors
    /// When there is none, or the one that was found is not valid.
    pub async fn load() -> Result<Self, ConfigError> {
        Self::find(&Lookup::from_process()).await
    }

    /// Finds a configuration by a [`Lookup`].
    ///
    /// # Errors
    /// When there is none, or the one that was found is not valid.
    pub async fn find(lookup: &Lookup) -> Result<Self, ConfigError> {
        let (inner, source) = find::find(lookup).await?;
        Ok(Self::from_parts(inner, source))
    }

    /// Reads one kubeconfig file and takes its current context.
    ///
    /// # Errors
    /// When the file or its current context is not valid.
    pub async fn from_file(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        Self::find(&Lookup {
            flag: Some(path.into()),
            ..Lookup::default()
        })
        .await
    }

    /// A server by its address, without credentials.
    ///
    /// # Errors
    /// When the address is not a URL.
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        let source = ConfigSource::Given;
        let uri = url.parse().map_err(|_| ConfigError::Field {
            source_name: source.to_string(),
            context: String::new(),
            field: "server".to_owned(),
            problem: "is not a URL".to_owned(),
        })?;
        Ok(Self::from_parts(kube_client::Config::new(uri), source))
    }

    fn from_parts(mut inner: kube_client::Config, source: ConfigSource) -> Self {
        // We repeat requests ourselves: a create must not be repeated blindly.
        inner.default_retry = false;
        inner.disable_compression = true;
        let host = inner
            .cluster_url
            .authority()
            .map_or("", |it| host_and_port(it))
            .to_owned();
        let rest = RestOptions {
            default_namespace: inner.default_namespace.clone(),
            host,
            ..RestOptions::default()
        };
        Self {
            inner,
            source,
            rest,
        }
    }

    /// The source of this configuration.
    #[must_use]
    pub fn source(&self) -> &ConfigSource {
        &self.source
    }

    /// The address of the server.
    #[must_use]
    pub fn server(&self) -> String {
        redact(&self.inner.cluster_url)
    }

    /// The namespace of requests that name none.
    #[must_use]
    pub fn default_namespace(&self) -> &str {
        &self.rest.default_namespace
    }

    /// Calls the client by another name.
    #[must_use]
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.rest.user_agent = name.into();
        self
    }

    /// Limits how many requests are sent; `None` for no limit, which is the default.
    #[must_use]
    pub fn rate_limit(mut self, limit: Option<RateLimit>) -> Self {
        self.rest.rate_limit = limit;
        self
    }

    /// Writes objects of built-in kinds in this way, and reads them so from watches.
    #[must_use]
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.rest.encoding = encoding;
        self
    }

    /// Waits this long for the answer to a request.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rest.timeout = timeout;
        self
    }

    /// Counts requests in these metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.rest.metrics = metrics;
        self
    }

    /// Acts as another user.
    #[must_use]
    pub fn impersonate(mut self, user: impl Into<String>, groups: &[&str]) -> Self {
        self.inner.auth_info.impersonate = Some(user.into());
        self.inner.auth_info.impersonate_groups =
            Some(groups.iter().copied().map(str::to_owned).collect());
        self
    }

    /// Goes through a proxy: `http`, `https` or `socks5`.
    #[must_use]
    pub fn proxy(mut self, proxy: http::Uri) -> Self {
        self.inner.proxy_url = Some(proxy);
        self
    }

    /// Identifies with a bearer token, in place of all else.
    #[must_use]
    pub fn bearer_token(mut self, token: &str) -> Self {
        self.inner.auth_info = kube_client::config::AuthInfo {
            token: Some(token.to_owned().into()),
            ..kube_client::config::AuthInfo::default()
        };
        self
    }

    /// Sends one more header with each request.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.push((name, value));
        self
    }

    /// The limits and names that clients made from this work under.
    #[must_use]
    pub fn rest_options(&self) -> RestOptions {
        self.rest.clone()
    }

    /// A connection to the server. Nothing is sent yet.
    ///
    /// # Errors
    /// When credentials or certificates cannot be read.
    pub async fn transport(&self) -> Result<Transport, ConfigError> {
        let inner = self.inner.clone();
        let place = (self.source.to_string(), self.source.context().to_owned());
        // Reading files and running an exec plug-in blocks.
        let made = tokio::task::spawn_blocking(move || crate::transport::connect(&inner)).await;
        match made {
            Ok(made) => made.map_err(|error| error.at(&place.0, &place.1)),
            Err(panic) => Err(ConfigError::Unreadable {
                source_name: place.0,
                problem: panic.to_string(),
            }),
        }
    }
}

// Written by hand: the parts hold tokens, keys and the environment of plug-ins.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("server", &self.server())
            .field("source", &self.source.to_string())
            .field("default_namespace", &self.default_namespace())
            .finish_non_exhaustive()
    }
}
