//! From text to a tree: tokens, grammar, macros.
//!
//! The grammar is CEL's own, read by precedence climbing. Macros are expanded while parsing, into
//! the same folds as upstream, because the cost of an expression is defined on the expanded tree.

mod lex;
mod literal;
mod macros;
mod parse;
mod tree;

pub(crate) use parse::parse;
pub(crate) use tree::{Expr, Fold, MessageField, Node};
