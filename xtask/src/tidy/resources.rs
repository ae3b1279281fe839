//! Names of resources: a kind is known by its registry row, not by a comparison of its name.
//!
//! A custom kind may be called `pods`, too. [`check`] refuses code that compares something with a
//! string literal that is the name of a built-in resource: with `==` or `!=`, in a pattern, or by
//! `[..].contains(..)`. The names are those of the registry rows. Tests may compare.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::modules::{is_ident, without_tests};

/// The crates in which requests and objects of all kinds pass by.
const CRATES: &[&str] = &["access", "rules", "schema", "server"];

/// A file that names so many kinds with their plurals is the table of registry rows.
const ROWS_MIN: usize = 50;

/// Files in which such a word is compared, and the reason why it is no kind that is recognized.
const EXEMPT: &[(&str, &str)] = &[
    (
        "access/src/node.rs",
        "an authorizer sees the names of a request, before it is known whether they are served",
    ),
    (
        "server/src/allocate.rs",
        "the reference of an IPAddress to its parent says of which resource it is",
    ),
    (
        "request.rs",
        "the grammar of paths: what follows `namespaces` is one",
    ),
    (
        "server/src/first_flow.rs",
        "the first objects, by where they are stored",
    ),
    (
        "resource_quota.rs",
        "`pods` and others are names of amounts in a quota",
    ),
    (
        "src/quota.rs",
        "the names of amounts say which resource of which group they count",
    ),
    ("autoscaler/", "`pods` is a field of a metric"),
    ("more_cells.rs", "`pods` is a field of a metric"),
];

/// Refuses comparisons with the names of resources.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for name in CRATES {
        let source = root.join("crates").join(name).join("src");
        if source.is_dir() {
            collect(&source, &mut files)?;
        }
    }
    files.sort();
    let (mut names, mut rest) = (BTreeSet::new(), Vec::new());
    for file in files {
        let tokens = parse(&file)?;
        match row_names(&tokens) {
            rows if rows.len() >= ROWS_MIN => names.extend(rows),
            _ => rest.push((file, tokens)),
        }
    }
    anyhow::ensure!(
        !names.is_empty(),
        "no file of the crates {CRATES:?} names {ROWS_MIN} kinds; where are the registry rows?"
    );
    let mut breaches = Vec::new();
    for (file, tokens) in &rest {
        let shown = file
            .strip_prefix(root)
            .unwrap_or(file)
            .display()
            .to_string();
        let is_exempt = EXEMPT.iter().any(|(part, _)| shown.contains(part));
        if is_exempt {
            continue;
        }
        for name in compared_in(&without_tests(tokens.clone()), &names) {
            breaches.push(format!(
                "{shown}: compares with {name:?}, the name of a resource; let the registry row of \
                 the kind say what it needs"
            ));
        }
    }
    Ok(breaches)
}

fn parse(file: &Path) -> anyhow::Result<TokenStream> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let parsed = text.parse();
    parsed.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// All source files below a directory, tests left out.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The text of a plain string literal.
fn text(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else {
        return None;
    };
    let shown = literal.to_string();
    let inner = shown.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.to_owned())
}

/// The plurals in registry rows: lower-case texts behind the name of a kind.
fn row_names(tokens: &TokenStream) -> BTreeSet<String> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut names = BTreeSet::new();
    for window in tokens.windows(3) {
        let (Some(kind), Some(plural)) = (text(&window[0]), text(&window[2])) else {
            continue;
        };
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase());
        let is_plural = !plural.is_empty() && plural.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_mark(&window[1], ',') && is_kind && is_plural {
            names.insert(plural);
        }
    }
    for token in &tokens {
        if let TokenTree::Group(group) = token {
            names.extend(row_names(&group.stream()));
        }
    }
    names
}

/// The names with which a file compares something, and its constants that stand for them.
fn compared_in(tokens: &TokenStream, names: &BTreeSet<String>) -> Vec<String> {
    let mut names = names.clone();
    names.extend(constants(tokens, &names));
    compared(tokens, &names)
}

/// The constants whose value is a name: `const PODS: &str = "pods"`.
fn constants(tokens: &TokenStream, names: &BTreeSet<String>) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let items = tokens.split(|token| is_mark(token, ';'));
    let constant = |item: &[TokenTree]| {
        let at = item.iter().position(|token| is_ident(token, "const"))?;
        let is_name = item
            .last()
            .and_then(text)
            .is_some_and(|it| names.contains(&it));
        is_name.then(|| item.get(at + 1).map(ToString::to_string))?
    };
    items.filter_map(constant).collect()
}

/// The names with which code compares something.
fn compared(tokens: &TokenStream, names: &BTreeSet<String>) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let (before, after) = (&tokens[..index], &tokens[index + 1..]);
        if is_equated(before, after) || is_pattern(token, after) {
            found.extend(names_in(token, names));
            continue;
        }
        if let TokenTree::Group(group) = token {
            match is_alternatives(before, after, group) {
                true => found.extend(names_in(token, names)),
                false => found.extend(compared(&group.stream(), names)),
            }
        }
    }
    found
}

