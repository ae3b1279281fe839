//! Macros: calls that become folds.

use super::tree::{Expr, Fold, Node, RESULT};
use crate::error::Issue;
use crate::value::Value;

/// One variable of a fold, or two.
type Variables = (String, Option<String>);

/// The variable of folds whose variable is never read.
const UNUSED: &str = "#unused";

/// A call of a function without target, which may be `has`.
pub(super) fn global(at: usize, name: &str, mut args: Vec<Expr>) -> Result<Expr, Issue> {
    if name == "has" && args.len() == 1 {
        let arg = args.remove(0);
        return match arg.node {
            Node::Select {
                operand,
                field,
                is_test: false,
            } => Ok(Expr::new(
                at,
                Node::Select {
                    operand,
                    field,
                    is_test: true,
                },
            )),
            _ => Err(Issue::new(
                arg.at,
                "invalid argument to has() macro".to_owned(),
            )),
        };
    }
    Ok(Expr::call(at, name, args))
}

/// A call with a target, which may be a macro.
pub(super) fn member(
    at: usize,
    target: Expr,
    name: &str,
    args: Vec<Expr>,
    has_bind: bool,
) -> Result<Expr, Issue> {
    if has_bind
        && name == "bind"
        && args.len() == 3
        && matches!(&target.node, Node::Ident(cel) if cel == "cel")
    {
        return bind(at, args);
    }
    let expansion = match (name, args.len()) {
        ("all", 2 | 3) => all,
        ("exists", 2 | 3) => exists,
        ("exists_one" | "existsOne", 2 | 3) => exists_one,
        ("filter", 2) => filter,
        ("map", 2 | 3) => map,
        ("optMap", 2) => opt_map,
        ("optFlatMap", 2) => opt_flat_map,
        ("sortBy", 2) => sort_by,
        ("transformList", 3 | 4) => transform_list,
        ("transformMap", 3 | 4) => transform_map,
        ("transformMapEntry", 3 | 4) => transform_map_entry,
        _ => {
            return Ok(Expr::new(
                at,
                Node::Call {
                    function: name.to_owned(),
                    target: Some(Box::new(target)),
                    args,
                },
            ));
        }
    };
    expansion(at, target, args)
}

