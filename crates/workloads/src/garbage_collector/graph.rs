//! Who depends on whom, as far as the watches have told.
//!
//! The graph is a plain state machine: it is told what was seen, and it says what is to be looked
//! at. An owner that no watch has shown yet stands in it as a virtual node, under the identity by
//! which its first dependent knows it.

mod alternate;
mod node;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_core::Str;

use super::identity::{Deletion, Identity, Owner, Seen};
use alternate::{alternate_identity, partition};
pub(super) use node::Node;

/// What the graph asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Nodes whose owners are to be looked up, which may end in a deletion.
    pub(super) check: Vec<Str>,
    /// The same, after a delay.
    pub(super) check_later: Vec<Str>,
    /// Nodes whose dependents are to forget them.
    pub(super) orphan: Vec<Str>,
    /// Owners that do not exist.
    pub(super) absent: Vec<Identity>,
    /// Dependents with a reference to an owner that lives in another namespace.
    pub(super) misplaced: Vec<(Identity, Owner)>,
}

/// A kind as references name it: kind and API version.
type Kind = (Str, Str);

/// The graph of all objects.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Str, Node>,
    /// The kinds whose objects were ever seen to depend on objects of a kind.
    pairs: BTreeMap<Kind, BTreeSet<Kind>>,
    virtual_nodes: usize,
    effects: Effects,
}

impl Graph {
    /// An object is there, or has changed. `before` is its state in the event before, if there was
    /// one.
    pub(super) fn seen(&mut self, seen: &Seen, before: Option<Deletion>) {
        let uid = &seen.identity.uid;
        if self.nodes.contains_key(uid) {
            self.recognize(&seen.identity);
            self.update(seen);
        } else {
            self.nodes.insert(uid.clone(), Node::real(seen));
            self.link(uid, &seen.owners);
        }
        self.transition(seen, before.unwrap_or_default());
    }

    /// An object is gone.
    pub(super) fn gone(&mut self, identity: &Identity) {
        if self.nodes.contains_key(&identity.uid) {
            self.recognize(identity);
            self.remove(identity);
        }
    }

    /// The server has no object of this identity and UID.
    pub(super) fn absent(&mut self, absent: &Identity) {
        let Some(node) = self.nodes.get(&absent.uid) else {
            return;
        };
        let (matching, differing) = partition(self.dependents_of(node), absent);
        let (matching, differing) = (uids(&matching), uids(&differing));
        if node.is_virtual && differing.is_empty() || !node.is_virtual && node.identity == *absent {
            self.remove(absent);
            return;
        }
        // Somebody knows the owner under another identity, or a watch has shown it under one.
        let is_open = node.is_virtual && node.identity == *absent;
        if !matching.is_empty() {
            self.effects.absent.push(absent.clone());
            matching.iter().for_each(|uid| self.check(uid));
        }
        if is_open {
            self.try_alternate(absent, &differing);
        }
    }

    /// Gives a virtual node another identity by which some of its dependents know it.
    fn try_alternate(&mut self, absent: &Identity, differing: &[Str]) {
        let dependents = differing.iter().filter_map(|uid| self.nodes.get(uid));
        let Some(identity) = alternate_identity(dependents, absent) else {
            return;
        };
        if let Some(node) = self.nodes.get_mut(&absent.uid) {
            node.identity = identity;
            self.effects.check_later.push(absent.uid.clone());
        }
    }

    /// No watch tells of a kind any more: its objects are no longer known to exist, nor to be gone.
    pub(super) fn unwatch(&mut self, kind: &Str, api_version: &Str) {
        let is_of = |node: &&Node| {
            !node.is_virtual
                && node.identity.kind == *kind
                && node.identity.api_version == *api_version
        };
        let nodes = self.nodes.values().filter(is_of);
        let uids: BTreeSet<Str> = nodes.map(|node| node.identity.uid.clone()).collect();
        for uid in &uids {
            let Some(node) = self.nodes.get_mut(uid) else {
                continue;
            };
            let owners = std::mem::take(&mut node.owners);
            if node.dependents.is_empty() {
                self.nodes.remove(uid);
            } else {
                *node =
                    Node::virtual_of(node.identity.clone(), std::mem::take(&mut node.dependents));
                self.virtual_nodes += 1;
                self.effects.check.push(uid.clone());
            }
            self.unlink(uid, &owners);
        }
    }

