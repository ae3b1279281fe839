//! A cluster with the three controllers and an authority.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use windlass_client::{Error, WriteOptions};
use windlass_core::{Doc, Gvr, condition, doc, merge_patch};
use windlass_testing::Cluster;
use windlass_workloads::certificates::{self, Options, SigningAuthority};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

pub(crate) const REQUESTS: Gvr =
    Gvr::constant("certificates.k8s.io", "v1", "certificatesigningrequests");

pub(crate) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(crate) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_authority(authority(3650)).await
    }

    pub(crate) async fn with_authority(authority: (String, String)) -> Self {
        let cluster = Cluster::start().await;
        let authority = SigningAuthority::from_pem(&authority.0, &authority.1).unwrap();
        let options = Options {
            authority: Some(authority),
            ..Options::default()
        };
        cluster.run_with("certificates", |manager| {
            certificates::add_approving_to(manager, &options);
            certificates::add_signing_to(manager, &options);
            certificates::add_cleaner_to(manager);
        });
        Self { cluster }
    }

    pub(crate) async fn pass(&self, time: Duration) {
        self.cluster.pass(time).await;
    }

    /// Creates a request named `a`.
    pub(crate) async fn ask(&self, signer: &str, usages: &[&str], request: &str) -> Doc {
        self.ask_with(signer, usages, request, doc!({})).await
    }

    pub(crate) async fn ask_with(
        &self,
        signer: &str,
        usages: &[&str],
        request: &str,
        spec: Doc,
    ) -> Doc {
        let object = object(signer, usages, request);
        let object = merge_patch(&object, &doc!({ "spec": spec }));
        self.cluster.create_doc(&object).await
    }

    /// Creates a request that may be refused.
    pub(crate) async fn try_to_ask(
        &self,
        signer: &str,
        usages: &[&str],
        request: &str,
    ) -> Result<Doc, Error> {
        let api = self.cluster.resource(REQUESTS);
        let object = object(signer, usages, request);
        api.create(&object, &WriteOptions::default()).await
    }

    /// Creates the request as another user.
    pub(crate) async fn ask_as(&self, user: &str, signer: &str, usages: &[&str], request: &str) {
        let object = object(signer, usages, request);
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let posted = self
            .cluster
            .client()
            .post(path)
            .header("Impersonate-User", user);
        posted.doc(&object).into_doc().await.unwrap();
    }

    pub(crate) async fn find(&self) -> Option<Doc> {
        self.cluster.find(&REQUESTS, "a").await
    }

    /// Decides about the request, as `kubectl certificate approve` and `deny` do.
    pub(crate) async fn decide(&self, kind: &str) {
        let request = self.find().await.unwrap();
        let decision = doc!({
            "type": kind, "status": "True", "reason": "Tested", "message": "by a test"
        });
        let decided = request.with("/status/conditions", vec![decision]).unwrap();
        let api = self.cluster.resource(REQUESTS);
        api.update_part("a", "approval", &decided, &WriteOptions::default())
            .await
            .unwrap();
    }

    pub(crate) async fn until(&self, holds: impl Fn(&Doc) -> bool) -> Doc {
        let looked = async |_: &Cluster| self.find().await.is_some_and(|it| holds(&it));
        let patience = Duration::from_secs(600);
        self.cluster.until_within(patience, looked).await;
        self.find().await.unwrap()
    }

    /// Waits for the certificate.
    pub(crate) async fn certificate(&self) -> Issued {
        let request = self.until(is_issued).await;
        let pem = BASE64
            .decode(request.str_at("/status/certificate"))
            .unwrap();
        Issued(String::from_utf8(pem).unwrap())
    }
}

/// A request named `a`.
fn object(signer: &str, usages: &[&str], request: &str) -> Doc {
    let usages: Vec<Doc> = usages.iter().map(|it| Doc::from(*it)).collect();
    doc!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": "a" },
        "spec": { "signerName": signer, "usages": usages, "request": (BASE64.encode(request)) }
    })
}

/// A certificate in PEM.
pub(crate) struct Issued(String);

impl Issued {
    pub(crate) fn read<T>(&self, look: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
        let body: String = self.0.lines().filter(|it| !it.starts_with('-')).collect();
        let der = BASE64.decode(body).unwrap();
        let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
        assert!(rest.is_empty());
        look(&certificate)
    }

    /// Seconds from a time to the last second in which the certificate is good.
    pub(crate) fn ends_after(&self, time: windlass_core::Time) -> i64 {
        self.read(|it| it.validity().not_after.timestamp()) - time.unix()
    }
}

pub(crate) fn is_issued(request: &Doc) -> bool {
    !request.str_at("/status/certificate").is_empty()
}

pub(crate) fn has(request: &Doc, kind: &str) -> bool {
    condition(request, kind).is_some_and(|it| it.is_true())
}

/// A certificate authority whose certificate is good for so many days: certificate and key.
pub(crate) fn authority(days: i64) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = name("test-ca", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let start = clusters_begin();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    let end = start + days * 24 * 60 * 60;
    let text = windlass_core::Time::from_unix(end).to_string();
    let part = |from: usize, to: usize| text[from..to].parse::<u16>().unwrap();
    let (month, day) = (
        u8::try_from(part(5, 7)).unwrap(),
        u8::try_from(part(8, 10)).unwrap(),
    );
    params.not_after = rcgen::date_time_ymd(part(0, 4).into(), month, day);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// The time at which clusters of tests begin.
fn clusters_begin() -> i64 {
    windlass_testing::TokioClock::new().env(1).now().unix()
}

pub(crate) fn name(common: &str, organizations: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    for organization in organizations {
        name.push(DnType::OrganizationName, *organization);
    }
    name
}

/// A request for a certificate, in PEM.
pub(crate) fn request(common: &str, organizations: &[&str], hosts: &[&str]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = name(common, organizations);
    // What a request asks for beyond its names does not matter.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}
