//! The five conditions of a namespace that is being removed.

use std::collections::BTreeMap;

use windlass_core::{Condition, Doc, Gvr, Time, with_condition};

/// The conditions in their order, with what each says when all is well.
const FINE: [(&str, &str, &str); 5] = [
    (
        DISCOVERY,
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        PARSING,
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        CONTENT,
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (
        REMAINING,
        "ContentRemoved",
        "All content successfully removed",
    ),
    (
        FINALIZERS,
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";
const PARSING: &str = "NamespaceDeletionGroupVersionParsingFailure";
const CONTENT: &str = "NamespaceDeletionContentFailure";
const REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS: &str = "NamespaceFinalizersRemaining";

/// How many failures a condition tells of by name.
const FAILURES_LIMIT: usize = 50;

/// What went wrong in one step of a removal.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    discovery: Option<String>,
    /// What failed, as the failure of the step says it.
    discovery_failure: Option<String>,
    parsing: Option<String>,
    content: Vec<String>,
}

/// What is left after one step of a removal.
#[derive(Debug, Default)]
pub(super) struct Totals {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Totals {
    /// Counts what is left of one resource.
    pub(super) fn add(
        &mut self,
        resource: &Gvr,
        remaining: usize,
        finalizers: &BTreeMap<String, usize>,
    ) {
        if remaining == 0 {
            return;
        }
        let name = format!("{}.{}", resource.resource(), resource.group());
        *self.resources.entry(name).or_default() += remaining;
        for (finalizer, count) in finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += count;
        }
    }

    fn remaining(&self) -> Option<Condition> {
        let each = self.resources.iter();
        let each = each.map(|(name, count)| format!("{name} has {count} resource instances"));
        let message = sorted(each)?;
        let message = format!("Some resources are remaining: {message}");
        Some(Condition::new(
            REMAINING,
            true,
            "SomeResourcesRemain",
            &message,
        ))
    }

    fn held(&self) -> Option<Condition> {
        let each = self.finalizers.iter();
        let each = each.map(|(name, count)| format!("{name} in {count} resource instances"));
        let message = sorted(each)?;
        let message = format!("Some content in the namespace has finalizers remaining: {message}");
        Some(Condition::new(
            FINALIZERS,
            true,
            "SomeFinalizersRemain",
            &message,
        ))
    }
}

fn sorted(each: impl Iterator<Item = String>) -> Option<String> {
    let mut each: Vec<String> = each.collect();
    each.sort();
    (!each.is_empty()).then(|| each.join(", "))
}

impl Conditions {
    /// The server could not be asked what it serves.
    pub(super) fn discovery_failed(&mut self, error: String) {
        self.discovery_failure = Some(error.clone());
        self.discovery = Some(error);
    }

    /// The server could not tell about some groups.
    pub(super) fn groups_failed(&mut self, failed: &[(String, String)]) {
        let each = failed
            .iter()
            .map(|(group, error)| format!("{group}: {error}"));
        let each = sorted(each).unwrap_or_default();
        let error = format!("unable to retrieve the complete list of server APIs: {each}");
        let count = failed.len();
        self.discovery = Some(format!(
            "Discovery failed for some groups, {count} failing: {error}"
        ));
        self.discovery_failure = Some(error);
    }

    /// The name of a resource cannot be read.
    pub(super) fn unreadable(&mut self, error: String) {
        self.parsing = Some(error);
    }

    /// The objects of a resource could not be removed.
    pub(super) fn content_failed(&mut self, error: String) {
        self.content.push(error);
    }

    /// All that went wrong, in one line.
    pub(super) fn failures(&self) -> Option<String> {
        let all = self.discovery_failure.iter().chain(&self.parsing);
        let all: Vec<String> = all.chain(&self.content).cloned().collect();
        (!all.is_empty()).then(|| match all.as_slice() {
            [one] => one.clone(),
            _ => format!("[{}]", all.join(", ")),
        })
    }

    /// The namespace with all five conditions. Others stay as they are.
    pub(super) fn apply(&self, namespace: &Doc, totals: &Totals, now: Time) -> Doc {
        let troubles = [
            self.discovery
                .as_deref()
                .map(|message| Condition::new(DISCOVERY, true, "DiscoveryFailed", message)),
            self.parsing
                .as_deref()
                .map(|message| Condition::new(PARSING, true, "GroupVersionParsingFailed", message)),
            self.content_trouble(),
            totals.remaining(),
            totals.held(),
        ];
        let pairs = FINE.iter().zip(troubles);
        pairs.fold(namespace.clone(), |namespace, (fine, trouble)| {
            let (kind, reason, message) = fine;
            let fine = || Condition::new(kind, false, reason, message);
            with_condition(&namespace, &trouble.unwrap_or_else(fine), now)
        })
    }

    fn content_trouble(&self) -> Option<Condition> {
        let mut errors = self.content.clone();
        errors.sort();
        errors.truncate(FAILURES_LIMIT);
        let (count, errors) = (self.content.len(), sorted(errors.into_iter())?);
        let message = format!("Failed to delete all resource types, {count} remaining: {errors}");
        Some(Condition::new(
            CONTENT,
            true,
            "ContentDeletionFailed",
            &message,
        ))
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::{condition, doc};

    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn now() -> Time {
        NOW.parse().unwrap()
    }

    fn kinds(namespace: &Doc) -> Vec<&str> {
        let conditions = namespace.at("/status/conditions").items().iter();
        conditions.map(|it| it.str_at("/type")).collect()
    }

    fn message(namespace: &Doc, kind: &str) -> String {
        condition(namespace, kind).unwrap().message
    }

    #[test]
    fn all_five_are_there_in_order_when_all_is_well() {
        let conditions = Conditions::default();
        let namespace = conditions.apply(&doc!({}), &Totals::default(), now());
        let expected: Vec<&str> = FINE.iter().map(|fine| fine.0).collect();
        assert_eq!(kinds(&namespace), expected);
        for (kind, reason, text) in FINE {
            let found = condition(&namespace, kind).unwrap();
            assert_eq!((&*found.status, &*found.reason), ("False", reason));
            assert_eq!(found.message, text);
        }
        let again = conditions.apply(&namespace, &Totals::default(), Time::from_unix(9));
        assert_eq!(again, namespace);
    }

    #[test]
    fn unknown_conditions_and_the_order_stay() {
        let before = doc!({ "status": { "conditions": [
            { "type": "Mine", "status": "True" },
            { "type": CONTENT, "status": "True", "reason": "x", "message": "old",
              "lastTransitionTime": "2020-01-01T00:00:00Z" },
        ] } });
        let after = Conditions::default().apply(&before, &Totals::default(), now());
        assert_eq!(
            kinds(&after),
            ["Mine", CONTENT, DISCOVERY, PARSING, REMAINING, FINALIZERS]
        );
        let content = after.at("/status/conditions/1");
        assert_eq!(content.str_at("/status"), "False");
        assert_eq!(content.str_at("/lastTransitionTime"), NOW);
    }

    #[test]
    fn a_failure_overwrites_a_success_and_a_new_one_keeps_the_time() {
        let fine = Conditions::default().apply(&doc!({}), &Totals::default(), Time::from_unix(0));
        let mut failing = Conditions::default();
        failing.content_failed("b".to_owned());
        failing.content_failed("a".to_owned());
        let failed = failing.apply(&fine, &Totals::default(), now());
        assert_eq!(
            message(&failed, CONTENT),
            "Failed to delete all resource types, 2 remaining: a, b"
        );
        assert_eq!(
            failed.str_at("/status/conditions/2/lastTransitionTime"),
            NOW
        );
        let mut other = Conditions::default();
        other.content_failed("c".to_owned());
        let still = other.apply(&failed, &Totals::default(), Time::from_unix(9));
        assert_eq!(still.str_at("/status/conditions/2/lastTransitionTime"), NOW);
        assert_eq!(
            message(&still, CONTENT),
            "Failed to delete all resource types, 1 remaining: c"
        );
    }

    #[test]
    fn totals_are_sorted_and_the_core_group_has_no_name() {
        let mut totals = Totals::default();
        let held = BTreeMap::from([("b.io/y".to_owned(), 2), ("a.io/x".to_owned(), 1)]);
        totals.add(&Gvr::constant("", "v1", "pods"), 2, &held);
        totals.add(&Gvr::constant("apps", "v1", "deployments"), 1, &held);
        totals.add(&Gvr::constant("", "v1", "secrets"), 0, &held);
        let namespace = Conditions::default().apply(&doc!({}), &totals, now());
        assert_eq!(
            message(&namespace, REMAINING),
            "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances"
        );
        assert_eq!(
            message(&namespace, FINALIZERS),
            "Some content in the namespace has finalizers remaining: a.io/x in 2 resource instances, b.io/y in 4 resource instances"
        );
    }

    #[test]
    fn content_without_finalizers_is_told_alone() {
        let mut totals = Totals::default();
        totals.add(&Gvr::constant("", "v1", "pods"), 1, &BTreeMap::new());
        let namespace = Conditions::default().apply(&doc!({}), &totals, now());
        assert!(condition(&namespace, REMAINING).unwrap().is_true());
        assert!(!condition(&namespace, FINALIZERS).unwrap().is_true());
    }

    #[test]
    fn groups_that_failed_are_counted_and_named() {
        let mut conditions = Conditions::default();
        conditions.groups_failed(&[("b.io/v1".to_owned(), "down".to_owned())]);
        let namespace = conditions.apply(&doc!({}), &Totals::default(), now());
        assert_eq!(
            message(&namespace, DISCOVERY),
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: b.io/v1: down"
        );
        assert!(
            conditions
                .failures()
                .unwrap()
                .starts_with("unable to retrieve")
        );
    }
}
