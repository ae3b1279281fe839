//! Positions: the requests of one run that a fault can meet in the next run.

use std::collections::BTreeMap;
use std::fmt;

use crate::plan::SeenRequest;
use crate::rule::{FaultAction, FaultRule};

/// One request of a run, named so that another run of the same program has it as well.
///
/// Programs with several threads send their requests in another order each time. So a position is
/// not a number in the whole run, but among the requests of one client with the same verb, resource
/// and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The user agent of the client.
    pub agent: String,
    /// The verb.
    pub verb: String,
    /// The resource with its group and subresource.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The number among the requests of that sort, from 1 on.
    pub at: usize,
}

impl Position {
    /// The positions of a run, in the order of the first occurrence.
    #[must_use]
    pub fn all<'a>(seen: impl IntoIterator<Item = &'a SeenRequest>) -> Vec<Self> {
        let mut counts = BTreeMap::new();
        seen.into_iter()
            .map(|request| {
                let mut position = Self {
                    agent: request.agent.clone(),
                    verb: request.verb.clone(),
                    resource: request.resource.clone(),
                    namespace: request.namespace.clone(),
                    at: 0,
                };
                let count = counts.entry(position.clone()).or_insert(0_usize);
                *count += 1;
                position.at = *count;
                position
            })
            .collect()
    }

    /// The rule that lets a fault meet this request, once.
    #[must_use]
    pub fn rule(&self, action: FaultAction) -> FaultRule {
        FaultRule {
            verb: self.verb.clone(),
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            agent: self.agent.clone(),
            at: self.at,
            times: 1,
            ..FaultRule::new(action)
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        write!(f, " #{}", self.at)
    }
}
