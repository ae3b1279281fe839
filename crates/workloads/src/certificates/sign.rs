//! Signs requests that are approved, for the signers of Kubernetes.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_client::WriteOptions;
use windlass_core::{Doc, Key, doc};
use windlass_runtime::{Action, Context, Controller, Result};

use super::{
    KUBELET_CLIENT, Options, SigningAuthority, conditions, is_approved, is_issued, limiter,
    request::{CertificateRequest, check_client_usages, usages},
    requests,
};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "certificatesigningrequest-signing-controller";

const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// The shortest time for which certificates are good: twice the time by which they begin earlier.
const DURATION_MIN: Duration = Duration::from_secs(10 * 60);

pub(super) fn controller(authority: SigningAuthority, options: &Options) -> Controller {
    let longest = options.duration;
    let reconcile = move |key: Key, cx: Context| {
        let authority = authority.clone();
        async move { sign(&key, &cx, &authority, longest).await }
    };
    Controller::of_kind(requests(), reconcile)
        .named(NAME)
        .queue_named("certificate")
        .rate_limiter(limiter())
        .workers(options.workers)
}

async fn sign(
    key: &Key,
    cx: &Context,
    authority: &SigningAuthority,
    longest: Duration,
) -> Result<Action> {
    let Some(object) = cx.lister_of(&requests())?.get(key) else {
        return Ok(Action::done());
    };
    let object = object.doc();
    let has_failed = conditions(object, "Failed").any(|it| it.str_at("/status") == "True");
    let signer = object.str_at("/spec/signerName");
    let is_ours = [KUBELET_SERVING, KUBELET_CLIENT, CLIENT, LEGACY].contains(&signer);
    if is_issued(object) || !is_approved(object) || has_failed || !is_ours {
        return Ok(Action::done());
    }
    let (request, usages) = (CertificateRequest::of(object)?, usages(object));
    let checked = match signer {
        KUBELET_SERVING => request.check_kubelet_serving(&usages),
        KUBELET_CLIENT => request.check_kubelet_client(&usages),
        CLIENT => check_client_usages(&usages),
        _ => Ok(()),
    };
    let changed = match checked {
        Ok(()) => {
            let duration = duration(object, longest);
            let certificate = authority.sign(&request, &usages, duration, cx.env())?;
            object.with("/status/certificate", BASE64.encode(certificate))?
        }
        Err(why) => with_failure(object, &why, &cx.env().now().to_string())?,
    };
    let options = WriteOptions::default().metadata_only();
    cx.api(&requests(), "")
        .update_status(&changed, &options)
        .await?;
    Ok(Action::done())
}

/// The time for which a certificate is asked to be good, within limits.
fn duration(object: &Doc, longest: Duration) -> Duration {
    let asked = object.at("/spec/expirationSeconds").as_i64();
    let Some(asked) = asked else {
        return longest;
    };
    let asked = Duration::from_secs(u64::try_from(asked).unwrap_or(0));
    match asked > longest {
        true => longest,
        false => asked.max(DURATION_MIN),
    }
}

fn with_failure(object: &Doc, why: &str, now: &str) -> Result<Doc> {
    let mut conditions = object.at("/status/conditions").items().to_vec();
    conditions.push(doc!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
        "lastUpdateTime": now,
    }));
    Ok(object.with("/status/conditions", conditions)?)
}
