//! The audit policy: which requests are logged, and how much of them.
//!
//! The first rule that matches a request decides; a request that no rule matches is not logged.
//! The rules are upstream's, `audit.k8s.io/v1`.

use windlass_access::{Attributes, User};
use windlass_core::{Doc, names};
use windlass_rules::field::{FieldErrors, FieldPath};

use super::record::Stage;

/// The kind of an audit policy.
const KIND: (&str, &str) = ("audit.k8s.io/v1", "Policy");
/// Rules of one policy that are read at most: each request is compared with all of them.
const RULES_LIMIT: usize = 1000;
const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];

/// An audit policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPolicy {
    rules: Vec<Rule>,
    /// The stages that are left out where no rule matches.
    omit_stages: StageSet,
}

/// A text that is not an audit policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditPolicyError {
    /// It is not one YAML document.
    #[error("failed decoding: {0}")]
    Text(String),
    /// It is a document of another kind.
    #[error("unknown group version field {api_version}, Kind={kind} in policy")]
    Kind {
        /// Its API version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// It has fields that are wrong.
    #[error("{0}")]
    Invalid(String),
    /// It has no rules.
    #[error("loaded illegal policy with 0 rules")]
    NoRules,
    /// It has more rules than any that is meant.
    #[error("an audit policy has at most {RULES_LIMIT} rules")]
    TooManyRules,
}

/// The amount of a request that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Nothing.
    #[default]
    None,
    /// Everything but bodies.
    Metadata,
    /// The body of the request too.
    Request,
    /// The body of the answer too.
    RequestResponse,
}

impl Level {
    pub(super) const ALL: [Self; 4] = [
        Self::None,
        Self::Metadata,
        Self::Request,
        Self::RequestResponse,
    ];

    pub(super) fn as_str(self) -> &'static str {
        LEVELS[self as usize]
    }

    fn read(text: &str) -> Self {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == text);
        found.unwrap_or_default()
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StageSet(u8);

impl StageSet {
    fn read(list: &Doc) -> Self {
        let names = list.items().iter().filter_map(Doc::as_str);
        let stages = names.filter_map(Stage::read);
        Self(stages.fold(0, |set, stage| set | 1 << stage as u8))
    }

    pub(super) fn contains(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u8 != 0
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The outcome of the policy for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) level: Level,
    pub(super) omit_stages: StageSet,
    pub(super) omits_managed_fields: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    config: Config,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    namespaces: Vec<String>,
    resources: Vec<GroupResources>,
    paths: Vec<String>,
}

/// Resources of a group, as a rule names them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupResources {
    group: String,
    /// Empty for all of the group.
    resources: Vec<String>,
    /// Empty for all names.
    names: Vec<String>,
}

impl Default for AuditPolicy {
    /// Every request at the level `Metadata`.
    fn default() -> Self {
        let everything = Rule {
            config: Config {
                level: Level::Metadata,
                ..Config::default()
            },
            users: Vec::new(),
            groups: Vec::new(),
            verbs: Vec::new(),
            namespaces: Vec::new(),
            resources: Vec::new(),
            paths: Vec::new(),
        };
        Self {
            rules: vec![everything],
            omit_stages: StageSet::default(),
        }
    }
}

impl AuditPolicy {
    /// Reads a policy in YAML or JSON.
    ///
    /// # Errors
    /// When the text is no policy, or a rule of it is wrong.
    pub fn parse(text: &str) -> Result<Self, AuditPolicyError> {
        let documents =
            Doc::parse_yaml(text).map_err(|error| AuditPolicyError::Text(error.to_string()))?;
        let [policy] = documents.as_slice() else {
            let count = documents.len();
            let why = format!("one document expected, found {count}");
            return Err(AuditPolicyError::Text(why));
        };
        let kind = (policy.str_at("/apiVersion"), policy.str_at("/kind"));
        if kind != KIND {
            return Err(AuditPolicyError::Kind {
                api_version: kind.0.to_owned(),
                kind: kind.1.to_owned(),
            });
        }
        let errors = check(policy);
        if !errors.is_empty() {
            return Err(AuditPolicyError::Invalid(errors.to_string()));
        }
        let rules = policy.get("rules").map_or(&[][..], Doc::items);
        match rules.len() {
            0 => return Err(AuditPolicyError::NoRules),
            count if count > RULES_LIMIT => return Err(AuditPolicyError::TooManyRules),
            _ => {}
        }
        let omit_stages = stages_of(policy);
        let omits = flag(policy).unwrap_or(false);
        Ok(Self {
            rules: rules
                .iter()
                .map(|rule| Rule::read(rule, omit_stages, omits))
                .collect(),
            omit_stages,
        })
    }

    /// The outcome for a request; nobody is the user of one whose credentials are no good.
    pub(super) fn evaluate(&self, request: &Attributes, user: Option<&User>) -> Config {
        let rule = self.rules.iter().find(|rule| rule.matches(request, user));
        rule.map_or_else(
            || Config {
                omit_stages: self.omit_stages,
                ..Config::default()
            },
            |rule| rule.config,
        )
    }
}

