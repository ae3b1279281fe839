//! Operators.

use std::cmp::Ordering;

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::{List, Map, Value, compare, equals};

const COMPARABLE: &[&str] = &[
    "(bool,bool)bool",
    "(int,int)bool",
    "(int,double)bool",
    "(int,uint)bool",
    "(uint,uint)bool",
    "(uint,double)bool",
    "(uint,int)bool",
    "(double,double)bool",
    "(double,int)bool",
    "(double,uint)bool",
    "(string,string)bool",
    "(bytes,bytes)bool",
    "(timestamp,timestamp)bool",
    "(duration,duration)bool",
];

pub(super) const ROWS: &[Row] = &[
    Row("_==_", CostRule::Equality, equal, &["(A,A)bool"]),
    Row("_!=_", CostRule::Equality, not_equal, &["(A,A)bool"]),
    Row("_<_", CostRule::Order, less, COMPARABLE),
    Row("_<=_", CostRule::Order, less_or_equal, COMPARABLE),
    Row("_>_", CostRule::Order, greater, COMPARABLE),
    Row("_>=_", CostRule::Order, greater_or_equal, COMPARABLE),
    Row(
        "_+_",
        CostRule::Add,
        add,
        &[
            "(int,int)int",
            "(uint,uint)uint",
            "(double,double)double",
            "(string,string)string",
            "(bytes,bytes)bytes",
            "(list<A>,list<A>)list<A>",
            "(timestamp,duration)timestamp",
            "(duration,timestamp)timestamp",
            "(duration,duration)duration",
        ],
    ),
    Row(
        "_-_",
        CostRule::Unit,
        subtract,
        &[
            "(int,int)int",
            "(uint,uint)uint",
            "(double,double)double",
            "(timestamp,timestamp)duration",
            "(timestamp,duration)timestamp",
            "(duration,duration)duration",
        ],
    ),
    Row(
        "_*_",
        CostRule::Unit,
        multiply,
        &["(int,int)int", "(uint,uint)uint", "(double,double)double"],
    ),
    Row(
        "_/_",
        CostRule::Unit,
        divide,
        &["(int,int)int", "(uint,uint)uint", "(double,double)double"],
    ),
    Row(
        "_%_",
        CostRule::Unit,
        remainder,
        &["(int,int)int", "(uint,uint)uint"],
    ),
    Row(
        "-_",
        CostRule::Unit,
        negate,
        &["(int)int", "(double)double"],
    ),
    Row("!_", CostRule::Unit, not, &["(bool)bool"]),
    Row(
        "_&&_",
        CostRule::Logic,
        |_| no_overload(),
        &["(bool,bool)bool"],
    ),
    Row(
        "_||_",
        CostRule::Logic,
        |_| no_overload(),
        &["(bool,bool)bool"],
    ),
    Row(
        "_?_:_",
        CostRule::Logic,
        |_| no_overload(),
        &["(bool,A,A)A"],
    ),
    Row(
        "@not_strictly_false",
        CostRule::Unit,
        |_| no_overload(),
        &["(bool)bool"],
    ),
    Row(
        "@in",
        CostRule::In,
        is_in,
        &["(A,list<A>)bool", "(A,map<A,B>)bool"],
    ),
    Row(
        "_[_]",
        CostRule::Unit,
        index,
        &[
            "(list<A>,int)A",
            "(map<A,B>,A)B",
            "(optional<list<A>>,int)optional<A>",
            "(optional<map<A,B>>,A)optional<B>",
        ],
    ),
    Row(
        "_[?_]",
        CostRule::Unit,
        optional_index,
        &[
            "(list<A>,int)optional<A>",
            "(map<A,B>,A)optional<B>",
            "(optional<list<A>>,int)optional<A>",
            "(optional<map<A,B>>,A)optional<B>",
        ],
    ),
    Row(
        "cel.@mapInsert",
        CostRule::Unit,
        map_insert,
        &["(map<A,B>,A,B)map<A,B>", "(map<A,B>,map<A,B>)map<A,B>"],
    ),
];

fn equal(args: &mut [Value]) -> Outcome {
    match &*args {
        [a, b] => Ok(Value::Bool(equals(a, b))),
        _ => no_overload(),
    }
}

fn not_equal(args: &mut [Value]) -> Outcome {
    match &*args {
        [a, b] => Ok(Value::Bool(!equals(a, b))),
        _ => no_overload(),
    }
}

fn ordered(args: &[Value], holds: fn(Ordering) -> bool) -> Outcome {
    let [a, b] = args else {
        return no_overload();
    };
    if let (Value::Double(a), Value::Double(b)) = (a, b)
        && (a.is_nan() || b.is_nan())
    {
        return Ok(Value::Bool(false));
    }
    compare(a, b).map_or_else(no_overload, |order| Ok(Value::Bool(holds(order))))
}

fn less(args: &mut [Value]) -> Outcome {
    ordered(args, Ordering::is_lt)
}

fn less_or_equal(args: &mut [Value]) -> Outcome {
    ordered(args, Ordering::is_le)
}

fn greater(args: &mut [Value]) -> Outcome {
    ordered(args, Ordering::is_gt)
}

fn greater_or_equal(args: &mut [Value]) -> Outcome {
    ordered(args, Ordering::is_ge)
}

fn take(value: &mut Value) -> Value {
    std::mem::replace(value, Value::Null)
}

/// Both arguments by value, so that a list that is nobody else's grows in place.
fn pair(args: &mut [Value]) -> Option<(Value, Value)> {
    let [a, b] = args else {
        return None;
    };
    Some((take(a), take(b)))
}

