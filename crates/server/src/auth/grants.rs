//! The index of role bindings by subject: a request costs what its user has, not what there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use windlass_core::{Doc, quote};
use windlass_store::{Entry, Snapshot};

use super::User;
use super::rbac::GROUP;
use crate::storage::Storage;

/// The role bindings of the store by their subjects, brought up to date by whoever asks.
///
/// It holds one row for each subject of each stored binding, so its size is bounded by theirs.
#[derive(Debug, Default)]
pub(crate) struct GrantIndex(RwLock<State>);

/// A binding that names a user, and the first of its subjects that does.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    binding: Arc<Entry>,
    subject: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Bindings for the cluster, then those of namespaces, as they are in `rows`.
    seen: Option<[Snapshot; 2]>,
    /// By namespace (empty for the cluster), then by subject, then by the key of the binding.
    rows: BTreeMap<String, BTreeMap<String, BTreeMap<String, Grant>>>,
}

impl GrantIndex {
    /// The bindings that apply to a user: those for the cluster, then those of the namespace, each
    /// in the order of their names.
    pub(super) fn of(&self, user: &User, namespace: &str, storage: &Storage) -> Vec<Grant> {
        let now = ["clusterrolebindings", "rolebindings"]
            .map(|resource| storage.snapshot_of(GROUP, resource));
        {
            let state = self.0.read();
            if state.is_at(&now) {
                return state.find(user, namespace);
            }
        }
        let mut state = self.0.write();
        state.advance(now);
        state.find(user, namespace)
    }
}

impl State {
    fn is_at(&self, now: &[Snapshot; 2]) -> bool {
        let is_same = |seen: &[Snapshot; 2]| {
            let mut pairs = seen.iter().zip(now);
            pairs.all(|(seen, now)| seen.is_same(now))
        };
        self.seen.as_ref().is_some_and(is_same)
    }

    /// Takes over what changed. A state that is newer already stays.
    fn advance(&mut self, now: [Snapshot; 2]) {
        let Some(seen) = self.seen.take() else {
            for entry in now.iter().flatten() {
                self.add(entry);
            }
            self.seen = Some(now);
            return;
        };
        let mut newest = Vec::with_capacity(seen.len());
        for (seen, now) in seen.into_iter().zip(now) {
            if seen.revision() >= now.revision() {
                newest.push(seen);
                continue;
            }
            for gone in seen.not_in(&now) {
                self.remove(&gone);
            }
            for come in now.not_in(&seen) {
                self.add(&come);
            }
            newest.push(now);
        }
        self.seen = newest.try_into().ok();
    }

    fn add(&mut self, binding: &Arc<Entry>) {
        let doc = binding.doc();
        let namespace = doc.meta().namespace();
        let subjects = doc.at("/subjects").items();
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
            let known = grants.entry(binding.key.to_string());
            known.or_insert_with(grant);
        }
    }

    fn remove(&mut self, binding: &Arc<Entry>) {
        let doc = binding.doc();
        let namespace = doc.meta().namespace();
        let Some(here) = self.rows.get_mut(namespace) else {
            return;
        };
        for subject in doc.at("/subjects").items() {
            let Some(key) = subject_key(subject, namespace) else {
                continue;
            };
            let Some(grants) = here.get_mut(&key) else {
                continue;
            };
            grants.remove(binding.key.as_str());
            if grants.is_empty() {
                here.remove(&key);
            }
        }
        if here.is_empty() {
            self.rows.remove(namespace);
        }
    }

    fn find(&self, user: &User, namespace: &str) -> Vec<Grant> {
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
    pub(super) fn binding(&self) -> &Doc {
        self.binding.doc()
    }

    /// The binding in one phrase, as upstream gives it as the reason of a decision.
    pub(super) fn describe(&self) -> String {
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

#[cfg(test)]
mod tests;
