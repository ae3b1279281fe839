//! Tokens.

use crate::error::Issue;

/// The longest expression that is read, in bytes.
pub(crate) const EXPRESSION_BYTES_LIMIT: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Ident,
    Int,
    Uint,
    Float,
    Text,
    Bytes,
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) sort: Sort,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

const SYMBOLS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", ":", "?", "<", ">",
    "+", "-", "*", "/", "%", "!", "=", "&", "|",
];

/// Splits an expression into tokens; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Issue> {
    if text.len() > EXPRESSION_BYTES_LIMIT {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {EXPRESSION_BYTES_LIMIT}",
            text.chars().count()
        );
        return Err(Issue::new(0, message));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(start) = skip_blanks(text, at) {
        let (sort, length) = token(text, start)?;
        tokens.push(Token {
            sort,
            text: &text[start..start + length],
            at: start,
        });
        at = start + length;
    }
    tokens.push(Token {
        sort: Sort::End,
        text: "<EOF>",
        at: text.len(),
    });
    Ok(tokens)
}

/// The start of the next token, after blanks and comments.
fn skip_blanks(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with("//") {
            return (!trimmed.is_empty()).then_some(at);
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

fn token(text: &str, at: usize) -> Result<(Sort, usize), Issue> {
    let rest = &text[at..];
    if let Some(found) = quoted(rest, at)? {
        return Ok(found);
    }
    let first = rest.as_bytes()[0];
    if first == b'`' {
        let end = rest[1..].find('`').ok_or_else(|| unrecognized(text, at))?;
        return Ok((Sort::Ident, end + 2));
    }
    if first.is_ascii_digit()
        || (first == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit))
    {
        return Ok(number(rest));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        return Ok((Sort::Ident, end));
    }
    SYMBOLS
        .iter()
        .find(|symbol| rest.starts_with(**symbol))
        .filter(|symbol| !matches!(**symbol, "=" | "&" | "|"))
        .map(|symbol| (Sort::Symbol, symbol.len()))
        .ok_or_else(|| unrecognized(text, at))
}

fn unrecognized(text: &str, at: usize) -> Issue {
    let found = text[at..].chars().next().unwrap_or(' ');
    Issue::new(
        at,
        format!("Syntax error: token recognition error at: '{found}'"),
    )
}

/// A string or bytes literal with its prefix, if one stands here.
fn quoted(rest: &str, at: usize) -> Result<Option<(Sort, usize)>, Issue> {
    let prefix = rest
        .bytes()
        .take(2)
        .take_while(|c| matches!(c, b'r' | b'R' | b'b' | b'B'))
        .count();
    let body = &rest[prefix..];
    let Some(quote) = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| body.starts_with(quote))
    else {
        return Ok(None);
    };
    let letters = rest[..prefix].to_ascii_lowercase();
    if letters == "rr" || letters == "bb" {
        return Ok(None);
    }
    let sort = if letters.contains('b') {
        Sort::Bytes
    } else {
        Sort::Text
    };
    let is_raw = letters.contains('r');
    let inner = &body[quote.len()..];
    let end = closing(inner, quote, is_raw).ok_or_else(|| {
        Issue::new(
            at,
            format!("Syntax error: token recognition error at: '{rest}'"),
        )
    })?;
    Ok(Some((sort, prefix + quote.len() * 2 + end)))
}

/// Where the closing quote stands in the text after the opening one.
fn closing(inner: &str, quote: &str, is_raw: bool) -> Option<usize> {
    let mut at = 0;
    while at < inner.len() {
        let rest = &inner[at..];
        if rest.starts_with(quote) {
            return Some(at);
        }
        let c = rest.chars().next()?;
        if quote.len() == 1 && (c == '\n' || c == '\r') {
            return None;
        }
        at += c.len_utf8();
        if c == '\\' && !is_raw {
            at += inner[at..].chars().next()?.len_utf8();
        }
    }
    None
}

fn number(rest: &str) -> (Sort, usize) {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count()
    };
    let unsigned = |end: usize, sort: Sort| match bytes.get(end) {
        Some(b'u' | b'U') => (Sort::Uint, end + 1),
        _ => (sort, end),
    };
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let hex = bytes[2..]
            .iter()
            .take_while(|c| c.is_ascii_hexdigit())
            .count();
        if hex > 0 {
            return unsigned(2 + hex, Sort::Int);
        }
    }
    let mut end = digits(0);
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end += 1 + digits(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
            is_float = true;
        }
    }
    if is_float {
        return (Sort::Float, end);
    }
    unsigned(end, Sort::Int)
}
