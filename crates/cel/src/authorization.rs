//! Questions to an authorizer, which expressions build step by step:
//! `authorizer.group('apps').resource('deployments').namespace('a').check('create').allowed()`.
//!
//! A value only carries the question. The [`Authorizer`] that answers it belongs to the evaluation,
//! so that it may look at objects which do not outlive the request.

use std::fmt;

use crate::types::Opaque;

/// Somebody who decides about access.
pub trait Authorizer: fmt::Debug {
    /// The decision about a question.
    fn authorize(&self, question: &AccessQuestion) -> AccessDecision;
}

/// A question: may somebody do something?
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessQuestion {
    /// The namespace and name of the service account that the question is about; the user who sent
    /// the request if absent.
    pub service_account: Option<(String, String)>,
    /// The verb.
    pub verb: String,
    /// The path of a question that is not about a resource.
    pub path: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The name of the object; empty for all.
    pub name: String,
    /// The field selector as text.
    pub field_selector: String,
    /// The label selector as text.
    pub label_selector: String,
}

/// The decision of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// True if access is allowed.
    pub is_allowed: bool,
    /// The reason, for people.
    pub reason: String,
    /// The error of the authorizer.
    pub error: Option<String>,
}

/// A value of the authorization library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authorization {
    /// The variable `authorizer`, or the same for a service account.
    Authorizer(AccessQuestion),
    /// A question about a path.
    PathCheck(AccessQuestion),
    /// The group of a question about a resource.
    GroupCheck(AccessQuestion),
    /// A question about a resource.
    ResourceCheck(AccessQuestion),
    /// An answer.
    Decision(AccessDecision),
}

impl Authorization {
    pub(crate) fn ty(&self) -> Opaque {
        match self {
            Self::Authorizer(_) => Opaque::Authorizer,
            Self::PathCheck(_) => Opaque::PathCheck,
            Self::GroupCheck(_) => Opaque::GroupCheck,
            Self::ResourceCheck(_) => Opaque::ResourceCheck,
            Self::Decision(_) => Opaque::Decision,
        }
    }

    /// The complete question; `None` if this is not one yet.
    pub(crate) fn question(&self, verb: &str) -> Option<AccessQuestion> {
        match self {
            Self::PathCheck(question) | Self::ResourceCheck(question) => Some(AccessQuestion {
                verb: verb.to_owned(),
                ..question.clone()
            }),
            Self::Authorizer(_) | Self::GroupCheck(_) | Self::Decision(_) => None,
        }
    }
}
