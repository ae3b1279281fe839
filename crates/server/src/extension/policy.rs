//! Admission policies: ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings.
//!
//! All of them are compiled into one [`Policies`], policies and the bindings of each in the order of
//! their names; upstream's order is undefined. A policy without a binding has no effect, nor has a
//! binding without a policy. What a policy decides is in [`windlass_access::admission::policy`];
//! here is which of them are asked, and what the client is told.

mod invocation;
mod mutating;
mod params;
mod validating;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use windlass_access::admission::policy::{
    FailurePolicy, MutatingPolicy, PolicyBinding, ValidatingPolicy,
};
use windlass_access::matching::{Matcher, OperationType};
use windlass_core::{Doc, Gvk};
use windlass_schema::needs::AdmissionConfiguration;
use windlass_store::{Resource as Shelf, Snapshot};

use super::{Asked, Attributes, Compiled, Extension, Mutation, Review};
use crate::registry::Creation;
use mutating::PolicyPass;

const GROUP: &str = "admissionregistration.k8s.io";

/// All policies that are bound.
#[derive(Debug)]
pub(super) struct Policies {
    validating: Vec<Bound<ValidatingPolicy>>,
    mutating: Vec<Bound<MutatingPolicy>>,
}

/// A policy with its bindings, at least one.
#[derive(Debug)]
struct Bound<P> {
    source: Doc,
    /// Compiled when a request concerns it first.
    policy: OnceLock<P>,
    matcher: Matcher,
    bindings: Vec<PolicyBinding>,
}

/// The parts that both kinds of policies have.
trait Policy {
    fn compile(source: &Doc) -> Self;
    fn name(&self) -> &str;
    fn failure(&self) -> FailurePolicy;
    fn param_kind(&self) -> Option<&Gvk>;
}

impl Policy for ValidatingPolicy {
    fn compile(source: &Doc) -> Self {
        Self::new(source)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn failure(&self) -> FailurePolicy {
        self.failure
    }

    fn param_kind(&self) -> Option<&Gvk> {
        self.param_kind.as_ref()
    }
}

impl Policy for MutatingPolicy {
    fn compile(source: &Doc) -> Self {
        Self::new(source)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn failure(&self) -> FailurePolicy {
        self.failure
    }

    fn param_kind(&self) -> Option<&Gvk> {
        self.param_kind.as_ref()
    }
}

/// The policies of a store, compiled.
pub(super) fn compiled() -> Compiled<Policies, 4> {
    let resources = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    let resources = resources.map(|resource| Shelf::new(GROUP, resource));
    Compiled::new(
        resources,
        |[validating, for_validating, mutating, for_mutating]| {
            let all = Policies {
                validating: bound(validating, for_validating),
                mutating: bound(mutating, for_mutating),
            };
            (!all.validating.is_empty() || !all.mutating.is_empty()).then_some(all)
        },
    )
}

/// The policies that have bindings, in the order of their names.
fn bound<P>(policies: &Snapshot, bindings: &Snapshot) -> Vec<Bound<P>> {
    let mut by_policy: BTreeMap<String, Vec<PolicyBinding>> = BTreeMap::new();
    for entry in bindings.iter() {
        let binding = PolicyBinding::new(entry.doc());
        by_policy
            .entry(binding.policy.clone())
            .or_default()
            .push(binding);
    }
    let policies = policies.iter().map(|entry| entry.doc());
    let bound = policies.filter_map(|policy| {
        Some(Bound {
            bindings: by_policy.remove(policy.meta().name())?,
            matcher: Matcher::of_policy(policy.at("/spec/matchConstraints")),
            policy: OnceLock::new(),
            source: policy.clone(),
        })
    });
    bound.collect()
}

impl<P: Policy> Bound<P> {
    fn policy(&self) -> &P {
        self.policy.get_or_init(|| P::compile(&self.source))
    }
}

/// Returns true for requests that no policy sees: questions about users and rights, and the
/// policies themselves, so that nobody can be locked out of them.
fn is_exempt(request: &Attributes<'_>) -> bool {
    let needs = &request.resource.needs;
    matches!(needs.creation, Creation::Review(_))
        || needs.admission_configuration == Some(AdmissionConfiguration::Policies)
}

impl Extension for Policies {
    fn concerns(&self, request: &Attributes<'_>) -> bool {
        if is_exempt(request) {
            return false;
        }
        let target = request.target(request.resource);
        let validating = self.validating.iter().map(|bound| &bound.matcher);
        let mutating = self.mutating.iter().map(|bound| &bound.matcher);
        let mut all = validating.chain(mutating);
        all.any(|matcher| matcher.may_match(&target))
    }

    fn mutation(self: Arc<Self>) -> Box<dyn Mutation> {
        Box::new(PolicyPass::new(self))
    }

    fn validate<'a>(&'a self, review: &'a Review<'a>) -> Asked<'a, ()> {
        Box::pin(validating::validate(&self.validating, review))
    }
}

/// Returns true if mutating policies see an operation: a DELETE has nothing to change.
fn is_mutable(operation: OperationType) -> bool {
    operation != OperationType::Delete
}
