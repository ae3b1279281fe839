//! The flags of the audit log, under the names of upstream.

use std::path::PathBuf;

use clap::Args;
use windlass_server::AuditOptions;

/// Options of the audit log.
#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    /// File of the audit log, at level Metadata; "-" is the standard output.
    #[arg(long, env = "WINDLASS_AUDIT_LOG_PATH", value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
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
    pub(crate) fn options(&self) -> Option<AuditOptions> {
        let path = self.audit_log_path.clone()?;
        Some(AuditOptions {
            max_size_mb: self.audit_log_maxsize,
            max_backups: self.audit_log_maxbackup,
            max_age_days: self.audit_log_maxage,
            ..AuditOptions::new(path)
        })
    }
}