/// The parts of a fold that differ between macros.
struct Parts {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

fn fold(at: usize, range: Expr, variables: Variables, parts: Parts) -> Expr {
    Expr::new(
        at,
        Node::Fold(Box::new(Fold {
            range,
            variable: variables.0,
            second: variables.1,
            accumulator: RESULT.to_owned(),
            init: parts.init,
            condition: parts.condition,
            step: parts.step,
            result: parts.result,
        })),
    )
}

fn variable(expr: &Expr) -> Result<String, Issue> {
    match &expr.node {
        Node::Ident(name) if name == RESULT => Err(Issue::new(
            expr.at,
            "iteration variable overwrites accumulator variable".to_owned(),
        )),
        Node::Ident(name) => Ok(name.clone()),
        _ => Err(Issue::new(
            expr.at,
            "argument must be a simple name".to_owned(),
        )),
    }
}

/// The variables before the last `body` arguments, and those.
fn split(args: Vec<Expr>, body: usize) -> Result<(Variables, Vec<Expr>), Issue> {
    let mut args = args.into_iter();
    let count = args.len() - body;
    let first = args
        .next()
        .map(|arg| variable(&arg))
        .transpose()?
        .unwrap_or_default();
    let second = match count {
        2 => args.next().map(|arg| variable(&arg)).transpose()?,
        _ => None,
    };
    Ok(((first, second), args.collect()))
}

fn result(at: usize) -> Expr {
    Expr::ident(at, RESULT)
}

fn bool_literal(at: usize, value: bool) -> Expr {
    Expr::literal(at, Value::Bool(value))
}

fn last(mut args: Vec<Expr>) -> Expr {
    args.pop()
        .expect("invariant: the number of arguments was matched")
}

fn all(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let parts = Parts {
        init: bool_literal(at, true),
        condition: Expr::call(at, "@not_strictly_false", vec![result(at)]),
        step: Expr::call(at, "_&&_", vec![result(at), last(body)]),
        result: result(at),
    };
    Ok(fold(at, range, variables, parts))
}

fn exists(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let not = Expr::call(at, "!_", vec![result(at)]);
    let parts = Parts {
        init: bool_literal(at, false),
        condition: Expr::call(at, "@not_strictly_false", vec![not]),
        step: Expr::call(at, "_||_", vec![result(at), last(body)]),
        result: result(at),
    };
    Ok(fold(at, range, variables, parts))
}

fn exists_one(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let one = || Expr::literal(at, Value::Int(1));
    let more = Expr::call(at, "_+_", vec![result(at), one()]);
    let parts = Parts {
        init: Expr::literal(at, Value::Int(0)),
        condition: bool_literal(at, true),
        step: Expr::call(at, "_?_:_", vec![last(body), more, result(at)]),
        result: Expr::call(at, "_==_", vec![result(at), one()]),
    };
    Ok(fold(at, range, variables, parts))
}

/// A fold that appends `item` where `filter` holds.
fn appending(
    at: usize,
    range: Expr,
    variables: Variables,
    item: Expr,
    filter: Option<Expr>,
) -> Expr {
    let one = Expr::new(at, Node::List(vec![(item, false)]));
    let more = Expr::call(at, "_+_", vec![result(at), one]);
    let parts = Parts {
        init: Expr::new(at, Node::List(Vec::new())),
        condition: bool_literal(at, true),
        step: only_if(at, filter, more),
        result: result(at),
    };
    fold(at, range, variables, parts)
}

fn only_if(at: usize, filter: Option<Expr>, step: Expr) -> Expr {
    match filter {
        Some(filter) => Expr::call(at, "_?_:_", vec![filter, step, result(at)]),
        None => step,
    }
}

fn filter(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let item = Expr::ident(at, &variables.0);
    Ok(appending(at, range, variables, item, Some(last(body))))
}

fn map(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = one_variable(args)?;
    let (filter, item) = filter_and_last(body);
    Ok(appending(at, range, variables, item, filter))
}

fn one_variable(mut args: Vec<Expr>) -> Result<(Variables, Vec<Expr>), Issue> {
    let body = args.split_off(1);
    Ok(((variable(&args[0])?, None), body))
}

fn two_variables(mut args: Vec<Expr>) -> Result<(Variables, Vec<Expr>), Issue> {
    let body = args.split_off(2);
    Ok(((variable(&args[0])?, Some(variable(&args[1])?)), body))
}

fn filter_and_last(mut body: Vec<Expr>) -> (Option<Expr>, Expr) {
    let item = body
        .pop()
        .expect("invariant: the number of arguments was matched");
    (body.pop(), item)
}

fn transform_list(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = two_variables(args)?;
    let (filter, item) = filter_and_last(body);
    Ok(appending(at, range, variables, item, filter))
}

fn transform_map(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = two_variables(args)?;
    let (filter, value) = filter_and_last(body);
    let key = Expr::ident(at, &variables.0);
    let step = Expr::call(at, "cel.@mapInsert", vec![result(at), key, value]);
    Ok(inserting(at, range, variables, filter, step))
}

fn transform_map_entry(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = two_variables(args)?;
    let (filter, entry) = filter_and_last(body);
    let step = Expr::call(at, "cel.@mapInsert", vec![result(at), entry]);
    Ok(inserting(at, range, variables, filter, step))
}

fn inserting(
    at: usize,
    range: Expr,
    variables: Variables,
    filter: Option<Expr>,
    step: Expr,
) -> Expr {
    let parts = Parts {
        init: Expr::new(at, Node::Map(Vec::new())),
        condition: bool_literal(at, true),
        step: only_if(at, filter, step),
        result: result(at),
    };
    fold(at, range, variables, parts)
}

/// A name for a value: a fold over nothing whose accumulator is the name.
fn named(at: usize, name: String, value: Expr, body: Expr) -> Expr {
    let accumulator = Expr::ident(at, &name);
    Expr::new(
        at,
        Node::Fold(Box::new(Fold {
            range: Expr::new(at, Node::List(Vec::new())),
            variable: UNUSED.to_owned(),
            second: None,
            accumulator: name,
            init: value,
            condition: bool_literal(at, false),
            step: accumulator,
            result: body,
        })),
    )
}

fn bind(at: usize, args: Vec<Expr>) -> Result<Expr, Issue> {
    let mut args = args.into_iter();
    let (Some(name), Some(value), Some(body)) = (args.next(), args.next(), args.next()) else {
        return Err(Issue::new(
            at,
            "cel.bind() takes three arguments".to_owned(),
        ));
    };
    let Node::Ident(name) = name.node else {
        return Err(Issue::new(
            name.at,
            "cel.bind() variable names must be simple identifiers".to_owned(),
        ));
    };
    Ok(named(at, name, value, body))
}

fn opt_map(at: usize, target: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    optional(at, target, args, |at, body| {
        Expr::call(at, "optional.of", vec![body])
    })
}

fn opt_flat_map(at: usize, target: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    optional(at, target, args, |_, body| body)
}

fn optional(
    at: usize,
    target: Expr,
    args: Vec<Expr>,
    wrap: fn(usize, Expr) -> Expr,
) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let on = |target: Expr, function: &str| {
        Expr::new(
            at,
            Node::Call {
                function: function.to_owned(),
                target: Some(Box::new(target)),
                args: Vec::new(),
            },
        )
    };
    let condition = on(target.clone(), "hasValue");
    let some = named(at, variables.0, on(target, "value"), last(body));
    let none = Expr::call(at, "optional.none", Vec::new());
    Ok(Expr::call(
        at,
        "_?_:_",
        vec![condition, wrap(at, some), none],
    ))
}

fn sort_by(at: usize, range: Expr, args: Vec<Expr>) -> Result<Expr, Issue> {
    let (variables, body) = split(args, 1)?;
    let keys = appending(at, range.clone(), variables, last(body), None);
    Ok(Expr::new(
        at,
        Node::Call {
            function: "@sortByAssociatedKeys".to_owned(),
            target: Some(Box::new(range)),
            args: vec![keys],
        },
    ))
}
