//! What became of the pods that claims are reserved for.

/// How many UIDs of deleted pods are remembered. One that is forgotten costs a request.
pub const DELETED_UIDS_LIMIT: usize = 500;

/// What became of a pod that a claim is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// It was seen to be deleted.
    SeenDeleted,
    /// The cache shows it, and it has ended.
    Done,
    /// The cache shows it, and it needs its claims.
    Active,
    /// The cache does not show it, and the server does not have it either.
    Absent,
    /// The cache does not show it, and the server has it.
    Unseen,
    /// It is no pod.
    Other,
}

impl Consumer {
    /// Whether the reservation stays.
    #[must_use]
    pub fn keeps(self) -> bool {
        matches!(self, Self::Active | Self::Unseen | Self::Other)
    }
}
