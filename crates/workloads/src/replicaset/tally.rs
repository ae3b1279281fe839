//! What a sync wants to know of each pod, read once.
//!
//! Pods of one set have many parts in common, and common parts are one allocation: what was read
//! from the last pod's labels or status mostly holds for the next one.

use std::time::Duration;

use windlass_core::{Doc, MicroTime, Object, Selector, Time};
use windlass_runtime::ResourceKind;

/// Reads pods, remembering the last answers.
pub(super) struct Reader<'a> {
    set: &'a Doc,
    kind: &'a ResourceKind,
    selector: &'a Selector,
    /// The labels of the template, all of which a pod may have.
    template: Option<&'a Object>,
    labels: Option<(Option<Doc>, Labelling)>,
    status: Option<(Option<Doc>, Standing)>,
    references: Option<(Option<Doc>, bool)>,
}

/// What a set needs to know of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) labelling: Labelling,
    pub(super) standing: Standing,
    pub(super) is_deleting: bool,
    /// Whether the pod means this set by all that it says of it, not by the UID alone.
    pub(super) is_own: bool,
}

/// What the labels of a pod come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Labelling {
    /// Whether the selector matches.
    pub(super) is_match: bool,
    /// Whether every label of the template is there.
    pub(super) is_full: bool,
}

/// What the status of a pod comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) is_terminal: bool,
    pub(super) readiness: Readiness,
}

/// Whether a pod is ready, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    NotReady,
    /// Without a time it has been ready for no known time.
    Ready(Option<Time>),
}

impl<'a> Reader<'a> {
    pub(super) fn new(set: &'a Doc, kind: &'a ResourceKind, selector: &'a Selector) -> Self {
        Self {
            set,
            kind,
            selector,
            template: set.at("/spec/template/metadata/labels").as_object(),
            labels: None,
            status: None,
            references: None,
        }
    }

    pub(super) fn look(&mut self, pod: &Doc) -> Look {
        let metadata = pod.get("metadata").and_then(Doc::as_object);
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        Look {
            labelling: self.labelling(pod, field("labels")),
            standing: self.standing(pod.get("status")),
            is_deleting: field("deletionTimestamp").is_some_and(|time| !time.is_null()),
            is_own: self.is_own(pod, field("ownerReferences")),
        }
    }

    fn is_own(&mut self, pod: &Doc, references: Option<&Doc>) -> bool {
        if let Some((known, answer)) = &self.references
            && known.as_ref() == references
        {
            return *answer;
        }
        let (set, gvk) = (self.set.meta(), self.kind.gvk());
        let answer = pod.meta().controller().is_some_and(|owner| {
            owner.uid == set.uid()
                && owner.name == set.name()
                && owner.kind == gvk.kind()
                && owner.group() == gvk.group()
        });
        self.references = Some((references.cloned(), answer));
        answer
    }

    fn labelling(&mut self, pod: &Doc, labels: Option<&Doc>) -> Labelling {
        if let Some((known, answer)) = &self.labels
            && known.as_ref() == labels
        {
            return *answer;
        }
        let mut wanted = self.template.into_iter().flat_map(Object::iter);
        let value = |key: &str| labels.and_then(|labels| labels.get(key));
        let answer = Labelling {
            is_match: self.selector.matches(&pod.meta().labels()),
            is_full: wanted.all(|(key, wanted)| value(key) == Some(wanted)),
        };
        self.labels = Some((labels.cloned(), answer));
        answer
    }

    fn standing(&mut self, status: Option<&Doc>) -> Standing {
        if let Some((known, answer)) = &self.status
            && known.as_ref() == status
        {
            return *answer;
        }
        let answer = status.map_or(Standing::UNKNOWN, Standing::of);
        self.status = Some((status.cloned(), answer));
        answer
    }
}

impl Standing {
    const UNKNOWN: Self = Self {
        is_terminal: false,
        readiness: Readiness::NotReady,
    };

    fn of(status: &Doc) -> Self {
        let phase = status.get("phase").and_then(Doc::as_str).unwrap_or("");
        Self {
            is_terminal: matches!(phase, "Succeeded" | "Failed"),
            readiness: Readiness::of(status),
        }
    }
}

impl Readiness {
    fn of(status: &Doc) -> Self {
        let conditions = status.get("conditions").map_or(&[][..], Doc::items);
        let text = |doc: &'_ Doc, key: &str| doc.get(key).and_then(Doc::as_str).map(str::to_owned);
        let ready = conditions
            .iter()
            .find(|doc| doc.get("type").is_some_and(|it| it == "Ready"));
        match ready {
            Some(ready) if ready.get("status").is_some_and(|it| it == "True") => {
                let since = text(ready, "lastTransitionTime");
                Self::Ready(since.and_then(|since| since.parse().ok()))
            }
            _ => Self::NotReady,
        }
    }

    pub(super) fn is_ready(self) -> bool {
        self != Self::NotReady
    }

    /// When the pod counts as available; `None` if that cannot be said.
    pub(super) fn available_at(self, min_ready: Duration) -> Option<MicroTime> {
        match self {
            Self::Ready(Some(since)) => Some(MicroTime::from(since) + min_ready),
            Self::Ready(None) | Self::NotReady => None,
        }
    }
}

/// How many pods there are of each sort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) replicas: usize,
    pub(super) fully_labeled: usize,
    pub(super) ready: usize,
    pub(super) available: usize,
    pub(super) terminating: usize,
    /// When the next pod that is ready will be available.
    next_available: Option<MicroTime>,
}

