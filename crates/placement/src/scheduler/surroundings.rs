//! Whether a pod fits on a node by what runs elsewhere: spreading, affinity and anti-affinity.
//!
//! Pods on a node that others cannot tell apart are counted together, so that a look around costs
//! a step per node and template, not one per pod.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use windlass_core::Doc;

use super::{
    evaluate::SCORE_MAX,
    nodes::{NodeInfo, Nodes, Placed, PodGroup},
    pod_terms::{LabelsOf, Namespaces, PodTerm, Spread},
    reasons::{Filter, Refused},
    taints::Toleration,
};

/// How much the scores count.
const SPREAD_WEIGHT: i64 = 2;
const AFFINITY_WEIGHT: i64 = 2;
/// How much it counts that a pod elsewhere demands this one near.
const DEMAND_WEIGHT: i64 = 1;

/// Pods, or weights, by the label of their node and its value.
#[derive(Debug, Default)]
struct Counts<'a> {
    /// The labels, none twice. There are a few at most.
    keys: Vec<&'a str>,
    counts: HashMap<(&'a str, &'a str), i64, foldhash::fast::RandomState>,
}

impl<'a> Counts<'a> {
    fn add(&mut self, node: &'a Doc, key: &'a str, by: i64) {
        let Some(value) = node.meta().label(key) else {
            return;
        };
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        *self.counts.entry((key, value)).or_default() += by;
    }

    fn get(&self, node: &Doc, key: &str) -> i64 {
        let value = node.meta().label(key);
        let count = value.and_then(|value| self.counts.get(&(key, value)));
        count.copied().unwrap_or(0)
    }

    /// What there is for any label of a node.
    fn sum(&self, node: &Doc) -> i64 {
        self.keys.iter().map(|key| self.get(node, key)).sum()
    }

    fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// What a pod sees around it.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pod: &'a Placed,
    spread: Vec<Domains<'a>>,
    /// Pods that match all the terms of affinity.
    near: Counts<'a>,
    /// Pods that match a term of anti-affinity, by term.
    apart: Vec<Counts<'a>>,
    /// Pods elsewhere that do not want this pod near.
    unwanted: Counts<'a>,
    /// Whether the pod itself matches all its terms of affinity, and so may be the first.
    may_be_first: bool,
    wishes: Counts<'a>,
}

/// How many pods there are in each domain of a constraint.
#[derive(Debug)]
struct Domains<'a> {
    constraint: &'a Spread,
    counts: BTreeMap<&'a str, i64>,
    /// Whether the pod itself counts.
    counts_itself: bool,
}

impl<'a> Surroundings<'a> {
    /// Looks around; `None` if there is nothing that matters.
    pub(super) fn look(
        pod: &'a Placed,
        nodes: &'a Nodes,
        namespaces: &dyn Namespaces,
    ) -> Option<Self> {
        if !pod.view.looks_around() && !nodes.has_affinity() {
            return None;
        }
        let mut seen = Self::new(pod, namespaces);
        for (_, info, node) in nodes.iter() {
            seen.count_spread(info, node);
            for group in &info.groups {
                seen.count_affinity(group, node, namespaces);
            }
        }
        Some(seen)
    }

