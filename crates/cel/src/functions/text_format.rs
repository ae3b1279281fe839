//! `"%s is %d".format([..])`.

use super::{Outcome, no_overload};
use crate::error::EvalError;
use crate::value::{List, Value, double_text, show};

/// Most digits after the point that a format may ask for.
const PRECISION_LIMIT: usize = 1000;

pub(super) fn format(args: &mut [Value]) -> Outcome {
    let [Value::String(text), Value::List(list)] = &*args else {
        return no_overload();
    };
    let mut out = String::new();
    let mut next = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let precision = precision(&mut chars)?;
        let verb = chars.next().ok_or_else(|| {
            EvalError::failed("could not parse formatting clause: unexpected end of string")
        })?;
        out.push_str(&one(list, next, verb, precision)?);
        next += 1;
    }
    Ok(Value::from(out))
}

fn precision(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<Option<usize>, EvalError> {
    if chars.next_if_eq(&'.').is_none() {
        return Ok(None);
    }
    let mut digits = String::new();
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    digits
        .parse()
        .ok()
        .filter(|precision| *precision <= PRECISION_LIMIT)
        .map(Some)
        .ok_or_else(|| {
            EvalError::failed(
                "error while parsing precision: could not find end of precision specifier",
            )
        })
}

fn one(list: &List, at: usize, verb: char, precision: Option<usize>) -> Result<String, EvalError> {
    let value = list
        .get(at)
        .ok_or_else(|| EvalError::failed(format!("index {at} out of range")))?;
    let wrong = |clause: &str| {
        EvalError::failed(format!(
            "error during formatting: {clause} clause can only be used on {}, was given {}",
            allowed(verb),
            value.ty().base_name()
        ))
    };
    match verb {
        's' => Ok(shown(&value)),
        'd' => match &value {
            Value::Int(_) | Value::Uint(_) => Ok(show(&value)),
            Value::Double(number) if !number.is_finite() => Ok(double_name(*number)),
            _ => Err(wrong("decimal")),
        },
        'f' => {
            let number = double(&value).ok_or_else(|| wrong("fixed-point"))?;
            Ok(if number.is_finite() {
                format!("{number:.*}", precision.unwrap_or(6))
            } else {
                double_name(number)
            })
        }
        'e' => {
            let number = double(&value).ok_or_else(|| wrong("scientific"))?;
            Ok(if number.is_finite() {
                scientific(number, precision.unwrap_or(6))
            } else {
                double_name(number)
            })
        }
        'b' => match &value {
            Value::Int(number) => Ok(signed(*number, |n| format!("{n:b}"))),
            Value::Uint(number) => Ok(format!("{number:b}")),
            Value::Bool(value) => Ok(u8::from(*value).to_string()),
            _ => Err(wrong("binary")),
        },
        'x' | 'X' => hex(&value, verb == 'X').ok_or_else(|| wrong("hex")),
        'o' => match &value {
            Value::Int(number) => Ok(signed(*number, |n| format!("{n:o}"))),
            Value::Uint(number) => Ok(format!("{number:o}")),
            _ => Err(wrong("octal")),
        },
        other => Err(EvalError::failed(format!(
            "could not parse formatting clause: unrecognized formatting clause {:?}",
            other.to_string()
        ))),
    }
}

fn allowed(verb: char) -> &'static str {
    match verb {
        'b' => "integers and bools",
        'x' | 'X' => "integers, byte buffers, and strings",
        'f' | 'e' => "doubles",
        _ => "integers",
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        _ => None,
    }
}

fn double_name(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number > 0.0 {
        "Infinity".to_owned()
    } else {
        "-Infinity".to_owned()
    }
}

fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn signed(number: i64, print: fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", print(number.unsigned_abs()))
}

fn hex(value: &Value, is_upper: bool) -> Option<String> {
    let bytes = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let text = match value {
        Value::Int(number) => signed(*number, |n| format!("{n:x}")),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(raw) => bytes(raw),
        _ => return None,
    };
    Some(if is_upper {
        text.to_ascii_uppercase()
    } else {
        text
    })
}

/// A value for `%s`; strings inside lists and maps are not quoted there.
fn shown(value: &Value) -> String {
    match value {
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| shown(&item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries()
                .iter()
                .map(|(key, value)| format!("{}: {}", shown(key), shown(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Double(number) if !number.is_finite() => double_name(*number),
        Value::Double(number) => double_text(*number),
        other => show(other),
    }
}