    /// A watch has shown a node. If dependents know it under another identity, they are checked.
    fn recognize(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.get(&identity.uid) else {
            return;
        };
        if !node.is_virtual && node.identity == *identity {
            return;
        }
        let (_, differing) = partition(self.dependents_of(node), identity);
        for uid in uids(&differing) {
            self.report_if_misplaced(&uid, identity);
            self.check(&uid);
        }
        let Some(node) = self.nodes.get_mut(&identity.uid) else {
            return;
        };
        self.virtual_nodes -= usize::from(node.is_virtual);
        node.is_virtual = false;
        node.identity = identity.clone();
    }

    /// Takes over the owners and the state of a node that is known.
    fn update(&mut self, seen: &Seen) {
        let uid = &seen.identity.uid;
        let Some(node) = self.nodes.get_mut(uid) else {
            return;
        };
        node.is_being_deleted |= seen.deletion.is_deleting;
        node.is_deleting_dependents |= seen.deletion.is_foreground();
        node.is_orphaning = seen.deletion.is_orphaning();
        if *node.owners == *seen.owners {
            return;
        }
        let before = std::mem::replace(&mut node.owners, seen.owners.clone().into());
        let has = |owners: &[Owner], uid: &Str, is_blocking: bool| {
            let mut owners = owners.iter().filter(|owner| owner.uid == *uid);
            owners.any(|owner| owner.is_blocking || !is_blocking)
        };
        // Owners that this node does not hold any more may be able to go.
        for owner in before.iter().filter(|owner| owner.is_blocking) {
            if !has(&seen.owners, &owner.uid, true) {
                self.check(&owner.uid);
            }
        }
        let is_new = |owner: &&Owner| !before.iter().any(|old| old == *owner);
        let added: Vec<Owner> = seen.owners.iter().filter(is_new).cloned().collect();
        self.link(uid, &added);
        let is_removed = |owner: &&Owner| !has(&seen.owners, &owner.uid, false);
        let removed: Vec<Owner> = before.iter().filter(is_removed).cloned().collect();
        self.unlink(uid, &removed);
    }

    /// A deletion that has just begun to wait for dependents sets them in motion.
    fn transition(&mut self, seen: &Seen, before: Deletion) {
        let uid = &seen.identity.uid;
        if seen.deletion.is_orphaning() && !before.is_orphaning() {
            self.effects.orphan.push(uid.clone());
        } else if seen.deletion.is_foreground() && !before.is_foreground() {
            let dependents = self.nodes.get(uid).map(|node| node.dependents.clone());
            for dependent in dependents.iter().flatten() {
                self.check(dependent);
            }
            self.check(uid);
        }
    }

    /// Makes a node a dependent of owners, which become virtual nodes if they are not known.
    fn link(&mut self, uid: &Str, owners: &[Owner]) {
        let Some(node) = self.nodes.get(uid) else {
            return;
        };
        let dependent = node.identity.clone();
        let kind = (dependent.kind.clone(), dependent.api_version.clone());
        let mut is_suspect = false;
        for owner in owners {
            self.note_pair(owner, &kind);
            let Some(node) = self.nodes.get_mut(&owner.uid) else {
                let identity = owner.identity(&dependent.namespace);
                let node = Node::virtual_of(identity, BTreeSet::from([uid.clone()]));
                self.nodes.insert(owner.uid.clone(), node);
                self.virtual_nodes += 1;
                self.effects.check.push(owner.uid.clone());
                continue;
            };
            node.dependents.insert(uid.clone());
            // The owner already waits for its dependents, and this one came late.
            is_suspect |= node.is_deleting_dependents;
            if node.is_orphaning {
                self.effects.orphan.push(owner.uid.clone());
            }
            let (identity, is_virtual) = (node.identity.clone(), node.is_virtual);
            let is_elsewhere = identity.namespace != dependent.namespace;
            if identity.is_namespaced() && is_elsewhere {
                if !is_virtual {
                    self.effects
                        .misplaced
                        .push((dependent.clone(), owner.clone()));
                }
                is_suspect = true;
            } else if !owner.names(&identity) || is_elsewhere && is_virtual {
                is_suspect = true;
            }
        }
        if is_suspect {
            self.check(uid);
        }
    }

