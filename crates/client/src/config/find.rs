//! Looking for a configuration.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::config_error::{ConfigError, kubeconfig_field};

/// The places to look for a configuration, and the context to choose in it.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The file that a flag names. If there is one, nothing else is looked at.
    pub flag: Option<PathBuf>,
    /// The value of `KUBECONFIG`: files separated as in `PATH`.
    pub environment: Option<OsString>,
    /// True to look for the service account of a pod.
    pub in_cluster: bool,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The context to take in place of the current one.
    pub context: Option<String>,
    /// The cluster to take in place of the context's.
    pub cluster: Option<String>,
    /// The user to take in place of the context's.
    pub user: Option<String>,
}

/// The source of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigSource {
    /// One kubeconfig, merged from these files.
    Files {
        /// The files, the first winning.
        paths: Vec<PathBuf>,
        /// The context that was chosen.
        context: String,
    },
    /// The service account of the pod we run in.
    InCluster,
    /// The program itself.
    Given,
}

impl Lookup {
    /// The environment of this process.
    #[must_use]
    pub fn from_process() -> Self {
        Self {
            environment: std::env::var_os("KUBECONFIG"),
            in_cluster: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            home: std::env::home_dir(),
            ..Self::default()
        }
    }

    /// Takes this file and nothing else, if there is one.
    #[must_use]
    pub fn flag(mut self, path: Option<PathBuf>) -> Self {
        self.flag = path;
        self
    }

    /// Takes this context in place of the current one.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }
}

impl ConfigSource {
    /// The context that was chosen; empty where there are no contexts.
    #[must_use]
    pub fn context(&self) -> &str {
        match self {
            Self::Files { context, .. } => context,
            Self::InCluster | Self::Given => "",
        }
    }
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { paths, .. } => f.write_str(&joined(paths)),
            Self::InCluster => f.write_str("the service account of the pod"),
            Self::Given => f.write_str("the program"),
        }
    }
}

type Found = (kube_client::Config, ConfigSource);

pub(super) async fn find(lookup: &Lookup) -> Result<Found, ConfigError> {
    if let Some(path) = &lookup.flag {
        return from_files(lookup, std::slice::from_ref(path)).await;
    }
    let mut looked = Vec::new();
    let listed = lookup
        .environment
        .as_ref()
        .map(std::env::split_paths)
        .into_iter()
        .flatten();
    let listed: Vec<_> = listed.filter(|path| !path.as_os_str().is_empty()).collect();
    if !listed.is_empty() {
        // A file that is listed but absent is passed over, as upstream does.
        let present: Vec<_> = listed
            .iter()
            .filter(|path| path.exists())
            .cloned()
            .collect();
        if !present.is_empty() {
            return from_files(lookup, &present).await;
        }
        looked.push(format!("KUBECONFIG={}", joined(&listed)));
    }
    if lookup.in_cluster {
        return from_pod();
    }
    looked.push("the service account of a pod".to_owned());
    if let Some(home) = &lookup.home {
        let path = home.join(".kube").join("config");
        if path.exists() {
            return from_files(lookup, &[path]).await;
        }
        looked.push(path.display().to_string());
    }
    Err(ConfigError::NotFound { looked })
}

fn from_pod() -> Result<Found, ConfigError> {
    match kube_client::Config::incluster() {
        Ok(config) => Ok((config, ConfigSource::InCluster)),
        Err(error) => Err(ConfigError::Unreadable {
            source_name: ConfigSource::InCluster.to_string(),
            problem: error.to_string(),
        }),
    }
}

async fn from_files(lookup: &Lookup, paths: &[PathBuf]) -> Result<Found, ConfigError> {
    let mut merged = Kubeconfig::default();
    for path in paths {
        let next = Kubeconfig::read_from(path).map_err(|error| unreadable(path, &error))?;
        merged = merged
            .merge(next)
            .map_err(|error| unreadable(path, &error))?;
    }
    let place = joined(paths);
    let context = chosen_context(lookup, &merged).map_err(|error| error.at(&place, ""))?;
    check_references(lookup, &merged, &context).map_err(|error| error.at(&place, &context))?;
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        cluster: lookup.cluster.clone(),
        user: lookup.user.clone(),
    };
    let config = kube_client::Config::from_custom_kubeconfig(merged, &options).await;
    let config = config.map_err(|error| kubeconfig_field(&error).at(&place, &context))?;
    Ok((
        config,
        ConfigSource::Files {
            paths: paths.to_vec(),
            context,
        },
    ))
}

fn chosen_context(lookup: &Lookup, config: &Kubeconfig) -> Result<String, ConfigError> {
    let named = lookup.context.as_ref().or(config.current_context.as_ref());
    let named = named.filter(|name| !name.is_empty()).cloned();
    named.ok_or_else(|| ConfigError::field("current-context", "is not set"))
}

/// Finds what a context refers to, so that what is missing can be named.
fn check_references(
    lookup: &Lookup,
    config: &Kubeconfig,
    context: &str,
) -> Result<(), ConfigError> {
    let names = |all: &[&str]| match all {
        [] => "there are none".to_owned(),
        all => format!("there are {}", all.join(", ")),
    };
    let contexts: Vec<&str> = config.contexts.iter().map(|it| &*it.name).collect();
    let found = config.contexts.iter().find(|it| it.name == context);
    let Some(found) = found.and_then(|it| it.context.as_ref()) else {
        return Err(ConfigError::field(
            "contexts",
            format!("has no such entry; {}", names(&contexts)),
        ));
    };
    let cluster = lookup.cluster.as_ref().unwrap_or(&found.cluster);
    let clusters: Vec<&str> = config.clusters.iter().map(|it| &*it.name).collect();
    if !clusters.contains(&&**cluster) {
        let problem = format!("{cluster:?} is not in clusters; {}", names(&clusters));
        return Err(ConfigError::field("cluster", problem));
    }
    let user = lookup
        .user
        .as_ref()
        .or(found.user.as_ref())
        .filter(|user| !user.is_empty());
    let users: Vec<&str> = config.auth_infos.iter().map(|it| &*it.name).collect();
    match user {
        Some(user) if !users.contains(&&**user) => {
            let problem = format!("{user:?} is not in users; {}", names(&users));
            Err(ConfigError::field("user", problem))
        }
        _ => Ok(()),
    }
}

/// An error of the YAML reader shows the text around it, which may be a credential. Only its
/// position is reported.
fn unreadable(path: &Path, error: &KubeconfigError) -> ConfigError {
    let problem = match error {
        KubeconfigError::ReadConfig(error, _) => format!("cannot be read: {error}"),
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!(
                "is not a kubeconfig: line {}, column {}",
                at.line(),
                at.column()
            ),
            None => "is not a kubeconfig".to_owned(),
        },
        other => other.to_string(),
    };
    ConfigError::Unreadable {
        source_name: path.display().to_string(),
        problem,
    }
}

fn joined(paths: &[PathBuf]) -> String {
    let texts: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    texts.join(", ")
}
