//! Variables composed of expressions: `variables.x` is evaluated when it is first asked for.
//!
//! Each variable sees those before it. Its cost counts against its own limit, and together with that
//! of the expression which asked for it against the budget.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::{CompileError, EvalError};
use crate::eval::LazyFields;
use crate::program::{Bindings, Budget, CALL_COST_LIMIT, Program};
use crate::types::{Decl, Type};
use crate::value::Value;

/// Compiled variables, in their order.
#[derive(Debug, Default)]
pub struct Composition {
    variables: Vec<(String, Result<Program, CompileError>)>,
}

impl Composition {
    /// Compiles one more variable in an environment that declares those before it. One that does
    /// not compile is known nevertheless, with any type, and fails whoever asks for it.
    pub fn add(
        &mut self,
        environment: &Environment,
        name: &str,
        expression: &str,
    ) -> Result<(), CompileError> {
        let program = environment.compile(expression);
        let outcome = program.as_ref().map(|_| ()).map_err(Clone::clone);
        self.variables.push((name.to_owned(), program));
        outcome
    }

    /// The declaration of the variable that holds the others as its fields.
    #[must_use]
    pub fn decl(&self) -> Arc<Decl> {
        let types: BTreeMap<&str, Type> = self
            .variables
            .iter()
            .map(|(name, program)| {
                let ty = program
                    .as_ref()
                    .map_or(Type::Dyn, |program| known_type(program.result_type()));
                (name.as_str(), ty)
            })
            .collect();
        let fields = types
            .into_iter()
            .map(|(name, ty)| (name.into(), Decl::plain(ty, 0)));
        Decl::object("kubernetes.variables", fields)
    }

    /// The last variable with a name.
    fn program(&self, name: &str) -> Option<(usize, &Result<Program, CompileError>)> {
        let at = self
            .variables
            .iter()
            .rposition(|(known, _)| known == name)?;
        Some((at, &self.variables[at].1))
    }
}

/// The type as which others see a variable: parameters are kept, types of libraries are not.
fn known_type(ty: &Type) -> Type {
    match ty {
        Type::List(item) => Type::list(known_type(item)),
        Type::Map(key, value) => Type::map(known_type(key), known_type(value)),
        Type::Optional(_)
        | Type::Object(_)
        | Type::Opaque(_)
        | Type::Message(_)
        | Type::Type(_)
        | Type::Variable(_) => Type::Dyn,
        plain => plain.clone(),
    }
}

/// The values of composed variables during the evaluation of a group of expressions.
#[derive(Debug)]
pub struct ComposedValues<'a> {
    composition: &'a Composition,
    bindings: &'a Bindings<'a>,
    known: RefCell<BTreeMap<usize, Result<Value, EvalError>>>,
    /// The cost since somebody took it last.
    cost: Cell<u64>,
}

impl<'a> ComposedValues<'a> {
    /// The values, none of them evaluated yet.
    #[must_use]
    pub fn new(composition: &'a Composition, bindings: &'a Bindings<'a>) -> Self {
        Self {
            composition,
            bindings,
            known: RefCell::default(),
            cost: Cell::new(0),
        }
    }

    /// Evaluates an expression that may ask for the variables. What they and it cost is taken from
    /// the budget.
    pub fn evaluate(&self, program: &Program, budget: &mut Budget<'_>) -> Result<Value, EvalError> {
        let outcome = program.evaluate_composed(self.bindings, Some(self), budget);
        budget.spend(self.cost.take())?;
        outcome
    }

    fn compute(
        &self,
        name: &str,
        program: &Result<Program, CompileError>,
    ) -> Result<Value, EvalError> {
        let program = program.as_ref().map_err(|error| {
            EvalError::failed(format!(
                "composited variable {name:?} fails to compile: compilation failed: {error}"
            ))
        })?;
        let mut budget = Budget::new(u64::MAX, CALL_COST_LIMIT);
        let outcome = program.evaluate_composed(self.bindings, Some(self), &mut budget);
        self.cost
            .set(self.cost.get().saturating_add(budget.spent()));
        outcome.map_err(|error| {
            EvalError::failed(format!(
                "composited variable {name:?} fails to evaluate: {error}"
            ))
        })
    }
}

impl LazyFields for ComposedValues<'_> {
    fn field(&self, name: &str) -> Option<Result<Value, EvalError>> {
        let (at, program) = self.composition.program(name)?;
        if let Some(known) = self.known.borrow().get(&at) {
            return Some(known.clone());
        }
        let outcome = self.compute(name, program);
        self.known.borrow_mut().insert(at, outcome.clone());
        Some(outcome)
    }
}
