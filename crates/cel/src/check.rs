//! The checker: names, types, overloads.

mod call;
mod message;
mod unify;

use crate::environment::Environment;
use crate::error::Issue;
use crate::plan::{FoldPlan, Plan, Step};
use crate::syntax::{Expr, Fold, Node};
use crate::types::{Opaque, Type};
use crate::value::Value;

use unify::Unifier;

/// Checks an expression. The plan is of use only if there are no issues.
pub(crate) fn check(environment: &Environment, expr: &Expr) -> (Plan, usize, Vec<Issue>) {
    let mut checker = Checker {
        environment,
        unifier: Unifier::default(),
        scope: Vec::new(),
        slots: 0,
        mixed: 0,
        issues: Vec::new(),
    };
    let mut plan = checker.expr(expr);
    unify::resolve_plan(&checker.unifier, &mut plan);
    (plan, checker.slots, checker.issues)
}

struct Checker<'a> {
    environment: &'a Environment,
    unifier: Unifier,
    /// The variables of the folds around, the innermost last.
    scope: Vec<(String, usize, Type)>,
    /// How many such variables there are in all.
    slots: usize,
    /// How many calls lie around whose list literals may hold values of any types.
    mixed: usize,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn expr(&mut self, expr: &Expr) -> Plan {
        match &expr.node {
            Node::Literal(value) => Plan {
                ty: value.ty(),
                step: Step::Literal(value.clone()),
            },
            Node::Ident(name) => self.ident(expr.at, name),
            Node::Select {
                operand,
                field,
                is_test,
            } => self.select(expr, operand, field, *is_test),
            Node::Call {
                function,
                target,
                args,
            } => self.call(expr.at, function, target.as_deref(), args),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Message(name, fields) => self.message(expr.at, name, fields),
            Node::Fold(fold) => self.fold(expr.at, fold),
        }
    }

    fn issue(&mut self, at: usize, message: String) -> Plan {
        self.issues.push(Issue::new(at, message));
        Plan {
            ty: Type::Dyn,
            step: Step::Literal(Value::Null),
        }
    }

    fn ident(&mut self, at: usize, name: &str) -> Plan {
        if let Some((_, slot, ty)) = self.scope.iter().rev().find(|(known, ..)| known == name) {
            return Plan {
                ty: ty.clone(),
                step: Step::Local(*slot),
            };
        }
        if let Some((place, ty)) = self.environment.variable(name) {
            return Plan {
                ty,
                step: Step::Variable(place),
            };
        }
        match type_named(name) {
            Some(ty) => type_literal(ty),
            None => self.issue(
                at,
                format!("undeclared reference to '{name}' (in container '')"),
            ),
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, is_test: bool) -> Plan {
        if let Some(ty) = expr.qualified_name().and_then(|name| type_named(&name))
            && !is_test
        {
            return type_literal(ty);
        }
        if let Some(plan) = self.dotted_variable(expr)
            && !is_test
        {
            return plan;
        }
        let operand = self.expr(operand);
        let Some(ty) = self.field_type(expr.at, &operand.ty, field) else {
            return self.issue(expr.at, format!("undefined field '{field}'"));
        };
        Plan {
            ty: if is_test { Type::Bool } else { ty },
            step: self.field_step(operand, field, is_test, false),
        }
    }

    /// The variable with a dot in its name that an expression spells: `authorizer.requestResource`.
    fn dotted_variable(&self, expr: &Expr) -> Option<Plan> {
        let name = expr.qualified_name()?;
        let root = name.split('.').next()?;
        let is_local = self.scope.iter().any(|(known, ..)| known == root);
        let (place, ty) = self.environment.variable(&name)?;
        (!is_local).then_some(Plan {
            ty,
            step: Step::Variable(place),
        })
    }

    /// The step that reads a field of an operand.
    fn field_step(&self, operand: Plan, field: &str, is_test: bool, is_optional: bool) -> Step {
        let field = field.to_owned();
        match operand.step {
            Step::Variable(place) if self.environment.is_composed(place) => Step::Composed {
                field,
                is_test,
                is_optional,
            },
            _ => Step::Select {
                operand: Box::new(operand),
                field,
                is_test,
                is_optional,
            },
        }
    }

    /// The type of a field; `None` if the type is known not to have it.
    fn field_type(&mut self, at: usize, operand: &Type, field: &str) -> Option<Type> {
        let operand = self.unifier.resolve(operand);
        match &operand {
            Type::Dyn | Type::Variable(_) => Some(Type::Dyn),
            Type::Map(_, value) => Some((**value).clone()),
            Type::Message(name) => message::field_type(name, field),
            Type::Object(decl) => decl.field(field).map(|field| field.decl.ty()),
            Type::Optional(inner) => {
                let inner = self.field_type(at, inner, field)?;
                Some(match inner {
                    Type::Optional(_) => inner,
                    other => Type::optional(other),
                })
            }
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.issues.push(Issue::new(at, message));
                Some(Type::Dyn)
            }
        }
    }

    /// The common type of the elements of a literal; each must fit those before it.
    fn join(&mut self, so_far: Option<Type>, at: usize, next: &Type) -> Type {
        let Some(so_far) = so_far else {
            return next.clone();
        };
        if self.unifier.assign(&so_far, next) {
            let is_dyn = matches!(self.unifier.resolve(next), Type::Dyn);
            return if is_dyn { Type::Dyn } else { so_far };
        }
        if self.mixed > 0 {
            return Type::Dyn;
        }
        let expected = self.unifier.resolve(&so_far);
        let found = self.unifier.resolve(next);
        self.issues.push(Issue::new(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        ));
        Type::Dyn
    }

    fn element(&mut self, expr: &Expr, is_optional: bool) -> (Plan, Type) {
        let plan = self.expr(expr);
        let ty = match (is_optional, self.unifier.resolve(&plan.ty)) {
            (true, Type::Optional(inner)) => (*inner).clone(),
            (true, Type::Dyn) => Type::Dyn,
            (true, other) => {
                let message = format!("expected type 'optional_type({other})' but found '{other}'");
                self.issues.push(Issue::new(expr.at, message));
                Type::Dyn
            }
            (false, ty) => ty,
        };
        (plan, ty)
    }

    fn list(&mut self, items: &[(Expr, bool)]) -> Plan {
        let mut ty = None;
        let mut plans = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            let (plan, item_type) = self.element(item, *is_optional);
            ty = Some(self.join(ty, item.at, &item_type));
            plans.push((plan, *is_optional));
        }
        let item = ty.unwrap_or_else(|| self.unifier.fresh());
        Plan {
            ty: Type::list(item),
            step: Step::List(plans),
        }
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Plan {
        let (mut key_type, mut value_type) = (None, None);
        let mut plans = Vec::with_capacity(entries.len());
        for (key, value, is_optional) in entries {
            let key_plan = self.expr(key);
            key_type = Some(self.join(key_type, key.at, &key_plan.ty));
            let (value_plan, ty) = self.element(value, *is_optional);
            value_type = Some(self.join(value_type, value.at, &ty));
            plans.push((key_plan, value_plan, *is_optional));
        }
        let key = key_type.unwrap_or_else(|| self.unifier.fresh());
        let value = value_type.unwrap_or_else(|| self.unifier.fresh());
        Plan {
            ty: Type::map(key, value),
            step: Step::Map(plans),
        }
    }

    fn declare(&mut self, name: &str, ty: Type) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scope.push((name.to_owned(), slot, ty));
        slot
    }

    fn fold(&mut self, at: usize, fold: &Fold) -> Plan {
        let range = self.expr(&fold.range);
        let (first, second) = self.variable_types(at, &range.ty, fold.second.is_some());
        let init = self.expr(&fold.init);
        let accumulator_type = init.ty.clone();
        let depth = self.scope.len();
        let accumulator = self.declare(&fold.accumulator, accumulator_type.clone());
        let variable = self.declare(&fold.variable, first);
        let second = fold.second.as_ref().map(|name| self.declare(name, second));
        let condition = self.expr(&fold.condition);
        let mut step = self.expr(&fold.step);
        if !self.unifier.assign(&accumulator_type, &step.ty) {
            let expected = self.unifier.resolve(&accumulator_type);
            let found = self.unifier.resolve(&step.ty);
            self.issues.push(Issue::new(
                at,
                format!("expected type '{expected}' but found '{found}'"),
            ));
        }
        self.scope.truncate(depth + 1);
        let result = self.expr(&fold.result);
        self.scope.truncate(depth);
        take_accumulator(&mut step, accumulator);
        Plan {
            ty: result.ty.clone(),
            step: Step::Fold(Box::new(FoldPlan {
                range,
                variable,
                second,
                accumulator,
                init,
                condition,
                step,
                result,
                is_bind: fold.is_bind(),
            })),
        }
    }

    fn variable_types(&mut self, at: usize, range: &Type, is_pair: bool) -> (Type, Type) {
        match (self.unifier.resolve(range), is_pair) {
            (Type::List(item), false) => ((*item).clone(), Type::Dyn),
            (Type::List(item), true) => (Type::Int, (*item).clone()),
            (Type::Map(key, _), false) => ((*key).clone(), Type::Dyn),
            (Type::Map(key, value), true) => ((*key).clone(), (*value).clone()),
            (Type::Dyn | Type::Variable(_), _) => (Type::Dyn, Type::Dyn),
            (other, _) => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issues.push(Issue::new(at, message));
                (Type::Dyn, Type::Dyn)
            }
        }
    }
}

