//! Compiled expressions, and groups of them that share a budget.

use windlass_cel::{
    AdmissionVariables, Bindings, Budget, ComposedValues, Composition, EvalError, Program, Value,
};
use windlass_core::Doc;

use super::{FailurePolicy, MATCH_CONDITIONS_COST_LIMIT, PolicyInput};

/// An expression, or the reason why it is none.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression whose type must be one of those, in the words of CEL.
    pub(super) fn compile(
        variables: AdmissionVariables,
        composition: &Composition,
        text: &str,
        wanted: &[&str],
    ) -> Self {
        let compiled = variables.environment(composition).compile(text);
        let program = compiled
            .map_err(|error| format!("compilation failed: {error}"))
            .and_then(|program| match program.result_type().mismatch(wanted) {
                Some(complaint) => Err(complaint),
                None => Ok(program),
            });
        Self {
            text: text.to_owned(),
            program,
        }
    }

    pub(super) fn compile_error(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }

    fn evaluate(
        &self,
        values: &ComposedValues<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Result<Value, String>, EvalError> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        match values.evaluate(program, budget) {
            Ok(value) => Ok(Ok(value)),
            Err(EvalError::Budget) => Err(EvalError::Budget),
            Err(error) => Ok(Err(format!(
                "expression '{}' resulted in error: {error}",
                self.text
            ))),
        }
    }
}

/// Evaluates expressions one after the other, each on its own, on the same variables. The error is
/// that of a budget that ran out.
pub(super) fn evaluate_all<'e>(
    expressions: impl IntoIterator<Item = &'e Expression>,
    composition: &Composition,
    bindings: &Bindings<'_>,
    budget: &mut Budget<'_>,
) -> Result<Vec<Result<Value, String>>, EvalError> {
    let values = ComposedValues::new(composition, bindings);
    expressions
        .into_iter()
        .map(|expression| expression.evaluate(&values, budget))
        .collect()
}

/// The composed variables of a policy.
pub(super) fn composition(variables: AdmissionVariables, spec: &Doc) -> Composition {
    let mut composition = Composition::default();
    for variable in spec.at("/variables").items() {
        let (name, expression) = (variable.str_at("/name"), variable.str_at("/expression"));
        // One that does not compile fails the expressions that ask for it.
        let environment = variables.environment(&composition);
        let _ = composition.add(&environment, name, expression);
    }
    composition
}

/// The match conditions of a policy.
#[derive(Debug)]
pub(super) struct MatchConditions(Vec<Expression>);

impl MatchConditions {
    pub(super) fn compile(
        variables: AdmissionVariables,
        composition: &Composition,
        spec: &Doc,
    ) -> Self {
        let conditions = spec.at("/matchConditions").items().iter();
        let compile = |condition: &Doc| {
            let text = condition.str_at("/expression");
            Expression::compile(variables, composition, text, &["bool"])
        };
        Self(conditions.map(compile).collect())
    }

    /// Returns true if all conditions hold. One that is false decides, whatever becomes of the
    /// others.
    ///
    /// # Errors
    /// When one cannot be evaluated, and failures count.
    pub(super) fn hold(
        &self,
        composition: &Composition,
        input: &PolicyInput<'_>,
        failure: FailurePolicy,
    ) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let mut budget = input.budget(MATCH_CONDITIONS_COST_LIMIT);
        let bindings = input.condition_bindings();
        let failed = match evaluate_all(&self.0, composition, &bindings, &mut budget) {
            Ok(values) => {
                let is_false =
                    |value: &Result<Value, String>| matches!(value, Ok(Value::Bool(false)));
                if values.iter().any(is_false) {
                    return Ok(false);
                }
                values.into_iter().filter_map(Result::err).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        match (failed.as_slice(), failure) {
            ([], _) => Ok(true),
            (_, FailurePolicy::Ignore) => Ok(false),
            ([one], FailurePolicy::Fail) => Err(one.clone()),
            (some, FailurePolicy::Fail) => Err(format!("[{}]", some.join(", "))),
        }
    }
}
