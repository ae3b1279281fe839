//! The errors of server-side apply.

use std::fmt;

use super::entries::ManagedFieldsError;

/// A field that another manager has set to something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager, such as `"kubectl" using apps/v1`.
    pub manager: String,
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
}

/// The reason why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// The configuration does not fit the schema.
    Invalid(Vec<String>),
    /// Other managers have set some of its fields to something else.
    Conflicts(Vec<Conflict>),
    /// The same, of more fields than are named.
    TooManyConflicts(Vec<Conflict>),
    /// The configuration has `metadata.managedFields`.
    ManagedFields,
    /// The `managedFields` of the live object cannot be read.
    Unreadable(ManagedFieldsError),
}

impl std::error::Error for ApplyError {}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagedFields => f.write_str("metadata.managedFields must be nil"),
            Self::Unreadable(error) => error.fmt(f),
            Self::Invalid(faults) => match &faults[..] {
                [fault] => f.write_str(fault),
                faults => write!(f, "errors:\n  {}", faults.join("\n  ")),
            },
            Self::Conflicts(conflicts) | Self::TooManyConflicts(conflicts) => {
                write_conflicts(f, conflicts)
            }
        }
    }
}

fn write_conflicts(f: &mut fmt::Formatter<'_>, conflicts: &[Conflict]) -> fmt::Result {
    if let [Conflict { manager, field }] = conflicts {
        return write!(
            f,
            "Apply failed with 1 conflict: conflict with {manager}: {field}"
        );
    }
    write!(f, "Apply failed with {} conflicts: ", conflicts.len())?;
    let mut last = None;
    for Conflict { manager, field } in conflicts {
        if last != Some(manager) {
            let newline = if last.is_some() { "\n" } else { "" };
            write!(f, "{newline}conflicts with {manager}:")?;
            last = Some(manager);
        }
        write!(f, "\n- {field}")?;
    }
    Ok(())
}
