//! PodDisruptionBudgets, as far as preemption respects them.

use windlass_cache::Lister;
use windlass_core::{Doc, LabelSelector, Selector};

use super::Victim;

/// The budgets of a cluster at one moment.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Budgets(Vec<Budget>);

#[derive(Debug)]
struct Budget {
    namespace: String,
    selector: Selector,
    /// `status.disruptionsAllowed`.
    allowed: i64,
    /// `status.disruptedPods`: pods by name that the API server has already counted.
    disrupted: Doc,
}

impl Budgets {
    /// Reads all budgets from the cache. One that selects nothing, or everything by an empty
    /// selector, protects nothing, as in kube-scheduler.
    pub(super) fn of(lister: &Lister) -> Self {
        let mut all = lister.list(&Selector::everything());
        all.sort_by_key(windlass_cache::Obj::key);
        let budgets = all.iter().filter_map(|budget| {
            let budget = budget.doc();
            let selector = budget.at("/spec/selector").decode::<LabelSelector>().ok()?;
            let selector = Selector::try_from(&selector).ok()?;
            (!selector.is_everything()).then(|| Budget {
                namespace: budget.meta().namespace().to_owned(),
                selector,
                allowed: budget
                    .at("/status/disruptionsAllowed")
                    .as_i64()
                    .unwrap_or(0),
                disrupted: budget.at("/status/disruptedPods").clone(),
            })
        });
        Self(budgets.collect())
    }

    /// Parts victims into those whose eviction would violate a budget and the others, both in
    /// their order. Each victim uses up what its budgets allow.
    pub(super) fn split(&self, victims: Vec<Victim>) -> (Vec<Victim>, Vec<Victim>) {
        let mut allowed: Vec<i64> = self.0.iter().map(|budget| budget.allowed).collect();
        victims.into_iter().partition(|victim| {
            let (meta, mut is_violating) = (victim.pod.meta(), false);
            if meta.labels().is_empty() {
                return false;
            }
            for (budget, allowed) in self.0.iter().zip(&mut allowed) {
                let is_meant = budget.namespace == meta.namespace()
                    && budget.selector.matches(&meta.labels())
                    && budget.disrupted.get(meta.name()).is_none();
                if is_meant {
                    *allowed -= 1;
                    is_violating |= *allowed < 0;
                }
            }
            is_violating
        })
    }
}
