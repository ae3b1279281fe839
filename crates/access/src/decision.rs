//! The answer of an authorizer.

/// The answer of the authorizers, in upstream's order: the group of administrators, nodes,
/// then roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Set if one of the authorizers allows the request.
    pub is_allowed: bool,
    /// Why, or why not; often empty.
    pub reason: String,
}

impl Decision {
    pub(crate) fn allow(reason: impl Into<String>) -> Self {
        Self {
            is_allowed: true,
            reason: reason.into(),
        }
    }

    pub(crate) fn no_opinion(reason: impl Into<String>) -> Self {
        Self {
            is_allowed: false,
            reason: reason.into(),
        }
    }
}
