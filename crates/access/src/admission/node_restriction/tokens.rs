//! Tokens that a node asks for.

use windlass_core::{Doc, quote};

use super::super::Request;
use super::sender;
use crate::attributes::Attributes;
use crate::authorizer::is_allowed;
use windlass_rules::status::Status;

/// Refuses a token that is not for a pod of the node, and for what the pod asks for.
pub(in crate::admission) fn check_token(
    request: &Request<'_>,
    account: &str,
    wanted: &Doc,
) -> Result<(), Status> {
    let named = windlass_rules::edit::put(Doc::empty_object(), "/metadata/name", account);
    let Some(node) = sender(request, &named)? else {
        return Ok(());
    };
    let refuse = |why: &str| Err(request.forbid(&named, why));
    let bound = wanted.at("/spec/boundObjectRef");
    let (name, uid) = (bound.str_at("/name"), bound.str_at("/uid"));
    let is_pod = bound.str_at("/apiVersion") == "v1" && bound.str_at("/kind") == "Pod";
    if !is_pod || name.is_empty() {
        return refuse("node requested token not bound to a pod");
    }
    if uid.is_empty() {
        return refuse("node requested token with a pod binding without a uid");
    }
    let Some(pod) = request.objects.find("", "pods", request.namespace, name) else {
        let pods = windlass_core::GroupResource::new("", "pods");
        return Err(Status::not_found(&pods, name));
    };
    if pod.meta().uid_str() != uid {
        return refuse(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        ));
    }
    if pod.str_at("/spec/nodeName") != node {
        return refuse("node requested token bound to a pod scheduled on a different node");
    }
    check_audience(request, account, wanted, &pod).or_else(|why| refuse(&why))
}

fn check_audience(
    request: &Request<'_>,
    account: &str,
    wanted: &Doc,
    pod: &Doc,
) -> Result<(), String> {
    let audience = match wanted.at("/spec/audiences").items() {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err("node may only request 0 or 1 audiences".to_owned()),
    };
    if mentions_audience(request, pod, audience) {
        return Ok(());
    }
    let may = Attributes {
        verb: "request-serviceaccounts-token-audience".to_owned(),
        resource: audience.to_owned(),
        namespace: request.namespace.to_owned(),
        name: account.to_owned(),
        ..Attributes::default()
    };
    if is_allowed(request.user, &may, request.objects) {
        return Ok(());
    }
    Err(format!(
        "audience {} not found in pod spec volume, {} is not authorized to request tokens for this \
         audience",
        quote(audience),
        request.user.name
    ))
}

/// Returns true if a volume of a pod, or the driver of one, asks for an audience.
fn mentions_audience(request: &Request<'_>, pod: &Doc, audience: &str) -> bool {
    let driver_of = |claim: &str| {
        let find = |resource: &str, namespace: &str, name: &str| {
            request.objects.find("", resource, namespace, name)
        };
        let claim = find("persistentvolumeclaims", request.namespace, claim)?;
        let volume = find("persistentvolumes", "", claim.str_at("/spec/volumeName"))?;
        Some(volume.str_at("/spec/csi/driver").to_owned())
    };
    let wants = |driver: &str| {
        let found = request
            .objects
            .find("storage.k8s.io", "csidrivers", "", driver);
        let requests = found.map(|driver| driver.at("/spec/tokenRequests").items().to_vec());
        let mut requests = requests.unwrap_or_default().into_iter();
        requests.any(|request| request.str_at("/audience") == audience)
    };
    pod.at("/spec/volumes").items().iter().any(|volume| {
        let mut sources = volume.at("/projected/sources").items().iter();
        if sources.any(|source| {
            let token = source.at("/serviceAccountToken");
            !token.is_null() && token.str_at("/audience") == audience
        }) {
            return true;
        }
        let driver = if !volume.at("/ephemeral").is_null() {
            driver_of(&format!("{}-{}", pod.meta().name(), volume.str_at("/name")))
        } else if !volume.at("/persistentVolumeClaim").is_null() {
            driver_of(volume.str_at("/persistentVolumeClaim/claimName"))
        } else {
            Some(volume.str_at("/csi/driver").to_owned())
        };
        driver.is_some_and(|driver| !driver.is_empty() && wants(&driver))
    })
}
