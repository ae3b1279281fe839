//! Validating policies: all that match are evaluated, and the first denial is the answer.

use windlass_access::admission::policy::{
    AuditAnnotation, Decision, DenialReason, FailurePolicy, PolicyBinding, ValidatingPolicy,
    ValidationAction, Verdict,
};
use windlass_core::Doc;
use windlass_rules::field::Cause;
use windlass_rules::status::Status;

use super::Bound;
use super::invocation::{self, ConfigError, Invocation};
use crate::extension::{Review, Versioned};

/// The longest value of an audit annotation, in bytes. Longer ones are cut.
const ANNOTATION_BYTES_LIMIT: usize = 10 * 1024;
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A refusal of a request.
struct Denial {
    /// The policy, and the binding if it is about one.
    source: String,
    message: String,
    reason: DenialReason,
}

/// The result of all policies for one request.
#[derive(Default)]
struct Findings {
    denials: Vec<Denial>,
    /// Policy, key and value of the annotations that policies define.
    annotations: Vec<(String, String, String)>,
}

/// Refuses a request that a policy denies.
pub(super) async fn validate(
    policies: &[Bound<ValidatingPolicy>],
    review: &Review<'_>,
) -> Result<(), Status> {
    let planned = invocation::plan(policies, review);
    if planned.is_empty() {
        return Ok(());
    }
    let namespace = invocation::namespace_object(review)?;
    let mut findings = Findings::default();
    for planned in planned {
        match planned {
            Err(error) => findings.misconfigured(&error),
            Ok(invocation) => {
                let versioned = Versioned::of(review, &invocation.row).await?;
                let verdict = invocation::with_input(
                    &invocation,
                    review,
                    &versioned,
                    namespace.as_ref(),
                    |input| invocation.policy.evaluate(input),
                );
                findings.take(&invocation, review, verdict);
            }
        }
        invocation::yield_and_check_deadline(review).await?;
    }
    findings.publish(review);
    findings.answer(review)
}

impl Findings {
    fn misconfigured(&mut self, error: &ConfigError<'_>) {
        if error.failure == FailurePolicy::Fail {
            self.deny(
                (error.policy, error.binding),
                error.message.clone(),
                DenialReason::Invalid,
            );
        }
    }

    fn deny(
        &mut self,
        (policy, binding): (&str, Option<&str>),
        message: String,
        reason: DenialReason,
    ) {
        let source = match binding {
            Some(binding) => {
                format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}'")
            }
            None => format!("ValidatingAdmissionPolicy '{policy}'"),
        };
        self.denials.push(Denial {
            source,
            message,
            reason,
        });
    }

    fn take(
        &mut self,
        invocation: &Invocation<'_, ValidatingPolicy>,
        review: &Review<'_>,
        verdict: Verdict,
    ) {
        let (policy, binding) = (&invocation.policy.name, invocation.binding);
        let metrics = &review.surroundings.metrics.policies;
        for (index, decision) in verdict.decisions.into_iter().enumerate() {
            match decision {
                Decision::Admit => {}
                Decision::Ignored(error) => {
                    metrics.validated(policy, &binding.name, &error, "allow");
                }
                Decision::Deny {
                    message,
                    reason,
                    is_error,
                } => {
                    let error = if is_error { message.as_str() } else { "" };
                    for action in &binding.actions {
                        let enforcement = action.as_str().to_ascii_lowercase();
                        metrics.validated(policy, &binding.name, error, &enforcement);
                        self.act(
                            *action,
                            (policy, binding),
                            (index, &message, reason),
                            review,
                        );
                    }
                }
            }
        }
        for annotation in verdict.annotations {
            match annotation {
                AuditAnnotation::Publish(key, value) => self.annotate(policy, &key, &value),
                AuditAnnotation::Failed(error) => {
                    metrics.validated(policy, &binding.name, &error, "deny");
                    let source = (policy.as_str(), Some(binding.name.as_str()));
                    self.deny(source, error, DenialReason::Invalid);
                }
            }
        }
    }

    /// Takes the consequence of a validation that does not hold.
    fn act(
        &mut self,
        action: ValidationAction,
        (policy, binding): (&str, &PolicyBinding),
        (index, message, reason): (usize, &str, DenialReason),
        review: &Review<'_>,
    ) {
        let notes = review.surroundings.notes;
        match action {
            ValidationAction::Deny => {
                self.deny((policy, Some(&binding.name)), message.to_owned(), reason);
            }
            ValidationAction::Warn => notes.warn(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{}': \
                 {message}",
                binding.name
            )),
            ValidationAction::Audit => {
                let value = failure_annotation(policy, binding, index, message);
                notes.annotate(FAILURE_ANNOTATION.to_owned(), value);
            }
        }
    }

    fn annotate(&mut self, policy: &str, key: &str, value: &str) {
        let mut end = value.len().min(ANNOTATION_BYTES_LIMIT);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let entry = (policy.to_owned(), key.to_owned(), value[..end].to_owned());
        if !self.annotations.contains(&entry) {
            self.annotations.push(entry);
        }
    }

    /// Gives the audit log the annotations that policies define. Several values of one key are
    /// joined.
    fn publish(&mut self, review: &Review<'_>) {
        let mut left = std::mem::take(&mut self.annotations);
        while let Some((policy, key, _)) = left.first().cloned() {
            let (same, others): (Vec<_>, Vec<_>) = left
                .into_iter()
                .partition(|(of, known, _)| *of == policy && *known == key);
            let values: Vec<String> = same.into_iter().map(|(_, _, value)| value).collect();
            let notes = review.surroundings.notes;
            notes.annotate(format!("{policy}/{key}"), values.join(", "));
            left = others;
        }
    }

    fn answer(self, review: &Review<'_>) -> Result<(), Status> {
        let Some(first) = self.denials.into_iter().next() else {
            return Ok(());
        };
        let message = format!("{} denied request: {}", first.source, first.message);
        let (code, reason) = first.reason.status();
        let cause = Cause {
            reason: "",
            message: message.clone(),
            field: String::new(),
        };
        let status = invocation::forbidden(review, &message).with_reason(code, reason);
        Err(status.with_cause(cause))
    }
}

/// The value of the annotation about a failed validation: JSON with the keys in upstream's order.
fn failure_annotation(
    policy: &str,
    binding: &PolicyBinding,
    index: usize,
    message: &str,
) -> String {
    let text = |text: &str| Doc::from(text).to_string();
    let actions: Vec<String> = binding.actions.iter().map(|it| text(it.as_str())).collect();
    let value = format!(
        "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{index},\
         \"validationActions\":[{}]}}]",
        text(message),
        text(policy),
        text(&binding.name),
        actions.join(",")
    );
    // As Go writes JSON.
    value
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
