//! What an expression can cost, before there are values.

use std::sync::Arc;

use super::range::{CostEstimate, Size};
use super::{ACCESS_CHECK, CHARACTER, PATTERN_CHARACTER};
use crate::environment::Environment;
use crate::functions::CostRule;
use crate::plan::{CallPlan, FoldPlan, Plan, Step};
use crate::types::Decl;
use crate::types::{Opaque, Type};
use crate::value::Value;
use crate::value::format::PATTERN_SIZE_MAX;

const ONE: CostEstimate = CostEstimate::fixed(1);
const LIST: CostEstimate = CostEstimate::fixed(10);
const MAP: CostEstimate = CostEstimate::fixed(30);
const MESSAGE: CostEstimate = CostEstimate::fixed(40);
/// The bytes of an address.
const ADDRESS: Size = Size { min: 4, max: 16 };

/// What a plan can cost.
pub(crate) fn estimate(environment: &Environment, plan: &Plan, slots: usize) -> CostEstimate {
    let mut estimator = Estimator {
        environment,
        locals: vec![Facts::default(); slots],
    };
    estimator.plan(plan).cost
}

/// What is known of a step.
#[derive(Clone, Default)]
struct Facts {
    cost: CostEstimate,
    /// The size where it follows from the expression.
    size: Option<Size>,
    /// The sizes of keys and elements where they follow from the expression.
    entry: Option<(Size, Size)>,
    /// The declaration of what is read, where the step only reads.
    decl: Option<Arc<Decl>>,
}

struct Estimator<'a> {
    environment: &'a Environment,
    locals: Vec<Facts>,
}

impl Facts {
    fn with_cost(self, cost: CostEstimate) -> Self {
        Self { cost, ..self }
    }
}

/// The size of a step: from the expression, the declaration, or the type.
fn size_of(facts: &Facts, ty: &Type) -> Size {
    facts
        .size
        .or_else(|| {
            facts.decl.as_ref().map(|decl| Size {
                min: 0,
                max: decl.size_max(),
            })
        })
        .or_else(|| ty.is_scalar().then_some(ONE))
        .unwrap_or(Size::UNKNOWN)
}

