//! Invocations: the combinations of policy, binding and parameters that a request calls for.

use std::sync::Arc;

use tokio::time::Instant;
use windlass_access::admission::policy::{
    FailurePolicy, PolicyBinding, PolicyInput, RequestAuthorizer,
};
use windlass_cel::AccessQuestion;
use windlass_core::{Doc, GroupResource, Object};
use windlass_rules::status::Status;

use super::params::{self, Params};
use super::{Bound, Policy};
use crate::extension::webhook::cel_request;
use crate::extension::{Review, Versioned, equivalents};
use crate::registry::Resource;
use crate::work;

/// A policy that a request calls for, with one set of parameters.
pub(super) struct Invocation<'p, P> {
    pub(super) policy: &'p P,
    pub(super) binding: &'p PolicyBinding,
    pub(super) params: Params,
    /// The version of the resource that the policy matched.
    pub(super) row: Arc<Resource>,
}

/// A policy or a binding that does not work.
#[derive(Debug)]
pub(super) struct ConfigError<'p> {
    pub(super) policy: &'p str,
    pub(super) failure: FailurePolicy,
    /// Absent if it is the policy that does not work.
    pub(super) binding: Option<&'p str>,
    pub(super) message: String,
}

/// An invocation, or the reason why there is none.
pub(super) type Planned<'p, P> = Result<Invocation<'p, P>, ConfigError<'p>>;

/// The invocations of all policies that match a request, in their order.
pub(super) fn plan<'p, P: Policy>(
    policies: &'p [Bound<P>],
    review: &Review<'_>,
) -> Vec<Planned<'p, P>> {
    let row = review.attributes.resource;
    let others = equivalents(review.surroundings.table, row);
    let mut planned = Vec::new();
    for bound in policies {
        plan_policy(bound, review, &others, &mut planned);
    }
    planned
}

fn plan_policy<'p, P: Policy>(
    bound: &'p Bound<P>,
    review: &Review<'_>,
    others: &[Arc<Resource>],
    planned: &mut Vec<Planned<'p, P>>,
) {
    let attributes = review.attributes;
    let targets = attributes.targets(others);
    let Some(at) = bound.matcher.resource(&targets) else {
        return;
    };
    let policy = bound.policy();
    let wrong = |binding, message: String| ConfigError {
        policy: policy.name(),
        failure: policy.failure(),
        binding,
        message,
    };
    match bound.matcher.selects(&review.selected()) {
        Ok(true) => {}
        Ok(false) => return,
        Err(status) => {
            let message = format!("failed to configure policy: {}", status.message());
            return planned.push(Err(wrong(None, message)));
        }
    }
    let kind = policy.param_kind();
    let param_row = match kind.map(|kind| params::row(review.surroundings.table, kind)) {
        None => None,
        Some(Ok(row)) => Some(row),
        Some(Err(error)) => {
            let message = format!("failed to configure policy: {error}");
            return planned.push(Err(wrong(None, message)));
        }
    };
    let row = match at {
        0 => attributes.resource,
        at => &others[at - 1],
    };
    for binding in &bound.bindings {
        if binding.matcher.resource(&targets).is_none() {
            continue;
        }
        let outcome = binding.matcher.selects(&review.selected());
        let outcome = outcome.map_err(|status| status.message().to_owned());
        let outcome = outcome.and_then(|is_selected| match is_selected {
            true => {
                let namespace = &attributes.namespace;
                let around = &review.surroundings;
                params::collect(around, param_row, binding.params.as_ref(), namespace)
            }
            false => Ok(Vec::new()),
        });
        match outcome {
            Ok(params) => planned.extend(params.into_iter().map(|params| {
                Ok(Invocation {
                    policy,
                    binding,
                    params,
                    row: Arc::clone(row),
                })
            })),
            Err(error) => {
                let message = format!("failed to configure binding: {error}");
                planned.push(Err(wrong(Some(&binding.name), message)));
            }
        }
    }
}

/// The Namespace of the object of a request, without the parts that policies do not see; `None` at
/// cluster scope, and for a Namespace.
pub(super) fn namespace_object(review: &Review<'_>) -> Result<Option<Doc>, Status> {
    let attributes = review.attributes;
    let name = attributes.namespace.as_str();
    if name.is_empty() || attributes.resource.needs.is_namespace {
        return Ok(None);
    }
    let found = review.surroundings.storage.find("", "namespaces", "", name);
    let namespace =
        found.ok_or_else(|| Status::not_found(&GroupResource::new("", "namespaces"), name))?;
    let metadata = namespace.at("/metadata").as_object().cloned();
    let metadata = metadata.unwrap_or_else(Object::empty);
    let hidden = ["managedFields", "ownerReferences"];
    let metadata = hidden.iter().fold(metadata, |it, key| it.without(key));
    let namespace = namespace.as_object().cloned().unwrap_or_else(Object::empty);
    let namespace = namespace.with("metadata", metadata.into());
    let namespace = ["apiVersion", "kind"]
        .iter()
        .fold(namespace, |it, key| it.without(key));
    Ok(Some(namespace.into()))
}

/// Returns true if nobody waits for the answer any more.
fn is_over(review: &Review<'_>) -> bool {
    work::is_cancelled() || Instant::now() >= review.surroundings.notes.deadline
}

/// Lets other requests have their turn after an evaluation, and ends one that took too long.
pub(super) async fn yield_and_check_deadline(review: &Review<'_>) -> Result<(), Status> {
    tokio::task::yield_now().await;
    match is_over(review) {
        true => Err(work::timed_out()),
        false => Ok(()),
    }
}

/// Makes the input of an invocation, and works with it.
pub(super) fn with_input<P, T>(
    invocation: &Invocation<'_, P>,
    review: &Review<'_>,
    versioned: &Versioned,
    namespace: Option<&Doc>,
    evaluate: impl FnOnce(&PolicyInput<'_>) -> T,
) -> T {
    let attributes = review.attributes;
    let request = cel_request(attributes, versioned);
    let as_requested = Versioned {
        row: Arc::clone(attributes.resource),
        ..versioned.clone()
    };
    let resource = AccessQuestion {
        group: attributes.resource.gvk.group().to_owned(),
        resource: attributes.resource.plural.to_string(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.namespace.clone(),
        name: attributes.name.clone(),
        ..AccessQuestion::default()
    };
    evaluate(&PolicyInput {
        object: versioned.object.as_ref(),
        old: versioned.old.as_ref(),
        params: invocation.params.as_ref(),
        request: &request,
        requested: &cel_request(attributes, &as_requested),
        namespace,
        resource: &resource,
        authorizer: &RequestAuthorizer::new(attributes.user, review.surroundings.storage),
        is_cancelled: &|| is_over(review),
    })
}

/// 403 about the object of a request, for a reason given as the end of the sentence.
pub(super) fn forbidden(review: &Review<'_>, why: &str) -> Status {
    let attributes = review.attributes;
    let generated = review.object.as_ref().map(|object| {
        let meta = object.meta();
        let names = [meta.name(), meta.generate_name()];
        names.into_iter().find(|name| !name.is_empty())
    });
    let name = match attributes.name.as_str() {
        "" => generated.flatten().unwrap_or("Unknown"),
        name => name,
    };
    Status::forbidden(&attributes.resource.group_resource(), name, why)
}
