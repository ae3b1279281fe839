//! The node authorizer: a node reaches what it runs, and what others need not hide from it.
//!
//! It gives no more than upstream's: objects that pods on the node refer to, the node's own
//! objects, and a fixed list of rights for the rest. What it does not give, roles may.

mod pods;
mod references;

use std::sync::LazyLock;

use windlass_core::Doc;

pub use self::pods::PodTable;
pub(crate) use self::references::referenced_resource;
use self::references::{Reference, pod_refers_to, volume_secrets};
use crate::attributes::Attributes;
use crate::decision::Decision;
use crate::objects::Objects;
use crate::policy;
use crate::rbac::rule_allows;
use crate::user::User;

const NODES: &str = "system:nodes";
const PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";

/// The name of the node that a user is, which may be empty. `None` for other users.
#[must_use]
pub fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(PREFIX)?;
    user.is_in(NODES).then_some(name)
}

/// Decides about a request of a node; has no opinion of other users.
pub(crate) fn decide(user: &User, wanted: &Attributes, objects: &dyn Objects) -> Decision {
    let Some(node) = node_of(user) else {
        return Decision::no_opinion("");
    };
    if node.is_empty() {
        let who = windlass_core::quote(&user.name);
        return Decision::no_opinion(format!("unknown node for user {who}"));
    }
    let (resource, part) = match wanted.resource.split_once('/') {
        Some((resource, part)) => (resource, part),
        None => (wanted.resource.as_str(), ""),
    };
    let asking = Asking {
        node,
        wanted,
        part,
        objects,
    };
    let answer = match (wanted.group.as_str(), resource) {
        _ if wanted.path.is_some() => by_rules(wanted),
        ("", "secrets") => asking.read(Reference::Secret),
        ("", "configmaps") => asking.read(Reference::ConfigMap),
        ("", "persistentvolumeclaims") if part == "status" => asking.write_claim_status(),
        ("", "persistentvolumeclaims") => asking.get(Reference::Claim),
        ("", "persistentvolumes") => asking.get(Reference::Volume),
        ("", "serviceaccounts") => asking.service_account(),
        ("", "nodes") => asking.node_object(),
        ("", "pods") => asking.pod(),
        ("resource.k8s.io", "resourceclaims") => asking.get(Reference::ResourceClaim),
        ("resource.k8s.io", "resourceslices") => asking.slice(),
        ("storage.k8s.io", "volumeattachments") => asking.get(Reference::Attachment),
        ("storage.k8s.io", "csinodes") => asking.storage_node(),
        ("coordination.k8s.io", "leases") => asking.lease(),
        ("certificates.k8s.io", "podcertificaterequests") => Err(String::new()),
        _ => by_rules(wanted),
    };
    match answer {
        Ok(()) => Decision::allow(""),
        Err(reason) => Decision::no_opinion(reason),
    }
}

/// Allowed, or the reason why not.
type Opinion = Result<(), String>;

/// The rules for what is not looked at more closely.
fn by_rules(wanted: &Attributes) -> Opinion {
    static RULES: LazyLock<Vec<Doc>> = LazyLock::new(|| {
        let objects = policy::objects();
        let role = objects.iter().find(|(plural, object)| {
            *plural == "clusterroles" && object.meta().name() == "system:node"
        });
        let rules = role.map(|(_, role)| role.at("/rules").items().to_vec());
        rules.unwrap_or_default()
    });
    let is_allowed = RULES.iter().any(|rule| rule_allows(rule, wanted));
    is_allowed.then_some(()).ok_or_else(String::new)
}

fn refuse(reason: &str) -> Opinion {
    Err(reason.to_owned())
}

/// A request of a node.
struct Asking<'a> {
    node: &'a str,
    wanted: &'a Attributes,
    /// The subresource.
    part: &'a str,
    objects: &'a dyn Objects,
}

