//! The authorizer as policies and match conditions see it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use windlass_cel::{AccessDecision, AccessQuestion, Authorizer};

use crate::attributes::Attributes;
use crate::authorizer::authorize;
use crate::objects::Objects;
use crate::user::User;

/// The authorizers of the server, for the expressions of one request. A question that comes again
/// is answered once.
pub struct RequestAuthorizer<'a> {
    user: &'a User,
    objects: &'a dyn Objects,
    known: RefCell<BTreeMap<AccessQuestion, AccessDecision>>,
}

impl<'a> RequestAuthorizer<'a> {
    /// The authorizer for the expressions about a request of a user.
    #[must_use]
    pub fn new(user: &'a User, objects: &'a dyn Objects) -> Self {
        Self {
            user,
            objects,
            known: RefCell::default(),
        }
    }

    fn decide(&self, question: &AccessQuestion) -> AccessDecision {
        let resource = Attributes::join(&question.resource, &question.subresource);
        let wanted = Attributes {
            verb: question.verb.clone(),
            group: question.group.clone(),
            resource,
            namespace: question.namespace.clone(),
            name: question.name.clone(),
            path: question.path.clone(),
            fields: Vec::new(),
        }
        .selecting(&question.field_selector);
        let account = question.service_account.as_ref();
        let account = account.map(|(namespace, name)| User::service_account(namespace, name));
        let decision = authorize(account.as_ref().unwrap_or(self.user), &wanted, self.objects);
        AccessDecision {
            is_allowed: decision.is_allowed,
            reason: decision.reason,
            error: None,
        }
    }
}

impl Authorizer for RequestAuthorizer<'_> {
    fn authorize(&self, question: &AccessQuestion) -> AccessDecision {
        if let Some(known) = self.known.borrow().get(question) {
            return known.clone();
        }
        let decision = self.decide(question);
        let mut known = self.known.borrow_mut();
        known.insert(question.clone(), decision.clone());
        decision
    }
}

impl fmt::Debug for RequestAuthorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAuthorizer").finish_non_exhaustive()
    }
}
