//! When a request is sent once more.

use std::time::Duration;

use http::{Method, StatusCode};

use crate::error::{io_kind, sources};
use crate::{Cause, Error, RequestOutcome};

/// The wait before a read is repeated whose connection broke.
const BROKEN_CONNECTION_WAIT: Duration = Duration::from_secs(1);

/// Longest wait that a server can impose on a request.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The wait before the request is sent once more; `None` if it is not.
///
/// The server must ask for it: with 429 or a 5xx, and a `Retry-After`. A refused request may always
/// be repeated. A request that may have been carried out is repeated only if it is idempotent, so
/// never a POST, nor a PATCH, which may append. A broken connection counts as the latter, and is
/// retried for reads only, as in client-go.
pub(super) fn wait_before_retry(
    method: &Method,
    error: &Error,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let is_safe = error.outcome() == RequestOutcome::Rejected || method.is_idempotent();
    match error.cause() {
        Cause::Status(status) => {
            let code = StatusCode::from_u16(status.code).ok()?;
            let is_asked = code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error();
            retry_after
                .filter(|_| is_asked && is_safe)
                .map(|wait| wait.min(WAIT_LIMIT))
        }
        Cause::Connection(source) if *method == Method::GET && is_broken(source.as_ref()) => {
            Some(BROKEN_CONNECTION_WAIT)
        }
        _ => None,
    }
}

/// The words of client-go for why a request is repeated.
pub(super) fn reason(attempt: u32, wait: Duration, error: &Error) -> String {
    let why = match error.cause() {
        Cause::Status(status) if status.code == 429 => "due to server-side throttling".to_owned(),
        Cause::Status(status) => status.code.to_string(),
        cause => format!("due to retryable error, error: {cause}"),
    };
    format!(
        "retries: {attempt}, retry-after: {}s - retry-reason: {why}",
        wait.as_secs()
    )
}

/// Returns true if the peer closed the connection while we waited for an answer.
fn is_broken(source: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    sources(source).any(|error| {
        let is_early_end = error
            .downcast_ref::<hyper::Error>()
            .is_some_and(|error| error.is_incomplete_message() || error.is_closed());
        let kind = io_kind(error);
        is_early_end
            || matches!(
                kind,
                Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
            )
    })
}
