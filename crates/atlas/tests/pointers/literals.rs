//! The string literals of a Rust source file, and the calls that they are arguments of.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// A string literal.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    /// The text between the quotes, escapes as they were written.
    pub(crate) text: String,
    pub(crate) line: usize,
    /// The functions, methods and macros around the literal, the nearest one first. A macro's name
    /// ends with `!`.
    pub(crate) calls: Vec<String>,
    /// The variable whose method is called, if the literal is the first argument.
    pub(crate) receiver: Option<String>,
    /// The name before the comma or colon in front of the literal: `GET` in `(GET, "/x")`.
    pub(crate) before: Option<String>,
    /// True for the `path` and `from` of an operation of a JSON patch.
    pub(crate) is_patch_path: bool,
}

/// A call around some tokens.
#[derive(Clone, Default)]
struct Call {
    name: Option<String>,
    receiver: Option<String>,
}

/// All string literals of a source file, comments and attributes left out.
pub(crate) fn literals(source: &str) -> Result<Vec<Literal>, LexError> {
    let mut reader = Reader {
        source,
        offset: 0,
        line: 1,
        found: Vec::new(),
    };
    reader.read(source.parse()?, &mut Vec::new());
    Ok(reader.found)
}

struct Reader<'a> {
    source: &'a str,
    /// The end of the last literal: tokens come in the order of the source.
    offset: usize,
    line: usize,
    found: Vec<Literal>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream, calls: &mut Vec<Call>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let before = &tokens[..at];
            match token {
                TokenTree::Group(group) if is_attribute(before, group.delimiter()) => {}
                TokenTree::Group(group) => {
                    calls.push(call_of(before));
                    self.read(group.stream(), calls);
                    calls.pop();
                }
                TokenTree::Literal(literal) => {
                    self.add(&literal.to_string(), before, calls);
                    if let Some(last) = self.found.last_mut() {
                        last.is_patch_path = is_patch_path(&tokens, at);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    fn add(&mut self, literal: &str, before: &[TokenTree], calls: &[Call]) {
        self.advance(literal);
        let Some(text) = text_of(literal) else {
            return;
        };
        let is_first = before.iter().all(|token| is_mark(token, "&"));
        let nearest = calls.last().filter(|_| is_first);
        self.found.push(Literal {
            text: unfold(text),
            line: self.line,
            calls: calls
                .iter()
                .rev()
                .filter_map(|call| call.name.clone())
                .collect(),
            receiver: nearest.and_then(|call| call.receiver.clone()),
            before: match before {
                [.., TokenTree::Ident(name), mark] if is_mark(mark, ",:") => Some(name.to_string()),
                _ => None,
            },
            is_patch_path: false,
        });
    }

    /// Tokens have no positions unless every procedural macro is built with them, so the literal is
    /// searched for behind the last one.
    fn advance(&mut self, literal: &str) {
        let rest = self.source.get(self.offset..).unwrap_or_default();
        if let Some(found) = rest.find(literal) {
            self.line += rest[..found].matches('\n').count();
            self.offset += found;
        }
    }
}

/// Returns true for the brackets of `#[...]` and `#![...]`. Doc comments are such attributes.
fn is_attribute(before: &[TokenTree], delimiter: Delimiter) -> bool {
    let is_marked = match before {
        [.., hash, not] if is_mark(not, "!") => is_mark(hash, "#"),
        [.., hash] => is_mark(hash, "#"),
        [] => false,
    };
    is_marked && delimiter == Delimiter::Bracket
}

/// Returns true if the literal stands behind `"path":` or `"from":`, next to an `"op"`.
fn is_patch_path(tokens: &[TokenTree], at: usize) -> bool {
    let is_path = match &tokens[..at] {
        [.., TokenTree::Literal(key), colon] if is_mark(colon, ":") => {
            matches!(key.to_string().as_str(), "\"path\"" | "\"from\"")
        }
        _ => false,
    };
    let is_operation =
        |token: &TokenTree| matches!(token, TokenTree::Literal(key) if key.to_string() == "\"op\"");
    is_path && tokens.iter().any(is_operation)
}

/// The call whose arguments stand behind these tokens.
fn call_of(before: &[TokenTree]) -> Call {
    let (name, receiver) = match before {
        [.., TokenTree::Ident(receiver), dot, TokenTree::Ident(name)] if is_mark(dot, ".") => {
            (Some(name.to_string()), Some(receiver.to_string()))
        }
        [.., TokenTree::Ident(name)] => (Some(name.to_string()), None),
        [.., TokenTree::Ident(name), not] if is_mark(not, "!") => (Some(format!("{name}!")), None),
        _ => (None, None),
    };
    Call { name, receiver }
}

fn is_mark(token: &TokenTree, marks: &str) -> bool {
    matches!(token, TokenTree::Punct(mark) if marks.contains(mark.as_char()))
}

/// The text of a string literal, plain or raw.
fn text_of(literal: &str) -> Option<&str> {
    let body = literal.strip_prefix('r').unwrap_or(literal);
    body.trim_matches('#').strip_prefix('"')?.strip_suffix('"')
}

/// The text without the line breaks that a backslash hides.
fn unfold(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(part.trim_start());
    }
    whole
}
