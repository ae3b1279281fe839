//! One rule: operations, groups, versions, resources, scope, and for policies names.

use windlass_core::Doc;

/// The operation of a request, as rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationType {
    /// A new object.
    Create,
    /// A change: update, patch, apply.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object: exec, attach, port-forward, proxy.
    Connect,
}

impl OperationType {
    /// The word in rules and reviews.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct MatchTarget<'a> {
    /// The operation.
    pub operation: OperationType,
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The part of the object; empty for the object itself.
    pub subresource: &'a str,
    /// The name of the object; empty if it is not known yet.
    pub name: &'a str,
    /// True for an object in a namespace. A Namespace is in none.
    pub is_namespaced: bool,
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: String,
    /// Empty for all names.
    names: Vec<String>,
}

impl Rule {
    /// Compiles a rule of a webhook or a policy.
    #[must_use]
    pub fn new(rule: &Doc) -> Self {
        let texts = |list: &Doc| -> Vec<String> {
            let texts = list.items().iter().filter_map(Doc::as_str);
            texts.map(str::to_owned).collect()
        };
        let split = |text: String| match text.split_once('/') {
            Some((resource, sub)) => (resource.to_owned(), sub.to_owned()),
            None => (text, String::new()),
        };
        Self {
            operations: texts(rule.at("/operations")),
            groups: texts(rule.at("/apiGroups")),
            versions: texts(rule.at("/apiVersions")),
            resources: texts(rule.at("/resources"))
                .into_iter()
                .map(split)
                .collect(),
            scope: rule.str_at("/scope").to_owned(),
            names: texts(rule.at("/resourceNames")),
        }
    }

    /// Returns true if the rule matches a request.
    #[must_use]
    pub fn matches(&self, target: &MatchTarget<'_>) -> bool {
        self.matches_any_version(target)
            && has(&self.groups, target.group)
            && has(&self.versions, target.version)
    }

    /// Returns true if the rule matches a request, apart from its group and version.
    #[must_use]
    pub fn matches_any_version(&self, target: &MatchTarget<'_>) -> bool {
        self.matches_scope(target)
            && has(&self.operations, target.operation.as_str())
            && self
                .resources
                .iter()
                .any(|(resource, sub)| is(resource, target.resource) && is(sub, target.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == target.name))
    }

    fn matches_scope(&self, target: &MatchTarget<'_>) -> bool {
        match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => target.is_namespaced,
            "Cluster" => !target.is_namespaced,
            _ => false,
        }
    }
}

fn has(items: &[String], wanted: &str) -> bool {
    items.iter().any(|item| is(item, wanted))
}

fn is(item: &str, wanted: &str) -> bool {
    item == "*" || item == wanted
}
