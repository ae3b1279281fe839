//! README and book keep what they promise: every shell block is run, and every block of Rust is a
//! part of code that other tests compile and run.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod markdown;
mod rust;
mod shell;

use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    crates.canonicalize().unwrap()
}

/// All files below a directory with an extension, in order.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// README in both languages, and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("README.zh.md")];
    pages.extend(files(&root().join("docs/src"), "md"));
    pages
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_somewhere() {
    let book = root().join("docs/src");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    for page in files(&book, "md") {
        let name = page.strip_prefix(&book).unwrap().to_str().unwrap();
        let is_listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(is_listed, "{name} is missing in SUMMARY.md");
    }
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in markdown::links(&text) {
            let path = link.split('#').next().unwrap_or(link);
            let is_there = path.is_empty() || page.parent().unwrap().join(path).exists();
            assert!(is_there, "{}: {link} leads nowhere", page.display());
        }
    }
}
