//! MutatingAdmissionPolicies.

use std::sync::Arc;

use windlass_cel::{AdmissionVariables, Composition, Message, OBJECT_COST_LIMIT, Value};
use windlass_core::{Doc, Gvk, JsonPatch, Object, PatchErrorKind};

use super::expression::{Expression, MatchConditions, composition, evaluate_all};
use super::{FailurePolicy, PolicyInput, param_kind};
use crate::matching::Matcher;

/// A compiled MutatingAdmissionPolicy.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// The name of the policy.
    pub name: String,
    /// The treatment of errors.
    pub failure: FailurePolicy,
    /// The requests it is about.
    pub matcher: Matcher,
    /// The kind of its parameters.
    pub param_kind: Option<Gvk>,
    /// True if it runs again after a later change of the object.
    pub is_reinvoked: bool,
    /// The mutations, in their order.
    pub mutations: Vec<Mutation>,
    composition: Composition,
    conditions: MatchConditions,
}

/// One mutation of a policy.
#[derive(Debug)]
pub struct Mutation {
    sort: MutationSort,
    expression: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MutationSort {
    ApplyConfiguration,
    JsonPatch,
}

/// The reason why a mutation fails; the failure policy decides about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MutationError(pub String);

impl MutatingPolicy {
    /// Compiles a policy. What cannot be compiled is reported when it would be evaluated.
    #[must_use]
    pub fn new(policy: &Doc) -> Self {
        let spec = policy.at("/spec");
        let param_kind = param_kind(spec);
        let variables = AdmissionVariables {
            has_params: param_kind.is_some(),
            has_authorizer: true,
            has_patch_types: false,
        };
        let composition = composition(variables, spec);
        let mutations = spec.at("/mutations").items().iter();
        let mutations = mutations.map(|it| Mutation::compile(variables, &composition, it));
        Self {
            name: policy.meta().name().to_owned(),
            failure: FailurePolicy::of(spec),
            matcher: Matcher::of_policy(spec.at("/matchConstraints")),
            is_reinvoked: spec.str_at("/reinvocationPolicy") == "IfNeeded",
            mutations: mutations.collect(),
            conditions: MatchConditions::compile(variables, &composition, spec),
            composition,
            param_kind,
        }
    }

    /// Returns true if all match conditions hold.
    ///
    /// # Errors
    /// When one cannot be evaluated, and failures count.
    pub fn matches(&self, input: &PolicyInput<'_>) -> Result<bool, MutationError> {
        let outcome = self.conditions.hold(&self.composition, input, self.failure);
        outcome.map_err(MutationError)
    }

    /// The object of the input after a mutation, not yet read as its kind. `merge` merges a partial
    /// object into the whole one by the schema of its kind.
    pub fn mutate(
        &self,
        mutation: &Mutation,
        input: &PolicyInput<'_>,
        merge: &dyn Fn(&Doc, &Doc) -> Result<Doc, String>,
    ) -> Result<Doc, MutationError> {
        let object = input.object.unwrap_or(&Doc::NULL);
        if let Some(error) = mutation.expression.compile_error() {
            return Err(MutationError(error.to_owned()));
        }
        let mut budget = input.budget(OBJECT_COST_LIMIT);
        let bindings = input.bindings_with_authorizer();
        let expression = [&mutation.expression];
        let values = evaluate_all(expression, &self.composition, &bindings, &mut budget);
        let mut values = values.map_err(|error| MutationError(error.to_string()))?;
        let value = values
            .pop()
            .unwrap_or(Ok(Value::Null))
            .map_err(MutationError)?;
        match mutation.sort {
            MutationSort::ApplyConfiguration => applied(object, &value, merge),
            MutationSort::JsonPatch => patched(object, &value),
        }
        .map_err(MutationError)
    }
}

impl Mutation {
    fn compile(variables: AdmissionVariables, composition: &Composition, mutation: &Doc) -> Self {
        let variables = AdmissionVariables {
            has_patch_types: true,
            ..variables
        };
        let (sort, text, wanted) = match mutation.str_at("/patchType") {
            "JSONPatch" => (
                MutationSort::JsonPatch,
                mutation.str_at("/jsonPatch/expression"),
                "list(JSONPatch)",
            ),
            _ => (
                MutationSort::ApplyConfiguration,
                mutation.str_at("/applyConfiguration/expression"),
                "Object",
            ),
        };
        Self {
            sort,
            expression: Expression::compile(variables, composition, text, &[wanted]),
        }
    }
}

fn applied(
    object: &Doc,
    value: &Value,
    merge: &dyn Fn(&Doc, &Doc) -> Result<Doc, String>,
) -> Result<Doc, String> {
    let Value::Message(message) = value else {
        let ty = value.ty();
        return Err(format!(
            "unsupported return type from ApplyConfiguration expression: {ty}"
        ));
    };
    check_names(message)?;
    let partial = value.to_doc().ok_or("invalid return type: *types.Err")?;
    let partial = partial.as_object().cloned().unwrap_or_else(Object::empty);
    let partial = ["apiVersion", "kind"].into_iter().fold(partial, |it, key| {
        it.with(key, object.get(key).cloned().unwrap_or(Doc::NULL))
    });
    merge(object, &partial.into()).map_err(|error| format!("error applying patch: {error}"))
}

fn check_names(message: &Arc<Message>) -> Result<(), String> {
    match message.misnamed().as_slice() {
        [] => Ok(()),
        some => Err(format!("type mismatch: {}", some.join("\n"))),
    }
}

fn patched(object: &Doc, value: &Value) -> Result<Doc, String> {
    let Value::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::with_capacity(list.len());
    for item in list.iter() {
        let Value::Message(operation) = &item else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
                    .to_owned(),
            );
        };
        operations.push(operation_doc(operation)?);
    }
    let failed = |error: windlass_core::PatchError| format!("JSON Patch: {error}");
    let patch = JsonPatch::from_doc(&operations.into()).map_err(failed)?;
    match patch.apply(object) {
        Ok(object) => Ok(object),
        // A patch whose test does not hold is not applied, and that is not an error.
        Err(error) if matches!(error.kind, PatchErrorKind::TestFailed(_)) => Ok(object.clone()),
        Err(error) => Err(failed(error)),
    }
}

/// One operation of a JSON patch.
fn operation_doc(operation: &Message) -> Result<Doc, String> {
    let text = |field: &str| operation.field(field).and_then(Value::as_str).unwrap_or("");
    let mut doc = Object::empty()
        .with("op", text("op").into())
        .with("path", text("path").into());
    if !text("from").is_empty() {
        doc = doc.with("from", text("from").into());
    }
    if let Some(value) = operation.field("value") {
        if let Value::Message(message) = value {
            check_names(message)?;
        }
        let value = value.to_doc().ok_or_else(|| {
            let ty = value.ty();
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {ty}"
            )
        })?;
        doc = doc.with("value", value);
    }
    Ok(doc.into())
}