impl Asking<'_> {
    fn verb(&self) -> &str {
        &self.wanted.verb
    }

    fn read(&self, what: Reference) -> Opinion {
        if !matches!(self.verb(), "get" | "list" | "watch") {
            return refuse("can only read resources of this type");
        }
        if !self.part.is_empty() {
            return refuse("cannot read subresource");
        }
        if self.wanted.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.related(what)
    }

    fn get(&self, what: Reference) -> Opinion {
        if self.verb() != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !self.part.is_empty() {
            return refuse("cannot get subresource");
        }
        self.related(what)
    }

    fn write_claim_status(&self) -> Opinion {
        if !matches!(self.verb(), "update" | "patch") {
            return refuse("can only get/update/patch this type");
        }
        self.related(Reference::Claim)
    }

    fn service_account(&self) -> Opinion {
        if self.verb() == "get" && self.part.is_empty() {
            return self.read(Reference::ServiceAccount);
        }
        if self.verb() != "create" || self.wanted.name.is_empty() {
            return refuse("can only create tokens for individual service accounts");
        }
        if self.part != "token" {
            return refuse("can only create token subresource of serviceaccount");
        }
        self.related(Reference::ServiceAccount)
    }

    fn node_object(&self) -> Opinion {
        match (self.part, self.verb()) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") => match self.wanted.name.as_str() {
                name if name == self.node => Ok(()),
                "" => Err(format!(
                    "node '{}' cannot read all nodes, only its own Node object",
                    self.node
                )),
                name => Err(format!(
                    "node '{}' cannot read '{name}', only its own Node object",
                    self.node
                )),
            },
            _ => refuse(""),
        }
    }

    fn pod(&self) -> Opinion {
        match (self.part, self.verb()) {
            ("", "get") => self.related(Reference::Pod),
            ("", "list" | "watch") if self.selects("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !self.wanted.name.is_empty() => self.related(Reference::Pod),
            ("", "list" | "watch") => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => refuse(""),
        }
    }

    fn lease(&self) -> Opinion {
        let is_create = self.verb() == "create";
        if !is_create && !matches!(self.verb(), "get" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a node lease");
        }
        if self.wanted.namespace != LEASES {
            return Err(format!(
                "can only access leases in the {LEASES:?} system namespace"
            ));
        }
        if !is_create && self.wanted.name != self.node {
            return refuse("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn storage_node(&self) -> Opinion {
        let is_create = self.verb() == "create";
        if !is_create && !matches!(self.verb(), "get" | "update" | "patch" | "delete") {
            return refuse("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.part.is_empty() {
            return refuse("cannot authorize CSINode subresources");
        }
        if !is_create && self.wanted.name != self.node {
            return refuse("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn slice(&self) -> Opinion {
        if !self.part.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match self.verb() {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(Reference::Slice),
            "watch" | "list" | "deletecollection" if self.selects("spec.nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => refuse(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                 create, update, patch, delete, deletecollection",
            ),
        }
    }

    /// Returns true if the request is limited to objects of this node.
    fn selects(&self, field: &str) -> bool {
        let mut fields = self.wanted.fields.iter();
        fields.any(|(known, value)| known == field && value == self.node)
    }

    /// Allows what has to do with the node.
    fn related(&self, what: Reference) -> Opinion {
        if self.wanted.name.is_empty() {
            return refuse("No Object name found");
        }
        if self.is_related(what) {
            return Ok(());
        }
        Err(format!(
            "no relationship found between node '{}' and this object",
            self.node
        ))
    }

    fn is_related(&self, what: Reference) -> bool {
        let (namespace, name) = (&self.wanted.namespace, &self.wanted.name);
        let find = |group: &str, resource: &str| self.objects.find(group, resource, "", name);
        let is_ours = |object: Doc| object.str_at("/spec/nodeName") == self.node;
        match what {
            Reference::Pod => {
                let pod = self.objects.find("", "pods", namespace, name);
                pod.is_some_and(is_ours)
            }
            Reference::Slice => find("resource.k8s.io", "resourceslices").is_some_and(is_ours),
            Reference::Attachment => {
                find("storage.k8s.io", "volumeattachments").is_some_and(is_ours)
            }
            Reference::Volume => find("", "persistentvolumes").is_some_and(|volume| {
                let claim = volume.at("/spec/claimRef");
                let (namespace, name) = (claim.str_at("/namespace"), claim.str_at("/name"));
                !name.is_empty() && self.has_pod(Reference::Claim, namespace, name)
            }),
            Reference::Secret => {
                self.has_pod(what, namespace, name) || self.has_volume_secret(namespace, name)
            }
            _ => self.has_pod(what, namespace, name),
        }
    }

    /// Returns true if a pod on the node refers to something in its namespace.
    fn has_pod(&self, what: Reference, namespace: &str, name: &str) -> bool {
        let pods = self.objects.pods_on(self.node, namespace);
        pods.iter().any(|pod| pod_refers_to(pod, what, name))
    }

    /// Returns true if a volume that a pod on the node uses needs a secret.
    fn has_volume_secret(&self, namespace: &str, name: &str) -> bool {
        let pods = self.objects.pods_on(self.node, "");
        let is_needed = |pod: &Doc, claim: &str| {
            let here = pod.meta().namespace();
            let claim = self
                .objects
                .find("", "persistentvolumeclaims", here, claim)?;
            let volume = claim.str_at("/spec/volumeName");
            let volume = self.objects.find("", "persistentvolumes", "", volume)?;
            let bound = volume.at("/spec/claimRef");
            let is_bound =
                bound.str_at("/namespace") == here && bound.str_at("/name") == claim.meta().name();
            let mut secrets = volume_secrets(&volume).into_iter();
            Some(is_bound && secrets.any(|(place, secret)| place == namespace && secret == name))
        };
        pods.iter().any(|pod| {
            let claims = references::claims(pod);
            let mut claims = claims.iter();
            claims.any(|claim| is_needed(pod, claim).unwrap_or(false))
        })
    }
}
