//! Requests for certificates in PKCS #10, and which of them the signers of Kubernetes accept.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::Doc;
use windlass_runtime::{Error, Result};
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer,
    x509::AttributeTypeAndValue,
};

const NODE_GROUP: &str = "system:nodes";
const NODE_USER: &str = "system:node:";

/// A name for which a certificate is good, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SubjectName {
    Dns(Vec<u8>),
    Email(Vec<u8>),
    Ip(Vec<u8>),
    Uri(Vec<u8>),
}

/// The parts of a request that end up in a certificate.
#[derive(Clone, Debug)]
pub(super) struct CertificateRequest {
    /// The whole subject in DER.
    pub(super) subject: Vec<u8>,
    /// The whole public key with its algorithm in DER.
    pub(super) public_key: Vec<u8>,
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) names: Vec<SubjectName>,
}

impl CertificateRequest {
    /// Reads the request of an object, and checks that who made it has the private key.
    pub(super) fn of(object: &Doc) -> Result<Self> {
        let name = object.meta().name();
        let fail = |why: &str| Error::msg(format!("unable to parse csr {name:?}: {why}"));
        let der = pem_body(object.str_at("/spec/request"), "CERTIFICATE REQUEST")
            .ok_or_else(|| fail("PEM block type must be CERTIFICATE REQUEST"))?;
        let (_, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|error| fail(&error.to_string()))?;
        parsed
            .verify_signature()
            .map_err(|error| fail(&format!("its signature does not fit: {error}")))?;
        let info = &parsed.certification_request_info;
        let text = |it: &AttributeTypeAndValue<'_>| it.as_str().unwrap_or_default().to_owned();
        let names = info.subject.iter_common_name().map(text);
        Ok(Self {
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            common_name: names.last().unwrap_or_default(),
            organizations: info.subject.iter_organization().map(text).collect(),
            names: subject_names(&parsed),
        })
    }

    fn has(&self, is_meant: impl Fn(&SubjectName) -> bool) -> bool {
        self.names.iter().any(is_meant)
    }

    /// Checks a request for the client certificate of a node. Upstream's `ValidateKubeletClientCSR`
    /// in `pkg/apis/certificates/helpers.go`.
    pub(super) fn check_kubelet_client(&self, usages: &[&str]) -> Result<(), String> {
        self.check_organization()?;
        let kinds = [
            (self.has(|it| matches!(it, SubjectName::Dns(_))), "DNS"),
            (self.has(|it| matches!(it, SubjectName::Email(_))), "Email"),
            (self.has(|it| matches!(it, SubjectName::Ip(_))), "IP"),
            (self.has(|it| matches!(it, SubjectName::Uri(_))), "URI"),
        ];
        if let Some((_, kind)) = kinds.iter().find(|(is_there, _)| *is_there) {
            return Err(format!("{kind} subjectAltNames are not allowed"));
        }
        self.check_node_name()?;
        check_usages(usages, "client auth")
    }

    /// Checks a request for the serving certificate of a node.
    pub(super) fn check_kubelet_serving(&self, usages: &[&str]) -> Result<(), String> {
        self.check_organization()?;
        if !self.has(|it| matches!(it, SubjectName::Dns(_) | SubjectName::Ip(_))) {
            return Err("DNS or IP subjectAltName is required".to_owned());
        }
        if self.has(|it| matches!(it, SubjectName::Email(_))) {
            return Err("Email subjectAltNames are not allowed".to_owned());
        }
        if self.has(|it| matches!(it, SubjectName::Uri(_))) {
            return Err("URI subjectAltNames are not allowed".to_owned());
        }
        check_usages(usages, "server auth")?;
        self.check_node_name()
    }

    fn check_organization(&self) -> Result<(), String> {
        match self.organizations == [NODE_GROUP] {
            true => Ok(()),
            false => Err(format!("subject organization is not {NODE_GROUP}")),
        }
    }

    fn check_node_name(&self) -> Result<(), String> {
        match self.common_name.starts_with(NODE_USER) {
            true => Ok(()),
            false => Err(format!(
                "subject common name does not begin with {NODE_USER}"
            )),
        }
    }
}

/// The usages of a node's key: `auth`, signatures, and the encipherment of keys if it is RSA.
fn check_usages(usages: &[&str], auth: &str) -> Result<(), String> {
    let given: BTreeSet<&str> = usages.iter().copied().collect();
    let least: BTreeSet<&str> = ["digital signature", auth].into();
    let most: BTreeSet<&str> = ["digital signature", "key encipherment", auth].into();
    if given == least || given == most {
        return Ok(());
    }
    let most: Vec<&str> = most.into_iter().collect();
    Err(format!("usages did not match [{}]", most.join(" ")))
}

/// Checks the usages of a client's certificate.
pub(super) fn check_client_usages(usages: &[&str]) -> Result<(), String> {
    for usage in usages {
        if !matches!(
            *usage,
            "digital signature" | "key encipherment" | "client auth"
        ) {
            return Err(format!("invalid usage for client certificate: {usage}"));
        }
    }
    match usages.contains(&"client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

/// The usages that a request asks for.
pub(super) fn usages(object: &Doc) -> Vec<&str> {
    let usages = object.at("/spec/usages").items().iter();
    usages.filter_map(Doc::as_str).collect()
}

/// The bytes of a PEM block that is itself in base64, as in the field of an object.
pub(super) fn pem_body(encoded: &str, label: &str) -> Option<Vec<u8>> {
    let pem = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    pem_block(&pem, label)
}

/// The bytes of the first PEM block with a label.
pub(super) fn pem_block(pem: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    BASE64.decode(body).ok()
}

/// The names of the four kinds that certificates keep.
fn subject_names(request: &X509CertificationRequest<'_>) -> Vec<SubjectName> {
    let extensions = request.requested_extensions().into_iter().flatten();
    let names = extensions.filter_map(|extension| match extension {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let names = names.flatten().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(SubjectName::Dns(name.as_bytes().to_vec())),
        GeneralName::RFC822Name(name) => Some(SubjectName::Email(name.as_bytes().to_vec())),
        GeneralName::IPAddress(address) => Some(SubjectName::Ip(address.to_vec())),
        GeneralName::URI(uri) => Some(SubjectName::Uri(uri.as_bytes().to_vec())),
        _ => None,
    });
    names.collect()
}
