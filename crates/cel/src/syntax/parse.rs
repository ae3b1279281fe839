//! The grammar.

use super::lex::{Sort, Token, tokens};
use super::macros;
use super::tree::{Expr, MessageField, Node};
use crate::error::Issue;
use crate::types::RESERVED;
use crate::value::Value;

/// How deep an expression may nest.
pub(crate) const DEPTH_LIMIT: usize = 150;

/// What may start an operand, in the words of upstream's errors.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
     NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Reads an expression; `has_bind` says whether `cel.bind` is a macro.
pub(crate) fn parse(text: &str, has_bind: bool) -> Result<Expr, Issue> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens,
        next: 0,
        depth: 0,
        has_bind,
    };
    let expr = parser.expression()?;
    let rest = parser.peek();
    if rest.sort != Sort::End {
        return Err(Issue::new(
            rest.at,
            format!(
                "Syntax error: mismatched input '{}' expecting <EOF>",
                rest.text
            ),
        ));
    }
    Ok(expr)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// How many expressions are being read inside each other.
    depth: usize,
    has_bind: bool,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn is_at(&self, symbol: &str) -> bool {
        let token = self.peek();
        token.sort == Sort::Symbol && token.text == symbol
    }

    fn accept(&mut self, symbol: &str) -> Option<Token<'a>> {
        self.is_at(symbol).then(|| self.take())
    }

    fn expect(&mut self, symbol: &str) -> Result<Token<'a>, Issue> {
        let token = self.peek();
        self.accept(symbol).ok_or_else(|| {
            let message = match token.sort {
                Sort::End => format!("Syntax error: missing '{symbol}' at '<EOF>'"),
                _ => format!(
                    "Syntax error: mismatched input '{}' expecting '{symbol}'",
                    token.text
                ),
            };
            Issue::new(token.at, message)
        })
    }

    /// `or ? or : expression`.
    fn expression(&mut self) -> Result<Expr, Issue> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(too_deep(self.peek().at));
        }
        let condition = self.chain("||", "_||_", Self::conjunction)?;
        let expr = match self.accept("?") {
            None => condition,
            Some(question) => {
                let yes = self.chain("||", "_||_", Self::conjunction)?;
                self.expect(":")?;
                let no = self.expression()?;
                Expr::call(question.at, "_?_:_", vec![condition, yes, no])
            }
        };
        self.depth -= 1;
        checked_depth(expr)
    }

    fn conjunction(&mut self) -> Result<Expr, Issue> {
        self.chain("&&", "_&&_", Self::relation)
    }

    /// Operands of one associative operator, as a balanced tree so that long chains stay shallow.
    fn chain(
        &mut self,
        symbol: &str,
        function: &str,
        operand: fn(&mut Self) -> Result<Expr, Issue>,
    ) -> Result<Expr, Issue> {
        let mut operands = vec![operand(self)?];
        let mut places = Vec::new();
        while let Some(token) = self.accept(symbol) {
            places.push(token.at);
            operands.push(operand(self)?);
        }
        Ok(balance(function, &mut operands.into_iter(), &places))
    }

    fn relation(&mut self) -> Result<Expr, Issue> {
        let mut left = self.sum()?;
        loop {
            let token = self.peek();
            let function = match token.text {
                "<" => "_<_",
                "<=" => "_<=_",
                ">" => "_>_",
                ">=" => "_>=_",
                "==" => "_==_",
                "!=" => "_!=_",
                "in" => "@in",
                _ => return Ok(left),
            };
            if !matches!(token.sort, Sort::Symbol | Sort::Ident) {
                return Ok(left);
            }
            self.take();
            let right = self.sum()?;
            left = checked_depth(Expr::call(token.at, function, vec![left, right]))?;
        }
    }

    fn sum(&mut self) -> Result<Expr, Issue> {
        self.left_assoc(&[("+", "_+_"), ("-", "_-_")], Self::product)
    }

    fn product(&mut self) -> Result<Expr, Issue> {
        self.left_assoc(&[("*", "_*_"), ("/", "_/_"), ("%", "_%_")], Self::unary)
    }

    fn left_assoc(
        &mut self,
        operators: &[(&str, &str)],
        operand: fn(&mut Self) -> Result<Expr, Issue>,
    ) -> Result<Expr, Issue> {
        let mut left = operand(self)?;
        loop {
            let token = self.peek();
            let Some((_, function)) = operators
                .iter()
                .find(|(symbol, _)| token.sort == Sort::Symbol && token.text == *symbol)
            else {
                return Ok(left);
            };
            self.take();
            let right = operand(self)?;
            left = checked_depth(Expr::call(token.at, function, vec![left, right]))?;
        }
    }

    fn unary(&mut self) -> Result<Expr, Issue> {
        let token = self.peek();
        if token.sort != Sort::Symbol || !matches!(token.text, "!" | "-") {
            return self.member();
        }
        let mut count = 0;
        while self.accept(token.text).is_some() {
            count += 1;
        }
        if token.text == "-"
            && matches!(self.peek().sort, Sort::Int | Sort::Float)
            && count % 2 == 1
        {
            let literal = self.take();
            let value = super::literal::value(&literal, true)?;
            return self.postfix(Expr::literal(token.at, value));
        }
        let operand = self.member()?;
        if count % 2 == 0 {
            return Ok(operand);
        }
        let function = if token.text == "!" { "!_" } else { "-_" };
        Ok(Expr::call(token.at, function, vec![operand]))
    }

    fn member(&mut self) -> Result<Expr, Issue> {
        let primary = self.primary()?;
        self.postfix(primary)
    }

    /// Selections, calls and indexes after an operand.
    fn postfix(&mut self, mut expr: Expr) -> Result<Expr, Issue> {
        loop {
            expr = if let Some(dot) = self.accept(".") {
                self.selection(expr, dot)?
            } else if let Some(open) = self.accept("[") {
                let is_optional = self.accept("?").is_some();
                let index = self.expression()?;
                self.expect("]")?;
                let function = if is_optional { "_[?_]" } else { "_[_]" };
                Expr::call(open.at, function, vec![expr, index])
            } else if self.is_at("{") && expr.qualified_name().is_some() {
                self.message(&expr)?
            } else {
                return Ok(expr);
            };
            expr = checked_depth(expr)?;
        }
    }

    fn selection(&mut self, operand: Expr, dot: Token<'a>) -> Result<Expr, Issue> {
        if self.accept("?").is_some() {
            let field = self.identifier()?;
            let name = Expr::literal(field.at, Value::from(unquoted(field.text)));
            return Ok(Expr::call(dot.at, "_?._", vec![operand, name]));
        }
        let field = self.identifier()?;
        if let Some(open) = self.accept("(") {
            let args = self.arguments(")")?;
            return macros::member(open.at, operand, field.text, args, self.has_bind);
        }
        Ok(Expr::new(
            dot.at,
            Node::Select {
                operand: Box::new(operand),
                field: unquoted(field.text).to_owned(),
                is_test: false,
            },
        ))
    }

    /// The fields of a message, after the name of its type.
    fn message(&mut self, name: &Expr) -> Result<Expr, Issue> {
        let open = self.expect("{")?;
        let mut fields = Vec::new();
        while !self.is_at("}") {
            let is_optional = self.accept("?").is_some();
            let field = self.identifier()?;
            let colon = self.expect(":")?;
            fields.push(MessageField {
                at: colon.at,
                name: unquoted(field.text).to_owned(),
                value: self.expression()?,
                is_optional,
            });
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        let name = name.qualified_name().unwrap_or_default();
        Ok(Expr::new(open.at, Node::Message(name, fields)))
    }

    /// A name after a dot. Words that the grammar itself uses are none; other reserved words are.
    fn identifier(&mut self) -> Result<Token<'a>, Issue> {
        let token = self.take();
        if token.sort == Sort::Ident && !matches!(token.text, "in" | "true" | "false" | "null") {
            return Ok(token);
        }
        Err(Issue::new(
            token.at,
            format!(
                "Syntax error: no viable alternative at input '.{}'",
                if token.sort == Sort::End {
                    ""
                } else {
                    token.text
                }
            ),
        ))
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Expr>, Issue> {
        let mut args = Vec::new();
        while !self.is_at(close) {
            args.push(self.expression()?);
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect(close)?;
        Ok(args)
    }

    fn primary(&mut self) -> Result<Expr, Issue> {
        let token = self.take();
        match (token.sort, token.text) {
            (Sort::Ident, _) => self.name(token),
            (Sort::Symbol, "(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            (Sort::Symbol, "[") => self.list(token.at),
            (Sort::Symbol, "{") => self.map(token.at),
            (Sort::Symbol, ".") => {
                let name = self.identifier()?;
                self.name(name)
            }
            (Sort::Int | Sort::Uint | Sort::Float | Sort::Text | Sort::Bytes, _) => Ok(
                Expr::literal(token.at, super::literal::value(&token, false)?),
            ),
            (Sort::Symbol | Sort::End, _) => Err(Issue::new(
                token.at,
                format!(
                    "Syntax error: mismatched input '{}' expecting {OPERAND}",
                    token.text
                ),
            )),
        }
    }

    fn name(&mut self, token: Token<'a>) -> Result<Expr, Issue> {
        let value = match token.text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            name if RESERVED.contains(&name) => {
                return Err(Issue::new(token.at, format!("reserved identifier: {name}")));
            }
            name => {
                if let Some(open) = self.accept("(") {
                    let args = self.arguments(")")?;
                    return macros::global(open.at, name, args);
                }
                return Ok(Expr::ident(token.at, name));
            }
        };
        Ok(Expr::literal(token.at, value))
    }

    fn list(&mut self, at: usize) -> Result<Expr, Issue> {
        let mut items = Vec::new();
        while !self.is_at("]") {
            let is_optional = self.accept("?").is_some();
            items.push((self.expression()?, is_optional));
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("]")?;
        Ok(Expr::new(at, Node::List(items)))
    }

    fn map(&mut self, at: usize) -> Result<Expr, Issue> {
        let mut entries = Vec::new();
        while !self.is_at("}") {
            let is_optional = self.accept("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, is_optional));
            if self.accept(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        Ok(Expr::new(at, Node::Map(entries)))
    }
}

fn unquoted(field: &str) -> &str {
    field.trim_matches('`')
}

fn too_deep(at: usize) -> Issue {
    Issue::new(
        at,
        format!("expression recursion limit exceeded: {DEPTH_LIMIT}"),
    )
}

fn checked_depth(expr: Expr) -> Result<Expr, Issue> {
    if expr.depth > DEPTH_LIMIT {
        return Err(too_deep(expr.at));
    }
    Ok(expr)
}

/// A balanced tree of `places.len() + 1` operands.
fn balance(function: &str, operands: &mut std::vec::IntoIter<Expr>, places: &[usize]) -> Expr {
    let Some(middle) = places.len().checked_sub(1).map(|last| last / 2) else {
        return operands
            .next()
            .expect("invariant: one operand more than operators");
    };
    let left = balance(function, operands, &places[..middle]);
    let right = balance(function, operands, &places[middle + 1..]);
    Expr::call(places[middle], function, vec![left, right])
}
