//! Quantities, versions and formats.

use std::cmp::Ordering;
use std::sync::Arc;

use windlass_core::{Quantity, QuantityFormat};

use super::{CostRule, Outcome, Row, no_overload};
use crate::error::EvalError;
use crate::value::format::{self, Format};
use crate::value::{Semver, Value, normalized};

pub(super) const ROWS: &[Row] = &[
    Row(
        "quantity",
        CostRule::Read(1.0),
        quantity,
        &["(string)quantity"],
    ),
    Row(
        "isQuantity",
        CostRule::Read(1.0),
        is_quantity,
        &["(string)bool"],
    ),
    Row("sign", CostRule::Unit, sign, &["quantity.()int"]),
    Row("asInteger", CostRule::Unit, as_integer, &["quantity.()int"]),
    Row(
        "isInteger",
        CostRule::Unit,
        is_integer,
        &["quantity.()bool"],
    ),
    Row(
        "asApproximateFloat",
        CostRule::Unit,
        as_float,
        &["quantity.()double"],
    ),
    Row(
        "isGreaterThan",
        CostRule::Unit,
        |args| ordered(args, Ordering::is_gt),
        &["quantity.(quantity)bool", "semver.(semver)bool"],
    ),
    Row(
        "isLessThan",
        CostRule::Unit,
        |args| ordered(args, Ordering::is_lt),
        &["quantity.(quantity)bool", "semver.(semver)bool"],
    ),
    Row(
        "compareTo",
        CostRule::Unit,
        compare_to,
        &["quantity.(quantity)int", "semver.(semver)int"],
    ),
    Row(
        "add",
        CostRule::Unit,
        |args| change(args, false),
        &["quantity.(quantity)quantity", "quantity.(int)quantity"],
    ),
    Row(
        "sub",
        CostRule::Unit,
        |args| change(args, true),
        &["quantity.(quantity)quantity", "quantity.(int)quantity"],
    ),
    Row(
        "semver",
        CostRule::Read(1.0),
        semver,
        &["(string)semver", "(string,bool)semver"],
    ),
    Row(
        "isSemver",
        CostRule::Read(1.0),
        is_semver,
        &["(string)bool", "(string,bool)bool"],
    ),
    Row(
        "major",
        CostRule::Unit,
        |args| part(args, |version| version.major),
        &["semver.()int"],
    ),
    Row(
        "minor",
        CostRule::Unit,
        |args| part(args, |version| version.minor),
        &["semver.()int"],
    ),
    Row(
        "patch",
        CostRule::Unit,
        |args| part(args, |version| version.patch),
        &["semver.()int"],
    ),
    Row(
        "format.named",
        CostRule::Unit,
        named,
        &["(string)optional<format>"],
    ),
    Row(
        "format.dns1123Label",
        CostRule::Unit,
        |_| constant("dns1123Label"),
        &["()format"],
    ),
    Row(
        "format.dns1123Subdomain",
        CostRule::Unit,
        |_| constant("dns1123Subdomain"),
        &["()format"],
    ),
    Row(
        "format.dns1035Label",
        CostRule::Unit,
        |_| constant("dns1035Label"),
        &["()format"],
    ),
    Row(
        "format.qualifiedName",
        CostRule::Unit,
        |_| constant("qualifiedName"),
        &["()format"],
    ),
    Row(
        "format.dns1123LabelPrefix",
        CostRule::Unit,
        |_| constant("dns1123LabelPrefix"),
        &["()format"],
    ),
    Row(
        "format.dns1123SubdomainPrefix",
        CostRule::Unit,
        |_| constant("dns1123SubdomainPrefix"),
        &["()format"],
    ),
    Row(
        "format.dns1035LabelPrefix",
        CostRule::Unit,
        |_| constant("dns1035LabelPrefix"),
        &["()format"],
    ),
    Row(
        "format.labelValue",
        CostRule::Unit,
        |_| constant("labelValue"),
        &["()format"],
    ),
    Row(
        "format.uri",
        CostRule::Unit,
        |_| constant("uri"),
        &["()format"],
    ),
    Row(
        "format.uuid",
        CostRule::Unit,
        |_| constant("uuid"),
        &["()format"],
    ),
    Row(
        "format.byte",
        CostRule::Unit,
        |_| constant("byte"),
        &["()format"],
    ),
    Row(
        "format.date",
        CostRule::Unit,
        |_| constant("date"),
        &["()format"],
    ),
    Row(
        "format.datetime",
        CostRule::Unit,
        |_| constant("datetime"),
        &["()format"],
    ),
    Row(
        "validate",
        CostRule::Validate,
        validate,
        &["format.(string)optional<list<string>>"],
    ),
];

