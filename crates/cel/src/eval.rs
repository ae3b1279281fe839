//! The evaluator: walks a plan and counts what it costs.

use crate::authorization::{AccessDecision, Authorization, Authorizer};
use crate::cost::call_cost;
use crate::error::EvalError;
use crate::plan::{CallPlan, FoldPlan, Plan, Step};
use crate::value::{Map, MapKey, Message, Value};

/// How many rounds of loops pass between two looks at whether to stop.
const INTERRUPT_CHECK_ROUNDS: u32 = 100;
/// Starts the message about a variable without value, until its name is known.
pub(crate) const UNBOUND: &str = "@unbound ";

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const MESSAGE_COST: u64 = 40;

type Outcome = Result<Value, EvalError>;

/// The values of the fields of a composed variable, found when an expression first asks for them.
pub trait LazyFields: std::fmt::Debug {
    /// The value of a field, `None` if there is no such field.
    fn field(&self, name: &str) -> Option<Result<Value, EvalError>>;
}

/// The surroundings of an evaluation, besides the values of variables.
#[derive(Clone, Copy, Default)]
pub(crate) struct Surroundings<'v> {
    pub(crate) authorizer: Option<&'v dyn Authorizer>,
    pub(crate) composed: Option<&'v dyn LazyFields>,
    pub(crate) is_cancelled: Option<&'v dyn Fn() -> bool>,
}

/// The value of a plan, and what it cost.
pub(crate) fn run(
    plan: &Plan,
    variables: &[Option<Value>],
    slots: usize,
    limit: u64,
    around: Surroundings<'_>,
) -> (Outcome, u64) {
    let mut machine = Machine {
        variables,
        locals: (0..slots).map(|_| Local::Unset).collect(),
        cost: 0,
        limit,
        around,
        rounds: 0,
    };
    let outcome = machine.eval(plan);
    (outcome, machine.cost)
}

/// Whether a plan reads a variable.
pub(crate) fn mentions(plan: &Plan, place: usize) -> bool {
    let any = |parts: &[Plan]| parts.iter().any(|part| mentions(part, place));
    match &plan.step {
        Step::Variable(other) => *other == place,
        Step::Literal(_) | Step::Composed { .. } | Step::Local(_) | Step::TakeLocal(_) => false,
        Step::Message(_, fields) => fields.iter().any(|(_, value, _)| mentions(value, place)),
        Step::Select { operand, .. } => mentions(operand, place),
        Step::And(parts) | Step::Or(parts) => any(&**parts),
        Step::Conditional(parts) => any(&**parts),
        Step::NotStrictlyFalse(part) => mentions(part, place),
        Step::Call(call) => any(&call.args),
        Step::List(items) => items.iter().any(|(item, _)| mentions(item, place)),
        Step::Map(entries) => entries
            .iter()
            .any(|(key, value, _)| mentions(key, place) || mentions(value, place)),
        Step::Fold(fold) => [
            &fold.range,
            &fold.init,
            &fold.condition,
            &fold.step,
            &fold.result,
        ]
        .into_iter()
        .any(|part| mentions(part, place)),
    }
}

/// The value of a variable of a fold.
enum Local<'a> {
    Unset,
    Known(Outcome),
    /// Evaluated when it is first asked for.
    Later(&'a Plan),
}

struct Machine<'a, 'v> {
    variables: &'v [Option<Value>],
    locals: Vec<Local<'a>>,
    cost: u64,
    limit: u64,
    around: Surroundings<'v>,
    rounds: u32,
}

