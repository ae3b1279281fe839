//! What a pod demands of the pods around it: affinity, anti-affinity, and even spreading.

use windlass_core::{Doc, LabelLookup, LabelSelector, Selector, Str};

/// Pods that another pod wants to be near to, or away from.
#[derive(Debug)]
pub(super) struct PodTerm {
    /// The label of nodes that says what near means.
    pub(super) topology_key: String,
    selector: Selector,
    namespaces: Vec<Str>,
    /// Selects further namespaces by their labels.
    namespace_selector: Option<Selector>,
}

/// A [`PodTerm`] that is only a wish; negative for pods to stay away from.
#[derive(Debug)]
pub(super) struct PodWish {
    pub(super) weight: i64,
    pub(super) term: PodTerm,
}

/// The affinity and the anti-affinity of a pod.
#[derive(Debug, Default)]
pub(super) struct PodAffinity {
    pub(super) near: Vec<PodTerm>,
    pub(super) apart: Vec<PodTerm>,
    pub(super) wishes: Vec<PodWish>,
}

/// The labels of a pod, or of a node: an object of strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelsOf<'a>(pub(super) &'a Doc);

impl LabelLookup for LabelsOf<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }
}

/// The labels of namespaces, for terms that select namespaces by them.
pub(super) trait Namespaces {
    /// Whether the labels of a namespace match.
    fn matches(&self, namespace: &str, selector: &Selector) -> bool;
}

impl PodAffinity {
    pub(super) fn of(spec: &Doc) -> Self {
        let (near, apart) = (
            spec.at("/affinity/podAffinity"),
            spec.at("/affinity/podAntiAffinity"),
        );
        let required = |of: &Doc| -> Vec<PodTerm> {
            let terms = of.at("/requiredDuringSchedulingIgnoredDuringExecution");
            terms.items().iter().map(PodTerm::of).collect()
        };
        let mut wishes = Vec::new();
        for (of, sign) in [(near, 1), (apart, -1)] {
            let terms = of
                .at("/preferredDuringSchedulingIgnoredDuringExecution")
                .items();
            wishes.extend(terms.iter().map(|entry| PodWish {
                weight: sign * entry.at("/weight").as_i64().unwrap_or(0),
                term: PodTerm::of(entry.at("/podAffinityTerm")),
            }));
        }
        Self {
            near: required(near),
            apart: required(apart),
            wishes,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.apart.is_empty() && self.wishes.is_empty()
    }
}

impl PodTerm {
    fn of(term: &Doc) -> Self {
        let namespaces = term.at("/namespaces").items().iter();
        Self {
            topology_key: term.str_at("/topologyKey").to_owned(),
            selector: selector(term.get("labelSelector")),
            namespaces: namespaces.filter_map(Doc::shared_str).collect(),
            namespace_selector: term
                .get("namespaceSelector")
                .filter(|given| !given.is_null())
                .map(|given| selector(Some(given))),
        }
    }

    /// Whether the term of a pod in `home` means a pod in `namespace` with these labels.
    pub(super) fn matches(
        &self,
        home: &str,
        namespace: &str,
        labels: LabelsOf<'_>,
        known: &dyn Namespaces,
    ) -> bool {
        let is_named = self
            .namespaces
            .iter()
            .any(|name| name.as_str() == namespace);
        let is_home =
            self.namespaces.is_empty() && self.namespace_selector.is_none() && home == namespace;
        let is_selected = || match &self.namespace_selector {
            None => false,
            Some(selector) => selector.is_everything() || known.matches(namespace, selector),
        };
        (is_named || is_home || is_selected()) && self.selector.matches(&labels)
    }
}

/// How evenly pods shall be spread over the values of a label of nodes.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) topology_key: String,
    pub(super) max_skew: i64,
    pub(super) min_domains: Option<usize>,
    pub(super) is_required: bool,
    pub(super) honours_affinity: bool,
    pub(super) honours_taints: bool,
    selector: Selector,
    /// Labels of the pod itself that the counted pods share.
    match_label_keys: Vec<String>,
}

impl Spread {
    pub(super) fn all_of(spec: &Doc) -> Vec<Self> {
        let constraints = spec.at("/topologySpreadConstraints").items();
        constraints.iter().map(Self::of).collect()
    }

    fn of(constraint: &Doc) -> Self {
        let keys = constraint.at("/matchLabelKeys").items().iter();
        let domains = constraint.at("/minDomains").as_u64();
        Self {
            topology_key: constraint.str_at("/topologyKey").to_owned(),
            max_skew: constraint.at("/maxSkew").as_i64().unwrap_or(1),
            min_domains: domains.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
            is_required: constraint.str_at("/whenUnsatisfiable") != "ScheduleAnyway",
            honours_affinity: constraint.str_at("/nodeAffinityPolicy") != "Ignore",
            honours_taints: constraint.str_at("/nodeTaintsPolicy") == "Honor",
            selector: selector(constraint.get("labelSelector")),
            match_label_keys: keys
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect(),
        }
    }

    /// Whether a pod counts, for the pod whose constraint this is.
    pub(super) fn counts(&self, own: LabelsOf<'_>, other: LabelsOf<'_>) -> bool {
        let is_same = |key: &String| {
            own.get(key)
                .is_none_or(|value| other.get(key) == Some(value))
        };
        self.selector.matches(&other) && self.match_label_keys.iter().all(is_same)
    }
}

fn selector(given: Option<&Doc>) -> Selector {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Selector::nothing();
    };
    let read = given.decode::<LabelSelector>().ok();
    let compiled = read.and_then(|read| Selector::try_from(&read).ok());
    compiled.unwrap_or_else(Selector::nothing)
}
