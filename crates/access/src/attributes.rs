//! The attributes of a request, by which authorizers decide.

/// The attributes of a request that rules are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The verb in the words of roles, or the HTTP method in lower case.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// With its subresource behind a slash.
    pub resource: String,
    /// The namespace; empty for the cluster.
    pub namespace: String,
    /// The name of the object; empty for a collection.
    pub name: String,
    /// Set instead of all but the verb for what is not a resource.
    pub path: Option<String>,
    /// The fields that a list is limited to, with their values.
    pub fields: Vec<(String, String)>,
}

impl Attributes {
    /// The same, limited by a field selector.
    #[must_use]
    pub fn selecting(mut self, selector: &str) -> Self {
        let terms = selector.split(',').filter_map(|term| term.split_once('='));
        let terms = terms.filter(|(field, _)| !field.ends_with('!'));
        self.fields = terms
            .map(|(field, value)| {
                let value = value.strip_prefix('=').unwrap_or(value);
                (field.trim().to_owned(), value.trim().to_owned())
            })
            .collect();
        self
    }

    /// A resource and its part as rules write them.
    #[must_use]
    pub fn join(resource: &str, subresource: &str) -> String {
        if subresource.is_empty() {
            return resource.to_owned();
        }
        format!("{resource}/{subresource}")
    }
}
