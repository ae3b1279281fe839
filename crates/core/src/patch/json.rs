//! JSON Patch (RFC 6902), with the limits of the Kubernetes API server.

use std::fmt;

use super::tree::{Measured, Tree, list_index};
use crate::doc::{DEPTH_LIMIT, unescape};
use crate::{Doc, EditError};

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
    /// The reason.
    pub kind: PatchErrorKind,
}

/// The reason why a patch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchErrorKind {
    /// The patch or one of its operations has not the form of one.
    Malformed(String),
    /// More operations than [`OPERATIONS_LIMIT`].
    TooManyOperations(usize),
    /// The copies add more than [`COPIED_BYTES_LIMIT`].
    CopiesTooMuch,
    /// The value that an operation needs does not exist.
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

    /// Applies all operations in order, or none. The cost is that of the target, the patch and the
    /// result, however often a long list is changed.
    pub fn apply(&self, target: &Doc) -> Result<Doc, PatchError> {
        let mut editor = Editor::new(target);
        for (position, operation) in self.0.iter().enumerate() {
            editor.apply(operation).map_err(|kind| PatchError {
                operation: Some(position),
                kind,
            })?;
        }
        Ok(editor.root.close())
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
}

/// A document to which operations are applied one after the other.
struct Editor {
    root: Tree,
    measured: Measured,
    copied_bytes: usize,
}

impl Editor {
    fn new(target: &Doc) -> Self {
        let mut measured = Measured::default();
        Self {
            root: measured.closed(target),
            measured,
            copied_bytes: 0,
        }
    }

    fn apply(&mut self, operation: &Operation) -> Outcome<()> {
        match operation {
            Operation::Add { path, value } => {
                let value = self.measured.closed(value);
                self.add(path, value)
            }
            Operation::Remove { path } => self.take(path).map(drop),
            Operation::Replace { path, value } => {
                let value = self.measured.closed(value);
                self.replace(path, value)
            }
            Operation::Move { from, path } => self.relocate(from, path),
            Operation::Copy { from, path } => {
                let value = self.copied(from)?;
                self.add(path, value)
            }
            // A missing place equals `null`, as the API server's library has it.
            Operation::Test { path, value } if self.root.is_at(path, value) => Ok(()),
            Operation::Test { path, .. } => Err(PatchErrorKind::TestFailed(path.clone())),
        }
    }

    /// Runs `work` on the value at a pointer.
    fn edit<T>(
        &mut self,
        path: &str,
        work: impl FnOnce(&mut Tree, &mut Measured) -> Outcome<T>,
    ) -> Outcome<T> {
        let rest = path.strip_prefix('/');
        let done = self.root.edit(rest, &mut self.measured, work);
        done.unwrap_or_else(|| Err(PatchErrorKind::Missing(path.to_owned())))
    }

    /// Adds a field, or inserts an item in front of the one at the index. The container must exist.
    fn add(&mut self, path: &str, value: Tree) -> Outcome<()> {
        let Some((parent, token)) = path.rsplit_once('/') else {
            self.root = value;
            return Ok(());
        };
        self.edit(parent, |container, measured| {
            container.open(measured);
            let bad_index = |len| {
                PatchErrorKind::Edit(EditError::BadIndex {
                    at: parent.to_owned(),
                    index: token.to_owned(),
                    len,
                })
            };
            match container {
                Tree::Object(object) => {
                    check_depth(path, &value)?;
                    object.set(&unescape(token), value);
                }
                Tree::Array(array) => {
                    let len = array.len();
                    let index = insertion_index(token, len).ok_or_else(|| bad_index(len))?;
                    check_depth(path, &value)?;
                    array.insert(index, value);
                }
                Tree::Closed(..) => {
                    return Err(PatchErrorKind::Edit(EditError::NotAContainer {
                        at: parent.to_owned(),
                        found: container.sort(),
                    }));
                }
            }
            Ok(())
        })
    }

    /// Takes out what stands at a pointer. Without its root, a document is `null`.
    fn take(&mut self, path: &str) -> Outcome<Tree> {
        let Some((parent, token)) = path.rsplit_once('/') else {
            let null = self.measured.closed(&Doc::NULL);
            return Ok(std::mem::replace(&mut self.root, null));
        };
        let missing = || PatchErrorKind::Missing(path.to_owned());
        let taken = self.edit(parent, |container, measured| {
            container.open(measured);
            container.take(token).ok_or_else(missing)
        });
        taken.map_err(|_| missing())
    }

    fn replace(&mut self, path: &str, value: Tree) -> Outcome<()> {
        self.edit(path, |place, _| {
            check_depth(path, &value)?;
            *place = value;
            Ok(())
        })
    }

    fn relocate(&mut self, from: &str, path: &str) -> Outcome<()> {
        let below = path.strip_prefix(from);
        let is_inside = below.is_some_and(|rest| rest.starts_with('/'));
        if is_inside {
            self.edit(from, |_, _| Ok(()))?;
            let why = format!("cannot move {from:?} into itself");
            return Err(PatchErrorKind::Malformed(why));
        }
        let value = self.take(from)?;
        self.add(path, value)
    }

    /// A copy, which counts against the limit. Its source is closed, at no more than the cost of
    /// the bytes that count.
    fn copied(&mut self, from: &str) -> Outcome<Tree> {
        let doc = self.edit(from, |source, _| Ok(source.close_in_place()))?;
        self.copied_bytes += doc.to_json().len();
        if self.copied_bytes > COPIED_BYTES_LIMIT {
            return Err(PatchErrorKind::CopiesTooMuch);
        }
        Ok(self.measured.closed(&doc))
    }
}

/// The index in front of which an item goes.
fn insertion_index(token: &str, len: usize) -> Option<usize> {
    if token == "-" {
        return Some(len);
    }
    list_index(token).filter(|at| *at <= len)
}

/// Values from outside are not nested deeper than [`DEPTH_LIMIT`].
fn check_depth(path: &str, value: &Tree) -> Outcome<()> {
    let steps = path.bytes().filter(|byte| *byte == b'/').count();
    if steps + value.height() > DEPTH_LIMIT {
        let start = path.chars().take(64).collect();
        return Err(PatchErrorKind::Edit(EditError::TooDeep(start)));
    }
    Ok(())
}
