//! ValidatingAdmissionPolicies.

use windlass_cel::{AdmissionVariables, Composition, EvalError, OBJECT_COST_LIMIT, Value};
use windlass_core::{Doc, Gvk};

use super::expression::{Expression, MatchConditions, composition, evaluate_all};
use super::{FailurePolicy, PolicyInput, param_kind};
use crate::matching::Matcher;

/// The longest message that a messageExpression may make, in bytes.
const MESSAGE_BYTES_LIMIT: usize = 5 * 1024;

/// A compiled ValidatingAdmissionPolicy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    /// The name of the policy.
    pub name: String,
    /// The treatment of errors.
    pub failure: FailurePolicy,
    /// The requests it is about.
    pub matcher: Matcher,
    /// The kind of its parameters.
    pub param_kind: Option<Gvk>,
    composition: Composition,
    conditions: MatchConditions,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: DenialReason,
}

/// The reason of a refusal, which decides about its HTTP status code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialReason {
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 422.
    #[default]
    Invalid,
    /// 413.
    RequestEntityTooLarge,
}

impl DenialReason {
    fn of(validation: &Doc) -> Self {
        match validation.str_at("/reason") {
            "Unauthorized" => Self::Unauthorized,
            "Forbidden" => Self::Forbidden,
            "RequestEntityTooLarge" => Self::RequestEntityTooLarge,
            _ => Self::Invalid,
        }
    }

    /// The HTTP status code, and the reason in a `Status`.
    #[must_use]
    pub fn status(self) -> (u16, &'static str) {
        match self {
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden => (403, "Forbidden"),
            Self::Invalid => (422, "Invalid"),
            Self::RequestEntityTooLarge => (413, "RequestEntityTooLarge"),
        }
    }
}

/// The result of one validation, or of a policy that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The validation holds.
    Admit,
    /// The validation cannot be evaluated, and the policy ignores that.
    Ignored(String),
    /// The validation does not hold.
    Deny {
        /// The message for the client.
        message: String,
        /// The reason.
        reason: DenialReason,
        /// True if the validation could not be evaluated.
        is_error: bool,
    },
}

/// An annotation for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditAnnotation {
    /// A key and its value.
    Publish(String, String),
    /// The value cannot be evaluated, and the policy does not ignore that.
    Failed(String),
}

/// The verdict of a policy about one request with one set of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// One for each validation; none if a match condition is false.
    pub decisions: Vec<Decision>,
    /// The annotations for the audit log.
    pub annotations: Vec<AuditAnnotation>,
}

impl ValidatingPolicy {
    /// Compiles a policy. What cannot be compiled is reported when it would be evaluated.
    #[must_use]
    pub fn new(policy: &Doc) -> Self {
        let spec = policy.at("/spec");
        let param_kind = param_kind(spec);
        let messages = AdmissionVariables {
            has_params: param_kind.is_some(),
            ..AdmissionVariables::default()
        };
        let variables = AdmissionVariables {
            has_authorizer: true,
            ..messages
        };
        let composition = composition(variables, spec);
        let compile = |text: &str, wanted: &[&str]| {
            Expression::compile(variables, &composition, text, wanted)
        };
        let validation = |validation: &Doc| Validation {
            expression: compile(validation.str_at("/expression"), &["bool"]),
            message: validation.str_at("/message").to_owned(),
            message_expression: match validation.str_at("/messageExpression") {
                "" => None,
                text => Some(Expression::compile(
                    messages,
                    &composition,
                    text,
                    &["string"],
                )),
            },
            reason: DenialReason::of(validation),
        };
        let annotation = |annotation: &Doc| {
            let text = annotation.str_at("/valueExpression");
            let expression = compile(text, &["string", "null_type"]);
            (annotation.str_at("/key").to_owned(), expression)
        };
        let annotations = spec.at("/auditAnnotations").items().iter();
        Self {
            name: policy.meta().name().to_owned(),
            failure: FailurePolicy::of(spec),
            matcher: Matcher::of_policy(spec.at("/matchConstraints")),
            conditions: MatchConditions::compile(variables, &composition, spec),
            validations: spec
                .at("/validations")
                .items()
                .iter()
                .map(validation)
                .collect(),
            annotations: annotations.map(annotation).collect(),
            composition,
            param_kind,
        }
    }

