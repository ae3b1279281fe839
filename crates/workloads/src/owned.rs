//! Finding children and owners in a cache without looking at everything else.
//!
//! Children are indexed by the UID of the owner that manages them. Those without one, orphans, are
//! indexed by their labels, and owners by a label that their selector asks for, so that the owners
//! of an orphan and the orphans of an owner are found in a few look-ups.

use windlass_cache::{AddError, Obj, SharedInformer, Snapshot, functions};
use windlass_core::{Doc, GroupVersion, Key, LabelSelector, OwnerRef, Selector, Str};
use windlass_runtime::{Error, ResourceKind};

/// The index of orphans by namespace and label.
const ORPHANS: &str = "orphanLabel";
/// The index of owners by namespace and a label that they select by.
const SELECTORS: &str = "selectorLabel";

/// Reads the selector of an owner.
pub(crate) type SelectorFn = fn(&Doc) -> Result<Selector, Error>;

/// A kind of the group `apps`.
pub(crate) fn apps_kind(kind: &str, resource: &str) -> ResourceKind {
    ResourceKind::namespaced(GroupVersion::constant("apps", "v1"), kind, resource)
}

/// A kind of the group `batch`.
pub(crate) fn batch_kind(kind: &str, resource: &str) -> ResourceKind {
    ResourceKind::namespaced(GroupVersion::constant("batch", "v1"), kind, resource)
}

/// A kind of the core group.
pub(crate) fn core_kind(kind: &str, resource: &str) -> ResourceKind {
    ResourceKind::namespaced(GroupVersion::constant("", "v1"), kind, resource)
}

/// The selector at `spec.selector`; one that is absent matches nothing.
pub(crate) fn label_selector(owner: &Doc) -> Result<Selector, Error> {
    let selector = owner.at("/spec/selector");
    if selector.is_null() {
        return Ok(Selector::nothing());
    }
    Ok(Selector::try_from(&selector.decode::<LabelSelector>()?)?)
}

/// Indexes children by owner and by label. Several controllers may ask for that.
pub(crate) fn index_children(children: &SharedInformer) {
    let by_owner = (children).add_index(functions::CONTROLLER_INDEX, functions::controller_uid);
    let by_label = children.add_index(ORPHANS, orphan_values);
    [by_owner, by_label].into_iter().for_each(accept);
}

/// Indexes owners by what they select, and by the owner that manages them in turn.
pub(crate) fn index_owners(owners: &SharedInformer, selector: SelectorFn) {
    let values = move |owner: &Obj| vec![selector_value(owner, selector)];
    accept(owners.add_index(SELECTORS, values));
    accept(owners.add_index(functions::CONTROLLER_INDEX, functions::controller_uid));
}

/// An index that exists already is the same one, from another controller.
pub(crate) fn accept(added: Result<(), AddError>) {
    if let Err(error) = added {
        tracing::debug!(%error, "the index is there already");
    }
}

fn orphan_values(child: &Obj) -> Vec<Str> {
    if !functions::controller_uid(child).is_empty() {
        return Vec::new();
    }
    let namespace = child.namespace();
    let pairs = child.labels();
    let labels = pairs
        .iter()
        .map(|(key, value)| bucket(namespace, key, value));
    labels.chain([Str::from(format!("{namespace}/"))]).collect()
}

fn selector_value(owner: &Obj, selector: SelectorFn) -> Str {
    let selector = selector(owner.doc()).unwrap_or_else(|_| Selector::nothing());
    match exact(&selector) {
        Some((key, value)) => bucket(owner.namespace(), key, value),
        None => Str::from(format!("{}/", owner.namespace())),
    }
}

fn bucket(namespace: &str, key: &str, value: &str) -> Str {
    Str::from(format!("{namespace}/{key}={value}"))
}

/// A label that whatever matches must have.
fn exact(selector: &Selector) -> Option<(&str, &str)> {
    let mut keys = selector.requirements().iter().map(|one| one.key());
    keys.find_map(|key| Some((key, selector.exact_value(key)?)))
}

/// The children that an owner manages. Nobody manages anything in another namespace, whatever is
/// said there.
pub(crate) fn children_of(children: &Snapshot, owner: &Doc) -> Vec<Obj> {
    let meta = owner.meta();
    let mut found = by_index(children, functions::CONTROLLER_INDEX, meta.uid_str());
    found.retain(|child| child.namespace() == meta.namespace());
    found
}

/// The children of a namespace that nobody manages and that match.
pub(crate) fn orphans(children: &Snapshot, namespace: &str, selector: &Selector) -> Vec<Obj> {
    let value = match exact(selector) {
        Some((key, value)) => bucket(namespace, key, value),
        None => Str::from(format!("{namespace}/")),
    };
    let mut found = by_index(children, ORPHANS, &value);
    found.retain(|child| selector.matches(&child.labels()));
    found
}

/// The keys of the owners that would like to have an orphan. An owner that selects everything is
/// not asked, nor is anybody about a child without labels.
pub(crate) fn owners_wanting(owners: &Snapshot, child: &Obj, selector: SelectorFn) -> Vec<Key> {
    let (labels, namespace) = (child.labels(), child.namespace());
    if labels.is_empty() {
        return Vec::new();
    }
    let buckets = labels
        .iter()
        .map(|(key, value)| bucket(namespace, key, value));
    let buckets = buckets.chain([Str::from(format!("{namespace}/"))]);
    let candidates = buckets.flat_map(|value| by_index(owners, SELECTORS, &value));
    let wants = |owner: &Obj| {
        let selector = selector(owner.doc()).ok()?;
        (!selector.is_everything() && selector.matches(&labels)).then(|| owner.key())
    };
    candidates.filter_map(|owner| wants(&owner)).collect()
}

/// The owners that the same owner manages as this one.
pub(crate) fn siblings(owners: &Snapshot, owner: &OwnerRef) -> Vec<Obj> {
    by_index(owners, functions::CONTROLLER_INDEX, owner.uid.as_str())
}

fn by_index(snapshot: &Snapshot, name: &str, value: &str) -> Vec<Obj> {
    let found = snapshot.by_index(name, value);
    found.expect("invariant: the index was added with the controller")
}

/// The owner of a child, if it is of this kind and the one that is meant.
pub(crate) fn resolve(
    owners: &Snapshot,
    namespace: &str,
    reference: &OwnerRef,
    kind: &ResourceKind,
) -> Option<Obj> {
    let gvk = kind.gvk();
    if reference.kind != gvk.kind() || reference.group() != gvk.group() {
        return None;
    }
    let owner = owners.get(&Key::new(namespace, &reference.name))?;
    (owner.uid() == reference.uid).then_some(owner)
}