impl Estimator<'_> {
    fn plan(&mut self, plan: &Plan) -> Facts {
        match &plan.step {
            Step::Literal(value) => Facts {
                size: literal_size(value),
                ..Facts::default()
            },
            Step::Variable(place) => Facts {
                cost: ONE,
                decl: self.environment.decl(*place).cloned(),
                ..Facts::default()
            },
            Step::Composed { .. } => Facts::default().with_cost(CostEstimate::fixed(2)),
            Step::Local(slot) | Step::TakeLocal(slot) => self.locals[*slot].clone().with_cost(ONE),
            Step::Select {
                operand,
                field,
                is_test,
                ..
            } => self.select(operand, field, *is_test),
            Step::And(parts) | Step::Or(parts) => {
                let (left, right) = (self.plan(&parts[0]).cost, self.plan(&parts[1]).cost);
                let cost = CostEstimate {
                    min: left.min,
                    max: left.plus(right).max,
                };
                Facts::default().with_cost(cost)
            }
            Step::Conditional(parts) => self.conditional(parts),
            Step::NotStrictlyFalse(part) => {
                let cost = self.plan(part).cost.plus(ONE);
                Facts::default().with_cost(cost)
            }
            Step::Call(call) => self.call(call, &plan.ty),
            Step::List(items) => self.list(items),
            Step::Map(entries) => self.map(entries),
            Step::Message(_, fields) => {
                let cost = fields.iter().fold(MESSAGE, |sum, (_, value, _)| {
                    sum.plus(self.plan(value).cost)
                });
                Facts::default().with_cost(cost)
            }
            Step::Fold(fold) => self.fold(fold),
        }
    }

    fn sized(&mut self, plan: &Plan) -> (Facts, Size) {
        let facts = self.plan(plan);
        let size = size_of(&facts, &plan.ty);
        (facts, size)
    }

    fn select(&mut self, operand: &Plan, field: &str, is_test: bool) -> Facts {
        let facts = self.plan(operand);
        if is_test {
            return Facts::default().with_cost(facts.cost);
        }
        let costs = matches!(
            operand.ty,
            Type::Map(..) | Type::Object(_) | Type::Variable(_)
        );
        let decl = facts
            .decl
            .as_ref()
            .and_then(|decl| match decl.field(field) {
                Some(field) => Some(Arc::clone(&field.decl)),
                None => decl.element().cloned(),
            });
        let cost = if costs {
            facts.cost.plus(ONE)
        } else {
            facts.cost
        };
        Facts {
            cost,
            decl,
            ..Facts::default()
        }
    }

    fn conditional(&mut self, parts: &[Plan; 3]) -> Facts {
        let condition = self.plan(&parts[0]).cost;
        let (yes, yes_size) = self.sized(&parts[1]);
        let (no, no_size) = self.sized(&parts[2]);
        Facts {
            cost: condition.plus(yes.cost.union(no.cost)),
            size: Some(yes_size.union(no_size)),
            entry: union_entries(yes.entry, no.entry),
            decl: None,
        }
    }

    fn list(&mut self, items: &[(Plan, bool)]) -> Facts {
        let mut cost = LIST;
        let mut item_size: Option<Size> = None;
        for (item, _) in items {
            let (facts, size) = self.sized(item);
            cost = cost.plus(facts.cost);
            item_size = Some(item_size.map_or(size, |known| known.union(size)));
        }
        Facts {
            cost,
            size: Some(Size::fixed(count(items.len()))),
            entry: Some((ONE, item_size.unwrap_or_default())),
            decl: None,
        }
    }

    fn map(&mut self, entries: &[(Plan, Plan, bool)]) -> Facts {
        let mut cost = MAP;
        let mut sizes: Option<(Size, Size)> = None;
        for (key, value, _) in entries {
            let (key, key_size) = self.sized(key);
            let (value, value_size) = self.sized(value);
            cost = cost.plus(key.cost).plus(value.cost);
            sizes = Some(sizes.map_or((key_size, value_size), |(keys, values)| {
                (keys.union(key_size), values.union(value_size))
            }));
        }
        Facts {
            cost,
            size: Some(Size::fixed(count(entries.len()))),
            entry: Some(sizes.unwrap_or_default()),
            decl: None,
        }
    }

    fn fold(&mut self, fold: &FoldPlan) -> Facts {
        let (range, range_size) = self.sized(&fold.range);
        let init = self.plan(&fold.init);
        let start = range.cost.plus(init.cost);
        let init_size = init.size;
        self.locals[fold.accumulator] = init;
        if fold.is_bind {
            let result = self.plan(&fold.result);
            let cost = start.plus(result.cost);
            return result.with_cost(cost);
        }
        self.declare_variables(fold, &range);
        let round = self.plan(&fold.condition).cost;
        let step = self.plan(&fold.step);
        let result = self.plan(&fold.result).cost;
        let loops = range_size.times(step.cost.plus(round));
        let is_container = matches!(fold.init.step, Step::List(_) | Step::Map(_));
        Facts {
            cost: start.plus(result).plus(loops),
            size: if is_container {
                Some(range_size)
            } else {
                init_size
            },
            entry: if is_container { step.entry } else { None },
            decl: None,
        }
    }

    fn declare_variables(&mut self, fold: &FoldPlan, range: &Facts) {
        let is_map = matches!(fold.range.ty, Type::Map(..));
        let decl = range.decl.as_ref();
        let key = Facts {
            size: range.entry.map(|(key, _)| key),
            decl: decl.and_then(|decl| decl.key()).cloned(),
            ..Facts::default()
        };
        let value = Facts {
            size: range.entry.map(|(_, value)| value),
            decl: decl.and_then(|decl| decl.element()).cloned(),
            ..Facts::default()
        };
        match fold.second {
            Some(second) => {
                self.locals[fold.variable] = key;
                self.locals[second] = value;
            }
            None => self.locals[fold.variable] = if is_map { key } else { value },
        }
    }

    fn call(&mut self, call: &CallPlan, ty: &Type) -> Facts {
        if call.function.name == "dyn"
            && let [arg] = call.args.as_slice()
        {
            let facts = self.plan(arg);
            let cost = facts.cost.plus(ONE);
            return facts.with_cost(cost);
        }
        let mut operands = Vec::with_capacity(call.args.len());
        let mut cost = CostEstimate::default();
        for arg in &call.args {
            let facts = self.plan(arg);
            cost = cost.plus(facts.cost);
            operands.push((facts, &arg.ty));
        }
        let (own, size) = call_estimate(call, &operands);
        let decl = match call.function.name {
            "_[_]" | "_[?_]" => operands
                .first()
                .and_then(|(facts, _)| facts.decl.as_ref()?.element().cloned()),
            _ => None,
        };
        let size = match call.function.name {
            "_[_]" => operands.first().and_then(|(facts, _)| Some(facts.entry?.1)),
            _ => size,
        };
        let entry = match (call.function.name, operands.as_slice()) {
            ("_+_", [(left, _), (right, _)]) => union_entries(left.entry, right.entry),
            _ => None,
        };
        let _ = ty;
        Facts {
            cost: cost.plus(own),
            size,
            entry,
            decl,
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn literal_size(value: &Value) -> Option<Size> {
    match value {
        Value::Type(_) => None,
        other => Some(Size::fixed(other.size())),
    }
}

fn union_entries(a: Option<(Size, Size)>, b: Option<(Size, Size)>) -> Option<(Size, Size)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.union(b.0), a.1.union(b.1))),
        (one, other) => one.or(other),
    }
}