/// Returns true if a token is a side of `==` or `!=`.
fn is_equated(before: &[TokenTree], after: &[TokenTree]) -> bool {
    let is_comparison = |first: Option<&TokenTree>, second: Option<&TokenTree>| {
        let is_first = first.is_some_and(|it| is_mark(it, '=') || is_mark(it, '!'));
        is_first && second.is_some_and(|it| is_mark(it, '='))
    };
    // A reference or a dereference may stand between.
    let skipped = before.iter().rev();
    let mut skipped = skipped.skip_while(|it| is_mark(it, '*') || is_mark(it, '&'));
    let (second, first) = (skipped.next(), skipped.next());
    is_comparison(first, second) || is_comparison(after.first(), after.get(1))
}

/// Returns true if a token is a pattern of a `match`, or one of its alternatives.
fn is_pattern(token: &TokenTree, after: &[TokenTree]) -> bool {
    if matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace) {
        return false;
    }
    let is_next = |at: usize, mark| after.get(at).is_some_and(|it| is_mark(it, mark));
    let is_arm = is_next(0, '=') && is_next(1, '>');
    let is_guarded = matches!(after.first(), Some(TokenTree::Ident(ident)) if *ident == "if");
    // `||` is no alternative.
    is_arm || is_guarded || is_next(0, '|') && !is_next(1, '|')
}

/// Returns true for the arguments of `matches!`, and for a list of which `contains` is asked.
fn is_alternatives(before: &[TokenTree], after: &[TokenTree], group: &Group) -> bool {
    let is_macro = before.last().is_some_and(|it| is_mark(it, '!'))
        && matches!(before.get(before.len().wrapping_sub(2)),
            Some(TokenTree::Ident(ident)) if *ident == "matches");
    let is_asked = matches!(after, [dot, TokenTree::Ident(ident), ..]
        if is_mark(dot, '.') && *ident == "contains");
    is_macro || is_asked && group.delimiter() == Delimiter::Bracket
}

/// The names in a token, however deep.
fn names_in(token: &TokenTree, names: &BTreeSet<String>) -> Vec<String> {
    match token {
        TokenTree::Group(group) => {
            let inner = group.stream().into_iter();
            inner.flat_map(|token| names_in(&token, names)).collect()
        }
        // A variable may be called as it likes; a constant is written in capitals.
        TokenTree::Ident(ident) => {
            let ident = ident.to_string();
            let is_constant = ident.starts_with(|c: char| c.is_ascii_uppercase());
            let is_name = is_constant && names.contains(&ident);
            is_name.then_some(ident).into_iter().collect()
        }
        token => text(token)
            .into_iter()
            .filter(|it| names.contains(it))
            .collect(),
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let names = ["pods", "services"].map(str::to_owned);
        let tokens = without_tests(code.parse().expect("code"));
        compared_in(&tokens, &names.into())
    }

    #[test]
    fn comparisons_with_names_are_found() {
        for code in [
            r#"fn f() { if path.resource == "pods" { g() } }"#,
            r#"fn f() { resource.plural != "pods" }"#,
            r#"fn f() { "pods" == plural }"#,
            r#"fn f() { *plural == *"pods" }"#,
            r#"fn f() { match plural { "pods" => 1, _ => 2 } }"#,
            r#"fn f() { match plural { "nodes" | "pods" => 1, _ => 2 } }"#,
            r#"fn f() { match (group, plural) { ("", "pods") if is_main => 1, _ => 2 } }"#,
            r#"fn f() { match it { Some("pods") => 1, _ => 2 } }"#,
            r#"fn f() { matches!(plural, "pods") }"#,
            r#"fn f() { ["pods", "nodes"].contains(&plural) }"#,
            r#"fn f() { (group, plural) == ("", "pods") }"#,
        ] {
            assert_eq!(found(code), ["pods"], "{code}");
        }
    }

    #[test]
    fn comparisons_with_constants_that_stand_for_names_are_found() {
        let code = r#"const PODS: &str = "pods"; fn f() { path.resource == PODS }"#;
        assert_eq!(found(code), ["PODS"]);
    }

    #[test]
    fn names_that_are_not_compared_are_none_of_this_check() {
        for code in [
            r#"fn f() { storage.find("", "pods", namespace, name) }"#,
            r#"const PODS: &str = "pods";"#,
            r#"fn f() { match kind { "Pod" => ("pods", 1), _ => ("services", 2) } }"#,
            r#"fn f() { is_any || "pods".is_empty() }"#,
            r#"fn f() { name == "widgets" && pods == services }"#,
            r#"fn f() { names.map(|name| (name, "pods")) }"#,
            r#"fn f() { if a { find("pods") } if b { 1 } }"#,
            r#"#[cfg(test)] mod tests { fn f() { name == "pods" } }"#,
        ] {
            assert!(found(code).is_empty(), "{code}");
        }
    }

    #[test]
    fn names_are_those_of_the_rows() {
        let rows = r#"fn rows() { vec![v1("Pod", "pods").short(&["po"]), row("apps", "v1", "Job", "jobs")] }"#;
        let names = row_names(&rows.parse().expect("code"));
        assert_eq!(names, ["jobs", "pods"].map(str::to_owned).into());
    }
}
