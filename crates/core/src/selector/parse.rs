//! Reads the text form of label selectors.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = "!" KEY
//!             | KEY [ ("=" | "==" | "!=" | ">" | "<") [ VALUE ] | ("in" | "notin") set ]
//! set         = "(" [ VALUE ] { "," [ VALUE ] } ")"
//! ```
//!
//! Blanks may stand between any two of these. The words `in` and `notin` are operators only where
//! one can stand, and keys or values elsewhere.

use std::collections::BTreeSet;

use super::requirement::{Operator, Requirement, RequirementError, key_problem};

/// A text is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The text does not have the form of a selector.
    #[error("{message}")]
    Syntax {
        /// The token that was found and those that were expected.
        message: String,
        /// The byte at which the unexpected part starts.
        offset: usize,
    },
    /// The key of a requirement breaks the rules for labels.
    #[error("unable to parse requirement: {problem}")]
    Key {
        /// The key and what is wrong with it.
        problem: String,
        /// The byte at which the key starts.
        offset: usize,
    },
    /// The values of a requirement break the rules for labels.
    #[error("unable to parse requirement: {source}")]
    Values {
        /// The problem.
        source: RequirementError,
        /// The byte at which the requirement starts.
        offset: usize,
    },
}

impl SelectorError {
    /// The byte of the text at which the part that is wrong starts.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::Syntax { offset, .. }
            | Self::Key { offset, .. }
            | Self::Values { offset, .. } => *offset,
        }
    }
}

/// The requirements of a selector in the order of the text.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser {
        text,
        next: token(text, 0),
    };
    let mut found = Vec::new();
    match parser.next.kind {
        Kind::End => return Ok(found),
        Kind::Word | Kind::Not => {}
        _ => {
            return Err(parser
                .next
                .unexpected(", expected: !, identifier, or 'end of string'"));
        }
    }
    loop {
        found.push(parser.requirement()?);
        let token = parser.take();
        match (token.kind, parser.next.kind) {
            (Kind::End, _) => return Ok(found),
            (Kind::Comma, Kind::Word | Kind::Not) => {}
            (Kind::Comma, _) => {
                return Err(parser.next.unexpected(", expected: identifier after ','"));
            }
            _ => return Err(token.unexpected(", expected: ',' or 'end of string'")),
        }
    }
}

/// The text, and the token that was looked at but not taken.
struct Parser<'a> {
    text: &'a str,
    next: Token<'a>,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    offset: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Not,
    Compare(Operator),
    Open,
    Close,
    Comma,
    End,
}

impl<'a> Parser<'a> {
    /// Takes a token. The end of the text can be taken any number of times.
    fn take(&mut self) -> Token<'a> {
        let next = token(self.text, self.next.offset + self.next.text.len());
        std::mem::replace(&mut self.next, next)
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let offset = self.next.offset;
        let is_negated = self.next.kind == Kind::Not;
        if is_negated {
            self.take();
        }
        let key = self.key()?;
        let (operator, values) = if is_negated {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if matches!(self.next.kind, Kind::End | Kind::Comma) {
            (Operator::Exists, BTreeSet::new())
        } else {
            self.comparison()?
        };
        let requirement = Requirement::new(key, operator, values);
        requirement.map_err(|source| SelectorError::Values { source, offset })
    }

    fn key(&mut self) -> Result<&'a str, SelectorError> {
        let token = self.take();
        if token.kind != Kind::Word {
            return Err(token.unexpected_in(", expected: identifier"));
        }
        // The key has no field path in a text, and upstream prints that as the nothing of Go.
        match key_problem(token.text, "<nil>") {
            Some(problem) => Err(SelectorError::Key {
                problem,
                offset: token.offset,
            }),
            None => Ok(token.text),
        }
    }

    fn comparison(&mut self) -> Result<(Operator, BTreeSet<&'a str>), SelectorError> {
        let token = self.take();
        match (token.kind, token.text) {
            (Kind::Compare(operator), _) => Ok((operator, BTreeSet::from([self.value()?]))),
            (Kind::Word, "in") => Ok((Operator::In, self.set()?)),
            (Kind::Word, "notin") => Ok((Operator::NotIn, self.set()?)),
            _ => Err(token.unexpected_in(", expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn value(&mut self) -> Result<&'a str, SelectorError> {
        if matches!(self.next.kind, Kind::End | Kind::Comma) {
            return Ok("");
        }
        let token = self.take();
        match token.kind {
            Kind::Word => Ok(token.text),
            _ => Err(token.unexpected_in(", expected: identifier")),
        }
    }

    fn set(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        let open = self.take();
        if open.kind != Kind::Open {
            return Err(open.unexpected_in(" expected: '('"));
        }
        if !matches!(self.next.kind, Kind::Word | Kind::Comma | Kind::Close) {
            return Err(self
                .next
                .unexpected_in(", expected: ',', ')' or identifier"));
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.set_value()?);
            if self.take().kind == Kind::Close {
                return Ok(values);
            }
        }
    }

    /// A value of a set, empty where a comma or the end of the set follows at once. The token
    /// after it is one of these two.
    fn set_value(&mut self) -> Result<&'a str, SelectorError> {
        match self.next.kind {
            Kind::Comma | Kind::Close => return Ok(""),
            Kind::Word => {}
            _ => return Err(self.next.unexpected_in(", expected: ',', or identifier")),
        }
        let value = self.take().text;
        match self.next.kind {
            Kind::Comma | Kind::Close => Ok(value),
            _ => Err(self.next.unexpected_in(", expected: ',' or ')'")),
        }
    }
}

impl Token<'_> {
    fn unexpected(&self, expected: &str) -> SelectorError {
        let message = format!("found '{}'{expected}", self.text);
        SelectorError::Syntax {
            message,
            offset: self.offset,
        }
    }

    fn unexpected_in(&self, expected: &str) -> SelectorError {
        let message = format!(
            "unable to parse requirement: found '{}'{expected}",
            self.text
        );
        SelectorError::Syntax {
            message,
            offset: self.offset,
        }
    }
}

/// The first token at or after a byte.
fn token(text: &str, from: usize) -> Token<'_> {
    let rest = text[from..].trim_start_matches([' ', '\t', '\r', '\n']);
    let offset = text.len() - rest.len();
    let (kind, len) = match rest.as_bytes() {
        [] => (Kind::End, 0),
        [b'=', b'=', ..] => (Kind::Compare(Operator::DoubleEquals), 2),
        [b'!', b'=', ..] => (Kind::Compare(Operator::NotEquals), 2),
        [b'=', ..] => (Kind::Compare(Operator::Equals), 1),
        [b'>', ..] => (Kind::Compare(Operator::GreaterThan), 1),
        [b'<', ..] => (Kind::Compare(Operator::LessThan), 1),
        [b'!', ..] => (Kind::Not, 1),
        [b'(', ..] => (Kind::Open, 1),
        [b')', ..] => (Kind::Close, 1),
        [b',', ..] => (Kind::Comma, 1),
        _ => (Kind::Word, rest.find(ends_word).unwrap_or(rest.len())),
    };
    Token {
        kind,
        text: &rest[..len],
        offset,
    }
}

fn ends_word(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '=' | '!' | '>' | '<' | '(' | ')' | ','
    )
}
