//! Requests for certificates: who asks, and when it was decided.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::{Doc, Object, Str, quote};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer, X509Name};

use super::Request;
use super::plugin::Admit;
use crate::attributes::Attributes;
use crate::authorizer::is_allowed;
use crate::user::MASTERS;
use windlass_rules::edit::edit;
use windlass_rules::status::Status;

const GROUP: &str = "certificates.k8s.io";
/// The signers of certificates for nodes.
const NODE_SIGNERS: [&str; 2] = [
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
];
/// The signer of certificates that this server accepts from clients.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Notes the author of a request for a certificate, and checks its signer and its subject.
pub(super) struct CertificateSigning;

impl Admit for CertificateSigning {
    fn create(&self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        Ok(admit(request, &object))
    }

    fn update_part(&self, request: &Request<'_>, new: Doc, old: &Doc) -> Result<Doc, Status> {
        Ok(date(request, &new, old))
    }

    fn validate(
        &self,
        request: &Request<'_>,
        object: &Doc,
        old: Option<&Doc>,
    ) -> Result<(), Status> {
        match old {
            None => check_subject(request, object),
            Some(_) => Ok(()),
        }
    }

    fn validate_part(&self, request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
        check_signer(request, new, old)
    }
}

/// A new request with the user who asks, whatever it says itself.
fn admit(request: &Request<'_>, object: &Doc) -> Doc {
    let user = request.user;
    let texts =
        |texts: &[String]| -> Doc { texts.iter().map(Doc::from).collect::<Vec<_>>().into() };
    let extra = user.extra.iter();
    let extra = extra.map(|(key, values)| (Str::new(key), texts(values)));
    let extra = Object::new(extra.collect());
    edit(object, |object| {
        object.inside("spec", |spec| {
            edit(spec, |spec| {
                for key in ["username", "uid", "groups", "extra"] {
                    spec.remove(key);
                }
                spec.set("username", user.name.as_str());
                if !user.uid.is_empty() {
                    spec.set("uid", user.uid.as_str());
                }
                if !user.groups.is_empty() {
                    spec.set("groups", texts(&user.groups));
                }
                if !extra.is_empty() {
                    spec.set("extra", extra);
                }
            })
        });
    })
}

/// A request whose conditions all say since when they hold.
fn date(request: &Request<'_>, object: &Doc, old: &Doc) -> Doc {
    let now = Doc::from(request.env.now().to_string());
    let before = old.at("/status/conditions").items();
    let dated = |condition: &Doc| {
        let is_same = |known: &&Doc| {
            known.at("/type") == condition.at("/type")
                && known.at("/status") == condition.at("/status")
        };
        let known = before.iter().find(is_same);
        let since = known.map(|known| known.at("/lastTransitionTime").clone());
        let since = since.filter(|since| !since.is_null());
        edit(condition, |condition| {
            condition.default("lastUpdateTime", now.clone());
            condition.default("lastTransitionTime", since.unwrap_or_else(|| now.clone()));
        })
    };
    edit(object, |object| {
        object.inside("status", |status| {
            edit(status, |status| status.each("conditions", dated))
        });
    })
}

/// Refuses a request for a certificate with which everything would be allowed.
fn check_subject(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    if object.str_at("/spec/signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let Some(groups) = organizations(object.str_at("/spec/request")) else {
        let why = "failed to parse CSR: it is not a PKCS #10 request in PEM";
        return Err(request.forbid(object, why));
    };
    if groups.iter().any(|group| group == MASTERS) {
        let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(request.forbid(object, &why));
    }
    Ok(())
}

/// Refuses a node's request for the certificate of another node.
pub(super) fn check_node_subject(
    request: &Request<'_>,
    node: &str,
    object: &Doc,
) -> Result<(), Status> {
    if !NODE_SIGNERS.contains(&object.str_at("/spec/signerName")) {
        return Ok(());
    }
    let Some(names) = subject(object.str_at("/spec/request"), |subject| {
        let names = subject.iter_common_name();
        names
            .map(|it| it.as_str().ok().map(str::to_owned))
            .collect()
    }) else {
        let why = "unable to parse csr: it is not a PKCS #10 request in PEM";
        return Err(request.forbid(object, why));
    };
    let own = format!("system:node:{node}");
    if names.last() == Some(&own) {
        return Ok(());
    }
    let why = format!("can only create a node CSR with CN={own}");
    Err(request.forbid(object, &why))
}

/// The organizations in the subject of a request for a certificate, which is PEM in base64.
fn organizations(encoded: &str) -> Option<Vec<String>> {
    subject(encoded, |subject| {
        let organizations = subject.iter_organization();
        organizations
            .map(|it| it.as_str().ok().map(str::to_owned))
            .collect()
    })
}

/// A part of the subject of a request for a certificate.
fn subject(
    encoded: &str,
    part: impl FnOnce(&X509Name<'_>) -> Option<Vec<String>>,
) -> Option<Vec<String>> {
    let pem = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE REQUEST-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE REQUEST-----")?;
    let body: String = body.split_whitespace().collect();
    let der = BASE64.decode(body).ok()?;
    let (_, parsed) = X509CertificationRequest::from_der(&der).ok()?;
    part(&parsed.certification_request_info.subject)
}

/// Refuses a decision about a request by somebody who may not decide for its signer.
fn check_signer(request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
    let signer = old.str_at("/spec/signerName");
    let verb = match request.subresource {
        "approval" => "approve",
        "status" => {
            let is_same = |pointer: &str| new.at(pointer) == old.at(pointer);
            if is_same("/status/certificate") && is_same("/status/conditions") {
                return Ok(());
            }
            "sign"
        }
        _ => return Ok(()),
    };
    if may(request, verb, signer) {
        return Ok(());
    }
    let signer = quote(signer);
    let why = format!("user not permitted to {verb} requests with signerName {signer}");
    Err(request.forbid(old, &why))
}

/// Returns true if the user has a right for a signer, or for all signers of its domain.
fn may(request: &Request<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")]
        .into_iter()
        .any(|name| {
            let wanted = Attributes {
                verb: verb.to_owned(),
                group: GROUP.to_owned(),
                resource: "signers".to_owned(),
                name,
                ..Attributes::default()
            };
            is_allowed(request.user, &wanted, request.objects)
        })
}
