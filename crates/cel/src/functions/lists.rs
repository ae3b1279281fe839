//! Lists and sets.

use std::cmp::Ordering;

use super::{CostRule, Outcome, Row, contains, index, int, no_overload, strings};
use crate::error::EvalError;
use crate::value::{List, Value, compare, equals};

/// The longest list that `lists.range` makes and the deepest that `flatten` goes.
const RANGE_LIMIT: i64 = 1_000_000;

const SUMMABLE: &[&str] = &[
    "list<int>.()int",
    "list<uint>.()uint",
    "list<double>.()double",
    "list<duration>.()duration",
];
const ORDERED: &[&str] = &[
    "list<int>.()int",
    "list<uint>.()uint",
    "list<double>.()double",
    "list<bool>.()bool",
    "list<duration>.()duration",
    "list<timestamp>.()timestamp",
    "list<string>.()string",
    "list<bytes>.()bytes",
];

pub(super) const ROWS: &[Row] = &[
    Row(
        "isSorted",
        CostRule::Traverse,
        is_sorted,
        &[
            "list<int>.()bool",
            "list<uint>.()bool",
            "list<double>.()bool",
            "list<bool>.()bool",
            "list<duration>.()bool",
            "list<timestamp>.()bool",
            "list<string>.()bool",
            "list<bytes>.()bool",
        ],
    ),
    Row("sum", CostRule::Traverse, sum, SUMMABLE),
    Row(
        "min",
        CostRule::Traverse,
        |args| extreme(args, Ordering::Less, "min"),
        ORDERED,
    ),
    Row(
        "max",
        CostRule::Traverse,
        |args| extreme(args, Ordering::Greater, "max"),
        ORDERED,
    ),
    Row(
        "indexOf",
        CostRule::Traverse,
        |args| find(args, false),
        &[
            "list<A>.(A)int",
            "string.(string)int",
            "string.(string,int)int",
        ],
    ),
    Row(
        "lastIndexOf",
        CostRule::Traverse,
        |args| find(args, true),
        &[
            "list<A>.(A)int",
            "string.(string)int",
            "string.(string,int)int",
        ],
    ),
    Row(
        "sets.contains",
        CostRule::Sets(1),
        |args| sets(args, holds_all),
        &["(list<A>,list<A>)bool"],
    ),
    Row(
        "sets.intersects",
        CostRule::Sets(1),
        |args| sets(args, holds_any),
        &["(list<A>,list<A>)bool"],
    ),
    Row(
        "sets.equivalent",
        CostRule::Sets(2),
        |args| sets(args, |a, b| holds_all(a, b) && holds_all(b, a)),
        &["(list<A>,list<A>)bool"],
    ),
    Row(
        "slice",
        CostRule::Items,
        slice,
        &["list<A>.(int,int)list<A>"],
    ),
    Row(
        "flatten",
        CostRule::Items,
        flatten,
        &["list<list<A>>.()list<A>", "list<dyn>.(int)list<dyn>"],
    ),
    Row(
        "distinct",
        CostRule::ItemsSquared,
        distinct,
        &["list<A>.()list<A>"],
    ),
    Row("reverse", CostRule::Items, reverse, &["list<A>.()list<A>"]),
    Row(
        "sort",
        CostRule::ItemsSquared,
        sort,
        &[
            "list<int>.()list<int>",
            "list<uint>.()list<uint>",
            "list<double>.()list<double>",
            "list<bool>.()list<bool>",
            "list<duration>.()list<duration>",
            "list<timestamp>.()list<timestamp>",
            "list<string>.()list<string>",
            "list<bytes>.()list<bytes>",
        ],
    ),
    Row(
        "@sortByAssociatedKeys",
        CostRule::ItemsSquared,
        sort_by,
        &["list<A>.(list<B>)list<A>"],
    ),
    Row("lists.range", CostRule::Items, range, &["(int)list<int>"]),
    Row(
        "first",
        CostRule::Unit,
        |args| end(args, true),
        &["list<A>.()optional<A>"],
    ),
    Row(
        "last",
        CostRule::Unit,
        |args| end(args, false),
        &["list<A>.()optional<A>"],
    ),
];

fn is_sorted(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let items: Vec<Value> = list.iter().collect();
    for pair in items.windows(2) {
        match compare(&pair[0], &pair[1]) {
            None => return no_overload(),
            Some(Ordering::Greater) => return Ok(Value::Bool(false)),
            Some(_) => {}
        }
    }
    Ok(Value::Bool(true))
}

fn sum(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let mut items = list.iter();
    let Some(mut total) = items.next() else {
        return Ok(Value::Int(0));
    };
    for item in items {
        let next = match (&total, &item) {
            (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int),
            (Value::Uint(a), Value::Uint(b)) => a.checked_add(*b).map(Value::Uint),
            (Value::Double(a), Value::Double(b)) => Some(Value::Double(a + b)),
            (Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration),
            _ => return no_overload(),
        };
        total = next.ok_or_else(EvalError::overflow)?;
    }
    Ok(total)
}

