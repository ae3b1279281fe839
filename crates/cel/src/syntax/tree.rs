//! The tree of an expression before it is checked.

use crate::value::Value;

/// The accumulator of every macro. It cannot be written in an expression.
pub(crate) const RESULT: &str = "@result";

/// One node and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// The byte offset that errors point to.
    pub(crate) at: usize,
    /// How many nodes lie on the longest way down.
    pub(crate) depth: usize,
    pub(crate) node: Node,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Literal(Value),
    Ident(String),
    Select {
        operand: Box<Expr>,
        field: String,
        /// Whether only the presence of the field is asked for, as `has` does.
        is_test: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// Items, each with whether it is left out when it is an empty optional.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    /// The name of a message type, and its fields.
    Message(String, Vec<MessageField>),
    Fold(Box<Fold>),
}

/// A field of a constructed message.
#[derive(Clone, Debug)]
pub(crate) struct MessageField {
    pub(crate) at: usize,
    pub(crate) name: String,
    pub(crate) value: Expr,
    /// True if an empty optional leaves the field out.
    pub(crate) is_optional: bool,
}

/// A loop over a list or a map.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Expr,
    pub(crate) variable: String,
    pub(crate) second: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Fold {
    /// Whether this only names a value: the expansion of `cel.bind`.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.node, Node::List(items) if items.is_empty())
            && matches!(self.condition.node, Node::Literal(Value::Bool(false)))
    }
}

impl Expr {
    pub(crate) fn new(at: usize, node: Node) -> Self {
        let depth = 1 + match &node {
            Node::Literal(_) | Node::Ident(_) => 0,
            Node::Select { operand, .. } => operand.depth,
            Node::Call { target, args, .. } => args
                .iter()
                .map(|arg| arg.depth)
                .chain(target.iter().map(|target| target.depth))
                .max()
                .unwrap_or(0),
            Node::List(items) => items.iter().map(|(item, _)| item.depth).max().unwrap_or(0),
            Node::Map(entries) => entries
                .iter()
                .map(|(key, value, _)| key.depth.max(value.depth))
                .max()
                .unwrap_or(0),
            Node::Message(_, fields) => fields
                .iter()
                .map(|field| field.value.depth)
                .max()
                .unwrap_or(0),
            Node::Fold(fold) => [
                &fold.range,
                &fold.init,
                &fold.condition,
                &fold.step,
                &fold.result,
            ]
            .iter()
            .map(|part| part.depth)
            .max()
            .unwrap_or(0),
        };
        Self { at, depth, node }
    }

    pub(crate) fn literal(at: usize, value: Value) -> Self {
        Self::new(at, Node::Literal(value))
    }

    pub(crate) fn ident(at: usize, name: &str) -> Self {
        Self::new(at, Node::Ident(name.to_owned()))
    }

    pub(crate) fn call(at: usize, function: &str, args: Vec<Self>) -> Self {
        Self::new(
            at,
            Node::Call {
                function: function.to_owned(),
                target: None,
                args,
            },
        )
    }

    /// The dotted name this node spells, if it is nothing but one.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.node {
            Node::Ident(name) => Some(name.clone()),
            Node::Select {
                operand,
                field,
                is_test: false,
            } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }
}
