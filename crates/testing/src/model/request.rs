//! Paths and queries.

use windlass_core::{Doc, FieldSelector, GroupVersion, Gvr, LabelLookup, Selector};

/// What a path is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) resource: Gvr,
    /// Empty for all namespaces, or none.
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) part: Option<String>,
}

impl Parsed {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group_version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", rest),
        };
        let owned = |part: Option<&&str>| part.map(|part| (*part).to_owned());
        let group_version: GroupVersion = group_version.parse().ok()?;
        Some(Self {
            resource: group_version.with_resource((*rest.first()?).to_owned()),
            namespace: namespace.to_owned(),
            name: owned(rest.get(1)),
            part: owned(rest.get(2)),
        })
    }
}

/// What a query asks for.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) is_watch: bool,
    pub(super) sends_initial_events: bool,
    pub(super) resource_version: String,
    pub(super) labels: Selector,
    /// `None` for all.
    pub(super) fields: Option<FieldSelector>,
    pub(super) timeout_seconds: Option<u64>,
}

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let value = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs
                .find(|(key, _)| key == name)
                .map_or_else(String::new, |(_, it)| it.into_owned())
        };
        Self {
            is_watch: value("watch") == "true",
            sends_initial_events: value("sendInitialEvents") == "true",
            resource_version: value("resourceVersion"),
            labels: value("labelSelector")
                .parse()
                .unwrap_or_else(|_| Selector::nothing()),
            fields: value("fieldSelector").parse().ok(),
            timeout_seconds: value("timeoutSeconds").parse().ok(),
        }
    }

    pub(super) fn selects(&self, object: &Doc) -> bool {
        let has_fields = |fields: &FieldSelector| fields.matches(&Fields(object));
        self.labels.matches(&object.meta().labels()) && self.fields.as_ref().is_none_or(has_fields)
    }
}

/// The fields of any object, by path.
struct Fields<'a>(&'a Doc);

impl LabelLookup for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.at(&format!("/{}", key.replace('.', "/"))).as_str()
    }
}
