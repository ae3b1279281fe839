//! Equality and order.

use std::cmp::Ordering;

use super::collection::same_keys;
use super::{List, Map, Value};
use crate::types::ListIdentity;

/// Whether two values are equal. Numbers compare by value whatever their type; values of different
/// types are not equal.
pub(crate) fn equals(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => **a == **b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::List(a), Value::List(b)) => lists_equal(a, b),
        (Value::Map(a), Value::Map(b)) => maps_equal(a, b),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => equals(a, b),
            _ => false,
        },
        (Value::Type(a), Value::Type(b)) => a.base_name() == b.base_name(),
        (Value::Quantity(a), Value::Quantity(b)) => a == b,
        (Value::Semver(a), Value::Semver(b)) => a.order(b) == Ordering::Equal,
        (Value::Url(a), Value::Url(b)) => a == b,
        (Value::Ip(a), Value::Ip(b)) => a == b,
        (Value::Cidr(a), Value::Cidr(b)) => a == b,
        (Value::Format(a), Value::Format(b)) => a.name == b.name,
        (Value::Message(a), Value::Message(b)) => a.equals(b),
        (Value::Authorization(a), Value::Authorization(b)) => a == b,
        _ => numbers(a, b) == Some(Ordering::Equal),
    }
}

fn lists_equal(a: &List, b: &List) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.identity() {
        ListIdentity::Place => a.iter().zip(b.iter()).all(|(a, b)| equals(&a, &b)),
        ListIdentity::Set => a.iter().all(|a| b.iter().any(|b| equals(&a, &b))),
        ListIdentity::Keys(keys) => a
            .iter()
            .all(|a| b.iter().any(|b| same_keys(&a, &b, keys) && equals(&a, &b))),
    }
}

fn maps_equal(a: &Map, b: &Map) -> bool {
    a.len() == b.len()
        && a.entries().iter().all(|(key, value)| {
            let other = b
                .entries()
                .into_iter()
                .find(|(other, _)| equals(key, other));
            other.is_some_and(|(_, other)| equals(value, &other))
        })
}

/// The order of two values; `None` if they have none.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        _ => numbers(a, b),
    }
}

/// The order of two numbers, exact even where a double cannot hold the integer.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), _) => Some(with_double(whole(b)?, *a)?.reverse()),
        (_, Value::Double(b)) => with_double(whole(a)?, *b),
        _ => Some(whole(a)?.cmp(&whole(b)?)),
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

fn with_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() > 1e30 {
        return 0.0_f64.partial_cmp(&double);
    }
    let truncated = double.trunc() as i128;
    Some(whole.cmp(&truncated).then_with(|| {
        0.0_f64
            .partial_cmp(&double.fract())
            .unwrap_or(Ordering::Equal)
    }))
}
