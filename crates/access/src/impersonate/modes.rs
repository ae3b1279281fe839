//! The modes of impersonation and what each asks of the sender.

use windlass_core::{names, quote};

use super::headers::Impersonated;
use crate::attributes::Attributes;
use crate::authorizer::{check, denied};
use crate::objects::Objects;
use crate::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};
use windlass_rules::status::Status;

const AUTHENTICATION: &str = "authentication.k8s.io";
/// The extra of a service account's token that names the node it is used on.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From so many values on, a right for all of them is looked for first.
const MANY: usize = 4;

/// A mode of impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A service account acts as the node that it runs on.
    AssociatedNode,
    /// Somebody acts as a node.
    ArbitraryNode,
    /// Somebody acts as a service account.
    ServiceAccount,
    /// Somebody acts as any other user.
    UserInfo,
    /// Whatever the request does.
    Legacy,
}

impl Mode {
    /// All modes in the order in which they are tried.
    pub(super) const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Legacy,
    ];

    /// The word for the mode in verbs; the unconstrained mode has none.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Legacy
    }

    /// Returns true if the mode is meant for such a user.
    pub(super) fn applies(self, wanted: &Impersonated, sender: &User) -> bool {
        let is_bare = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                is_bare
                    && node.is_some()
                    && service_account(&sender.name).is_some()
                    && sender.single_extra(NODE_NAME) == node
            }
            Self::ArbitraryNode => is_bare && node.is_some(),
            Self::ServiceAccount => is_bare && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    /// The user, if the sender may act as them in this mode.
    pub(super) fn check(
        self,
        wanted: &Impersonated,
        sender: &User,
        target: &Attributes,
        objects: &dyn Objects,
    ) -> Result<User, Status> {
        let asking = Asking {
            mode: self,
            verb: match self.word() {
                Some(word) => format!("impersonate:{word}"),
                None => "impersonate".to_owned(),
            },
            sender,
            objects,
        };
        if let Some(word) = self.word() {
            let on = Attributes {
                verb: format!("impersonate-on:{word}:{}", target.verb),
                ..target.clone()
            };
            check(sender, &on, objects)?;
        }
        let mut user = asking.name(wanted)?;
        asking.uid(&wanted.uid)?;
        asking.groups(&wanted.groups)?;
        asking.extra(wanted)?;
        let known = match user.name.as_str() {
            "system:anonymous" => Some(UNAUTHENTICATED),
            _ if user.is_in(UNAUTHENTICATED) => None,
            _ => Some(AUTHENTICATED),
        };
        if let Some(group) = known.filter(|group| !user.is_in(group)) {
            user.groups.push(group.to_owned());
        }
        Ok(user)
    }
}

/// A sender who asks for each part of a user.
struct Asking<'a> {
    mode: Mode,
    verb: String,
    sender: &'a User,
    objects: &'a dyn Objects,
}

impl Asking<'_> {
    fn wish(&self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes {
            verb: self.verb.clone(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    fn check(&self, wish: &Attributes) -> Result<(), Status> {
        check(self.sender, wish, self.objects)
    }

    /// The group of the resources that stand for users and groups.
    fn api_group(&self) -> &'static str {
        if self.mode.is_constrained() {
            AUTHENTICATION
        } else {
            ""
        }
    }

    /// The user with the groups that they are known to be in, if none were asked for.
    fn name(&self, wanted: &Impersonated) -> Result<User, Status> {
        let name = wanted.name.as_str();
        let mut groups = wanted.groups.clone();
        let mut wish = self.wish(self.api_group(), "users", name);
        if let Some(node) = node_name(name).filter(|_| self.mode.is_constrained()) {
            "nodes".clone_into(&mut wish.resource);
            // Which node it is depends on the token, not on the role.
            let is_own = self.mode == Mode::AssociatedNode;
            (if is_own { "*" } else { node }).clone_into(&mut wish.name);
            groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, account)) = service_account(name) {
            "serviceaccounts".clone_into(&mut wish.resource);
            namespace.clone_into(&mut wish.namespace);
            account.clone_into(&mut wish.name);
            if groups.is_empty() {
                groups = vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                ];
            }
        }
        self.check(&wish)?;
        Ok(User {
            name: name.to_owned(),
            uid: wanted.uid.clone(),
            groups,
            extra: wanted.extra.clone().into_iter().collect(),
        })
    }

    fn uid(&self, uid: &str) -> Result<(), Status> {
        match uid {
            "" => Ok(()),
            uid => self.check(&self.wish(AUTHENTICATION, "uids", uid)),
        }
    }

    fn groups(&self, groups: &[String]) -> Result<(), Status> {
        let wish = |name: &str| self.wish(self.api_group(), "groups", name);
        if self.mode.is_constrained() {
            let has = |group: &str| groups.iter().any(|known| known == group);
            if has("") {
                let why = "impersonating the empty string group is not allowed";
                return Err(denied(self.sender, &wish(""), why));
            }
            if has(MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(denied(self.sender, &wish(MASTERS), why));
            }
            if groups.len() >= MANY && self.check(&wish("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.check(&wish(group)))
    }

    fn extra(&self, wanted: &Impersonated) -> Result<(), Status> {
        let wish = |key: &str, value: &str| {
            let resource = Attributes::join("userextras", key);
            self.wish(AUTHENTICATION, &resource, value)
        };
        if self.mode.is_constrained() && !wanted.extra.is_empty() {
            if let Some(why) = bad_extra(wanted) {
                return Err(denied(self.sender, &wish("", ""), &why));
            }
            let count: usize = wanted.extra.values().map(Vec::len).sum();
            if count >= MANY && self.check(&wish("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.check(&wish(key, value))?;
            }
        }
        Ok(())
    }
}

/// Why extras are not fit for a constrained mode.
fn bad_extra(wanted: &Impersonated) -> Option<String> {
    for (key, values) in &wanted.extra {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        if let Some(why) = bad_key(key) {
            return Some(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \
                 {}: {why}",
                quote(key)
            ));
        }
        if *key != key.to_lowercase() {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {}",
                quote(key)
            ));
        }
        if values.iter().any(String::is_empty) {
            let why = "impersonating the empty string value in extra is not allowed";
            return Some(why.to_owned());
        }
    }
    None
}

fn bad_key(key: &str) -> Option<String> {
    let Some((domain, path)) = key
        .split_once('/')
        .filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return Some("must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned());
    };
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    match names::dns1123_subdomain(domain).into_iter().next() {
        Some(why) => Some(why),
        None if !path.chars().all(is_path) => Some("Invalid path".to_owned()),
        None => None,
    }
}

/// The name of the node that a user name stands for.
fn node_name(name: &str) -> Option<&str> {
    let node = name.strip_prefix("system:node:")?;
    names::dns1123_subdomain(node).is_empty().then_some(node)
}

/// The namespace and the name of the service account that a user name stands for.
fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, account) = name
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let is_valid =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(account).is_empty();
    is_valid.then_some((namespace, account))
}
