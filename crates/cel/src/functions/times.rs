//! Parts of times and durations.

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::{Timestamp, Value, zone_offset};

const ON_TIME: &[&str] = &["timestamp.()int", "timestamp.(string)int"];
const ON_BOTH: &[&str] = &["timestamp.()int", "timestamp.(string)int", "duration.()int"];

pub(super) const ROWS: &[Row] = &[
    Row(
        "getFullYear",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).year, 0),
        ON_TIME,
    ),
    Row(
        "getMonth",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).month - 1, 0),
        ON_TIME,
    ),
    Row(
        "getDate",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).day, 0),
        ON_TIME,
    ),
    Row(
        "getDayOfMonth",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).day - 1, 0),
        ON_TIME,
    ),
    Row(
        "getDayOfYear",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).day_of_year, 0),
        ON_TIME,
    ),
    Row(
        "getDayOfWeek",
        CostRule::Unit,
        |args| part(args, |time, zone| time.civil(zone).day_of_week, 0),
        ON_TIME,
    ),
    Row(
        "getHours",
        CostRule::Unit,
        |args| {
            part(
                args,
                |time, zone| time.civil(zone).second_of_day / 3600,
                3_600_000_000_000,
            )
        },
        ON_BOTH,
    ),
    Row(
        "getMinutes",
        CostRule::Unit,
        |args| {
            part(
                args,
                |time, zone| time.civil(zone).second_of_day / 60 % 60,
                60_000_000_000,
            )
        },
        ON_BOTH,
    ),
    Row(
        "getSeconds",
        CostRule::Unit,
        |args| {
            part(
                args,
                |time, zone| time.civil(zone).second_of_day % 60,
                1_000_000_000,
            )
        },
        ON_BOTH,
    ),
    Row(
        "getMilliseconds",
        CostRule::Unit,
        |args| {
            part(
                args,
                |time, _| i64::from(time.nanos() / 1_000_000),
                1_000_000,
            )
        },
        ON_BOTH,
    ),
];

/// A part of a time in a zone, or how often `unit` fits into a duration.
fn part(args: &[Value], of: fn(Timestamp, i64) -> i64, unit: i64) -> Outcome {
    match args {
        [Value::Timestamp(time)] => Ok(Value::Int(of(*time, 0))),
        [Value::Timestamp(time), Value::String(zone)] => {
            let offset = zone_offset(zone, *time)
                .ok_or_else(|| EvalError::failed(format!("unknown time zone {}", &**zone)))?;
            Ok(Value::Int(of(*time, offset)))
        }
        [Value::Duration(nanos)] if unit > 0 => Ok(Value::Int(nanos / unit)),
        _ => no_overload(),
    }
}
