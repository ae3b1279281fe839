//! Writes, and what they do to the fields of their manager and of others.

use std::sync::LazyLock;

use windlass_core::{Doc, Object, Time};

use super::cap::cap;
use super::collect::fields_of;
use super::compare::Comparison;
use super::created;
use super::entries::{self, Loss, Manager, Managers, Operation, Owned};
use super::error::{ApplyError, Conflict};
use super::last_applied;
use super::memo::{self, Creations};
use super::merge::merge;
use super::remove::remove;
use super::schema::Schema;
use super::set::FieldSet;
use super::tree::{self, Steps};
use super::validate::faults_of;

/// The manager of the fields of an object that was not tracked before it was first applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const MANAGED_FIELDS: &str = "/metadata/managedFields";

/// Conflicts are named until their paths have so many bytes.
const CONFLICTS_BYTES_LIMIT: usize = 4 << 20;

/// Fields that no manager owns.
const NEVER_OWNED_FIELDS: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// The same as a set.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_fields(NEVER_OWNED_FIELDS));

/// The same for trees.
static NEVER_OWNED_STEPS: LazyLock<Steps> =
    LazyLock::new(|| Steps::of(&NEVER_OWNED).unwrap_or_default());

/// One write: by whom, where and when.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The field manager; the empty text becomes `unknown`.
    pub manager: &'a str,
    /// The subresource that is written to; empty for the object itself.
    pub subresource: &'a str,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// When.
    pub time: Time,
    /// Fields that this endpoint does not change, and their insides.
    pub ignored: &'a FieldSet,
}

/// Applies a configuration to the live object, or creates one if there is none. The result is the
/// merged object with its `managedFields`, in the form of [`Schema::canonical`]; a configuration
/// that changes nothing leaves all times as they are.
pub fn apply<S: Schema>(
    schema: S,
    live: Option<&Doc>,
    config: &Doc,
    write: &Write<'_>,
    force: bool,
) -> Result<Doc, ApplyError> {
    if !config.at(MANAGED_FIELDS).is_null() {
        return Err(ApplyError::ManagedFields);
    }
    let faults = faults_of(schema, config);
    if !faults.is_empty() {
        return Err(ApplyError::Invalid(faults));
    }
    let applied = merge_in(schema, live, config, write, force);
    if write.manager != last_applied::MANAGER {
        return applied;
    }
    let applied = match (applied, live) {
        (Err(ApplyError::Conflicts(conflicts)), Some(live)) => {
            let version = write.api_version;
            let left = last_applied::without_own(schema, live, version, conflicts);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            merge_in(schema, Some(live), config, write, true)?
        }
        (applied, _) => applied?,
    };
    Ok(last_applied::refresh(&applied, config))
}

/// Merges a sound configuration into the live object.
fn merge_in<S: Schema>(
    schema: S,
    live: Option<&Doc>,
    config: &Doc,
    write: &Write<'_>,
    force: bool,
) -> Result<Doc, ApplyError> {
    let blank = blank(schema, config);
    let live = live.unwrap_or(&blank);
    let decoded = entries::decode(live.at(MANAGED_FIELDS).items());
    let mut managers = decoded.map_err(ApplyError::Unreadable)?;
    let live = schema.canonical(&without_managed_fields(live));
    if managers.is_empty() {
        let before = Write {
            manager: BEFORE_FIRST_APPLY,
            ..*write
        };
        attribute(schema, &blank, &live, &mut managers, &before);
    }
    let me = manager_of(write, Operation::Apply);
    let last = managers.remove(&me);
    let set = fields_of(schema, config).difference_below(write.ignored);
    let time = last.as_ref().and_then(|last| last.time);
    let merged = merge(schema, &live, config);
    let merged = prune(schema, merged, &managers, &set, last.as_ref());
    give_way(schema, &live, &merged, &mut managers, write.ignored, force)?;
    let set = set.difference(&NEVER_OWNED);
    let mut owned = Owned::new(set, write.api_version, time);
    let result = schema.canonical(&merged);
    // An empty list in the configuration, say, makes no difference to the object. Upstream stamps
    // such an entry, and then does not write what differs in the stamp alone.
    let is_same = result == live && last.is_some_and(|last| last.set() == owned.set());
    if merged != live && !is_same {
        owned.time = Some(write.time);
    }
    if !owned.is_empty() {
        managers.insert(me, owned);
    }
    Ok(with_managed_fields(&result, &managers))
}

