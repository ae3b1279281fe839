//! The authorization library, and the escape of JSON pointers for patches.

use windlass_core::names;

use super::{CostRule, Outcome, Row, no_overload};
use crate::authorization::{AccessQuestion, Authorization};
use crate::error::EvalError;
use crate::value::Value;

/// The only function that exists just where patches are constructed.
pub(crate) const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

pub(super) const ROWS: &[Row] = &[
    Row(
        "path",
        CostRule::Unit,
        path,
        &["authorizer.(string)path_check"],
    ),
    Row(
        "group",
        CostRule::Unit,
        group,
        &["authorizer.(string)group_check"],
    ),
    Row(
        "serviceAccount",
        CostRule::Unit,
        service_account,
        &["authorizer.(string,string)authorizer"],
    ),
    Row(
        "resource",
        CostRule::Unit,
        resource,
        &["group_check.(string)resource_check"],
    ),
    Row(
        "subresource",
        CostRule::Unit,
        |args| narrowed(args, |question, text| question.subresource = text),
        NARROWED,
    ),
    Row(
        "namespace",
        CostRule::Unit,
        |args| narrowed(args, |question, text| question.namespace = text),
        NARROWED,
    ),
    Row(
        "name",
        CostRule::Unit,
        |args| narrowed(args, |question, text| question.name = text),
        NARROWED,
    ),
    Row(
        "fieldSelector",
        CostRule::Selector,
        |args| narrowed(args, |question, text| question.field_selector = text),
        NARROWED,
    ),
    Row(
        "labelSelector",
        CostRule::Selector,
        |args| narrowed(args, |question, text| question.label_selector = text),
        NARROWED,
    ),
    // The evaluation knows the authorizer, so it answers instead of this row.
    Row(
        "check",
        CostRule::AccessCheck,
        |_| no_overload(),
        &[
            "path_check.(string)decision",
            "resource_check.(string)decision",
        ],
    ),
    Row("allowed", CostRule::Unit, allowed, &["decision.()bool"]),
    Row("errored", CostRule::Unit, errored, &["decision.()bool"]),
    Row("error", CostRule::Unit, error, &["decision.()string"]),
    Row("reason", CostRule::Unit, reason, &["decision.()string"]),
    Row(
        ESCAPE_KEY,
        CostRule::Scan(1.0),
        escape_key,
        &["(string)string"],
    ),
];

const NARROWED: &[&str] = &["resource_check.(string)resource_check"];

fn path(args: &mut [Value]) -> Outcome {
    let (Authorization::Authorizer(question), path) = asked(args)? else {
        return no_overload();
    };
    if path.trim().is_empty() {
        return Err(EvalError::failed("path must not be empty"));
    }
    let question = AccessQuestion {
        path: Some(path),
        ..question
    };
    Ok(Authorization::PathCheck(question).into())
}

fn group(args: &mut [Value]) -> Outcome {
    let (Authorization::Authorizer(question), group) = asked(args)? else {
        return no_overload();
    };
    Ok(Authorization::GroupCheck(AccessQuestion { group, ..question }).into())
}

fn service_account(args: &mut [Value]) -> Outcome {
    let [
        Value::Authorization(value),
        Value::String(namespace),
        Value::String(name),
    ] = &*args
    else {
        return no_overload();
    };
    if !matches!(&**value, Authorization::Authorizer(_)) {
        return no_overload();
    }
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(EvalError::failed("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(EvalError::failed("Invalid service account namespace"));
    }
    let question = AccessQuestion {
        service_account: Some(((**namespace).to_owned(), (**name).to_owned())),
        ..AccessQuestion::default()
    };
    Ok(Authorization::Authorizer(question).into())
}

fn resource(args: &mut [Value]) -> Outcome {
    let (Authorization::GroupCheck(question), resource) = asked(args)? else {
        return no_overload();
    };
    if resource.trim().is_empty() {
        return Err(EvalError::failed("resource must not be empty"));
    }
    let question = AccessQuestion {
        resource,
        ..question
    };
    Ok(Authorization::ResourceCheck(question).into())
}

fn narrowed(args: &mut [Value], set: impl Fn(&mut AccessQuestion, String)) -> Outcome {
    let (Authorization::ResourceCheck(mut question), text) = asked(args)? else {
        return no_overload();
    };
    set(&mut question, text);
    Ok(Authorization::ResourceCheck(question).into())
}

/// The target and the text of a call with one argument.
fn asked(args: &[Value]) -> Result<(Authorization, String), EvalError> {
    match args {
        [Value::Authorization(target), Value::String(text)] => {
            Ok(((**target).clone(), (**text).to_owned()))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn decided<T: Into<Value>>(
    args: &[Value],
    read: impl Fn(&crate::authorization::AccessDecision) -> T,
) -> Outcome {
    match args {
        [Value::Authorization(value)] => match &**value {
            Authorization::Decision(decision) => Ok(read(decision).into()),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn allowed(args: &mut [Value]) -> Outcome {
    decided(args, |decision| decision.is_allowed)
}

fn errored(args: &mut [Value]) -> Outcome {
    decided(args, |decision| decision.error.is_some())
}

fn error(args: &mut [Value]) -> Outcome {
    decided(args, |decision| decision.error.clone().unwrap_or_default())
}

fn reason(args: &mut [Value]) -> Outcome {
    decided(args, |decision| decision.reason.clone())
}

fn escape_key(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::String(key)] => Ok(key.replace('~', "~0").replace('/', "~1").into()),
        _ => no_overload(),
    }
}