    fn new(pod: &'a Placed, namespaces: &dyn Namespaces) -> Self {
        let (view, own) = (&pod.view, LabelsOf(&pod.labels));
        let domains = |constraint: &'a Spread| Domains {
            constraint,
            counts: BTreeMap::new(),
            counts_itself: constraint.counts(own, own),
        };
        let home = pod.namespace.as_str();
        let matches = |term: &PodTerm| term.matches(home, home, own, namespaces);
        Self {
            pod,
            spread: view.spread.iter().map(domains).collect(),
            near: Counts::default(),
            apart: view
                .affinity
                .apart
                .iter()
                .map(|_| Counts::default())
                .collect(),
            unwanted: Counts::default(),
            may_be_first: view.affinity.near.iter().all(matches),
            wishes: Counts::default(),
        }
    }

    fn count_spread(&mut self, info: &'a NodeInfo, node: &'a Doc) {
        let view = &self.pod.view;
        let labels = node.meta().labels();
        let has_all = |is_required: bool| {
            let mut same = view
                .spread
                .iter()
                .filter(|one| one.is_required == is_required);
            same.all(|one| labels.value(&one.topology_key).is_some())
        };
        let has_all = (has_all(true), has_all(false));
        for domains in &mut self.spread {
            let constraint = domains.constraint;
            let is_known = if constraint.is_required {
                has_all.0
            } else {
                has_all.1
            };
            let is_open = (!constraint.honours_affinity || view.demand.matches(node))
                && (!constraint.honours_taints
                    || Toleration::admit(&view.tolerations, &info.taints));
            let Some(value) = labels
                .value(&constraint.topology_key)
                .filter(|_| is_known && is_open)
            else {
                continue;
            };
            let own = LabelsOf(&self.pod.labels);
            let counted = info.groups.iter().filter(|group| {
                !group.is_deleting
                    && group.namespace == self.pod.namespace
                    && constraint.counts(own, LabelsOf(&group.labels))
            });
            let count: i64 = counted.map(|group| group.count).sum();
            *domains.counts.entry(value).or_default() += count;
        }
    }

    fn count_affinity(&mut self, group: &'a PodGroup, node: &'a Doc, namespaces: &dyn Namespaces) {
        let (pod, own) = (self.pod, &self.pod.view.affinity);
        let means = |term: &PodTerm| {
            let labels = LabelsOf(&group.labels);
            term.matches(&pod.namespace, &group.namespace, labels, namespaces)
        };
        if !own.near.is_empty() && own.near.iter().all(means) {
            for term in &own.near {
                self.near.add(node, &term.topology_key, group.count);
            }
        }
        for (term, counts) in own.apart.iter().zip(&mut self.apart) {
            if means(term) {
                counts.add(node, &term.topology_key, group.count);
            }
        }
        for wish in own.wishes.iter().filter(|wish| means(&wish.term)) {
            let weight = wish.weight * group.count;
            self.wishes.add(node, &wish.term.topology_key, weight);
        }
        self.count_theirs(group, node, namespaces);
    }

    /// What the pods elsewhere say about this one.
    fn count_theirs(&mut self, group: &'a PodGroup, node: &'a Doc, namespaces: &dyn Namespaces) {
        let (pod, theirs) = (self.pod, &group.view.affinity);
        if theirs.is_empty() {
            return;
        }
        let means = |term: &PodTerm| {
            let labels = LabelsOf(&pod.labels);
            term.matches(&group.namespace, &pod.namespace, labels, namespaces)
        };
        for term in theirs.apart.iter().filter(|term| means(term)) {
            self.unwanted.add(node, &term.topology_key, group.count);
        }
        for term in theirs.near.iter().filter(|term| means(term)) {
            let weight = DEMAND_WEIGHT * group.count;
            self.wishes.add(node, &term.topology_key, weight);
        }
        for wish in theirs.wishes.iter().filter(|wish| means(&wish.term)) {
            let weight = wish.weight * group.count;
            self.wishes.add(node, &wish.term.topology_key, weight);
        }
    }

    /// The first reason that keeps the pod off a node.
    pub(super) fn refuse(&self, node: &Doc) -> Option<Refused> {
        self.refuse_uneven(node)
            .or_else(|| self.refuse_company(node))
    }

    fn refuse_uneven(&self, node: &Doc) -> Option<Refused> {
        let labels = node.meta().labels();
        let required = self
            .spread
            .iter()
            .filter(|domains| domains.constraint.is_required);
        for domains in required {
            let constraint = domains.constraint;
            let Some(value) = labels.value(&constraint.topology_key) else {
                return Some(Refused::unresolvable(
                    Filter::PodTopologySpread,
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                ));
            };
            let here = domains.counts.get(value).copied().unwrap_or(0);
            let skew = here + i64::from(domains.counts_itself) - domains.least();
            if skew > constraint.max_skew {
                return Some(Refused::new(
                    Filter::PodTopologySpread,
                    "node(s) didn't match pod topology spread constraints",
                ));
            }
        }
        None
    }

    fn refuse_company(&self, node: &Doc) -> Option<Refused> {
        let affinity = &self.pod.view.affinity;
        if !self.is_near(node) {
            return Some(Refused::unresolvable(
                Filter::InterPodAffinity,
                "node(s) didn't match pod affinity rules",
            ));
        }
        let mut apart = affinity.apart.iter().zip(&self.apart);
        if apart.any(|(term, counts)| counts.get(node, &term.topology_key) > 0) {
            return Some(Refused::new(
                Filter::InterPodAffinity,
                "node(s) didn't match pod anti-affinity rules",
            ));
        }
        (self.unwanted.sum(node) > 0).then(|| {
            Refused::new(
                Filter::InterPodAffinity,
                "node(s) didn't satisfy existing pods anti-affinity rules",
            )
        })
    }

    fn is_near(&self, node: &Doc) -> bool {
        let (labels, near) = (node.meta().labels(), &self.pod.view.affinity.near);
        let mut keys = near.iter().map(|term| term.topology_key.as_str());
        if self.near.is_empty() && self.may_be_first {
            return keys.all(|key| labels.value(key).is_some());
        }
        keys.all(|key| self.near.get(node, key) > 0)
    }

    /// The weighted scores of nodes, in their order.
    pub(super) fn scores(&self, fitting: &[&Doc]) -> Vec<i64> {
        let (company, evenness) = (self.company_scores(fitting), self.evenness_scores(fitting));
        let both = company.into_iter().zip(evenness);
        both.map(|(company, evenness)| AFFINITY_WEIGHT * company + SPREAD_WEIGHT * evenness)
            .collect()
    }

    fn company_scores(&self, fitting: &[&Doc]) -> Vec<i64> {
        let raw: Vec<i64> = fitting.iter().map(|node| self.wishes.sum(node)).collect();
        let (min, max) = (
            raw.iter().copied().min().unwrap_or(0),
            raw.iter().copied().max().unwrap_or(0),
        );
        let scale = |score: i64| {
            if max == min {
                0
            } else {
                SCORE_MAX * (score - min) / (max - min)
            }
        };
        raw.into_iter().map(scale).collect()
    }

    fn evenness_scores(&self, fitting: &[&Doc]) -> Vec<i64> {
        let wanted: Vec<&Domains<'_>> = self
            .spread
            .iter()
            .filter(|domains| !domains.constraint.is_required)
            .collect();
        if wanted.is_empty() {
            return vec![0; fitting.len()];
        }
        let raw: Vec<Option<i64>> = fitting.iter().map(|node| crowding(&wanted, node)).collect();
        let known = || raw.iter().flatten().copied();
        let (min, max) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        let scale = |score: Option<i64>| match score {
            None => 0,
            Some(_) if max == 0 => SCORE_MAX,
            Some(score) => SCORE_MAX * (max + min - score) / max,
        };
        raw.into_iter().map(scale).collect()
    }
}

/// How crowded the domains of a node are; `None` if it lacks one of the labels.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a score of a few thousand"
)]
fn crowding(wanted: &[&Domains<'_>], node: &Doc) -> Option<i64> {
    let labels = node.meta().labels();
    let parts = wanted.iter().map(|domains| {
        let value = labels.value(&domains.constraint.topology_key)?;
        let count = domains.counts.get(value).copied().unwrap_or(0);
        let weight = ((domains.counts.len() + 2) as f64).ln();
        Some(count as f64 * weight + (domains.constraint.max_skew - 1) as f64)
    });
    let sum: Option<f64> = parts.sum();
    sum.map(|sum| sum.round() as i64)
}

impl Domains<'_> {
    /// How many pods the emptiest domain has.
    fn least(&self) -> i64 {
        let wanted = self.constraint.min_domains.unwrap_or(1);
        if self.counts.len() < wanted {
            return 0;
        }
        self.counts.values().copied().min().unwrap_or(0)
    }
}
