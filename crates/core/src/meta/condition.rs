//! Status conditions.

use crate::{Doc, Object, Time};

/// One entry of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type, such as `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason, in one word.
    pub reason: String,
    /// The message, for a person.
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// A condition without a time; [`with_condition`] fills it in.
    #[must_use]
    pub fn new(kind: &str, status: bool, reason: &str, message: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: None,
        }
    }

    /// Returns true if the status is `True`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    fn from_doc(doc: &Doc) -> Self {
        let text = |key: &str| doc.get(key).and_then(Doc::as_str).unwrap_or("").to_owned();
        Self {
            kind: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            last_transition_time: text("lastTransitionTime").parse().ok(),
        }
    }
}

/// The condition of one type, if the object has it.
#[must_use]
pub fn condition(object: &Doc, kind: &str) -> Option<Condition> {
    let mut conditions = object.at("/status/conditions").items().iter();
    conditions
        .find(|doc| is_of(doc, kind))
        .map(Condition::from_doc)
}

/// The object with a condition set. The transition time moves only when the status changes, and
/// fields of the entry that are not known here stay.
#[must_use]
pub fn with_condition(object: &Doc, condition: &Condition, now: Time) -> Doc {
    let mut entries = object.at("/status/conditions").items().to_vec();
    let position = entries.iter().position(|doc| is_of(doc, &condition.kind));
    let before = position.map_or(Doc::NULL, |at| entries[at].clone());
    let is_same_status = before
        .get("status")
        .is_some_and(|status| *status == *condition.status);
    let kept = before
        .get("lastTransitionTime")
        .filter(|_| is_same_status)
        .cloned();
    let since = condition.last_transition_time.unwrap_or(now);
    let entry = [
        ("type", Doc::from(&condition.kind)),
        ("status", Doc::from(&condition.status)),
        ("reason", Doc::from(&condition.reason)),
        ("message", Doc::from(&condition.message)),
        (
            "lastTransitionTime",
            kept.unwrap_or_else(|| Doc::from(since.to_string())),
        ),
    ]
    .into_iter()
    .fold(
        before.as_object().cloned().unwrap_or_else(Object::empty),
        |entry, (key, value)| entry.with(key, value),
    );
    match position {
        Some(at) => entries[at] = entry.into(),
        None => entries.push(entry.into()),
    }
    object
        .with("/status/conditions", entries)
        .unwrap_or_else(|_| object.clone())
}

fn is_of(doc: &Doc, kind: &str) -> bool {
    doc.get("type").is_some_and(|found| found == kind)
}
