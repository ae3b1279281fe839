//! The conditions of a Deployment, which carry a time of update beside that of transition.

use windlass_core::{Doc, Time, doc};

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// A list of conditions in the order in which they were set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions(Vec<Doc>);

/// What a condition is to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct News<'a> {
    pub(super) kind: &'static str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl Conditions {
    pub(super) fn of(object: &Doc) -> Self {
        Self(object.at("/status/conditions").items().to_vec())
    }

    pub(super) fn get(&self, kind: &str) -> Option<&Doc> {
        self.0.iter().find(|doc| is_of(doc, kind))
    }

    /// The reason of a condition; empty if there is none.
    pub(super) fn reason(&self, kind: &str) -> &str {
        self.get(kind).map_or("", |doc| doc.str_at("/reason"))
    }

    pub(super) fn remove(&mut self, kind: &str) {
        self.0.retain(|doc| !is_of(doc, kind));
    }

    /// Sets a condition. One of the same status and reason stays as it is; otherwise it moves to
    /// the end, and its time of transition moves with its status.
    pub(super) fn set(&mut self, news: News<'_>, now: Time) {
        let now = now.to_string();
        self.set_with_times(news, &now, &now);
    }

    /// Sets a condition even if there is one like it, so that its time of update moves.
    pub(super) fn renew(&mut self, news: News<'_>, now: Time) {
        let now = now.to_string();
        let before = self
            .get(news.kind)
            .filter(|it| it.str_at("/status") == news.status);
        let since = before
            .map_or(&*now, |it| it.str_at("/lastTransitionTime"))
            .to_owned();
        self.remove(news.kind);
        self.set_with_times(news, &now, &since);
    }

    pub(super) fn set_with_times(&mut self, news: News<'_>, updated: &str, since: &str) {
        let before = self.get(news.kind);
        let is_same = |field: &str, value: &str| before.is_some_and(|it| it.str_at(field) == value);
        let has_status = is_same("/status", news.status);
        if has_status && is_same("/reason", news.reason) {
            return;
        }
        let kept = before.filter(|_| has_status);
        let since = kept.map_or(since, |it| it.str_at("/lastTransitionTime"));
        let condition = doc!({
            "type": (news.kind), "status": (news.status), "reason": (news.reason),
            "message": (news.message), "lastUpdateTime": updated, "lastTransitionTime": since
        });
        self.remove(news.kind);
        self.0.push(condition);
    }

    /// The list, if there is anything in it.
    pub(super) fn into_doc(self) -> Option<Doc> {
        (!self.0.is_empty()).then(|| self.0.into())
    }
}

fn is_of(doc: &Doc, kind: &str) -> bool {
    doc.get("type").is_some_and(|it| it == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(kind: &'static str, status: &'static str, reason: &'static str) -> News<'static> {
        let message = "for people";
        News {
            kind,
            status,
            reason,
            message,
        }
    }

    #[test]
    fn a_condition_moves_only_when_it_says_something_new() {
        let (first, later) = (Time::from_unix(1_000), Time::from_unix(2_000));
        let mut conditions = Conditions(Vec::new());
        conditions.set(news(AVAILABLE, "True", "A"), first);
        conditions.set(news(PROGRESSING, "True", "A"), first);
        let before = conditions.clone();
        conditions.set(news(AVAILABLE, "True", "A"), later);
        assert_eq!(conditions, before);

        conditions.set(news(AVAILABLE, "True", "B"), later);
        let moved = conditions.0.last().unwrap();
        assert_eq!(moved.str_at("/type"), AVAILABLE);
        assert_eq!(moved.str_at("/lastUpdateTime"), later.to_string());
        assert_eq!(moved.str_at("/lastTransitionTime"), first.to_string());

        conditions.set(news(AVAILABLE, "False", "B"), later);
        let changed = conditions.get(AVAILABLE).unwrap();
        assert_eq!(changed.str_at("/lastTransitionTime"), later.to_string());
        conditions.remove(AVAILABLE);
        assert!(conditions.get(AVAILABLE).is_none() && conditions.get(PROGRESSING).is_some());
    }

    #[test]
    fn a_renewed_condition_keeps_its_transition_and_moves_its_update() {
        let (first, later) = (Time::from_unix(1_000), Time::from_unix(2_000));
        let mut conditions = Conditions(Vec::new());
        conditions.set(news(PROGRESSING, "True", "A"), first);
        conditions.renew(news(PROGRESSING, "True", "A"), later);
        let renewed = conditions.get(PROGRESSING).unwrap();
        assert_eq!(renewed.str_at("/lastUpdateTime"), later.to_string());
        assert_eq!(renewed.str_at("/lastTransitionTime"), first.to_string());
        conditions.renew(news(PROGRESSING, "False", "A"), later);
        let turned = conditions.get(PROGRESSING).unwrap();
        assert_eq!(turned.str_at("/lastTransitionTime"), later.to_string());
    }
}
