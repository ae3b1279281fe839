//! Why an allocation cannot even be tried.

/// What a claim asks for cannot be understood, or the search was ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// Something about the claims, classes or slices is wrong. No node will do.
    #[error("{0}")]
    Invalid(String),
    /// A pool of this node is contradictory. Other nodes may do.
    #[error("invalid resource pools were encountered")]
    InvalidPools,
    /// The time is up.
    #[error("timed out trying to allocate devices")]
    TimedOut,
}
