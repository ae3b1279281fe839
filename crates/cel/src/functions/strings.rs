//! Strings.

use super::{CostRule, Outcome, Row, index, int, no_overload, text_format};
use crate::error::EvalError;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row(
        "contains",
        CostRule::Contains,
        |args| on_pair(args, |text, part| text.contains(part)),
        &["string.(string)bool"],
    ),
    Row(
        "startsWith",
        CostRule::Affix,
        |args| on_pair(args, |text, part| text.starts_with(part)),
        &["string.(string)bool"],
    ),
    Row(
        "endsWith",
        CostRule::Affix,
        |args| on_pair(args, |text, part| text.ends_with(part)),
        &["string.(string)bool"],
    ),
    Row("charAt", CostRule::Unit, char_at, &["string.(int)string"]),
    Row(
        "lowerAscii",
        CostRule::Scan(1.0),
        |args| mapped(args, str::to_ascii_lowercase),
        &["string.()string"],
    ),
    Row(
        "upperAscii",
        CostRule::Scan(1.0),
        |args| mapped(args, str::to_ascii_uppercase),
        &["string.()string"],
    ),
    Row(
        "trim",
        CostRule::Scan(1.0),
        |args| mapped(args, |text| text.trim().to_owned()),
        &["string.()string"],
    ),
    Row(
        "strings.quote",
        CostRule::Conversion,
        |args| mapped(args, windlass_core::quote),
        &["(string)string"],
    ),
    Row(
        "substring",
        CostRule::Scan(1.0),
        substring,
        &["string.(int)string", "string.(int,int)string"],
    ),
    Row(
        "replace",
        CostRule::Replace,
        replace,
        &[
            "string.(string,string)string",
            "string.(string,string,int)string",
        ],
    ),
    Row(
        "split",
        CostRule::Split,
        split,
        &[
            "string.(string)list<string>",
            "string.(string,int)list<string>",
        ],
    ),
    Row(
        "join",
        CostRule::Join,
        join,
        &["list<string>.()string", "list<string>.(string)string"],
    ),
    Row(
        "format",
        CostRule::Conversion,
        text_format::format,
        &["string.(list<dyn>)string"],
    ),
];

fn on_pair(args: &[Value], holds: fn(&str, &str) -> bool) -> Outcome {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => no_overload(),
    }
}

fn mapped(args: &[Value], change: fn(&str) -> String) -> Outcome {
    match args {
        [Value::String(text)] => Ok(Value::from(change(text))),
        _ => no_overload(),
    }
}

fn char_at(args: &mut [Value]) -> Outcome {
    let [Value::String(text), Value::Int(at)] = &*args else {
        return no_overload();
    };
    let place = index(*at)?;
    if place == text.chars().count() {
        return Ok(Value::from(""));
    }
    text.chars()
        .nth(place)
        .map(|c| Value::from(c.to_string()))
        .ok_or_else(|| EvalError::failed(format!("index out of range: {at}")))
}

fn substring(args: &mut [Value]) -> Outcome {
    let (text, start, end) = match &*args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return no_overload(),
    };
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let end = end.unwrap_or(length);
    if start < 0 || start > length {
        return Err(EvalError::failed(format!("index out of range: {start}")));
    }
    if end < 0 || end > length {
        return Err(EvalError::failed(format!("index out of range: {end}")));
    }
    if start > end {
        return Err(EvalError::failed(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let part: String = text
        .chars()
        .skip(index(start)?)
        .take(index(end - start)?)
        .collect();
    Ok(Value::from(part))
}

fn replace(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text), Value::String(from), Value::String(to)] => {
            Ok(Value::from(text.replace(&**from, to)))
        }
        [
            Value::String(text),
            Value::String(from),
            Value::String(to),
            Value::Int(times),
        ] => Ok(Value::from(match usize::try_from(*times) {
            Ok(times) => text.replacen(&**from, to, times),
            Err(_) => text.replace(&**from, to),
        })),
        _ => no_overload(),
    }
}

fn split(args: &mut [Value]) -> Outcome {
    let (text, separator, limit) = match &*args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [
            Value::String(text),
            Value::String(separator),
            Value::Int(limit),
        ] => (text, separator, *limit),
        _ => return no_overload(),
    };
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Value> = if separator.is_empty() {
        let cut = text
            .char_indices()
            .map(|(at, _)| at)
            .nth(limit - 1)
            .unwrap_or(text.len());
        let (single, rest) = text.split_at(cut);
        let mut parts: Vec<Value> = single.chars().map(|c| Value::from(c.to_string())).collect();
        if !rest.is_empty() {
            parts.push(Value::from(rest));
        }
        parts
    } else {
        text.splitn(limit, &**separator).map(Value::from).collect()
    };
    Ok(Value::list(parts))
}

fn join(args: &mut [Value]) -> Outcome {
    let (list, separator) = match &*args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_overload(),
    };
    let mut out = String::new();
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(item.as_str().ok_or_else(EvalError::no_such_overload)?);
    }
    Ok(Value::from(out))
}

/// The place of a part of a text, counted in characters.
pub(super) fn find(text: &str, part: &str, from: Option<i64>, is_last: bool) -> Outcome {
    let chars: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    let length = i64::try_from(chars.len()).unwrap_or(i64::MAX);
    if let Some(from) = from.filter(|from| *from < 0 || *from > length) {
        return Err(EvalError::failed(format!("index out of range: {from}")));
    }
    let starts_here = |at: &usize| chars[*at..].starts_with(&part);
    let last = chars.len().saturating_sub(part.len());
    if part.len() > chars.len() {
        return Ok(Value::Int(-1));
    }
    let from = from.map(index).transpose()?;
    let found = if is_last {
        (0..=last.min(from.unwrap_or(last))).rev().find(starts_here)
    } else {
        (from.unwrap_or(0)..=last).find(starts_here)
    };
    Ok(found.map_or(Value::Int(-1), int))
}
