//! Mutating policies: one after the other, and some of them again.

use std::collections::HashSet;
use std::sync::Arc;

use windlass_access::admission::policy::{
    FailurePolicy, MutatingPolicy, Mutation as PolicyMutation, MutationError,
};
use windlass_atlas::Atlas;
use windlass_atlas::apply::{AtlasSchema, Merging};
use windlass_core::Doc;
use windlass_rules::field::Cause;
use windlass_rules::status::Status;

use super::invocation::{self, Invocation};
use super::{Policies, is_mutable};
use crate::extension::{Asked, Mutating, Mutation, Versioned};

/// An invocation as reinvocation knows it: policy, binding, and namespace and name of the
/// parameters.
type InvocationKey = (String, String, String, String);

/// One mutating pass over a request.
pub(super) struct PolicyPass {
    policies: Arc<Policies>,
    /// The object as the last round left it.
    last: Option<Doc>,
    /// Invocations that want to be made again after a later change.
    invoked: HashSet<InvocationKey>,
    /// Those of them after which there was a change.
    due: HashSet<InvocationKey>,
}

/// A policy that failed.
struct Failure {
    message: String,
    /// True if the policy could not be evaluated, false if it is configured wrongly.
    is_invalid: bool,
}

impl PolicyPass {
    pub(super) fn new(policies: Arc<Policies>) -> Self {
        Self {
            policies,
            last: None,
            invoked: HashSet::new(),
            due: HashSet::new(),
        }
    }

    fn changed(&mut self) {
        self.due.extend(self.invoked.drain());
    }

    async fn round(&mut self, draft: &mut Mutating<'_>) -> Result<(), Status> {
        if !is_mutable(draft.review.attributes.operation) {
            return Ok(());
        }
        let policies = Arc::clone(&self.policies);
        let planned = invocation::plan(&policies.mutating, &draft.review);
        if planned.is_empty() {
            return Ok(());
        }
        if draft.round > 0 && self.last != draft.review.object {
            self.changed();
        }
        let (mut failures, mut invocations) = (Vec::new(), Vec::new());
        for planned in planned {
            match planned {
                Ok(invocation) => invocations.push(invocation),
                Err(error) if error.failure == FailurePolicy::Fail => {
                    failures.push(Failure {
                        message: denial(error.policy, error.binding, &error.message),
                        is_invalid: false,
                    });
                }
                Err(_) => {}
            }
        }
        let namespace = invocation::namespace_object(&draft.review)?;
        let mut is_dirty = false;
        for invocation in &invocations {
            let mut run = Run {
                invocation,
                namespace: namespace.as_ref(),
                failures: &mut failures,
                is_dirty: &mut is_dirty,
            };
            run.invoke(self, draft).await?;
            invocation::yield_and_check_deadline(&draft.review).await?;
        }
        // Whatever was applied counts as a change, also if it made no difference.
        if is_dirty {
            self.changed();
            draft.reinvoke = true;
        }
        self.last = draft.review.object.clone();
        answer(draft, failures)
    }
}

impl Mutation for PolicyPass {
    fn run<'a>(&'a mut self, draft: &'a mut Mutating<'_>) -> Asked<'a, ()> {
        Box::pin(self.round(draft))
    }
}

/// One invocation on its way.
struct Run<'r, 'p> {
    invocation: &'r Invocation<'p, MutatingPolicy>,
    namespace: Option<&'r Doc>,
    failures: &'r mut Vec<Failure>,
    is_dirty: &'r mut bool,
}

