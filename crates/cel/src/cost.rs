//! What evaluations cost, in upstream's units.
//!
//! [`call_cost`] is what a call did cost; [`estimate`] is what an expression can cost at least and
//! at most, before there are values. Both follow the same rules, one row of the function table
//! each, so that an expression which was accepted seldom exceeds its limit.

mod estimate;
mod range;

pub use range::CostEstimate;

pub(crate) use estimate::estimate;

use crate::functions::CostRule;
use crate::value::Value;

/// What looking at one character costs.
const CHARACTER: f64 = 0.1;
/// What asking the authorizer costs: two questions fit into one evaluation.
const ACCESS_CHECK: u64 = 350_000;
/// What a selector costs, and each of its requirements: a list, and a list and a struct.
const SELECTOR: u64 = 10;
const PER_REQUIREMENT: f64 = 50.0;
/// What one character of a pattern costs.
const PATTERN_CHARACTER: f64 = 0.25;

/// A size times a factor, rounded up.
pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What a call costs besides its arguments.
pub(crate) fn call_cost(rule: CostRule, args: &[Value]) -> u64 {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    let is_text = matches!(args.first(), Some(Value::String(_) | Value::Bytes(_)));
    match rule {
        CostRule::Unit => 1,
        CostRule::AccessCheck => ACCESS_CHECK,
        CostRule::Selector => {
            let requirements = scaled(scaled(size(1), 0.5), PER_REQUIREMENT);
            SELECTOR + scaled(size(1), CHARACTER) + requirements
        }
        CostRule::Logic | CostRule::Join => 0,
        CostRule::Equality if is_opaque(args.first()) => 1,
        CostRule::Equality => scaled(size(0).min(size(1)), CHARACTER),
        CostRule::Order if is_text => scaled(size(0).min(size(1)), CHARACTER),
        CostRule::Add if is_text => scaled(size(0).saturating_add(size(1)), CHARACTER),
        CostRule::Order | CostRule::Add => 1,
        CostRule::In if matches!(args.get(1), Some(Value::List(_))) => size(1),
        CostRule::In => 1,
        CostRule::Contains => scaled(size(0), CHARACTER).saturating_mul(scaled(size(1), CHARACTER)),
        CostRule::Match => scaled(size(0).saturating_add(1), CHARACTER)
            .saturating_mul(scaled(size(1), PATTERN_CHARACTER)),
        CostRule::Conversion if !is_text => 1,
        CostRule::Affix | CostRule::Conversion => scaled(size(0), CHARACTER),
        CostRule::Scan(factor) | CostRule::Read(factor) if is_text => {
            scaled(size(0), factor * CHARACTER)
        }
        CostRule::Scan(_) | CostRule::Read(_) => 1,
        CostRule::Traverse => args.first().map_or(0, traversal),
        CostRule::Replace | CostRule::Split => scaled(size(0), 2.0 * CHARACTER),
        CostRule::Within { is_network } => {
            let network = scaled(size(0).saturating_mul(2), CHARACTER);
            let masking = if is_network {
                scaled(size(0), CHARACTER) + 1
            } else {
                0
            };
            let parsing = match args.get(1) {
                Some(Value::String(_)) => scaled(size(1), CHARACTER),
                _ => 0,
            };
            network + masking + parsing
        }
        CostRule::Validate => {
            let pattern = match args.first() {
                Some(Value::Format(format)) => format.pattern_size,
                _ => 1,
            };
            scaled(size(1).saturating_add(1), CHARACTER)
                .saturating_mul(scaled(pattern, PATTERN_CHARACTER))
        }
        CostRule::Sets(factor) => size(0)
            .saturating_mul(size(1))
            .saturating_mul(factor)
            .saturating_add(1),
        CostRule::Items => match args.first() {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0).saturating_add(1),
            _ => size(0).saturating_add(1),
        },
        CostRule::ItemsSquared => size(0).saturating_mul(size(0)).saturating_add(1),
    }
}

fn is_opaque(value: Option<&Value>) -> bool {
    matches!(
        value,
        Some(
            Value::Quantity(_)
                | Value::Semver(_)
                | Value::Url(_)
                | Value::Ip(_)
                | Value::Cidr(_)
                | Value::Format(_)
        )
    )
}

/// What reading everything in a value costs.
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Value::List(list) => list
            .iter()
            .fold(0, |sum, item| sum.saturating_add(traversal(&item))),
        Value::Map(map) => map.entries().iter().fold(0, |sum: u64, (key, value)| {
            sum.saturating_add(traversal(key))
                .saturating_add(traversal(value))
        }),
        _ => 1,
    }
}
