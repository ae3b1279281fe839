//! Requests for certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use windlass_client::WriteOptions;
use windlass_core::{Doc, Gvr, condition, doc};
use windlass_workloads::certificates::{self, Options, SigningAuthority};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use crate::scene::{Picture, Scene, end_alike_with, scripts};

const REQUESTS: Gvr = Gvr::constant("certificates.k8s.io", "v1", "certificatesigningrequests");
const CONFIG_MAPS: Gvr = Gvr::constant("", "v1", "configmaps");

const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

impl Scene {
    /// Asks for a certificate.
    async fn ask(&self, signer: &str, usages: &[&str], request: String, seconds: i64) -> Doc {
        let usages: Vec<Doc> = usages.iter().map(|it| Doc::from(*it)).collect();
        self.create_outside(doc!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": { "name": "a" },
            "spec": {
                "signerName": signer, "usages": usages, "request": (BASE64.encode(request)),
                "expirationSeconds": seconds
            }
        }))
        .await
    }

    async fn decide(&self, kind: &str) {
        let request = self.find_outside(&REQUESTS, "a").await.unwrap();
        let decision = doc!({
            "type": kind, "status": "True", "reason": "Tested", "message": "by a test"
        });
        let decided = request.with("/status/conditions", vec![decision]).unwrap();
        let api = self.cluster.resource(REQUESTS);
        let options = WriteOptions::default();
        api.update_part(&self.own("a"), "approval", &decided, &options)
            .await
            .unwrap();
    }

    async fn until_failed(&self) {
        self.until("the request fails", async || {
            let found = self.find_outside(&REQUESTS, "a").await.unwrap();
            condition(&found, "Failed").is_some()
        })
        .await;
    }

    /// Waits for the certificate, and notes in a ConfigMap what it says.
    async fn issued(&self) {
        self.until("the certificate is there", async || {
            let found = self.find_outside(&REQUESTS, "a").await.unwrap();
            !found.str_at("/status/certificate").is_empty()
        })
        .await;
        let found = self.find_outside(&REQUESTS, "a").await.unwrap();
        let pem = BASE64.decode(found.str_at("/status/certificate")).unwrap();
        let pem = String::from_utf8(pem).unwrap();
        let body: String = pem.lines().filter(|it| !it.starts_with('-')).collect();
        let der = BASE64.decode(body).unwrap();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        self.create(doc!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "certificate" },
            "data": { "text": (says(&certificate)) }
        }))
        .await;
    }
}

/// Everything that a certificate says, without its number, its keys and its times.
fn says(certificate: &X509Certificate<'_>) -> String {
    let name = certificate.subject().to_string();
    let mut name: Vec<&str> = name.split(", ").collect();
    name.sort_unstable();
    let validity = certificate.validity();
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    let mut extensions: Vec<String> = certificate
        .extensions()
        .iter()
        .map(|it| format!("{} {} {:?}", it.oid, it.critical, it.parsed_extension()))
        .filter(|it| !it.contains("KeyIdentifier"))
        .collect();
    extensions.sort();
    format!(
        "{:?} {name:?} {} {seconds} {extensions:#?}",
        certificate.version(),
        certificate.issuer()
    )
}

fn request(common: &str, organization: &str, hosts: &[&str]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = DistinguishedName::new();
    let name = &mut params.distinguished_name;
    name.push(DnType::OrganizationName, organization);
    name.push(DnType::CommonName, common);
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

fn authority() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "test-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

const HOUR: i64 = 3600;

scripts! {
    node_client |scene| {
        let asked = request("system:node:n1", "system:nodes", &[]);
        scene.ask(KUBELET_CLIENT, &["digital signature", "client auth"], asked, HOUR).await;
        scene.issued().await;
    }
    node_client_with_names |scene| {
        let asked = request("system:node:n1", "system:nodes", &["n1"]);
        scene.ask(KUBELET_CLIENT, &["digital signature", "client auth"], asked, HOUR).await;
        scene.decide("Approved").await;
        scene.until_failed().await;
    }
    node_serving |scene| {
        let asked = request("system:node:n1", "system:nodes", &["n1", "10.0.0.1"]);
        let usages = ["digital signature", "key encipherment", "server auth"];
        scene.ask(KUBELET_SERVING, &usages, asked, 24 * HOUR).await;
        scene.decide("Approved").await;
        scene.issued().await;
    }
    node_serving_for_somebody_else |scene| {
        let asked = request("n1", "system:nodes", &["n1"]);
        let usages = ["digital signature", "key encipherment", "server auth"];
        scene.ask(KUBELET_SERVING, &usages, asked, HOUR).await;
        scene.decide("Approved").await;
        scene.until_failed().await;
    }
    client |scene| {
        let asked = request("jane", "team", &[]);
        scene.ask(CLIENT, &["client auth"], asked, 600).await;
        scene.decide("Approved").await;
        scene.issued().await;
    }
    client_for_a_server |scene| {
        let asked = request("jane", "team", &[]);
        scene.ask(CLIENT, &["client auth", "server auth"], asked, HOUR).await;
        scene.decide("Approved").await;
        scene.until_failed().await;
    }
    another_signer |scene| {
        let asked = request("jane", "team", &[]);
        scene.ask("example.com/signer", &["client auth"], asked, HOUR).await;
        scene.decide("Approved").await;
    }
    denied |scene| {
        let asked = request("jane", "team", &[]);
        scene.ask(CLIENT, &["client auth"], asked, HOUR).await;
        scene.decide("Denied").await;
    }
}

#[tokio::test]
async fn certificates_end_alike_with_their_controllers_and_with_ours() {
    let (certificate, key) = authority();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let flags = [
        format!(
            "--cluster-signing-cert-file={}",
            write("ca.crt", &certificate)
        ),
        format!("--cluster-signing-key-file={}", write("ca.key", &key)),
    ];
    let picture = Picture {
        namespaced: vec![CONFIG_MAPS],
        cluster: vec![REQUESTS],
        // The credentials of whoever asks are in `extra`.
        ignored: &["certificate", "request", "generation", "extra"],
    };
    let theirs = [certificates::APPROVING, certificates::SIGNING];
    end_alike_with(SCRIPTS, picture, &theirs, &flags, |manager| {
        let options = Options {
            authority: Some(SigningAuthority::from_pem(&certificate, &key).unwrap()),
            ..Options::default()
        };
        certificates::add_approving_to(manager, &options);
        certificates::add_signing_to(manager, &options);
    })
    .await;
}