/// The cost of a call besides its arguments, and the size of its result where that is known.
fn call_estimate(call: &CallPlan, operands: &[(Facts, &Type)]) -> (CostEstimate, Option<Size>) {
    let size = |at: usize| {
        operands
            .get(at)
            .map_or(ONE, |(facts, ty)| size_of(facts, ty))
    };
    let may_be = |wanted: fn(&Type) -> bool| {
        call.overloads
            .iter()
            .any(|overload| overload.params.first().is_some_and(wanted))
    };
    let is_text = |ty: &Type| matches!(ty, Type::String | Type::Bytes);
    match call.function.cost {
        CostRule::Unit => (ONE, None),
        CostRule::Selector => (ONE, None),
        CostRule::AccessCheck => (CostEstimate::fixed(ACCESS_CHECK), None),
        CostRule::Logic => (CostEstimate::default(), None),
        CostRule::Equality => (equality(operands, size(0), size(1)), None),
        CostRule::Order if may_be(is_text) => (smaller(size(0), size(1)), None),
        CostRule::Order => (ONE, None),
        CostRule::Add => {
            let both = size(0).plus(size(1));
            let result =
                (may_be(is_text) || may_be(|ty| matches!(ty, Type::List(_)))).then_some(both);
            let cost = if may_be(is_text) {
                both.scaled(CHARACTER)
            } else {
                ONE
            };
            (cost, result)
        }
        CostRule::In
            if call
                .overloads
                .iter()
                .any(|overload| matches!(overload.params[1], Type::List(_))) =>
        {
            (size(1), None)
        }
        CostRule::In => (ONE, None),
        CostRule::Contains => (
            size(0).scaled(CHARACTER).times(size(1).scaled(CHARACTER)),
            None,
        ),
        CostRule::Match => {
            let text = size(0).plus(ONE).scaled(CHARACTER);
            let found = Size {
                min: 0,
                max: size(0).max,
            };
            (text.times(size(1).scaled(PATTERN_CHARACTER)), Some(found))
        }
        CostRule::Affix => (size(1).scaled(CHARACTER), None),
        CostRule::Conversion if may_be(is_text) => (size(0).scaled(CHARACTER), Some(size(0))),
        CostRule::Conversion => (ONE, None),
        CostRule::Scan(factor) => (size(0).scaled(factor * CHARACTER), Some(size(0))),
        CostRule::Read(factor) if may_be(is_text) => (size(0).scaled(factor * CHARACTER), None),
        CostRule::Read(_) => (ONE, None),
        CostRule::Traverse => (traversal(operands, size(0)), None),
        CostRule::Replace => (
            size(0).scaled(2.0 * CHARACTER),
            Some(replaced(size(0), size(1), size(2))),
        ),
        CostRule::Split => (
            size(0).scaled(2.0 * CHARACTER),
            Some(Size {
                min: 0,
                max: size(0).max,
            }),
        ),
        CostRule::Join => joined(operands, size(0), size(1)),
        CostRule::Within { is_network } => (within(operands, is_network, size(1)), None),
        CostRule::Validate => {
            let pattern = PATTERN_SIZE_MAX as f64 * PATTERN_CHARACTER;
            (size(1).scaled(CHARACTER).scaled(pattern), None)
        }
        CostRule::Sets(factor) => (
            size(0).times(size(1)).times(Size::fixed(factor)).plus(ONE),
            None,
        ),
        CostRule::Items => (
            size(0).plus(ONE),
            Some(Size {
                min: 0,
                max: size(0).max,
            }),
        ),
        CostRule::ItemsSquared => (size(0).times(size(0)).plus(ONE), Some(size(0))),
    }
}