/// Attributes what a write that is not an apply has changed; one without a live object creates.
/// The result is the new object with its `managedFields`.
///
/// `managedFields` of the new object count, so that a client can edit them: an empty list resets
/// them. What cannot be read does not count.
pub fn track<S: Schema>(schema: S, live: Option<&Doc>, new: &Doc, write: &Write<'_>) -> Doc {
    let blank = blank(schema, new);
    let is_update = live.is_some();
    let live = live.unwrap_or(&blank);
    let said = new.at(MANAGED_FIELDS);
    let says_nothing = said.is_null() || said == live.at(MANAGED_FIELDS);
    if is_update && says_nothing && without_managed_fields(new) == without_managed_fields(live) {
        return live.clone();
    }
    let mut managers = managers_to_start_from(live, new, write);
    let new = without_managed_fields(new);
    // An object that was never tracked stays so until it is first applied to.
    if managers.is_empty() && is_update {
        return new;
    }
    let live = schema.canonical(&without_managed_fields(live));
    attribute(schema, &live, &schema.canonical(&new), &mut managers, write);
    cap(&mut managers);
    with_managed_fields(&new, &managers)
}

/// Attributes all fields of a new object to its creator, as [`track`] without a live object does.
/// The field sets of similar objects are memoized.
pub fn create<S: Schema>(schema: S, new: &Doc, write: &Write<'_>, memory: &Creations) -> Doc {
    if !new.at(MANAGED_FIELDS).is_null() {
        return track(schema, None, new, write);
    }
    let fields = match memo::essence(new, NEVER_OWNED_FIELDS, write.ignored) {
        Some(essence) => memory.fields(essence, || created_fields(schema, new, write)),
        None => created_fields(schema, new, write),
    };
    if fields.as_object().is_none_or(Object::is_empty) {
        return new.clone();
    }
    let me = manager_of(write, Operation::Update);
    let entry = entries::entry(&me, write.api_version, fields, Some(write.time));
    set_managed_fields(new, vec![entry])
}

/// The fields of a new object, as `FieldsV1`.
fn created_fields<S: Schema>(schema: S, new: &Doc, write: &Write<'_>) -> Doc {
    let (old, new) = (blank(schema, new), schema.canonical(new));
    if let Some(tree) = created::tree_of(schema, &old, &new) {
        let tree = tree::without_below(&tree, write.ignored);
        return tree::without(&tree, &NEVER_OWNED_STEPS).into();
    }
    let mut managers = Managers::new();
    attribute(schema, &old, &new, &mut managers, write);
    let taken = managers.into_values().next();
    taken.map_or_else(Doc::empty_object, |taken| taken.encode())
}

fn managers_to_start_from(live: &Doc, new: &Doc, write: &Write<'_>) -> Managers {
    let read = |object: &Doc| {
        let entries = object.at(MANAGED_FIELDS).items();
        entries::decode(entries).unwrap_or_default()
    };
    if !write.subresource.is_empty() {
        return read(live);
    }
    let is_reset = match new
        .at(MANAGED_FIELDS)
        .as_array()
        .map(|entries| &entries[..])
    {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Object::is_empty),
        _ => false,
    };
    if is_reset {
        return Managers::new();
    }
    match read(new) {
        none if none.is_empty() => read(live),
        said => said,
    }
}

fn manager_of(write: &Write<'_>, operation: Operation) -> Manager {
    Manager {
        name: match write.manager {
            "" => "unknown".to_owned(),
            name => name.to_owned(),
        },
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => write.api_version.to_owned(),
        },
        subresource: write.subresource.to_owned(),
    }
}

