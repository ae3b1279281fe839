//! Every function: its signatures, its cost, and what it does.
//!
//! One row per name. Which overload is meant follows from the values, as in CEL itself; the
//! signatures are what the checker goes by.

mod authorization;
mod convert;
mod library;
mod lists;
mod net;
mod operators;
mod optional;
mod regexes;
mod signature;
mod strings;
mod text_format;
mod times;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use authorization::ESCAPE_KEY;
pub(crate) use operators::contains;
pub(crate) use regexes::compile as compile_regex;
pub(crate) use signature::Signature;

use crate::error::EvalError;
use crate::value::Value;

/// What a call gives.
type Outcome = Result<Value, EvalError>;

/// How the cost of a call depends on its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CostRule {
    /// One.
    Unit,
    /// The fixed price of a question to the authorizer.
    AccessCheck,
    /// Parsing a selector, which is the second argument.
    Selector,
    /// Nothing of its own; the operands are all there is.
    Logic,
    /// The smaller of both sizes.
    Equality,
    /// The smaller of both sizes for strings and bytes.
    Order,
    /// Both sizes for strings and bytes.
    Add,
    /// The size of the list.
    In,
    /// Both sizes, multiplied.
    Contains,
    /// The text and the pattern, multiplied; the result is a list or string made of the text.
    Match,
    /// The size of the first argument; at check time that of the second.
    Affix,
    /// The size of the first argument if it is a string or bytes.
    Conversion,
    /// So many times the size of the first argument, with a result as large.
    Scan(f64),
    /// So many times the size of the first argument, with a result of fixed size.
    Read(f64),
    /// Everything in the list.
    Traverse,
    Replace,
    Split,
    Join,
    /// Comparing addresses; whether networks are compared.
    Within {
        is_network: bool,
    },
    Validate,
    /// The sizes of two lists, multiplied, and this factor.
    Sets(u64),
    /// One and so much per item.
    Items,
    /// The square of the number of items.
    ItemsSquared,
}

/// One function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) cost: CostRule,
    pub(crate) call: fn(&mut [Value]) -> Outcome,
    pub(crate) signatures: Vec<Signature>,
}

/// A row of the tables of the libraries.
struct Row(
    &'static str,
    CostRule,
    fn(&mut [Value]) -> Outcome,
    &'static [&'static str],
);

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let tables: [&[Row]; 10] = [
        operators::ROWS,
        authorization::ROWS,
        convert::ROWS,
        strings::ROWS,
        lists::ROWS,
        regexes::ROWS,
        net::ROWS,
        times::ROWS,
        optional::ROWS,
        library::ROWS,
    ];
    let mut functions: HashMap<&'static str, Function> = HashMap::new();
    for Row(name, cost, call, signatures) in tables.into_iter().flatten() {
        let parsed = signatures.iter().map(|text| Signature::parse(text));
        let previous = functions.insert(
            name,
            Function {
                name,
                cost: *cost,
                call: *call,
                signatures: parsed.collect(),
            },
        );
        debug_assert!(previous.is_none(), "{name} is declared twice");
    }
    functions
});

/// The function with a name.
pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

fn no_overload() -> Outcome {
    Err(EvalError::no_such_overload())
}

/// An index or count from an integer argument.
fn index(value: i64) -> Result<usize, EvalError> {
    usize::try_from(value).map_err(|_| EvalError::failed(format!("index out of bounds: {value}")))
}

fn int(value: usize) -> Value {
    Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
}
