//! The flags of the audit log, under the names of upstream.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_server::{AuditOptions, AuditPolicy};

/// Options of the audit log.
#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    /// File of the audit log; "-" is the standard output.
    #[arg(long, env = "WINDLASS_AUDIT_LOG_PATH", value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// Audit policy (audit.k8s.io/v1): which requests are logged, and how much of them [default:
    /// all at the level Metadata].
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    /// Megabytes after which a file of the audit log is put aside; 0 for never.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    audit_log_maxsize: u64,
    /// Files of the audit log that were put aside and are kept; 0 for all.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    audit_log_maxbackup: usize,
    /// Days after which such a file is removed; 0 for never.
    #[arg(long, value_name = "NUMBER", default_value_t = 366)]
    audit_log_maxage: u64,
}

impl AuditArguments {
    /// The audit log that was asked for.
    pub(crate) fn options(&self) -> anyhow::Result<Option<AuditOptions>> {
        let policy = self.audit_policy_file.as_deref().map(read_policy);
        let policy = policy.transpose()?.unwrap_or_default();
        let Some(path) = self.audit_log_path.clone() else {
            return Ok(None);
        };
        Ok(Some(AuditOptions {
            max_size_mb: self.audit_log_maxsize,
            max_backups: self.audit_log_maxbackup,
            max_age_days: self.audit_log_maxage,
            policy,
            ..AuditOptions::new(path)
        }))
    }
}

fn read_policy(path: &Path) -> anyhow::Result<AuditPolicy> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    AuditPolicy::parse(&text).with_context(|| format!("cannot use audit policy {}", path.display()))
}
