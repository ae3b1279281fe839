//! Requests as rules see them.

/// The facts about a request that rules look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// The verb of Kubernetes, such as `create` or `watch`.
    pub verb: &'a str,
    /// The resource with its group and subresource; the path of what is not a resource.
    pub resource: &'a str,
    /// The namespace; empty outside of namespaces.
    pub namespace: &'a str,
    /// The name of the object; empty for a collection.
    pub name: &'a str,
    /// The user agent of the client.
    pub agent: &'a str,
    /// The name of the user.
    pub user: &'a str,
}

impl RequestFacts<'_> {
    /// Returns true if the request may change something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        is_write(self.verb)
    }
}

/// Returns true if a verb may change something.
pub(crate) fn is_write(verb: &str) -> bool {
    matches!(
        verb,
        "create" | "update" | "patch" | "delete" | "deletecollection" | "post" | "put"
    )
}
