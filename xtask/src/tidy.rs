//! `cargo xtask tidy`: what the compiler cannot see about the shape of the tree.

mod examples;
mod figures;
mod glossary;
mod graph;
mod modules;
mod names;
mod resources;
mod text;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy [--graph]";

/// Reports every breach, and fails if there is one. With `--graph` it prints the modules of each
/// crate and what they import instead.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    match arguments {
        [] => {}
        [flag] if flag == "--graph" => {
            modules::print(&root())?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => anyhow::bail!(USAGE),
    }
    let breaches = check(&root())?;
    for breach in &breaches {
        eprintln!("{breach}");
    }
    Ok(if breaches.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = graph::check(root)?;
    breaches.extend(modules::check(root)?);
    breaches.extend(examples::check(root)?);
    breaches.extend(resources::check(root)?);
    breaches.extend(figures::check(root)?);
    breaches.extend(glossary::check(root)?);
    breaches.extend(names::check(root)?);
    breaches.extend(text::check(root)?);
    breaches.extend(words::check(root)?);
    Ok(breaches)
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

#[test]
fn the_tree_is_tidy() {
    let breaches = check(&root()).expect("the tree can be read");
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