fn quantity(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => text
            .parse()
            .map(|quantity| Value::Quantity(Arc::new(quantity)))
            .map_err(|_| {
                EvalError::failed(
                    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                )
            }),
        _ => no_overload(),
    }
}

fn is_quantity(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(text)] => Ok(Value::Bool(text.parse::<Quantity>().is_ok())),
        _ => no_overload(),
    }
}

fn sign(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Quantity(quantity)] => Ok(Value::Int(
            i64::from(!quantity.is_zero()) * if quantity.is_negative() { -1 } else { 1 },
        )),
        _ => no_overload(),
    }
}

/// The amount in whole units, if it is whole and fits.
fn whole(quantity: &Quantity) -> Option<i64> {
    let units = quantity.value();
    (Quantity::new(units, QuantityFormat::DecimalSi) == *quantity).then_some(units)
}

fn as_integer(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Quantity(quantity)] => whole(quantity)
            .map(Value::Int)
            .ok_or_else(|| EvalError::failed("cannot convert value to integer")),
        _ => no_overload(),
    }
}

fn is_integer(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Quantity(quantity)] => Ok(Value::Bool(whole(quantity).is_some())),
        _ => no_overload(),
    }
}

fn as_float(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Quantity(quantity)] => {
            let whole = quantity.value();
            let float = if Quantity::new(whole, QuantityFormat::DecimalSi) == **quantity {
                whole as f64
            } else {
                quantity.milli_value() as f64 / 1000.0
            };
            Ok(Value::Double(float))
        }
        _ => no_overload(),
    }
}

fn order(args: &[Value]) -> Option<Ordering> {
    match args {
        [Value::Quantity(a), Value::Quantity(b)] => Some(a.cmp(b)),
        [Value::Semver(a), Value::Semver(b)] => Some(a.order(b)),
        _ => None,
    }
}

fn ordered(args: &[Value], holds: fn(Ordering) -> bool) -> Outcome {
    order(args).map_or_else(no_overload, |order| Ok(Value::Bool(holds(order))))
}

fn compare_to(args: &mut [Value]) -> Outcome {
    order(args).map_or_else(no_overload, |order| Ok(Value::Int(order as i64)))
}

fn change(args: &[Value], is_negative: bool) -> Outcome {
    let (quantity, by) = match args {
        [Value::Quantity(quantity), Value::Quantity(by)] => (quantity, (**by).clone()),
        [Value::Quantity(quantity), Value::Int(by)] => {
            (quantity, Quantity::new(*by, QuantityFormat::DecimalSi))
        }
        _ => return no_overload(),
    };
    let mut sum = (**quantity).clone();
    if is_negative {
        sum -= &by;
    } else {
        sum += &by;
    }
    Ok(Value::Quantity(Arc::new(sum)))
}

fn parsed(args: &[Value]) -> Option<Result<Semver, String>> {
    let text = match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => (**text).to_owned(),
        [Value::String(text), Value::Bool(true)] => normalized(text),
        _ => return None,
    };
    Some(text.parse::<Semver>().map_err(|error| error.to_string()))
}

fn semver(args: &mut [Value]) -> Outcome {
    match parsed(args) {
        Some(Ok(version)) => Ok(Value::Semver(Arc::new(version))),
        Some(Err(why)) => Err(EvalError::Failed(why)),
        None => no_overload(),
    }
}

fn is_semver(args: &mut [Value]) -> Outcome {
    parsed(args).map_or_else(no_overload, |version| Ok(Value::Bool(version.is_ok())))
}

fn part(args: &[Value], of: fn(&Semver) -> u64) -> Outcome {
    match args {
        [Value::Semver(version)] => Ok(Value::Int(i64::try_from(of(version)).unwrap_or(i64::MAX))),
        _ => no_overload(),
    }
}

fn constant(name: &str) -> Outcome {
    format::named(name).map_or_else(no_overload, |format| Ok(Value::Format(format)))
}

fn named(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(name)] => Ok(format::named(name).map_or(Value::Optional(None), |format| {
            Value::some(Value::Format(format))
        })),
        _ => no_overload(),
    }
}

fn validate(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Format(format), Value::String(text)] => Ok(findings(format, text)),
        _ => no_overload(),
    }
}

fn findings(format: &Format, text: &str) -> Value {
    let findings = (format.validate)(text);
    if findings.is_empty() {
        return Value::Optional(None);
    }
    Value::some(Value::list(findings.into_iter().map(Value::from).collect()))
}
