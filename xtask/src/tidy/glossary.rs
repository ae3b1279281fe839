//! The glossary names things that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::text::sources;

const GLOSSARY: &str = "docs/src/glossary.md";

/// Names of other crates.
const FOREIGN: [&str; 1] = ["tracing"];

/// Words in front of a name that is declared.
const DECLARATIONS: [&str; 5] = ["struct", "enum", "trait", "type", "fn"];

/// Refuses names of the glossary's second column that no crate declares.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(GLOSSARY)).context(GLOSSARY)?;
    let mut declared = BTreeSet::new();
    for path in sources(&root.join("crates"))? {
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        declared.extend(declarations(&source));
    }
    Ok(unknown(&text, &declared))
}

fn unknown(glossary: &str, declared: &BTreeSet<String>) -> Vec<String> {
    let ours = glossary
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.split('|').nth(1));
    let names = ours.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names
        .filter(|name| !declared.contains(*name) && !FOREIGN.contains(name))
        .map(|name| format!("{GLOSSARY}: no crate declares `{name}`"))
        .collect()
}

/// The names that a source file declares.
fn declarations(source: &str) -> Vec<String> {
    let words: Vec<&str> = source.split_whitespace().collect();
    let named = words
        .windows(2)
        .filter(|pair| DECLARATIONS.contains(&pair[0]));
    named
        .map(|pair| {
            let name = pair[1].split(|one: char| !(one.is_alphanumeric() || one == '_'));
            name.take(1).collect()
        })
        .collect()
}

#[test]
fn a_name_that_is_gone_is_found() {
    let source = "pub struct Indexer {\n}\npub async fn slow_start<F>(count: usize) {}";
    let declared = declarations(source).into_iter().collect();
    let table = |name: &str| format!("| there | windlass |\n|---|---|\n| `X` | `{name}` | `y` |");
    assert!(unknown(&table("Indexer"), &declared).is_empty());
    assert!(unknown(&table("slow_start"), &declared).is_empty());
    assert_eq!(unknown(&table("Tombstone"), &declared).len(), 1);
}
