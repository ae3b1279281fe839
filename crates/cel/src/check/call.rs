//! Calls: which function is meant, and which of its overloads fit.

use super::{Checker, Unifier};
use crate::error::Issue;
use crate::functions::{ESCAPE_KEY, Function, Signature, compile_regex, function};
use crate::plan::{CallPlan, Plan, Step};
use crate::syntax::Expr;
use crate::types::Type;
use crate::value::{Value, parse_duration, parse_timestamp};

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        at: usize,
        name: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Plan {
        if name == "_?._" {
            return self.optional_select(at, args);
        }
        let qualified = target
            .and_then(Expr::qualified_name)
            .map(|target| format!("{target}.{name}"));
        if let Some(known) = qualified.as_deref().and_then(|name| self.global(name)) {
            return self.resolved(at, known, None, args);
        }
        match function(name) {
            Some(known) => self.resolved(at, known, target, args),
            None => {
                // Both halves of an unknown member call may be at fault; report what is in it too.
                if let Some(target) = target {
                    self.expr(target);
                }
                for arg in args {
                    self.expr(arg);
                }
                self.issue(
                    at,
                    format!("undeclared reference to '{name}' (in container '')"),
                )
            }
        }
    }

    /// The function with a qualified name, if this environment has it.
    fn global(&self, name: &str) -> Option<&'static Function> {
        let is_declared = name != ESCAPE_KEY || self.environment.has_patch_types();
        is_declared.then(|| function(name)).flatten()
    }

    fn optional_select(&mut self, at: usize, args: &[Expr]) -> Plan {
        let [operand, name] = args else {
            return self.issue(at, "unsupported optional field selection".to_owned());
        };
        let operand = self.expr(operand);
        let crate::syntax::Node::Literal(Value::String(field)) = &name.node else {
            return self.issue(at, "unsupported optional field selection".to_owned());
        };
        let Some(ty) = self.field_type(at, &operand.ty, field) else {
            return self.issue(at, format!("undefined field '{}'", &**field));
        };
        let ty = match ty {
            Type::Optional(_) => ty,
            other => Type::optional(other),
        };
        Plan {
            ty,
            step: self.field_step(operand, field, false, true),
        }
    }

    fn resolved(
        &mut self,
        at: usize,
        known: &'static Function,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Plan {
        let is_member = target.is_some();
        let issues = self.issues.len();
        let is_mixed = known.name == "format";
        self.mixed += usize::from(is_mixed);
        let plans: Vec<Plan> = target
            .into_iter()
            .chain(args)
            .map(|arg| self.expr(arg))
            .collect();
        self.mixed -= usize::from(is_mixed);
        let Some((overloads, ty)) = self.overloads(known, is_member, &plans) else {
            if self.issues.len() > issues {
                // The arguments are broken already; a second finding would only repeat that.
                return Plan {
                    ty: Type::Dyn,
                    step: Step::Literal(Value::Null),
                };
            }
            let applied = self.applied(is_member, &plans);
            return self.issue(
                at,
                format!(
                    "found no matching overload for '{}' applied to '{applied}'",
                    known.name
                ),
            );
        };
        let pattern = self.check_literals(known, args);
        Plan {
            ty,
            step: step(known, overloads, plans, pattern),
        }
    }

    /// The overloads that fit, and the type of the result.
    fn overloads(
        &mut self,
        known: &'static Function,
        is_member: bool,
        args: &[Plan],
    ) -> Option<(Vec<&'static Signature>, Type)> {
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        let candidates = known.signatures.iter().filter(|candidate| {
            candidate.is_member == is_member && candidate.params.len() == args.len()
        });
        for candidate in candidates {
            let mut attempt = self.unifier.clone();
            let Some(ty) = fit(&mut attempt, candidate, args) else {
                continue;
            };
            self.unifier = attempt;
            fitting.push(candidate);
            result = Some(match result {
                None => ty,
                Some(earlier) if is_same(&self.unifier, &earlier, &ty) => earlier,
                Some(_) => Type::Dyn,
            });
        }
        result.map(|ty| (fitting, ty))
    }

    fn applied(&self, is_member: bool, args: &[Plan]) -> String {
        let types: Vec<String> = args
            .iter()
            .map(|arg| self.unifier.resolve(&arg.ty).to_string())
            .collect();
        match (is_member, types.split_first()) {
            (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", types.join(", ")),
        }
    }

    /// Looks at literal patterns, times and durations, which can be wrong only once.
    fn check_literals(&mut self, known: &Function, args: &[Expr]) -> Option<regex::Regex> {
        let last = args.last()?;
        let crate::syntax::Node::Literal(Value::String(text)) = &last.node else {
            return None;
        };
        let mut pattern = None;
        let is_sound = match known.name {
            "matches" => {
                pattern = compile_regex(text).ok();
                pattern.is_some()
            }
            "duration" => parse_duration(text).is_some(),
            "timestamp" => parse_timestamp(text).is_some(),
            _ => true,
        };
        if !is_sound {
            self.issues.push(Issue::new(
                last.at,
                format!("invalid {} argument", known.name),
            ));
        }
        pattern
    }
}

/// The type of the result, if the arguments fit.
fn fit(unifier: &mut Unifier, candidate: &Signature, args: &[Plan]) -> Option<Type> {
    let base = match unifier.fresh() {
        Type::Variable(number) => number,
        _ => return None,
    };
    for _ in 1..candidate.variables.max(1) {
        unifier.fresh();
    }
    for (param, arg) in candidate.params.iter().zip(args) {
        if !unifier.assign(&Unifier::instance(param, base), &arg.ty) {
            return None;
        }
    }
    Some(unifier.resolve(&Unifier::instance(&candidate.result, base)))
}

fn is_same(unifier: &Unifier, a: &Type, b: &Type) -> bool {
    let (a, b) = (unifier.resolve(a), unifier.resolve(b));
    std::mem::discriminant(&a) == std::mem::discriminant(&b) && a.to_string() == b.to_string()
}

fn step(
    known: &'static Function,
    overloads: Vec<&'static Signature>,
    args: Vec<Plan>,
    pattern: Option<regex::Regex>,
) -> Step {
    let args = match (known.name, <[Plan; 2]>::try_from(args)) {
        ("_&&_", Ok(parts)) => return Step::And(Box::new(parts)),
        ("_||_", Ok(parts)) => return Step::Or(Box::new(parts)),
        (_, Ok(parts)) => parts.into(),
        (_, Err(args)) => args,
    };
    let args = match (known.name, <[Plan; 3]>::try_from(args)) {
        ("_?_:_", Ok(parts)) => return Step::Conditional(Box::new(parts)),
        (_, Ok(parts)) => parts.into(),
        (_, Err(args)) => args,
    };
    let mut args: Vec<Plan> = args;
    if known.name == "@not_strictly_false"
        && let Some(part) = args.pop()
    {
        return Step::NotStrictlyFalse(Box::new(part));
    }
    Step::Call(Box::new(CallPlan {
        function: known,
        overloads,
        args,
        pattern,
    }))
}