    fn note_pair(&mut self, owner: &Owner, kind: &Kind) {
        let owner = (owner.kind.clone(), owner.api_version.clone());
        if let Some(known) = self.pairs.get(&owner)
            && known.contains(kind)
        {
            return;
        }
        if self.pairs.len() < PAIRS_LIMIT {
            self.pairs.entry(owner).or_default().insert(kind.clone());
        }
    }

    /// Ends that a node is a dependent of owners. A virtual node without dependents has no use.
    fn unlink(&mut self, uid: &Str, owners: &[Owner]) {
        for owner in owners {
            if let Some(node) = self.nodes.get_mut(&owner.uid) {
                node.dependents.remove(uid);
                if node.is_virtual && node.dependents.is_empty() {
                    self.nodes.remove(&owner.uid);
                    self.virtual_nodes -= 1;
                }
            }
        }
    }

    fn remove(&mut self, identity: &Identity) {
        let Some(node) = self.nodes.remove(&identity.uid) else {
            return;
        };
        self.virtual_nodes -= usize::from(node.is_virtual);
        self.unlink(&identity.uid, &node.owners);
        if !node.dependents.is_empty() {
            self.effects.absent.push(identity.clone());
        }
        node.dependents.iter().for_each(|uid| self.check(uid));
        for owner in &node.owners {
            let owner = self.nodes.get(&owner.uid);
            if let Some(owner) = owner.filter(|owner| owner.is_deleting_dependents) {
                let uid = owner.identity.uid.clone();
                self.check(&uid);
            }
        }
    }

    fn report_if_misplaced(&mut self, uid: &Str, owner: &Identity) {
        let Some(node) = self.nodes.get(uid) else {
            return;
        };
        if !owner.is_namespaced() || node.identity.namespace == owner.namespace {
            return;
        }
        let reference = node.owners.iter().find(|found| found.uid == owner.uid);
        let misplaced = reference.map(|reference| (node.identity.clone(), reference.clone()));
        self.effects.misplaced.extend(misplaced);
    }

    /// Asks for a look at a node, if it is still there.
    pub(super) fn check(&mut self, uid: &Str) {
        if let Some(node) = self.nodes.get_mut(uid) {
            node.is_suspect = true;
            self.effects.check.push(uid.clone());
        }
    }

    fn dependents_of(&self, node: &Node) -> impl Iterator<Item = &Node> {
        let dependents: Vec<&Node> = node
            .dependents
            .iter()
            .filter_map(|uid| self.nodes.get(uid))
            .collect();
        dependents.into_iter()
    }
}

/// How many kinds of owners are remembered with the kinds of their dependents. There are not more
/// kinds than that; references may name any number that do not exist.
const PAIRS_LIMIT: usize = 4096;

fn uids(nodes: &[&Node]) -> Vec<Str> {
    nodes.iter().map(|node| node.identity.uid.clone()).collect()
}

/// What the workers ask.
impl Graph {
    pub(super) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn node(&self, uid: &Str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Ends the suspicion against a node, which is looked at now. Returns whether there was one.
    pub(super) fn clear_suspicion(&mut self, uid: &Str) -> bool {
        let node = self.nodes.get_mut(uid);
        node.is_some_and(|node| std::mem::take(&mut node.is_suspect))
    }

    /// Raises a suspicion against a node, which is to be looked at again.
    pub(super) fn suspect(&mut self, uid: &Str) {
        if let Some(node) = self.nodes.get_mut(uid) {
            node.is_suspect = true;
        }
    }

    /// The dependents of a node.
    pub(super) fn dependents(&self, uid: &Str) -> impl Iterator<Item = &Node> {
        let node = self.nodes.get(uid).into_iter();
        node.flat_map(|node| &node.dependents)
            .filter_map(|uid| self.nodes.get(uid))
    }

    /// The dependents that an owner must outlive, if it goes in the foreground.
    pub(super) fn blocking<'a>(&'a self, uid: &'a Str) -> impl Iterator<Item = &'a Node> {
        self.dependents(uid).filter(|node| node.is_blocking(uid))
    }

    /// The kinds whose objects were seen to depend on objects of a kind.
    pub(super) fn dependent_kinds(&self, owner: &Identity) -> Vec<Kind> {
        let key = (owner.kind.clone(), owner.api_version.clone());
        let kinds = self.pairs.get(&key).into_iter().flatten();
        kinds.cloned().collect()
    }

    /// How many nodes there are, and how many of them are virtual.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.nodes.len(), self.virtual_nodes)
    }
}
