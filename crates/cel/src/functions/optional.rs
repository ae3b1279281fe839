//! Values that may be absent.

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::{List, Value};

pub(super) const ROWS: &[Row] = &[
    Row("optional.of", CostRule::Unit, of, &["(A)optional<A>"]),
    Row(
        "optional.none",
        CostRule::Unit,
        |_| Ok(Value::Optional(None)),
        &["()optional<A>"],
    ),
    Row(
        "optional.ofNonZeroValue",
        CostRule::Unit,
        of_non_zero,
        &["(A)optional<A>"],
    ),
    Row(
        "optional.unwrap",
        CostRule::Items,
        unwrap_all,
        &["(list<optional<A>>)list<A>"],
    ),
    Row(
        "unwrapOpt",
        CostRule::Items,
        unwrap_all,
        &["list<optional<A>>.()list<A>"],
    ),
    Row(
        "hasValue",
        CostRule::Unit,
        has_value,
        &["optional<A>.()bool"],
    ),
    Row("value", CostRule::Unit, value, &["optional<A>.()A"]),
    Row(
        "or",
        CostRule::Unit,
        or,
        &["optional<A>.(optional<A>)optional<A>"],
    ),
    Row("orValue", CostRule::Unit, or_value, &["optional<A>.(A)A"]),
];

fn of(args: &mut [Value]) -> Outcome {
    args.first()
        .cloned()
        .map_or_else(no_overload, |value| Ok(Value::some(value)))
}

fn of_non_zero(args: &mut [Value]) -> Outcome {
    match &*args {
        [value] if value.is_zero() => Ok(Value::Optional(None)),
        _ => of(args),
    }
}

fn unwrap_all(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let mut items = Vec::new();
    for item in list.iter() {
        match item {
            Value::Optional(None) => {}
            Value::Optional(Some(inner)) => items.push((*inner).clone()),
            _ => return no_overload(),
        }
    }
    Ok(Value::List(List::from(items)))
}

fn has_value(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Optional(inner)] => Ok(Value::Bool(inner.is_some())),
        _ => no_overload(),
    }
}

fn value(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Optional(Some(inner))] => Ok((**inner).clone()),
        [Value::Optional(None)] => Err(EvalError::failed("optional.none() dereference")),
        _ => no_overload(),
    }
}

fn or(args: &mut [Value]) -> Outcome {
    match &*args {
        [some @ Value::Optional(Some(_)), _] => Ok(some.clone()),
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        _ => no_overload(),
    }
}

fn or_value(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Optional(Some(inner)), _] => Ok((**inner).clone()),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => no_overload(),
    }
}
