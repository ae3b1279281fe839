//! The import graph between the top modules of each crate.
//!
//! A top module is a file or directory directly below `src`. It imports another one when its code,
//! tests left out, names it by a path from the crate root: `crate::other::Thing`, or a re-export of
//! `lib.rs` such as `crate::Thing`. `cargo xtask tidy --graph` prints the graph; [`check`] refuses
//! import cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// For each top module of a crate the top modules that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules of one crate and their imports.
pub(super) struct CrateModules {
    name: String,
    imports: Imports,
    lines: BTreeMap<String, usize>,
}

/// One source file: its path of modules below the crate root, and its tokens.
struct SourceFile {
    modules: Vec<String>,
    tokens: TokenStream,
    lines: usize,
}

/// Refuses import cycles between the top modules of a crate.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let crates = read_crates(root)?;
    let breaches = crates.iter().filter_map(|modules| {
        let cycle = modules.largest_cycle();
        (cycle.len() > 1).then(|| {
            let names: Vec<&str> = cycle.iter().map(String::as_str).collect();
            format!(
                "crates/{}: {} modules import each other in a cycle: {}",
                modules.name,
                names.len(),
                names.join(", ")
            )
        })
    });
    Ok(breaches.collect())
}

/// Prints the modules of each crate and the size of its largest import cycle.
pub(super) fn print(root: &Path) -> anyhow::Result<()> {
    for modules in read_crates(root)? {
        let cycle = modules.largest_cycle();
        println!(
            "{}: {} modules, largest import cycle {}",
            modules.name,
            modules.imports.len(),
            cycle.len()
        );
        for (module, imported) in &modules.imports {
            let mark = if cycle.len() > 1 && cycle.contains(module) {
                "*"
            } else {
                " "
            };
            let imported: Vec<&str> = imported.iter().map(String::as_str).collect();
            let lines = modules.lines.get(module).copied().unwrap_or_default();
            println!("  {mark} {module} ({lines}): {}", imported.join(" "));
        }
    }
    Ok(())
}

fn read_crates(root: &Path) -> anyhow::Result<Vec<CrateModules>> {
    let directory = root.join("crates");
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let files = read_files(&directory.join(&name).join("src"))?;
            Ok(CrateModules::of(name, &files))
        })
        .collect()
}

impl CrateModules {
    fn of(name: String, files: &[SourceFile]) -> Self {
        let tops: BTreeSet<String> = files
            .iter()
            .filter_map(|file| file.modules.first().cloned())
            .collect();
        let reexports = files
            .iter()
            .filter(|file| file.modules.is_empty())
            .flat_map(|file| reexports(&file.tokens, &tops))
            .collect();
        let mut imports: Imports = tops
            .iter()
            .map(|top| (top.clone(), BTreeSet::new()))
            .collect();
        let mut lines = BTreeMap::new();
        for file in files {
            let Some(top) = file.modules.first() else {
                continue;
            };
            *lines.entry(top.clone()).or_default() += file.lines;
            let mut named = Vec::new();
            let depth = file.modules.len();
            root_paths(&without_tests(file.tokens.clone()), depth, &mut named);
            let targets = named
                .iter()
                .filter_map(|name| resolve(name, &tops, &reexports));
            let found = imports.entry(top.clone()).or_default();
            found.extend(targets.filter(|target| target != top));
        }
        Self {
            name,
            imports,
            lines,
        }
    }

    /// The largest set of modules that reach each other; one module, if there is no cycle.
    fn largest_cycle(&self) -> BTreeSet<String> {
        let reached: BTreeMap<&String, BTreeSet<&String>> = self
            .imports
            .keys()
            .map(|module| (module, self.reached_from(module)))
            .collect();
        let cycles = self.imports.keys().map(|module| {
            let others = reached[module]
                .iter()
                .filter(|other| reached[*other].contains(module));
            let mut cycle: BTreeSet<String> = others.map(|other| (*other).clone()).collect();
            cycle.insert(module.clone());
            cycle
        });
        cycles.max_by_key(BTreeSet::len).unwrap_or_default()
    }

    fn reached_from<'a>(&'a self, module: &'a String) -> BTreeSet<&'a String> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![module];
        while let Some(module) = waiting.pop() {
            let imported = self.imports.get(module).into_iter().flatten();
            waiting.extend(imported.filter(|next| reached.insert(*next)));
        }
        reached
    }
}

/// The top module that a name at the crate root stands for.
fn resolve(
    name: &str,
    tops: &BTreeSet<String>,
    reexports: &BTreeMap<String, String>,
) -> Option<String> {
    tops.get(name).or_else(|| reexports.get(name)).cloned()
}

/// All source files below a directory. Files named `tests.rs` and directories `tests` are tests.
fn read_files(source: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut waiting = vec![(source.to_path_buf(), Vec::new())];
    while let Some((directory, modules)) = waiting.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            let Some(name) = module_name(&path) else {
                continue;
            };
            let mut inner: Vec<String> = modules.clone();
            if !(inner.is_empty() && matches!(name.as_str(), "lib" | "main")) {
                inner.push(name);
            }
            if path.is_dir() {
                waiting.push((path, inner));
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let tokens: TokenStream = text
                .parse()
                .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            files.push(SourceFile {
                modules: inner,
                tokens,
                lines: text.lines().count(),
            });
        }
    }
    Ok(files)
}

