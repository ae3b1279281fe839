//! Approves the requests of nodes for their client certificates, if those who ask may.

use windlass_client::{DynamicClient, WriteOptions};
use windlass_core::{Doc, Gvr, Key, doc};
use windlass_runtime::{Action, Context, Controller, Error, Result};

use super::{
    KUBELET_CLIENT, conditions, is_issued, limiter,
    request::{CertificateRequest, usages},
    requests,
};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "certificatesigningrequest-approving-controller";

const REVIEWS: Gvr = Gvr::constant("authorization.k8s.io", "v1", "subjectaccessreviews");

/// A permission that lets a request be approved, and the message for it.
struct Permission {
    subresource: &'static str,
    message: &'static str,
}

const OWN: Permission = Permission {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const ANY_NODE: Permission = Permission {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

pub(super) fn controller(workers: usize) -> Controller {
    let reconcile = |key: Key, cx: Context| async move { approve(&key, &cx).await };
    Controller::of_kind(requests(), reconcile)
        .named(NAME)
        .queue_named("certificate")
        .rate_limiter(limiter())
        .workers(workers)
}

async fn approve(key: &Key, cx: &Context) -> Result<Action> {
    let Some(object) = cx.lister_of(&requests())?.get(key) else {
        return Ok(Action::done());
    };
    let object = object.doc();
    let is_decided = ["Approved", "Denied"].map(|kind| conditions(object, kind).next().is_some());
    if is_issued(object) || is_decided.contains(&true) {
        return Ok(Action::done());
    }
    let tried = permissions(object)?;
    for permission in &tried {
        if is_allowed(cx, object, permission).await? {
            write(cx, object, permission).await?;
            return Ok(Action::done());
        }
    }
    if tried.is_empty() {
        return Ok(Action::done());
    }
    // Retried for ever: somebody may be given the permission.
    let tried: Vec<&str> = tried.iter().map(|it| it.subresource).collect();
    let name = key.name();
    Err(Error::msg(format!(
        "recognized csr {name:?} as [{}] but subject access review was not approved",
        tried.join(" ")
    )))
}

/// The permissions of which one is enough. None for requests that are not for a node's client.
fn permissions(object: &Doc) -> Result<Vec<Permission>> {
    let request = CertificateRequest::of(object)?;
    let is_meant = object.str_at("/spec/signerName") == KUBELET_CLIENT
        && request.check_kubelet_client(&usages(object)).is_ok();
    let is_own = object.str_at("/spec/username") == request.common_name;
    Ok(match (is_meant, is_own) {
        (false, _) => Vec::new(),
        (true, true) => vec![OWN, ANY_NODE],
        (true, false) => vec![ANY_NODE],
    })
}

async fn is_allowed(cx: &Context, object: &Doc, permission: &Permission) -> Result<bool> {
    let spec = object.at("/spec");
    let mut asked = doc!({
        "user": (spec.str_at("/username")), "uid": (spec.str_at("/uid")),
        "groups": (spec.at("/groups").items().to_vec()),
        "resourceAttributes": {
            "group": "certificates.k8s.io", "version": "*", "verb": "create",
            "resource": "certificatesigningrequests", "subresource": (permission.subresource),
        },
    });
    if let Some(extra) = spec.get("extra") {
        asked = asked.with("/extra", extra.clone())?;
    }
    let review = doc!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked,
    });
    let api = DynamicClient::new(cx.client().clone()).resource(REVIEWS);
    let answer = api.create(&review, &WriteOptions::default()).await?;
    Ok(answer.at("/status/allowed").as_bool() == Some(true))
}

async fn write(cx: &Context, object: &Doc, permission: &Permission) -> Result<()> {
    let mut conditions = object.at("/status/conditions").items().to_vec();
    conditions.push(doc!({
        "type": "Approved", "status": "True", "reason": "AutoApproved",
        "message": (permission.message),
    }));
    let changed = object.with("/status/conditions", conditions)?;
    let api = cx.api(&requests(), "");
    let options = WriteOptions::default().metadata_only();
    api.update_part(object.meta().name(), "approval", &changed, &options)
        .await?;
    Ok(())
}
