//! The graph of crates, as the manifests have it and as ARCHITECTURE.md says it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;

/// For each crate the crates of this workspace that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

const PREFIX: &str = "windlass-";

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let real = from_manifests(&root.join("crates"))?;
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md")?;
    let told = from_table(&text);
    Ok(compare(&real, &told))
}

fn from_manifests(crates: &Path) -> anyhow::Result<Graph> {
    let mut graph = Graph::new();
    for entry in fs::read_dir(crates).with_context(|| crates.display().to_string())? {
        let path = entry?.path();
        let manifest = path.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        graph.insert(name, dependencies(&text));
    }
    Ok(graph)
}

/// The crates of this workspace under `[dependencies]`. What only tests use is free.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]"
            && let Some(rest) = line.strip_prefix(PREFIX)
        {
            let name = rest.split(['.', ' ', '=']).next().unwrap_or(rest);
            found.insert(name.to_owned());
        }
    }
    found
}

/// The table whose first column is headed "crate": the first column names the crate, the last
/// one what it uses.
fn from_table(markdown: &str) -> Graph {
    let rows = markdown
        .lines()
        .skip_while(|line| !line.starts_with("| crate |"))
        .skip(2);
    let cells = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let name = cells.next()?.trim_matches('`').to_owned();
            let uses = cells.next_back()?;
            Some((name, uses))
        });
    cells
        .map(|(name, uses)| {
            let uses = uses.split(',').map(|used| used.trim().trim_matches('`'));
            (
                name,
                uses.filter(|used| !used.is_empty() && *used != "-")
                    .map(str::to_owned)
                    .collect(),
            )
        })
        .collect()
}

fn compare(real: &Graph, told: &Graph) -> Vec<String> {
    let names: BTreeSet<&String> = real.keys().chain(told.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| real.get(*name) != told.get(*name));
    differing
        .map(|name| match (real.get(name), told.get(name)) {
            (Some(_), None) => format!("ARCHITECTURE.md: crate {name} is missing in the table"),
            (None, _) => format!("ARCHITECTURE.md: there is no crate {name}"),
            (Some(real), Some(told)) => {
                format!("ARCHITECTURE.md: crate {name} uses {real:?}, the table says {told:?}")
            }
        })
        .collect()
}

#[test]
fn a_difference_between_manifest_and_table_is_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nserde = \"1\"\n\
                    windlass-core.workspace = true\nwindlass-queue = { path = \"q\" }\n\
                    [dev-dependencies]\nwindlass-testing.workspace = true\n";
    let real = Graph::from([("x".to_owned(), dependencies(manifest))]);
    let table = |uses: &str| {
        format!("text\n\n| crate | what | uses |\n|---|---|---|\n| `x` | y | {uses} |\n")
    };
    assert!(compare(&real, &from_table(&table("core, `queue`"))).is_empty());
    assert_eq!(compare(&real, &from_table(&table("core"))).len(), 1);
    assert_eq!(compare(&real, &from_table("no table")).len(), 1);
    assert_eq!(compare(&Graph::new(), &from_table(&table("-"))).len(), 1);
}
