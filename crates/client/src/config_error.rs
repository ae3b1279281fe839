//! Errors of client configurations.

use kube_client::client::AuthError;
use kube_client::config::{KubeconfigError, LoadDataError};

/// A configuration that was not found or is not valid.
///
/// No text here repeats a value from the file: it may be a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no configuration anywhere.
    #[error("no configuration found; looked at: {}", looked.join(", "))]
    NotFound {
        /// The sources that were looked at.
        looked: Vec<String>,
    },
    /// A file cannot be read, or is not a kubeconfig.
    #[error("{source_name}: {problem}")]
    Unreadable {
        /// The file or files.
        source_name: String,
        /// The problem.
        problem: String,
    },
    /// A field of the chosen context is missing or wrong.
    #[error("{source_name}: context {context:?}: {field} {problem}")]
    Field {
        /// The file or files.
        source_name: String,
        /// The context that was chosen.
        context: String,
        /// The field, as in `users[admin].client-key-data`.
        field: String,
        /// The problem with it.
        problem: String,
    },
}

impl ConfigError {
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        Self::Field {
            source_name: String::new(),
            context: String::new(),
            field,
            problem,
        }
    }

    pub(crate) fn tls(error: kube_client::Error) -> Self {
        match error {
            kube_client::Error::InferKubeconfig(error) => kubeconfig_field(&error),
            kube_client::Error::Auth(error) => Self::field("user", auth_failure(&error)),
            _ => Self::field("certificates", "cannot be used for TLS"),
        }
    }

    pub(crate) fn credentials(error: kube_client::Error) -> Self {
        match error {
            kube_client::Error::Auth(error) => Self::field("user", auth_failure(&error)),
            _ => Self::field("user", "has no usable credentials"),
        }
    }

    pub(crate) fn headers(_: kube_client::Error) -> Self {
        Self::field("as", "holds a character that no header may hold")
    }

    pub(crate) fn proxy(url: &str) -> Self {
        Self::field(
            "proxy-url",
            format!("{url:?} is neither http, https nor socks5"),
        )
    }

    pub(crate) fn server_name(name: &str) -> Self {
        Self::field("tls-server-name", format!("{name:?} is not a host name"))
    }

    /// Names the file and the context where they are not named yet.
    pub(crate) fn at(mut self, place: &str, chosen: &str) -> Self {
        if let Self::Field {
            source_name,
            context,
            ..
        } = &mut self
            && source_name.is_empty()
        {
            place.clone_into(source_name);
            chosen.clone_into(context);
        }
        self
    }
}

/// The field behind an error of the kubeconfig reader.
pub(super) fn kubeconfig_field(error: &KubeconfigError) -> ConfigError {
    let (field, problem) = match error {
        KubeconfigError::MissingClusterUrl => ("cluster.server", "is missing".to_owned()),
        KubeconfigError::ParseClusterUrl(_) => ("cluster.server", "is not a URL".to_owned()),
        KubeconfigError::ParseProxyUrl(_) => ("cluster.proxy-url", "is not a URL".to_owned()),
        KubeconfigError::LoadCertificateAuthority(error) => {
            ("cluster.certificate-authority", data_problem(error))
        }
        KubeconfigError::ParseCertificates(_) => (
            "cluster.certificate-authority",
            "holds no PEM certificate".to_owned(),
        ),
        KubeconfigError::LoadClientCertificate(error) => {
            ("user.client-certificate", data_problem(error))
        }
        KubeconfigError::LoadClientKey(error) => ("user.client-key", data_problem(error)),
        other => ("context", other.to_string()),
    };
    ConfigError::field(field, problem)
}

fn data_problem(error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => "is not base64".to_owned(),
        LoadDataError::ReadFile(error, path) => {
            format!("cannot be read from {}: {error}", path.display())
        }
        LoadDataError::NoBase64DataOrFile => "is missing".to_owned(),
    }
}

/// The problem with credentials, without the output of a plug-in: that may be the credential.
pub(crate) fn auth_failure(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { cmd, out } => {
            let program = cmd
                .split(['"', ' '])
                .find(|word| !word.is_empty())
                .unwrap_or_default();
            format!("exec plug-in {program:?} failed with {}", out.status)
        }
        AuthError::AuthExecStart(error) => format!("exec plug-in cannot be run: {error}"),
        AuthError::AuthExecParse(_) => "exec plug-in did not print an ExecCredential".to_owned(),
        AuthError::ExecPluginFailed => "exec plug-in printed no status".to_owned(),
        AuthError::ReadTokenFile(error, path) => {
            format!("token file {} cannot be read: {error}", path.display())
        }
        AuthError::MissingCommand => "exec.command is missing".to_owned(),
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "credentials hold a character that no header may hold".to_owned()
        }
        AuthError::Oidc(_) => "OIDC token cannot be refreshed".to_owned(),
        _ => "credentials cannot be used".to_owned(),
    }
}

/// A URL without the password that it may hold.
pub(crate) fn redact(url: &http::Uri) -> String {
    match (url.scheme_str(), url.authority()) {
        (Some(scheme), Some(place)) => format!("{scheme}://{}{}", host_and_port(place), url.path()),
        _ => url.path().to_owned(),
    }
}

/// The host and port of an authority, without user information.
pub(crate) fn host_and_port(place: &http::uri::Authority) -> &str {
    let text = place.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}