fn texts(of: &Doc, key: &str) -> Vec<String> {
    let items = of.get(key).map_or(&[][..], Doc::items).iter();
    items.filter_map(Doc::as_str).map(str::to_owned).collect()
}

fn stages_of(of: &Doc) -> StageSet {
    of.get("omitStages")
        .map_or_else(StageSet::default, StageSet::read)
}

fn flag(of: &Doc) -> Option<bool> {
    of.get("omitManagedFields").and_then(Doc::as_bool)
}

impl Rule {
    fn read(rule: &Doc, omit_stages: StageSet, omits_managed_fields: bool) -> Self {
        let level = rule.get("level").and_then(Doc::as_str).unwrap_or_default();
        let resources = rule.get("resources").map_or(&[][..], Doc::items);
        Self {
            config: Config {
                level: Level::read(level),
                omit_stages: omit_stages.union(stages_of(rule)),
                omits_managed_fields: flag(rule).unwrap_or(omits_managed_fields),
            },
            users: texts(rule, "users"),
            groups: texts(rule, "userGroups"),
            verbs: texts(rule, "verbs"),
            namespaces: texts(rule, "namespaces"),
            resources: resources.iter().map(GroupResources::read).collect(),
            paths: texts(rule, "nonResourceURLs"),
        }
    }

    fn matches(&self, request: &Attributes, user: Option<&User>) -> bool {
        let is_user = self.users.is_empty() || user.is_some_and(|it| self.users.contains(&it.name));
        let in_group = self.groups.is_empty()
            || user.is_some_and(|it| it.groups.iter().any(|group| self.groups.contains(group)));
        let is_verb = self.verbs.is_empty() || self.verbs.contains(&request.verb);
        if !(is_user && in_group && is_verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return request.path.is_none() && self.matches_resource(request);
        }
        if !self.paths.is_empty() {
            let path = request.path.as_deref();
            return path.is_some_and(|path| self.paths.iter().any(|it| path_matches(path, it)));
        }
        true
    }

    fn matches_resource(&self, request: &Attributes) -> bool {
        if !self.namespaces.is_empty() && !self.namespaces.contains(&request.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|known| known.covers(request))
    }
}

/// Returns true if a path is what a rule names: itself, everything, or what begins as it does.
fn path_matches(path: &str, wanted: &str) -> bool {
    wanted == path
        || wanted
            .strip_suffix('*')
            .is_some_and(|start| path.starts_with(start.trim_end_matches('*')))
}

impl GroupResources {
    fn read(entry: &Doc) -> Self {
        let group = entry.get("group").and_then(Doc::as_str);
        Self {
            group: group.unwrap_or_default().to_owned(),
            resources: texts(entry, "resources"),
            names: texts(entry, "resourceNames"),
        }
    }

    fn covers(&self, request: &Attributes) -> bool {
        if self.group != request.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let has_name = self.names.is_empty() || self.names.contains(&request.name);
        let wanted = request.resource.as_str();
        let (resource, part) = wanted.split_once('/').unwrap_or((wanted, ""));
        let covers = |known: &String| {
            let is_part = |part_of: &str| !part.is_empty() && part_of == part;
            known == wanted
                || known == "*"
                || known.strip_prefix("*/").is_some_and(is_part)
                || known.strip_suffix("/*") == Some(resource)
        };
        has_name && self.resources.iter().any(covers)
    }
}

/// The faults of a policy.
fn check(policy: &Doc) -> FieldErrors {
    let mut errors = FieldErrors::default();
    check_stages(policy, None, &mut errors);
    let rules = policy.get("rules").map_or(&[][..], Doc::items);
    for (index, rule) in rules.iter().take(RULES_LIMIT).enumerate() {
        check_rule(rule, &FieldPath::new("rules").index(index), &mut errors);
    }
    errors
}

fn check_rule(rule: &Doc, at: &FieldPath, errors: &mut FieldErrors) {
    match rule.get("level").and_then(Doc::as_str).unwrap_or_default() {
        "" => errors.required(&at.child("level"), ""),
        level if LEVELS.contains(&level) => {}
        level => errors.not_supported(&at.child("level"), level, &LEVELS),
    }
    let paths = texts(rule, "nonResourceURLs");
    for (index, path) in paths.iter().enumerate().filter(|(_, path)| *path != "*") {
        let field = at.child("nonResourceURLs").index(index);
        if !path.starts_with('/') {
            let why = "non-resource URL rules must begin with a '/' character";
            errors.invalid(&field, path.as_str(), why);
        }
        if path.len() > 1 && path[..path.len() - 1].contains('*') {
            let why = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.invalid(&field, path.as_str(), why);
        }
    }
    let resources = rule.get("resources").map_or(&[][..], Doc::items);
    for entry in resources.iter().map(GroupResources::read) {
        check_resources(&entry, &at.child("resources"), errors);
    }
    check_stages(rule, Some(at), errors);
    let names_resources = !resources.is_empty() || !texts(rule, "namespaces").is_empty();
    if !paths.is_empty() && names_resources {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        let given: Vec<Doc> = paths.iter().map(Doc::from).collect();
        errors.invalid(&at.child("nonResourceURLs"), Doc::from(given), why);
    }
}