fn extreme(args: &[Value], wanted: Ordering, name: &str) -> Outcome {
    let [Value::List(list)] = args else {
        return no_overload();
    };
    let mut items = list.iter();
    let mut best = items
        .next()
        .ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))?;
    for item in items {
        if compare(&item, &best).ok_or_else(EvalError::no_such_overload)? == wanted {
            best = item;
        }
    }
    Ok(best)
}

fn find(args: &[Value], is_last: bool) -> Outcome {
    match args {
        [Value::List(list), item] => {
            let mut places = list
                .iter()
                .enumerate()
                .filter(|(_, known)| equals(known, item))
                .map(|(at, _)| at);
            let found = if is_last {
                places.last()
            } else {
                places.next()
            };
            Ok(found.map_or(Value::Int(-1), int))
        }
        [Value::String(text), Value::String(part)] => strings::find(text, part, None, is_last),
        [Value::String(text), Value::String(part), Value::Int(from)] => {
            strings::find(text, part, Some(*from), is_last)
        }
        _ => no_overload(),
    }
}

fn sets(args: &[Value], holds: fn(&List, &List) -> bool) -> Outcome {
    match args {
        [Value::List(a), Value::List(b)] => Ok(Value::Bool(holds(a, b))),
        _ => no_overload(),
    }
}

fn holds_all(a: &List, b: &List) -> bool {
    b.iter().all(|item| contains(a, &item))
}

fn holds_any(a: &List, b: &List) -> bool {
    a.iter().any(|item| contains(b, &item))
}

fn slice(args: &mut [Value]) -> Outcome {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = &*args else {
        return no_overload();
    };
    if *start < 0 || *end < 0 {
        return Err(EvalError::failed(format!(
            "cannot slice({start}, {end}), negative indexes not supported"
        )));
    }
    if start > end {
        return Err(EvalError::failed(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    let (start, end) = (index(*start)?, index(*end)?);
    if end > list.len() {
        return Err(EvalError::failed(format!(
            "cannot slice({start}, {end}), list is length {}",
            list.len()
        )));
    }
    Ok(Value::list(
        list.iter().skip(start).take(end - start).collect(),
    ))
}

fn flatten(args: &mut [Value]) -> Outcome {
    let (list, depth) = match &*args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] if *depth >= 0 => (list, *depth),
        [Value::List(_), Value::Int(_)] => {
            return Err(EvalError::failed("level must be non-negative"));
        }
        _ => return no_overload(),
    };
    let mut items: Vec<Value> = list.iter().collect();
    for _ in 0..depth.min(RANGE_LIMIT) {
        if !items.iter().any(|item| matches!(item, Value::List(_))) {
            break;
        }
        items = items
            .into_iter()
            .flat_map(|item| match item {
                Value::List(inner) => inner.iter().collect(),
                other => vec![other],
            })
            .collect();
    }
    Ok(Value::list(items))
}

fn distinct(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let mut items: Vec<Value> = Vec::new();
    for item in list.iter() {
        if !items.iter().any(|known| equals(known, &item)) {
            items.push(item);
        }
    }
    Ok(Value::list(items))
}

fn reverse(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let mut items: Vec<Value> = list.iter().collect();
    items.reverse();
    Ok(Value::list(items))
}

fn sort(args: &mut [Value]) -> Outcome {
    let [Value::List(list)] = &*args else {
        return no_overload();
    };
    let keys: Vec<Value> = list.iter().collect();
    sorted(list, &keys)
}

fn sort_by(args: &mut [Value]) -> Outcome {
    let [Value::List(list), Value::List(keys)] = &*args else {
        return no_overload();
    };
    sorted(list, &keys.iter().collect::<Vec<_>>())
}

/// The items in the order of their keys, which must all be of one type.
fn sorted(list: &List, keys: &[Value]) -> Outcome {
    if keys.len() != list.len() {
        return Err(EvalError::failed(
            "list elements must have the same number of keys",
        ));
    }
    if let Some(first) = keys.first()
        && keys.iter().any(|key| compare(first, key).is_none())
    {
        return Err(EvalError::failed("list elements must have the same type"));
    }
    let mut places: Vec<usize> = (0..keys.len()).collect();
    places.sort_by(|a, b| {
        compare(&keys[*a], &keys[*b])
            .unwrap_or(Ordering::Equal)
            .then(a.cmp(b))
    });
    Ok(Value::list(
        places
            .into_iter()
            .filter_map(|place| list.get(place))
            .collect(),
    ))
}

fn range(args: &mut [Value]) -> Outcome {
    match &*args {
        [Value::Int(count)] if *count <= RANGE_LIMIT => {
            Ok(Value::list((0..*count).map(Value::Int).collect()))
        }
        [Value::Int(count)] => Err(EvalError::failed(format!(
            "lists.range({count}) exceeds {RANGE_LIMIT} items"
        ))),
        _ => no_overload(),
    }
}

fn end(args: &[Value], is_first: bool) -> Outcome {
    let [Value::List(list)] = args else {
        return no_overload();
    };
    let place = if is_first {
        Some(0)
    } else {
        list.len().checked_sub(1)
    };
    Ok(place
        .and_then(|place| list.get(place))
        .map_or(Value::Optional(None), Value::some))
}
