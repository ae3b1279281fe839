//! Conversions between types, and sizes.

use std::sync::Arc;

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::types::Type;
use crate::value::{
    Timestamp, Value, double_text, duration_text, parse_duration, parse_timestamp, show,
};

pub(super) const ROWS: &[Row] = &[
    Row(
        "size",
        CostRule::Unit,
        size,
        &[
            "(string)int",
            "(bytes)int",
            "(list<A>)int",
            "(map<A,B>)int",
            "string.()int",
            "bytes.()int",
            "list<A>.()int",
            "map<A,B>.()int",
        ],
    ),
    Row(
        "int",
        CostRule::Unit,
        to_int,
        &[
            "(int)int",
            "(uint)int",
            "(double)int",
            "(string)int",
            "(timestamp)int",
            "(duration)int",
        ],
    ),
    Row(
        "uint",
        CostRule::Unit,
        to_uint,
        &["(uint)uint", "(int)uint", "(double)uint", "(string)uint"],
    ),
    Row(
        "double",
        CostRule::Unit,
        to_double,
        &[
            "(double)double",
            "(int)double",
            "(uint)double",
            "(string)double",
        ],
    ),
    Row(
        "string",
        CostRule::Conversion,
        to_string,
        &[
            "(string)string",
            "(bool)string",
            "(int)string",
            "(uint)string",
            "(double)string",
            "(bytes)string",
            "(timestamp)string",
            "(duration)string",
            "(quantity)string",
            "(semver)string",
            "(ip)string",
            "(cidr)string",
        ],
    ),
    Row(
        "bytes",
        CostRule::Conversion,
        to_bytes,
        &["(bytes)bytes", "(string)bytes"],
    ),
    Row(
        "bool",
        CostRule::Unit,
        to_bool,
        &["(bool)bool", "(string)bool"],
    ),
    Row("dyn", CostRule::Unit, identity, &["(A)dyn"]),
    Row("type", CostRule::Unit, type_of, &["(A)type<A>"]),
    Row(
        "timestamp",
        CostRule::Unit,
        to_timestamp,
        &[
            "(timestamp)timestamp",
            "(string)timestamp",
            "(int)timestamp",
        ],
    ),
    Row(
        "duration",
        CostRule::Unit,
        to_duration,
        &["(duration)duration", "(string)duration", "(int)duration"],
    ),
];

fn size(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        [Value::Map(map)] => Ok(super::int(map.len())),
        _ => no_overload(),
    }
}

fn identity(args: &mut [Value]) -> Outcome {
    args.first().cloned().map_or_else(no_overload, Ok)
}

fn type_of(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Type(_)] => Ok(Value::Type(Type::Type(Arc::new(Type::Dyn)))),
        [value] => Ok(Value::Type(value.ty())),
        _ => no_overload(),
    }
}

fn unreadable(from: &str, to: &str) -> EvalError {
    EvalError::failed(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_int(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => i64::try_from(*value)
            .map(Value::Int)
            .map_err(|_| EvalError::overflow()),
        [Value::Double(value)] if value.is_finite() && value.abs() < 9.223_372_036_854_775e18 => {
            Ok(Value::Int(value.trunc() as i64))
        }
        [Value::Double(_)] => Err(EvalError::overflow()),
        [Value::String(text)] => text.parse().map(Value::Int).map_err(|_| {
            EvalError::failed(format!(
                "strconv.ParseInt: parsing {}: invalid syntax",
                windlass_core::quote(text)
            ))
        }),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds())),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        _ => no_overload(),
    }
}

fn to_uint(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => u64::try_from(*value)
            .map(Value::Uint)
            .map_err(|_| EvalError::overflow()),
        [Value::Double(value)] if *value >= 0.0 && *value < 1.844_674_407_370_955e19 => {
            Ok(Value::Uint(value.trunc() as u64))
        }
        [Value::Double(_)] => Err(EvalError::overflow()),
        [Value::String(text)] => text.parse().map(Value::Uint).map_err(|_| {
            EvalError::failed(format!(
                "strconv.ParseUint: parsing {}: invalid syntax",
                windlass_core::quote(text)
            ))
        }),
        _ => no_overload(),
    }
}

fn to_double(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => text.parse().map(Value::Double).map_err(|_| {
            EvalError::failed(format!(
                "strconv.ParseFloat: parsing {}: invalid syntax",
                windlass_core::quote(text)
            ))
        }),
        _ => no_overload(),
    }
}

fn to_string(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ Value::String(_)] => Ok(value.clone()),
        [Value::Double(value)] => Ok(Value::from(double_text(*value))),
        [Value::Bytes(bytes)] => std::str::from_utf8(bytes)
            .map(Value::from)
            .map_err(|_| EvalError::failed("invalid UTF-8 in bytes, cannot convert to string")),
        [Value::Duration(nanos)] => Ok(Value::from(duration_text(*nanos))),
        [
            value @ (Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Timestamp(_)
            | Value::Quantity(_)
            | Value::Semver(_)
            | Value::Ip(_)
            | Value::Cidr(_)),
        ] => Ok(Value::from(show(value))),
        _ => no_overload(),
    }
}

fn to_bytes(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::String(text)] => Ok(Value::Bytes(Arc::from(text.as_bytes()))),
        _ => no_overload(),
    }
}

fn to_bool(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ Value::Bool(_)] => Ok(value.clone()),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unreadable("string", "bool")),
        },
        _ => no_overload(),
    }
}

fn to_timestamp(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ Value::Timestamp(_)] => Ok(value.clone()),
        [Value::Int(seconds)] => Timestamp::new(*seconds, 0)
            .map(Value::Timestamp)
            .ok_or_else(EvalError::overflow),
        [Value::String(text)] => parse_timestamp(text)
            .map(Value::Timestamp)
            .ok_or_else(|| unreadable("string", "google.protobuf.Timestamp")),
        _ => no_overload(),
    }
}

fn to_duration(args: &mut [Value]) -> Outcome {
    match &*args {
        [value @ Value::Duration(_)] => Ok(value.clone()),
        [Value::Int(nanos)] => Ok(Value::Duration(*nanos)),
        [Value::String(text)] => parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| unreadable("string", "google.protobuf.Duration")),
        _ => no_overload(),
    }
}
