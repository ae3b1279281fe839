//! Values as text.

use std::fmt::Write as _;

use windlass_core::quote;

use super::Value;

/// A double as Go's shortest form prints it.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let exponent = if value == 0.0 {
        0
    } else {
        let text = format!("{value:e}");
        text.split('e')
            .nth(1)
            .and_then(|e| e.parse::<i32>().ok())
            .unwrap_or(0)
    };
    if (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A value as it stands in error messages.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::String(text) => (**text).to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanos) => super::duration_text(*nanos),
        Value::Quantity(quantity) => quantity.to_string(),
        Value::Semver(version) => version.to_string(),
        Value::Url(url) => url.to_string(),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        Value::Format(format) => format.name.to_owned(),
        Value::Message(message) => message.name().to_owned(),
        Value::Authorization(value) => value.ty().name().to_owned(),
        Value::Type(ty) => ty.base_name(),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional.of({})", show(inner)),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(|item| nested(&item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut out = String::from("{");
            for (at, (key, value)) in map.entries().iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                let _ = write!(out, "{comma}{}: {}", nested(key), nested(value));
            }
            out.push('}');
            out
        }
    }
}

fn nested(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => show(other),
    }
}
