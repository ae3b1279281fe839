//! The checked form of an expression, which is what gets evaluated.

use regex::Regex;

use crate::functions::{Function, Signature};
use crate::types::Type;
use crate::value::Value;

/// One step and the type of what it gives.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ty: Type,
    pub(crate) step: Step,
}

#[derive(Debug)]
pub(crate) enum Step {
    Literal(Value),
    /// A variable of the environment, by its place there.
    Variable(usize),
    /// A field of the composed variables, evaluated when it is first asked for.
    Composed {
        field: String,
        is_test: bool,
        is_optional: bool,
    },
    /// A variable of a fold.
    Local(usize),
    /// The accumulator of a fold, moved out because the step replaces it anyway.
    TakeLocal(usize),
    Select {
        operand: Box<Plan>,
        field: String,
        is_test: bool,
        /// Whether the result is an optional although the operand is not one.
        is_optional: bool,
    },
    And(Box<[Plan; 2]>),
    Or(Box<[Plan; 2]>),
    Conditional(Box<[Plan; 3]>),
    NotStrictlyFalse(Box<Plan>),
    Call(Box<CallPlan>),
    List(Vec<(Plan, bool)>),
    Map(Vec<(Plan, Plan, bool)>),
    /// The name of a message type, and its fields.
    Message(std::sync::Arc<str>, Vec<(String, Plan, bool)>),
    Fold(Box<FoldPlan>),
}

#[derive(Debug)]
pub(crate) struct CallPlan {
    pub(crate) function: &'static Function,
    /// The overloads that fit what is known of the arguments.
    pub(crate) overloads: Vec<&'static Signature>,
    pub(crate) args: Vec<Plan>,
    /// The compiled pattern where it is a literal.
    pub(crate) pattern: Option<Regex>,
}

#[derive(Debug)]
pub(crate) struct FoldPlan {
    pub(crate) range: Plan,
    pub(crate) variable: usize,
    pub(crate) second: Option<usize>,
    pub(crate) accumulator: usize,
    pub(crate) init: Plan,
    pub(crate) condition: Plan,
    pub(crate) step: Plan,
    pub(crate) result: Plan,
    /// Whether this only names a value.
    pub(crate) is_bind: bool,
}

impl FoldPlan {
    /// Whether the condition never ends the loop.
    pub(crate) fn is_unconditional(&self) -> bool {
        matches!(self.condition.step, Step::Literal(Value::Bool(true)))
    }
}