fn check_resources(entry: &GroupResources, at: &FieldPath, errors: &mut FieldErrors) {
    if !matches!(entry.group.as_str(), "" | "*") {
        let faults = names::dns1123_subdomain(&entry.group);
        if !faults.is_empty() {
            let why = faults.join(",");
            errors.invalid(&at.child("group"), entry.group.as_str(), why);
        }
    }
    if !entry.names.is_empty() && entry.resources.is_empty() {
        let why = "using resourceNames requires at least one resource";
        let given: Vec<Doc> = entry.names.iter().map(Doc::from).collect();
        errors.invalid(&at.child("resourceNames"), Doc::from(given), why);
    }
}

fn check_stages(of: &Doc, at: Option<&FieldPath>, errors: &mut FieldErrors) {
    let field = match at {
        Some(at) => at.child("omitStages"),
        None => FieldPath::new("omitStages"),
    };
    for (index, stage) in texts(of, "omitStages").iter().enumerate() {
        if Stage::read(stage).is_none() {
            let known: Vec<&str> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
            let why = format!("allowed stages are {}", known.join(","));
            errors.invalid(&field.index(index), stage.as_str(), why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &str) -> Result<AuditPolicy, AuditPolicyError> {
        AuditPolicy::parse(&format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n{rules}"
        ))
    }

    fn level(policy: &AuditPolicy, resource: &str, namespace: &str, name: &str) -> Level {
        let request = Attributes {
            verb: "get".into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        policy.evaluate(&request, Some(&User::admin())).level
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = policy(
            "- {level: None, users: [somebody]}\n\
             - {level: Metadata, resources: [{group: \"\", resources: [secrets, pods/*]}]}\n\
             - {level: Request, resources: [{group: \"\", resources: [pods]}], omitStages: [Panic]}\n\
             - {level: None, resources: [{group: \"\", resources: [\"*/scale\"]}]}\n\
             - {level: RequestResponse, namespaces: [kube-system], omitManagedFields: true}\n\
             - {level: RequestResponse, resources: [{group: \"*\", resources: [configmaps], resourceNames: [a]}]}\n",
        )
        .unwrap();
        assert_eq!(level(&policy, "secrets", "a", "x"), Level::Metadata);
        assert_eq!(
            level(&policy, "pods", "a", "x"),
            Level::Metadata,
            "pods/* has pods"
        );
        assert_eq!(level(&policy, "pods/log", "a", "x"), Level::Metadata);
        assert_eq!(
            level(&policy, "services", "kube-system", "x"),
            Level::RequestResponse
        );
        assert_eq!(
            level(&policy, "configmaps", "a", "a"),
            Level::RequestResponse
        );
        assert_eq!(
            level(&policy, "configmaps", "a", "b"),
            Level::None,
            "no rule matches"
        );
        assert_eq!(level(&policy, "things/scale", "a", "b"), Level::None);
    }

    #[test]
    fn a_rule_for_pods_leaves_their_parts_out_and_paths_end_in_a_star() {
        let policy = policy(
            "- {level: Request, resources: [{group: \"\", resources: [pods]}]}\n\
             - {level: Metadata, nonResourceURLs: [\"/healthz*\", /version], userGroups: [\"system:masters\"]}\n",
        )
        .unwrap();
        assert_eq!(level(&policy, "pods", "a", "x"), Level::Request);
        assert_eq!(level(&policy, "pods/log", "a", "x"), Level::None);
        let page = |path: &str, user: Option<&User>| {
            let request = Attributes {
                verb: "get".into(),
                path: Some(path.into()),
                ..Attributes::default()
            };
            policy.evaluate(&request, user).level
        };
        let admin = User::admin();
        assert_eq!(page("/healthz/ping", Some(&admin)), Level::Metadata);
        assert_eq!(page("/version", Some(&admin)), Level::Metadata);
        assert_eq!(page("/version/", Some(&admin)), Level::None);
        assert_eq!(page("/version", None), Level::None);
    }

    #[test]
    fn a_policy_with_faults_is_refused_in_upstreams_words() {
        let refused = |rules: &str| policy(rules).unwrap_err().to_string();
        assert_eq!(refused(""), "loaded illegal policy with 0 rules");
        assert_eq!(
            refused("- level: Everything"),
            "rules[0].level: Unsupported value: \"Everything\": supported values: \
             \"None\", \"Metadata\", \"Request\", \"RequestResponse\""
        );
        let both = refused("- {level: None, nonResourceURLs: [/a], namespaces: [b]}");
        assert!(
            both.contains("rules cannot apply to both regular resources"),
            "{both}"
        );
        let stage = refused("- {level: None, omitStages: [Later]}");
        assert!(
            stage.contains("allowed stages are RequestReceived,"),
            "{stage}"
        );
        assert!(AuditPolicy::parse("kind: Pod\napiVersion: v1").is_err());
    }
}
