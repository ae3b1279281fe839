//! What the rest of the server does for a kind.
//!
//! It stands in the row of the kind, so that nobody recognizes a kind by its name. A custom resource
//! needs nothing of it, whatever it is called.

/// What the rest of the server does for a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// What a write leaves to do.
    pub(crate) after_write: AfterWrite,
}

/// What a write to a kind leaves to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AfterWrite {
    #[default]
    Nothing,
    /// The registry follows the definitions.
    SyncDefinitions,
    /// Flow schemas say whether their priority level exists.
    TellFlowSchemas,
}
