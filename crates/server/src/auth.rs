//! Who asks, and whether they may.

mod admin;
mod authn;
mod bootstrap;
mod impersonate;
mod rbac;
mod review;
mod token;

use http::HeaderMap;
use windlass_core::GroupResource;

pub(crate) use admin::{admin_token, fresh_token};
pub(crate) use authn::{Authenticator, certificate_user};
pub(crate) use bootstrap::objects as bootstrap_objects;
pub(crate) use impersonate::effective_user;
pub(crate) use rbac::{Attributes, check_escalation, is_allowed};
pub(crate) use review::review;
pub use token::SignerError;
pub(crate) use token::{Claims, ISSUER, Signer};

use crate::request::{ResourcePath, Target};
use crate::status::Status;

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
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
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

/// 403 in upstream's words.
pub(crate) fn denied(user: &User, target: &Target) -> Status {
    match target {
        Target::Resource(path) => {
            let verb = path.verb.map_or("", crate::request::Verb::as_str);
            denied_resource(user, path, verb)
        }
        Target::Path { path, verb } => {
            let why = format!("User {:?} cannot {verb} path {path:?}", user.name);
            Status::forbidden(&GroupResource::new("", ""), "", &why)
        }
    }
}

/// 403 about something that is asked for beside the request itself.
fn denied_wish(user: &User, wish: &Attributes) -> Status {
    let path = ResourcePath {
        group: wish.group.clone(),
        namespace: wish.namespace.clone(),
        resource: wish.resource.clone(),
        name: wish.name.clone(),
        ..ResourcePath::default()
    };
    denied_resource(user, &path, &wish.verb)
}

fn denied_resource(user: &User, path: &ResourcePath, verb: &str) -> Status {
    let resource = if path.subresource.is_empty() {
        path.resource.clone()
    } else {
        format!("{}/{}", path.resource, path.subresource)
    };
    let place = if path.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", path.namespace)
    };
    let why = format!(
        "User {:?} cannot {verb} resource {resource:?} in API group {:?} {place}",
        user.name, path.group
    );
    let group_resource = GroupResource::new(path.group.clone(), path.resource.clone());
    Status::forbidden(&group_resource, &path.name, &why)
}
