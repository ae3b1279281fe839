//! The rules in force, and the requests they were asked about.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_core::{Doc, doc};

use crate::request::{RequestFacts, is_write};
use crate::rule::{FaultAction, FaultRule};

/// Requests that are remembered; older ones are forgotten.
const SEEN_LIMIT: usize = 65_536;

/// Rules that a plan holds; a further one replaces the oldest.
const RULES_LIMIT: usize = 1_024;

/// A request as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The number of the request, from zero on.
    pub number: usize,
    /// The verb.
    pub verb: String,
    /// The resource with its group and subresource.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The user agent.
    pub agent: String,
    /// The user.
    pub user: String,
    /// The fault that it met.
    pub fault: Option<String>,
    /// The status code; nothing if there was no answer, or not yet.
    pub code: Option<u16>,
}

/// The decision about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The number of the request.
    pub number: usize,
    /// The fault that it meets.
    pub action: Option<FaultAction>,
}

/// The rules in force. Clones share them, and they can change while requests are served.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Each rule, and how many requests have fit it.
    rules: VecDeque<(FaultRule, usize)>,
    /// Requests so far.
    requests: usize,
    /// The newest requests; the first one has the number `requests - seen.len()`.
    seen: VecDeque<SeenRequest>,
}

impl SeenRequest {
    /// Returns true if the request may have changed something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        is_write(&self.verb)
    }

    /// The request as a document, for reports.
    #[must_use]
    pub fn describe(&self) -> Doc {
        doc!({
            "number": (number(self.number)), "verb": (&self.verb), "resource": (&self.resource),
            "namespace": (&self.namespace), "name": (&self.name), "agent": (&self.agent),
            "user": (&self.user), "code": (self.code.map_or(Doc::NULL, |code| i64::from(code).into())),
            "fault": (self.fault.as_ref().map_or(Doc::NULL, Doc::from))
        })
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl FaultPlan {
    /// A plan with some rules.
    #[must_use]
    pub fn new(rules: Vec<FaultRule>) -> Self {
        let plan = Self::default();
        for rule in rules {
            plan.add(rule);
        }
        plan
    }

    /// Adds a rule.
    pub fn add(&self, rule: FaultRule) {
        let mut state = self.state.lock();
        if state.rules.len() == RULES_LIMIT {
            state.rules.pop_front();
        }
        state.rules.push_back((rule, 0));
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.state.lock().rules.clear();
    }

    /// Decides about a request and remembers it. The first rule whose turn it is wins; the others
    /// count the request all the same.
    #[must_use]
    pub fn decide(&self, request: &RequestFacts<'_>) -> Decision {
        let mut state = self.state.lock();
        let mut action = None;
        for (rule, fitting) in &mut state.rules {
            if !rule.fits(request) {
                continue;
            }
            *fitting += 1;
            let is_due = *fitting >= rule.at && *fitting - rule.at < rule.times;
            if is_due && action.is_none() {
                action = Some(rule.action.clone());
            }
        }
        let number = state.requests;
        state.requests += 1;
        if state.seen.len() == SEEN_LIMIT {
            state.seen.pop_front();
        }
        state.seen.push_back(SeenRequest {
            number,
            verb: request.verb.to_owned(),
            resource: request.resource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            agent: request.agent.to_owned(),
            user: request.user.to_owned(),
            fault: action.as_ref().map(ToString::to_string),
            code: None,
        });
        Decision { number, action }
    }

    /// Notes the answer to a request, whether or not the client got it.
    pub fn answered(&self, number: usize, code: u16) {
        let mut state = self.state.lock();
        let first = state.requests - state.seen.len();
        let at = number.checked_sub(first);
        if let Some(seen) = at.and_then(|at| state.seen.get_mut(at)) {
            seen.code = Some(code);
        }
    }

    /// The requests so far, the newest ones if there were very many.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.state.lock().seen.iter().cloned().collect()
    }

    /// The rules and how many requests have fit each of them, as a document.
    #[must_use]
    pub fn describe(&self) -> Doc {
        let state = self.state.lock();
        let rules = state.rules.iter().map(
            |(rule, fitting)| doc!({ "rule": (rule.to_string()), "requests": (number(*fitting)) }),
        );
        let rules: Vec<Doc> = rules.collect();
        doc!({ "rules": rules, "requests": (number(state.requests)) })
    }
}