impl<'a> Machine<'a, '_> {
    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit {
            return Err(EvalError::CostLimit);
        }
        Ok(())
    }

    fn eval(&mut self, plan: &'a Plan) -> Outcome {
        match &plan.step {
            Step::Literal(value) => Ok(value.clone()),
            Step::Variable(place) => {
                self.charge(1)?;
                let value = self.variables.get(*place).cloned().flatten();
                value.ok_or_else(|| EvalError::failed(format!("{UNBOUND}{place}")))
            }
            Step::Composed {
                field,
                is_test,
                is_optional,
            } => self.composed(field, *is_test, *is_optional),
            Step::Local(slot) => {
                self.charge(1)?;
                self.local(*slot)
            }
            Step::TakeLocal(slot) => {
                self.charge(1)?;
                match std::mem::replace(&mut self.locals[*slot], Local::Unset) {
                    Local::Known(outcome) => outcome,
                    Local::Unset | Local::Later(_) => Err(EvalError::no_such_overload()),
                }
            }
            Step::Select { .. } => self.select(plan),
            Step::And(parts) => self.logic(parts, false),
            Step::Or(parts) => self.logic(parts, true),
            Step::Conditional(parts) => match self.eval(&parts[0])? {
                Value::Bool(true) => self.eval(&parts[1]),
                Value::Bool(false) => self.eval(&parts[2]),
                _ => Err(EvalError::no_such_overload()),
            },
            Step::NotStrictlyFalse(part) => {
                let outcome = self.eval(part);
                self.charge(1)?;
                match outcome {
                    Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
                    Err(error) if !error.is_absorbable() => Err(error),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Step::Call(call) => self.call(call),
            Step::List(items) => self.list(items),
            Step::Map(entries) => self.map(entries),
            Step::Message(name, fields) => self.message(name, fields),
            Step::Fold(fold) => self.fold(fold),
        }
    }

    fn local(&mut self, slot: usize) -> Outcome {
        if let Local::Later(plan) = self.locals[slot] {
            let outcome = self.eval(plan);
            self.locals[slot] = Local::Known(outcome);
        }
        match &self.locals[slot] {
            Local::Known(outcome) => outcome.clone(),
            Local::Unset | Local::Later(_) => Err(EvalError::no_such_overload()),
        }
    }

    fn select(&mut self, plan: &'a Plan) -> Outcome {
        let Step::Select {
            operand,
            field,
            is_test,
            is_optional,
        } = &plan.step
        else {
            return Err(EvalError::no_such_overload());
        };
        let operand = self.eval(operand)?;
        if *is_test {
            return presence(&operand, field);
        }
        self.charge(1)?;
        match &operand {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => match selected(inner, field) {
                None => Ok(Value::Optional(None)),
                Some(already @ Value::Optional(_)) => Ok(already),
                Some(value) => Ok(Value::some(value)),
            },
            _ if *is_optional => match &operand {
                Value::Map(map) => Ok(map.field(field).map_or(Value::Optional(None), Value::some)),
                _ => Ok(Value::Optional(None)),
            },
            _ => selected(&operand, field).ok_or_else(|| EvalError::no_such_key(field)),
        }
    }

    /// `&&` and `||`: an operand that decides makes an error of the other one irrelevant.
    fn logic(&mut self, parts: &'a [Plan; 2], decisive: bool) -> Outcome {
        let mut failure = None;
        for part in parts {
            match self.eval(part) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or_else(|| Some(EvalError::no_such_overload())),
                Err(error) if error.is_absorbable() => failure = failure.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn call(&mut self, call: &'a CallPlan) -> Outcome {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(self.eval(arg)?);
        }
        let cost = call_cost(call.function.cost, &args);
        self.charge(cost)?;
        if let (Some(pattern), Some(Value::String(text))) = (&call.pattern, args.first()) {
            return Ok(Value::Bool(pattern.is_match(text)));
        }
        if matches!(call.function.cost, crate::functions::CostRule::AccessCheck) {
            return self.check_access(&args);
        }
        let result = (call.function.call)(&mut args)?;
        if matches!(call.function.cost, crate::functions::CostRule::Join) {
            self.charge(crate::cost::scaled(result.size(), 0.2))?;
        }
        Ok(result)
    }

    fn list(&mut self, items: &'a [(Plan, bool)]) -> Outcome {
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            match (self.eval(item)?, is_optional) {
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(inner)), true) => values.push((*inner).clone()),
                (value, _) => values.push(value),
            }
        }
        self.charge(LIST_COST)?;
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'a [(Plan, Plan, bool)]) -> Outcome {
        let mut values = std::collections::BTreeMap::new();
        for (key, value, is_optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, is_optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => (*inner).clone(),
                (value, _) => value,
            };
            let place = MapKey::of(&key).ok_or_else(|| {
                EvalError::failed(format!("unsupported key type: {}", key.ty().base_name()))
            })?;
            if values.insert(place, (key.clone(), value)).is_some() {
                return Err(EvalError::failed(format!(
                    "Failed with repeated key: {}",
                    crate::value::show(&key)
                )));
            }
        }
        self.charge(MAP_COST)?;
        Ok(Value::Map(Map::new(values)))
    }

    /// A field of the composed variables.
    fn composed(&mut self, field: &str, is_test: bool, is_optional: bool) -> Outcome {
        self.charge(1)?;
        let value = self.around.composed.and_then(|fields| fields.field(field));
        if is_test {
            return Ok(Value::Bool(value.transpose()?.is_some()));
        }
        self.charge(1)?;
        match value.transpose()? {
            Some(value) if is_optional => Ok(Value::some(value)),
            Some(value) => Ok(value),
            None if is_optional => Ok(Value::Optional(None)),
            None => Err(EvalError::no_such_key(field)),
        }
    }

    fn message(&mut self, name: &str, fields: &'a [(String, Plan, bool)]) -> Outcome {
        let mut message = Message::new(name);
        for (field, value, is_optional) in fields {
            match (self.eval(value)?, is_optional) {
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(inner)), true) => message.set(field, (*inner).clone())?,
                (value, _) => message.set(field, value)?,
            }
        }
        self.charge(MESSAGE_COST)?;
        Ok(Value::Message(std::sync::Arc::new(message)))
    }

    /// Asks the authorizer.
    fn check_access(&self, args: &[Value]) -> Outcome {
        let [Value::Authorization(check), Value::String(verb)] = args else {
            return Err(EvalError::no_such_overload());
        };
        let question = check
            .question(verb)
            .ok_or_else(EvalError::no_such_overload)?;
        let decision = match self.around.authorizer {
            Some(authorizer) => authorizer.authorize(&question),
            None => AccessDecision::default(),
        };
        Ok(Authorization::Decision(decision).into())
    }

    fn fold(&mut self, fold: &'a FoldPlan) -> Outcome {
        if fold.is_bind {
            self.charge(LIST_COST)?;
            self.locals[fold.accumulator] = Local::Later(&fold.init);
            return self.eval(&fold.result);
        }
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        self.locals[fold.accumulator] = Local::Known(init);
        for (first, second) in rounds(range, fold.second.is_some())? {
            self.check_interrupt()?;
            self.locals[fold.variable] = Local::Known(Ok(first));
            if let (Some(slot), Some(value)) = (fold.second, second) {
                self.locals[slot] = Local::Known(Ok(value));
            }
            if let Value::Bool(false) = self.eval(&fold.condition)? {
                break;
            }
            let outcome = self.eval(&fold.step);
            match &outcome {
                Err(error) if !error.is_absorbable() || fold.is_unconditional() => return outcome,
                _ => self.locals[fold.accumulator] = Local::Known(outcome),
            }
        }
        self.eval(&fold.result)
    }

    fn check_interrupt(&mut self) -> Result<(), EvalError> {
        self.rounds += 1;
        if self.rounds.is_multiple_of(INTERRUPT_CHECK_ROUNDS)
            && self
                .around
                .is_cancelled
                .is_some_and(|is_cancelled| is_cancelled())
        {
            return Err(EvalError::Interrupted);
        }
        Ok(())
    }
}

