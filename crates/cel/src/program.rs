//! Programs: expressions ready to be evaluated.

use std::fmt;

use crate::authorization::Authorizer;
use crate::check::check;
use crate::cost::{CostEstimate, estimate};
use crate::environment::Environment;
use crate::error::{CompileError, EvalError};
use crate::eval::{self, LazyFields, Surroundings};
use crate::plan::Plan;
use crate::syntax::parse;
use crate::types::Type;
use crate::value::Value;

/// What one evaluation may cost, as upstream's API server limits it.
pub const CALL_COST_LIMIT: u64 = 1_000_000;
/// What all evaluations for one object may cost together.
pub const OBJECT_COST_LIMIT: u64 = 10_000_000;

/// An expression that was checked. Made by [`Environment::compile`].
#[derive(Debug)]
pub struct Program {
    environment: Environment,
    expression: String,
    plan: Plan,
    /// How many variables the folds have.
    slots: usize,
}

/// The values of variables, and what else an expression may ask for.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    values: Vec<(&'static str, Value)>,
    authorizer: Option<&'a dyn Authorizer>,
}

/// What evaluations may still cost, and whether they may go on.
pub struct Budget<'a> {
    call_limit: u64,
    remaining: u64,
    spent: u64,
    is_cancelled: Option<&'a dyn Fn() -> bool>,
}

impl Environment {
    /// Parses and type-checks an expression.
    ///
    /// # Errors
    /// When the expression is not CEL, names what is not declared, or its types do not fit.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let expr = parse(expression, self.has_bind())
            .map_err(|issue| CompileError::new(expression, vec![issue]))?;
        let (plan, slots, issues) = check(self, &expr);
        if !issues.is_empty() {
            return Err(CompileError::new(expression, issues));
        }
        Ok(Program::new(self.clone(), expression, plan, slots))
    }
}

impl Program {
    fn new(environment: Environment, expression: &str, plan: Plan, slots: usize) -> Self {
        Self {
            environment,
            expression: expression.to_owned(),
            plan,
            slots,
        }
    }

    /// The text this program was made from.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The type of the result, as far as it is known.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.plan.ty
    }

    /// What an evaluation can cost at least and at most, by the declared sizes of the variables.
    #[must_use]
    pub fn estimated_cost(&self) -> CostEstimate {
        estimate(&self.environment, &self.plan, self.slots)
    }

    /// Whether the expression names a variable.
    #[must_use]
    pub fn refers_to(&self, variable: &str) -> bool {
        self.environment
            .variable(variable)
            .is_some_and(|(place, _)| eval::mentions(&self.plan, place))
    }

    /// The value of the expression. What it cost is taken from the budget, also if it fails.
    pub fn evaluate(
        &self,
        bindings: &Bindings<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Value, EvalError> {
        self.evaluate_composed(bindings, None, budget)
    }

    /// The value of the expression, with the fields of the composed variable. What it cost is taken
    /// from the budget, also if it fails.
    pub fn evaluate_composed(
        &self,
        bindings: &Bindings<'_>,
        composed: Option<&dyn LazyFields>,
        budget: &mut Budget<'_>,
    ) -> Result<Value, EvalError> {
        let variables: Vec<Option<Value>> = self
            .environment
            .names()
            .map(|name| bindings.get(name).cloned())
            .collect();
        let (outcome, cost) = eval::run(
            &self.plan,
            &variables,
            self.slots,
            budget.call_limit,
            Surroundings {
                authorizer: bindings.authorizer,
                composed,
                is_cancelled: budget.is_cancelled,
            },
        );
        budget.spend(cost)?;
        outcome.map_err(|error| match error {
            EvalError::Failed(message) => EvalError::Failed(self.named(message)),
            other => other,
        })
    }

    /// Says which variable has no value.
    fn named(&self, message: String) -> String {
        match message
            .strip_prefix(eval::UNBOUND)
            .and_then(|place| place.parse::<usize>().ok())
        {
            Some(place) => format!(
                "no such attribute(s): {}",
                self.environment.names().nth(place).unwrap_or("")
            ),
            None => message,
        }
    }
}

impl<'a> Bindings<'a> {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with the value of one more variable.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Self {
        self.values.push((name, value));
        self
    }

    /// The same with somebody who answers `check`.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: &'a dyn Authorizer) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

impl<'a> Budget<'a> {
    /// A budget for all evaluations together, and for each one.
    #[must_use]
    pub fn new(total: u64, per_call: u64) -> Self {
        Self {
            call_limit: per_call,
            remaining: total,
            spent: 0,
            is_cancelled: None,
        }
    }

    /// Asks this now and then, and stops when it says so.
    #[must_use]
    pub fn with_cancellation(mut self, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        self.is_cancelled = Some(is_cancelled);
        self
    }

    /// Takes a cost from what is left.
    ///
    /// # Errors
    /// When less than that is left; then nothing is.
    pub fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        match self.remaining.checked_sub(cost) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => {
                self.remaining = 0;
                Err(EvalError::Budget)
            }
        }
    }

    /// What was spent so far.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// What is left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }
}

impl Default for Budget<'_> {
    fn default() -> Self {
        Self::new(OBJECT_COST_LIMIT, CALL_COST_LIMIT)
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("call_limit", &self.call_limit)
            .field("remaining", &self.remaining)
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}