/// Gives what has changed between two objects to the manager of a write.
fn attribute<S: Schema>(
    schema: S,
    old: &Doc,
    new: &Doc,
    managers: &mut Managers,
    write: &Write<'_>,
) {
    let changes = Comparison::of(schema, old, new).without(write.ignored);
    let taken = changes.modified.union(&changes.added);
    let losses = [Loss::of(&taken), Loss::of(&changes.removed)];
    for owned in managers.values_mut() {
        losses.iter().for_each(|loss| owned.lose(loss));
    }
    managers.retain(|_, owned| !owned.is_empty());
    let taken = taken.difference(&NEVER_OWNED);
    if taken.is_empty() {
        return;
    }
    let me = manager_of(write, Operation::Update);
    match managers.get_mut(&me) {
        Some(owned) => {
            owned.gain(&taken);
            owned.time = Some(write.time);
        }
        None => {
            let owned = Owned::new(taken, write.api_version, Some(write.time));
            managers.insert(me, owned);
        }
    }
}

/// Takes from other managers what an apply changes, or refuses.
fn give_way<S: Schema>(
    schema: S,
    live: &Doc,
    merged: &Doc,
    managers: &mut Managers,
    ignored: &FieldSet,
    force: bool,
) -> Result<(), ApplyError> {
    let changes = Comparison::of(schema, live, merged).without(ignored);
    let changed = changes.modified.union(&changes.added);
    let removed = Loss::of(&changes.removed);
    let (mut conflicts, mut room) = (Vec::new(), CONFLICTS_BYTES_LIMIT);
    for (manager, owned) in managers.iter_mut() {
        let disputed = owned.set().intersection(&changed);
        conflicts.extend(
            disputed
                .paths_within(&mut room)
                .into_iter()
                .map(|field| Conflict {
                    manager: manager.to_string(),
                    field,
                }),
        );
        owned.lose(&Loss::of(&disputed));
        owned.lose(&removed);
    }
    managers.retain(|_, owned| !owned.is_empty());
    match force || conflicts.is_empty() {
        true => Ok(()),
        false if room == 0 => Err(ApplyError::TooManyConflicts(conflicts)),
        false => Err(ApplyError::Conflicts(conflicts)),
    }
}

/// Removes what a manager applied last time, does not apply now, and no other manager has.
fn prune<S: Schema>(
    schema: S,
    merged: Doc,
    others: &Managers,
    applied: &FieldSet,
    last: Option<&Owned>,
) -> Doc {
    let Some(last) = last.filter(|last| !last.is_empty()) else {
        return merged;
    };
    let named = |set: &FieldSet| set.with_named_fields(Some(schema));
    let without = |gone: &FieldSet| match remove(schema, &merged, gone) {
        nothing if nothing.is_null() => Doc::empty_object(),
        left => left,
    };
    let all = named(&fields_of(schema, &merged));
    let last = named(&last.set());
    let pruned = without(&last);
    // What is still owned comes back, and with it what it stands in.
    let owned = others
        .values()
        .fold(applied.clone(), |all, owned| all.union(&owned.set()));
    let kept = named(&fields_of(schema, &pruned)).union(&named(&owned));
    let pruned = without(&all.difference(&kept));
    // What was not this manager's to remove comes back too.
    let left = named(&fields_of(schema, &pruned));
    without(&all.difference(&left).intersection(&last))
}

/// The empty object that a creation is compared with.
fn blank<S: Schema>(schema: S, object: &Doc) -> Doc {
    let mut typed = Object::empty();
    for key in ["apiVersion", "kind"] {
        if let Some(value) = object.get(key) {
            typed = typed.with(key, value.clone());
        }
    }
    schema.canonical(&typed.into())
}

pub(super) fn without_managed_fields(object: &Doc) -> Doc {
    object
        .without(MANAGED_FIELDS)
        .expect("invariant: the pointer is well-formed")
}

fn with_managed_fields(object: &Doc, managers: &Managers) -> Doc {
    if managers.is_empty() {
        return object.clone();
    }
    set_managed_fields(object, entries::encode(managers))
}

fn set_managed_fields(object: &Doc, entries: Vec<Doc>) -> Doc {
    // Only an object whose metadata is not an object cannot carry them.
    object
        .with(MANAGED_FIELDS, entries)
        .unwrap_or_else(|_| object.clone())
}