/// What the variables of a fold are in each round.
fn rounds(range: Value, is_pair: bool) -> Result<Vec<(Value, Option<Value>)>, EvalError> {
    Ok(match (range, is_pair) {
        (Value::List(list), false) => list.iter().map(|item| (item, None)).collect(),
        (Value::List(list), true) => list
            .iter()
            .enumerate()
            .map(|(at, item)| {
                (
                    Value::Int(i64::try_from(at).unwrap_or(i64::MAX)),
                    Some(item),
                )
            })
            .collect(),
        (Value::Map(map), false) => map.keys().into_iter().map(|key| (key, None)).collect(),
        (Value::Map(map), true) => map
            .entries()
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect(),
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn selected(operand: &Value, field: &str) -> Option<Value> {
    match operand {
        Value::Map(map) => map.field(field).or_else(|| map.default_value()),
        Value::Message(message) => message.field(field).cloned(),
        // What has no fields lacks this one, too; that holds for null above all.
        _ => None,
    }
}

fn presence(operand: &Value, field: &str) -> Outcome {
    match operand {
        Value::Map(map) => Ok(Value::Bool(map.field(field).is_some())),
        Value::Message(message) => Ok(Value::Bool(message.field(field).is_some())),
        Value::Optional(None) => Ok(Value::Bool(false)),
        Value::Optional(Some(inner)) => presence(inner, field),
        _ => Ok(Value::Bool(false)),
    }
}
