//! `metadata.managedFields`: which manager has set what.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use windlass_core::{Doc, Memo, Object, Time, quote};

use super::encode::FieldsError;
use super::set::FieldSet;
use super::tree::{self, Steps};

/// The number of memoized field sets on a thread. That of a pod takes a hundred kilobytes.
const KNOWN_LIMIT: usize = 128;

thread_local! {
    /// Sets by what they were read from. Objects of one sort are written by the same managers,
    /// which set the same fields.
    static KNOWN: RefCell<Memo<Doc, Arc<FieldSet>>> = RefCell::new(Memo::new(KNOWN_LIMIT));
}

/// A `managedFields` that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    /// The operation is neither of the two there are.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version of the fields is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The form of the fields is not `FieldsV1`.
    #[error("invalid fieldsType {0:?} in managed fields entry {1}")]
    FieldsType(String, usize),
    /// The fields cannot be read.
    #[error(transparent)]
    Fields(#[from] FieldsError),
    /// The time is not one.
    #[error("invalid time {0:?}")]
    Time(String),
}

/// A field manager. The order is that in which upstream lists the managers of conflicts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) operation: Operation,
    /// Empty for managers that apply: those have one set of fields for all versions.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// The two ways to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// The fields of one manager.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    fields: Fields,
    pub(super) api_version: String,
    pub(super) time: Option<Time>,
}

/// A set of fields, in the form in which it was found for as long as that serves.
#[derive(Clone, Debug)]
enum Fields {
    /// A canonical tree.
    Tree(Object),
    /// A set, and what it was read from while it is unchanged.
    Set(Arc<FieldSet>, Option<Doc>),
}

/// Fields that managers lose. There may be many managers, so what each of them needs of the set is
/// worked out once.
#[derive(Debug)]
pub(super) struct Loss<'a> {
    set: &'a FieldSet,
    /// The same for trees, if they can be changed as they are.
    steps: Option<Steps>,
}

impl<'a> Loss<'a> {
    pub(super) fn of(set: &'a FieldSet) -> Self {
        Self {
            set,
            steps: Steps::of(set),
        }
    }
}

impl Owned {
    /// A set that was not read from anywhere.
    pub(super) fn new(set: FieldSet, api_version: &str, time: Option<Time>) -> Self {
        Self {
            fields: Fields::Set(Arc::new(set), None),
            api_version: api_version.to_owned(),
            time,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.fields {
            Fields::Tree(tree) => tree.is_empty(),
            Fields::Set(set, _) => set.is_empty(),
        }
    }

    pub(super) fn set(&self) -> Arc<FieldSet> {
        match &self.fields {
            Fields::Tree(tree) => {
                read_set(&tree.clone().into()).expect("invariant: a canonical tree can be read")
            }
            Fields::Set(set, _) => set.clone(),
        }
    }

    /// Takes fields away.
    pub(super) fn lose(&mut self, lost: &Loss<'_>) {
        match (&mut self.fields, &lost.steps) {
            (Fields::Tree(tree), Some(steps)) => *tree = tree::without(tree, steps),
            _ => {
                let set = self.set();
                if set.intersects(lost.set) {
                    self.fields = Fields::Set(Arc::new(set.difference(lost.set)), None);
                }
            }
        }
    }

    /// Adds fields.
    pub(super) fn gain(&mut self, fields: &FieldSet) {
        match &mut self.fields {
            Fields::Tree(tree) if tree::has_plain_steps(fields) => {
                *tree = tree::with(tree, fields);
            }
            _ => {
                let set = Arc::unwrap_or_clone(self.set());
                self.fields = Fields::Set(Arc::new(set.union(fields)), None);
            }
        }
    }

    pub(super) fn encode(&self) -> Doc {
        match &self.fields {
            Fields::Tree(tree) => tree.clone().into(),
            Fields::Set(_, Some(source)) => source.clone(),
            Fields::Set(set, None) => set.encode(),
        }
    }
}

pub(super) type Managers = BTreeMap<Manager, Owned>;

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// Reads the list of entries.
pub(super) fn decode(entries: &[Doc]) -> Result<Managers, ManagedFieldsError> {
    let mut managers = Managers::new();
    for (at, entry) in entries.iter().enumerate() {
        let operation = match entry.str_at("/operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedFieldsError::Operation),
        };
        let api_version = entry.str_at("/apiVersion").to_owned();
        if api_version.is_empty() {
            return Err(ManagedFieldsError::ApiVersion);
        }
        let fields_type = entry.str_at("/fieldsType");
        if fields_type != "FieldsV1" {
            return Err(ManagedFieldsError::FieldsType(fields_type.to_owned(), at));
        }
        let manager = Manager {
            name: entry.str_at("/manager").to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.clone(),
            },
            subresource: entry.str_at("/subresource").to_owned(),
        };
        let owned = Owned {
            fields: read_fields(entry.at("/fieldsV1"))?,
            api_version,
            time: read_time(entry.str_at("/time"))?,
        };
        managers.insert(manager, owned);
    }
    Ok(managers)
}

/// The fields in the form of `FieldsV1`.
fn read_fields(tree: &Doc) -> Result<Fields, FieldsError> {
    match tree.as_object() {
        _ if tree.is_null() => Ok(Fields::Set(Arc::default(), None)),
        Some(object) if tree::is_canonical(tree) => Ok(Fields::Tree(object.clone())),
        _ => Ok(Fields::Set(read_set(tree)?, Some(tree.clone()))),
    }
}

/// The set in the form of `FieldsV1`, read only if it is new.
fn read_set(tree: &Doc) -> Result<Arc<FieldSet>, FieldsError> {
    if let Some(known) = KNOWN.with_borrow(|known| known.get(tree)) {
        return Ok(known);
    }
    let set = Arc::new(FieldSet::decode(tree)?);
    KNOWN.with_borrow_mut(|known| known.put(tree.clone(), set.clone()));
    Ok(set)
}

fn read_time(text: &str) -> Result<Option<Time>, ManagedFieldsError> {
    if text.is_empty() {
        return Ok(None);
    }
    let time = text.parse();
    time.map(Some)
        .map_err(|_| ManagedFieldsError::Time(text.to_owned()))
}

/// The list of entries in the order upstream keeps.
pub(super) fn encode(managers: &Managers) -> Vec<Doc> {
    let mut sorted: Vec<(&Manager, &Owned)> = managers.iter().collect();
    sorted.sort_by_key(|(manager, owned)| {
        let seconds = owned.time.map_or(0, Time::unix);
        let api_version = &owned.api_version;
        let Manager {
            name, subresource, ..
        } = manager;
        (manager.operation, seconds, name, api_version, subresource)
    });
    let entries = sorted
        .into_iter()
        .map(|(manager, owned)| entry(manager, &owned.api_version, owned.encode(), owned.time));
    entries.collect()
}

/// One entry of the list.
pub(super) fn entry(manager: &Manager, api_version: &str, fields: Doc, time: Option<Time>) -> Doc {
    let mut entry = vec![
        ("apiVersion", Doc::from(api_version)),
        ("fieldsType", Doc::from("FieldsV1")),
        ("fieldsV1", fields),
        ("operation", Doc::from(manager.operation.name())),
    ];
    if !manager.name.is_empty() {
        entry.push(("manager", Doc::from(&manager.name)));
    }
    if !manager.subresource.is_empty() {
        entry.push(("subresource", Doc::from(&manager.subresource)));
    }
    if let Some(time) = time {
        entry.push(("time", Doc::from(time.to_string())));
    }
    entry.into_iter().collect::<Object>().into()
}
