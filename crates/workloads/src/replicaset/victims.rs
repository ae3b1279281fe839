//! Which pods go when there are too many.

use std::collections::{HashMap, HashSet};

use windlass_cache::Obj;
use windlass_core::{Time, Uid};
use windlass_runtime::Context;

use super::{Engine, claim::Claimed};
use crate::owned;
use crate::{DeletionRank, is_pod_active};

impl Engine {
    /// The pods to delete, the first of the ranking.
    pub(super) fn victims(
        &self,
        cx: &Context,
        set: &Obj,
        claimed: &Claimed,
        count: usize,
    ) -> Vec<Obj> {
        let pods = claimed.active.iter().map(|replica| &replica.pod);
        if count >= claimed.active.len() {
            return pods.cloned().collect();
        }
        let (now, crowd) = (cx.env().now(), self.crowd(set));
        let ranked = pods.map(|pod| {
            let node = pod.doc().str_at("/spec/nodeName");
            let related = crowd.get(node).copied().unwrap_or(0);
            (DeletionRank::of(pod.doc(), related, now), pod)
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.note_ages(claimed, ranked[..count].iter().map(|(_, pod)| *pod), now);
        ranked.truncate(count);
        ranked.into_iter().map(|(_, pod)| pod.clone()).collect()
    }

    /// How many active pods of this set and of those with the same owner are on each node. A set
    /// without an owner has no such relatives, not even its own pods.
    fn crowd(&self, set: &Obj) -> HashMap<String, usize> {
        let Some(owner) = set.meta().controller() else {
            return HashMap::new();
        };
        let pods = self.pods.lister().snapshot();
        let mut seen: HashSet<Uid> = HashSet::new();
        let mut nodes: HashMap<String, usize> = HashMap::new();
        for set in owned::siblings(&self.sets.lister().snapshot(), &owner) {
            let Ok(selector) = (self.variant.selector)(set.doc()) else {
                continue;
            };
            let own = owned::children_of(&pods, set.doc());
            let matching = own.into_iter().filter(|it| selector.matches(&it.labels()));
            let orphans = owned::orphans(&pods, set.namespace(), &selector);
            for pod in matching.chain(orphans) {
                if is_pod_active(pod.doc()) && seen.insert(pod.uid()) {
                    let node = pod.doc().str_at("/spec/nodeName");
                    *nodes.entry(node.to_owned()).or_default() += 1;
                }
            }
        }
        nodes
    }

    /// Notes how the ages of ready pods that go compare with that of the youngest of all.
    fn note_ages<'a>(&self, claimed: &Claimed, victims: impl Iterator<Item = &'a Obj>, now: Time) {
        let ready = |pod: &Obj| crate::is_pod_ready(pod.doc());
        let age = |pod: &Obj| {
            let created = pod.meta().creation_timestamp();
            created.map_or(0.0, |created| now.since(created).as_secs_f64())
        };
        let all = claimed.active.iter();
        let ready_ones = all.filter(|replica| replica.readiness.is_ready());
        let ages = ready_ones.map(|replica| age(&replica.pod));
        let youngest = ages.fold(f64::INFINITY, f64::min);
        if youngest.is_finite() && youngest > 0.0 {
            for pod in victims.filter(|pod| ready(pod)) {
                self.metrics.deleted_at_age(age(pod) / youngest);
            }
        }
    }
}
