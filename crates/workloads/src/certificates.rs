//! The three controllers of CertificateSigningRequests: one approves requests of nodes for their
//! client certificates, one signs what is approved, one deletes old requests.
//!
//! The signer has the key of the certificate authority. It signs for the signers of Kubernetes
//! itself and for nobody else, and never makes another authority.

mod approve;
mod authority;
mod clean;
mod der;
mod request;
mod sign;
mod usages;

use std::time::Duration;

use windlass_core::{Doc, GroupVersion, Key};
use windlass_queue::{ItemExponential, MaxOf, TokenBucket};
use windlass_runtime::{Manager, ResourceKind};

pub use approve::NAME as APPROVING;
pub use authority::{AuthorityError, SigningAuthority};
pub use clean::NAME as CLEANER;
pub use sign::NAME as SIGNING;

/// The longest time for which certificates are good, as in kube-controller-manager.
pub const SIGNING_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The signer of the client certificates of nodes.
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// The numbers of the controllers, and the authority that signs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests that are worked on at the same time.
    pub workers: usize,
    /// The authority. Without one nothing is signed.
    pub authority: Option<SigningAuthority>,
    /// The longest time for which certificates are good.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 5,
            authority: None,
            duration: SIGNING_DURATION,
        }
    }
}

/// Adds the controller that approves requests.
pub fn add_approving_to(manager: &Manager, options: &Options) {
    manager.add(approve::controller(options.workers));
}

/// Adds the controller that signs, if there is an authority.
pub fn add_signing_to(manager: &Manager, options: &Options) {
    match &options.authority {
        Some(authority) => manager.add(sign::controller(authority.clone(), options)),
        None => tracing::warn!(
            controller = SIGNING,
            "not started: there is no authority to sign with"
        ),
    }
}

/// Adds the controller that deletes old requests.
pub fn add_cleaner_to(manager: &Manager) {
    clean::add_to(manager);
}

fn requests() -> ResourceKind {
    let group_version = GroupVersion::constant("certificates.k8s.io", "v1");
    ResourceKind::cluster(
        group_version,
        "CertificateSigningRequest",
        "certificatesigningrequests",
    )
}

/// Upstream's delays between retries: 200 ms, doubled up to 1000 s.
fn limiter() -> MaxOf<ItemExponential<Key>, TokenBucket> {
    MaxOf(
        ItemExponential::new(Duration::from_millis(200), Duration::from_secs(1000)),
        TokenBucket::new(10.0, 100),
    )
}

fn is_issued(request: &Doc) -> bool {
    !request.str_at("/status/certificate").is_empty()
}

/// The conditions of a request of one type.
fn conditions<'d>(request: &'d Doc, kind: &'d str) -> impl Iterator<Item = &'d Doc> {
    let conditions = request.at("/status/conditions").items().iter();
    conditions.filter(move |it| it.str_at("/type") == kind)
}

/// Returns true if a request is approved and not denied as well.
fn is_approved(request: &Doc) -> bool {
    conditions(request, "Approved").next().is_some()
        && conditions(request, "Denied").next().is_none()
}
