//! One call of one webhook, and what its failure means.

use std::time::Duration;

use tokio::time::Instant;
use windlass_rules::status::Status;

use super::super::{Review, Versioned};
use super::Hook;
use super::response::{self, Response};
use super::review::admission_review;
use crate::metrics::WebhookCall;

const USER_AGENT: &str = "kube-apiserver-admission";

/// The reason for which a webhook did not allow a request.
#[derive(Debug)]
pub(super) enum HookError {
    /// The call failed; `failurePolicy` decides.
    Call { reason: String, code: u16 },
    /// The webhook said no.
    Rejected(Status),
    /// The server could not go on; no policy helps.
    Internal(Status),
}

impl HookError {
    pub(super) fn call(reason: impl Into<String>, code: u16) -> Self {
        let reason = reason.into();
        Self::Call { reason, code }
    }

    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Call { code, .. } => *code,
            Self::Rejected(status) => status.code(),
            Self::Internal(_) => 0,
        }
    }

    pub(super) fn sort(&self) -> &'static str {
        match self {
            Self::Call { .. } => "calling_webhook_error",
            Self::Rejected(_) => "no_error",
            Self::Internal(_) => "apiserver_internal_error",
        }
    }

    /// The answer to the client, if the failure counts.
    pub(super) fn into_status(self, webhook: &str) -> Status {
        match self {
            Self::Call { reason, .. } => {
                Status::internal(format!("failed calling webhook {webhook:?}: {reason}"))
            }
            Self::Rejected(status) | Self::Internal(status) => status,
        }
    }
}

/// Refuses a request whose time is over.
pub(super) fn check_deadline(review: &Review<'_>) -> Result<Duration, HookError> {
    let deadline = review.surroundings.notes.deadline;
    match deadline.saturating_duration_since(Instant::now()) {
        left if left.is_zero() => Err(HookError::Internal(out_of_time())),
        left => Ok(left),
    }
}

/// 504, upstream's answer to a request that webhooks took too long for.
pub(super) fn out_of_time() -> Status {
    Status::timeout("request did not complete within requested timeout")
}

/// Calls a webhook, notes its warnings and annotations, and gives its answer if it allows.
pub(super) async fn call(
    hook: &Hook,
    review: &Review<'_>,
    versioned: &Versioned,
    is_mutating: bool,
) -> Result<Response, HookError> {
    check_dry_run(hook, review)?;
    let Some(version) = hook.review_version else {
        let why = "could not create admission objects: webhook does not accept known \
                   AdmissionReview versions (v1, v1beta1)";
        return Err(HookError::call(why, 400));
    };
    let config = hook
        .client
        .as_ref()
        .map_err(|why| HookError::call(format!("could not get REST client: {why}"), 500))?;
    let surroundings = &review.surroundings;
    let uid = surroundings.env.uid();
    let body = admission_review(version, uid.as_str(), review.attributes, versioned);
    let left = surroundings
        .notes
        .deadline
        .saturating_duration_since(Instant::now());
    let how = (USER_AGENT, hook.timeout.min(left));
    let answer = surroundings
        .callouts
        .post(config, surroundings.storage, &body, how)
        .await;
    let failed = |why: &str, code| HookError::call(format!("failed to call webhook: {why}"), code);
    let answer = answer.map_err(|error| failed(&error.0, 503))?;
    let answer = response::read(&answer).map_err(|(why, code)| failed(&why, code))?;
    let response = response::verify(&answer, version, uid.as_str(), is_mutating);
    let response = response
        .map_err(|why| HookError::call(format!("received invalid webhook response: {why}"), 503))?;
    for (key, value) in &response.annotations {
        let key = format!("{}/{key}", hook.name);
        surroundings.notes.annotate(key, value.clone());
    }
    for warning in &response.warnings {
        surroundings.notes.warn(warning.clone());
    }
    match response.is_allowed {
        true => Ok(response),
        false => Err(HookError::Rejected(response::denied(
            &hook.name,
            &response.result,
        ))),
    }
}

/// A webhook with side effects cannot be asked about a dry run.
fn check_dry_run(hook: &Hook, review: &Review<'_>) -> Result<(), HookError> {
    if !review.attributes.dry_run {
        return Ok(());
    }
    match hook.side_effects.as_deref() {
        None => Err(HookError::call("Webhook SideEffects is nil", 400)),
        Some("None" | "NoneOnDryRun") => Ok(()),
        Some(_) => {
            let name = &hook.name;
            let why = format!("admission webhook {name:?} does not support dry run");
            Err(HookError::Internal(Status::bad_request(why)))
        }
    }
}

/// Counts a call and what came of it.
pub(super) fn count<T>(
    hook: &Hook,
    review: &Review<'_>,
    sort: &'static str,
    begun: Instant,
    outcome: &Result<T, HookError>,
) {
    let (code, error) = match outcome {
        Ok(_) => (200, None),
        Err(error) => (error.code(), Some(error)),
    };
    let is_open = matches!(error, Some(HookError::Call { .. })) && hook.fails_open;
    review.surroundings.metrics.webhooks.called(&WebhookCall {
        name: &hook.name,
        sort,
        operation: review.attributes.operation.as_str(),
        took: begun.elapsed(),
        code,
        rejection: error.filter(|_| !is_open).map(HookError::sort),
        is_open,
    });
}

/// Calls a validating webhook.
pub(super) async fn validating(
    hook: &Hook,
    review: &Review<'_>,
    versioned: &Versioned,
    index: usize,
) -> Result<(), Status> {
    let begun = Instant::now();
    let outcome = call(hook, review, versioned, false).await;
    count(hook, review, "validating", begun, &outcome);
    match outcome {
        Ok(_) => Ok(()),
        Err(HookError::Call { reason, .. }) if hook.fails_open => {
            tracing::warn!(
                webhook = hook.name,
                reason,
                "failed calling webhook, failing open"
            );
            let prefix = "failed-open.validating.webhook.admission.k8s.io";
            let key = format!("{prefix}/round_0_index_{index}");
            review.surroundings.notes.annotate(key, hook.name.clone());
            Ok(())
        }
        Err(error) => Err(error.into_status(&hook.name)),
    }
}