/// Moves the accumulator into a step that grows it, so that growing does not copy.
///
/// Only macros name the accumulator, and they name it once in such a step.
fn take_accumulator(step: &mut Plan, accumulator: usize) {
    match &mut step.step {
        Step::Call(call) if matches!(call.function.name, "_+_" | "cel.@mapInsert") => {
            if let Some(Plan { step, .. }) = call.args.first_mut()
                && matches!(step, Step::Local(slot) if *slot == accumulator)
            {
                *step = Step::TakeLocal(accumulator);
            }
        }
        Step::Conditional(parts) => take_accumulator(&mut parts[1], accumulator),
        _ => {}
    }
}

fn type_literal(ty: Type) -> Plan {
    Plan {
        ty: Type::Type(std::sync::Arc::new(ty.clone())),
        step: Step::Literal(Value::Type(ty)),
    }
}

/// The type that a name stands for.
fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::Type(std::sync::Arc::new(Type::Dyn)),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "kubernetes.Quantity" => Type::Opaque(Opaque::Quantity),
        "kubernetes.Semver" => Type::Opaque(Opaque::Semver),
        "kubernetes.URL" => Type::Opaque(Opaque::Url),
        "net.IP" => Type::Opaque(Opaque::Ip),
        "net.CIDR" => Type::Opaque(Opaque::Cidr),
        _ => return None,
    })
}
