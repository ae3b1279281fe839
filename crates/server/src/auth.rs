//! Who asks, and whether they may.

mod admin;
mod authn;
mod bootstrap;
mod coverage;
mod escalation;
mod grants;
mod impersonate;
mod node;
mod rbac;
mod review;
mod token;

use http::HeaderMap;
use windlass_core::{GroupResource, quote};

pub(crate) use admin::{admin_token, fresh_token};
pub(crate) use authn::{Authenticator, certificate_user};
pub(crate) use bootstrap::objects as bootstrap_objects;
pub(crate) use escalation::{Grant, GrantWrite, check_escalation};
pub(crate) use grants::GrantIndex;
pub(crate) use impersonate::effective_user;
pub(crate) use node::{PodIndex, node_of, referenced_resource};
pub(crate) use rbac::Attributes;
pub(crate) use review::Review;
pub use token::SignerError;
pub(crate) use token::{Claims, ISSUER, Signer};

use crate::status::Status;
use crate::storage::Storage;

/// Who asks. In process, a caller says so by putting this into the extensions of its request;
/// what comes over a socket cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name that roles are bound to.
    pub name: String,
    /// A name that is never given twice, if there is one.
    pub uid: String,
    /// The groups that roles are bound to.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

impl User {
    /// A user that is known to be who they say.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// The administrator, who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("windlass-admin", &[MASTERS])
    }

    /// The server itself.
    pub(crate) fn server() -> Self {
        Self::new("system:apiserver", &[MASTERS])
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let group = format!("system:serviceaccounts:{namespace}");
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &group],
        )
    }

    /// Somebody unknown.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The value of an extra that has exactly one.
    fn single_extra(&self, key: &str) -> Option<&str> {
        let values = self.extra.iter().find(|(known, _)| known == key);
        match values.map(|(_, values)| values.as_slice()) {
            Some([value]) => Some(value),
            _ => None,
        }
    }

    /// Whether the user is a member of a group.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The answer of the authorizers, in upstream's order: the group of administrators, nodes,
/// then roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    /// Why, or why not; often empty.
    pub(crate) reason: String,
}

impl Decision {
    fn allow(reason: impl Into<String>) -> Self {
        Self {
            is_allowed: true,
            reason: reason.into(),
        }
    }

    fn no_opinion(reason: impl Into<String>) -> Self {
        Self {
            is_allowed: false,
            reason: reason.into(),
        }
    }
}

/// Decides if a user may do something.
pub(crate) fn authorize(user: &User, wanted: &Attributes, storage: &Storage) -> Decision {
    if user.is_in(MASTERS) {
        return Decision::allow("");
    }
    let node = node::decide(user, wanted, storage);
    if node.is_allowed {
        return node;
    }
    let mut roles = rbac::decide(user, wanted, storage);
    if !roles.is_allowed && !node.reason.is_empty() {
        let reasons = [node.reason, roles.reason];
        let reasons: Vec<String> = reasons.into_iter().filter(|it| !it.is_empty()).collect();
        roles.reason = reasons.join("\n");
    }
    roles
}

/// Returns true if a user may do something.
pub(crate) fn is_allowed(user: &User, wanted: &Attributes, storage: &Storage) -> bool {
    authorize(user, wanted, storage).is_allowed
}

/// Refuses what a user may not do, with 403 in upstream's words.
pub(crate) fn check(user: &User, wanted: &Attributes, storage: &Storage) -> Result<(), Status> {
    let decision = authorize(user, wanted, storage);
    match decision.is_allowed {
        true => Ok(()),
        false => Err(denied(user, wanted, &decision.reason)),
    }
}

/// 403 in upstream's words.
fn denied(user: &User, wanted: &Attributes, reason: &str) -> Status {
    let who = quote(&user.name);
    let (resource, what) = match &wanted.path {
        Some(path) => ("", format!("cannot {} path {}", wanted.verb, quote(path))),
        None => {
            let scope = match wanted.namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quote(namespace)),
            };
            let (resource, group) = (quote(&wanted.resource), quote(&wanted.group));
            let what = format!(
                "cannot {} resource {resource} in API group {group} {scope}",
                wanted.verb
            );
            let main = wanted.resource.split_once('/');
            (
                main.map_or(wanted.resource.as_str(), |(main, _)| main),
                what,
            )
        }
    };
    // The text may be shown as a page.
    let mut why = format!("User {who} {what}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let resource = GroupResource::new(wanted.group.clone(), resource.to_owned());
    Status::forbidden(&resource, &wanted.name, &why)
}