fn smaller(a: Size, b: Size) -> CostEstimate {
    let max = a.max.min(b.max);
    CostEstimate {
        min: u64::from(max > 0),
        max,
    }
    .scaled(CHARACTER)
}

fn equality(operands: &[(Facts, &Type)], a: Size, b: Size) -> CostEstimate {
    match operands {
        [(_, Type::Opaque(left)), (_, Type::Opaque(right))]
            if left == right && *left != Opaque::Url =>
        {
            ONE
        }
        _ => smaller(a, b),
    }
}

fn element_size(operands: &[(Facts, &Type)]) -> Option<(Size, bool)> {
    let (facts, ty) = operands.first()?;
    let Type::List(item) = ty else {
        return None;
    };
    let item_facts = Facts {
        size: facts.entry.map(|(_, value)| value),
        decl: facts.decl.as_ref().and_then(|decl| decl.element()).cloned(),
        ..Facts::default()
    };
    Some((
        size_of(&item_facts, item),
        matches!(**item, Type::String | Type::Bytes),
    ))
}

fn traversal(operands: &[(Facts, &Type)], size: Size) -> CostEstimate {
    match element_size(operands) {
        Some((element, true)) => size.times(ONE.plus(element.scaled(CHARACTER))),
        Some((_, false)) => size,
        None => size.scaled(CHARACTER),
    }
}

fn joined(
    operands: &[(Facts, &Type)],
    list: Size,
    separator: Size,
) -> (CostEstimate, Option<Size>) {
    let elements =
        element_size(operands).map_or(Size::default(), |(element, _)| list.times(element));
    let gaps = Size {
        min: list.min.saturating_sub(1),
        max: list.max.saturating_sub(1),
    };
    let size = if operands.len() > 1 {
        elements.plus(separator.times(gaps))
    } else {
        elements
    };
    (size.scaled(CHARACTER), Some(size))
}

/// The size of a text in which every occurrence of one part was replaced by another one.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let max = if from.min == 0 {
        text.max
            .saturating_add(1)
            .saturating_mul(to.max)
            .saturating_add(text.max)
    } else if to.max <= from.min {
        text.max
    } else {
        text.max.div_ceil(from.min).saturating_mul(to.max)
    };
    let min = if from.max == 0 {
        text.min
            .saturating_add(1)
            .saturating_mul(to.min)
            .saturating_add(text.min)
    } else if from.max <= to.min {
        text.min
    } else {
        text.min.div_ceil(from.max).saturating_mul(to.min)
    };
    Size { min, max }
}

fn within(operands: &[(Facts, &Type)], is_network: bool, other: Size) -> CostEstimate {
    let mut cost = ADDRESS.plus(ADDRESS).scaled(CHARACTER);
    if is_network {
        cost = cost.plus(ADDRESS.scaled(CHARACTER)).plus(ONE);
    }
    if matches!(operands.get(1), Some((_, Type::String | Type::Dyn))) {
        cost = cost.plus(other.scaled(CHARACTER));
    }
    cost
}
