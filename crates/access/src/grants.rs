//! The index of role bindings by subject: a request costs what its user has, not what there is.

use std::collections::BTreeMap;

use windlass_core::{Doc, quote};

use crate::user::User;

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Role bindings by their subjects. Whoever stores the bindings keeps it up to date.
///
/// It holds one row for each subject of each binding, so its size is bounded by theirs.
#[derive(Debug, Default)]
pub struct GrantTable {
    /// By namespace (empty for the cluster), then by subject, then by the key of the binding.
    rows: BTreeMap<String, BTreeMap<String, BTreeMap<String, Grant>>>,
}

/// A binding that names a user, and the first of its subjects that does.
#[derive(Clone, Debug)]
pub struct Grant {
    binding: Doc,
    subject: usize,
}

impl GrantTable {
    /// Returns the number of subjects that have a binding, once for each namespace.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.values().map(BTreeMap::len).sum()
    }

    /// Returns true if there is no binding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes a binding in.
    pub fn add(&mut self, binding: &Doc) {
        let namespace = binding.meta().namespace();
        let subjects = binding.at("/subjects").items();
        for (at, subject) in subjects.iter().enumerate() {
            let Some(key) = subject_key(subject, namespace) else {
                continue;
            };
            let grant = || Grant {
                binding: binding.clone(),
                subject: at,
            };
            let here = self.rows.entry(namespace.to_owned()).or_default();
            let grants = here.entry(key).or_default();
            let known = grants.entry(key_of(binding));
            known.or_insert_with(grant);
        }
    }

    /// Takes a binding out, as it was when it was taken in.
    pub fn remove(&mut self, binding: &Doc) {
        let namespace = binding.meta().namespace();
        let Some(here) = self.rows.get_mut(namespace) else {
            return;
        };
        for subject in binding.at("/subjects").items() {
            let Some(key) = subject_key(subject, namespace) else {
                continue;
            };
            let Some(grants) = here.get_mut(&key) else {
                continue;
            };
            grants.remove(&key_of(binding));
            if grants.is_empty() {
                here.remove(&key);
            }
        }
        if here.is_empty() {
            self.rows.remove(namespace);
        }
    }

    /// The bindings that apply to a user: those for the cluster, then those of the namespace, each
    /// in the order of their names.
    #[must_use]
    pub fn find(&self, user: &User, namespace: &str) -> Vec<Grant> {
        let groups = user.groups.iter().map(|group| format!("g{group}"));
        let keys: Vec<String> = groups.chain([format!("u{}", user.name)]).collect();
        let mut found = self.find_in("", &keys);
        if !namespace.is_empty() {
            found.extend(self.find_in(namespace, &keys));
        }
        found
    }

    fn find_in(&self, namespace: &str, keys: &[String]) -> Vec<Grant> {
        let Some(here) = self.rows.get(namespace) else {
            return Vec::new();
        };
        let mut found: BTreeMap<&str, &Grant> = BTreeMap::new();
        for (key, grant) in keys.iter().filter_map(|key| here.get(key)).flatten() {
            let first = found.entry(key).or_insert(grant);
            if grant.subject < first.subject {
                *first = grant;
            }
        }
        found.into_values().cloned().collect()
    }
}

/// The key of a subject: users and service accounts are known by one sort of name.
fn subject_key(subject: &Doc, namespace: &str) -> Option<String> {
    let name = subject.str_at("/name");
    match subject.str_at("/kind") {
        "User" => Some(format!("u{name}")),
        "Group" => Some(format!("g{name}")),
        "ServiceAccount" => {
            let own = subject.str_at("/namespace");
            let namespace = if own.is_empty() { namespace } else { own };
            (!namespace.is_empty()).then(|| format!("usystem:serviceaccount:{namespace}:{name}"))
        }
        _ => None,
    }
}

impl Grant {
    /// The binding.
    pub(crate) fn binding(&self) -> &Doc {
        &self.binding
    }

    /// The binding in one phrase, as upstream gives it as the reason of a decision.
    pub(crate) fn describe(&self) -> String {
        let binding = self.binding();
        let (name, namespace) = (binding.meta().name(), binding.meta().namespace());
        let (kind, full) = match namespace {
            "" => ("ClusterRoleBinding", name.to_owned()),
            _ => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let subject = &binding.at("/subjects").items()[self.subject];
        let (sort, mut who) = (subject.str_at("/kind"), subject.str_at("/name").to_owned());
        if sort == "ServiceAccount" {
            let own = subject.str_at("/namespace");
            who = format!("{who}/{}", if own.is_empty() { namespace } else { own });
        }
        format!(
            "{kind} {} of {} {} to {sort} {}",
            quote(&full),
            binding.str_at("/roleRef/kind"),
            quote(binding.str_at("/roleRef/name")),
            quote(&who)
        )
    }
}

/// The key of a binding, by which it is found again.
fn key_of(binding: &Doc) -> String {
    let meta = binding.meta();
    format!("{}/{}", meta.namespace(), meta.name())
}