    /// Evaluates the policy.
    #[must_use]
    pub fn evaluate(&self, input: &PolicyInput<'_>) -> Verdict {
        let outcome = self.conditions.hold(&self.composition, input, self.failure);
        let verdict = match outcome {
            Ok(false) => Ok(Verdict::default()),
            Ok(true) => self.evaluate_matching(input).map_err(|it| it.to_string()),
            Err(error) => Err(error),
        };
        verdict.unwrap_or_else(|error| Verdict {
            decisions: vec![self.failed(error)],
            annotations: Vec::new(),
        })
    }

    fn evaluate_matching(&self, input: &PolicyInput<'_>) -> Result<Verdict, EvalError> {
        let mut budget = input.budget(OBJECT_COST_LIMIT);
        let bindings = input.bindings_with_authorizer();
        let expressions = self.validations.iter().map(|it| &it.expression);
        let values = evaluate_all(expressions, &self.composition, &bindings, &mut budget)?;
        let expressions = self.validations.iter();
        let expressions = expressions.filter_map(|it| it.message_expression.as_ref());
        let bindings = input.bindings();
        let messages = evaluate_all(expressions, &self.composition, &bindings, &mut budget);
        let decisions = match messages {
            Ok(messages) => self.decide(values, messages.into_iter()),
            Err(error) => {
                let why = format!("failed messageExpression: {error}");
                let decide =
                    |value: Result<Value, String>| self.failed(value.err().unwrap_or(why.clone()));
                values.into_iter().map(decide).collect()
            }
        };
        Ok(Verdict {
            decisions,
            annotations: self.annotate(input)?,
        })
    }

    /// The decisions about the values of the validations. The messages are those of the validations
    /// that have an expression for it.
    fn decide(
        &self,
        values: Vec<Result<Value, String>>,
        mut messages: impl Iterator<Item = Result<Value, String>>,
    ) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(values.len());
        for (validation, value) in self.validations.iter().zip(values) {
            let message = match validation.message_expression {
                Some(_) => messages.next().and_then(Result::ok),
                None => None,
            };
            decisions.push(match value {
                Ok(Value::Bool(true)) => Decision::Admit,
                Ok(_) => Decision::Deny {
                    message: validation.denial(message.as_ref().and_then(Value::as_str)),
                    reason: validation.reason,
                    is_error: false,
                },
                Err(error) => self.failed(error),
            });
        }
        decisions
    }

    fn failed(&self, message: String) -> Decision {
        match self.failure {
            FailurePolicy::Ignore => Decision::Ignored(message),
            FailurePolicy::Fail => Decision::Deny {
                message,
                reason: DenialReason::Invalid,
                is_error: true,
            },
        }
    }

    fn annotate(&self, input: &PolicyInput<'_>) -> Result<Vec<AuditAnnotation>, EvalError> {
        let mut budget = input.budget(OBJECT_COST_LIMIT);
        let expressions = self.annotations.iter().map(|(_, expression)| expression);
        let bindings = input.bindings();
        let values = evaluate_all(expressions, &self.composition, &bindings, &mut budget)?;
        let keys = self.annotations.iter().map(|(key, _)| key);
        let annotation = |(key, value): (&String, Result<Value, String>)| match value {
            Ok(value) => {
                let text = value.as_str().unwrap_or_default().trim();
                (!text.is_empty()).then(|| AuditAnnotation::Publish(key.clone(), text.to_owned()))
            }
            Err(error) if self.failure == FailurePolicy::Fail => {
                Some(AuditAnnotation::Failed(error))
            }
            Err(_) => None,
        };
        Ok(keys.zip(values).filter_map(annotation).collect())
    }
}

impl Validation {
    /// The message of a validation that does not hold: that of its messageExpression if it is of
    /// use, else its message, else one made of the expression.
    fn denial(&self, evaluated: Option<&str>) -> String {
        let is_of_use = |text: &&str| {
            !text.is_empty() && text.len() <= MESSAGE_BYTES_LIMIT && !text.contains('\n')
        };
        let evaluated = evaluated.map(str::trim).filter(is_of_use);
        let fixed = Some(self.message.trim()).filter(|text| !text.is_empty());
        match evaluated.or(fixed) {
            Some(message) => message.to_owned(),
            None => format!("failed expression: {}", self.expression.text.trim()),
        }
    }
}