impl Counts {
    pub(super) fn with_terminating(terminating: usize) -> Self {
        Self {
            terminating,
            ..Self::default()
        }
    }

    pub(super) fn add(
        &mut self,
        readiness: Readiness,
        is_fully_labeled: bool,
        min_ready: Duration,
        now: MicroTime,
    ) {
        self.replicas += 1;
        self.fully_labeled += usize::from(is_fully_labeled);
        if !readiness.is_ready() {
            return;
        }
        self.ready += 1;
        let at = readiness.available_at(min_ready);
        if min_ready.is_zero() || at.is_some_and(|at| at <= now) {
            self.available += 1;
        } else if let Some(at) = at {
            self.next_available = Some(self.next_available.map_or(at, |first| first.min(at)));
        }
    }

    /// In how much time a pod that is ready now may have become available; `None` if there is no
    /// such pod. `counted_at` is when the pods were counted.
    pub(super) fn next_check(
        &self,
        min_ready: Duration,
        counted_at: MicroTime,
        now: MicroTime,
    ) -> Option<Duration> {
        if min_ready.is_zero() || self.ready == self.available {
            return None;
        }
        let next = self.next_available.filter(|at| *at > counted_at);
        Some(next.map_or(min_ready, |at| at.since(now)))
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;
    use crate::owned::apps_kind;

    fn at(seconds: f64) -> MicroTime {
        #[expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]
        MicroTime::from_unix_micros((seconds * 1e6) as i64)
    }

    fn ready_since(seconds: i64) -> Readiness {
        Readiness::Ready(Some(Time::from_unix(seconds)))
    }

    #[test]
    fn availability_is_counted_and_the_next_one_foreseen() {
        let min_ready = Duration::from_secs(5);
        let now = at(104.3);
        let mut counts = Counts::default();
        for readiness in [
            Readiness::NotReady,
            ready_since(104),
            ready_since(102),
            ready_since(100),
        ] {
            counts.add(readiness, true, min_ready, now);
        }
        assert_eq!((counts.replicas, counts.ready, counts.available), (4, 3, 0));
        let delay = counts.next_check(min_ready, now, now).unwrap();
        assert_eq!(
            delay,
            Duration::from_millis(700),
            "the earliest pod decides"
        );
    }

    #[test]
    fn the_boundary_of_availability_is_inclusive() {
        let hour = Duration::from_secs(3600);
        for (since, available) in [(10_000, 0), (10_000 - 3599, 0), (10_000 - 3600, 1)] {
            let mut counts = Counts::default();
            counts.add(ready_since(since), true, hour, at(10_000.0));
            assert_eq!(
                (counts.ready, counts.available),
                (1, available),
                "since {since}"
            );
        }
    }

    #[test]
    fn the_next_check_is_due_when_it_can_change_something() {
        let half_minute = Duration::from_secs(30);
        let check = |readiness: Readiness, min_ready: Duration, counted: f64, now: f64| {
            let mut counts = Counts::default();
            counts.add(readiness, true, min_ready, at(counted));
            counts.next_check(min_ready, at(counted), at(now))
        };
        let seconds = |delay: Option<Duration>| delay.map(|delay| delay.as_secs());
        assert_eq!(check(Readiness::NotReady, half_minute, 100.0, 100.0), None);
        assert_eq!(check(ready_since(80), Duration::ZERO, 100.0, 100.0), None);
        assert_eq!(check(ready_since(10), half_minute, 100.0, 100.0), None);
        // A pod that does not say since when is looked at again after the whole time.
        let untimed = check(Readiness::Ready(None), half_minute, 100.0, 100.0);
        assert_eq!(seconds(untimed), Some(30));
        assert_eq!(
            seconds(check(ready_since(80), half_minute, 100.0, 100.0)),
            Some(10)
        );
        // What has passed since the count is not waited for again, and never less than nothing.
        assert_eq!(
            seconds(check(ready_since(80), half_minute, 100.0, 102.0)),
            Some(8)
        );
        assert_eq!(
            seconds(check(ready_since(80), half_minute, 100.0, 111.0)),
            Some(0)
        );
    }

    #[test]
    fn answers_are_remembered_only_for_equal_parts() {
        let selector: Selector = "app=web".parse().unwrap();
        let set = doc!({
            "spec": { "template": { "metadata": { "labels": { "app": "web", "tier": "x" } } } }
        });
        let pod = |app: &str, tier: &str, phase: &str| {
            doc!({
                "metadata": { "labels": { "app": app, "tier": tier } }, "status": { "phase": phase }
            })
        };
        let kind = apps_kind("ReplicaSet", "replicasets");
        let mut reader = Reader::new(&set, &kind, &selector);
        for (app, tier, phase) in [
            ("web", "x", "Running"),
            ("web", "x", "Failed"),
            ("db", "x", "Failed"),
            ("web", "y", ""),
        ] {
            let look = reader.look(&pod(app, tier, phase));
            assert_eq!(look.labelling.is_match, app == "web");
            assert_eq!(look.labelling.is_full, app == "web" && tier == "x");
            assert_eq!(look.standing.is_terminal, phase == "Failed");
            assert!(!look.is_deleting);
        }
        let bare = reader.look(&doc!({ "metadata": { "deletionTimestamp": "x" } }));
        assert!(bare.is_deleting && !bare.labelling.is_match && !bare.labelling.is_full);
        assert_eq!(bare.standing, Standing::UNKNOWN);
    }
}