fn checked<T>(value: Option<T>, wrap: fn(T) -> Value) -> Outcome {
    value.map(wrap).ok_or_else(EvalError::overflow)
}

fn add(args: &mut [Value]) -> Outcome {
    match pair(args) {
        Some((Value::Int(a), Value::Int(b))) => checked(a.checked_add(b), Value::Int),
        Some((Value::Uint(a), Value::Uint(b))) => checked(a.checked_add(b), Value::Uint),
        Some((Value::Double(a), Value::Double(b))) => Ok(Value::Double(a + b)),
        Some((Value::String(a), Value::String(b))) => Ok(Value::from(format!("{}{}", &*a, &*b))),
        Some((Value::Bytes(a), Value::Bytes(b))) => Ok(Value::Bytes([&*a, &*b].concat().into())),
        Some((Value::List(a), Value::List(b))) => Ok(Value::List(a.concat(&b))),
        Some(
            (Value::Timestamp(time), Value::Duration(by))
            | (Value::Duration(by), Value::Timestamp(time)),
        ) => checked(time.plus(by), Value::Timestamp),
        Some((Value::Duration(a), Value::Duration(b))) => {
            checked(a.checked_add(b), Value::Duration)
        }
        _ => no_overload(),
    }
}

fn subtract(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(a), Value::Int(b)] => checked(a.checked_sub(*b), Value::Int),
        [Value::Uint(a), Value::Uint(b)] => checked(a.checked_sub(*b), Value::Uint),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Timestamp(a), Value::Timestamp(b)] => checked(a.since(*b), Value::Duration),
        [Value::Timestamp(a), Value::Duration(b)] => {
            checked(b.checked_neg().and_then(|by| a.plus(by)), Value::Timestamp)
        }
        [Value::Duration(a), Value::Duration(b)] => checked(a.checked_sub(*b), Value::Duration),
        _ => no_overload(),
    }
}

fn multiply(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(a), Value::Int(b)] => checked(a.checked_mul(*b), Value::Int),
        [Value::Uint(a), Value::Uint(b)] => checked(a.checked_mul(*b), Value::Uint),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => no_overload(),
    }
}

fn divide(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::failed("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => checked(a.checked_div(*b), Value::Int),
        [Value::Uint(a), Value::Uint(b)] => checked(a.checked_div(*b), Value::Uint),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => no_overload(),
    }
}

fn remainder(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::failed("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => checked(a.checked_rem(*b), Value::Int),
        [Value::Uint(a), Value::Uint(b)] => checked(a.checked_rem(*b), Value::Uint),
        _ => no_overload(),
    }
}

fn negate(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(a)] => checked(a.checked_neg(), Value::Int),
        [Value::Double(a)] => Ok(Value::Double(-a)),
        _ => no_overload(),
    }
}

fn not(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Bool(a)] => Ok(Value::Bool(!a)),
        _ => no_overload(),
    }
}

fn is_in(args: &mut [Value]) -> Outcome {
    match &*args {
        [item, Value::List(list)] => Ok(Value::Bool(contains(list, item))),
        [key, Value::Map(map)] => Ok(Value::Bool(map.find(key).is_some())),
        _ => no_overload(),
    }
}

/// Whether a list has an item.
pub(crate) fn contains(list: &List, item: &Value) -> bool {
    list.iter().any(|known| equals(&known, item))
}

fn place(index: &Value) -> Option<i64> {
    match index {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) if index.fract() == 0.0 => Some(*index as i64),
        _ => None,
    }
}

fn element(container: &Value, index: &Value) -> Result<Option<Value>, EvalError> {
    match container {
        Value::List(list) => {
            let index = place(index).ok_or_else(EvalError::no_such_overload)?;
            Ok(usize::try_from(index)
                .ok()
                .and_then(|index| list.get(index)))
        }
        Value::Map(map) => Ok(map.get(index)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn missing(container: &Value, index: &Value) -> EvalError {
    match container {
        Value::List(_) => EvalError::failed(format!(
            "index out of bounds: {}",
            crate::value::show(index)
        )),
        _ => EvalError::no_such_key(crate::value::show(index)),
    }
}

fn index(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Optional(None), _] => Ok(Value::Optional(None)),
        [Value::Optional(Some(container)), index] => {
            Ok(element(container, index)?.map_or(Value::Optional(None), Value::some))
        }
        [container, index] => element(container, index)?.ok_or_else(|| missing(container, index)),
        _ => no_overload(),
    }
}

fn optional_index(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Optional(None), _] => Ok(Value::Optional(None)),
        [Value::Optional(Some(container)), index] => {
            Ok(element(container, index)?.map_or(Value::Optional(None), Value::some))
        }
        [Value::Map(map), key] => Ok(map.find(key).map_or(Value::Optional(None), Value::some)),
        [container, index] => {
            Ok(element(container, index)?.map_or(Value::Optional(None), Value::some))
        }
        _ => no_overload(),
    }
}

fn inserted(map: Map, key: &Value, value: Value) -> Result<Map, EvalError> {
    map.insert(key, value).ok_or_else(|| {
        EvalError::failed(format!(
            "insert failed: key {} already exists",
            crate::value::show(key)
        ))
    })
}

fn map_insert(args: &mut [Value]) -> Outcome {
    let mut args = args.iter_mut().map(take);
    match (args.next(), args.next(), args.next()) {
        (Some(Value::Map(map)), Some(key), Some(value)) => {
            inserted(map, &key, value).map(Value::Map)
        }
        (Some(Value::Map(mut map)), Some(Value::Map(more)), None) => {
            for (key, value) in more.entries() {
                map = inserted(map, &key, value)?;
            }
            Ok(Value::Map(map))
        }
        _ => no_overload(),
    }
}
