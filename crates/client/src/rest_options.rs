//! The limits and names that a client works under.

use std::time::Duration;

use crate::decode::ITEM_BYTES_LIMIT;
use crate::encoding::Encoding;
use crate::metrics::Metrics;
use crate::throttle::RateLimit;

/// The time limit of one request. An API server gives up after one minute.
pub const TIMEOUT: Duration = Duration::from_secs(65);

/// The number of retries of a request where that is safe, as in client-go.
pub const RETRIES_LIMIT: u32 = 10;

/// Longest answer that is held as a whole: a single object, or a discovery document.
pub const BODY_BYTES_LIMIT: usize = 64 << 20;

/// Limits and names that a client works under.
#[derive(Clone, Debug)]
pub struct RestOptions {
    /// The `User-Agent`.
    pub user_agent: String,
    /// The rate limit of requests; `None` for any number. Watches are not counted.
    pub rate_limit: Option<RateLimit>,
    /// The time limit of one request.
    pub timeout: Duration,
    /// The number of retries of a request where that is safe.
    pub retries_limit: u32,
    /// Longest item of a list or event of a watch.
    pub item_bytes_limit: usize,
    /// Longest answer that is held as a whole.
    pub body_bytes_limit: usize,
    /// The encoding of built-in kinds in request bodies and watches.
    pub encoding: Encoding,
    /// The namespace of requests that name none.
    pub default_namespace: String,
    /// The server's name in metrics.
    pub host: String,
    /// The metrics in which requests are counted.
    pub metrics: Metrics,
}

impl Default for RestOptions {
    fn default() -> Self {
        Self {
            user_agent: user_agent(),
            rate_limit: None,
            timeout: TIMEOUT,
            retries_limit: RETRIES_LIMIT,
            item_bytes_limit: ITEM_BYTES_LIMIT,
            body_bytes_limit: BODY_BYTES_LIMIT,
            encoding: Encoding::default(),
            default_namespace: "default".to_owned(),
            host: "local".to_owned(),
            metrics: Metrics::default(),
        }
    }
}

/// The program's own name and version, in the form that API servers log.
fn user_agent() -> String {
    let program = std::env::args_os().next();
    let program = program
        .as_deref()
        .map(std::path::Path::new)
        .and_then(std::path::Path::file_name);
    let program = program
        .and_then(std::ffi::OsStr::to_str)
        .unwrap_or("windlass");
    let printable = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    let program: String = program.chars().map(printable).collect();
    let (version, os) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    format!(
        "{program}/{version} ({os}/{}) windlass/{version}",
        std::env::consts::ARCH
    )
}