impl Run<'_, '_> {
    async fn invoke(
        &mut self,
        pass: &mut PolicyPass,
        draft: &mut Mutating<'_>,
    ) -> Result<(), Status> {
        let invocation = self.invocation;
        let policy = invocation.policy;
        let versioned = Versioned::of(&draft.review, &invocation.row).await?;
        let matched = invocation::with_input(
            invocation,
            &draft.review,
            &versioned,
            self.namespace,
            |input| policy.matches(input),
        );
        match matched {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                self.failed(&error);
                return Ok(());
            }
        }
        let key = key_of(invocation);
        if draft.round > 0 && !pass.due.contains(&key) {
            return Ok(());
        }
        let before = draft.review.object.clone();
        for mutation in &policy.mutations {
            self.mutate(mutation, draft).await?;
        }
        if draft.review.object != before {
            pass.changed();
            draft.reinvoke = true;
        }
        if policy.is_reinvoked {
            pass.invoked.insert(key);
        }
        Ok(())
    }

    async fn mutate(
        &mut self,
        mutation: &PolicyMutation,
        draft: &mut Mutating<'_>,
    ) -> Result<(), Status> {
        let invocation = self.invocation;
        let policy = invocation.policy;
        let versioned = Versioned::of(&draft.review, &invocation.row).await?;
        if versioned.object.is_none() {
            return Ok(());
        }
        check_schema(&versioned)?;
        let merge = |whole: &Doc, partial: &Doc| overlay(&versioned, whole, partial);
        let mutated = invocation::with_input(
            invocation,
            &draft.review,
            &versioned,
            self.namespace,
            |input| policy.mutate(mutation, input, &merge),
        );
        let metrics = &draft.review.surroundings.metrics.policies;
        let binding = &invocation.binding.name;
        match mutated {
            Ok(object) => {
                versioned.put(&object, draft).await?;
                *self.is_dirty = true;
                metrics.mutated(&policy.name, binding, "", "allow");
            }
            Err(error) => {
                metrics.mutated(&policy.name, binding, &error.0, "deny");
                self.failed(&error);
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: &MutationError) {
        let policy = self.invocation.policy;
        if policy.failure == FailurePolicy::Fail {
            let binding = self.invocation.binding.name.as_str();
            self.failures.push(Failure {
                message: denial(&policy.name, Some(binding), &error.0),
                is_invalid: true,
            });
        }
    }
}

fn key_of(invocation: &Invocation<'_, MutatingPolicy>) -> InvocationKey {
    let params = invocation.params.as_ref().map(|params| {
        let meta = params.meta();
        (meta.namespace().to_owned(), meta.name().to_owned())
    });
    let (namespace, name) = params.unwrap_or_default();
    (
        invocation.policy.name.clone(),
        invocation.binding.name.clone(),
        namespace,
        name,
    )
}

/// 503 for a kind without a schema: nothing can be merged into it.
fn check_schema(versioned: &Versioned) -> Result<(), Status> {
    let kind = &versioned.kind;
    let is_known = Atlas::kind(kind).is_some() || versioned.row.custom_schema(kind).is_some();
    if is_known {
        return Ok(());
    }
    let api_version = kind.api_version();
    Err(Status::unavailable(format!(
        "Resource kind {api_version}, Kind={} not found. There can be a delay between when \
         CustomResourceDefinitions are created and when they are available.",
        kind.kind()
    )))
}

/// Merges a partial object into the whole one, by the schema of its kind.
fn overlay(versioned: &Versioned, whole: &Doc, partial: &Doc) -> Result<Doc, String> {
    match (
        versioned.row.custom_schema(&versioned.kind),
        Atlas::kind(&versioned.kind),
    ) {
        (Some(custom), _) => custom.overlay(whole, partial),
        (None, Some(kind)) => AtlasSchema::of(kind).overlay(whole, partial),
        (None, None) => Err("type converter must not be nil".to_owned()),
    }
}

fn denial(policy: &str, binding: Option<&str>, message: &str) -> String {
    match binding {
        Some(binding) => {
            format!("policy '{policy}' with binding '{binding}' denied request: {message}")
        }
        None => format!("policy {policy:?} denied request: {message}"),
    }
}

/// 403 with the message of the first failure; its reason is `Invalid` if a policy could not be
/// evaluated.
fn answer(draft: &Mutating<'_>, failures: Vec<Failure>) -> Result<(), Status> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let status = invocation::forbidden(&draft.review, "").with_message(&first.message);
    let status = match first.is_invalid {
        true => status.with_reason(403, "Invalid"),
        false => status,
    };
    let cause = |failure: Failure| Cause {
        reason: "",
        message: failure.message,
        field: String::new(),
    };
    Err(failures
        .into_iter()
        .map(cause)
        .fold(status, Status::with_cause))
}
