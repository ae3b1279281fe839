//! Regular expressions.

use regex::{Regex, RegexBuilder};

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::Value;

/// The largest compiled pattern.
const PATTERN_BYTES_LIMIT: usize = 1 << 20;

pub(super) const ROWS: &[Row] = &[
    Row(
        "matches",
        CostRule::Match,
        matches,
        &["string.(string)bool", "(string,string)bool"],
    ),
    Row("find", CostRule::Match, find, &["string.(string)string"]),
    Row(
        "findAll",
        CostRule::Match,
        find_all,
        &[
            "string.(string)list<string>",
            "string.(string,int)list<string>",
        ],
    ),
];

/// A pattern, compiled within a limit.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES_LIMIT)
        .build()
        .map_err(|error| format!("error parsing regexp: {error}"))
}

fn pattern(text: &str) -> Result<Regex, EvalError> {
    compile(text)
        .map_err(|_| EvalError::failed(format!("error parsing regexp: invalid pattern: `{text}`")))
}

fn matches(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text), Value::String(regex)] => {
            Ok(Value::Bool(pattern(regex)?.is_match(text)))
        }
        _ => no_overload(),
    }
}

fn find(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text), Value::String(regex)] => Ok(Value::from(
            pattern(regex)?
                .find(text)
                .map_or("", |found| found.as_str()),
        )),
        _ => no_overload(),
    }
}

fn find_all(args: &mut [Value]) -> Outcome {
    let (text, regex, limit) = match &*args {
        [Value::String(text), Value::String(regex)] => (text, regex, usize::MAX),
        [Value::String(text), Value::String(regex), Value::Int(limit)] => {
            (text, regex, usize::try_from(*limit).unwrap_or(usize::MAX))
        }
        _ => return no_overload(),
    };
    let regex = pattern(regex)?;
    let found = regex
        .find_iter(text)
        .take(limit)
        .map(|found| Value::from(found.as_str()));
    Ok(Value::list(found.collect()))
}
