//! The flags of authentication, admission and the service network, under the names of upstream.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgAction, Args};
use windlass_server::{
    Admission, AuthenticationOptions, ServerOptions, ServiceNetwork, StaticToken, read_token_file,
};

/// Options of authentication and admission.
#[derive(Args, Debug)]
pub(crate) struct AccessArguments {
    /// Answer requests that come without credentials, as the user system:anonymous.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set
    )]
    anonymous_auth: bool,
    /// Also accept client certificates that an authority in this PEM file has signed.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Bearer tokens of users: lines of "token,user,uid,\"group1,group2\"".
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// The IPv4 network that services get their addresses from.
    #[arg(long, value_name = "NETWORK", default_value_t = ServiceNetwork::default())]
    service_cluster_ip_range: ServiceNetwork,
    /// Admission plug-ins to switch on besides the usual ones.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plug-ins to switch off.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

impl AccessArguments {
    /// Puts what was asked for into the options of a server.
    pub(crate) fn apply(&self, options: &mut ServerOptions) -> anyhow::Result<()> {
        let tokens = self.token_auth_file.as_deref().map(read_tokens);
        options.authentication = AuthenticationOptions {
            refuses_anonymous: !self.anonymous_auth,
            tokens: tokens.transpose()?.unwrap_or_default(),
        };
        options.service_network = self.service_cluster_ip_range;
        options.admission = self.admission(options.admission)?;
        Ok(())
    }

    /// The PEM text of further client authorities; empty for none.
    pub(crate) fn client_authorities(&self) -> anyhow::Result<String> {
        let Some(path) = &self.client_ca_file else {
            return Ok(String::new());
        };
        let mut text = read(path)?;
        anyhow::ensure!(
            text.contains("BEGIN CERTIFICATE"),
            "{} holds no certificate in PEM",
            path.display()
        );
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }

    fn admission(&self, usual: Admission) -> anyhow::Result<Admission> {
        let mut admission = usual;
        for name in names(&self.enable_admission_plugins) {
            admission.disabled = admission.disabled.without(name)?;
            switch(&mut admission, name, true);
        }
        for name in names(&self.disable_admission_plugins) {
            let is_both = self.enable_admission_plugins.iter().any(|on| on == name);
            anyhow::ensure!(
                !is_both,
                "{name} in enable-admission-plugins and disable-admission-plugins overlapped"
            );
            admission.disabled = admission.disabled.with(name)?;
            switch(&mut admission, name, false);
        }
        Ok(admission)
    }
}

/// Names without the empty ones that a trailing comma leaves.
fn names(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter()
        .map(|name| name.trim())
        .filter(|name| !name.is_empty())
}

/// Switches a rule of admission that leans on a controller.
fn switch(admission: &mut Admission, name: &str, is_on: bool) {
    match name {
        "ServiceAccount" => admission.service_accounts = is_on,
        "TaintNodesByCondition" => admission.node_taints = is_on,
        "StorageObjectInUseProtection" => admission.storage_protection = is_on,
        _ => {}
    }
}

fn read_tokens(path: &Path) -> anyhow::Result<Vec<StaticToken>> {
    let text = read(path)?;
    read_token_file(&text).with_context(|| format!("cannot use {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
