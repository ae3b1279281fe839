//! Admission policies: ValidatingAdmissionPolicies and MutatingAdmissionPolicies, compiled, and
//! evaluated on documents.
//!
//! [`ValidatingPolicy`] and [`MutatingPolicy`] are compiled from the stored object. [`PolicyBinding`]
//! says for which requests and with which parameters a policy counts. Whoever asks finds the
//! policies, bindings and parameters that match a request, and makes a [`PolicyInput`] of each
//! combination.
//!
//! Deliberately absent: which policies match (see [`matching`](crate::matching)), where parameters
//! are found, and the answer to the client.

mod authorizer;
mod binding;
mod expression;
mod mutating;
mod param_access;
mod validating;

use windlass_cel::{AccessQuestion, Authorization, Authorizer, Bindings, Budget, Value};
use windlass_core::{Doc, Gvk};

pub use authorizer::RequestAuthorizer;
pub use binding::{ParamRef, ParamSelection, PolicyBinding, ValidationAction};
pub use mutating::{MutatingPolicy, Mutation, MutationError};
pub use param_access::{refuse_param_kind, refuse_param_ref};
pub use validating::{AuditAnnotation, Decision, DenialReason, ValidatingPolicy, Verdict};

/// The cost that all match conditions of a policy or webhook may have together.
pub const MATCH_CONDITIONS_COST_LIMIT: u64 = 2_500_000;

/// The treatment of errors in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The policy does not count.
    Ignore,
}

impl FailurePolicy {
    fn of(spec: &Doc) -> Self {
        match spec.str_at("/failurePolicy") {
            "Ignore" => Self::Ignore,
            _ => Self::Fail,
        }
    }
}

/// The kind of the parameters of a policy, if it has some.
fn param_kind(spec: &Doc) -> Option<Gvk> {
    let kind = spec.at("/paramKind");
    if kind.is_null() {
        return None;
    }
    // A policy whose paramKind cannot be read was refused when it was written.
    Gvk::parse(kind.str_at("/apiVersion"), kind.str_at("/kind")).ok()
}

/// The values that the expressions of a policy see.
#[derive(Clone, Copy)]
pub struct PolicyInput<'a> {
    /// The new state; absent for a DELETE.
    pub object: Option<&'a Doc>,
    /// The old state; absent for a CREATE and a CONNECT.
    pub old: Option<&'a Doc>,
    /// The parameters, if the policy has some and the binding names them.
    pub params: Option<&'a Doc>,
    /// The AdmissionRequest without its uid and its objects, about the resource that the policy
    /// matched.
    pub request: &'a Doc,
    /// The same about the requested resource, as match conditions see it.
    pub requested: &'a Doc,
    /// The Namespace of the object; absent at cluster scope and for a Namespace.
    pub namespace: Option<&'a Doc>,
    /// The question that `authorizer.requestResource` starts with.
    pub resource: &'a AccessQuestion,
    /// The authorizer.
    pub authorizer: &'a dyn Authorizer,
    /// Asked now and then: true if nobody waits for the answer any more.
    pub is_cancelled: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for PolicyInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyInput").finish_non_exhaustive()
    }
}

impl<'a> PolicyInput<'a> {
    /// The variables, without the authorizer.
    fn bindings(&self) -> Bindings<'a> {
        let value = |doc: Option<&Doc>| doc.map_or(Value::Null, Value::from);
        Bindings::new()
            .with("object", value(self.object))
            .with("oldObject", value(self.old))
            .with("params", value(self.params))
            .with("request", Value::from(self.request))
            .with("namespaceObject", value(self.namespace))
    }

    fn bindings_with_authorizer(&self) -> Bindings<'a> {
        let anybody = Authorization::Authorizer(AccessQuestion::default());
        let requested = Authorization::ResourceCheck(self.resource.clone());
        self.bindings()
            .with("authorizer", anybody.into())
            .with("authorizer.requestResource", requested.into())
            .with_authorizer(self.authorizer)
    }

    /// The variables of match conditions, which see no namespace.
    fn condition_bindings(&self) -> Bindings<'a> {
        self.bindings_with_authorizer()
            .with("request", Value::from(self.requested))
            .with("namespaceObject", Value::Null)
    }

    fn budget(&self, total: u64) -> Budget<'a> {
        Budget::new(total, windlass_cel::CALL_COST_LIMIT).with_cancellation(self.is_cancelled)
    }
}