fn module_name(path: &Path) -> Option<String> {
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    let stem = PathBuf::from(path.file_stem()?);
    let name = stem.to_string_lossy().into_owned();
    ((is_source || path.is_dir()) && name != "tests").then_some(name)
}

/// The names that `lib.rs` re-exports, with the top modules that they come from.
fn reexports(tokens: &TokenStream, tops: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut tokens = tokens.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        if !is_ident(&token, "use") {
            continue;
        }
        let path: Vec<TokenTree> = std::iter::from_fn(|| {
            tokens
                .next_if(|token| !matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'))
        })
        .collect();
        let mut idents = Vec::new();
        all_idents(&path.into_iter().collect(), &mut idents);
        let idents: Vec<String> = idents.into_iter().filter(|name| name != "crate").collect();
        if let Some((top, names)) = idents.split_first()
            && tops.contains(top)
        {
            found.extend(names.iter().map(|name| (name.clone(), top.clone())));
        }
    }
    found
}

fn all_idents(tokens: &TokenStream, found: &mut Vec<String>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Group(group) => all_idents(&group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The first names of all paths from the crate root: behind `crate::`, and behind as many `super::`
/// as lead from a module `depth` levels deep to the root.
fn root_paths(tokens: &TokenStream, depth: usize, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if let TokenTree::Group(group) = token {
            root_paths(&group.stream(), depth, found);
        }
        let supers = (0..)
            .take_while(|count| {
                let token = tokens.get(index + 3 * count);
                token.is_some_and(|token| is_ident(token, "super"))
            })
            .count();
        let after = match supers {
            0 if is_ident(token, "crate") => Some(index + 3),
            0 => None,
            count if count >= depth => Some(index + 3 * count),
            _ => None,
        };
        match after.and_then(|after| tokens.get(after)) {
            Some(TokenTree::Ident(ident)) => found.push(ident.to_string()),
            Some(TokenTree::Group(group)) => first_names(group, found),
            _ => {}
        }
        index += 1 + 3 * supers.saturating_sub(1);
    }
}

/// The first name of each path in the braces of a `use`.
fn first_names(group: &Group, found: &mut Vec<String>) {
    if group.delimiter() != Delimiter::Brace {
        return;
    }
    let mut is_first = true;
    for token in group.stream() {
        match token {
            TokenTree::Ident(ident) if is_first => {
                found.push(ident.to_string());
                is_first = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' => is_first = true,
            _ => {}
        }
    }
}

/// The tokens of a file without the items behind `#[cfg(test)]`.
pub(super) fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#');
        let is_test = is_attribute
            && matches!(tokens.peek(), Some(TokenTree::Group(group))
                if group.stream().to_string().replace(' ', "").contains("cfg(test)"));
        if !is_test {
            kept.push(token);
            continue;
        }
        // The attribute, and the item up to its body or semicolon.
        tokens.next();
        for token in tokens.by_ref() {
            let is_end = match &token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                TokenTree::Ident(_) | TokenTree::Literal(_) => false,
            };
            if is_end {
                break;
            }
        }
    }
    kept.into_iter().collect()
}

pub(super) fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if *ident == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(modules: &[&str], text: &str) -> SourceFile {
        SourceFile {
            modules: modules.iter().map(ToString::to_string).collect(),
            tokens: text.parse().expect("the fixture is Rust"),
            lines: text.lines().count(),
        }
    }

    fn cycle(files: &[SourceFile]) -> Vec<String> {
        let modules = CrateModules::of("x".to_owned(), files);
        modules.largest_cycle().into_iter().collect()
    }

    #[test]
    fn an_import_cycle_through_a_re_export_is_found() {
        let files = [
            file(&[], "mod a; mod b; mod c; pub use a::Thing;"),
            file(&["a"], "use crate::{b::Other, c};"),
            file(&["b"], "fn f() -> crate::Thing { unreachable!() }"),
            file(&["c"], "pub fn g() {}"),
        ];
        assert_eq!(cycle(&files), ["a", "b"]);
    }

    #[test]
    fn super_leads_to_the_root_from_a_top_module_only() {
        let root = file(&[], "mod a; mod b;");
        let b = file(&["b"], "use super::a;");
        let inner = |text| {
            [
                file(&[], ""),
                file(&["a"], "use crate::b;"),
                file(&["a", "x"], text),
            ]
        };
        let mut files = vec![root, b];
        files.extend(inner("use super::b;"));
        assert_eq!(cycle(&files), ["a", "b"]);
        let inside = [
            file(&["a", "x"], "use super::b;"),
            file(&["b"], "use crate::a;"),
        ];
        assert_eq!(cycle(&inside).len(), 1, "`super` of a::x is a");
        let outside = [
            file(&["a", "x"], "use super::super::b;"),
            file(&["b"], "use crate::a;"),
        ];
        assert_eq!(cycle(&outside).len(), 2);
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        let files = [
            file(
                &["a"],
                "use crate::b; #[cfg(test)] mod tests { use crate::c; }",
            ),
            file(&["b"], "#[cfg(test)] use crate::a; fn f() {}"),
            file(&["c"], "use crate::a;"),
        ];
        assert_eq!(cycle(&files).len(), 1);
    }
}
