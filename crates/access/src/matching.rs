//! The match criteria that admission webhooks and admission policies share: rules with wildcards,
//! scope, `matchPolicy`, `namespaceSelector` and `objectSelector`.
//!
//! A [`Matcher`] is compiled once from a webhook, from `spec.matchConstraints` of a policy or from
//! `spec.matchResources` of a binding. A request is compared in two parts: [`Matcher::resource`]
//! needs only the request's resource and answers for which version of it the criteria hold;
//! [`Matcher::selects`] needs the objects. Upstream's order between the two does not show, except
//! that a missing namespace is only an error if a rule matches.
//!
//! Deliberately absent: which kinds are exempt. The registry rows say so, see
//! [`windlass_schema::needs::AdmissionConfiguration`].

mod rule;

use windlass_core::{Doc, LabelSelector, Selector};
use windlass_rules::reader::Reader;
use windlass_rules::status::Status;
use windlass_schema::resource::Resource;

pub use rule::{MatchTarget, OperationType, Rule};

/// The treatment of requests to another version of the resource that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchPolicy {
    /// They do not match.
    Exact,
    /// They match, and the object is converted to the version that the rule names.
    Equivalent,
}

/// Compiled match criteria of a webhook, a policy or a binding.
#[derive(Clone, Debug)]
pub struct Matcher {
    rules: Vec<Rule>,
    /// Wins over `rules`; only policies have some.
    excluded: Vec<Rule>,
    policy: MatchPolicy,
    /// A selector that cannot be read fails the requests whose resource matches.
    namespaces: Result<Selector, String>,
    objects: Result<Selector, String>,
    /// True for the `matchResources` of a binding: without rules it matches every resource.
    is_open: bool,
}

/// The objects of a request, as selectors see them.
#[derive(Clone, Copy)]
pub struct SelectedObjects<'a> {
    /// The kind of the request.
    pub resource: &'a Resource,
    /// The operation.
    pub operation: OperationType,
    /// The part of the object; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace of the request; for a Namespace its own name; empty at cluster scope.
    pub namespace: &'a str,
    /// The new state; absent for a DELETE.
    pub object: Option<&'a Doc>,
    /// The old state; absent for a CREATE.
    pub old: Option<&'a Doc>,
    /// The source of namespaces.
    pub reader: &'a dyn Reader,
}

impl std::fmt::Debug for SelectedObjects<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SelectedObjects({})", self.resource.group_resource())
    }
}

impl Matcher {
    /// The criteria of a webhook.
    #[must_use]
    pub fn of_webhook(webhook: &Doc) -> Self {
        Self {
            rules: rules(webhook.at("/rules")),
            excluded: Vec::new(),
            is_open: false,
            ..Self::selecting(webhook)
        }
    }

    /// The criteria in `spec.matchConstraints` of a policy.
    #[must_use]
    pub fn of_policy(constraints: &Doc) -> Self {
        Self {
            rules: rules(constraints.at("/resourceRules")),
            excluded: rules(constraints.at("/excludeResourceRules")),
            is_open: false,
            ..Self::selecting(constraints)
        }
    }

    /// The criteria in `spec.matchResources` of a binding, which match everything where they are
    /// absent.
    #[must_use]
    pub fn of_binding(resources: &Doc) -> Self {
        Self {
            is_open: true,
            ..Self::of_policy(resources)
        }
    }

    fn selecting(criteria: &Doc) -> Self {
        Self {
            rules: Vec::new(),
            excluded: Vec::new(),
            policy: match criteria.str_at("/matchPolicy") {
                "Exact" => MatchPolicy::Exact,
                _ => MatchPolicy::Equivalent,
            },
            namespaces: selector(criteria.at("/namespaceSelector")),
            objects: selector(criteria.at("/objectSelector")),
            is_open: false,
        }
    }

    /// Returns false if no rule can match, whatever the version of the resource. Cheap: it decides
    /// for every write whether anything has to be asked.
    #[must_use]
    pub fn may_match(&self, target: &MatchTarget<'_>) -> bool {
        (self.is_open && self.rules.is_empty())
            || self.rules.iter().any(|rule| match self.policy {
                MatchPolicy::Exact => rule.matches(target),
                MatchPolicy::Equivalent => rule.matches_any_version(target),
            })
    }

    /// The position in `equivalents` of the resource for which the criteria hold; `None` if they do
    /// not. `equivalents` are the versions of the requested resource, the requested one first.
    #[must_use]
    pub fn resource(&self, equivalents: &[MatchTarget<'_>]) -> Option<usize> {
        if self.first_match(&self.excluded, equivalents).is_some() {
            return None;
        }
        if self.is_open && self.rules.is_empty() {
            return (!equivalents.is_empty()).then_some(0);
        }
        self.first_match(&self.rules, equivalents)
    }

    /// The requested version counts before all rules; among the others the earlier rule counts.
    fn first_match(&self, rules: &[Rule], equivalents: &[MatchTarget<'_>]) -> Option<usize> {
        let (requested, others) = equivalents.split_first()?;
        if rules.iter().any(|rule| rule.matches(requested)) {
            return Some(0);
        }
        if self.policy == MatchPolicy::Exact {
            return None;
        }
        let find = |rule: &Rule| others.iter().position(|other| rule.matches(other));
        rules.iter().find_map(find).map(|at| at + 1)
    }

    /// Returns true if both selectors match.
    ///
    /// # Errors
    /// When the namespace does not exist (404), or a selector cannot be read (500).
    pub fn selects(&self, request: &SelectedObjects<'_>) -> Result<bool, Status> {
        // An object that does not match is never an error, whatever its namespace.
        let objects = self.objects.as_ref().map_err(Status::internal);
        let is_selected = objects.map(|selector| selects_object(selector, request));
        if matches!(is_selected, Ok(false)) {
            return Ok(false);
        }
        Ok(self.selects_namespace(request)? && is_selected?)
    }

    fn selects_namespace(&self, request: &SelectedObjects<'_>) -> Result<bool, Status> {
        let is_namespace = request.resource.needs.is_namespace;
        if request.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(Status::internal)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let is_written = matches!(
            request.operation,
            OperationType::Create | OperationType::Update
        );
        if is_namespace && request.subresource.is_empty() && is_written {
            // The stored Namespace does not have the new labels yet.
            return Ok(request
                .object
                .is_some_and(|object| selector.matches(&object.meta().labels())));
        }
        let found = request.reader.find("", "namespaces", "", request.namespace);
        let namespace = found.ok_or_else(|| {
            let resource = windlass_core::GroupResource::new("", "namespaces");
            Status::not_found(&resource, request.namespace)
        })?;
        Ok(selector.matches(&namespace.meta().labels()))
    }
}

/// The new or the old state must match. What has no metadata matches only the empty selector.
fn selects_object(selector: &Selector, request: &SelectedObjects<'_>) -> bool {
    let matches = |object: &Doc| {
        object.get("metadata").is_some() && selector.matches(&object.meta().labels())
    };
    selector.is_everything()
        || request.object.is_some_and(matches)
        || request.old.is_some_and(matches)
}

fn rules(list: &Doc) -> Vec<Rule> {
    list.items().iter().map(Rule::new).collect()
}

fn selector(doc: &Doc) -> Result<Selector, String> {
    if doc.is_null() {
        return Ok(Selector::everything());
    }
    let structured = doc.decode::<LabelSelector>();
    let structured = structured.map_err(|error| error.to_string())?;
    Selector::try_from(&structured).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
