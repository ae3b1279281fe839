//! The answer of a server that has enough to do.

use std::time::Duration;

use windlass_rules::status::Status;

/// The time after which a refused client may come again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// 429 in upstream's words.
pub(crate) fn overloaded() -> Status {
    let message = "Too many requests, please try again later.";
    Status::too_many_requests(message, RETRY_AFTER)
}
