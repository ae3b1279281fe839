//! The values of literals.

use std::sync::Arc;

use super::lex::{Sort, Token};
use crate::error::Issue;
use crate::value::Value;

/// The value of a literal token; `is_negative` for an integer after a minus sign.
pub(super) fn value(token: &Token<'_>, is_negative: bool) -> Result<Value, Issue> {
    let invalid =
        |what: &str| Issue::new(token.at, format!("Syntax error: invalid {what} literal"));
    match token.sort {
        Sort::Int => integer(token.text, is_negative)
            .map(Value::Int)
            .ok_or_else(|| invalid("int")),
        Sort::Uint => radix(token.text.trim_end_matches(['u', 'U']))
            .map(Value::Uint)
            .ok_or_else(|| invalid("uint")),
        Sort::Float => token
            .text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| Value::Double(if is_negative { -number } else { number }))
            .ok_or_else(|| invalid("double")),
        Sort::Text => {
            let bytes = unescape(token.text, false).ok_or_else(|| invalid("string"))?;
            String::from_utf8(bytes)
                .map(Value::from)
                .map_err(|_| invalid("string"))
        }
        Sort::Bytes => unescape(token.text, true)
            .map(|bytes| Value::Bytes(Arc::from(bytes)))
            .ok_or_else(|| invalid("bytes")),
        Sort::Ident | Sort::Symbol | Sort::End => Err(invalid("literal")),
    }
}

fn integer(text: &str, is_negative: bool) -> Option<i64> {
    let magnitude = i128::from(radix(text)?);
    i64::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

fn radix(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The content of a quoted literal.
fn unescape(token: &str, is_bytes: bool) -> Option<Vec<u8>> {
    let prefix = token.find(['"', '\''])?;
    let is_raw = token[..prefix].contains(['r', 'R']);
    let body = &token[prefix..];
    let quote = if body.starts_with("\"\"\"") || body.starts_with("'''") {
        3
    } else {
        1
    };
    let body = body.get(quote..body.len() - quote)?;
    if is_raw {
        return Some(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            escape(&mut chars, is_bytes, &mut out)?;
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(out)
}

fn escape(chars: &mut std::str::Chars<'_>, is_bytes: bool, out: &mut Vec<u8>) -> Option<()> {
    let simple = match chars.next()? {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        c @ ('\\' | '\'' | '"' | '`' | '?') => u8::try_from(c).ok()?,
        'x' | 'X' => return push_code(code(chars, 2, 16)?, is_bytes, out),
        'u' if !is_bytes => return push_code(code(chars, 4, 16)?, false, out),
        'U' if !is_bytes => return push_code(code(chars, 8, 16)?, false, out),
        c @ '0'..='3' => {
            let low = code(chars, 2, 8)?;
            return push_code(c.to_digit(8)? * 64 + low, is_bytes, out);
        }
        _ => return None,
    };
    out.push(simple);
    Some(())
}

fn code(chars: &mut std::str::Chars<'_>, digits: usize, radix: u32) -> Option<u32> {
    let mut code = 0_u32;
    for _ in 0..digits {
        code = code * radix + chars.next()?.to_digit(radix)?;
    }
    Some(code)
}

fn push_code(code: u32, is_bytes: bool, out: &mut Vec<u8>) -> Option<()> {
    if is_bytes {
        out.push(u8::try_from(code).ok()?);
    } else {
        let c = char::from_u32(code)?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(())
}
