//! Rust on the pages is Rust that compiles and runs elsewhere.

use std::path::Path;

use super::markdown::blocks;
use super::{files, pages, root};

/// Where the code of the pages comes from. All of it is compiled and run by other tests.
const SOURCES: [&str; 4] = [
    "crates/windlass/examples",
    "crates/windlass/tests",
    "tests/operator/src",
    "tests/operator/tests",
];

/// Code without its layout, which a narrow page may choose for itself.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn blocks_of_rust_are_parts_of_tested_code() {
    let files = SOURCES
        .iter()
        .flat_map(|source| files(&root().join(source), "rs"));
    let code: Vec<String> = files.map(|path| bare(&read(&path))).collect();
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        for block in blocks(&text)
            .iter()
            .filter(|block| block.language == "rust")
        {
            let wanted = bare(&block.text);
            let is_tested = code.iter().any(|file| file.contains(&wanted));
            assert!(
                is_tested,
                "{}:{}: nothing tests this code",
                page.display(),
                block.line
            );
            count += 1;
        }
    }
    assert!(count > 0, "the pages show code");
}

#[test]
fn other_blocks_have_a_language_that_is_known() {
    for page in pages() {
        let text = read(&page);
        for block in blocks(&text) {
            let is_known =
                ["sh", "rust", "text", "toml", "yaml"].contains(&block.language.as_str());
            assert!(
                is_known,
                "{}:{}: {:?}",
                page.display(),
                block.line,
                block.language
            );
            if block.language != "yaml" {
                continue;
            }
            let is_file = files(&root().join("tests/operator"), "yaml")
                .iter()
                .chain(&files(&root().join("deploy"), "yaml"))
                .any(|file| bare(&read(file)).contains(&bare(&block.text)));
            assert!(
                is_file,
                "{}:{}: no file has this",
                page.display(),
                block.line
            );
        }
    }
}
