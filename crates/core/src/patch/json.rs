//! JSON Patch (RFC 6902), with the limits of the Kubernetes API server.

use std::fmt;

use crate::{Doc, EditError, Kind};

/// Operations in one patch.
pub const OPERATIONS_LIMIT: usize = 10_000;

/// Bytes that the copies of one patch may add together.
pub const COPIED_BYTES_LIMIT: usize = 3 << 20;

/// A JSON Patch, checked for its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPatch(Vec<Operation>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    Add { path: String, value: Doc },
    Remove { path: String },
    Replace { path: String, value: Doc },
    Move { from: String, path: String },
    Copy { from: String, path: String },
    Test { path: String, value: Doc },
}

/// A patch that is malformed or does not fit the document: which operation, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// The position of the operation in the patch, if it is one operation that is wrong.
    pub operation: Option<usize>,
    /// Why.
    pub kind: PatchErrorKind,
}

/// What is wrong with a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// The patch or one of its operations has not the form of one.
    Malformed(String),
    /// More operations than [`OPERATIONS_LIMIT`].
    TooManyOperations(usize),
    /// The copies add more than [`COPIED_BYTES_LIMIT`].
    CopiesTooMuch,
    /// The place that an operation needs is not there.
    Missing(String),
    /// A `test` did not hold.
    TestFailed(String),
    /// The operation does not fit the document.
    Edit(EditError),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "operation {operation}: ")?;
        }
        match &self.kind {
            PatchErrorKind::Malformed(why) => f.write_str(why),
            PatchErrorKind::TooManyOperations(count) => write!(
                f,
                "the allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {count}"
            ),
            PatchErrorKind::CopiesTooMuch => {
                write!(
                    f,
                    "the copies of the patch exceed {COPIED_BYTES_LIMIT} bytes"
                )
            }
            PatchErrorKind::Missing(path) => write!(f, "nothing stands at {path:?}"),
            PatchErrorKind::TestFailed(path) => write!(f, "the value at {path:?} is another one"),
            PatchErrorKind::Edit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PatchError {}

type Outcome<T> = Result<T, PatchErrorKind>;

impl JsonPatch {
    /// Reads a patch from its document form, an array of operations.
    pub fn from_doc(patch: &Doc) -> Result<Self, PatchError> {
        let whole = |kind| PatchError {
            operation: None,
            kind,
        };
        let Some(operations) = patch.as_array() else {
            let found = patch.kind().name();
            let why = format!("a JSON patch is an array of operations, not {found}");
            return Err(whole(PatchErrorKind::Malformed(why)));
        };
        if operations.len() > OPERATIONS_LIMIT {
            return Err(whole(PatchErrorKind::TooManyOperations(operations.len())));
        }
        let read = |(position, operation)| {
            Operation::from_doc(operation).map_err(|kind| PatchError {
                operation: Some(position),
                kind,
            })
        };
        operations
            .iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Applies all operations in order, or none.
    pub fn apply(&self, target: &Doc) -> Result<Doc, PatchError> {
        let mut copied_bytes = 0;
        self.0
            .iter()
            .enumerate()
            .try_fold(target.clone(), |doc, (position, operation)| {
                operation
                    .apply(&doc, &mut copied_bytes)
                    .map_err(|kind| PatchError {
                        operation: Some(position),
                        kind,
                    })
            })
    }
}

impl Operation {
    fn from_doc(operation: &Doc) -> Outcome<Self> {
        let text = |field: &str| {
            operation
                .get(field)
                .and_then(Doc::as_str)
                .map(str::to_owned)
                .ok_or_else(|| {
                    PatchErrorKind::Malformed(format!("field {field:?} must be a string"))
                })
        };
        let pointer = |field: &str| {
            text(field).and_then(|pointer| {
                if pointer.is_empty() || pointer.starts_with('/') {
                    return Ok(pointer);
                }
                Err(PatchErrorKind::Edit(EditError::BadPointer(pointer)))
            })
        };
        let value = || {
            operation
                .get("value")
                .cloned()
                .ok_or_else(|| PatchErrorKind::Malformed("field \"value\" is missing".to_owned()))
        };
        let path = pointer("path")?;
        match text("op")?.as_str() {
            "add" => Ok(Self::Add {
                path,
                value: value()?,
            }),
            "remove" => Ok(Self::Remove { path }),
            "replace" => Ok(Self::Replace {
                path,
                value: value()?,
            }),
            "move" => Ok(Self::Move {
                from: pointer("from")?,
                path,
            }),
            "copy" => Ok(Self::Copy {
                from: pointer("from")?,
                path,
            }),
            "test" => Ok(Self::Test {
                path,
                value: value()?,
            }),
            other => Err(PatchErrorKind::Malformed(format!(
                "unknown operation {other:?}"
            ))),
        }
    }

    fn apply(&self, doc: &Doc, copied_bytes: &mut usize) -> Outcome<Doc> {
        match self {
            Self::Add { path, value } => add(doc, path, value),
            Self::Remove { path } => {
                existing(doc, path)?;
                doc.without(path).map_err(PatchErrorKind::Edit)
            }
            Self::Replace { path, value } => {
                existing(doc, path)?;
                doc.with_outside_value(path, value)
                    .map_err(PatchErrorKind::Edit)
            }
            Self::Move { from, path } => {
                let value = existing(doc, from)?.clone();
                let is_inside = path
                    .strip_prefix(from)
                    .is_some_and(|rest| rest.starts_with('/'));
                if is_inside {
                    let why = format!("cannot move {from:?} into itself");
                    return Err(PatchErrorKind::Malformed(why));
                }
                add(
                    &doc.without(from).map_err(PatchErrorKind::Edit)?,
                    path,
                    &value,
                )
            }
            Self::Copy { from, path } => {
                let value = existing(doc, from)?;
                *copied_bytes += value.to_json().len();
                if *copied_bytes > COPIED_BYTES_LIMIT {
                    return Err(PatchErrorKind::CopiesTooMuch);
                }
                add(doc, path, value)
            }
            // A missing place equals `null`, as the API server's library has it.
            Self::Test { path, value } if doc.at(path) == value => Ok(doc.clone()),
            Self::Test { path, .. } => Err(PatchErrorKind::TestFailed(path.clone())),
        }
    }
}

fn existing<'a>(doc: &'a Doc, path: &str) -> Outcome<&'a Doc> {
    doc.pointer(path)
        .ok_or_else(|| PatchErrorKind::Missing(path.to_owned()))
}

/// Adds a field, or inserts an item in front of the one at the index. The container must exist.
fn add(doc: &Doc, path: &str, value: &Doc) -> Outcome<Doc> {
    let Some((parent, token)) = path.rsplit_once('/') else {
        return Ok(value.clone());
    };
    match existing(doc, parent)?.kind() {
        Kind::Array(array) if token != "-" => {
            let is_index = token.bytes().all(|byte| byte.is_ascii_digit());
            let index = token
                .parse()
                .ok()
                .filter(|at| is_index && *at <= array.len());
            let index: usize = index.ok_or_else(|| {
                PatchErrorKind::Edit(EditError::BadIndex {
                    at: parent.to_owned(),
                    index: token.to_owned(),
                    len: array.len(),
                })
            })?;
            let mut items = array.to_vec();
            items.insert(index, value.clone());
            doc.with_outside_value(parent, &items.into())
                .map_err(PatchErrorKind::Edit)
        }
        Kind::Object(_) | Kind::Array(_) => doc
            .with_outside_value(path, value)
            .map_err(PatchErrorKind::Edit),
        other => Err(PatchErrorKind::Edit(EditError::NotAContainer {
            at: parent.to_owned(),
            found: other.name(),
        })),
    }
}
