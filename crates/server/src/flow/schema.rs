//! A flow schema: the requests that it is about, and their priority level.

use std::sync::Arc;

use http::HeaderValue;
use windlass_core::Doc;

use super::level::Level;
use super::stats::FlowStats;
use crate::request::{ResourcePath, Target};
use windlass_access::User;

/// One flow schema.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) uid: HeaderValue,
    pub(super) precedence: i64,
    pub(super) level: Arc<Level>,
    pub(super) distinguisher: Distinguisher,
    pub(super) stats: Arc<FlowStats>,
    pub(super) rules: Vec<FlowRule>,
}

/// The property of requests that tells the flows of a schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distinguisher {
    Nothing,
    User,
    Namespace,
}

/// Some users, and some requests of theirs.
#[derive(Debug)]
pub(super) struct FlowRule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug)]
enum Subject {
    User(String),
    Group(String),
    /// The beginning and the end of the user's name; the end is `*` for all of a namespace.
    ServiceAccount(String, String),
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Words,
    groups: Words,
    resources: Words,
    namespaces: Words,
    is_cluster: bool,
}

#[derive(Debug)]
struct PathRule {
    verbs: Words,
    paths: Vec<String>,
}

/// Words, or all of them.
#[derive(Debug)]
enum Words {
    All,
    These(Vec<String>),
}

impl Distinguisher {
    pub(super) fn of(spec: &Doc) -> Self {
        match spec.str_at("/distinguisherMethod/type") {
            "ByUser" => Self::User,
            "ByNamespace" => Self::Namespace,
            _ => Self::Nothing,
        }
    }
}

impl Schema {
    /// Returns true if a request belongs to the schema.
    pub(super) fn matches(&self, user: &User, target: &Target) -> bool {
        let rules = &self.rules;
        rules
            .iter()
            .any(|rule| rule.is_about(user) && rule.covers(target))
    }
}

impl FlowRule {
    pub(super) fn read(rule: &Doc) -> Self {
        let items = |pointer: &str| rule.at(pointer).items().to_vec();
        Self {
            subjects: items("/subjects")
                .iter()
                .filter_map(Subject::read)
                .collect(),
            resources: items("/resourceRules")
                .iter()
                .map(ResourceRule::read)
                .collect(),
            paths: items("/nonResourceRules")
                .iter()
                .map(PathRule::read)
                .collect(),
        }
    }

    /// Returns true if a user is among the subjects.
    pub(super) fn is_about(&self, user: &User) -> bool {
        self.subjects.iter().any(|subject| subject.is(user))
    }

    /// Returns true if a request is among those of the rule.
    pub(super) fn covers(&self, target: &Target) -> bool {
        match target {
            Target::Resource(path) => self.resources.iter().any(|rule| rule.covers(path)),
            Target::Path { path, verb } => self.paths.iter().any(|rule| rule.covers(path, verb)),
        }
    }
}

impl Subject {
    fn read(subject: &Doc) -> Option<Self> {
        let text = |pointer: &str| subject.str_at(pointer).to_owned();
        Some(match subject.str_at("/kind") {
            "User" => Self::User(text("/user/name")),
            "Group" => Self::Group(text("/group/name")),
            "ServiceAccount" => {
                let namespace = subject.str_at("/serviceAccount/namespace");
                let prefix = format!("system:serviceaccount:{namespace}:");
                Self::ServiceAccount(prefix, text("/serviceAccount/name"))
            }
            _ => return None,
        })
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == "*" || *name == user.name,
            Self::Group(name) => name == "*" || user.is_in(name),
            Self::ServiceAccount(prefix, name) => user
                .name
                .strip_prefix(prefix.as_str())
                .is_some_and(|account| name == "*" || name == account),
        }
    }
}

impl ResourceRule {
    fn read(rule: &Doc) -> Self {
        Self {
            verbs: Words::read(rule.at("/verbs")),
            groups: Words::read(rule.at("/apiGroups")),
            resources: Words::read(rule.at("/resources")),
            namespaces: Words::read(rule.at("/namespaces")),
            is_cluster: rule.at("/clusterScope").as_bool().unwrap_or(false),
        }
    }

    fn covers(&self, path: &ResourcePath) -> bool {
        let verb = path.verb.map_or("", crate::request::Verb::as_str);
        let is_here = match path.namespace.as_str() {
            "" => self.is_cluster,
            namespace => self.namespaces.has(namespace),
        };
        is_here
            && self.verbs.has(verb)
            && self.groups.has(&path.group)
            && self.resources.has_resource(path)
    }
}

impl PathRule {
    fn read(rule: &Doc) -> Self {
        let paths = rule.at("/nonResourceURLs").items().iter();
        Self {
            verbs: Words::read(rule.at("/verbs")),
            paths: paths
                .filter_map(|path| path.as_str().map(str::to_owned))
                .collect(),
        }
    }

    fn covers(&self, path: &str, verb: &str) -> bool {
        let is_path = |pattern: &String| match pattern.strip_suffix('*') {
            Some("") => true,
            Some(prefix) if prefix.ends_with('/') => path.starts_with(prefix),
            _ => pattern == path,
        };
        self.verbs.has(verb) && self.paths.iter().any(is_path)
    }
}

impl Words {
    fn read(list: &Doc) -> Self {
        let words: Vec<String> = list
            .items()
            .iter()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        match words.iter().any(|word| word == "*") {
            true => Self::All,
            false => Self::These(words),
        }
    }

    fn has(&self, word: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(words) => words.iter().any(|known| known == word),
        }
    }

    /// The same for `resource` or `resource/subresource`.
    fn has_resource(&self, path: &ResourcePath) -> bool {
        let is_this = |known: &String| match path.subresource.as_str() {
            "" => *known == path.resource,
            sub => known
                .strip_prefix(path.resource.as_str())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| rest == sub),
        };
        match self {
            Self::All => true,
            Self::These(words) => words.iter().any(is_this),
        }
    }
}
