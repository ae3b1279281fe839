//! Memoization: the rules whose subjects a user is among. It spares comparing each group of a user
//! with each subject for every request.

use std::sync::Arc;

use parking_lot::Mutex;

use super::hash;
use super::schema::Schema;
use crate::request::Target;
use windlass_access::User;

/// Users that are remembered, each in the one slot of its name.
const SLOTS: usize = 256;
/// Users in more groups are not remembered: the memory of all slots is bounded.
const GROUPS_LIMIT: usize = 64;

/// The users of one configuration.
#[derive(Debug)]
pub(super) struct SubjectMemo(Vec<Mutex<Option<Arc<Candidates>>>>);

/// The rules that may be about requests of one user.
#[derive(Debug)]
pub(super) struct Candidates {
    name: String,
    groups: Vec<String>,
    /// Indices of schemas and of their rules, in order.
    rules: Vec<(usize, usize)>,
}

impl Default for SubjectMemo {
    fn default() -> Self {
        Self(std::iter::repeat_with(Mutex::default).take(SLOTS).collect())
    }
}

impl SubjectMemo {
    /// The candidates for a user; `None` for one who is not remembered.
    pub(super) fn candidates(
        &self,
        user: &User,
        schemas: &[Arc<Schema>],
    ) -> Option<Arc<Candidates>> {
        if user.groups.len() > GROUPS_LIMIT {
            return None;
        }
        let slot = self.0.get(hash("", &user.name) as usize % SLOTS)?;
        let known = slot.lock().clone();
        if let Some(known) = known.filter(|known| known.is_of(user)) {
            return Some(known);
        }
        let fresh = Arc::new(Candidates::new(user, schemas));
        *slot.lock() = Some(Arc::clone(&fresh));
        Some(fresh)
    }
}

impl Candidates {
    fn new(user: &User, schemas: &[Arc<Schema>]) -> Self {
        let mut rules = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            let about = schema.rules.iter().enumerate();
            let about = about.filter(|(_, rule)| rule.is_about(user));
            rules.extend(about.map(|(rule, _)| (at, rule)));
        }
        Self {
            name: user.name.clone(),
            groups: user.groups.clone(),
            rules,
        }
    }

    fn is_of(&self, user: &User) -> bool {
        self.name == user.name && self.groups == user.groups
    }

    /// The first schema that is about a request.
    pub(super) fn find<'a>(
        &self,
        schemas: &'a [Arc<Schema>],
        target: &Target,
    ) -> Option<&'a Arc<Schema>> {
        self.rules.iter().find_map(|(at, rule)| {
            let schema = schemas.get(*at)?;
            schema.rules.get(*rule)?.covers(target).then_some(schema)
        })
    }
}
