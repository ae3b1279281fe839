//! Every library shows how it is used.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// The crates that nobody depends on for their own sake.
const INTERNAL: [&str; 1] = ["contract"];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("crates")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let library = path.join("src/lib.rs");
        if INTERNAL.contains(&name.as_ref()) || !library.exists() {
            continue;
        }
        let text = fs::read_to_string(&library).with_context(|| library.display().to_string())?;
        if !has_example(&text) {
            breaches.push(format!("crates/{name}/src/lib.rs: has no example"));
        }
    }
    breaches.sort();
    Ok(breaches)
}

/// Whether the documentation of the crate has a block of code that the compiler sees.
fn has_example(text: &str) -> bool {
    let fences = text.lines().filter_map(|line| line.strip_prefix("//! ```"));
    // Every other fence closes a block.
    fences.step_by(2).any(|info| matches!(info, "" | "no_run"))
}

#[test]
fn a_drawing_is_no_example() {
    assert!(!has_example("//! ```text\n//! a\n//! ```\n"));
    assert!(has_example(
        "//! ```text\n//! ```\n//! ```no_run\n//! a();\n//! ```\n"
    ));
}
